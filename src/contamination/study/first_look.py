"""Notebook 00: what stands next to a control, in its opening figure and in its last table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from contamination.core.claims import CLAIMS
from contamination.core.families import withdraw_verdicts
from contamination.core.statistics import end_p, with_p_adjusted
from contamination.core.tables import auc_text, listed
from contamination.core.verdicts import (
    CONTROL_FAILS,
    INCONCLUSIVE,
    NOT_SUPPORTED,
    SUPPORTED,
    strongest,
)


def title_of_opening(rules: pd.DataFrame, words: pd.DataFrame, printed: float) -> str:
    """What controls without any model show of two printed results, in two lines.

    Args:
        rules: rows of ``dcq_rules`` of one rule and GPT-4, whose verdicts are counted.
        words: a row of ``blind_table`` for each length of WikiMIA. The ends of its intervals are
            averaged over lengths, as if all lengths strayed to one side together.
        printed: AUC of Min-k% Prob on WikiMIA, printed without an interval.
    """
    verdicts = rules.drop_duplicates("dataset")["verdict"]
    n_behind = verdicts.eq(NOT_SUPPORTED).sum()
    words_are = {1: "words alone have the higher AUC", -1: "words alone have the lower AUC"}
    on_wikimia = words_are.get(_side_of(words, printed), "it is open which AUC is higher")
    return (
        f"GPT-4 is shown to beat a rule on {n_behind} of {len(verdicts)} datasets;\n"
        f"on WikiMIA, {on_wikimia}"
    )


def of_opening(rules: pd.DataFrame, words: pd.DataFrame, printed: float) -> str:
    """What the opening figure shows, in sentences; arguments as in :func:`title_of_opening`."""
    verdicts = rules.drop_duplicates("dataset")["verdict"]
    n, n_behind = len(verdicts), verdicts.eq(NOT_SUPPORTED).sum()
    n_level = verdicts.eq(SUPPORTED).sum()
    margin = -CLAIMS["dcq_rules"].null
    text = (
        f"The quiz's bars are means over {n} datasets. Lesson 02 tests each dataset by itself. "
        f"On {n_behind} of {n}, it shows that GPT-4 beats the rule. "
    )
    if n_level:
        text += (
            f"On {n_level}, it shows that the rule is as good, to within {margin:.0f} percentage "
            "points. "
        )
    if n_open := n - n_behind - n_level:
        others = "one" if n_open == 1 else n_open
        text += f"On the other {others}, the test is inconclusive. "
    side = _side_of(words, printed)
    if side == 0:
        return text + "On WikiMIA, we cannot say whether words alone do as well as Min-k% Prob."
    return text + (
        f"On WikiMIA, words alone separate the passages {'better' if side > 0 else 'less well'} "
        "than Min-k% Prob."
    )


def _side_of(words: pd.DataFrame, printed: float) -> int:
    """1 if the interval of the words lies above a printed AUC, -1 if below, 0 if it contains it."""
    low, high = words[["ci_low", "ci_high"]].mean()
    return int(low > printed) - int(high < printed)


def reading(of_method: pd.DataFrame) -> str:
    """Which rows of one method lie above chance, in a sentence under its table.

    Args:
        of_method: rows of ``first_look.csv``: the finding, then its controls.
    """
    finding, controls = of_method.iloc[0], of_method.iloc[1:]
    if pd.isna(finding["ci_low"]):
        n_as_high = int((controls["value"] >= finding["value"]).sum())
        if not n_as_high:
            return "No clean model reaches the value of the contaminated model."
        models = "Both clean models reach" if n_as_high == 2 else f"{n_as_high} clean model reaches"
        return (
            f"{models} the value of the contaminated model. So this value is no evidence of "
            "contamination: the detector may have learned only which model is which."
        )
    chance = "zero" if pd.isna(finding["chance"]) else "chance"
    level = 0.0 if pd.isna(finding["chance"]) else finding["chance"]
    if finding["ci_low"] <= level:
        return f"The first row is not shown to lie above {chance}."
    above = controls.loc[controls["ci_low"] > level, "model"].unique()
    if not len(above):
        return f"Only the first row is shown to lie above {chance}."
    return (
        f"The first row lies above {chance}, but so does a control ({listed(list(above))}). So "
        "memory is not the only possible explanation."
    )


def with_p(table: pd.DataFrame) -> pd.DataFrame:
    """``first_look.csv`` with p of chance for each finding, and p_adjusted, Holm's over methods.

    The findings are the notebook's family. Controls and a finding without an interval are no test.
    """
    is_finding = ~table.duplicated("method")
    chance = table["chance"].fillna(0.0)
    tests = zip(table["value"], table["ci_low"], table["ci_high"], chance, strict=True)
    p_values = pd.Series([end_p(*of_row) for of_row in tests], table.index)
    (table,) = with_p_adjusted(table.assign(p=p_values.where(is_finding)))
    return table


def finding_verdicts(table: pd.DataFrame) -> pd.Series:
    """The column verdict of ``first_look.csv``; blank for controls.

    The first row of a method is its finding, the others are its controls. A finding is supported
    if its interval lies above chance (above 0 where there is none) and above the interval of
    every control, and if the p-value of chance stays at most 0.05 after the correction for all
    findings. If a control that reaches it lies above chance as well, the control fails; if the
    control's interval merely overlaps, the finding is inconclusive. Two models are one observation
    and have no interval: there the control fails where its value is as high, and all else is
    inconclusive.
    """
    verdicts = pd.Series("", table.index)
    for _, rows in table.groupby("method", sort=False):
        verdicts[rows.index[0]] = _verdict(rows)
    return withdraw_verdicts(verdicts, with_p(table)["p_adjusted"])


def highest_control(rows: pd.DataFrame) -> float:
    """The highest upper end of a method's controls, or their value where they have no interval."""
    return max(high for _, high in _controls(rows))


