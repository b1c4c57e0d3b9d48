"""Exact p-values by dealing rows again, and limits of a share of false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

from contamination.core.storage import hash_of
from contamination.core.verdicts import ALPHA

N_REDEALS = 9_999
N_UNITS = 3  # fewer say nothing about other units


def permutation_p(scores: np.ndarray, is_read: np.ndarray, key: tuple = ()) -> float:
    """p of a set: (1 + re-deals of its rows with an AUC at least as high) / 10,000.

    Exact whatever the base model, the texts and the ties (mid-ranks), for which rows are read was
    dealt at random. Both arrays have shape (n_rows,). Sets of one size share 9,999 re-deals and
    apply them to their rows in an order of their own, drawn from ``key``.
    """
    return float(permutation_p_of_sets([scores], [is_read], [key])[0])


def permutation_p_of_sets(
    scores: Sequence[np.ndarray], is_read: Sequence[np.ndarray], keys: Sequence[tuple]
) -> np.ndarray:
    """``permutation_p`` of many sets, shape (n_sets,); one product for all sets of one size."""
    ranks = [doubled_ranks(values) for values in scores]
    of_size: dict[tuple[int, int], list[int]] = {}
    for number, (values, of) in enumerate(zip(ranks, is_read, strict=True)):
        of_size.setdefault((len(values), int(np.sum(of))), []).append(number)
    p_values = np.empty(len(ranks))
    for size, numbers in of_size.items():
        deals = _redeals(*size)
        dealt = np.stack([ranks[n][_order_of(keys[n], size[0])] for n in numbers], axis=1)
        found = np.array([ranks[n][is_read[n]].sum() for n in numbers])
        n_as_high = np.sum(deals @ dealt.astype(deals.dtype) >= found, axis=0)
        p_values[numbers] = (1 + n_as_high) / (1 + N_REDEALS)
    return p_values


def doubled_ranks(scores: np.ndarray) -> np.ndarray:
    """Twice the mid-rank of each score: whole numbers, so that their sums compare exactly.

    >>> doubled_ranks(np.array([0.3, 0.1, 0.3]))
    array([5., 2., 5.])
    """
    return 2 * stats.rankdata(scores)


def _order_of(key: tuple, n_rows: int) -> np.ndarray:
    seed = int(hash_of([str(part) for part in key])[:16], 16)
    return np.random.default_rng(seed).permutation(n_rows)


@lru_cache(maxsize=8)
def _redeals(n_rows: int, n_read: int) -> np.ndarray:
    places = np.random.default_rng([n_rows, n_read]).random((N_REDEALS, n_rows)).argsort(axis=1)
    # Sums below 2^24 are exact in single precision, which is twice as fast.
    return (places < n_read).astype(np.float32 if n_rows < 4_000 else float)


def clopper_pearson(n_found: Any, n: Any, tail: Any) -> tuple[Any, Any]:
    """Exact limits of shares, ``tail`` outside each; n may be a fraction, and for 0 gives NaN."""
    n = np.where(np.equal(n, 0), np.nan, n)
    low = np.where(np.equal(n_found, 0), 0 * n, stats.beta.ppf(tail, n_found, n - n_found + 1))
    high = np.where(np.equal(n_found, n), 1.0, stats.beta.ppf(1 - tail, n_found + 1, n - n_found))
    return low[()], high[()]


def binomial_p(n_found: float, n: float, share: float) -> float:
    """Exact one-sided p of "the share is at most ``share``"; both numbers may be fractions.

    It agrees with the lower limit of ``clopper_pearson``: p lies below the tail where that limit
    lies above the share. NaN for NaN.

    >>> round(binomial_p(2, 10, 0.05), 4)  # 1 - 0.95^10 - 10 * 0.05 * 0.95^9
    0.0861
    """
    if n_found == 0:
        return 1.0
    return float(stats.beta.cdf(share, n_found, n - n_found + 1))


def effective_number(flags: np.ndarray, units: np.ndarray) -> float:
    """Number of independent sets that tell as much as these, where units were drawn, not sets.

    Sets of a unit may agree, for they share a base and often rows. So the number of sets is
    divided by the design effect (variance of the share between units over that of independent
    sets, at least 1) and multiplied by a squared ratio of t quantiles for few units (Korn &
    Graubard 1998). Both arrays have shape (n_sets,); NaN below three units.
    """
    flags, units = np.asarray(flags, dtype=float), np.unique(units, return_inverse=True)[1]
    n, n_units = flags.size, len(set(units))
    if n_units < N_UNITS:
        return np.nan
    rate = flags.mean()
    between = np.sum(np.bincount(units, flags - rate) ** 2) / n**2 * n_units / (n_units - 1)
    independent = rate * (1 - rate) / (n - 1)
    effect = max(1.0, between / independent) if independent > 0 else 1.0
    return float(n / effect * np.divide(*stats.t.ppf(1 - ALPHA, [n - 1, n_units - 1])) ** 2)


def false_alarm_limits(flags: np.ndarray, units: np.ndarray) -> tuple[float, float]:
    """One-sided 95 % lower and upper limit of a share of flags, where units were drawn, not sets.

    Clopper-Pearson at the effective number of sets; plain Clopper-Pearson with one set a unit. A
    bootstrap of units has no width where nothing is flagged. Both arrays have shape (n_sets,);
    NaN below three units.
    """
    n_effective = effective_number(flags, units)
    if np.isnan(n_effective):
        return np.nan, np.nan
    return clopper_pearson(np.mean(flags) * n_effective, n_effective, ALPHA)
