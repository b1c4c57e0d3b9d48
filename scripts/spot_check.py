"""Write the part of the ledger that the spot check trains again, then how far it may lie off.

    python scripts/spot_check.py
    ATEN_CPU_CAPABILITY=default python scripts/spot_check.py --spread

The second line trains the same models with other instructions of the processor, base included,
and notes for each detector the largest distance from the first.
"""

from __future__ import annotations

import argparse

import pandas as pd

from contamination.audit import lab_models
from contamination.lab import world
from contamination.study import agreement, spot_check, store
from contamination.study.protocol import SET_COLUMNS

SETTINGS = {
    "world_seed": 0,
    "n_background_tokens": 1_000_000,  # with the seed, the base model of notebook 01
    "benchmark": "topics",
    "units": list(range(8)),
    "common_seed": 8,  # of the rows that all models are asked about
    "copies": 3,
    "n_read": 25,  # half of the study's, so that three models take a minute
    "n_tokens": lab_models.N_TOKENS,
    "training": {
        "learning_rate": lab_models.LEARNING_RATE,
        "batch_size": lab_models.BATCH_SIZE,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spread", action="store_true", help="measure it, in this environment")
    is_spread = parser.parse_args().spread
    if spot_check.environment()["device"] != "cpu" and not is_spread:
        parser.error(
            "scores from a GPU could be checked nowhere else: hide it (CUDA_VISIBLE_DEVICES=)"
        )
    lab = world.build_world(SETTINGS["world_seed"])
    base = world.base_model(lab, SETTINGS["n_background_tokens"], SETTINGS["world_seed"])
    if is_spread:
        ledger = store.read(spot_check.BASE0)
        scores, _ = spot_check.train_and_score(ledger.about, lab, base, ledger.about["units"])
        far = agreement.distances(scores, ledger.scores)
        print(far.to_string())
        largest = far.groupby("detector")[["relative_rms", "auc_change"]].max()
        ledger.about["spread"] = largest.to_dict("index")
        ledger.about["spread_environment"] = spot_check.environment()
    else:
        scores, models = spot_check.train_and_score(SETTINGS, lab, base, SETTINGS["units"])
        about = SETTINGS | {"models": models, "world": spot_check.world_of(lab), "spread": {}}
        about["environment"] = spot_check.environment()
        ledger = store.Ledger(scores, pd.DataFrame(columns=SET_COLUMNS), about)
    store.write(store.FOLDER, spot_check.BASE0, ledger)


if __name__ == "__main__":
    main()
