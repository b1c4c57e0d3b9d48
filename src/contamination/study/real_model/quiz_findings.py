"""What the tables of the quiz in notebook 12 say: rows to show, a title, sentences."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import interval_text

CHANCE_PCT = 25.0  # of four texts one is the original


def quiz_rows(readings: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``pretrained_readings`` as they are drawn and shown, benchmarks first.

    Benchmarks are ordered by their lead. ``lead`` is a text with its interval, and perfect_low
    and perfect_high are the interval that the lead of a model would have that finds every
    original: as wide as the interval of the clean model, NaN for our own quizzes. has_room: this
    interval begins above all intervals of leads on our own quizzes.
    """
    *_, needed = room(readings)
    is_own = readings["is_unread"].astype(bool)
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


def room(readings: pd.DataFrame) -> tuple[int, int, float]:
    """Benchmarks without room for the lead that the claim needs, all benchmarks, and this lead.

    The lead of a model that finds every original has an interval as wide as the clean model's.
    """
    is_unseen = readings["is_unread"].astype(bool)
    needed = readings.loc[is_unseen, "ci_high_pct"].max()
    room = 100 - readings.loc[~is_unseen, "clean_high_pct"]
    return int((room <= needed).sum()), len(room), needed
