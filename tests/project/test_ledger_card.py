"""The ledger's data card says what the ledger's files hold."""

import re
from collections import Counter, defaultdict

from notebook_files import ROOT
from pyarrow import parquet

from contamination.study import store

CARD = (ROOT / "docs/ledger_card.md").read_text()


def listed(name):
    """The rows of a marked table of the card, as lists of cells."""
    part = re.search(rf"<!-- {name}:.*?-->\n(.*?)<!-- end of {name} -->", CARD, re.S)[1]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in part.splitlines()[2:]]


def in_files():
    """Columns, and totals of parts, rows and bytes, for each ledger and table."""
    columns, totals = defaultdict(set), defaultdict(Counter)
    for path in store.FOLDER.glob("*.parquet"):
        ledger, table = re.fullmatch(r"([a-z]+)_?\d+_([a-z]+)", path.stem).groups()
        content = parquet.ParquetFile(path)
        columns[ledger, table].add(tuple(content.schema_arrow.names))
        figures = {"parts": 1, "rows": content.metadata.num_rows, "bytes": path.stat().st_size}
        totals[ledger, table].update(figures)
    return columns, totals


COLUMNS, TOTALS = in_files()


def test_the_card_lists_the_columns_of_every_file():
    said = {}
    for ledgers, table, columns in listed("columns"):
        for ledger in re.findall(r"`(\w+)`", ledgers):
            said[ledger, table] = {tuple(re.findall(r"`(\w+)`", columns))}
    assert said == COLUMNS


def test_the_card_says_what_each_column_means():
    meanings = re.search(r"\| Column \| Meaning \|\n.*?\n\n", CARD, re.S)[0]
    firsts = re.findall(r"^\|([^|]+)\|", meanings, re.M)
    explained = [name for first in firsts for name in re.findall(r"`(\w+)`", first)]
    assert len(explained) == len(set(explained))
    assert set(explained) == {name for kinds in COLUMNS.values() for one in kinds for name in one}


def test_the_card_counts_parts_rows_and_kilobytes():
    said = {
        (ledger.strip("`"), table): [int(parts), int(rows), int(kilobytes)]
        for ledger, _, parts, table, rows, kilobytes in listed("contents")
    }
    assert said == {
        name: [total["parts"], total["rows"], round(total["bytes"] / 1000)]
        for name, total in TOTALS.items()
    }
