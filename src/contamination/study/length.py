"""How much difference in length fakes exposure? Exploratory.

Both sets are held-out rows of one model, so the right answer is always "nothing was seen". The rows
of set A are drawn so that they are longer than those of set B, by a given number of standard
deviations of the length of a row; at the maximum, A has rows above the median and B rows below it.
``shift`` has the registered comparison, of fresh rows at the maximum alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from contamination.core.verdicts import ALPHA
from contamination.study.assignment import HELD_OUT, seed_of
from contamination.study.protocol import permutation_p_of_sets
from contamination.study.scores import CONTROLS, crossed_scores, display_name, seeds_of

LENGTH = CONTROLS[1]  # the control whose score is the length of a row
MAXIMUM = "maximum"
DIFFERENCES: tuple[Any, ...] = (0.0, 0.25, 0.5, 1.0, MAXIMUM)
N_ROWS = 60  # of a set
N_DRAWS = 3  # pairs of sets of each model, benchmark and difference


def two_sets(
    lengths: np.ndarray, difference: Any, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Places of the rows of A and of B, 60 each; ``lengths`` are of the held-out rows.

    Rows are drawn with weights that grow (A) or fall (B) exponentially with the length. Among
    normal lengths that moves each mean by half the difference.
    """
    order = generator.permutation(len(lengths))
    if difference == MAXIMUM:
        is_long = lengths[order] >= np.median(lengths)
        return order[is_long][:N_ROWS], order[~is_long][:N_ROWS]
    z = (lengths - lengths.mean()) / lengths.std()
    # The rows with the largest of these keys are a weighted draw without replacement.
    noise = generator.gumbel(size=(2, len(z)))
    in_a = np.argsort(-(difference / 2 * z + noise[0]))[:N_ROWS]
    left = np.setdiff1d(np.arange(len(z)), in_a)
    in_b = left[np.argsort(-(-difference / 2 * z[left] + noise[1, left]))[:N_ROWS]]
    return in_a, in_b


def false_alarms(frame: pd.DataFrame, detectors: Sequence[str]) -> pd.DataFrame:
    """How often a detector says that the longer or the shorter of two unseen sets was seen.

    Args:
        frame: must hold the control *length* too.

    Returns:
        a row for each detector and difference ("maximum" last). rate: the larger of rate_longer
        and rate_shorter, shares of pairs with p <= 0.05 where that set is the suspect.
    """
    lengths, rows = crossed_scores(frame, LENGTH), []
    sets = []
    for benchmark, pool in lengths.items():
        for model, seed in enumerate(seeds_of(frame)):
            held_out = np.flatnonzero(pool.copies[model] == HELD_OUT)
            own = pool.scores[model][held_out]
            for difference in DIFFERENCES:
                for draw in range(N_DRAWS):
                    key = f"length {difference}, draw {draw}"
                    generator = np.random.default_rng(seed_of(seed, benchmark, key))
                    in_a, in_b = two_sets(own, difference, generator)
                    found = (own[in_a].mean() - own[in_b].mean()) / own.std()
                    places = held_out[np.concatenate([in_a, in_b])]
                    sets.append((benchmark, model, difference, draw, places, found))
    is_a = np.arange(2 * N_ROWS) < N_ROWS
    for name in detectors:
        pools = crossed_scores(frame, name)
        for difference in DIFFERENCES:
            own = [one for one in sets if one[2] == difference and one[0] in pools]
            values = [
                pools[benchmark].scores[model][places] for benchmark, model, *_, places, _ in own
            ]
            keys = [(name, *one[:4]) for one in own]
            longer, shorter = (
                permutation_p_of_sets(values, [of] * len(own), keys) <= ALPHA
                for of in (is_a, ~is_a)
            )
            wins = [np.sign(np.subtract.outer(v[is_a], v[~is_a])).mean() / 2 + 0.5 for v in values]
            rows.append(
                {
                    "detector": display_name(name),
                    "difference": difference,
                    "difference_found": np.mean([one[5] for one in own]),
                    "n_models": len(seeds_of(frame)),
                    "n_pairs": len(own),
                    "rate_longer": longer.mean(),
                    "rate_shorter": shorter.mean(),
                    "rate": max(longer.mean(), shorter.mean()),
                    "auc": np.mean(wins),
                }
            )
    return pd.DataFrame(rows)
