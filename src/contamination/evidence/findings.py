"""Sentences about the panel, the evasion matrix and the printed cells, built from their tables.

Each is tested with a table that confirms a reading and one that refutes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from contamination.evidence.conditions import FRESH, LATER, TRAIN_SPLIT, TRUTHS, VERBATIM
from contamination.evidence.evasion import FPR, LEFT_OUT
from contamination.evidence.panel import CONTROL_FORBIDS, RECOGNISED, listed

NEVER_READ = TRUTHS[FRESH]
READ = TRUTHS[VERBATIM]


def unmatched_sentence(cells: pd.DataFrame) -> str:
    """How many printed cells are unmatched: differing, or not recomputed at all.

    Args:
        cells: ``published_vs_recomputed``.
    """
    differing = cells[cells["matches"].eq(False)]
    n_matching = int(cells["matches"].eq(True).sum())
    n_left = int(cells["matches"].isna().sum())
    text = f"{len(differing) + n_left} of {len(cells)} printed cells are unmatched: "
    if len(differing):
        by_paper = differing["paper"].value_counts(sort=False)
        papers = listed([f"{n} of {paper}" for paper, n in by_paper.items()])
        text += f"{len(differing)} differ ({papers})"
    else:
        text += "none differs"
    return f"{text}, {n_left} cannot be recomputed. {n_matching} match."


def agreement_sentence(evidence: pd.DataFrame) -> str:
    """Where the methods find what was read word for word, and what they find where nothing was.

    Args:
        evidence: ``evidence.csv`` with its truths.
    """
    parts = []
    for truth, opening in ((READ, "Read word for word"), (NEVER_READ, "Never read")):
        rows = evidence[evidence["truth"] == truth]
        if len(rows):
            is_found = rows["verdict"].eq(RECOGNISED).groupby(rows["method"], sort=False)
            counts = zip(is_found.sum().items(), is_found.size(), strict=True)
            found = [f"{method} in {count} of {n}" for (method, count), n in counts]
            parts.append(f"{opening}: recognised by {listed(found)}.")
    read = evidence[evidence["truth"] == READ].groupby(["model", "dataset"], sort=False)
    # Only where every method was run can all agree.
    verdicts = read["verdict"].nunique()[read["method"].nunique() == evidence["method"].nunique()]
    if len(verdicts):
        n_same = int(verdicts.eq(1).sum())
        parts.append(f"All methods give one verdict on {n_same} of the {len(verdicts)} read.")
    return " ".join(parts)


def control_sentence(evidence: pd.DataFrame) -> str:
    """How often a value above chance is no better than its control."""
    forbids = evidence["verdict"].eq(CONTROL_FORBIDS)
    above = forbids | evidence["verdict"].eq(RECOGNISED)
    n_above, n_forbids = (
        rows.groupby(evidence["method"], sort=False).sum() for rows in (above, forbids)
    )
    stopped = [f"{method} in {n} of {n_above[method]}" for method, n in n_forbids.items() if n]
    if not stopped:
        return "No control forbids a conclusion: every value above chance exceeds its control."
    return (
        f"Above chance, but not above the control: {listed(stopped)} cases above chance."
        " Nothing follows from these."
    )


def _row(evasion: pd.DataFrame, method: str, condition: str, copies: int) -> pd.Series | None:
    keys = evasion["method"].eq(method) & evasion["condition"].eq(condition)
    found = evasion[keys & evasion["copies"].eq(copies).fillna(False)]
    return None if found.empty else found.iloc[0]


def _count(row: pd.Series) -> str:
    return f"{row['n_detected']} of {row['n_models']}"


def power_sentence(evasion: pd.DataFrame, copies: int) -> str:
    """Who finds verbatim rows at a dose, and what later clean training leaves of it."""
    said = []
    for condition, opening in ((VERBATIM, "verbatim rows are found"), (LATER, "after that")):
        counts = [
            f"{method} in {_count(row)}"
            for method in evasion["method"].unique()
            if (row := _row(evasion, method, condition, copies)) is not None
        ]
        if counts:
            said.append(f"{opening} by {listed(counts)} models")
    first = f"{copies} copies: {said[0]}" if said else f"{copies} copies: not in the table"
    return f"{first}; after later clean training {said[1][11:]}." if len(said) > 1 else f"{first}."


def evasion_sentence(evasion: pd.DataFrame, copies: int, conditions: Sequence[str]) -> str:
    """Which conditions hide the rows from which method, where it finds them verbatim.

    A condition hides the rows where its whole interval lies below the verbatim
    one; where the two overlap, so few models cannot tell.
    """
    seeing, hidden, kept = [], [], []
    for method in evasion["method"].unique():
        verbatim = _row(evasion, method, VERBATIM, copies)
        if verbatim is None or verbatim["ci_low"] <= FPR:
            continue
        seeing.append(method)
        for condition in conditions:
            row = _row(evasion, method, condition, copies)
            if row is None:
                continue
            text = f"{condition} from {method} ({_count(row)}, verbatim {_count(verbatim)})"
            (hidden if row["ci_high"] < verbatim["ci_low"] else kept).append(text)
    if not seeing:
        return f"{copies} copies: no method finds verbatim rows, so nothing can hide them."
    if not hidden:
        return (
            f"{copies} copies: no condition hides the rows from {listed(seeing)}"
            " beyond what so few models leave to chance."
        )
    return f"{copies} copies: hidden are {listed(hidden)}."


def false_alarm_sentence(evasion: pd.DataFrame) -> str:
    """Methods that flag test rows which no model read, beyond the 5 % that are allowed.

    Fresh rows come from a model that read other rows of the same distribution;
    the train split is of the very dataset whose test rows are asked about.
    """
    nothing_read = evasion[evasion["condition"].isin([FRESH, TRAIN_SPLIT])]
    alarms = nothing_read[nothing_read["ci_low"] > FPR]
    left_out = evasion[evasion["condition"].eq(LEFT_OUT) & (evasion["ci_low"] > FPR)]
    said = [
        f"{row.method}, {row.condition}, {row.copies} copies: {row.n_detected} of {row.n_models}"
        for row in alarms.itertuples()
    ]
    if said:
        text = f"Flagged although none of the rows asked about was read: {'; '.join(said)}."
        text += " There the flag is about the model, or about rows of this kind, not about these."
    else:
        text = "No method flags rows that were not read more often than the 5 % allow."
    if len(left_out):
        names = listed(list(dict.fromkeys(left_out["method"])))
        text += f" The threshold of {names} does not hold for a clean model that it has not seen."
    return text
