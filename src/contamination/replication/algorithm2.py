"""Algorithm 2: does a judge find replicas? (section 3.2, and the human rule of section 4)

A partition is labelled contaminated with at least one exact match or at least
two near-exact matches among its instances.

How often that rule flags a partition follows in closed form from a model: the
language model replicates each of k instances with the same chance, on its own;
of replicas a share is exact, the others near-exact. The judge errs with one
chance in both directions: a replica goes unseen, or another completion is
called near-exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from contamination.models.judging import EXACT, NEAR_EXACT

MARK_EXACT, MARK_NEAR_EXACT, MARK_NONE = "✓", "✓✓", "×"
MIN_EXACT, MIN_NEAR_EXACT = 1, 2

SIZES = (10, 30, 100)
SHARES_PCT = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
ERRORS_PCT = (0.0, 1.0, 5.0)


def partition_mark(labels: Sequence[str]) -> str:
    """Table 2's mark: ✓ for an exact match, ✓✓ for two near-exact ones, × for neither.

    Where both hold the paper prints one mark; ✓✓ stands where near-exact
    matches decide alone.
    """
    labels = list(labels)
    if labels.count(EXACT) >= MIN_EXACT:
        return MARK_EXACT
    if labels.count(NEAR_EXACT) >= MIN_NEAR_EXACT:
        return MARK_NEAR_EXACT
    return MARK_NONE


def is_contaminated(labels: Sequence[str]) -> bool:
    """Algorithm 2's decision for one partition."""
    return partition_mark(labels) != MARK_NONE


def flag_probability(k: int, share: float, judge_error: float, exact: float) -> float:
    """Chance that at least one exact or two near-exact matches are found among k instances.

    ``share`` of instances is replicated by the model, ``judge_error`` is the chance of an
    error on one completion, ``exact`` the share of exact ones among replicas; each 0 to 1.

    >>> round(flag_probability(10, 0.0, 0.0, 0.5), 4), round(flag_probability(1, 1.0, 0.0, 0.5), 4)
    (0.0, 0.5)
    """
    for value in (share, judge_error, exact):
        if not 0 <= value <= 1:
            raise ValueError(f"shares and errors must be in 0 to 1, got {value}")
    p_exact = share * (1 - judge_error) * exact
    p_near = share * (1 - judge_error) * (1 - exact) + (1 - share) * judge_error
    p_none = 1 - p_exact - p_near
    # Algorithm 2 stays silent when nothing is found, or one near-exact match alone.
    return float(1 - p_none**k - k * p_near * p_none ** (k - 1))


def operating_curves(exact: float) -> pd.DataFrame:
    """Rows of ``operating_curves.csv``: flag_probability by k, share and judge error."""
    return pd.DataFrame(
        {
            "k": k,
            "true_share_pct": share,
            "judge_error_pct": error,
            "exact_share_pct": 100 * exact,
            "flag_probability": flag_probability(k, share / 100, error / 100, exact),
        }
        for k in SIZES
        for error in ERRORS_PCT
        for share in SHARES_PCT
    )
