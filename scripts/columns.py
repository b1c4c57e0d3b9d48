"""Write docs/columns.md, what each column of each table means, from docs/columns.csv.

    python scripts/columns.py        # make reference calls it

docs/columns.csv has one sentence for each name of a column; where a name means something else in
some tables, a further line names these tables. Needs the standard library.
"""

from __future__ import annotations

import csv
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEANINGS, PAGE = ROOT / "docs/columns.csv", ROOT / "docs/columns.md"
REFERENCE = ROOT / "outputs/reference/demo"
# Answers of a real model that notebook 12 shows without asking it again.
STORED, SHOWN_BY = ROOT / "src/contamination/study/real_model", "12_real_model"
HEAD = """# What each column means

Every table of a demo run, with one sentence for each of its columns. The tables are in
`outputs/<profile>/tables/`; those of our own run are in `outputs/reference/demo/tables/`. A demo
run does not write the tables `pretrained_...` of notebook 12: it shows the stored answers of a
real model, whose columns are listed too. Tables that only other profiles write are not listed
here.

Four conventions hold everywhere. A column whose name ends in `_pct` is in percent, or in
percentage points if it is a difference. Shares, areas (AUC) and p-values lie between 0 and 1.
Log-probabilities are in nats. An empty cell means that the question does not apply or was not
asked. The words of `verdict` are explained in [How to read a verdict](verdicts.md).

The sentences come from [columns.csv](columns.csv), which a program can read.
"""


def meanings() -> dict[tuple[str, str], str]:
    """The sentence by column and table; the table is "" where it holds for all other tables."""
    with MEANINGS.open(newline="", encoding="utf-8") as stream:
        return {
            (row["column"], table): row["meaning"]
            for row in csv.DictReader(stream)
            for table in row["tables"].split() or [""]
        }


def headers() -> dict[str, dict[str, list[str]]]:
    """Notebook, in their order, to its tables and their columns."""
    with (REFERENCE / "tables.csv").open(newline="") as stream:
        notebook_of = {row["table"]: row["notebook"] for row in csv.DictReader(stream)}
    paths = [*(REFERENCE / "tables").glob("*.csv"), *STORED.glob("*.csv")]
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(paths, key=lambda path: path.stem):
        with path.open(newline="", encoding="utf-8") as stream:
            columns = next(csv.reader(stream))
        found.setdefault(notebook_of.get(path.stem, SHOWN_BY), {})[path.stem] = columns
    return dict(sorted(found.items()))


def explained(table: str, columns: list[str], known: dict[tuple[str, str], str]) -> str:
    """The rows of one table's section. KeyError for a column without a sentence."""
    rows = []
    for column in columns:
        meaning = known.get((column, table)) or known[column, ""]
        rows.append(f"| `{column}` | {meaning} |")
    return "\n".join(["| Column | Meaning |", "| --- | --- |", *rows])


def page() -> str:
    """The whole page; tables of one notebook with the same rows share a section."""
    known, parts = meanings(), [HEAD]
    for notebook, tables in headers().items():
        parts.append(f"## [{notebook}](../notebooks/{notebook}.ipynb)\n")
        rows = {table: explained(table, columns, known) for table, columns in tables.items()}
        for of_tables, group in groupby(rows, key=rows.get):
            names = ", ".join(f"`{name}`" for name in group)
            parts.append(f"### {names}\n\n{of_tables}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
