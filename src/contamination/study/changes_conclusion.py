"""What larger models that saw the same rows show."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import interval_text, listed
from contamination.core.verdicts import ALPHA, CONTROL_FAILS, SUPPORTED
from contamination.study.pretraining_conclusion import NEAR
from contamination.study.pretraining_findings import copies_words


def larger_models(table: pd.DataFrame, detector: str) -> str:
    """Whether detectors tell the same rows better in larger models, and which do not.

    ``table`` is that of ``pretraining_changes.larger``; the sentences name ``detector`` and count
    all of them.
    """
    if table["verdict"].eq(CONTROL_FAILS).any():
        return (
            "The control fails: a larger model learned less from its texts than the small one, so "
            "the table says nothing about size."
        )
    groups = {copies_words(int(copies)): rows for copies, rows in table.groupby("copies")}
    counts = [
        f"{int(rows['verdict'].eq(SUPPORTED).sum())} of {len(rows)} detectors with {copies}"
        for copies, rows in groups.items()
    ]
    own = table[table["detector"].eq(detector)].sort_values("copies")
    moves = [f"{_change(row)} with {copies_words(int(row['copies']))}" for _, row in own.iterrows()]
    sentences = [
        f"The claim that the AUC is higher in larger models is supported for {listed(counts)}. "
        f"For {detector}, the AUC changes by {listed(moves)}."
    ]
    small = [copies for copies, rows in groups.items() if rows["ci_high"].lt(NEAR).all()]
    if small:
        sentences.append(
            f"With {listed(small)}, no detector's AUC rises by {NEAR} or more: all intervals end "
            "below it."
        )
    largest = table.loc[table["difference"].idxmax()]
    if largest["verdict"] == SUPPORTED:
        sentences.append(
            f"The largest rise is that of {largest['detector']} with "
            f"{copies_words(int(largest['copies']))}, from {largest['auc']:.2f} to "
            f"{largest['auc_larger']:.2f}."
        )
    fallen = table[table["ci_high"].lt(0) & table["p_adjusted"].le(ALPHA)]
    lower = [
        f"{row['detector']} with {copies_words(int(row['copies']))}, from {row['auc']:.2f} to "
        f"{row['auc_larger']:.2f}"
        for _, row in fallen.iterrows()
    ]
    if lower:
        sentences.append(f"The AUC falls for {listed(lower)}.")
    return " ".join(sentences)


def _change(row: pd.Series) -> str:
    ends = f"[{row['ci_low']:+.2f}, {row['ci_high']:+.2f}]"
    return f"{row['difference']:+.2f} {ends}"


def larger_in_brief(table: pd.DataFrame, detector: str) -> str:
    """One sentence: a detector in larger models, with the fewest and with the most copies."""
    if table["verdict"].eq(CONTROL_FAILS).any():
        return ""
    own = table[table["detector"].eq(detector)].sort_values("copies").iloc[[0, -1]]
    found = []
    for _, row in own.iterrows():
        ends = row["larger_low"], row["larger_high"]
        places = 2 if len({f"{end:.2f}" for end in ends}) == 2 else 3
        value = f"{row['auc_larger']:.{places}f} {interval_text(*ends, places)}"
        found.append(f"{value} with {copies_words(int(row['copies']))}")
    return (
        "In larger models (29 million parameters) that saw the same rows just as often, "
        f"{detector} reaches an AUC of {listed(found)}."
    )


def larger_rates(table: pd.DataFrame, detector: str) -> str:
    """How many seen rows a detector finds in larger models while it is rarely wrong.

    ``table`` is that of ``pretraining_changes.larger_rates``. The lowest false-positive rate is
    used, with the fewest and with the most copies.
    """
    is_own = table["detector"].eq(detector) & table["fpr"].eq(table["fpr"].min())
    own = table[is_own].sort_values("copies")
    few, many = own.iloc[0], own.iloc[-1]
    shares = [
        f"{100 * row['tpr_larger']:.1f} % "
        f"{interval_text(100 * row['ci_low'], 100 * row['ci_high'], 1)} of the rows with "
        f"{copies_words(int(row['copies']))} (small models: {100 * row['tpr']:.1f} %)"
        for row in (few, many)
    ]
    fpr = f"{100 * few['fpr']:.0f} %"
    text = f"In the larger models, at {fpr} false positives, {detector} finds {listed(shares)}."
    above = []
    for rate, rows in table[table["copies"].eq(few["copies"])].groupby("fpr"):
        k, n = int(rows["ci_low"].gt(rate).sum()), int(rows["ci_low"].notna().sum())
        (own_rate,) = rows.loc[rows["detector"].eq(detector), "tpr_larger"]
        at = f"{100 * rate:.0f} %"
        above.append(f"{k} of {n} methods find more than {at} ({detector}: {100 * own_rate:.1f} %)")
    return (
        f"{text} By chance, a method finds as large a share of the seen rows as of the held-out "
        f"rows. With {copies_words(int(few['copies']))}, {listed(above)}. Here “more” means that "
        "the 95 % interval, which is not corrected, lies above the false-positive rate."
    )
