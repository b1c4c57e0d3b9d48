"""Every column of every table has a sentence in docs/columns.csv, and no sentence is left over."""

import csv

from notebook_files import CONTENTS, ROOT

REFERENCE = ROOT / "outputs/reference/demo"
# Answers of a real model that notebook 12 shows without asking it again.
STORED, SHOWN_BY = ROOT / "src/contamination/study/real_model", "12_real_model"


def meanings() -> dict[tuple[str, str], str]:
    """The sentence by column and table; the table is "" where it holds for all other tables."""
    with (ROOT / "docs/columns.csv").open(newline="", encoding="utf-8") as stream:
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


KNOWN, HEADERS = meanings(), headers()
USED = {
    (column, table) for of in HEADERS.values() for table, names in of.items() for column in names
}


def test_every_column_of_every_reference_table_has_a_sentence():
    stored = {path.stem for path in (REFERENCE / "tables").glob("*.csv")}
    assert stored <= {table for _, table in USED}
    without = [one for one in sorted(USED) if one not in KNOWN and (one[0], "") not in KNOWN]
    assert without == []


def test_no_sentence_is_unused():
    own = {one for one in KNOWN if one[1]}
    assert sorted(own - USED) == []
    general = {column for column, table in KNOWN if not table}
    assert sorted(general - {column for column, table in USED - own}) == []


def test_tables_stand_under_their_notebooks():
    assert set(HEADERS) <= {row["notebook"] for row in CONTENTS}
