"""Notebook 00: what stands next to a control, in its opening figure and in its last table."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from contamination.core.families import taken_back
from contamination.core.statistics import end_p, with_p_adjusted
from contamination.core.verdicts import CLAIMS, CONTROL_FAILS, INCONCLUSIVE

QUIZ, WIKIMIA = "quiz", "WikiMIA"


def title_of_opening(shown: pd.DataFrame) -> str:
    """What a control without any model reaches of two printed results.

    ``shown`` has result (``QUIZ``, in each way to count "none of these", or ``WIKIMIA``), model
    and control: the value of the paper's model and that of the control.
    """
    is_reached = shown["control"] >= shown["model"]
    of_quiz, of_wikimia = (is_reached[shown["result"] == name] for name in (QUIZ, WIKIMIA))
    reach = "reach" if of_wikimia.all() else "do not reach"
    return (
        f"A rule reaches GPT-4 by {of_quiz.sum()} of {len(of_quiz)} counts; "
        f"words alone {reach} the AUC"
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
    findings. Two models are one observation and have no interval: there the control fails
    where it is as high, and all else is inconclusive.
    """
    verdicts = pd.Series("", table.index)
    for _, rows in table.groupby("method", sort=False):
        verdicts[rows.index[0]] = _verdict(rows)
    return taken_back(verdicts, with_p(table)["p_adjusted"])


def highest_control(rows: pd.DataFrame) -> float:
    """The highest upper end of a method's controls, or their value where they have no interval."""
    controls = rows.iloc[1:]
    return controls["ci_high"].fillna(controls["value"]).max()


def _verdict(rows: pd.DataFrame) -> str:
    finding = rows.iloc[0]
    if pd.isna(finding["ci_low"]):
        is_as_high = rows["value"].iloc[1:].max() >= finding["value"]
        return CONTROL_FAILS if is_as_high else INCONCLUSIVE
    chance = 0.0 if pd.isna(finding["chance"]) else finding["chance"]
    claim = replace(CLAIMS["first_look"], null=chance)
    ends = finding["ci_low"], finding["ci_high"]
    return claim.verdict(*ends, control_high=highest_control(rows))
