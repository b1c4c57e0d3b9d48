"""Every notebook is clean, and those that build on each other run on a tiny sample."""

import re

import nbformat
import pytest
import yaml
from notebook_files import IN_ORDER, NOTEBOOKS, ROOT, assert_runs

from contamination import run, storage
from contamination.parameters import declared_parameters

pytestmark = pytest.mark.usefixtures("one_lab_for_all")

PROFILES = ("smoke", "demo", "released")
MAX_CODE_LINES = 15


def ids(path):
    return path.stem


@pytest.fixture(params=NOTEBOOKS, ids=ids)
def notebook_path(request):
    return request.param


@pytest.fixture
def notebook(notebook_path):
    return nbformat.read(notebook_path, as_version=4)


@pytest.mark.parametrize("path", IN_ORDER, ids=ids)
def test_notebook_runs(path, smoke_outputs, tmp_path):
    assert_runs(path, smoke_outputs, tmp_path)


def test_interactive_runs_have_a_folder_of_their_own(monkeypatch):
    monkeypatch.delenv(storage.OUTPUTS_VARIABLE)
    assert storage.Outputs().folder == ROOT / "outputs" / "interactive"


def test_two_runs_give_the_same_bytes(tmp_path, smoke_outputs):
    name = "03_replication_icl_judge"
    run.run_notebook(
        ROOT / f"notebooks/{name}.ipynb", ROOT / f"params/smoke/{name}.yaml", tmp_path / "again"
    )
    again = sorted((tmp_path / "again/tables").glob("*.csv"))
    assert again
    for path in again:
        assert path.read_bytes() == (smoke_outputs / "tables" / path.name).read_bytes()


# Parameters


def test_demo_values_are_the_defaults(notebook, notebook_path):
    declared = declared_parameters(notebook, notebook_path.name)
    defaults = {name: parameter.default for name, parameter in declared.items()}
    demo = yaml.safe_load((ROOT / "params/demo" / f"{notebook_path.stem}.yaml").read_text())
    assert demo == defaults


@pytest.mark.parametrize("profile", PROFILES)
def test_parameter_file_of_every_profile_fits(notebook_path, profile):
    run.check(notebook_path, ROOT / "params" / profile / f"{notebook_path.stem}.yaml")


def test_no_parameter_file_without_a_notebook():
    stems = {path.stem for path in NOTEBOOKS}
    for profile in PROFILES:
        assert {path.stem for path in (ROOT / "params" / profile).glob("*.yaml")} == stems


def test_no_parameter_is_a_key(notebook, notebook_path):
    for name in declared_parameters(notebook, notebook_path.name):
        assert not re.search(r"(api_?key|token|secret|password)$", name)


# Form


def test_notebook_is_stored_clean(notebook):
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.execution_count is None
            assert cell.outputs == []
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


def test_notebook_opens_as_the_house_asks(notebook, notebook_path):
    first = notebook.cells[0].source
    number = notebook_path.stem[:2]
    assert first.startswith(f"# {number} · ")
    assert "?" in first.split("\n\n")[1]
    assert "| Needs | Time | Writes | Method |" in first
    titles = [
        line for c in notebook.cells if c.cell_type == "markdown" for line in c.source.splitlines()
    ]
    assert sum(line.startswith("# ") for line in titles) == 1
    assert "parameters" in notebook.cells[1].metadata.tags
    assert notebook.cells[-1].source == "versions()"


def test_code_cells_are_short(notebook):
    for cell in notebook.cells[3:]:
        if cell.cell_type == "code":
            lines = [line for line in cell.source.splitlines() if line.strip()]
            assert len(lines) <= MAX_CODE_LINES, cell.source


def test_tables_named_in_the_facts_table_are_those_written(notebook, notebook_path, smoke_outputs):
    facts = notebook.cells[0].source
    code = "\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    written = set(re.findall(r'write_table\("(\w+)"', code))
    written |= set(re.findall(r'write_figure\("(\w+)"', code))
    named = {name for name in re.findall(r"`(?:tables/|figures/)?(\w+)\.(?:csv|png)`", facts)}
    assert named == written


def test_links_to_notebooks_and_files_exist(notebook):
    text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    for path in re.findall(r"`((?:params|notebooks|docs)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path
    stems = {path.stem for path in NOTEBOOKS}
    for target in re.findall(r"`make (\d\d_\w+)`", text):
        assert target in stems
