"""CONTRIBUTING's plan of the house is the house: its rooms, and who may import whom."""

import re

from imported_files import room_of, rooms_imported
from notebook_files import ROOT

from contamination.core.syntax import PACKAGE, imported_files

PLAN = (ROOT / "CONTRIBUTING.md").read_text().split("## The house")[1].split("\n## ")[0]
# Lowest floor last, as the table reads.
FLOORS = [re.findall(r"`(\w+)(?:/|\.py)`", line) for line in PLAN.splitlines() if line[:2] == "| "]
FLOORS = [rooms for rooms in FLOORS if rooms][::-1]
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def test_the_plan_names_every_room_once():
    rooms = {room_of(file) for file in PACKAGE.rglob("*.py")} - {"__init__"}
    named = [room for rooms in FLOORS for room in rooms]
    assert sorted(named) == sorted(rooms)


def test_imports_go_down():
    """A room imports lower floors alone; so no method imports another."""
    up = []
    for file in PACKAGE.rglob("*.py"):
        room = room_of(file)
        for other in rooms_imported(file):
            if FLOOR_OF[other] >= FLOOR_OF[room]:
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
