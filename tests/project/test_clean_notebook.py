"""Git's view of a notebook: a run is no change, an edit is one."""

import json

import nbformat
from nbformat.v4 import new_output
from notebook_files import EVERY_NOTEBOOK, NOTEBOOKS, script


def test_stored_notebooks_are_as_the_filter_leaves_them():
    clean = script("clean_notebook").clean
    for path in EVERY_NOTEBOOK:
        assert clean(path.read_text()) == path.read_text(), path.name
        cells = json.loads(path.read_text())["cells"]
        assert len({cell["id"] for cell in cells}) == len(cells), path.name


def test_what_a_run_adds_is_left_out_and_what_was_typed_stays():
    clean, stored = script("clean_notebook").clean, NOTEBOOKS[0].read_text()
    notebook = nbformat.reads(stored, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        cell.execution_count = number
        cell.outputs = [new_output("stream", name="stdout", text="Zürich\n")]
        cell.metadata.execution = {"iopub.status.busy": "2026-01-01T00:00:00Z"}
        cell.metadata.collapsed = True
        cell.metadata.get("jupyter", {}).pop("outputs_hidden", None)  # JupyterLab shows them
    notebook.metadata.language_info.version = "3.11.7"
    notebook.metadata.kernelspec.display_name = "Another"
    assert nbformat.writes(notebook) != stored
    assert clean(nbformat.writes(notebook)) == stored
    code[0].source += "\nnote: str = 'Zürich'  # of the reader"
    edited = clean(nbformat.writes(notebook))
    assert edited.count("Zürich") == 1
    assert nbformat.reads(edited, as_version=4).cells[1].metadata.tags == ["parameters"]
