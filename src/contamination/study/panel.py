"""What the methods say about one model and one dataset, each beside its control.

A row is one statistic of one method. Its verdict comes from a closed list and is
no stronger than the control allows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

RECOGNISED = "recognised"
NOT_RECOGNISED = "not recognised"
CONTROL_FORBIDS = "control forbids"
CANNOT_TELL = "cannot tell"
NOT_RUN = "not run"
VERDICTS = (RECOGNISED, NOT_RECOGNISED, CONTROL_FORBIDS, CANNOT_TELL, NOT_RUN)


@dataclass(frozen=True)
class Evidence:
    """One statistic of one method for one model and one dataset; ValueError for another verdict."""

    model: str
    dataset: str
    truth: str  # what the model is known to have read of the dataset; "" where unknown
    method: str  # as the paper names it
    statistic: str  # what ``value`` is, a share or an AUC, 0 to 1, higher = read
    value: float  # NaN where not computed
    ci_low: float  # of its 95 % interval
    ci_high: float
    n: int  # what the interval resamples, such as instances
    control: str  # what could overturn the value
    control_value: float  # the same statistic of the control; NaN where there is none
    verdict: str  # one of ``VERDICTS``, see :func:`verdict`
    note: str = ""  # what a reader must know, such as why it was not run

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f'unknown verdict "{self.verdict}": one of {", ".join(VERDICTS)}')


def verdict(
    value: float, ci_low: float, chance: float, control_value: float, is_run: bool = True
) -> str:
    """The strongest verdict that a value, chance and its control allow.

    ``chance`` is what no memory gives by the statistic's construction; ``control_value`` the
    control's value, or the upper end of its interval where it has one.

    Returns:
        "not run"; "cannot tell" where value, interval or control is missing; "not recognised"
        where the interval reaches down to chance; "control forbids" where it lies above chance
        but reaches down to the control; else "recognised".
    """
    if not is_run:
        return NOT_RUN
    if any(math.isnan(number) for number in (value, ci_low, chance, control_value)):
        return CANNOT_TELL
    if ci_low <= chance:
        return NOT_RECOGNISED
    return CONTROL_FORBIDS if ci_low <= control_value else RECOGNISED


def not_run(model: str, dataset: str, truth: str, method: str, reason: str) -> Evidence:
    """The row of a method that could not be run, and why."""
    empty = math.nan
    return Evidence(
        model, dataset, truth, method, "", empty, empty, empty, 0, "", empty, NOT_RUN, reason
    )


def panel(rows: Sequence[Evidence]) -> pd.DataFrame:
    """Rows of ``evidence.csv``, the fields of :class:`Evidence`; ValueError if there is none."""
    if not rows:
        raise ValueError("no evidence: no method was run and none was said not to be")
    return pd.DataFrame([dataclasses.asdict(row) for row in rows])


def judged(rows: Iterable[dict]) -> pd.DataFrame:
    """Rows of ``evidence.csv`` with their verdicts.

    Args:
        rows: fields of :class:`Evidence` without the verdict, and chance: what no memory
            gives; where it has one control_high, the upper end of the control's interval,
            with which the verdict compares; further columns, which stay.

    Returns:
        The fields of :class:`Evidence`, control_high (empty where there is none), the others.
    """
    table = pd.DataFrame([{"note": "", "control_high": math.nan, **row} for row in rows])
    limits = table["control_high"].fillna(table["control_value"])
    values = zip(table["value"], table["ci_low"], table.pop("chance"), limits, strict=True)
    table["verdict"] = [verdict(*of_row) for of_row in values]
    first = [*(field.name for field in dataclasses.fields(Evidence)), "control_high"]
    return table[[*first, *table.columns.difference(first, sort=False)]]
