"""AUCs of rows under models when both could have been others: estimates, intervals, p-values.

The same rows are scored under every base model, so rows and models are crossed. An interval over
models alone treats the rows as given and covers too little. The squared standard error here is
the sum of two, of a jackknife over models and of one over groups of rows. What belongs to neither
is counted twice, so the interval is rather too wide than too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from contamination.core.statistics import CONFIDENCE
from contamination.study.assignment import HELD_OUT
from contamination.study.protocol import N_REDEALS, permutation_p_of_sets

N_ROW_GROUPS = 30
LEVEL_TAIL = (1 - CONFIDENCE) / 2  # outside each end of an interval
SMALLEST_ERROR = 1e-12  # what is below is no spread but rounding


@dataclass(frozen=True)
class CrossedScores:
    """Scores of a pool of rows under models, and what each model saw of each row.

    ``scores`` and ``copies`` have shape (n_models, n_rows); ``copies`` is 0 for a row that the
    model does not see. A higher score says "seen".
    """

    name: str  # of the benchmark and pool; seeds the re-deals
    scores: np.ndarray
    copies: np.ndarray

    def __post_init__(self) -> None:
        if self.scores.shape != self.copies.shape or self.scores.ndim != 2:
            raise ValueError(
                f"scores and copies need one shape (n_models, n_rows), got {self.scores.shape} "
                f"and {self.copies.shape}"
            )
        if not np.isfinite(self.scores).all():
            raise ValueError(f"{self.name}: a score is undefined")

    def kept(self, models: np.ndarray, rows: np.ndarray) -> CrossedScores:
        """The same for some models and rows, given as masks."""
        return CrossedScores(self.name, self.scores[models][:, rows], self.copies[models][:, rows])


class Estimate(NamedTuple):
    """A mean AUC with its 95 % interval; where every AUC is 1 the interval is undefined."""

    value: float
    low: float
    high: float
    se_models: float
    se_rows: float


def auc_by_model(crossed: CrossedScores, dose: int) -> np.ndarray:
    """AUC of the rows at a dose against held-out rows under each model, shape (n_models,).

    ValueError if a model has no row at that dose, or none that is held out.
    """
    is_seen, is_held_out = crossed.copies == dose, crossed.copies == HELD_OUT
    n_seen, n_held_out = is_seen.sum(axis=1), is_held_out.sum(axis=1)
    if not (n_seen.all() and n_held_out.all()):
        raise ValueError(f"{crossed.name}: a model has no row at {dose} copies, or none held out")
    wins = [
        _wins(scores[seen], scores[held_out])
        for scores, seen, held_out in zip(crossed.scores, is_seen, is_held_out, strict=True)
    ]
    return np.array(wins) / (n_seen * n_held_out)


def _wins(seen: np.ndarray, held_out: np.ndarray) -> float:
    """Pairs in which the seen row scores higher; a tie counts one half."""
    ordered = np.sort(held_out)
    return (ordered.searchsorted(seen, "left") + ordered.searchsorted(seen, "right")).sum() / 2


def mean_auc(pools: Sequence[CrossedScores], dose: int) -> float:
    """Mean over models and then over pools of ``auc_by_model``."""
    return float(np.mean([auc_by_model(pool, dose).mean() for pool in pools]))


def jackknife_se(values: np.ndarray) -> float:
    """Standard error from estimates that each leave out one part, shape (n_parts,).

    >>> round(jackknife_se(np.array([1.0, 2.0, 3.0])), 4)  # sqrt(2 / 3 * 2)
    1.1547
    """
    n = len(values)
    return float(np.sqrt((n - 1) / n * np.sum((values - values.mean()) ** 2)))


class LeftOut(NamedTuple):
    """A mean over models, in the parts that the two jackknives need.

    ``by_model`` has shape (n_models,); ``without_rows``, shape (30, n_models), is the same where
    one group of rows at a time is left out. For a value under one model that does not depend on
    the other models, such as the AUC of a detector.
    """

    by_model: np.ndarray
    without_rows: np.ndarray

    def minus(self, other: LeftOut) -> LeftOut:
        """The difference under each model, paired."""
        return LeftOut(self.by_model - other.by_model, self.without_rows - other.without_rows)


def row_group(n_rows: int) -> np.ndarray:
    """The group of each row in the jackknife over rows, its number modulo 30; shape (n_rows,)."""
    return np.arange(n_rows) % N_ROW_GROUPS


def auc_left_out(crossed: CrossedScores, dose: int) -> LeftOut:
    """``auc_by_model``, and the same without each group of rows.

    ValueError where a model has no row at the dose, or where one group holds all of them.
    """
    groups = row_group(crossed.scores.shape[1])
    in_group = np.equal.outer(np.arange(N_ROW_GROUPS), groups).astype(float)
    by_model, without_rows = [], []
    for scores, copies in zip(crossed.scores, crossed.copies, strict=True):
        is_seen, is_held_out = copies == dose, copies == HELD_OUT
        # Half a win for a tie. Wins of rows of one group over held-out rows of another.
        wins = np.sign(np.subtract.outer(scores[is_seen], scores[is_held_out])) / 2 + 0.5
        wins = in_group[:, is_seen] @ wins @ in_group[:, is_held_out].T
        kept_wins = wins.sum() - wins.sum(axis=1) - wins.sum(axis=0) + wins.diagonal()
        n_seen, n_held_out = (in_group[:, of].sum(axis=1) for of in (is_seen, is_held_out))
        n_pairs = (n_seen.sum() - n_seen) * (n_held_out.sum() - n_held_out)
        if not n_pairs.all():
            raise ValueError(
                f"{crossed.name}: a model has too few rows at {dose} copies, or held out"
            )
        by_model.append(wins.sum() / (n_seen.sum() * n_held_out.sum()))
        without_rows.append(kept_wins / n_pairs)
    return LeftOut(np.array(by_model), np.array(without_rows).T)


def mean_left_out(parts: Sequence[LeftOut]) -> LeftOut:
    """The mean over pools of the same models."""
    return LeftOut(*(np.mean(arrays, axis=0) for arrays in zip(*parts, strict=True)))


def mean_auc_left_out(pools: Iterable[CrossedScores], dose: int) -> LeftOut:
    """``auc_left_out``, averaged over pools of the same models."""
    return mean_left_out([auc_left_out(pool, dose) for pool in pools])


def interval_left_out(parts: LeftOut, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    """The mean over models with the interval of ``crossed_interval``, without computing it anew."""
    n = len(parts.by_model)
    value = float(parts.by_model.mean())
    without_model = (n * value - parts.by_model) / max(n - 1, 1)
    return _estimate(value, without_model, parts.without_rows.mean(axis=1), bounds)


def crossed_interval(
    pools: Sequence[CrossedScores],
    estimate: Callable[[Sequence[CrossedScores]], float],
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """An estimate with an interval for other models and other rows of the same kind.

    Squared standard error: that of a jackknife that leaves out one model at a time, plus that of
    one that leaves out one of 30 groups of rows at a time (by the row's number). t interval with
    as many degrees of freedom as models, less one. ``estimate`` sees what is kept, so a method
    that uses other models as shadows loses the model that is left out.

    Args:
        pools: of the same models in the same order.
        estimate: of pools, such as ``mean_auc`` at one dose.
        bounds: what the estimate can be; the interval is cut there.
    """
    n_models = len(pools[0].scores)
    every_row = [np.ones(pool.scores.shape[1], bool) for pool in pools]
    without_model = [] if n_models > 1 else [np.nan]
    for left_out in range(n_models) if n_models > 1 else ():
        models = np.arange(n_models) != left_out
        parts = zip(pools, every_row, strict=True)
        without_model.append(estimate([pool.kept(models, rows) for pool, rows in parts]))
    without_rows = []
    models = np.ones(n_models, bool)
    for group in range(N_ROW_GROUPS):
        kept = [pool.kept(models, row_group(pool.scores.shape[1]) != group) for pool in pools]
        without_rows.append(estimate(kept))
    return _estimate(estimate(pools), np.array(without_model), np.array(without_rows), bounds)


def _estimate(
    value: float, without_model: np.ndarray, without_rows: np.ndarray, bounds: tuple[float, float]
) -> Estimate:
    errors = jackknife_se(without_model), jackknife_se(without_rows)
    error = float(np.hypot(*errors))
    # Rounding leaves a trace of 1e-17 where every AUC is the same.
    if error < SMALLEST_ERROR or len(without_model) < 2:
        return Estimate(value, np.nan, np.nan, *errors)
    half = stats.t.ppf(1 - LEVEL_TAIL, len(without_model) - 1) * error
    low, high = np.clip([value - half, value + half], *bounds)
    return Estimate(value, float(low), float(high), *errors)


def permutation_p_by_model(crossed: CrossedScores, dose: int) -> np.ndarray:
    """Exact p under each model: rows at the dose and held-out rows re-dealt, shape (n_models,).

    All other rows stay where they are.
    """
    is_tested = (crossed.copies == dose) | (crossed.copies == HELD_OUT)
    models = range(len(crossed.scores))
    return permutation_p_of_sets(
        [crossed.scores[n][is_tested[n]] for n in models],
        [crossed.copies[n][is_tested[n]] == dose for n in models],
        [(crossed.name, dose, n) for n in models],
    )


def stouffer(p_values: np.ndarray) -> float:
    """One p of independent ones by Stouffer's method with equal weights.

    >>> round(stouffer(np.array([0.05, 0.05])), 3)
    0.01
    """
    # A p of 1 has no finite quantile; the next smaller one that re-deals can give has.
    largest = 1 - 1 / (1 + N_REDEALS)
    return float(stats.combine_pvalues(np.minimum(p_values, largest), method="stouffer").pvalue)


def smallest_stouffer(n: int) -> float:
    """The smallest p that ``stouffer`` can give for so many p-values by re-dealing."""
    return stouffer(np.full(n, 1 / (1 + N_REDEALS)))
