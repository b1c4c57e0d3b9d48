"""Each notebook leads to the one before and the one after, and says how to run it in a shell."""

import json
import re

import pytest
from notebook_files import CONTENTS, NOTEBOOKS, ROOT, script

previous_next = script("previous_next")
LINES = previous_next.lines_by_notebook()
NAMES = [row["notebook"] for row in CONTENTS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_lines_of_its_place_in_the_contents_once(path):
    cells = json.loads(path.read_text())["cells"]
    markdown = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    found = [lines for text in markdown for lines in previous_next.BLOCK.findall(text)]
    assert found == [LINES[path.stem]], "run python scripts/previous_next.py"
    assert markdown[-1].endswith(LINES[path.stem])


def test_links_go_one_step_in_the_order_of_the_contents():
    steps = {
        name: re.findall(r"(Previous|Next): \[(\w+)\]\((\w+)\.ipynb\)", LINES[name])
        for name in NAMES
    }
    assert steps["00_start_here"] == [("Next", "01_data_prep", "01_data_prep")]
    assert steps[NAMES[-1]] == [("Previous", NAMES[-2], NAMES[-2])]
    assert steps["02_dcq"] == [
        ("Previous", "01_data_prep", "01_data_prep"),
        ("Next", "02b_dcq_lab", "02b_dcq_lab"),
    ]


def test_the_command_names_files_that_exist():
    for name, lines in LINES.items():
        notebook, values = re.search(r"`papermill (\S+) out\.ipynb -f (\S+)`", lines).groups()
        assert (ROOT / notebook).exists() and (ROOT / values).exists()
        assert name in notebook and name in values


def test_lines_are_renewed_where_they_stand_and_touch_no_other_cell():
    new = previous_next.lines_of("a", "b", "c", [])
    old = previous_next.lines_of("a", "b", "d", ["x", "y"])
    closing = {"cell_type": "markdown", "source": [f"Files.\n\n{old}"]}
    code = {"cell_type": "code", "source": ["versions()"]}
    renewed = previous_next.with_lines({"cells": [closing, code]}, new)["cells"]
    assert ["".join(cell["source"]) for cell in renewed] == [f"Files.\n\n{new}", "versions()"]
    added = previous_next.with_lines({"cells": [code]}, new)["cells"]
    assert ["".join(cell["source"]) for cell in added] == [new, "versions()"]
