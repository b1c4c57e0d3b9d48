"""The tests of one question as a family: which verdicts their correction leaves."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from contamination.core.statistics import with_p_adjusted
from contamination.core.verdicts import ALPHA, CONTROL_FAILS, FOUND, OPEN, RULED_OUT, SMALL

NEED_AN_EFFECT = (*FOUND, CONTROL_FAILS)  # verdicts on values that lie above their null


def withdraw_verdicts(
    words: pd.Series, p_adjusted: pd.Series, needing: Collection[str] = NEED_AN_EFFECT
) -> pd.Series:
    """Verdicts without those that the correction of a family does not leave.

    If the corrected p of a row is above the level, its effect is not shown. The verdict is then
    open, or ruled out where the interval excludes an effect that matters. Rows without a test keep
    their verdict. ``needing`` names the verdicts that rest on the test.

    >>> words = pd.Series(["shown", "shown", "ruled out", "control fails"])
    >>> withdraw_verdicts(words, pd.Series([0.01, 0.2, 0.2, 0.2])).tolist()
    ['shown', 'open', 'ruled out', 'open']
    """
    is_lost = words.isin(needing) & p_adjusted.gt(ALPHA)
    return words.mask(is_lost & words.eq(SMALL), RULED_OUT).mask(is_lost & words.ne(SMALL), OPEN)


def correct_family(table: pd.DataFrame, needing: Collection[str] = NEED_AN_EFFECT) -> pd.DataFrame:
    """Rows with p and verdict: added is p_adjusted (Holm's), and the verdict is what it leaves.

    The rows are one family. A row without p is no test. ``needing`` as :func:`withdraw_verdicts`.
    """
    (table,) = with_p_adjusted(table)
    return table.assign(verdict=withdraw_verdicts(table["verdict"], table["p_adjusted"], needing))
