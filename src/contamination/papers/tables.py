"""Finished runs of notebook 10 in the papers' tables, next to what is printed there.

    contamination join outputs/imdb outputs/yelp ... --output joined.csv

Time Travel's Table 1, DCQ's Tables 1 to 3, and Table 1 of the Min-k% paper with its averages.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.core import storage
from contamination.data.published import printed_cells
from contamination.dcq.published_tables import METRICS
from contamination.replication.decisions import (
    ALGORITHM_1,
    ALGORITHM_2,
    ICL_JUDGE,
    PAIRED_BOOTSTRAP,
)
from contamination.replication.instructions import GENERAL, GUIDED

TABLES = {
    "Time Travel": ("Table 1",),
    "DCQ": ("Table 1", "Table 2", "Table 3"),
    "Min-k% Prob": ("Table 1",),
}
PERSON = "a person"  # as a judge, where a run has human_labels
CELL = ["paper", "dataset", "split", "row", "metric"]
COLUMNS = ["paper", "table", "dataset", "split", "row", "metric", "model", "n", "value"]
COLUMNS += ["paper_model", "printed", "difference"]
LEVELS = {f"{name}_{end}_pct": f"{name}_{end}_pct" for name in ("recall", "precision")
          for end in ("min", "max")}  # fmt: skip
LEVELS |= {metric: column for metric, column in METRICS.items() if metric != "rplc_pct"}
# The paper names no length; most of its rates are multiples of 1/139, and 139 of the passages of
# 128 words are members.
WIKIMIA = {"WikiMIA_length128": "original", "WikiMIA_length128_paraphrased": "paraphrased"}
PAPER_MODELS = {
    "pythia-2.8b": "Pythia-2.8B",
    "gpt-neox-20b": "NeoX-20B",
    "llama-30b": "LLaMA-30B",
    "llama-65b": "LLaMA-65B",
    "opt-66b": "OPT-66B",
}
AVERAGE = "average"


def joined(folders: Sequence[Path]) -> pd.DataFrame:
    """Every printed cell that the runs have a value for, ``COLUMNS``, in the order of the papers.

    Hosted models of the papers are retired, so each value stands next to what is printed for
    every one of them (paper_model); values of Table 1 of the Min-k% paper next to their own model.
    n counts what the value rests on: instances, partitions that a person has labelled, or, for an
    average, cells; difference (value minus printed) is empty where text is printed.

    FileNotFoundError if a folder holds no tables of notebook 10, ValueError if two runs give one
    cell.
    """
    parts = [part for folder in folders for part in _of_run(folder)]
    decided = [read for folder in folders if (read := _decisions(folder)) is not None]
    own = pd.DataFrame([*parts, *_agreement(decided)], columns=[*CELL, "model", "value", "n"])
    own["paper_model"] = own["model"].map(lambda name: PAPER_MODELS.get(Path(name).name.lower()))
    own["paper_model"] = own["paper_model"].where(own["paper"].eq("Min-k% Prob"))
    own = pd.concat([own, _averages(own)], ignore_index=True)
    if (twice := own.duplicated([*CELL, "model"])).any():
        cell = own.loc[twice.idxmax(), ["dataset", "split", "row", "model"]]
        raise ValueError(f"two runs give one cell ({', '.join(cell)}): name one of them")
    printed = printed_cells().rename(columns={"model": "paper_model", "value": "printed"})
    of_tables = [f"{paper}, {name}" for paper, names in TABLES.items() for name in names]
    printed = printed[(printed["paper"] + ", " + printed["table"]).isin(of_tables)]
    own = own.rename(columns={"paper_model": "same_model"})
    found = printed.merge(own, on=CELL, how="inner")
    is_fit = found["same_model"].isna() & found["paper"].ne("Min-k% Prob")
    found = found[is_fit | found["same_model"].eq(found["paper_model"])]
    numbers = [pd.to_numeric(found[name], errors="coerce") for name in ("value", "printed")]
    return found.assign(difference=numbers[0] - numbers[1])[COLUMNS].reset_index(drop=True)


def _of_run(folder: Path) -> list[dict[str, Any]]:
    """Cells of one run: levels of the quiz, its replicas, and AUC."""
    quiz, replicas, scores = (
        _read(folder, name) for name in ("audit_dcq", "audit_replication", "audit_min_k")
    )
    if quiz is replicas is scores is None:
        raise FileNotFoundError(f'"{folder}" holds no tables of notebook 10: name a finished run')
    cells, arms = [], {}
    for row in [] if quiz is None else quiz.to_dict("records"):
        share = row.get("true_contamination_pct")
        name = "Our DCQ" if pd.isna(share) else f"{share:.0f}% cont."
        arms[row["model"]] = "Rplc-based" if pd.isna(share) else name
        about = {"paper": "DCQ", "dataset": row["dataset"], "split": row["split"], "row": name}
        about |= {"model": row["model"], "n": row["n"]}
        cells += [about | {"metric": m, "value": row[c]} for m, c in LEVELS.items() if c in row]
    if replicas is not None and not replicas["instruction"].eq(GENERAL).any():
        of_judge = replicas["metric"].eq(ICL_JUDGE) & replicas["instruction"].eq(GUIDED)
        for row in replicas[of_judge].to_dict("records"):
            about = {"paper": "DCQ", "dataset": row["dataset"], "split": row["split"]}
            about |= {"row": arms.get(row["model"], "Rplc-based"), "model": row["model"]}
            value = 100 * (row["n_exact"] + row["n_near_exact"]) / row["n"]
            cells.append(about | {"metric": "rplc_pct", "value": value, "n": row["n"]})
    for row in [] if scores is None else scores.to_dict("records"):
        kind = WIKIMIA.get(row["benchmark"].split()[-1])
        if kind is not None:
            about = {"paper": "Min-k% Prob", "dataset": "WikiMIA", "split": "", "metric": "auc"}
            about |= {"row": f"{kind}, {row['method']}", "model": row["model"]}
            n = row["n_members"] + row["n_non_members"]
            cells.append(about | {"value": row["auc"], "n": n})
    return cells


def _read(folder: Path, name: str) -> pd.DataFrame | None:
    path = folder / "tables" / f"{name}.csv"
    return pd.read_csv(path, keep_default_na=True) if path.exists() else None


def _decisions(folder: Path) -> pd.DataFrame | None:
    """Whether a partition is contaminated: a person, and the three algorithms of the paper.

    None for a run of the guided instruction alone, as DCQ's rows "Rplc-based" are.
    """
    table = _read(folder, "audit_replication")
    if table is None or not table["instruction"].eq(GENERAL).any():
        return None
    is_test = table["method"].eq(ALGORITHM_1) & table["test"].eq(PAIRED_BOOTSTRAP)
    is_test &= table["instruction"].eq(GENERAL)
    is_judge = table["method"].eq(ALGORITHM_2) & table["instruction"].eq(GUIDED)
    names = f"{ALGORITHM_1}: " + table["metric"].where(is_test)
    names = names.mask(is_judge & table["metric"].eq(ICL_JUDGE), f"{ALGORITHM_2}: GPT-4 ICL")
    names = names.mask(is_judge & table["metric"].eq(PERSON), PERSON)
    found = table.assign(name=names).dropna(subset=["name", "contaminated"])
    return found.pivot(index=["model", "dataset", "split"], columns="name", values="contaminated")


def _agreement(decided: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """Time Travel's Table 1: how many partitions an algorithm decides as a person does."""
    table = pd.concat(decided) if decided else pd.DataFrame()
    if table.index.has_duplicates:
        twice = ", ".join(table.index[table.index.duplicated()][0])
        raise ValueError(f"two runs decide on one partition ({twice}): name one of them")
    if PERSON not in table:
        return []
    cells = []
    for model, of_model in table.groupby(level="model"):
        for name in of_model.columns.drop(PERSON):
            both = of_model[[name, PERSON]].dropna().astype(bool)
            n, n_right = len(both), int(both[name].eq(both[PERSON]).sum())
            about = {"paper": "Time Travel", "dataset": "all 14 partitions", "row": name}
            about |= {"split": "train+test/validation", "model": model, "n": n}
            if n:
                cells.append(about | {"metric": "success_rate", "value": f"{n_right}/{n}"})
                cells.append(about | {"metric": "accuracy_pct", "value": 100 * n_right / n})
    return cells


