"""What to conclude from each number of docs/teaching.md: one sentence, chosen by the number.

The numbers themselves are written by scripts/readme.py. A number that says the opposite gets
another sentence, so none of these is a fixed text about a result.
"""

from __future__ import annotations

import pandas as pd

from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED

GUESSING_PCT = 25.0  # one text in four
# By the verdict of notebook 00: what follows from the finding, and from its highest control.
FIRST_LOOK = {
    SUPPORTED: (
        "The method notices the rows, because its controls stay clearly lower.",
        "Without the rows in the training data the number stays low, so the rows explain the "
        "finding.",
    ),
    NOT_SUPPORTED: (
        "The method is not shown to notice the rows.",
        "There is no finding that this control would have to explain.",
    ),
    INCONCLUSIVE: (
        "Nothing yet: so few texts leave open whether a control is as high.",
        "With so few texts this control might be as high as the finding, so more texts are needed.",
    ),
    CONTROL_FAILS: (
        "Nothing, because a control is as high: the finding is no evidence.",
        "This number needs no training on the rows, so the finding needs none either.",
    ),
}


def on_printed_levels(n_same: int, n: int) -> str:
    """From the pairs of model and dataset whose levels are as printed."""
    if 2 * n_same <= n:
        return "Most printed levels do not follow from the released answers."
    whole = "" if n_same == n else " for most pairs"
    return f"The paper's arithmetic is right{whole}, so the question is what the levels mean."


def on_levels(lowest_pct: float) -> str:
    """From the lowest of the model's maxima over the datasets."""
    if lowest_pct <= GUESSING_PCT:
        return "Not every level is above guessing (25 %), so memory is not shown everywhere."
    return (
        "Every level is above guessing (25 %), which memory can explain, but so can a rule: see "
        "the next lines."
    )


def on_rule(verdicts: pd.Series) -> str:
    """From the verdicts, by dataset, on the claim that a rule does as well as the model."""
    n, n_beaten = len(verdicts), int(verdicts.eq(NOT_SUPPORTED).sum())
    if n_beaten == n:
        return "GPT-4 beats this rule on every dataset, so the rule does not explain its levels."
    return (
        f"GPT-4 is shown to beat this rule on {n_beaten} of {n} datasets; on the rest its level "
        "alone is no evidence of memory."
    )


def on_number_of_findings(counts: list[int]) -> str:
    """From the number of rows that each test calls significant."""
    if len(set(counts)) == 1:
        return "All tests agree about how many results there are."
    return (
        "The test decides how many results there are, so it must be chosen before they are seen, "
        "and only those that survive the correction may be claimed."
    )


def on_judge(verdict: str, n_judge: int, n_clean: int) -> str:
    """From the verdict on the claim that the judge does better than a constant answer."""
    if verdict == SUPPORTED:
        return "The judge is shown to do better than a constant answer."
    if n_judge <= n_clean:
        return "The judge does no better than a constant answer, so its high count is no success."
    return "The judge is not shown to do better than a constant answer."


def on_words_alone(lowest_auc: float, printed: float) -> str:
    """From the AUC of the words alone against the AUC that the paper prints for the method."""
    if lowest_auc <= printed:
        return "The words alone do not explain the printed AUC."
    return "Words alone separate the two kinds of pages, so such an AUC is no evidence of memory."


def on_copies(copies: float, low: float) -> str:
    """From the lower end of the 95 % interval of the AUC at so many copies."""
    seen = "once" if copies == 1 else f"{copies:.0f} times"
    if low <= 0.5:
        return f"Texts that were seen {seen} are not shown to score above held-out ones."
    return f"Texts that were seen {seen} tend to score above held-out ones."
