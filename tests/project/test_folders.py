"""CONTRIBUTING's table of folders is right: which there are, and which may import which."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import find_spec

import pytest
from notebook_files import PACKAGE, ROOT

HEADING = "## The folders of the package"
PLAN = (ROOT / "CONTRIBUTING.md").read_text().split(HEADING)[1].split("\n## ")[0]
# The lowest layer last, as the table reads.
LAYERS = [re.findall(r"`(\w+)(?:/|\.py)`", line) for line in PLAN.splitlines() if line[:2] == "| "]
LAYERS = [folders for folders in LAYERS if folders][::-1]
LAYER_OF = {folder: number for number, folders in enumerate(LAYERS) for folder in folders}


def folder_of(file):
    """The folder of a file, or its own name where it lies beside the folders."""
    place = file.relative_to(PACKAGE).parts
    return place[0] if len(place) > 1 else file.stem


@cache
def imported_files(file):
    """Files of the package that a file imports, at its head or within a function."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    own = [name.split(".")[1:] for name in names if name.startswith("contamination.")]
    places = [PACKAGE.joinpath(*name) for name in own]
    files = [file for at in places for file in (at.with_suffix(".py"), at / "__init__.py")]
    return {file for file in files if file.is_file()}


def test_the_plan_names_every_folder_once():
    folders = {folder_of(file) for file in PACKAGE.rglob("*.py")} - {"__init__"}
    named = [folder for folders in LAYERS for folder in folders]
    assert sorted(named) == sorted(folders)


def test_imports_go_down():
    """A folder imports lower layers alone; so no method imports another."""
    up = []
    for file in PACKAGE.rglob("*.py"):
        folder = folder_of(file)
        for other in {folder_of(found) for found in imported_files(file)} - {folder}:
            if LAYER_OF[other] >= LAYER_OF[folder]:
                up.append(f"{file.relative_to(PACKAGE)} imports {other}")
    assert up == []


def test_no_module_imports_itself_by_way_of_others():
    """Whatever is imported first, nothing of it is half there."""
    imports = {file: imported_files(file) for file in PACKAGE.rglob("*.py")}
    assert sum(map(len, imports.values())) > len(imports)
    TopologicalSorter(imports).prepare()  # CycleError names the modules of a circle


SCRIPTS = [path for folder in ("scripts", "docs") for path in ROOT.glob(f"{folder}/*.py")]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_what_a_script_imports_of_the_package_is_there(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("contamination"):
            module = import_module(node.module)
            for name in (alias.name for alias in node.names):
                assert hasattr(module, name) or find_spec(f"{node.module}.{name}"), name
