"""docs/not_reproduced.md names every printed number without a recomputed one, and real files."""

import re
from itertools import product

import pandas as pd
import pytest
from notebook_files import NOTEBOOKS, ROOT
from released_tables import recomputed_cells

from contamination.audit.settings import Model
from contamination.cases import pairs
from contamination.cases.settings import Pairs
from contamination.data.published import compare
from contamination.dice import published_tables
from contamination.dice.mixtures import SEEN, UNSEEN

PAGE = ROOT / "docs/not_reproduced.md"
TEXT = PAGE.read_text()
COLUMNS = ["printed", "missing", "cannot", "why", "instead"]


def page_rows():
    """The one table of the page, without the rows that name a paper; these fill ``paper``."""
    lines = [line for line in TEXT.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert all(len(row) == len(COLUMNS) for row in rows)
    table = pd.DataFrame(rows, columns=COLUMNS)
    is_paper = table["missing"].eq("")
    table["paper"] = table["printed"].where(is_paper).str.extract(r"^\*\*(.+?)\*\*")[0].ffill()
    return table[~is_paper]


ROWS = page_rows()


def named(text):
    """Tables and figures that a text names, panels with their letter.

    >>> sorted(named("Tables 1 and 6, columns; Figure 6(b); Figure 2 / Sec 5.1 text"))
    ['Figure 2', 'Figure 6(b)', 'Table 1', 'Table 6']
    """
    number = r"\d+(?:\([a-z]\))?"
    found = re.findall(rf"\b(Table|Figure)s? ({number}(?:(?:, | and ){number})*)", text)
    return {f"{kind} {one}" for kind, numbers in found for one in re.findall(number, numbers)}


@pytest.fixture(scope="module")
def cells():
    """Every printed cell beside what the code recomputes, with the authors' files too."""
    printed = published_tables.printed_accuracy()
    halves = product(published_tables.GENERATIONS, (SEEN, UNSEEN))
    rescored = [
        {"row": training, "dataset": half}
        | {"accuracy_released_rules_pct": float(printed[training, half])}
        for training, half in halves
    ]
    of_dice = published_tables.recomputed_cells(pd.DataFrame(rescored))
    return compare.published_vs_recomputed(pd.concat([recomputed_cells(), of_dice]))


def missing_from_page(cells, rows):
    """Paper and table of cells that are not recomputed, where no row of that paper names it."""
    papers = cells.loc[cells["matches"].isna(), ["paper", "table"]].drop_duplicates()
    return [
        (paper, table)
        for paper, table in papers.itertuples(index=False)
        if not any(
            named(table) <= named(printed)
            for printed in rows.loc[rows["paper"].str.startswith(paper), "printed"]
        )
    ]


def test_every_table_that_is_not_wholly_recomputed_has_a_row(cells):
    assert missing_from_page(cells, ROWS) == []
    without = ROWS[~ROWS["printed"].str.startswith("Tables 4 and 8")]
    assert missing_from_page(cells, without) == [
        ("Min-k% Prob", "Table 4"),
        ("Min-k% Prob", "Table 8"),
    ]


def test_the_counts_of_each_paper_add_up_to_what_is_not_recomputed(cells):
    counts = ROWS["missing"].str.extract(r"^(\d+) of (\d+)$").astype(float)
    assert (counts.notna().all(axis=1) | ROWS["missing"].eq("–")).all()
    assert (counts[0].dropna() <= counts[1].dropna()).all()
    of_page = counts[0].groupby(ROWS["paper"]).sum()
    of_code = cells["matches"].isna().groupby(cells["paper"]).sum()
    assert len(of_page) == len(of_code) == 4
    for paper, n in of_page.items():
        assert n == next(of_code[name] for name in of_code.index if paper.startswith(name)), paper
    n_missing, n_differing = cells["matches"].isna().sum(), cells["matches"].eq(False).sum()
    assert f"print {len(cells)} numbers" in TEXT and f"recompute, {n_missing} in all" in TEXT
    assert f"none of the {len(cells)} numbers" in TEXT and n_differing == 5
    assert "Five recomputed numbers differ" in TEXT


def test_settings_and_tables_that_the_page_names_are_in_the_code():
    files = [*NOTEBOOKS, *(ROOT / "src/contamination").glob("*/settings.py")]
    files += (ROOT / "params/full").glob("*.csv")
    code = "\n".join(path.read_text() for path in files)
    for name in re.findall(r"`([\w.]+?)(?:: [^`]+)?`", TEXT):
        stem = name.removesuffix(".csv").removeprefix("dice_own_")
        assert re.search(rf"\b{stem}\b", code), name


@pytest.mark.mirror
def test_of_the_released_problems_two_alone_cannot_be_scored(monkeypatch):
    monkeypatch.setattr(pairs, "check_model", lambda name: None)  # no model is loaded
    checkpoints = {"clean": ["one", "two"], "GSM-i x5": ["three", "four"]}
    kept = pairs.check_pairs(Pairs(model=Model(names=["base"]), checkpoints=checkpoints)).sets
    assert not kept["n_left_out"].any()
    kept = kept.set_index("benchmark")["n"]
    # Totals as docs/datasets.md has them, and DICE's 657.
    totals = {"TabMWP": 1000, "ASDiv": 2215, "MAWPS": 2065, "GSM-hard": 1319, "GSM-ii": 657}
    assert kept[list(totals)].to_dict() == totals
    assert f"{kept['GSM-i']} of 657 problems of GSM-i" in TEXT
