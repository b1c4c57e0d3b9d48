"""How many rows does an auditor need? Exploratory: asked after the scores were known.

An audit compares seen with held-out rows by a rank test, one-sided at the 5 % level. How many rows
it needs follows from the AUC by Noether's formula (1987). The distance d' is that of two normal
distributions with one standard deviation: d' = sqrt(2) * z(AUC), z the normal quantile.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from contamination.core.statistics import CHANCE
from contamination.core.verdicts import ALPHA

POWER = 0.8
ROWS_OF_AN_AUDIT = (60, 200)  # of each kind, whose power the table has


def distance(auc: ArrayLike) -> np.ndarray:
    """d' of an AUC, in standard deviations.

    >>> distance([0.5, 0.76]).round(2).tolist()
    [0.0, 1.0]
    """
    return np.sqrt(2) * stats.norm.ppf(auc)


def rows_needed(auc: ArrayLike, power: float = POWER) -> np.ndarray:
    """Rows of each kind that a rank test needs, if all rows of one kind were seen.

    Of a dataset of which a share s was seen, about 1 / s squared times as many are needed.
    Infinite for an AUC of one half or less.

    >>> np.ceil(rows_needed([0.5, 0.55, 0.9])).tolist()
    [inf, 413.0, 7.0]
    """
    above = np.maximum(np.asarray(auc) - CHANCE, 0)
    wanted = stats.norm.ppf(1 - ALPHA) + stats.norm.ppf(power)
    with np.errstate(divide="ignore"):
        return (wanted / above) ** 2 / 6


def power(auc: ArrayLike, n_rows: int) -> np.ndarray:
    """Chance that such a test finds rows, with so many rows of each kind, 0 to 1."""
    above = np.asarray(auc) - CHANCE
    return stats.norm.sf(stats.norm.ppf(1 - ALPHA) - above * np.sqrt(6 * n_rows))


def rows_table(aucs: pd.DataFrame) -> pd.DataFrame:
    """What each AUC of a table asks of an auditor.

    Args:
        aucs: detector, models, copies, auc, ci_low, ci_high.

    Returns:
        the same with d_prime, d_prime_per_copy, rows_needed (80 % power), rows_low and rows_high
        (at the ends of the interval; infinite where it reaches one half), and power_60 and
        power_200.
    """
    d = distance(aucs["auc"])
    table = aucs.assign(d_prime=d, d_prime_per_copy=d / aucs["copies"])
    ends = {"rows_needed": "auc", "rows_low": "ci_high", "rows_high": "ci_low"}
    table = table.assign(**{name: np.ceil(rows_needed(aucs[of])) for name, of in ends.items()})
    return table.assign(**{f"power_{n}": power(aucs["auc"], n) for n in ROWS_OF_AN_AUDIT})
