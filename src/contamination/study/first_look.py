"""Notebook 00: what stands next to a control, in its opening figure and in its last table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from contamination.core.claims import CLAIMS
from contamination.core.families import withdraw_verdicts
from contamination.core.statistics import end_p, with_p_adjusted
from contamination.core.tables import listed
from contamination.core.verdicts import (
    CONTROL_FAILS,
    INCONCLUSIVE,
    NOT_SUPPORTED,
    SUPPORTED,
    strongest,
)
from contamination.dcq.comparison import verdict_counts


def title_of_opening(rules: pd.DataFrame, words: pd.DataFrame, printed: float) -> str:
    """What controls without any model reach of two printed results, in three lines.

    Args:
        rules: rows of ``dcq_rules`` of one rule and GPT-4, whose verdicts are counted.
        words: a row of ``blind_table`` for each length of WikiMIA. The ends of its intervals are
            averaged over lengths, as if all lengths strayed to one side together.
        printed: AUC of Min-k% Prob on WikiMIA, printed without an interval.
    """
    low, high = words[["ci_low", "ci_high"]].mean()
    beside = "Words alone: on WikiMIA it is open which AUC is higher"
    if low > printed:
        beside = "Words alone have the higher AUC on WikiMIA"
    elif high < printed:
        beside = "Words alone have the lower AUC on WikiMIA"
    counted = verdict_counts(rules.drop_duplicates("dataset"))
    return f"A rule does as well as GPT-4:\n{counted}\n{beside}"


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


def words_alone(words: pd.Series, n_pairs: int, n_all: int) -> str:
    """What the blind control of Min-k% Prob says, where chance decided which texts were seen.

    Args:
        words: a row of ``blind_table``.
        n_pairs: pairs of a seen and an unseen text that the classifier compares.
        n_all: all pairs, which a score of the model compares.
    """
    low, high = words["ci_low"], words["ci_high"]
    text = (
        f"Words alone have an AUC of {words['auc']:.2f} [{low:.2f}, {high:.2f}]. The classifier "
        f"compares {n_pairs:,} of the {n_all:,} pairs that the score compares, because no text "
        "may be judged by a classifier that has learnt from it or from its near-copies. "
    )
    if not low <= 0.5 <= high:
        return text + (
            "Chance decided which instances were seen, and still the interval leaves out one "
            "half: in this draw the words differ by accident."
        )
    if high >= 0.5 + CLAIMS["blind_baselines"].smallest_effect:
        return text + (
            "The interval contains one half, as it must where chance decided which instances were "
            "seen. It also contains values far above, so this control is too imprecise to rule "
            "out that the words tell the two kinds apart."
        )
    return text + (
        "The interval lies close around one half, as it must where chance decided which instances "
        "were seen: the words do not tell the two kinds apart."
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


def conclusion(table: pd.DataFrame) -> str:
    """What a lecturer could say of the four findings, from ``first_look.csv`` with its verdicts."""
    findings = table[~table.duplicated("method")]
    of = {verdict: rows["method"].tolist() for verdict, rows in findings.groupby("verdict")}
    parts = []
    if names := of.get(SUPPORTED):
        finds = "finds" if len(names) == 1 else "find"
        parts.append(
            f"{listed(names)} {finds} what we know to be true: this model was trained on the "
            "instances. No control comes as high, so memory is the explanation that is left."
        )
    else:
        parts.append("None of the methods shows what we know to be true of this model.")
    if names := of.get(CONTROL_FAILS):
        parts.append(
            f"{listed(names)} would have convinced us by {'its' if len(names) == 1 else 'their'} "
            "number alone, but the number is as high for a model that saw nothing."
        )
    if names := of.get(INCONCLUSIVE):
        parts.append(f"About {listed(names)} we cannot decide with so few instances or models.")
    if names := of.get(NOT_SUPPORTED):
        parts.append(f"{listed(names)} {'misses' if len(names) == 1 else 'miss'} what is there.")
    return (
        " ".join(parts) + " That is why every result in this repository has a control next to it."
    )
