"""CONTRIBUTING's table of folders is right: which there are, and which may import which."""

import re

from imported_files import folder_of, folders_imported
from notebook_files import ROOT

from contamination.core.syntax import PACKAGE, imported_files

HEADING = "## The folders of the package"
PLAN = (ROOT / "CONTRIBUTING.md").read_text().split(HEADING)[1].split("\n## ")[0]
# The lowest layer last, as the table reads.
LAYERS = [re.findall(r"`(\w+)(?:/|\.py)`", line) for line in PLAN.splitlines() if line[:2] == "| "]
LAYERS = [folders for folders in LAYERS if folders][::-1]
LAYER_OF = {folder: number for number, folders in enumerate(LAYERS) for folder in folders}


def test_the_plan_names_every_folder_once():
    folders = {folder_of(file) for file in PACKAGE.rglob("*.py")} - {"__init__"}
    named = [folder for folders in LAYERS for folder in folders]
    assert sorted(named) == sorted(folders)


def test_imports_go_down():
    """A folder imports lower layers alone; so no method imports another."""
    up = []
    for file in PACKAGE.rglob("*.py"):
        folder = folder_of(file)
        for other in folders_imported(file):
            if LAYER_OF[other] >= LAYER_OF[folder]:
                up.append(f"{file.relative_to(PACKAGE)} imports {other}")
    assert up == []


def test_no_module_imports_itself_by_way_of_others():
    """Whatever is imported first, nothing of it is half there."""
    reached = {file: set(imported_files(file)) for file in PACKAGE.rglob("*.py")}
    for _ in range(len(reached)):
        before = sum(map(len, reached.values()))
        for found in reached.values():
            found |= set().union(*(reached[file] for file in found))
        if sum(map(len, reached.values())) == before:
            break
    circles = sorted(file.name for file, found in reached.items() if file in found)
    assert circles == []
