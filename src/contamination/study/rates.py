"""How many seen rows does a detector name, if it may rarely be wrong? Descriptive.

A true-positive rate counts the seen rows that score above all but 5 % or 1 % of the held-out
rows. The threshold is each model's own, since an auditor has one model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from contamination.study import reference_attack
from contamination.study.assignment import HELD_OUT
from contamination.study.crossed import CrossedScores, crossed_interval
from contamination.study.detection import ATTACK, attack_pools
from contamination.study.row_pools import DOSES
from contamination.study.scores import CONTROLS, all_detectors, crossed_scores, display_name

FPRS = (0.05, 0.01)


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
        last: detector, copies, fpr, n_models, tpr, ci_low, ci_high (``crossed_interval``), and
        fpr_found, the share of held-out rows above the threshold, which ties make smaller.
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
