"""Tests of a mean difference between guided and general completions, as in Time Travel, appendix B.

Exact where the paper samples: overlap scores are rounded to two decimals, so the distribution of
their resampled sum has few values and can be computed. The sign-flip test is our control.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from contamination.core.statistics import CONFIDENCE

HUNDREDTHS = 100


def _hundredths(values: np.ndarray) -> np.ndarray:
    scaled = np.asarray(values, dtype=float) * HUNDREDTHS
    rounded = np.rint(scaled)
    if scaled.ndim != 1 or scaled.size == 0:
        raise ValueError(f"a test needs one score per instance, got shape {scaled.shape}")
    if not np.allclose(scaled, rounded, atol=1e-6):
        raise ValueError("exact bootstrap tests need scores rounded to two decimals")
    return rounded.astype(int)


def _differences(guided: np.ndarray, general: np.ndarray) -> np.ndarray:
    guided, general = _hundredths(guided), _hundredths(general)
    if guided.shape != general.shape:
        raise ValueError(f"paired scores differ in number: {guided.size} and {general.size}")
    return guided - general


def _distribution_of_sum(values: np.ndarray) -> tuple[int, np.ndarray]:
    """Smallest sum and probabilities of the sum of len(values) draws with replacement."""
    low = int(values.min())
    single = np.bincount(values - low) / values.size
    total = np.ones(1)
    for _ in range(values.size):
        total = np.convolve(total, single)
    return low * values.size, total


def paired_bootstrap_p(guided: np.ndarray, general: np.ndarray) -> float:
    """One-sided p of the paired bootstrap, exactly: P(mean difference of a resample <= 0).

    What 10,000 random resamples approximate, computed without a seed by convolution.
    Instances are resampled together with both their scores, shape (n,), two decimals. The
    value is exact for the bootstrap, which is itself no exact test: with ten
    positive differences it is 0. ``sign_flip_p`` keeps its level. ValueError if the two differ
    in number, are empty, or have more than two decimals.
    """
    low, probabilities = _distribution_of_sum(_differences(guided, general))
    sums = low + np.arange(probabilities.size)
    return float(min(1.0, probabilities[sums <= 0].sum()))


def unpaired_bootstrap_p(guided: np.ndarray, general: np.ndarray) -> float:
    """Exact one-sided p when the two samples are resampled independently of one another.

    Both arrays have shape (n,) and two decimals. ValueError if they have more, differ in size or
    are empty.
    """
    low_guided, guided_sums = _distribution_of_sum(_hundredths(guided))
    low_general, general_sums = _distribution_of_sum(-_hundredths(general))
    if len(guided) != len(general):
        raise ValueError(f"samples differ in size: {len(guided)} and {len(general)}")
    difference = np.convolve(guided_sums, general_sums)
    sums = low_guided + low_general + np.arange(difference.size)
    return float(min(1.0, difference[sums <= 0].sum()))


def sampled_paired_bootstrap_p(
    guided: np.ndarray, general: np.ndarray, n_resamples: int = 10_000, seed: int = 0
) -> float:
    """The same p from random resamples, as the paper computes it; it varies with the seed."""
    difference = _differences(guided, general)
    rng = np.random.default_rng(seed)
    items = rng.integers(0, difference.size, (n_resamples, difference.size), dtype=np.int32)
    return float((difference[items].sum(axis=1) <= 0).mean())


def sign_flip_p(guided: np.ndarray, general: np.ndarray) -> float:
    """Exact one-sided p of the sign-flip test of paired differences; scores have two decimals.

    Under the null either instruction could have given either score, so every
    difference is as likely with one sign as with the other; p is the share of
    the 2^n sign patterns whose sum is at least the observed one. Unlike the
    bootstrap it keeps its level at ten instances, and it cannot fall below 2^-n.
    """
    differences = _differences(guided, general)
    sizes = np.abs(differences)
    patterns = np.ones(1)
    for size in sizes:
        flipped = np.zeros(2 * size + 1)
        flipped[[0, -1]] += 0.5
        patterns = np.convolve(patterns, flipped if size else np.ones(1))
    sums = np.arange(patterns.size) - sizes.sum()
    return float(min(1.0, patterns[sums >= differences.sum()].sum()))


def smallest_sign_flip_p(guided: np.ndarray, general: np.ndarray) -> float:
    """The smallest p that ``sign_flip_p`` can give for differences of these sizes.

    One sign pattern of 2^n has the largest sum, whatever the sizes and ties among them, if n
    counts the differences that are not zero: a zero has no sign.

    >>> smallest_sign_flip_p([0.5, 0.7, 0.4], [0.2, 0.4, 0.4])
    0.25
    """
    return float(2.0 ** -np.count_nonzero(_differences(guided, general)))


def paired_bootstrap_interval(guided: np.ndarray, general: np.ndarray) -> tuple[float, float]:
    """95 % percentile interval of the mean paired difference, by the exact bootstrap.

    Scores have two decimals and shape (n,). With ten instances it is narrower than it should be.
    """
    differences = _differences(guided, general)
    low, probabilities = _distribution_of_sum(differences)
    places = np.searchsorted(probabilities.cumsum(), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    first, last = (low + places) / (HUNDREDTHS * differences.size)
    return float(first), float(last)


def chance_of_significance(p: float, n_resamples: int = 10_000, alpha: float = 0.05) -> float:
    """Chance over seeds that random resampling reports p <= alpha when the exact p is ``p``."""
    return float(stats.binom.cdf(np.floor(alpha * n_resamples + 1e-9), n_resamples, p))
