"""Results stand in tables and computed sentences; prose holds settings and printed numbers."""

import json
import re

import pytest
from notebook_files import EVERY_NOTEBOOK

# Levels of tests and intervals, the smallest effect of claims, tolerances of exercises.
ANYWHERE = {"0.05", "0.01", "0.02", "0.10"}
# Settings that a sentence names, worked examples, and what a paper prints or a reader computes.
HERE = {
    "00": {"0.82"},
    "02b": {"100 of 1,000"},
    "03": {"0.00001"},
    "04b": {"0.72", "0.67"},
    "08": {"10 of 188", "188 of about 1000", "103 of 1000", "1.15", "0.86", "0.87"},
}
NUMBER = re.compile(r"(?<![\w.])\d+\.\d{2,}\b|\b\d+ of (?:the |about )?\d[\d,]*\b")


def results_in(text):
    """Decimals of two digits or more and counts of a total, outside code, links and answers.

    >>> results_in("AUC 0.71; `0.62`: a share; [page](https://x.org/1.23); 7 of the 12 ties")
    ['0.71', '7 of the 12']
    """
    text = re.sub(r"`[^`\n]*`|\]\([^)]*\)|(?:arXiv|doi):\S+", "", text)
    return NUMBER.findall(text)


@pytest.mark.parametrize("path", EVERY_NOTEBOOK, ids=lambda path: path.stem)
def test_static_prose_holds_no_result(path):
    cells = json.loads(path.read_text())["cells"]
    prose = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    found = [number for text in prose for number in results_in(text)]
    allowed = ANYWHERE | HERE.get(path.stem.partition("_")[0], set())
    assert [number for number in found if number not in allowed] == []
