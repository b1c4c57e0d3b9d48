"""The tests of ``docs/protocol_company.md`` on made scores: how often wrong, what they see.

    python scripts/company_simulation.py   # minutes on one core; prints the page's two tables

Made scores are normal. ``SHARED`` of their variance belongs to the row and is the same in the model
that reads it alone and in the one that reads it in company.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from contamination.core.tables import markdown
from contamination.core.verdicts import ALPHA
from contamination.study import company, placement, traces
from contamination.study.crossed import CrossedScores, interval_left_out
from contamination.study.detection import joint_p_values

ALONE = 0.3  # what four copies add alone, of the test of company
DRAWS = {0.0: 1_000, 0.1: 200, 0.2: 200, 0.3: 200}  # by what is to be found, in d'
SHARED = (0.9, 0.5)
N_REDEALS = 999
LIMITS = {"p <= .05": ALPHA, "p <= .0125": ALPHA / 4}


def made(kind: str, gains: tuple[float, ...], shared: float, n: int, seed: list[int]) -> list[list]:
    """Pools of as many models as gains, of each of n seeds."""
    generator, models = np.random.default_rng(seed), [[] for _ in gains]
    for pool in (one for one in company.pools() if one.kind == kind):
        copies = np.array([company.copies_of(s, pool) for s in company.BASE_SEEDS[:n]])
        of_row = np.sqrt(shared) * generator.normal(size=copies.shape[1])
        for pools, gain in zip(models, gains, strict=True):
            own = np.sqrt(1 - shared) * generator.normal(size=copies.shape)
            scores = of_row + own + gain * (copies == company.ENDPOINT)
            pools.append(CrossedScores(f"{pool.benchmark} made", scores, copies))
    return models


def main() -> None:
    for test in sys.argv[1:] or ("alone", "company"):
        rows = []
        for kind in company.DEALT:
            for shared in SHARED:
                for number, (effect, n_draws) in enumerate(DRAWS.items()):
                    row: dict[str, object] = {"rows": kind, "row share": shared, "true d'": effect}
                    for n in (16, 8):
                        found = []
                        for draw in range(n_draws):
                            seed = [number, draw, n, int(10 * shared), len(kind), len(test)]
                            gains = (effect,) if test == "alone" else (ALONE, ALONE + effect)
                            models = made(kind, gains, shared, n, seed)
                            parts = [traces.trace(of, company.ENDPOINT) for of in models]
                            part = parts[0] if test == "alone" else parts[1].minus(parts[0])
                            if test == "alone":
                                by_name = {"made": {of.name: of for of in models[0]}}
                                p = joint_p_values(by_name, company.ENDPOINT, N_REDEALS)["made"]
                            else:
                                p = placement.sign_flip_p(part.by_model)
                            of = interval_left_out(part, (-np.inf, np.inf))
                            covered = of.low <= effect <= of.high
                            found.append([*(p <= at for at in LIMITS.values()), covered, of.value])
                        shares = np.mean(found, axis=0)
                        names = [*LIMITS, "covered"]
                        row |= {f"{k} ({n})": v for k, v in zip(names, shares, strict=False)}
                        row[f"error ({n})"] = np.std([one[-1] for one in found])
                    rows.append(row)
        print(f"\nTest *{test}*\n\n{markdown(pd.DataFrame(rows))}", flush=True)


if __name__ == "__main__":
    main()