def words_alone(words: pd.Series, n_pairs: int, n_seen: int, n_unseen: int) -> str:
    """What the blind control of Min-k% Prob says, where chance decided which texts were seen.

    Args:
        words: a row of ``blind_table``.
        n_pairs: pairs of a seen and an unseen text that the classifier compares.
        n_seen, n_unseen: texts of each kind, of which a score of the model compares all pairs.
    """
    low, high = words["ci_low"], words["ci_high"]
    text = f"The last row, words alone, has an AUC of {auc_text(words)}. "
    if not low <= 0.5 <= high:
        text += (
            "Chance decided which instances were seen, and still the interval leaves out one "
            "half: in this draw the words differ by accident. "
        )
    elif high >= 0.5 + CLAIMS["blind_baselines"].smallest_effect:
        text += (
            "Chance decided which instances were seen, so we expect one half, and the interval "
            "contains it. But the interval also contains values far above one half. So this "
            "control is too imprecise to tell us whether words alone would do as well. "
        )
    else:
        text += (
            "Chance decided which instances were seen, so we expect one half, and the interval "
            "lies close around it: the words do not tell the two halves apart. "
        )
    n_all = n_seen * n_unseen
    return text + (
        f"The model's score compares each of the {n_seen:,} seen instances with each of the "
        f"{n_unseen:,} held-out ones, which makes {n_all:,} pairs. The classifier must not judge a "
        "text that it learned from, or a near-copy of one. So it learns from one part of the "
        f"instances and compares only the pairs within another part: {n_pairs:,} of these "
        f"{n_all:,} pairs."
    )


def _controls(rows: pd.DataFrame) -> Sequence[tuple[float, float]]:
    controls = rows.iloc[1:]
    ends = (controls[end].fillna(controls["value"]) for end in ("ci_low", "ci_high"))
    return list(zip(*ends, strict=True))


def _verdict(rows: pd.DataFrame) -> str:
    finding, controls = rows.iloc[0], _controls(rows)
    chance = 0.0 if pd.isna(finding["chance"]) else finding["chance"]
    if pd.isna(finding["ci_low"]):
        is_as_high = any(value >= finding["value"] and value > chance for value, _ in controls)
        return CONTROL_FAILS if is_as_high else INCONCLUSIVE
    claim = replace(CLAIMS["first_look"], null=chance)
    ends = finding["ci_low"], finding["ci_high"]
    return claim.verdict(*ends, control=strongest(controls, ends[0]))


def _why_open(rows: pd.DataFrame) -> str:
    """Why the data do not settle the finding of a method, if they do not."""
    finding, controls = rows.iloc[0], rows.iloc[1:]
    if pd.isna(finding["ci_low"]):
        return "two models are a single observation"
    chance = 0.0 if pd.isna(finding["chance"]) else finding["chance"]
    wide = controls[controls["ci_high"].ge(finding["ci_low"]) & controls["ci_low"].le(chance)]
    if finding["ci_low"] <= chance or wide.empty:
        return "so few instances leave too much to chance"
    names = listed([f"“{name.removeprefix('none: ')}”" for name in wide["model"].unique()])
    return (
        f"the control {names} is too imprecise, because its interval contains chance and reaches "
        "the interval of the finding"
    )


def conclusion(table: pd.DataFrame) -> str:
    """What a lecturer could say of the four findings, from ``first_look.csv`` with its verdicts."""
    reasons = {method: _why_open(rows) for method, rows in table.groupby("method", sort=False)}
    findings = table[~table.duplicated("method")]
    of = {verdict: rows["method"].tolist() for verdict, rows in findings.groupby("verdict")}
    parts = []
    if names := of.get(SUPPORTED):
        finds = "finds" if len(names) == 1 else "find"
        parts.append(
            f"{listed(names)} {finds} what we know to be true: this model was trained on the "
            "instances. No control reaches as high, which leaves memory as the explanation."
        )
    else:
        parts.append("None of the methods shows what we know to be true of this model.")
    if names := of.get(CONTROL_FAILS):
        number = "number alone would have convinced us, but it is"
        if len(names) > 1:
            number = "numbers alone would have convinced us, but they are"
        parts.append(
            f"For {listed(names)}, the {number} just as high for a model that saw none of the "
            "instances. That is why every result in this repository has a control next to it."
        )
    parts += [
        f"For {name}, the question stays open: {reasons[name]}."
        for name in of.get(INCONCLUSIVE, [])
    ]
    if names := of.get(NOT_SUPPORTED):
        parts.append(f"{listed(names)} {'misses' if len(names) == 1 else 'miss'} what is there.")
    return " ".join(parts)
