"""Small notebooks that tests build, and the real ones."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import json
import linecache
import re
from copy import deepcopy
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType

import nbformat
import pandas as pd
from IPython.core.interactiveshell import InteractiveShell
from matplotlib import pyplot
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from pytest import MonkeyPatch
from traitlets.config import Config
from verdict_words import check_table

from contamination.core import run, storage, verdicts

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/contamination"
with (ROOT / "notebooks/contents.csv").open(newline="") as _stream:
    CONTENTS = list(csv.DictReader(_stream))  # the one list of the notebooks
NOTEBOOKS = [ROOT / f"notebooks/{row['notebook']}.ipynb" for row in CONTENTS]
EXERCISES = sorted(ROOT.glob("notebooks/exercises/*.ipynb"))
SOLUTIONS = sorted(ROOT.glob("notebooks/solutions/*.ipynb"))
# Claims whose verdicts a notebook displays and writes to no table.
DISPLAYED = {"dcq_dial", "dcq_positions", "replication_methods", "replication_placebos"}
EVERY_NOTEBOOK = [*NOTEBOOKS, *EXERCISES, *SOLUTIONS]


def script(name: str) -> ModuleType:
    """A file of scripts/, imported."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def locked_versions() -> dict[str, str]:
    """Name to version of what requirements.txt names for every platform."""
    text = (ROOT / "requirements.txt").read_text()
    return dict(re.findall(r"^([\w.-]+)==(\S+) \\$", text, re.M))


def has_locked_versions() -> bool:
    """Whether what is installed here is what requirements.txt names."""
    installed = {one.name.lower().replace("_", "-"): one.version for one in distributions()}
    return locked_versions().items() <= installed.items()


def build(path: Path, parameters: str, *cells: str) -> Path:
    """Write a notebook with a parameters cell; cells that start with # are headings."""
    first = new_code_cell(parameters, metadata={"tags": ["parameters"]})
    rest = [
        new_markdown_cell(cell) if cell.startswith("#") else new_code_cell(cell) for cell in cells
    ]
    notebook = new_notebook(cells=[first, *rest])
    notebook.metadata.kernelspec = {"name": "elsewhere", "display_name": "another kernel"}
    nbformat.write(notebook, path)
    return path


def edit_parameters(path: Path, values: dict) -> None:
    """Other values in the parameters cell itself, as someone would type them in JupyterLab."""
    edited = nbformat.read(path, as_version=4)
    cell = next(c for c in edited.cells if "parameters" in c.metadata.get("tags", []))
    for key, value in values.items():
        line = rf"^({key}: \S+ =) .*?(?=  #)"
        cell.source = re.sub(
            line, lambda found, v=value: f"{found[1]} {v!r}", cell.source, flags=re.M
        )
    nbformat.write(edited, path)


def answers_of(notebook: nbformat.NotebookNode) -> dict[int, str]:
    """Folded answers to the exercises: what stands as code at the head of each, by number."""
    text = "\n".join(c.source for c in notebook.cells if "<summary>Answers" in c.source)
    return {int(n): code for n, code in re.findall(r"^(\d)\. `([^`]+)`", text, re.M)}


def filled_in(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook whose checks are given the folded answers instead of the student's."""
    filled, answers = deepcopy(notebook), answers_of(notebook)
    for cell in filled.cells:
        if cell.cell_type == "code":
            cell.source = re.sub(
                r"\bcheck\((\d), answer_\1\b",
                lambda found: f"check({found[1]}, ({answers.get(int(found[1]), '...')})",
                cell.source,
            )
    return filled


def assert_runs(path: Path, outputs: Path, tmp_path: Path) -> None:
    """It runs with the folded answers filled in, and its checks call them right."""
    notebook = nbformat.read(path, as_version=4)
    solved = tmp_path / path.name
    nbformat.write(filled_in(notebook), solved)
    target = run.run_notebook(solved, ROOT / "params/smoke" / f"{path.stem}.yaml", outputs)
    executed = nbformat.read(target, as_version=4)
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert all(cell.metadata.papermill.status == "completed" for cell in code)
    assert all(out.output_type != "error" for cell in code for out in cell.get("outputs", []))
    noise = [o.text for c in code for o in c.outputs if o.get("name") == "stderr"]
    assert not noise
    shown = [output for cell in code for output in cell.outputs if "data" in output]
    assert not any('class="dataframe"' in out.data.get("text/html", "") for out in shown)
    figures = [out.metadata.get("image/png", {}) for out in shown if "image/png" in out.data]
    assert all(figure.get("alt") for figure in figures)
    assert_verdicts(outputs / "manifests" / f"{path.stem}.json", outputs)
    printed = "".join(o.text for c in code for o in c.outputs if o.get("name") == "stdout")
    for number in answers_of(notebook):
        assert f"Exercise {number}: right." in printed


def assert_verdicts(manifest: Path, outputs: Path) -> None:
    """The tables of a notebook answer registered claims, and no claim is left unanswered."""
    for name in json.loads(manifest.read_text())["outputs"]:
        if not name.startswith("tables/"):
            continue
        table, stem = pd.read_csv(outputs / name), Path(name).stem
        check_table(table, stem)
        if stem in verdicts.CLAIMS and stem not in DISPLAYED:
            assert {"verdict", "holds"} & {*table}, f"{stem} has a claim, and nothing answers it"


def run_here(path: Path, values: dict) -> None:
    """Run a notebook's code in this process; ``values`` stand in for those of its parameters cell.

    A further kernel for each would take longer than the work itself.
    """
    pyplot.switch_backend("agg")
    # A display that a notebook updates later needs a shell; without it, display prints.
    InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    names = {"__name__": "__main__"}
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells, start=1):
        if cell.cell_type == "code":
            place = f"{path.name}, cell {number}"
            # As a kernel does, so that a function's source can be read.
            linecache.cache[place] = (0, None, cell.source.splitlines(keepends=True), place)
            exec(compile(cell.source, place, "exec"), names)  # noqa: S102
        if "parameters" in cell.metadata.get("tags", []):
            names |= {name: value for name, value in values.items() if name in names}
    pyplot.close("all")


def printed_by(path: Path, values: dict | None = None) -> str:
    """What a notebook of exercises or solutions prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        run_here(path, values or {})
    return printed.getvalue()


def assert_same_again(path: Path, outputs: Path, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """Its code, run again from the caches of the first run, writes the same tables."""
    values = run.check(path, ROOT / "params/smoke" / f"{path.stem}.yaml")
    monkeypatch.setenv(storage.OUTPUTS_VARIABLE, str(outputs))
    monkeypatch.setenv(storage.STAGING_VARIABLE, str(tmp_path))
    monkeypatch.chdir(path.parent)
    run_here(path, values)
    first = json.loads((outputs / "manifests" / f"{path.stem}.json").read_text())["outputs"]
    tables = [name for name in first if name.startswith("tables/")]
    assert tables == [f"tables/{table.name}" for table in sorted(tmp_path.glob("tables/*.csv"))]
    for name in tables:
        assert (tmp_path / name).read_bytes() == (outputs / name).read_bytes(), name
