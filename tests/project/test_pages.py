"""Pages name notebooks, files and commands that exist."""

import json
import re
import shlex

import pytest
from notebook_files import NOTEBOOKS, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def numbered(text):
    """Tables and figures that a text names: "Tables 1 to 3" are three.

    >>> sorted(numbered("Tables 1 to 3, Figure 4"))
    [('Figure', 4), ('Table', 1), ('Table', 2), ('Table', 3)]
    """
    found = set()
    for kind, numbers in re.findall(r"\b(Table|Figure)s? (\d[a-d]?(?:(?:,| and| to) \d)*)", text):
        for first, last in re.findall(r"(\d)(?:[a-d]?(?: to (\d)))?", numbers):
            found |= {(kind, n) for n in range(int(first), int(last or first) + 1)}
    return found


def test_the_map_names_what_the_notebook_has():
    page = (ROOT / "docs/notebooks.md").read_text().split("## What you need")[0]
    rows = [
        line for line in page.splitlines() if line.startswith("|") and "](../notebooks/" in line
    ]
    paths = [ROOT / re.search(r"notebooks/\w+\.ipynb", row)[0] for row in rows]
    assert paths == NOTEBOOKS
    for row, path in zip(rows, paths, strict=True):
        notebook = json.loads(path.read_text())
        text = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
        assert numbered(row) <= numbered(text), row


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_paths_in_code_exist(page):
    text = page.read_text()
    for path in re.findall(r"`((?:params|notebooks|docs|scripts|benchmarks)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_make_targets_exist(page):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    targets += [path.stem for path in NOTEBOOKS]
    for command in re.findall(r"(?:`|^)make ([^`\n#]+)", page.read_text(), re.M):
        for word in shlex.split(command):
            assert "=" in word or word.startswith(("-", "$")) or word in targets, command
