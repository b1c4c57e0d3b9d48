"""DICE's Tables 1 and 2 as printed, and what its released files give."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np
import pandas as pd

from contamination.data.published import gsm8k_alignment, printed_cells
from contamination.data.published.compare import CELL_KEYS, Reason, matches_printed
from contamination.dice.answers import is_right, is_right_released
from contamination.dice.mixtures import SEEN, UNSEEN, released_rows

REPOSITORY = "THU-KEG/DICE"
# Which training a released generation file belongs to. In the first 657 rows are marked as trained
# on, in the other none; that its dose is 2 % is not said there, only its accuracy tells.
GENERATIONS = {"GSM-i 2%": "bad", "OpenOrca 100%": "good"}
SCORE_FOLDER = "contamination_classifier/performance_vs_score"
SCORE_TABLES = ("performance_table", "other_performance_table")
PRINTED_R_SQUARED = "0.61-0.75"


def printed_table_1() -> pd.DataFrame:
    """Table 1 as printed: a row per benchmark, a column per base model and training."""
    cells = printed_cells().query("paper == 'DICE' and table == 'Table 1'")
    cells = cells.assign(column=cells["model"] + " " + cells["row"].str.split(", ").str[0])
    wide = cells.pivot(index="dataset", columns="column", values="value")
    wide = wide.loc[cells["dataset"].unique(), cells["column"].unique()]
    return wide.rename_axis(None, axis=1).reset_index(names="benchmark")


def printed_accuracy(model: str = "LLaMA2-7B") -> dict[tuple[str, str], str]:
    """Table 1's accuracies of one base model, by training and benchmark."""
    cells = printed_cells().query("paper == 'DICE' and table == 'Table 1' and model == @model")
    trainings = cells["row"].str.split(", ").str[0]
    return dict(zip(zip(trainings, cells["dataset"], strict=True), cells["value"], strict=True))


def printed_auroc() -> dict[tuple[str, str, str], str]:
    """Table 2, by training ("GSM-i" or "GSM-i-Syn"), benchmark and method."""
    cells = printed_cells().query("paper == 'DICE' and table == 'Table 2'")
    parts = cells["row"].str.removeprefix("contaminated with ").str.split(", ", expand=True)
    keys = zip(parts[0], cells["dataset"], parts[1], strict=True)
    return dict(zip(keys, cells["value"], strict=True))


def rescored_generations() -> pd.DataFrame:
    """The two released generation files scored again: four cells of Table 1.

    Which rows are GSM-i is marked in the contaminated model's file alone. ``matches`` is that of
    the released rules.
    """
    files = {
        training: released_rows(
            REPOSITORY, f"data/DINM_DATA/gsm8k/Llama_Base_{name}_generation.csv"
        )
        for training, name in GENERATIONS.items()
    }
    marked = files["GSM-i 2%"]
    trained = set(marked.loc[marked["was_trained"] == "True", "input"])
    paper = printed_accuracy()
    rows = []
    for training, table in files.items():
        is_seen = table["input"].isin(trained)
        for dataset, chosen in ((SEEN, table[is_seen]), (UNSEEN, table[~is_seen])):
            pairs = list(zip(chosen["generated"].fillna(""), chosen["answer"], strict=True))
            correct, released = (
                100 * fmean(rule(*pair) for pair in pairs) for rule in (is_right, is_right_released)
            )
            value = paper[training, dataset]
            rows.append(
                {"row": training, "dataset": dataset, "n": len(pairs)}
                | {"accuracy_pct": correct, "accuracy_released_rules_pct": released}
                | {"paper": value, "matches": matches_printed(released, value)}
            )
    return pd.DataFrame(rows)


def recomputed_cells(rescored: pd.DataFrame) -> pd.DataFrame:
    """The four cells of :func:`rescored_generations`, released rules, keyed as the paper prints."""
    rows = [
        {"paper": "DICE", "table": "Table 1", "model": "LLaMA2-7B", "dataset": cell.dataset}
        | {"split": "", "row": f"{cell.row}, exact match", "metric": "accuracy_pct"}
        | {"recomputed": cell.accuracy_released_rules_pct, "note": Reason.NONE}
        for cell in rescored.itertuples()
    ]
    return pd.DataFrame(rows, columns=[*CELL_KEYS, "recomputed", "note"])


def r_squared(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> float:
    """Coefficient of determination of a straight line, 0 to 1; NaN where one side is constant."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return round(float(np.corrcoef(x, y)[0, 1] ** 2), 12)


def released_scores() -> pd.DataFrame:
    """Accuracies and DICE scores of the two released tables, one row per model and benchmark."""
    rows = []
    for name in SCORE_TABLES:
        table = released_rows(REPOSITORY, f"{SCORE_FOLDER}/{name}.csv").astype(float)
        for benchmark in [name.removesuffix("_DICE") for name in table if name.endswith("_DICE")]:
            columns = {"accuracy_pct": table[f"{benchmark}_performance"]}
            columns["score"] = table[f"{benchmark}_DICE"]
            about = {"source": name, "row": table.index, "benchmark": benchmark}
            rows.append(pd.DataFrame(about | columns))
    return pd.concat(rows, ignore_index=True)


def released_correlation(scores: pd.DataFrame) -> pd.DataFrame:
    """R² of Figure 6(b) from each released table, and from the first with the second's scores.

    Ten of the paper's eleven models are there.
    """
    first, second = (scores[scores["source"] == name] for name in SCORE_TABLES)
    both = disagreement(scores).set_index(["row", "benchmark"])["score_second"]
    replaced = first.set_index(["row", "benchmark"])["score"].copy()
    replaced.update(both)
    swapped = first.assign(
        source=f"{SCORE_TABLES[0]}, scores of the other", score=replaced.to_numpy()
    )
    rows = [
        {"source": source, "benchmark": benchmark, "n_models": len(group)}
        | {"r_squared": r_squared(group["accuracy_pct"], group["score"])}
        for (source, benchmark), group in pd.concat([first, second, swapped]).groupby(
            ["source", "benchmark"], sort=False
        )
    ]
    return pd.DataFrame(rows)


def disagreement(scores: pd.DataFrame) -> pd.DataFrame:
    """Models that both released tables hold, with both scores."""
    first, second = (
        scores[scores["source"] == name].drop(columns="source") for name in SCORE_TABLES
    )
    both = first.merge(second, on=["benchmark", "accuracy_pct"], suffixes=("_first", "_second"))
    both = both.rename(columns={"row_first": "row"}).sort_values(["row", "benchmark"])
    columns = ["row", "row_second", "benchmark", "accuracy_pct", "score_first", "score_second"]
    difference = both["score_second"] - both["score_first"]
    return both[columns].assign(difference=difference).reset_index(drop=True)


def misalignment() -> dict[str, int]:
    """How the released paraphrases lie to GSM-i, by count; n_dropped are few-shot rows."""
    rows = gsm8k_alignment()
    aligned = rows.dropna(subset="rephrased_row")
    counts = aligned["split"].value_counts()
    is_same = aligned["rephrased_row"] == aligned["gsm8k_test_row"]
    return {
        "n_paraphrases": len(aligned),
        "n_seen": int(counts[SEEN]),
        "n_unseen": int(counts[UNSEEN]),
        "n_dropped": int(counts.get("dropped_fewshot", 0)),
        "n_same_row": int(is_same.sum()),
        "n_without": len(rows) - len(aligned),
    }
