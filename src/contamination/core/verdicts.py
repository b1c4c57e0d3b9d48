"""The six verdicts, and the one rule by which a test, an interval and a control lead to them.

A column ``verdict`` answers one claim, which ``claims.csv`` registers with the smallest effect
that would matter. A row that makes no claim is blank. Controls have a column ``holds`` (did the
control come out as it must?) and no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

SHOWN = "shown"  # the effect is there and survives its control
SMALL = "shown, but small"  # it is there, and smaller than the size that matters
RULED_OUT = "ruled out"  # an effect of the size that matters is ruled out
OPEN = "open"  # none of these
CONTROL_FAILS = "control fails"  # the control shows the same effect, or the groups differ anyway
NOT_RUN = "not run"  # the reason is in the next column
EXACT, NEAR_EXACT, INEXACT = "exact", "near-exact", "inexact"  # a completion, by who judges it
VERDICTS = (SHOWN, SMALL, RULED_OUT, OPEN, CONTROL_FAILS, NOT_RUN)
FOUND = (SHOWN, SMALL)  # the two that say that the effect is there
OF_AUDIT = (SHOWN, CONTROL_FAILS, OPEN, NOT_RUN)  # an audit's is the first that a method has

FEWEST_MODELS = 5  # an interval over fewer models spans them and says nothing about others
ALPHA = 0.05  # of a flag, and of every test after correction within its family


@dataclass(frozen=True)
class Claim:
    """What a verdict column claims, and the smallest effect that would matter."""

    text: str  # one sentence that a reader without context understands
    null: float = 0.5  # value without any effect, in the column's unit
    smallest_effect: float = 0.10  # above ``null``, in the same unit
    unit: str = "AUC"

    def verdict(
        self,
        low: float,
        high: float,
        *,
        p_adjusted: float | None = None,
        control: tuple[float, float] | None = None,
        n_models: int | None = None,
        can_reject: bool = True,
    ) -> str:
        """The verdict that a test, an interval and a control allow.

        Whether the effect is there, the test says, and the interval lies above ``null``. How large
        it is, the interval says alone.

        Args:
            low, high: 95 % interval of the effect, in ``unit``; NaN where it was not computed.
            p_adjusted: of the test of no effect, corrected within the notebook's family. None
                where nothing was tested besides the interval.
            control: interval of the control, or its value twice where it has none; NaN twice
                where a claim that needs a control has none. The claim needs the effect to lie
                above it. A control that lies above ``null`` as well shows the same effect; one
                whose interval reaches ``null`` is only too imprecise.
            n_models: models over which the interval is taken, where the claim is about models.
                None where it is about this one model, whose items are the sample.
            can_reject: whether the test could reach ``ALPHA`` at all with so few items.

        >>> claim = Claim("members score higher")
        >>> claim.verdict(0.55, 0.70), claim.verdict(0.52, 0.58), claim.verdict(0.45, 0.58)
        ('shown', 'shown, but small', 'ruled out')
        >>> claim.verdict(0.45, 0.70), claim.verdict(0.55, 0.70, p_adjusted=0.2)
        ('open', 'open')
        >>> claim.verdict(0.55, 0.70, control=(0.51, 0.56))
        'control fails'
        >>> claim.verdict(0.55, 0.70, control=(0.30, 0.80))
        'open'
        >>> claim.verdict(0.55, 0.70, n_models=2), claim.verdict(math.nan, math.nan)
        ('open', 'not run')
        """
        if math.isnan(low) or math.isnan(high):
            return NOT_RUN
        if (n_models is not None and n_models < FEWEST_MODELS) or not can_reject:
            return OPEN
        is_small = high < self.null + self.smallest_effect
        if low > self.null and (p_adjusted is None or p_adjusted <= ALPHA):
            if control is None or low > control[1]:
                return SMALL if is_small else SHOWN
            return CONTROL_FAILS if control[0] > self.null else OPEN
        return RULED_OUT if is_small else OPEN

    def holds(self, *args: Any, **kwargs: Any) -> bool | None:
        """Of a control, which must not show this effect; as :meth:`verdict`, None where it is open.

        >>> claim = Claim("the words tell the files apart")
        >>> claim.holds(0.45, 0.58), claim.holds(0.55, 0.70), claim.holds(0.45, 0.70)
        (True, False, None)
        """
        word = self.verdict(*args, **kwargs)
        return word == RULED_OUT if word in (RULED_OUT, *FOUND) else None


def strongest(controls: Iterable[tuple[float, float]], low: float) -> tuple[float, float] | None:
    """Of several controls, the interval to hold an effect against that begins at ``low``.

    The upper end is the highest one. The lower end is the highest among the controls that reach
    the effect, so that an imprecise control does not hide another that shows the same. Controls
    without an interval (NaN) are left out; None if no control is left.

    >>> strongest([(0.51, 0.70), (0.30, 0.90)], 0.65), strongest([(0.51, 0.60), (0.30, 0.90)], 0.65)
    ((0.51, 0.9), (0.3, 0.9))
    """
    known = [each for each in controls if not math.isnan(each[1])]
    reaching = [each for each in known if each[1] >= low] or known
    if not known:
        return None
    return max(begins for begins, _ in reaching), max(ends for _, ends in known)


def verdict_column(
    table: pd.DataFrame,
    claim: Claim,
    low: str = "ci_low",
    high: str = "ci_high",
    *,
    p_adjusted: str = "p_adjusted",
    control: tuple[str, str] | None = None,
    n_models: str = "",
    can_reject: Iterable[bool] | None = None,
    where: pd.Series | None = None,
) -> pd.Series:
    """The verdict of each row, by the names of the columns that :meth:`Claim.verdict` asks for.

    A row without a p (NaN) was not tested, which leaves the claim open. Rows outside ``where``
    make no claim and are blank.

    >>> rows = pd.DataFrame({"ci_low": [0.6] * 3, "ci_high": 0.8, "p_adjusted": [0.01, 0.2, None]})
    >>> verdict_column(rows, Claim("members score higher")).tolist()
    ['shown', 'open', 'open']
    """
    words = []
    able = [True] * len(table) if can_reject is None else list(can_reject)
    asked = [True] * len(table) if where is None else where.tolist()
    for row, can, is_asked in zip(table.to_dict("records"), able, asked, strict=True):
        if not is_asked:
            words.append("")
        elif pd.isna(row[p_adjusted]):
            words.append(OPEN)
        else:
            words.append(
                claim.verdict(
                    row[low],
                    row[high],
                    p_adjusted=row[p_adjusted],
                    control=(row[control[0]], row[control[1]]) if control else None,
                    n_models=row[n_models] if n_models else None,
                    can_reject=can,
                )
            )
    return pd.Series(words, table.index, dtype=object)


def _read_claims() -> dict[str, Claim]:
    claims = pd.read_csv(Path(__file__).with_name("claims.csv"), index_col="table")
    return {
        str(name): Claim(row["claim"], row["null"], row["smallest_effect"], row["unit"])
        for name, row in claims.iterrows()
    }


# By name of the table, without ".csv". The smallest effects were chosen after the first results
# had been seen, except where a protocol fixed them before.
CLAIMS = _read_claims()
