"""What the tables of the fine-tuned models say in notebook 12: doses, falls, equivalence."""

from __future__ import annotations

import numpy as np
import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.tables import copies_text, listed
from contamination.core.verdicts import SUPPORTED
from contamination.study import equivalence
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


def falls(equal: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``equivalence`` with falls of the AUC in place of effects, so with signs turned."""
    return equal.assign(
        condition=equal["condition"].replace(equivalence.IN_WORDS),
        real_fall=-equal["real_effect"],
        lab_fall=-equal["lab_effect"],
        fall_difference=-equal["difference"],
        fall_low=-equal["ci90_high"],
        fall_high=-equal["ci90_low"],
    )


def confirming(equal: pd.DataFrame) -> pd.DataFrame:
    """Rows of the confirmatory analysis that have a difference."""
    return equal[equal["analysis"].eq(equivalence.CONFIRMING) & np.isfinite(equal["difference"])]


def of_equivalence(equal: pd.DataFrame) -> str:
    """What the table of falls shows beyond its verdicts: alike doses, and effects that differ."""
    own = confirming(equal)
    if own.empty:
        return ""
    first, is_equal = own.iloc[0], own["verdict"].eq(SUPPORTED)
    apart = abs(first["verbatim_auc"] - first["lab_verbatim_auc"])
    limit = f"the protocol's limit ({equivalence.MOST_APART:.2f})"
    near = f"within {limit}" if apart <= equivalence.MOST_APART else f"larger than {limit}"
    text = (
        f"Verbatim rows have a mean AUC of {first['verbatim_auc']:.2f} in SmolLM2 and of "
        f"{first['lab_verbatim_auc']:.2f} in our small models, and the difference is {near}. "
        f"{_of_equivalence(equal)}"
    )
    is_apart = ~is_equal & (own["ci90_low"].gt(0) | own["ci90_high"].lt(0))
    for row in own[is_apart].itertuples():
        text += f" {_of_apart(equivalence.IN_WORDS[row.condition], row.ci90_low, row.ci90_high)}"
    return text


def _of_equivalence(equal: pd.DataFrame) -> str:
    own = confirming(equal)
    if own.empty:
        return "No fine-tuned pair of SmolLM2 can be compared with our small models yet."
    is_equal = own["verdict"].eq(SUPPORTED)
    shown, open_ = (
        [equivalence.IN_WORDS[name] for name in own.loc[which, "condition"]]
        for which in (is_equal, ~is_equal)
    )
    within = f"within {equivalence.MARGIN:.2f} AUC"
    if not shown:
        return (
            f"SmolLM2 is not shown to react as our small models do, {within}, to any form of "
            "indirect exposure."
        )
    text = f"SmolLM2 reacts as our small models do, {within}, to {listed(shown)}."
    return f"{text} For {listed(open_)}, the result is inconclusive." if open_ else text


def _of_apart(name: str, low: float, high: float) -> str:
    """What an interval of effects without zero says; a fall has the opposite sign."""
    margin = equivalence.MARGIN
    text = f"For {name}, the interval excludes zero, so the falls do differ"
    nearest, farthest = sorted((abs(low), abs(high)))
    if nearest >= margin:
        return f"{text}, and by more than the margin."
    if farthest < margin:
        return f"{text}, although by less than the margin."
    end = f"{-margin:.2f}" if low > 0 else f"+{margin:.2f}"
    return (
        f"{text}; but it reaches past {end}, so we cannot say whether they differ by less than the "
        "margin."
    )


def carried_over(equal: pd.DataFrame) -> str:
    """For how many forms of exposure the small models are shown to be a guide."""
    own = confirming(equal)
    if own.empty:
        return _of_equivalence(equal)
    n_equal = int(own["verdict"].eq(SUPPORTED).sum())
    rest = "; the other forms are inconclusive" if n_equal < len(own) else ""
    return (
        "What our small models teach about indirect exposure is shown to carry over to SmolLM2 "
        f"for {n_equal or 'none'} of {len(own)} forms{rest}."
    )


def equivalence_title(equal: pd.DataFrame) -> str:
    """Title of the figure of the confirmatory rows of ``equivalence``."""
    n_equal = int(equal["verdict"].eq(SUPPORTED).sum())
    return (
        f"SmolLM2 and our small models are shown to react alike\nto {n_equal} of {len(equal)} "
        "forms of indirect exposure"
    )
