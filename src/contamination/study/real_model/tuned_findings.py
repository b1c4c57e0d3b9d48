"""What the table of the fine-tuned models says in notebook 12."""

from __future__ import annotations

import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.tables import copies_text, listed
from contamination.study.conditions import DOSED, FRESH, LATER, PARAPHRASE, VERBATIM


def of_doses(by_condition: pd.DataFrame) -> str:
    """How the AUC of Min-k% Prob follows the exposure, from rows of ``stouffer.combine_p_values``.

    A form of exposure other than verbatim copies has a row for one number of copies.
    """
    dosed = by_condition[by_condition["model"].eq(DOSED)]
    verbatim = dosed[dosed["condition"].eq(VERBATIM)].sort_values("copies")
    aucs = listed(
        [f"{row.auc:.2f} with {copies_text(row.copies)}" for row in verbatim.itertuples()]
    )
    text = f"If a model saw a row verbatim, the AUC of {MIN_K} is {aucs}."
    for row in dosed[dosed["condition"].eq(PARAPHRASE)].itertuples():
        text += f" If it saw a paraphrase instead, {row.copies} times, the AUC is {row.auc:.2f}."
    for row in dosed[dosed["condition"].eq(FRESH)].itertuples():
        text += f" For fresh rows, the control, it is {row.auc:.2f}."
    return text


def doses_in_brief(by_condition: pd.DataFrame) -> str:
    """The AUCs of ``of_doses`` without a sentence, for a cell of a table."""
    dosed = by_condition[by_condition["model"].eq(DOSED)].sort_values("copies")
    parts = []
    for condition, told in ((VERBATIM, "{}"), (PARAPHRASE, "{} as a paraphrase")):
        for row in dosed[dosed["condition"].eq(condition)].itertuples():
            parts.append(f"{row.auc:.2f} after {told.format(copies_text(row.copies))}")
    for row in dosed[dosed["condition"].eq(FRESH)].itertuples():
        parts.append(f"{row.auc:.2f} for fresh rows")
    return ", ".join(parts)


def of_later(by_condition: pd.DataFrame) -> str:
    """How much of what copies added to the AUC is left after training on other text."""
    verbatim = by_condition[by_condition["condition"].eq(VERBATIM)]
    for later in verbatim[verbatim["model"].eq(LATER)].itertuples():
        same = verbatim["model"].eq(DOSED) & verbatim["copies"].eq(later.copies)
        at_once = verbatim[same].iloc[0]
        left = (later.auc - later.auc_before) / (at_once["auc"] - at_once["auc_before"])
        tens = 10 * round(10 * left)
        return (
            f"After further training on other text, the AUC of verbatim rows is {later.auc:.2f} "
            f"instead of {at_once['auc']:.2f}. So about {tens} % of the rise from "
            f"{at_once['auc_before']:.2f} is left."
        )
    return ""


def of_fewest(by_condition: pd.DataFrame) -> str:
    """What the smallest dose of verbatim rows leaves, next to the largest one."""
    dosed = by_condition[by_condition["model"].eq(DOSED) & by_condition["condition"].eq(VERBATIM)]
    dosed = dosed.sort_values("copies")
    if len(dosed) < 2:
        return ""
    few, many = dosed.iloc[0], dosed.iloc[-1]
    is_faint = few["auc"] - 0.5 < (many["auc"] - 0.5) / 2
    rest = "so a text that was seen only rarely would be easy to miss" if is_faint else ""
    rest = rest or "so a text that was seen only rarely shows as well"
    return (
        f"Where we know the truth, in Part 2, the AUC of {MIN_K} is {few['auc']:.2f} after "
        f"{copies_text(few['copies'])} and {many['auc']:.2f} after "
        f"{copies_text(many['copies'])}, {rest}."
    )
