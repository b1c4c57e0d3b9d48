"""Rows of the stored tables, as notebook 12 draws and shows them."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import interval_text
from contamination.replication.decisions import ALGORITHM_2

CHANCE_PCT = 25.0  # of four texts one is the original


def quiz_rows(readings: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``pretrained_readings`` as they are drawn and shown, benchmarks first.

    Benchmarks are ordered by their lead. ``lead`` is a text with its interval, and perfect_low
    and perfect_high are the interval that the lead of a model would have that finds every
    original: as wide as the interval of the clean model, NaN for our own quizzes. has_room: this
    interval begins above all intervals of leads on our own quizzes.
    """
    is_own = readings["is_unread"].astype(bool)
    needed = readings.loc[is_own, "ci_high_pct"].max()
    claims = readings[~is_own].sort_values("difference_pct", ascending=False, kind="stable")
    rows = pd.concat([claims, readings[is_own]], ignore_index=True)
    is_own = rows["is_unread"].astype(bool)
    leads = [
        f"{row.difference_pct:.1f} {interval_text(row.ci_low_pct, row.ci_high_pct, 1)}"
        for row in rows.itertuples()
    ]
    return rows.assign(
        dataset=rows["dataset"].str.replace("unread: ", "ours: "),
        is_unread=is_own,
        lead=leads,
        perfect_low=(100 - rows["clean_high_pct"]).mask(is_own),
        perfect_high=(100 - rows["clean_low_pct"]).mask(is_own),
        has_room=~is_own & (100 - rows["clean_high_pct"]).gt(needed),
    )


def matches(decided: pd.DataFrame) -> pd.DataFrame:
    """How many completions match under each instruction: counts from ``pretrained_replication``.

    Returns:
        instruction, n_valid, n_exact, n_near_exact, and called: "1 of 14" partitions that
        Algorithm 2 calls contaminated.
    """
    of_2 = decided[decided["method"].eq(ALGORITHM_2)]
    by = of_2.groupby("instruction", sort=False)
    counts = by[["n_valid", "n_exact", "n_near_exact", "contaminated"]].sum().astype(int)
    called = counts["contaminated"].astype(str) + " of " + by.size().astype(str)
    return counts.assign(called=called).drop(columns="contaminated").reset_index()