def _averages(own: pd.DataFrame) -> pd.DataFrame:
    """The column "Avg." of the methods that all five models have on both kinds of passages."""
    scores = own[own["paper_model"].notna()]
    method = scores["row"].str.split(", ").str[1]
    means = scores.groupby(method)["value"].agg(["mean", "size"])
    means = means[means["size"].eq(len(PAPER_MODELS) * len(WIKIMIA))]
    return pd.DataFrame(
        {"paper": "Min-k% Prob", "dataset": "WikiMIA", "split": "", "metric": "auc"}
        | {"row": f"all, {name}", "model": AVERAGE, "paper_model": AVERAGE}
        | {"value": row["mean"], "n": row["size"]}
        for name, row in means.iterrows()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0 after the tables were printed, 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="contamination join",
        description="Join finished runs into the papers' tables, next to the printed values.",
    )
    parser.add_argument("folder", nargs="+", type=Path, help="outputs of a run, with tables/")
    parser.add_argument("--output", type=Path, help="CSV file for the cells as well")
    given = parser.parse_args(arguments)
    try:
        cells = joined(given.folder)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if given.output:
        storage.write_csv(given.output, cells)
    for (paper, table), part in cells.groupby(["paper", "table"], sort=False):
        print(f"{paper}, {table}")
        print(part.drop(columns=["paper", "table"]).to_string(index=False, na_rep=""), end="\n\n")
    print(f"{len(cells)} cells; a cell without a finished run is left out")
    return 0
