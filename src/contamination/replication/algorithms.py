"""Algorithms 1 and 2 of Time Travel, and the method that it is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from contamination.core.overlap import is_contained, normalised, rouge_l, words
from contamination.core.statistics import CONFIDENCE, holm
from contamination.core.verdicts import ALPHA
from contamination.models.judging import EXACT, NEAR_EXACT

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

    What the paper's 10,000 random resamples approximate, computed by convolution. Instances are
    resampled together with both their scores, shape (n,), two decimals. The value is exact for
    the bootstrap, which is itself no exact test: with ten positive differences it is 0.
    ValueError if the two differ in number, are empty, or have more than two decimals.
    """
    low, probabilities = _distribution_of_sum(_differences(guided, general))
    sums = low + np.arange(probabilities.size)
    return float(min(1.0, probabilities[sums <= 0].sum()))


def unpaired_bootstrap_p(guided: np.ndarray, general: np.ndarray) -> float:
    """Exact one-sided p when the two samples are resampled independently, as in the authors' code.

    Arguments and errors as of ``paired_bootstrap_p``.
    """
    low_guided, guided_sums = _distribution_of_sum(_hundredths(guided))
    low_general, general_sums = _distribution_of_sum(-_hundredths(general))
    difference = np.convolve(guided_sums, general_sums)
    sums = low_guided + low_general + np.arange(difference.size)
    return float(min(1.0, difference[sums <= 0].sum()))


def sign_flip_p(guided: np.ndarray, general: np.ndarray) -> float:
    """Exact one-sided p of the sign-flip test of paired differences; scores have two decimals.

    p is the share of the 2^n sign patterns whose sum is at least the observed one. Unlike the
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


METRICS = {"BLEURT": "bleurt", "ROUGE-L": "rouge"}
PARTITION = ["model", "dataset", "split"]
ENDS = ("ci_low", "ci_high")


def compare_instructions(instances: pd.DataFrame) -> pd.DataFrame:
    """Guided against general instruction, one row per model, partition and metric.

    Args:
        instances: model, dataset, split, and per metric a column
            ``<metric>_general`` and ``<metric>_guided`` (0 to 1, two decimals).

    Returns:
        p_paired (significant: at most 0.05), p_unpaired and p_sign_flip; ..._holm: all rows
        tested together. difference is guided minus general, with its interval (ci_low, ci_high;
        the exact paired bootstrap's); p_sign_flip_smallest is the smallest that p_sign_flip could
        have been, and can_reject says whether sign flips could be significant after Holm if every
        row had its smallest p.
    """
    rows = []
    for partition, group in instances.groupby(PARTITION, sort=False):
        for metric, prefix in METRICS.items():
            general = group[f"{prefix}_general"].to_numpy()
            guided = group[f"{prefix}_guided"].to_numpy()
            rows.append(
                dict(zip(PARTITION, partition, strict=True))
                | {"metric": metric, "n": len(group)}
                # Scores have two decimals, so that their sum is a whole number of hundredths.
                | {"mean_general": round(float(general.mean()), 10)}
                | {"mean_guided": round(float(guided.mean()), 10)}
                | {"p_paired": paired_bootstrap_p(guided, general)}
                | {"p_unpaired": unpaired_bootstrap_p(guided, general)}
                | {"p_sign_flip": sign_flip_p(guided, general)}
                | {"p_sign_flip_smallest": smallest_sign_flip_p(guided, general)}
                | {"difference": round(float((guided - general).mean()), 10)}
                | dict(zip(ENDS, paired_bootstrap_interval(guided, general), strict=True))
            )
    table = pd.DataFrame(rows)
    table["significant"] = table["p_paired"] <= ALPHA
    table["significant_unpaired"] = table["p_unpaired"] <= ALPHA
    table["significant_sign_flip"] = table["p_sign_flip"] <= ALPHA
    table["significant_holm"] = holm(table["p_paired"].to_numpy()) <= ALPHA
    table["significant_sign_flip_holm"] = holm(table["p_sign_flip"].to_numpy()) <= ALPHA
    table["can_reject"] = holm(table["p_sign_flip_smallest"].to_numpy()) <= ALPHA
    return table


MARK_EXACT, MARK_NEAR_EXACT, MARK_NONE = "✓", "✓✓", "×"
MIN_EXACT, MIN_NEAR_EXACT = 1, 2


def partition_mark(labels: Sequence[str]) -> str:
    """Table 2's mark: ✓ for an exact match, else ✓✓ for two near-exact ones, × for neither."""
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
    p_exact = share * (1 - judge_error) * exact
    p_near = share * (1 - judge_error) * (1 - exact) + (1 - share) * judge_error
    p_none = 1 - p_exact - p_near
    # Algorithm 2 stays silent when nothing is found, or one near-exact match alone.
    return float(1 - p_none**k - k * p_near * p_none ** (k - 1))


CONTAMINATED, SUSPICIOUS, NOT_CONTAMINATED = "contaminated", "suspicious", "not contaminated"
MIN_WORDS = 4  # chance writes shorter instances


def known_instances(first_instances: Sequence[str]) -> list[str]:
    """The first instances that are long enough to be told from chance; ValueError if none is."""
    known = [instance for instance in first_instances if len(words(instance)) >= MIN_WORDS]
    if not known:
        raise ValueError(f"no first instance of at least {MIN_WORDS} words to compare with")
    return known


def outcome(
    text: str,
    first_instances: Sequence[str],
    attributes: Sequence[str],
    near_exact_threshold: float,
) -> str:
    """Outcome for one split, from the model's text.

    ``attributes`` give the dataset away, compared without case; a line counts as an
    instance from a ROUGE-L of ``near_exact_threshold``. ValueError if no instance is
    long enough.
    """
    lines = [line for line in text.splitlines() if words(line)]
    for instance in known_instances(first_instances):
        if is_contained(instance, text):
            return CONTAMINATED
        if any(rouge_l(instance, line) >= near_exact_threshold for line in lines):
            return CONTAMINATED
    said = normalised(text)
    if any(normalised(attribute) in said for attribute in attributes if normalised(attribute)):
        return SUSPICIOUS
    return NOT_CONTAMINATED
