"""DICE's controls over a larger grid than notebook 05: learning rates by numbers of problems.

Every arm has ``n_models`` models: ``python benchmarks/grid_dice.py [n_models]``,
8 unless said otherwise; hours on two cores. Outside ``make reproduce``. An
interrupted grid goes on with the models already trained; each finished point is
written at once to ``outputs/bench/dice_grid.csv``.
"""

from __future__ import annotations

import sys
from itertools import product

import pandas as pd

from contamination import storage
from contamination.dice import findings, fine_tuning, study
from contamination.dice.mixtures import (
    IN_DISTRIBUTION,
    OUT_OF_DISTRIBUTION,
    SEEN,
    lab_problems,
    vanilla_rows,
)
from contamination.lab import world

LEARNING_RATES = (2e-4, 5e-4, 1e-3)
N_PROBLEMS = (24, 48, 96)
ROWS_PER_PROBLEM = 38  # 5 copies are 13 % of the rows, as 657 problems are in the paper
N_BACKGROUND_TOKENS, N_SKILL_ROWS = 1_000_000, 6_000
SEED = 0


def main(n_models: int) -> None:
    lab = world.build_world(SEED)
    base = world.base_model(lab, N_BACKGROUND_TOKENS, SEED)
    base = fine_tuning.skilled_model(lab, base, N_SKILL_ROWS, SEED)
    wanted = study.conditions(n_models, n_models)
    names = [*IN_DISTRIBUTION, *OUT_OF_DISTRIBUTION]
    main_condition = study.named(SEEN, study.HIGH)
    points = []
    for learning_rate, n_problems in product(LEARNING_RATES, N_PROBLEMS):
        problems = lab_problems(n_problems, n_problems, SEED)
        n_rows = ROWS_PER_PROBLEM * n_problems
        trained = study.train_pool(
            lab, base, problems, vanilla_rows(), wanted, n_rows, learning_rate
        )
        pool = study.measure_pool(trained, base, problems, names, "MATH")
        layer = study.located_layer(study.layer_rows(pool, main_condition, SEEN))
        table = study.lab_controls(pool, layer, topic="MATH", centred_on="MATH")
        points.append(table.assign(learning_rate=learning_rate, n_problems=n_problems))
        path = storage.project_root() / "outputs" / "bench" / "dice_grid.csv"
        storage.write_csv(path, pd.concat(points))
        print(f"learning rate {learning_rate:g}, {n_problems} problems, {n_models} models per arm")
        print("  " + "\n  ".join(findings.conclusion(table)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
