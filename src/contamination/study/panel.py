"""What the methods say about one model and one dataset, each beside its control.

A row is one statistic of one method. Its verdict is one of the five of ``core.verdicts`` and
no stronger than the control allows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from contamination.core.claims import CLAIMS
from contamination.core.families import correct_family
from contamination.core.statistics import end_p
from contamination.core.verdicts import (
    FEWEST_MODELS,
    INCONCLUSIVE,
    NOT_RUN,
    SUPPORTED,
    Claim,
    check_verdicts,
)

CONTROL_ENDS = ("control_low", "control_high")


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
    claim: Claim = CLAIMS["evidence"],
) -> str:
    """The strongest verdict that an interval, chance and its control allow.

    ``chance`` is what no memory gives by the statistic's construction; ``control`` the control's
    interval, or its value twice where it has none; ``n_models`` the number of models where the
    interval is one over models. Without a control (NaN twice) nothing is supported.
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


def judge_evidence(rows: Iterable[dict]) -> pd.DataFrame:
    """Rows of ``evidence.csv`` with their verdicts, corrected as one family.

    Args:
        rows: fields of :class:`Evidence` without the verdict, and chance: what no memory
            gives; where it has one control_low and control_high, the control's interval, with
            which the verdict compares; n_models where the interval is one over models;
            may_support, whether the method can support the claim at all, where that hangs on
            other controls of its; further columns, which stay.

    Returns:
        The fields of :class:`Evidence`, control_low and control_high (empty where there is
        none), the others, and p_adjusted: Holm's over all rows. p is empty where a row could not
        support its claim whatever its value: without a control, over few models, or without
        ``may_support``.
    """
    unsaid = {"note": "", "n_models": math.nan, "may_support": True}
    unsaid |= dict.fromkeys(CONTROL_ENDS, math.nan)
    table = pd.DataFrame([unsaid | row for row in rows])
    low, high = (table[end].fillna(table["control_value"]) for end in CONTROL_ENDS)
    limits = zip(low, high, strict=True)
    makes_test = table["may_support"] & high.notna() & ~table["n_models"].lt(FEWEST_MODELS)
    tests = table["value"], table["ci_low"], table["ci_high"], table["chance"]
    df = table["n_models"].fillna(math.inf) - 1
    p_values = [end_p(*of_row) for of_row in zip(*tests, df, strict=True)]
    table["p"] = pd.Series(p_values, table.index).where(makes_test)
    n_models = [None if math.isnan(n) else int(n) for n in table.pop("n_models")]
    ends = table["ci_low"], table["ci_high"], table.pop("chance"), limits, n_models
    found = pd.Series([verdict(*of_row) for of_row in zip(*ends, strict=True)])
    found = found.mask(found.eq(SUPPORTED) & ~table.pop("may_support"), INCONCLUSIVE)
    table = correct_family(table.assign(verdict=found))
    first = [*(field.name for field in dataclasses.fields(Evidence)), *CONTROL_ENDS]
    return table[[*first, *table.columns.difference(first, sort=False)]]
