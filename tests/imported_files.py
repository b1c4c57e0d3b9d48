"""Which files of the package a piece of code imports."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from pathlib import Path

from notebook_files import ROOT

PACKAGE = ROOT / "src/contamination"


def imported(code: str) -> set[Path]:
    """Files of the package that some code imports itself."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("contamination"):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    places = [PACKAGE.parent.joinpath(*name.split(".")) for name in names]
    files = [file for at in places for file in (at.with_suffix(".py"), at / "__init__.py")]
    return {file for file in files if file.is_relative_to(PACKAGE) and file.is_file()}


def imported_by_notebook(path: Path, left_out: Sequence[str] = ()) -> set[Path]:
    """Files that a notebook imports, or what it imports does, without some rooms and their own."""
    cells = json.loads(path.read_text())["cells"]
    waiting = {f for c in cells if c["cell_type"] == "code" for f in imported("".join(c["source"]))}
    known: set[Path] = set()
    while waiting:
        known |= waiting
        inside = [file for file in waiting if room_of(file) not in left_out]
        waiting = {found for file in inside for found in imported(file.read_text())} - known
    return {file for file in known if room_of(file) not in left_out}


def room_of(file: Path) -> str:
    """The folder of a file, or its own name where it lies beside the folders."""
    place = file.relative_to(PACKAGE).parts
    return place[0] if len(place) > 1 else file.stem
