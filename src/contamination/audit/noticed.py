"""What an audit of so many rows would have noticed: shares of rows, and how often they were seen.

By simulation on the pretraining study's models (``scripts/audit_simulation.py``): there we know of
every row how often a model saw it. The models are small, and see rows among much other text.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from contamination.core import storage
from contamination.core.tables import listed

PATH = Path(__file__).with_suffix(".csv")
_TIMES = {16: "sixteen times", 4: "four times", 1: "once"}


def load() -> pd.DataFrame:
    """The table that the package carries."""
    return storage.read_csv(PATH)


def of_sizes(table: pd.DataFrame, method: str, n: int, n_comparison: int) -> pd.DataFrame:
    """The rows of a method for the largest tabulated sizes that are not above these.

    Empty where the study has no such method or the rows are fewer than any that was simulated.
    """
    found = table[table["method"].eq(method) & table["n"].le(n)]
    found = found[found["n_comparison"].le(n_comparison)]
    return found[found["n"].eq(found["n"].max())]


# Of docs/audit_simulation.csv, which tests hold this sentence to.
WRONG = (
    "In simulated audits of models that had seen no row, this rule said shown in 4.6 % of them on "
    "average, and in at most 6.6 % in any setting (docs/audit.md). What it cannot see is a "
    "difference between the two files in topic, style or date that no check of the text finds."
)
INTRODUCTION = (
    "So often did audits of this size notice a third of the rows, in our study of small models "
    "(1.4 and 29 million parameters) that saw them verbatim among much other text:"
)


def describe(table: pd.DataFrame, method: str, n: int, n_comparison: int) -> str:
    """One sentence on what an audit of this size notices; it reassures nobody."""
    of_size = of_sizes(table, method, n, n_comparison)
    if of_size.empty:
        return f"{method}: not measured for so few rows."
    third = of_size[(of_size["share"] - 1 / 3).abs().lt(0.01)]
    said = []
    for copies, words in _TIMES.items():
        low, high = third.loc[third["copies"].eq(copies), "noticed"].agg(["min", "max"]) * 100
        ends = f"{low:.0f} %" if f"{low:.0f}" == f"{high:.0f}" else f"{low:.0f} to {high:.0f} %"
        said.append(f"{words} in {ends}")
    sizes = f"{of_size['n'].iloc[0]} rows and {of_size['n_comparison'].iloc[0]} comparison rows"
    return f"{method}, {sizes}: seen {listed(said)} of audits."
