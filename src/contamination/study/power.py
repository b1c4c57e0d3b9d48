"""How many rows does an auditor need, and how many can be named? Asked after the scores were known.

An audit compares seen with held-out rows by a rank test, one-sided at the 5 % level. How many rows
it needs follows from the AUC by Noether's formula (1987). The distance d' is that of two normal
distributions with one standard deviation: d' = sqrt(2) * z(AUC), z the normal quantile.

A true-positive rate counts the seen rows that score above all but 5 % or 1 % of the held-out rows.
The threshold is each model's own, since an auditor has one model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from contamination.core.statistics import CHANCE
from contamination.core.verdicts import ALPHA
from contamination.study import reference_attack
from contamination.study.assignment import HELD_OUT
from contamination.study.crossed import CrossedScores, crossed_interval
from contamination.study.detection import ATTACK, attack_pools
from contamination.study.row_pools import DOSES
from contamination.study.scores import CONTROLS, all_detectors, crossed_scores, display_name

POWER = 0.8
ROWS_OF_AN_AUDIT = (60, 200)  # of each kind, whose power the table has
FPRS = (0.05, 0.01)


def distance(auc: ArrayLike) -> np.ndarray:
    """d' of an AUC, in standard deviations.

    >>> distance([0.5, 0.76]).round(2).tolist()
    [0.0, 1.0]
    """
    return np.sqrt(2) * stats.norm.ppf(auc)


def rows_needed(auc: ArrayLike, power: float = POWER) -> np.ndarray:
    """Rows of each kind that a rank test needs, if all rows of one kind were seen.

    Of a dataset of which a share s was seen, about 1 / s squared times as many are needed.
    Infinite for an AUC of one half or less.

    >>> np.ceil(rows_needed([0.5, 0.55, 0.9])).tolist()
    [inf, 413.0, 7.0]
    """
    above = np.maximum(np.asarray(auc) - CHANCE, 0)
    wanted = stats.norm.ppf(1 - ALPHA) + stats.norm.ppf(power)
    with np.errstate(divide="ignore"):
        return (wanted / above) ** 2 / 6


def power(auc: ArrayLike, n_rows: int) -> np.ndarray:
    """Chance that such a test finds rows, with so many rows of each kind, 0 to 1."""
    above = np.asarray(auc) - CHANCE
    return stats.norm.sf(stats.norm.ppf(1 - ALPHA) - above * np.sqrt(6 * n_rows))


def rows_table(aucs: pd.DataFrame) -> pd.DataFrame:
    """What each AUC of a table asks of an auditor.

    Args:
        aucs: detector, models, copies, auc, ci_low, ci_high.

    Returns:
        the same with the distance, the rows needed for 80 % power (rows_low and rows_high at the
        ends of the interval; infinite where it reaches one half), and the power of some rows.
    """
    d = distance(aucs["auc"])
    table = aucs.assign(d_prime=d, d_prime_per_copy=d / aucs["copies"])
    ends = {"rows_needed": "auc", "rows_low": "ci_high", "rows_high": "ci_low"}
    table = table.assign(**{name: np.ceil(rows_needed(aucs[of])) for name, of in ends.items()})
    return table.assign(**{f"power_{n}": power(aucs["auc"], n) for n in ROWS_OF_AN_AUDIT})


# Rows that can be named


def rates_by_model(pool: CrossedScores, dose: int, fpr: float) -> np.ndarray:
    """True- and false-positive rate under each model, shape (2, n_models).

    At most ``fpr`` of a model's held-out rows score above its threshold; fewer where scores tie.
    """
    rates = []
    for scores, copies in zip(pool.scores, pool.copies, strict=True):
        held_out = np.sort(scores[copies == HELD_OUT])[::-1]
        # The tolerance keeps 0.05 * 20 at one false alarm in binary arithmetic.
        threshold = held_out[int(np.floor(fpr * len(held_out) + 1e-9))]
        rates.append([np.mean(scores[copies == dose] > threshold), np.mean(held_out > threshold)])
    return np.array(rates).T


def _mean_rate(pools: Sequence[CrossedScores], dose: int, fpr: float) -> float:
    return float(np.mean([rates_by_model(pool, dose, fpr)[0] for pool in pools]))


def true_positive_rates(frame: pd.DataFrame) -> pd.DataFrame:
    """True-positive rates at 5 % and 1 % false positives, averaged over models and benchmarks.

    Returns:
        a row for each detector, number of copies and false-positive rate, the reference attack
        last. fpr_found: the share of held-out rows above the threshold, which ties make smaller.
    """
    asked = {
        display_name(name): [*crossed_scores(frame, name).values()]
        for name in all_detectors(frame)
        if name not in CONTROLS
    }
    if reference_attack.is_defined(centred := attack_pools(frame)):
        asked[ATTACK] = [reference_attack.lira_scores(pool) for pool in centred]
    rows = []
    for name, pools in asked.items():
        for dose in DOSES:
            for fpr in FPRS:
                found = crossed_interval(pools, partial(_mean_rate, dose=dose, fpr=fpr))
                of_held_out = np.mean([rates_by_model(pool, dose, fpr)[1] for pool in pools])
                ends = (found.value, found.low, found.high)
                rows.append((name, dose, fpr, len(pools[0].scores), *ends, of_held_out))
    columns = ["detector", "copies", "fpr", "n_models", "tpr", "ci_low", "ci_high", "fpr_found"]
    return pd.DataFrame(rows, columns=columns)
