"""Which detector for which question: what answers, log-probabilities or weights can show."""

from __future__ import annotations

import pandas as pd

from contamination.detectors import conditions as c
from contamination.detectors import interface, protocol

# Question: model, condition, copies.
QUESTIONS = {
    "one copy": (c.DOSED, c.VERBATIM, 1),
    "three copies": (c.DOSED, c.VERBATIM, 3),
    "twelve copies": (c.DOSED, c.VERBATIM, 12),
    "the text without its label": (c.DOSED, c.WITHOUT_LABEL, 12),
    "another wording": (c.DOSED, c.PARAPHRASE, 12),
    "several other wordings": (c.DOSED, c.SEVERAL, 12),
    "twelve copies, then much other text": (c.LONG, c.VERBATIM, 12),
    "a whole dataset in published order": (c.DOSED, c.ORDERED, 12),
}
ACCESS = (interface.ANSWERS, interface.LOG_PROBABILITIES, interface.WEIGHTS)
MOST_NAMES = 2  # of one cell


def by_access(detectors: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """For each of ``QUESTIONS`` and each access the detectors that flag most units of a benchmark.

    ``detectors`` as in ``gates.detector_table``. More access includes less: with log-probabilities
    answers can be had too. Named are detectors whose verdict is "seen", those with most power
    first (ties by the table's order), at most two; without any, how many units the best flags.

    Returns:
        what was read, and a column for each access.
    """
    place = {access: rank for rank, access in enumerate(ACCESS)}
    of_rows = detectors[detectors["question"].eq(interface.READ) & detectors["access"].isin(place)]
    rows = []
    for question, cell in QUESTIONS.items():
        is_cell = (of_rows[protocol.CELL] == [benchmark, *cell]).all(axis=1)
        best = of_rows[is_cell].sort_values("power_at_5_fpr", ascending=False, kind="stable")
        allowed = {a: best[best["access"].map(place) <= place[a]] for a in ACCESS}
        rows.append({"what was read": question} | {a: _named(allowed[a]) for a in ACCESS})
    return pd.DataFrame(rows)


def _named(best: pd.DataFrame) -> str:
    if best.empty:
        return "not asked"
    seen = best[best["verdict"] == protocol.SEEN]
    if seen.empty:
        first = best.iloc[0]
        return f"none; at best {first['n_flagged']:.0f} of {first['n_units']}"
    return ", ".join(
        f"{row.detector} {row.n_flagged:.0f} of {row.n_units}"
        for row in seen.head(MOST_NAMES).itertuples()
    )
