"""What an interval carries, in one word of a table."""

from __future__ import annotations

import numpy as np

CANNOT_TELL, NOT_RUN = "cannot be told", "not run"
_ROUNDING = 1e-9  # a mean of folds at chance is 0.49999999999999994


def verdict(
    low: float, high: float, null: float = 0.0, above: str = "above", below: str = "below"
) -> str:
    """Where an interval lies: above or below ``null``, or neither ("cannot be told").

    An undefined interval, such as that of an empty group, is "not run".

    >>> verdict(0.6, 0.8, 0.5), verdict(-0.2, 0.1), verdict(-2, -1, below="worse")
    ('above', 'cannot be told', 'worse')
    """
    if np.isnan(low) or np.isnan(high):
        return NOT_RUN
    if low > null + _ROUNDING:
        return above
    return below if high < null - _ROUNDING else CANNOT_TELL
