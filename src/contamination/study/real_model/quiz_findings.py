"""What the tables of the quiz in notebook 12 say: rows to show, a title, sentences."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import interval_text, listed
from contamination.core.verdicts import SUPPORTED
from contamination.study.real_model import short_name

FAVOURITE_PCT = 90  # of answers: a letter chosen as often hardly depends on the texts
CHANCE_PCT = 25.0  # of four texts one is the original


def clean_shares(readings: pd.DataFrame) -> str:
    """How many originals a model finds that saw none: why a high share is no sign of memory."""
    claims = readings[~readings["is_unread"].astype(bool)]
    low, high = claims["clean_pct"].min(), claims["clean_pct"].max()
    n_above = int(claims["clean_low_pct"].gt(CHANCE_PCT).sum())
    text = (
        f"The clean model, which saw none of these {len(claims)} benchmarks, finds {low:.0f} to "
        f"{high:.0f} % of the originals. By chance it would find {CHANCE_PCT:.0f} %. "
    )
    if n_above == len(claims):
        return text + "So a share above chance is no sign of memory."
    return text + f"It is shown to be above chance on {n_above} of {len(claims)} benchmarks."


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


def quiz_title(readings: pd.DataFrame) -> str:
    """Title of the figure of ``pretrained_readings``: where the model leads, and its control."""
    n_ahead, n_claims, *_ = leads(readings)
    n_supported = int(readings["verdict"].eq(SUPPORTED).sum())
    text = f"Shown to be ahead of the clean model on {n_ahead} of {n_claims} benchmarks"
    if n_supported:
        return f"{text},\nand on {n_supported} clearly above the control"
    if n_ahead:
        return f"{text},\nbut on none clearly above the control"
    return "Not shown to be ahead of the clean model on any benchmark"


def room_for_leads(readings: pd.DataFrame) -> str:
    """On how many benchmarks a lead could have been large enough to support the claim."""
    n_without, n, needed = room(readings)
    rows = quiz_rows(readings)
    with_room = rows.loc[rows["has_room"], "dataset"].tolist()
    text = (
        f"On our own quizzes, the intervals of the leads reach up to {needed:.1f} points (the "
        "dashed line). "
    )
    if not n_without:
        return text + "A perfect model could lead by more than that on every benchmark."
    return text + (
        f"On {n_without} of {n} benchmarks, even the interval of a perfect model would begin at or "
        "below this line, because the clean model already finds so many originals. There, no model "
        "could support the claim, no matter what it remembers. "
        f"{f'Only {listed(with_room)} had room.' if with_room else 'No benchmark had room.'}"
    )


def room(readings: pd.DataFrame) -> tuple[int, int, float]:
    """Benchmarks without room for the lead that the claim needs, all benchmarks, and this lead.

    The lead of a model that finds every original has an interval as wide as the clean model's.
    """
    is_unseen = readings["is_unread"].astype(bool)
    needed = readings.loc[is_unseen, "ci_high_pct"].max()
    room = 100 - readings.loc[~is_unseen, "clean_high_pct"]
    return int((room <= needed).sum()), len(room), needed


def of_gpt4(beside: pd.DataFrame, model: str) -> str:
    """On how many datasets two rankings find more than GPT-4: rows of ``pretrained_beside``."""
    of_gpt4 = beside[beside["model"].eq("GPT-4") & beside["ci_low_pct"].gt(0)]
    n = beside.loc[beside["model"].eq("GPT-4"), "dataset"].nunique()
    own, clean = (
        int(of_gpt4["control"].eq(f"{taker}, whole text").sum()) for taker in (model, "clean LM")
    )
    text = (
        f"{short_name(model)}'s ranking is shown to find more originals than GPT-4's letters "
        f"on {own or 'none'} of {n} datasets."
    )
    if not clean:
        return f"{text} The clean model's ranking is shown to do so on none of {n}."
    return (
        f"{text} But the clean model's ranking is shown to do so too, on {clean} of {n}. So "
        "finding more than GPT-4 is no sign of memory either."
    )


def of_letters(by_letter: pd.DataFrame, model: str) -> str:
    """Whether the answers by letter can say anything: rows of ``pretrained_dcq``."""
    low, high = by_letter["same_letter_pct"].min(), by_letter["same_letter_pct"].max()
    between = f"{low:.0f} to {high:.0f} %" if round(low) != round(high) else f"{high:.0f} %"
    text = (
        f"We asked {short_name(model)} for letters on {len(by_letter)} datasets. On each of them, "
        f"{between} of its answers are one and the same letter. "
    )
    if low >= FAVOURITE_PCT:
        return text + "So its letters hardly depend on the texts and tell us nothing about memory."
    return text + "So its letters depend on the texts, at least on some of the datasets."


def leads(readings: pd.DataFrame) -> tuple[int, int, int, int]:
    """Leads over the clean model and datasets, of benchmarks and then of unseen quizzes."""
    is_unseen = readings["is_unread"].astype(bool)
    is_ahead = readings["ci_low_pct"].gt(0)
    return (
        int((is_ahead & ~is_unseen).sum()),
        int((~is_unseen).sum()),
        int((is_ahead & is_unseen).sum()),
        int(is_unseen.sum()),
    )


def of_quiz(readings: pd.DataFrame, name: str) -> str:
    """What the lead over the clean model means next to its control, for the conclusion."""
    n_ahead, n_claims, n_unseen, n_controls = leads(readings)
    n_supported = int(readings["verdict"].eq(SUPPORTED).sum())
    if not n_ahead:
        return f"In the quiz, {name} is not shown to lead the clean model on any benchmark."
    ahead = f"{name} is shown to lead the clean model on {n_ahead} of {n_claims} benchmarks"
    if n_supported:
        return (
            f"In the quiz, {ahead}, and on {n_supported} of them by more than on any quizzes that "
            "no model can have seen. Memory would explain that, and so would better taste in such "
            "texts."
        )
    if n_unseen:
        return (
            f"In the quiz, {ahead}. It also leads on {n_unseen} of {n_controls} sets of quizzes "
            "that no model can have seen, so a larger model's taste explains such a lead without "
            "any memory."
        )
    return (
        f"Without its control, the quiz would look like memory: {ahead}. But on none of them is "
        "the lead shown to be larger than on quizzes that no model can have seen."
    )
