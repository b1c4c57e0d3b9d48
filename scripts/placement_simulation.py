"""The tests of ``docs/protocol_3.md`` on made scores: how often they are wrong, what they notice.

    python scripts/placement_simulation.py     # minutes on one core; prints the page's table

A made score is normal. ``row share`` of its variance belongs to the row and is the same under all
models, as for a detector that reads one model; 0 is what the reference attack aims at. A row that
is seen gains, so that its AUC is .514 on average; the gain rises along the training.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.tables import markdown
from contamination.core.verdicts import ALPHA
from contamination.study import placement
from contamination.study.assignment import HELD_OUT
from contamination.study.crossed import CrossedScores, interval_left_out

MEAN_AUC = 0.514
DRAWS = {0.0: 1_000, 0.02: 300, 0.04: 300}  # by the true difference, in AUC
ROW_SHARES = (0.9, 0.0)
N_MODELS = len(placement.BASE_SEEDS)


def made_pools(difference: float, row_share: float, seed: list[int]) -> list[CrossedScores]:
    generator, found = np.random.default_rng(seed), []
    for benchmark in placement.BENCHMARKS:
        dealt = np.array([placement.numbers(s, benchmark) for s in placement.BASE_SEEDS])
        shape = dealt.shape
        scores = np.sqrt(row_share) * generator.normal(size=shape[1])
        scores = scores + np.sqrt(1 - row_share) * generator.normal(size=shape)
        # The middles of the first and the last three tenths are seven tenths apart.
        place = (dealt - (placement.N_TENTHS + 1) / 2) / (placement.N_TENTHS - placement.THREE)
        auc = MEAN_AUC + difference * place
        scores += np.where(dealt == HELD_OUT, 0, np.sqrt(2) * stats.norm.ppf(auc))
        found.append(CrossedScores(f"{benchmark} made", scores, dealt))
    return found


def main() -> None:
    rows = []
    for row_share in ROW_SHARES:
        for number, (difference, n_draws) in enumerate(DRAWS.items()):
            found = []
            for draw in range(n_draws):
                pools = made_pools(difference, row_share, [number, draw, int(10 * row_share)])
                value, low, high, *_ = interval_left_out(placement.late_minus_early(pools), (-1, 1))
                p = placement.redeal_p(pools)
                found.append((p <= ALPHA, low <= difference <= high, value, high < 0.02))
            mean, spread = np.mean(found, axis=0), np.std([one[2] for one in found])
            rows.append((row_share, difference, n_draws, *mean[:2], spread, mean[3]))
    columns = ["row share", "true difference", "draws", "p <= .05", "covered", "standard error"]
    table = pd.DataFrame(rows, columns=[*columns, "upper limit below .02"])
    print(markdown(table))


if __name__ == "__main__":
    main()
