"""The learning rate of notebook 05b's positive control, chosen by what clean models can still do.

    python scripts/dice_rate.py

Trains clean models alone, at rates that were fixed before any of them was trained, on rows and
orders that notebook 05b does not use, and prints their accuracy on GSM-i and GSM-ii. Chosen is the
highest rate at which the mean lies within ``floor_pct``, the bounds that the notebook sets for its
clean models. No contaminated model is trained here, so that how much a score is inflated cannot
decide. The result is ``pool.HIGH_RATE``. Takes a few minutes; models are cached.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import yaml

from contamination.dice import accuracy, mixtures, pool
from contamination.dice.fine_tuning import skilled_model
from contamination.dice.mixtures import SEEN, UNSEEN
from contamination.lab import world

CANDIDATES = (5.0, 2.5, 1.25, 0.625)  # times the usual rate; ten times had unlearned the task
N_MODELS, FIRST_SEED = 5, 200  # the notebook's seeds are 0 to 7 and 100 to 107
PARAMETERS = Path(__file__).resolve().parents[1] / "params/demo/05b_dice_lab.yaml"


def clean_accuracies() -> pd.DataFrame:
    """One row a candidate: mean accuracy on both sets and its range over models, percent."""
    values = yaml.safe_load(PARAMETERS.read_text())
    seed, n_problems = values["world_seed"], values["n_problems"]
    lab = world.build_world(seed)
    base = world.base_model(lab, values["n_background_tokens"], seed)
    base = skilled_model(lab, base, values["n_skill_rows"], values["fact_copies"], seed)
    problems = mixtures.lab_problems(n_problems, n_problems, seed)
    clean = pool.Condition(pool.CLEAN, "", 0, N_MODELS, first_seed=FIRST_SEED)
    wanted = [
        dataclasses.replace(clean, name=f"{pool.CLEAN} x{times:g}", times_rate=times)
        for times in CANDIDATES
    ]
    vanilla, n_rows, rate = mixtures.vanilla_rows(), values["n_rows"], values["learning_rate"]
    trained = pool.train_pool(lab, base, problems, vanilla, wanted, n_rows, rate)
    sets = {condition.name: (SEEN, UNSEEN) for condition in wanted}
    new_tokens = values["max_new_tokens"]
    rows = accuracy.accuracy_rows(trained, problems, sets, new_tokens, "lab", wanted)
    of_models = rows.groupby(["condition", "seed"], sort=False)["accuracy_pct"].mean()
    found = of_models.groupby("condition", sort=False).agg(["count", "mean", "min", "max"])
    low, high = values["floor_pct"]
    return found.assign(times_rate=CANDIDATES, keeps_skill=found["mean"].between(low, high))


if __name__ == "__main__":
    print(clean_accuracies().round(1).to_string())
