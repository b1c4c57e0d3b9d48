"""When must a model see a row so that a detector finds it later? Exploratory.

A row that is seen once lies somewhere in the training. Its place is random, since the packing
draws it, so rows whose copy came early and rows whose copy came late differ in nothing else. The
question came up after the scores were known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from contamination.core.scores import MIN_K
from contamination.study import reference_attack
from contamination.study.assignment import HELD_OUT
from contamination.study.crossed import (
    CrossedScores,
    auc_left_out,
    crossed_interval,
    interval_left_out,
    mean_auc,
    mean_left_out,
)
from contamination.study.detection import ATTACK, attack_pools
from contamination.study.row_pools import ROWS
from contamination.study.scores import (
    CONTROLS,
    crossed_scores,
    display_name,
    log_probabilities,
    seeds_of,
    seen_rows,
)

N_PARTS = 5  # equal parts of the training
ONCE = 1  # copies of the rows whose place is asked about
ASKED = (MIN_K, *CONTROLS[:2])
OTHER = -1  # what marks rows that are neither held out nor seen once


def parts_of_training(
    pools: Mapping[str, CrossedScores], frame: pd.DataFrame
) -> list[CrossedScores]:
    """Pools in whose ``copies`` a row seen once has the number, 1 to 5, of its part of training.

    Held-out rows keep 0, and all other rows have -1.
    """
    rows = seen_rows(seeds_of(frame))
    found = []
    for benchmark, pool in pools.items():
        own = rows[rows["benchmark"].eq(benchmark) & rows["pool"].eq(ROWS)]
        place = own["position"].to_numpy().reshape(pool.scores.shape)
        part = np.minimum(np.floor(N_PARTS * np.nan_to_num(place)), N_PARTS - 1).astype(int) + 1
        number = np.where(pool.copies == ONCE, part, OTHER)
        number[pool.copies == HELD_OUT] = HELD_OUT
        found.append(CrossedScores(pool.name, pool.scores, number))
    return found


def _difference(pools: Sequence[CrossedScores]) -> float:
    """AUC of rows seen in the last part of the training minus that of the first."""
    return mean_auc(pools, N_PARTS) - mean_auc(pools, 1)


def _attacked(frame: pd.DataFrame) -> list[CrossedScores]:
    """Pools of the reference attack's scores. Shadow models are those that hold a row out."""
    benchmarks = [*log_probabilities(frame)]
    attacks = [reference_attack.lira_scores(pool) for pool in attack_pools(frame)]
    return parts_of_training(dict(zip(benchmarks, attacks, strict=True)), frame)


def timing(frame: pd.DataFrame, detectors: Sequence[str] = ASKED) -> pd.DataFrame:
    """AUC of rows seen once by the fifth of the training in which their copy lies.

    The interval of a difference is ``crossed.crossed_interval``'s; the reference attack's shadow
    models stay those of all models there. No verdict: the table is exploratory.

    Returns:
        a row for each detector, then for the reference attack where it is defined: detector,
        part (1 to 5, or "last minus first"), n_models, n_rows (mean of one model), auc (or the
        difference of two), ci_low, ci_high.
    """
    asked = {
        display_name(name): parts_of_training(crossed_scores(frame, name), frame)
        for name in detectors
    }
    if reference_attack.is_defined(attack_pools(frame)):
        asked[ATTACK] = _attacked(frame)
    rows = []
    for name, pools in asked.items():
        n_models = len(pools[0].scores)
        for part in range(1, N_PARTS + 1):
            found = interval_left_out(mean_left_out([auc_left_out(pool, part) for pool in pools]))
            n_rows = float(np.mean([np.sum(pool.copies == part, axis=1) for pool in pools]))
            rows.append((name, str(part), n_models, n_rows * len(pools), *found[:3]))
        found = crossed_interval(pools, _difference, (-1.0, 1.0))
        rows.append((name, "last minus first", n_models, np.nan, *found[:3]))
    columns = ["detector", "part", "n_models", "n_rows", "auc", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns)
