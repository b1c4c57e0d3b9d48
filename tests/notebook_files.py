"""Small notebooks that tests build, and the real ones."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(ROOT.glob("notebooks/[0-9][0-9]_*.ipynb"))


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
