"""Every notebook is clean, and those that build on each other run on a tiny sample."""

import ast
import functools
import json
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml
from nbclient import NotebookClient
from notebook_files import (
    IN_ORDER,
    NOTEBOOKS,
    ROOT,
    assert_runs,
    assert_same_again,
    printed_by,
    script,
)

from contamination.core import run, storage
from contamination.core.parameters import declared_in

pytestmark = pytest.mark.usefixtures("one_lab_for_all")

PROFILES = ("smoke", "demo", "released", "pretrained")
PARAMETER_FILES = [path for name in PROFILES for path in sorted((ROOT / "params" / name).glob("*"))]
# A profile that leaves notebooks out has only these.
ONLY = {"pretrained": {"01_data_prep", "10_audit", "12_real_model"}}
STUDY, RETRAINED = "09b_detector_study", "first_steps"  # the one table that trains a model
MAX_CODE_LINES = 30  # a cell is one thought
LESSONS, MAX_LESSON_CELLS = ("02", "03", "04", "05"), 30


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


@pytest.mark.parametrize("path", [path for path in IN_ORDER if path.stem != STUDY], ids=ids)
def test_a_second_run_gives_the_same_bytes(path, smoke_outputs, one_world, tmp_path, monkeypatch):
    assert_same_again(path, smoke_outputs, tmp_path, monkeypatch)


def test_the_study_gives_its_stored_tables(smoke_outputs):
    """At every run size, since it reads the ledger; this takes the place of a second run."""
    written = json.loads((smoke_outputs / "manifests" / f"{STUDY}.json").read_text())["outputs"]
    tables = {Path(name).stem for name in written if name.startswith("tables/")} - {RETRAINED}
    read = functools.partial(pd.read_csv, dtype=str, keep_default_na=False)
    compared = [
        script("reference").compare(
            name,
            read(smoke_outputs / f"tables/{name}.csv"),
            read(ROOT / f"outputs/reference/demo/tables/{name}.csv"),
        )
        for name in sorted(tables)
    ]
    assert len(compared) > 20
    assert all(one.is_same for one in compared), compared
    if not script("environment").differences():  # other versions may round otherwise
        assert {one.says for one in compared} == {"identical"}, compared


@pytest.mark.parametrize("folder", ["exercises", "solutions"])
def test_the_control_of_dice_is_tried_on_models(folder, one_world):
    """The other notebooks of exercises train nothing and run beside their cases."""
    values = yaml.safe_load((ROOT / "params/smoke/05_dice.yaml").read_text())
    printed = printed_by(ROOT / f"notebooks/{folder}/05_dice.ipynb", values)
    assert ("clean against other texts: " in printed) == (folder == "solutions")
    assert printed.count("cases pass.") == (3 if folder == "solutions" else 0)
    assert "contaminated against clean: " in printed


PLAN = (ROOT / "docs/teaching.md").read_text().split("## One session of 90 minutes")[1]
STEPS = re.findall(r"^\| (\d+) \| \[[^]]+\]\(\.\./(\S+)\) \| “(.+?)” \|", PLAN, re.M)


@pytest.mark.parametrize(("_minutes", "path", "until"), STEPS, ids=[step[1] for step in STEPS])
def test_the_90_minute_plan_runs_cell_by_cell(_minutes, path, until, tmp_path, monkeypatch):
    """In a fresh kernel each, from the top up to the heading that the plan names."""
    monkeypatch.setenv(storage.OUTPUTS_VARIABLE, str(tmp_path))
    notebook = nbformat.read(ROOT / path, as_version=4)
    heading = next(n for n, cell in enumerate(notebook.cells) if until in headings_of(cell))
    notebook.cells = notebook.cells[:heading]
    first = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    values = yaml.safe_load((ROOT / "params/smoke" / f"{Path(path).stem}.yaml").read_text())
    for cell in first:  # exercises have none
        cell.source += "".join(f"\n{name} = {value!r}" for name, value in values.items())
    folder = {"metadata": {"path": (ROOT / path).parent}}
    NotebookClient(notebook, resources=folder).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


