"""Notebook 00: p-values and verdicts of its four findings, each next to its controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from contamination.core.statistics import end_p, with_p_adjusted, withdraw_verdicts
from contamination.core.verdicts import (
    CLAIMS,
    CONTROL_FAILS,
    OPEN,
    strongest,
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

    The first row of a method is its finding, the others are its controls. A finding is shown
    if its interval lies above chance (above 0 where there is none) and above the interval of
    every control, and if the p-value of chance stays at most 0.05 after the correction for all
    findings. If a control that reaches it lies above chance as well, the control fails; if the
    control's interval merely overlaps, the finding is open. Two models are one observation
    and have no interval: there the control fails where its value is as high, and all else is
    open.
    """
    verdicts = pd.Series("", table.index)
    for _, rows in table.groupby("method", sort=False):
        verdicts[rows.index[0]] = _verdict(rows)
    return withdraw_verdicts(verdicts, with_p(table)["p_adjusted"])


def highest_control(rows: pd.DataFrame) -> float:
    """The highest upper end of a method's controls, or their value where they have no interval."""
    return max(high for _, high in _controls(rows))


def _controls(rows: pd.DataFrame) -> Sequence[tuple[float, float]]:
    controls = rows.iloc[1:]
    ends = (controls[end].fillna(controls["value"]) for end in ("ci_low", "ci_high"))
    return list(zip(*ends, strict=True))


def _verdict(rows: pd.DataFrame) -> str:
    finding, controls = rows.iloc[0], _controls(rows)
    chance = 0.0 if pd.isna(finding["chance"]) else finding["chance"]
    if pd.isna(finding["ci_low"]):
        is_as_high = any(value >= finding["value"] and value > chance for value, _ in controls)
        return CONTROL_FAILS if is_as_high else OPEN
    claim = replace(CLAIMS["first_look"], null=chance)
    ends = finding["ci_low"], finding["ci_high"]
    return claim.verdict(*ends, control=strongest(controls, ends[0]))
