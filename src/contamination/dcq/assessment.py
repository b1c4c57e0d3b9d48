"""From quiz answers to a contamination interval (DCQ, sections 3.2 and 3.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

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

    Two limits, which the interval at the best position as found (``fixed_low_pct``) has not:
    a newly chosen position that was never quizzed is left out, and noise helps the best of
    several quizzes.
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
    usable = bias < math.ceil(n / len(CHOICES))  # as in ``positions_to_quiz``
    usable[~usable.any(axis=1)] = True
    if was_quizzed is not None:
        usable &= was_quizzed
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
    modified, standard = instances["modified_answer"].tolist(), standard_answers_of(instances)
    level = assess(modified, standard)
    bootstrap = bootstrap_assessment(modified, standard, n_resamples, seed)
    shares = {"max": level.maximum, "kappa": level.kappa, "second": level.second}
    shares["min"] = level.minimum
    ends = {
        "ci": percentile_interval(bootstrap.maximum),
        "fixed": share_interval(round(level.maximum * level.n), level.n),
        "min_ci": percentile_interval(bootstrap.minimum),
    }
    for name, (low, high) in ends.items():
        shares |= {f"{name}_low": low, f"{name}_high": high}
    is_judged = "judge" in instances
    shares["replication"] = instances["judge"].ne("inexact").mean() if is_judged else math.nan
    counts = {
        "n": level.n,
        "n_valid": sum(answer in CHOICES for answer in modified),
        "least_preferred": "".join(level.least_preferred),
        "best_position": level.best_position,
    }
    # Without binary noise, so that 0.55 reads 55.0.
    return counts | {f"{name}_pct": round(100 * float(of), 10) for name, of in shares.items()}


_ROUNDING = 1e-9
# Chances of A to E when an instance is not recognised. "As printed" is the modified
# quiz of AG News train, DCQ section 5.1.
BIAS_PROFILES = {
    "even, with E": (0.2, 0.2, 0.2, 0.2, 0.2),
    "even, never E": (0.25, 0.25, 0.25, 0.25, 0.0),
    "mostly E": (0.025, 0.025, 0.025, 0.025, 0.9),
    "A or E, as printed": (0.29, 0.0, 0.0, 0.0, 0.71),
    "all positions just under the limit": (0.18, 0.18, 0.18, 0.18, 0.28),
}


def estimator_table(
    profiles: Mapping[str, Sequence[float]],
    true_shares: Sequence[float],
    recognition_rates: Sequence[float],
    *,
    n: int,
    n_simulations: int,
    seed: int = 0,
) -> pd.DataFrame:
    """``dcq_estimator.csv``: how often [minimum, maximum] covers the truth.

    Instances that are recognised are so in every standard quiz. All others are
    guessed by the profile, anew in every quiz, and so are all in the modified one.

    Args:
        profiles: name to chances of A to E, which sum to 1.
        true_shares: contaminated shares, 0 to 1.
        recognition_rates: shares of these that are recognised, 0 to 1.
        n: instances of a partition.
        n_simulations: partitions of each row.

    Returns:
        covered_share (to a rounding error), over_share (minimum above the truth) and under_share
        (maximum below it) sum to 1; mean_miss_pct is points from the range to the truth;
        covered_with_kappa_share the coverage if kappa alone were the minimum.
    """
    generator = np.random.default_rng([seed, 4])
    rows = []
    for (name, chances), share, rate in product(profiles.items(), true_shares, recognition_rates):
        chances = np.asarray(chances, dtype=float)
        n_contaminated, of_positions = round(share * n), slice(len(POSITIONS))
        bias = generator.multinomial(n, chances, n_simulations)[:, of_positions]
        n_known = generator.binomial(n_contaminated, rate, (n_simulations, 1))
        guesses = generator.binomial(n - n_known, chances[None, of_positions])
        levels = levels_of_counts(bias.astype(float), (n_known + guesses).astype(float), n)
        truth = n_contaminated / n
        excess, lack = levels.minimum - truth, truth - levels.maximum
        above, below = excess > _ROUNDING, lack > _ROUNDING
        kappa_above = levels.kappa - truth > _ROUNDING
        rows.append(
            {"true_contamination_pct": 100 * n_contaminated / n, "recognition_pct": 100 * rate}
            | {"bias_profile": name, "n": n, "n_simulations": n_simulations}
            | {"mean_min_pct": 100 * levels.minimum.mean()}
            | {"mean_max_pct": 100 * levels.maximum.mean()}
            | {"covered_share": (~above & ~below).mean()}
            | {"over_share": above.mean(), "under_share": below.mean()}
            | {"mean_miss_pct": 100 * np.maximum(0, np.maximum(excess, lack)).mean()}
            | {"covered_with_kappa_share": (~kappa_above & ~below).mean()}
        )
    return pd.DataFrame(rows)
