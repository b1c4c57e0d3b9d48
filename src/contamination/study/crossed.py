"""AUCs of rows under models when both could have been others: estimates, intervals, p-values.

The same rows are scored under every base model, so rows and models are crossed. An interval over
models alone treats the rows as given and covers too little. The squared standard error here is
the sum of two, of a jackknife over models and of one over groups of rows. What belongs to neither
is counted twice, so the interval is rather too wide than too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from contamination.core.statistics import LEVEL
from contamination.study.assignment import HELD_OUT
from contamination.study.protocol import redeal_p

N_ROW_GROUPS = 30
LEVEL_TAIL = (1 - LEVEL) / 2  # outside each end of an interval


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
    """AUC of the rows at a dose against held-out rows under each model, shape (n_models,)."""
    is_seen, is_held_out = crossed.copies == dose, crossed.copies == HELD_OUT
    n_seen, n_held_out = is_seen.sum(axis=1), is_held_out.sum(axis=1)
    if not (n_seen.all() and n_held_out.all()):
        raise ValueError(f"{crossed.name}: a model has no row at {dose} copies, or none held out")
    # Rows at other doses rank above all others, where they change nobody's rank.
    ranks = stats.rankdata(np.where(is_seen | is_held_out, crossed.scores, np.inf), axis=1)
    wins = (ranks * is_seen).sum(axis=1) - n_seen * (n_seen + 1) / 2
    return wins / (n_seen * n_held_out)


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
    without_model = []
    for left_out in range(n_models):
        models = np.arange(n_models) != left_out
        parts = zip(pools, every_row, strict=True)
        without_model.append(estimate([pool.kept(models, rows) for pool, rows in parts]))
    without_rows = []
    models = np.ones(n_models, bool)
    for group in range(N_ROW_GROUPS):
        kept = [
            pool.kept(models, np.arange(pool.scores.shape[1]) % N_ROW_GROUPS != group)
            for pool in pools
        ]
        without_rows.append(estimate(kept))
    value = estimate(pools)
    errors = jackknife_se(np.array(without_model)), jackknife_se(np.array(without_rows))
    error = float(np.hypot(*errors))
    if error == 0:
        return Estimate(value, np.nan, np.nan, *errors)
    half = stats.t.ppf(1 - LEVEL_TAIL, n_models - 1) * error
    low, high = np.clip([value - half, value + half], *bounds)
    return Estimate(value, float(low), float(high), *errors)


def redeal_p_by_model(crossed: CrossedScores, dose: int) -> np.ndarray:
    """Exact p under each model: rows at the dose and held-out rows re-dealt, shape (n_models,).

    All other rows stay where they are.
    """
    found = []
    for number, (scores, copies) in enumerate(zip(crossed.scores, crossed.copies, strict=True)):
        is_tested = (copies == dose) | (copies == HELD_OUT)
        key = (crossed.name, dose, number)
        found.append(redeal_p(scores[is_tested], copies[is_tested] == dose, key))
    return np.array(found)


def combined_p(pools: Sequence[CrossedScores], dose: int) -> float:
    """One p for all models and pools, by Stouffer's method; assignments are independent."""
    p_values = np.concatenate([redeal_p_by_model(pool, dose) for pool in pools])
    # A p of 1 has no finite quantile.
    return float(stats.combine_pvalues(np.minimum(p_values, 0.9999), method="stouffer").pvalue)
