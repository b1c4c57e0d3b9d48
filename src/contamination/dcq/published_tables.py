"""DCQ's printed tables beside what the released answers give."""

from __future__ import annotations

import pandas as pd

from contamination.dcq.assessment import CHOICES, POSITIONS, assessment_row, standard_answers_of
from contamination.dcq.reciprocal import reciprocal_row
from contamination.published import printed_cells, released_instances
from contamination.published.compare import Reason, matches_printed

PARTITION = ["model", "dataset", "split"]
# Printed metric -> our column.
METRICS = {"dcq_min_pct": "min_pct", "dcq_max_pct": "max_pct", "rplc_pct": "replication_pct"}


def _printed_by_partition() -> pd.DataFrame:
    cells = printed_cells().query("paper == 'DCQ' and table in ['Table 2', 'Table 3']")
    return cells.pivot(index=PARTITION, columns="metric", values="value")


def dcq_published(n_resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Tables 2 and 3 recomputed from 7,166 released answers, one row per partition and model.

    Args:
        n_resamples: bootstrap resamples of the intervals.
        seed: bootstrap seed.

    Returns:
        Columns of ``assessment_row`` (the interval ci_low_pct to ci_high_pct is
        the maximum's), the printed values and ``matches``: all three numbers
        of the row equal the printed ones at the printed decimals.
    """
    printed = _printed_by_partition()
    rows = []
    for partition, instances in released_instances("DCQ").groupby(PARTITION, sort=False):
        row = dict(zip(PARTITION, partition, strict=True))
        row |= assessment_row(instances, n_resamples, seed)
        cells = printed.loc[partition]
        row["reported_pct"] = cells["reported_pct"]
        for metric, column in METRICS.items():
            row[f"paper_{column}"] = cells[metric]
        row["matches"] = all(matches_printed(row[c], cells[m]) for m, c in METRICS.items())
        rows.append(row)
    return pd.DataFrame(rows)


def kappa_from_rounded_percentages(row: pd.Series, best_position_count: int) -> float:
    """Kappa in percent when maximum and bias are rounded to two decimals of a percent first."""
    maximum = round(row["max_pct"], 2)
    bias = round(100 * best_position_count / row["n"], 2)
    return 100 * (maximum - bias) / (100 - bias)


def recomputed_cells(published: pd.DataFrame) -> pd.DataFrame:
    """The cells of ``dcq_published`` keyed as the paper prints them, with reasons.

    Returns:
        Columns of ``compare.CELL_KEYS``, recomputed, note.
    """
    cells = printed_cells().query("paper == 'DCQ' and metric in @METRICS")
    cells = cells[cells["table"].isin(["Table 2", "Table 3"])]
    rows = published.set_index(PARTITION)
    counts = modified_counts()
    found = []
    for cell in cells.itertuples(index=False):
        row = rows.loc[(cell.model, cell.dataset, cell.split)]
        note = Reason.NONE
        if cell.metric == "dcq_min_pct" and not matches_printed(row["min_pct"], cell.value):
            count = counts[cell.model, cell.dataset, row["best_position"]]
            if matches_printed(kappa_from_rounded_percentages(row, count), cell.value):
                note = Reason.ROUNDED_INPUTS
        recomputed = row[METRICS[cell.metric]]
        found.append({**cell._asdict(), "recomputed": recomputed, "note": note})
    return pd.DataFrame(found).drop(columns="value")


def modified_counts() -> pd.Series:
    """How often each choice was taken in the modified quiz, by (model, dataset, choice)."""
    instances = released_instances("DCQ")
    return instances.groupby(["model", "dataset", "modified_answer"]).size()


def dcq_reciprocal() -> pd.DataFrame:
    """Appendix C recomputed: replicas against quiz answers, one row per partition and model."""
    return pd.DataFrame(
        dict(zip(PARTITION, partition, strict=True)) | reciprocal_row(instances)
        for partition, instances in released_instances("DCQ").groupby(PARTITION, sort=False)
    )


def dcq_positions() -> pd.DataFrame:
    """How often each choice was taken in every released quiz, and Figure 2's printed counts.

    Returns:
        source ("released answers" or "printed"), dataset, split, model, quiz
        ("modified" or "standard"), position of the original ("" in the
        modified quiz), option A to E, count, paper_count (empty where the
        paper prints a curve without numbers).
    """
    rows = []
    for partition, instances in released_instances("DCQ").groupby(PARTITION, sort=False):
        key = dict(zip(PARTITION, partition, strict=True)) | {"source": "released answers"}
        quizzes = {("modified", ""): instances["modified_answer"].tolist()}
        standard = standard_answers_of(instances)
        quizzes |= {("standard", p): standard[p] for p in POSITIONS if p in standard}
        rows += [
            key | {"quiz": quiz, "position": at, "option": option, "count": answers.count(option)}
            for (quiz, at), answers in quizzes.items()
            for option in CHOICES
        ]
    columns = ["source", "dataset", "split", "model", "quiz", "position", "option"]
    counts = ["count", "paper_count"]
    table = pd.DataFrame(rows + _printed_positions())[[*columns, *counts]]
    return table.astype(dict.fromkeys(counts, "Int64"))


_PRINTED_QUIZZES = {
    "modified quiz": ("modified", ""),
    "standard, reference at B": ("standard", "B"),
    "perturbation at B": ("second perturbation", "B"),
}


def _printed_positions() -> list[dict]:
    cells = printed_cells().query("paper == 'DCQ' and table.str.startswith('Figure 2')")
    rows = []
    for cell in cells.itertuples():
        quiz, position = _PRINTED_QUIZZES[cell.row]
        key = {"source": "printed", "model": cell.model, "dataset": cell.dataset}
        key |= {"split": cell.split, "quiz": quiz, "position": position}
        rows.append(key | {"option": cell.metric[-1], "paper_count": int(cell.value)})
    return rows
