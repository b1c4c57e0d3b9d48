"""How many files a reader opens to follow how a table is made, and that they become no more."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from notebook_files import ROOT, script

BOUNDS = Path(__file__).with_name("reach.csv")
HINT = "python scripts/reach.py > tests/project/reach.csv takes today's figures as the new bound"


def test_no_table_reaches_more_of_the_package_than_before(capsys):
    with BOUNDS.open(newline="") as stream:
        bounds = {(row["notebook"], row["table"]): row for row in csv.DictReader(stream)}
    found = [
        dict(zip(script("reach").COLUMNS, row, strict=True)) for row in script("reach").reaches()
    ]
    with capsys.disabled():
        largest = max(found, key=lambda row: row["files"])
        print(f"\n{len(found)} tables; {largest['table']} reaches {largest['files']} files")
    assert {(row["notebook"], row["table"]) for row in found} == set(bounds), HINT
    for row in found:
        bound = bounds[row["notebook"], row["table"]]
        for column in ("files", "files_outside"):
            assert row[column] <= int(bound[column]), f"{row}: {HINT}"


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A package of two rooms and a notebook whose tables reach one file and two."""
    reach = script("reach")
    package = tmp_path / "contamination"
    files = {
        "core/tables.py": "LIMIT = 3\n\n\ndef show(table):\n    return table[:LIMIT]\n",
        "dcq/quiz.py": (
            "from contamination.core import tables\n\n\n"
            "class Quiz:\n"
            "    n = 1\n\n"
            "    def ask(self):\n        return tables.show([self.n])\n\n"
            "    def unused(self):\n        return 0\n\n\n"
            "def alone():\n    return 1\n"
        ),
    }
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    monkeypatch.setattr(reach.syntax, "PACKAGE", package)
    return reach


def reached(reach, code):
    body = reach.ast.parse(code).body
    (start,) = (number for number, node in enumerate(body) for _ in reach._written(node))
    reach._TREES.append(body)
    places = reach._reached_from(body, [start])
    return {f"{place.file.name} {place.name}" for place in places}


IMPORTS = "from contamination.dcq import quiz\nfrom contamination.dcq.quiz import Quiz, alone\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    {
        "table = alone()\no.write_table('t', table)": {"quiz.py alone"},
        "table = quiz.alone()\no.write_table('t', table)": {"quiz.py alone"},
        "table = Quiz().ask()\no.write_table('t', table)": {
            *("quiz.py Quiz", "quiz.py Quiz.ask", "tables.py show", "tables.py LIMIT")
        },
        # What a later assignment replaces is not reached, what is added to a list is.
        "table = Quiz().ask()\ntable = alone()\no.write_table('t', table)": {"quiz.py alone"},
        "rows = []\nrows.append(alone())\no.write_table('t', rows)": {"quiz.py alone"},
        "other = Quiz()\no.write_table('t', 1)": set(),
    }.items(),
)
def test_a_table_reaches_what_its_statements_depend_on(small, code, expected):
    assert reached(small, IMPORTS + code) == expected


def test_the_script_needs_the_standard_library_alone():
    command = [sys.executable, "-S", "-I", str(ROOT / "scripts/reach.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("notebook,table,files,files_outside,lines\n00_start_here,")