def headings_of(cell):
    lines = cell.source.splitlines() if cell.cell_type == "markdown" else []
    return [line.lstrip("#").strip() for line in lines if line.startswith("#")]


def test_the_plan_takes_90_minutes():
    rows = re.findall(r"^\| (\d+) \|", PLAN.split("\n## ")[0], re.M)
    assert sum(map(int, rows)) == 90 and len(rows) == 5 and len(STEPS) == 3


# Parameters


def test_demo_values_are_the_defaults(notebook_path):
    declared = declared_in(notebook_path)
    defaults = {name: parameter.default for name, parameter in declared.items()}
    demo = yaml.safe_load((ROOT / "params/demo" / f"{notebook_path.stem}.yaml").read_text())
    assert demo == defaults


@pytest.mark.parametrize(
    "path", PARAMETER_FILES, ids=lambda path: f"{path.parent.name} {path.stem}"
)
def test_parameter_file_of_every_profile_fits(path):
    run.check(ROOT / "notebooks" / f"{path.stem}.ipynb", path)


def test_every_profile_has_every_notebook():
    stems = {path.stem for path in NOTEBOOKS}
    for profile in PROFILES:
        found = {path.stem for path in PARAMETER_FILES if path.parent.name == profile}
        assert found == ONLY.get(profile, stems)


def test_what_is_said_is_shown(notebook_path):
    """A sentence or table that is neither displayed nor the last expression of its cell is lost."""
    for cell in nbformat.read(notebook_path, 4).cells:
        tree = ast.parse(cell.source if cell.cell_type == "code" else "")
        for node in ast.walk(tree):
            is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            name = getattr(node.value.func, "id", "") if is_call else ""
            assert name not in ("say", "show") or node is tree.body[-1], ast.unparse(node)


def test_no_parameter_is_a_key(notebook_path):
    for name in declared_in(notebook_path):
        assert not re.search(r"(api_?key|token|secret|password)$", name)


# Form


def markdown_of(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def test_notebook_opens_as_the_house_asks(notebook, notebook_path):
    first, parameters, imports = notebook.cells[:3]
    assert first.source.startswith(f"# {notebook_path.stem.partition('_')[0]} · ")
    assert "?" in first.source.split("\n\n")[1]
    assert len(first.source.split()) <= 160 and "|" not in first.source
    titles = [line for text in markdown_of(notebook) for line in text.splitlines()]
    assert sum(line.startswith("# ") for line in titles) == 1
    for cell, tag in ((parameters, "parameters"), (imports, "imports")):
        assert tag in cell.metadata.tags
        assert cell.metadata.jupyter.source_hidden
    assert notebook.cells[-1].source == "versions()"


def test_code_cells_are_short(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code" and "parameters" not in cell.metadata.get("tags", []):
            lines = [line for line in cell.source.splitlines() if line.strip()]
            assert len(lines) <= MAX_CODE_LINES, cell.source


def test_the_method_stands_in_the_lesson(notebook, notebook_path):
    headings = [cell.source.startswith("## Going deeper") for cell in notebook.cells]
    lesson = notebook.cells[: headings.index(True)] if any(headings) else notebook.cells
    if notebook_path.stem.partition("_")[0] in LESSONS:
        assert len(lesson) <= MAX_LESSON_CELLS
        assert any("method" in cell.metadata.get("tags", []) for cell in lesson)


def test_files_named_at_the_end_are_those_written(notebook):
    code = "\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    written = set(re.findall(r'write_(?:table|figure)\("(\w+)"', code))
    *_, last = (t for t in markdown_of(notebook) if not t.startswith(("Previous: ", "Next: ")))
    named = re.findall(r"`(?:tables/|figures/)?(\w+)\.(?:csv|png)`", last)
    assert set(named) == written


def test_links_to_notebooks_and_files_exist(notebook):
    text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    for path in re.findall(r"`((?:params|notebooks|docs)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path
    stems = {path.stem for path in NOTEBOOKS}
    for target in re.findall(r"`make (\d\d\w?_\w+)`", text):
        assert target in stems
