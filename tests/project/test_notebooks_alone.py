"""Notebooks that read no other's tables: they run, and mean the same however they are run.

A file of their own, since a file is one process's when tests run in several.
"""

import shutil
import subprocess
import sys

import papermill
import pytest
import yaml
from notebook_files import ALONE, ROOT, assert_runs, edit_parameters

from contamination.core import storage

PLAIN = "06_case_books"  # run again without the runner, in kernels of its own
pytestmark = pytest.mark.usefixtures("one_lab_for_all")


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.stem)
def test_notebook_runs(path, smoke_outputs, tmp_path):
    assert_runs(path, smoke_outputs, tmp_path)


def test_plain_papermill_and_jupyter_give_the_same_tables(tmp_path, monkeypatch, smoke_outputs):
    """Without the runner, results are the same and go to the interactive folder."""
    source = tmp_path / "checkout" / "notebooks" / f"{PLAIN}.ipynb"
    edited = tmp_path / "edited" / "notebooks" / f"{PLAIN}.ipynb"
    for path in (source, edited):
        path.parent.mkdir(parents=True)
        shutil.copy(ROOT / "notebooks" / f"{PLAIN}.ipynb", path)
    parameters = yaml.safe_load((ROOT / f"params/smoke/{PLAIN}.yaml").read_text())
    # "Run all" has no parameters.
    edit_parameters(edited, parameters)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(storage.OUTPUTS_VARIABLE, str(tmp_path / "jupyter"))
    with subprocess.Popen([sys.executable, "-m", "jupyter", "execute", str(edited)]) as jupyter:
        monkeypatch.setenv(storage.OUTPUTS_VARIABLE, str(tmp_path / "papermill"))
        papermill.execute_notebook(
            source, tmp_path / "out.ipynb", parameters=parameters, progress_bar=False
        )
    assert jupyter.returncode == 0

    expected = {p.name: p.read_bytes() for p in (smoke_outputs / "tables").glob("books*.csv")}
    assert expected
    for folder in ("papermill", "jupyter"):
        found = {p.name: p.read_bytes() for p in (tmp_path / folder / "tables").glob("*.csv")}
        assert found == expected
