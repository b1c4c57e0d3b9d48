"""What an audit of so many rows would have noticed: shares of rows, and how often they were seen.

By simulation on the pretraining study's models (``scripts/audit_simulation.py``): there we know of
every row how often a model saw it. The models are small, and see rows among much other text.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from contamination.audit.prepared import DCQ, MIN_K, RANKING, REPLICATION
from contamination.core import storage
from contamination.core.tables import listed
from contamination.study import baselines, four_methods

PATH = Path(__file__).with_suffix(".csv")
SIZES = ((30, 20), (60, 60), (90, 180))  # suspected rows and comparison rows
SHARES, COPIES = (0.1, 1 / 3, 2 / 3), (16, 4, 1)
MODELS = {"1.4 million parameters": "pretraining", "29 million parameters": "larger"}
# The study's detector of each method; DICE is asked by other rules.
OF_METHOD = {
    DCQ: four_methods.DCQ.name,
    REPLICATION: four_methods.REPLICATION.name,
    RANKING: four_methods.RANKING.name,
    MIN_K: baselines.MIN_K.name,
}
_TIMES = {16: "sixteen times", 4: "four times", 1: "once"}


def table_of(simulated: pd.DataFrame) -> pd.DataFrame:
    """What the package carries of ``docs/audit_simulation.csv``.

    Returns:
        method, model (its size), n, n_comparison, share (0 to 1, of the suspected rows that were
        seen), copies, n_draws and noticed, the share of simulated audits whose test rejects.
    """
    found = simulated[simulated["copies"].gt(0)].rename(columns={"scores": "model"})
    columns = ["method", "model", "n", "n_comparison", "share", "copies", "n_draws", "shown"]
    return found[columns].rename(columns={"shown": "noticed"}).reset_index(drop=True)


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
