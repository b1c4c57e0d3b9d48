"""From quiz answers to a contamination interval (DCQ, sections 3.2 and 3.3).

A quiz has five choices: A to D are texts, E is "none of the provided options".
The *modified quiz* holds four perturbations and no original; it shows which
positions a model avoids. The *standard quiz* puts the original at one of those
least preferred positions, once for each of them.

Answers are letters; whatever is not a letter from A to E (an empty string, an
undefined value) is an unusable answer and stays in the denominator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from contamination.core.statistics import percentile_interval, share_interval

POSITIONS = ("A", "B", "C", "D")
CHOICES = (*POSITIONS, "E")
DRAWS_AT_A_TIME = 2**18  # of a bootstrap; 2 MB in each of several arrays


def least_preferred_positions(counts: Mapping[str, int], n: int) -> tuple[str, ...]:
    """Positions chosen fewer than ceil(n / 5) times in the modified quiz (section 3.2), maybe none.

    ``n`` counts quizzes asked, answered or not; E is no candidate.
    """
    threshold = math.ceil(n / len(CHOICES))
    return tuple(position for position in POSITIONS if counts.get(position, 0) < threshold)


def positions_to_quiz(counts: Mapping[str, int], n: int) -> tuple[str, ...]:
    """Positions of the standard quizzes: the least preferred, or all four when there is none.

    The paper leaves the second case open; the authors' code uses all of A to D.
    """
    return least_preferred_positions(counts, n) or POSITIONS


@dataclass(frozen=True)
class Assessment:
    """Contamination of one partition; shares are 0 to 1.

    ``kappa`` may be negative and is undefined when the modified quiz chose the
    best position every time; ``second`` is undefined with a single position.
    """

    n: int
    least_preferred: tuple[str, ...]
    best_position: str
    second_position: str
    maximum: float
    kappa: float
    second: float
    minimum: float


def assess(
    modified_answers: Sequence[str], standard_answers: Mapping[str, Sequence[str]]
) -> Assessment:
    """Minimum and maximum contamination of one partition (section 3.3), one answer per instance.

    Maximum: the largest share of right answers over the standard quizzes.
    Minimum: the larger of the second-largest share and Cohen's kappa
    (right - b) / (n - b), b = how often the modified quiz chose the best
    position. A tie for a position goes to the smaller b.

    Raises:
        ValueError: if there are no instances, the numbers of answers differ,
            or a position that had to be quizzed was not.
    """
    n = len(modified_answers)
    if n == 0:
        raise ValueError("no quiz was answered: the partition is empty")
    for position, answers in standard_answers.items():
        if len(answers) != n:
            raise ValueError(f"{n} modified quizzes but {len(answers)} standard ones at {position}")
    chosen = {position: [*modified_answers].count(position) for position in POSITIONS}
    quizzed = positions_to_quiz(chosen, n)
    missing = [position for position in quizzed if position not in standard_answers]
    if missing:
        raise ValueError(f"the standard quiz is missing at position {', '.join(missing)}")
    right = {position: [*standard_answers[position]].count(position) for position in quizzed}
    best, *others = sorted(quizzed, key=lambda position: (-right[position], chosen[position]))
    bias = chosen[best]
    kappa = (right[best] - bias) / (n - bias) if bias < n else math.nan
    second = right[others[0]] / n if others else math.nan
    return Assessment(
        n=n,
        least_preferred=least_preferred_positions(chosen, n),
        best_position=best,
        second_position=others[0] if others else "",
        maximum=right[best] / n,
        kappa=kappa,
        second=second,
        minimum=float(np.fmax(kappa, second)),
    )


@dataclass(frozen=True)
class AssessmentBootstrap:
    """Minimum, maximum and kappa of many samples, shape (n_samples,), shares 0 to 1.

    A resample whose least preferred positions were never quizzed is undefined.
    """

    minimum: np.ndarray
    maximum: np.ndarray
    kappa: np.ndarray


def bootstrap_assessment(
    modified_answers: Sequence[str],
    standard_answers: Mapping[str, Sequence[str]],
    n_resamples: int = 10_000,
    seed: int = 0,
) -> AssessmentBootstrap:
    """Resample instances with all their answers, and redo the whole assessment.

    The choice of least preferred positions and of the best one varies along.
    Two limits, which the interval at the best position as found
    (``fixed_low_pct``) has not: a newly chosen position that was never quizzed is
    left out, and noise helps the best of several quizzes.
    """
    n = len(modified_answers)
    modified = np.array([[answer == p for p in POSITIONS] for answer in modified_answers], float)
    right = np.array(
        [[answer == p for answer in standard_answers.get(p, [""] * n)] for p in POSITIONS], float
    ).T
    was_quizzed = np.array([position in standard_answers for position in POSITIONS])
    columns = np.hstack([modified, right])
    counts = np.vstack([weights @ columns for weights in resample_counts(n, n_resamples, seed)])
    bias, n_right = np.hsplit(counts, [len(POSITIONS)])
    return levels_of_counts(bias, n_right, n, was_quizzed)


def levels_of_counts(
    bias: np.ndarray, right: np.ndarray, n: int, was_quizzed: np.ndarray | None = None
) -> AssessmentBootstrap:
    """The rules of ``assess`` on counts alone, for many samples of n instances at a time.

    ``bias``: how often A to D were chosen in the modified quiz, ``right``: right answers
    with the original there, both (n_samples, 4); ``was_quizzed``: may be used, shape (4,).
    """
    usable = usable_positions(bias, n, was_quizzed)
    # Most right answers first, then the smaller bias: one sortable number.
    ranked = np.where(usable, right * (n + 1) - bias, -np.inf)
    order = np.argsort(-ranked, axis=1, kind="stable")
    rows = np.arange(len(bias))
    best, runner_up = order[:, 0], order[:, 1]
    maximum = np.where(usable.any(axis=1), right[rows, best] / n, np.nan)
    second = np.where(usable.sum(axis=1) > 1, right[rows, runner_up] / n, np.nan)
    best_bias = bias[rows, best]
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = np.where(best_bias < n, (maximum * n - best_bias) / (n - best_bias), np.nan)
    return AssessmentBootstrap(np.fmax(kappa, second), maximum, kappa)


def usable_positions(bias: np.ndarray, n: int, was_quizzed: np.ndarray | None = None) -> np.ndarray:
    """Which of A to D count in each sample, as in ``positions_to_quiz``; shape (n_samples, 4)."""
    usable = bias < math.ceil(n / len(CHOICES))
    usable[~usable.any(axis=1)] = True
    return usable if was_quizzed is None else usable & was_quizzed


def resample_counts(n: int, n_resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each of n instances is drawn, shape (n_resamples, n) in several parts.

    How they are split changes no draw.
    """
    rng = np.random.default_rng(seed)
    at_a_time = max(1, DRAWS_AT_A_TIME // n)
    for start in range(0, n_resamples, at_a_time):
        n_rows = min(at_a_time, n_resamples - start)
        items = rng.integers(0, n, (n_rows, n))
        items += np.arange(n_rows)[:, None] * n
        yield np.bincount(items.ravel(), minlength=n_rows * n).reshape(n_rows, n)


def standard_answers_of(instances: pd.DataFrame) -> dict[str, list[str]]:
    """Answers per quizzed position, from columns answer_at_a to answer_at_d."""
    answers = {position: instances[f"answer_at_{position.lower()}"] for position in POSITIONS}
    return {position: of.tolist() for position, of in answers.items() if of.ne("").any()}


def assessment_row(
    instances: pd.DataFrame, n_resamples: int, seed: int
) -> dict[str, float | str | int]:
    """One row of ``dcq_published.csv``: the assessment of one model on one partition.

    ``instances`` holds modified_answer, answer_at_a to answer_at_d, and judge where
    replications were judged (else replication_pct is undefined).
    """
    modified = instances["modified_answer"].tolist()
    standard = standard_answers_of(instances)
    level = assess(modified, standard)
    bootstrap = bootstrap_assessment(modified, standard, n_resamples, seed)
    low, high = percentile_interval(bootstrap.maximum)
    min_low, min_high = percentile_interval(bootstrap.minimum)
    fixed_low, fixed_high = share_interval(round(level.maximum * level.n), level.n)
    replicated = instances["judge"].ne("inexact").mean() if "judge" in instances else math.nan
    counts = {
        "n": level.n,
        "n_valid": sum(answer in CHOICES for answer in modified),
        "least_preferred": "".join(level.least_preferred),
        "best_position": level.best_position,
    }
    shares = {
        "max_pct": level.maximum,
        "kappa_pct": level.kappa,
        "second_pct": level.second,
        "min_pct": level.minimum,
        "ci_low_pct": low,
        "ci_high_pct": high,
        "fixed_low_pct": fixed_low,
        "fixed_high_pct": fixed_high,
        "min_ci_low_pct": min_low,
        "min_ci_high_pct": min_high,
        "replication_pct": replicated,
    }
    # Without binary noise, so that 0.55 reads 55.0.
    return counts | {name: round(100 * float(share), 10) for name, share in shares.items()}
