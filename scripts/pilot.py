"""Write the numbers of ``docs/pilot_2.md`` from the pilot's parts of the ledger.

python scripts/pilot.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.core import storage
from contamination.study import row_pools, store
from contamination.study.crossed import auc_by_model
from contamination.study.pretraining_scores import arrange_scores

sys.path.insert(0, str(Path(__file__).parent))
import readme

NAME = "pilot"  # of the ledger's parts, and of the block on the page
PAGE = readme.ROOT / "docs/pilot_2.md"
N_CORES = 2


def numbers() -> str:
    """AUCs of the pilot's models, their spread, and what the models cost, as Markdown."""
    scores, made = store.read_all(NAME, "scores")
    arranged, rows = arrange_scores(scores), []
    for detector in scores["detector"].unique():
        pools = arranged.pools_of(detector)
        row = {"Detector": detector, "Benchmarks": str(len(pools))}
        for dose in row_pools.DOSES:
            by_model = np.mean([auc_by_model(pool, dose) for pool in pools], axis=0)
            copies = f"{dose} {'copy' if dose == 1 else 'copies'}"
            row[copies] = f"{by_model.mean():.2f} ± {by_model.std(ddof=1):.2f}"
        rows.append(row)
    seconds = pd.DataFrame([about["seconds"] for about in made])
    minutes = np.mean([about["seconds_in_all"] for about in made]) / 60
    n_models = len(row_pools.BASE_SEEDS)
    return (
        f"AUC against held-out rows: mean and standard deviation of {len(made)} base models.\n\n"
        f"{readme.markdown(pd.DataFrame(rows))}\n\n"
        f"One base model took {seconds['training'].mean() / 60:.1f} minutes of one core to train "
        f"and {minutes:.1f} with its two continuations and all scores, while other work ran on the "
        f"same machine. For {n_models} base models that projects "
        f"{n_models * minutes / 60:.1f} core-hours, or {n_models * minutes / 60 / N_CORES:.1f} "
        "hours on two cores."
    )


def main() -> None:
    page = readme.renewed(PAGE.read_text(), NAME, numbers(), "scripts/pilot.py")
    storage.write_text(PAGE, page)


if __name__ == "__main__":
    main()
