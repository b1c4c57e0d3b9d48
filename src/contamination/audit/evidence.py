"""What the methods say about one model and one dataset, each beside its control.

A row is one statistic of one method. Its verdict is one of the five of ``core.verdicts`` and
no stronger than the control allows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from contamination.core.verdicts import (
    CLAIMS,
    NOT_RUN,
    Claim,
    check_verdicts,
)


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
    verdict: str  # see :func:`verdict`
    note: str = ""  # what a reader must know, such as why it was not run
    p: float = math.nan  # of chance, before any correction; NaN where there is no test

    def __post_init__(self) -> None:
        check_verdicts([self.verdict])


def verdict(
    ci_low: float,
    ci_high: float,
    chance: float,
    control: tuple[float, float] | None,
    n_models: int | None = None,
    claim: Claim = CLAIMS["audit"],
) -> str:
    """The strongest verdict that an interval, chance and its control allow.

    ``chance`` is what no memory gives by the statistic's construction; ``control`` the control's
    interval, or its value twice where it has none; ``n_models`` the number of models where the
    interval is one over models. Without a control (NaN twice) nothing is shown.
    """
    claim = replace(claim, null=chance)
    return claim.verdict(ci_low, ci_high, control=control, n_models=n_models)


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
