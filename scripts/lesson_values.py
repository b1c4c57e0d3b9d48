"""Values that lessons 00 and 04 show and do not compute: two tables of the package.

    python scripts/lesson_values.py

``one_copy.csv`` collects what notebooks 04b and 09b and an earlier study found for rows that a
model saw once, from their stored tables. ``copies_dial.csv`` is what notebook 00 finds at several
numbers of copies: its own cells are run for each of them and for each draw of the rows, some
eight minutes on one core.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.core import storage

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "notebooks/00_start_here.ipynb"
TABLES = ROOT / "outputs/reference/demo/tables"
STORED = ROOT / "src/contamination/study"
COPIES = (1, 2, 4, 8, 16, 30)
SEEDS = range(5)
LAST = "drawing"  # the first cell with this tag draws what is stored here


def main() -> None:
    storage.write_csv(STORED / "one_copy.csv", one_copy())
    models: dict = {}  # the clean models of a seed are the same at every number of copies
    parts = [
        results(seed, copies, models).assign(copies=copies, seed=seed)
        for seed in SEEDS
        for copies in COPIES
    ]
    storage.write_csv(STORED / "copies_dial.csv", pd.concat(parts, ignore_index=True))


def one_copy() -> pd.DataFrame:
    """AUC of Min-k% Prob for rows seen once, by setting, and by the fifth of pretraining."""
    of_min_k = 'method == "Min-k% Prob" and copies == 1'
    study = pd.read_csv(STORED / "first_study_topics.csv").query("model == 'dosed' and copies == 1")
    lab = pd.read_csv(TABLES / "min_k_auc.csv").query(of_min_k).query("setting == 'random'")
    detection = pd.read_csv(TABLES / "pretraining_detection.csv").query(
        'detector == "Min-k% Prob" and copies == 1 and models == "small"'
    )
    timing = pd.read_csv(TABLES / "pretraining_timing.csv").query('detector == "Min-k% Prob"')
    timing = timing[timing["part"].str.isdigit()].rename(columns={"part": "fifth"})
    parts = [
        study.assign(setting="earlier study", models="small"),
        lab[lab["seed"].isna()].assign(setting="lab", models="small"),
        detection.assign(setting="pretraining"),
        timing.assign(setting="pretraining"),
    ]
    columns = ["setting", "models", "fifth", "n_models", "auc", "ci_low", "ci_high"]
    return pd.concat(parts, ignore_index=True).reindex(columns=columns)


def results(seed: int, copies: int, models: dict) -> pd.DataFrame:
    """The results of one run of notebook 00, up to the cell that draws."""
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        tags = cell["metadata"].get("tags", [])
        if LAST in tags:
            break
        if cell["cell_type"] != "code":
            continue
        exec("".join(cell["source"]), names)  # noqa: S102, a notebook of this repository
        if "parameters" in tags:
            names |= {"seed": seed, "copies": copies}
        if "trained_on" in names and not hasattr(names["trained_on"], "__wrapped__"):
            names["trained_on"] = remembered(names["trained_on"], models)
    columns = ["method", "statistic", "rows", "model", "value", "chance"]
    return pd.DataFrame(names["results"], columns=names["columns"])[columns]


def remembered(train: Callable, models: dict) -> Callable:
    """The notebook's training, which does not train the same model twice."""

    @functools.wraps(train)
    def trained_on(texts: list[str], order: int = 0) -> Any:
        key = storage.hash_of([list(texts), order])
        if key not in models:
            models[key] = train(texts, order)
        return models[key]

    return trained_on


if __name__ == "__main__":
    main()
