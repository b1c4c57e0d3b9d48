"""A list of rows that a model saw, with a bound on the share of false names on it.

Conformal p-values against held-out rows, then Benjamini and Hochberg's procedure, as in
arXiv:2510.09717. It wraps any score of rows that is not learned from membership.
"""

from __future__ import annotations

import numpy as np
from scipy import stats


def conformal_p(scores: np.ndarray, calibration: np.ndarray) -> np.ndarray:
    """p of each row: (1 + calibration rows that score at least as high) / (1 + their number).

    Valid if the row and the calibration rows are exchangeable where the row was not seen. Both
    arguments are scores, higher for "seen"; shape (n_rows,) and (n_calibration,).

    >>> conformal_p(np.array([5.0, 1.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [0.25, 1.0]
    """
    ordered = np.sort(calibration)
    n_as_high = len(ordered) - np.searchsorted(ordered, scores, side="left")
    return (1 + n_as_high) / (1 + len(ordered))


def named_rows(p_values: np.ndarray, q: float) -> np.ndarray:
    """Which rows are on the list at a false-discovery rate of at most q; shape (n_rows,)."""
    return stats.false_discovery_control(p_values) <= q
