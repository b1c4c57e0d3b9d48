"""The tests of ``docs/protocol_scale.md`` on made scores: how often they are wrong, what they see.

    python scripts/scale_simulation.py     # minutes on one core; prints the page's table

Made scores are normal. ``SHARED`` of their variance belongs to the row and is the same in both
models of a pair. Four copies move a row by .45 in one model, and by less in the other.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from contamination.core.tables import markdown
from contamination.core.verdicts import ALPHA
from contamination.study import placement, scale, traces
from contamination.study.crossed import CrossedScores, interval_left_out

GAIN = 0.45
DRAWS = {0.0: 1_000, 0.05: 200, 0.1: 200, 0.2: 200}  # by the true difference in d'
SHARED = (0.9, 0.5)


def made_pair(difference: float, shared: float, n: int, seed: list[int]) -> list[list]:
    """Pools of two models of each of n seeds."""
    generator, pair = np.random.default_rng(seed), ([], [])
    for benchmark in scale.BENCHMARKS:
        copies = np.array([scale.copies_of(s, benchmark) for s in scale.BASE_SEEDS[:n]])
        of_row = np.sqrt(shared) * generator.normal(size=copies.shape[1])
        for pools, gain in zip(pair, (GAIN, GAIN - difference), strict=True):
            own = np.sqrt(1 - shared) * generator.normal(size=copies.shape)
            scores = of_row + own + gain * (copies > 0)
            pools.append(CrossedScores(f"{benchmark} made", scores, copies))
    return list(pair)


def main() -> None:
    rows = []
    for shared in SHARED:
        for number, (difference, n_draws) in enumerate(DRAWS.items()):
            row: dict[str, float] = {"row share": shared, "true difference": difference}
            for n in (16, 8):
                found = []
                for draw in range(n_draws):
                    seed = [number, draw, n, int(10 * shared)]
                    first, second = (
                        traces.trace(of, scale.COPIES)
                        for of in made_pair(difference, shared, n, seed)
                    )
                    paired = first.minus(second)
                    of = interval_left_out(paired, (-np.inf, np.inf))
                    p = placement.sign_flip_p(paired.by_model)
                    covered = of.low <= difference <= of.high
                    found.append((p <= ALPHA, p <= ALPHA / len(scale.TESTS), covered, of.value))
                names = ["p <= .05", "p <= .0125", "covered"]
                row |= {f"{k} ({n})": v for k, v in zip(names, np.mean(found, 0)[:3], strict=True)}
                row[f"error ({n})"] = np.std([one[3] for one in found])
            rows.append(row)
    print(markdown(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
