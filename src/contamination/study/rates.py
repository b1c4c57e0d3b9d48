"""True-positive rates of the pretraining study where few positives are false.

They describe a detector and carry no claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from contamination.core.statistics import percentile_interval
from contamination.study import reference_attack
from contamination.study.assignment import HELD_OUT
from contamination.study.crossed import (
    CrossedScores,
)
from contamination.study.scores import (
    CONTROLS,
    StudyScores,
    display_name,
    exposures,
)
from contamination.study.row_pools import ROWS

N_RESAMPLES = 1_000
TIES = "ties"  # in place of the wider bootstrap, where ties leave no rate
FPRS = (0.05, 0.01)


class Pooled(NamedTuple):
    """Scores of one pool, centred and pooled over models, in falling order.

    ``models`` and ``rows`` say where each score comes from; all have shape (n_scores,).
    """

    scores: np.ndarray
    models: np.ndarray
    rows: np.ndarray


def _pooled(scores: np.ndarray, is_kept: np.ndarray) -> Pooled:
    models, rows = np.nonzero(is_kept)
    values = scores[models, rows]
    order = np.argsort(-values, kind="stable")
    return Pooled(values[order], models[order], rows[order])


def _thresholds(held_out: Pooled, weights: np.ndarray) -> dict[float, np.ndarray]:
    """The score that a seen row must exceed, so that few enough held-out rows do, by the rate.

    ``weights``, shape (n_resamples, n_scores), are how often each held-out score is drawn; gives
    arrays of shape (n_resamples,).
    """
    # The tolerance keeps 0.05 * 20 at one false alarm in binary arithmetic.
    n_drawn = weights.sum(axis=1, keepdims=True, dtype=np.int32)
    allowed = {fpr: np.floor(fpr * n_drawn + 1e-9).astype(np.int32) for fpr in FPRS}
    # Twice the highest share of the scores nearly always exceeds every limit; counting all is slow.
    drawn = np.cumsum(weights[:, : int(2 * max(FPRS) * weights.shape[1]) + 1], axis=1)
    if (drawn[:, -1:] <= allowed[max(FPRS)]).any():
        drawn = np.cumsum(weights, axis=1)
    return {fpr: held_out.scores[(drawn <= limit).sum(axis=1)] for fpr, limit in allowed.items()}


def _rates(
    seen: Pooled, weights: np.ndarray, thresholds: dict[float, np.ndarray]
) -> dict[float, np.ndarray]:
    """Share of drawn scores of seen rows above each resample's threshold, by the rate."""
    drawn = np.cumsum(weights, axis=1, dtype=np.int32)
    found = {}
    for fpr, limits in thresholds.items():
        n_above = np.searchsorted(-seen.scores, -limits, side="left")
        n_found = drawn[np.arange(len(drawn)), np.maximum(n_above, 1) - 1]
        found[fpr] = np.where(n_above > 0, n_found, 0) / drawn[:, -1]
    return found


class _Draws(NamedTuple):
    """How often models and rows are drawn in each resample; the first resample is the data."""

    models: np.ndarray  # (n_resamples, n_models)
    rows: np.ndarray  # (n_resamples, n_rows)

    def of(self, pooled: Pooled) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the scores when models are drawn, and when rows are."""
        return self.models[:, pooled.models], self.rows[:, pooled.rows]


def _counts(n: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
    return np.concatenate([np.ones((1, n), int), drawn]).astype(np.int32)


def true_positive_rates(study: StudyScores) -> pd.DataFrame:
    """True-positive rates at 5 % and 1 % false positives, pooled over models; no verdict.

    Scores are centred by each model's median over held-out rows and pooled over models, for each
    benchmark; the rates are averaged over benchmarks. The interval is the wider of two bootstraps,
    over models and over rows. Where so many held-out rows share the highest score that a threshold
    below it would let too many of them through, on any benchmark, there is no such rate.

    Returns:
        a row for each detector, number of copies and false-positive rate, the reference attack
        last: detector, copies, fpr, n_models, tpr, ci_low, ci_high (these three NaN where there is
        no such rate), drawn (which bootstrap is wider: models or rows; "ties" without a rate),
        n_false_positives (over models and benchmarks) and n_distinct_rows among these.
    """
    asked = [name for name in study.all_detectors if name not in CONTROLS]
    rows = []
    for detector in asked:
        rows += _rates_of(display_name(detector), study.pools_of(detector))
    centred = [reference_attack.centred(pool) for pool in study.log_probabilities()]
    if centred and reference_attack.is_defined(centred):
        attacked = [reference_attack.lira_scores(pool) for pool in centred]
        name = f"reference attack ({reference_attack.LIRA})"
        rows += _rates_of(name, attacked)
    return pd.DataFrame(rows)


def _rates_of(name: str, pools: Sequence[CrossedScores]) -> list[dict]:
    n_models = len(pools[0].scores)
    models = _counts(n_models, 0)  # one draw for all pools, which share their models
    tables: dict[tuple[int, float], list] = {}
    for number, pool in enumerate(pools, start=1):
        draws = _Draws(models, _counts(pool.scores.shape[1], number))
        is_held_out = pool.copies == HELD_OUT
        medians = np.ma.median(np.ma.array(pool.scores, mask=~is_held_out), axis=1)
        scores = pool.scores - np.asarray(medians)[:, None]
        held_out = _pooled(scores, is_held_out)
        weights = draws.of(held_out)
        limits = [_thresholds(held_out, by) for by in weights]
        for dose in exposures(ROWS):
            seen = _pooled(scores, pool.copies == dose)
            by_draw = [_rates(seen, *pair) for pair in zip(draws.of(seen), limits, strict=True)]
            for fpr in FPRS:
                rates = [of_draw[fpr] for of_draw in by_draw]
                is_false = held_out.scores > limits[0][fpr][0]
                n_rows = len(np.unique(held_out.rows[is_false]))
                tables.setdefault((dose, fpr), []).append((rates, int(is_false.sum()), n_rows))
    rows = []
    for (dose, fpr), of_pools in tables.items():
        by_models, by_rows = np.mean([rates for rates, *_ in of_pools], axis=0)
        ends = {"models": percentile_interval(by_models[1:])}
        ends["rows"] = percentile_interval(by_rows[1:])
        wider = max(ends, key=lambda drawn: ends[drawn][1] - ends[drawn][0])
        found = [by_models[0], *ends[wider]]
        # Without a single false positive no threshold exists but above all held-out rows.
        if not all(n for _, n, _ in of_pools):
            wider, found = TIES, [np.nan] * 3
        rows.append(
            {
                "detector": name,
                "copies": dose,
                "fpr": fpr,
                "n_models": n_models,
                **dict(zip(("tpr", "ci_low", "ci_high"), found, strict=True)),
                "drawn": wider,
                "n_false_positives": sum(n for _, n, _ in of_pools),
                "n_distinct_rows": sum(n for *_, n in of_pools),
            }
        )
    return rows
