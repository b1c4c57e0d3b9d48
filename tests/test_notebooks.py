"""Every notebook: runs on a tiny sample, is clean, and means the same however it is run."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import papermill
import pytest
import yaml
from notebook_files import NOTEBOOKS, ROOT, answers_of, edit_parameters, filled_in

from contamination import run, storage
from contamination.parameters import declared_parameters

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


@pytest.fixture(scope="module")
def lab_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def one_lab_for_all(lab_cache, monkeypatch):
    """Notebooks share the lab's texts and models, as they do in make reproduce."""
    if storage.CACHE_VARIABLE in os.environ:
        monkeypatch.setenv(storage.CACHE_VARIABLE, str(lab_cache))


@pytest.fixture(scope="module")
def smoke_outputs(tmp_path_factory):
    """Output folder of all notebooks run in order in the smoke profile."""
    return tmp_path_factory.mktemp("smoke")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=ids)
def test_notebook_runs(path, smoke_outputs, tmp_path):
    """It runs with the folded answers filled in, and its checks call them right."""
    notebook = nbformat.read(path, as_version=4)
    solved = tmp_path / path.name
    nbformat.write(filled_in(notebook), solved)
    target = run.run_notebook(solved, ROOT / "params/smoke" / f"{path.stem}.yaml", smoke_outputs)
    executed = nbformat.read(target, as_version=4)
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert all(cell.metadata.papermill.status == "completed" for cell in code)
    assert all(out.output_type != "error" for cell in code for out in cell.get("outputs", []))
    noise = [o.text for c in code for o in c.outputs if o.get("name") == "stderr"]
    assert not noise
    printed = "".join(o.text for c in code for o in c.outputs if o.get("name") == "stdout")
    for number in answers_of(notebook):
        assert f"Exercise {number}: right." in printed


def test_plain_papermill_and_jupyter_give_the_same_tables(tmp_path, monkeypatch, smoke_outputs):
    """Without the runner, results are the same and go to the interactive folder."""
    name = "06_case_books"
    source = tmp_path / "checkout" / "notebooks" / f"{name}.ipynb"
    source.parent.mkdir(parents=True)
    shutil.copy(ROOT / "notebooks" / f"{name}.ipynb", source)
    parameters = yaml.safe_load((ROOT / f"params/smoke/{name}.yaml").read_text())

    monkeypatch.setenv(storage.OUTPUTS_VARIABLE, str(tmp_path / "papermill"))
    monkeypatch.chdir(tmp_path)
    papermill.execute_notebook(
        source, tmp_path / "out.ipynb", parameters=parameters, progress_bar=False
    )
    # "Run all" has no parameters.
    edit_parameters(source, parameters)
    monkeypatch.setenv(storage.OUTPUTS_VARIABLE, str(tmp_path / "jupyter"))
    command = [sys.executable, "-m", "jupyter", "execute", str(source)]
    subprocess.run(command, check=True, capture_output=True)

    expected = {p.name: p.read_bytes() for p in (smoke_outputs / "tables").glob("books*.csv")}
    assert expected
    for folder in ("papermill", "jupyter"):
        found = {p.name: p.read_bytes() for p in (tmp_path / folder / "tables").glob("*.csv")}
        assert found == expected


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
