"""What the interval from minimum to maximum says about the truth, by simulation.

A simulated respondent recognises a known share of the instances and guesses
the others by a position bias; where the interval misses the truth, the rule does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from contamination.dcq.assessment import (
    CHOICES,
    POSITIONS,
    AssessmentBootstrap,
    levels_of_counts,
)

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
        covered_share (minimum <= truth <= maximum, to a rounding error), over_share
        (minimum above the truth) and under_share (maximum below it) sum to 1;
        mean_miss_pct is points from the range to the truth, 0 inside;
        covered_with_kappa_share the coverage if kappa alone were the minimum.
    """
    generator = np.random.default_rng([seed, 4])
    rows = []
    for (name, chances), share, rate in product(profiles.items(), true_shares, recognition_rates):
        chances = np.asarray(chances, dtype=float)
        if len(chances) != len(CHOICES) or chances.min() < 0 or not np.isclose(chances.sum(), 1):
            raise ValueError(f'profile "{name}" must hold the chances of A to E, which sum to 1')
        n_contaminated, of_positions = round(share * n), slice(len(POSITIONS))
        bias = generator.multinomial(n, chances, n_simulations)[:, of_positions]
        n_known = generator.binomial(n_contaminated, rate, (n_simulations, 1))
        guesses = generator.binomial(n - n_known, chances[None, of_positions])
        levels = levels_of_counts(bias.astype(float), (n_known + guesses).astype(float), n)
        row: dict[str, Any] = {
            "true_contamination_pct": 100 * n_contaminated / n,
            "recognition_pct": 100 * rate,
        }
        row |= {"bias_profile": name, "n": n, "n_simulations": n_simulations}
        rows.append(row | _coverage(levels, n_contaminated / n))
    return pd.DataFrame(rows)


def _coverage(levels: AssessmentBootstrap, truth: float) -> dict[str, float]:
    excess, lack = levels.minimum - truth, truth - levels.maximum
    above, below = excess > _ROUNDING, lack > _ROUNDING
    kappa_above = levels.kappa - truth > _ROUNDING
    return {
        "mean_min_pct": 100 * float(levels.minimum.mean()),
        "mean_max_pct": 100 * float(levels.maximum.mean()),
        "covered_share": float((~above & ~below).mean()),
        "over_share": float(above.mean()),
        "under_share": float(below.mean()),
        "mean_miss_pct": 100 * float(np.maximum(0, np.maximum(excess, lack)).mean()),
        "covered_with_kappa_share": float((~kappa_above & ~below).mean()),
    }
