"""DICE's controls over a larger grid than notebook 05b: learning rates by numbers of problems.

Every arm has ``n_models`` models: ``python benchmarks/grid_dice.py [n_models]``,
8 unless said otherwise; hours on two cores. ``--tiny`` runs two points with
models that learn nothing: whether the grid runs, not what it finds. Outside
``make reproduce``. An interrupted grid goes on with the models already trained;
each finished point is written at once to ``outputs/bench/dice_grid.csv``
(``dice_grid_tiny.csv``).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product

import pandas as pd

from contamination.core import storage
from contamination.dice import controls, fine_tuning, mixtures, paper_rows, pool
from contamination.lab import world

ROWS_PER_PROBLEM = 38  # 5 copies are 13 % of the rows, as 657 problems are in the paper
SEED = 0


@dataclass(frozen=True)
class Grid:
    """Points of a grid, and the base model under all of them."""

    learning_rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3)
    n_problems: tuple[int, ...] = (16, 32, 64)
    n_background_tokens: int = 1_000_000
    n_skill_rows: int = 6_000
    fact_copies: int = 80
    name: str = "dice_grid"


TINY = Grid((1e-4, 1e-3), (6,), 5_000, 20, 2, "dice_grid_tiny")


def main(grid: Grid, n_models: int) -> None:
    lab = world.build_world(SEED)
    base = world.base_model(lab, grid.n_background_tokens, SEED)
    base = fine_tuning.skilled_model(lab, base, grid.n_skill_rows, grid.fact_copies, SEED)
    conditions = pool.conditions(n_models, n_models)
    names = [*mixtures.IN_DISTRIBUTION, mixtures.MATH]
    points = []
    for learning_rate, n_problems in product(grid.learning_rates, grid.n_problems):
        problems = mixtures.lab_problems(n_problems, n_problems, SEED)
        read = mixtures.vanilla_rows(), conditions, ROWS_PER_PROBLEM * n_problems, learning_rate
        trained = pool.train_pool(lab, base, problems, *read)
        measured = pool.measure_pool(trained, base, problems, names, mixtures.MATH)
        layers = paper_rows.layer_rows(measured, pool.CONTAMINATED, mixtures.SEEN)
        layer = paper_rows.located_layer(layers)
        table = controls.control_table(measured, layer, mixtures.MATH, mixtures.MATH)
        points.append(table.assign(learning_rate=learning_rate, n_problems=n_problems))
        path = storage.project_root() / "outputs" / "bench" / f"{grid.name}.csv"
        storage.write_csv(path, pd.concat(points))
        print(f"learning rate {learning_rate:g}, {n_problems} problems, {n_models} models per arm")
        print(f"  {controls.summarize_dice_controls(table)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n_models", nargs="?", type=int, default=8, help="models per arm, from 2")
    parser.add_argument("--tiny", action="store_true", help="whether it runs, not what it finds")
    arguments = parser.parse_args()
    main(TINY if arguments.tiny else Grid(), arguments.n_models)
