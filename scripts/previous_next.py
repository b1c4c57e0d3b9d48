"""Write into each notebook which one comes before, which after, and how to run it from a shell.

    python scripts/previous_next.py        # after notebooks/contents.csv has changed

The lines are a Markdown cell of their own before the last cell. Where a cell has them already,
they are renewed in it. Needs the standard library.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import clean_notebook

ROOT = Path(__file__).resolve().parents[1]
CONTENTS = ROOT / "notebooks/contents.csv"
CELL = "previous-next"
BLOCK = re.compile(
    r"^(?:Previous: |Next: ).*\n\nTo run this notebook in a shell: `papermill .*", re.M
)


def lines_by_notebook(contents: Path = CONTENTS) -> dict[str, str]:
    """The lines of each notebook, in the order of the list of notebooks."""
    with contents.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    names = [row["notebook"] for row in rows]
    befores, afters = ["", *names[:-1]], [*names[1:], ""]
    return {
        row["notebook"]: lines_of(before, row["notebook"], after, row["after"].split())
        for before, row, after in zip(befores, rows, afters, strict=True)
    }


def lines_of(before: str, name: str, after: str, needed: list[str]) -> str:
    """A line of links and the command; the first and last notebook have one neighbour, other "".

    Several ``needed`` notebooks are those whose tables this one reads; a single one is the data
    preparation, whose models every notebook makes by itself if they are not there.
    """
    named = {"Previous": before, "Next": after}
    links = " · ".join(f"{way}: [{one}]({one}.ipynb)" for way, one in named.items() if one)
    command = f"papermill notebooks/{name}.ipynb out.ipynb -f params/demo/{name}.yaml"
    said = f"To run this notebook in a shell: `{command}`."
    if len(needed) > 1:
        listed = ", ".join(f"`{one}`" for one in needed)
        said += f" It reads tables of other notebooks, so run these first: {listed}."
    return f"{links}\n\n{said}"


def with_lines(notebook: dict, lines: str) -> dict:
    """The notebook with these lines, where it has such lines or else before its last cell."""
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and BLOCK.search(text):
            cell["source"] = BLOCK.sub(lambda _: lines, text).splitlines(keepends=True)
            return notebook
    source = lines.splitlines(keepends=True)
    own = {"cell_type": "markdown", "id": CELL, "metadata": {}, "source": source}
    notebook["cells"].insert(-1, own)
    return notebook


def main() -> None:
    for name, lines in lines_by_notebook().items():
        path = ROOT / f"notebooks/{name}.ipynb"
        notebook = with_lines(json.loads(path.read_text(encoding="utf-8")), lines)
        path.write_text(clean_notebook.clean(json.dumps(notebook)), encoding="utf-8")


if __name__ == "__main__":
    main()
