"""Sentences of notebook 09: what is recomputed, and what the controls leave."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import listed
from contamination.core.verdicts import INCONCLUSIVE, SUPPORTED
from contamination.dcq.comparison import COVERAGE, QUARTER


def conclusion(brief: str, readings: pd.DataFrame) -> str:
    """Two paragraphs: what is recomputed, and what the controls leave.

    Args:
        brief: of ``readings.recomputed_in_brief``.
        readings: of ``readings.of_released_answers``.
    """
    arithmetic = f"{brief} This checks the papers' arithmetic. It repeats none of their experiments"
    columns = ["Method", "The paper's claim", "Our reading"]
    left = [
        f"- {method.partition(']')[0].removeprefix('[')}. Claim: {claim}. Our reading: {reading}."
        for method, claim, reading in readings[columns].itertuples(index=False)
    ]
    bullets = "\n".join(left)
    return f"{arithmetic}.\n\nWhat do the controls leave?\n\n{bullets}"


def summarize_counting(rules: pd.DataFrame) -> str:
    """Where the two ways of counting E disagree on whether the chosen rule does as well.

    ``rules`` as ``dcq_rules``, of one model.
    """
    chosen = rules[rules["chosen_on_others"] & rules["counted"].isin([COVERAGE, QUARTER])]
    words = chosen.pivot(index="dataset", columns="counted", values="word")
    leads = chosen.pivot(index="dataset", columns="counted", values="difference_pct")
    apart = leads[words[COVERAGE].eq(SUPPORTED) ^ words[QUARTER].eq(SUPPORTED)]
    text = (
        f"We count {rules['model'].iloc[0]}'s answer E (none of the texts) in two ways, and a "
        "verdict must be the same in both: E is a quarter of a right answer, or the rule skips as "
        "many quizzes as the model does."
    )
    if apart.empty:
        return f"{text} They agree on where the rule does as well as the model."
    named = [
        f"{name} ({row[QUARTER]:+.0f} points in the first, {row[COVERAGE]:+.0f} in the second)"
        for name, row in apart.iterrows()
    ]
    rule = chosen["control"].iloc[0]
    return (
        f"{text} They disagree about the rule “{rule}” on {listed(named)}, rule minus model. So "
        f"the verdict there is {INCONCLUSIVE}."
    )
