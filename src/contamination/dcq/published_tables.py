"""DCQ's printed tables next to what the released answers give."""

from __future__ import annotations

import pandas as pd
from scipy import stats

from contamination.core.statistics import correct_family
from contamination.core.verdicts import ALPHA, NOT_RUN, OPEN, RULED_OUT, SHOWN
from contamination.data.published import printed_cells, released_instances
from contamination.data.published.compare import Reason, matches_printed
from contamination.dcq.assessment import assess, assessment_row, standard_answers_of
from contamination.dcq.quizzes import MODIFIED, SECOND, STANDARD, position_rows

PARTITION = ["model", "dataset", "split"]
# Printed metric -> our column.
METRICS = {"dcq_min_pct": "min_pct", "dcq_max_pct": "max_pct", "rplc_pct": "replication_pct"}


def _printed() -> pd.DataFrame:
    return printed_cells().query("paper == 'DCQ' and table in ['Table 2', 'Table 3']")


def dcq_published(n_resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Tables 2 and 3 recomputed from 7,166 released answers, one row per partition and model.

    Columns of ``assessment_row`` (the interval ci_low_pct to ci_high_pct is the
    maximum's) and ``matches``: all three numbers of the row equal the printed ones at the
    printed decimals.
    """
    printed = _printed().pivot(index=PARTITION, columns="metric", values="value")
    rows = []
    for partition, instances in released_instances("DCQ").groupby(PARTITION, sort=False):
        row = dict(zip(PARTITION, partition, strict=True))
        row |= assessment_row(instances, n_resamples, seed)
        cells = printed.loc[partition]
        row["matches"] = all(matches_printed(row[c], cells[m]) for m, c in METRICS.items())
        rows.append(row)
    return pd.DataFrame(rows)


def kappa_from_rounded_percentages(row: pd.Series, best_position_count: int) -> float:
    """Kappa in percent when maximum and bias are rounded to two decimals of a percent first."""
    maximum = round(row["max_pct"], 2)
    bias = round(100 * best_position_count / row["n"], 2)
    return 100 * (maximum - bias) / (100 - bias)


def recomputed_cells(published: pd.DataFrame) -> pd.DataFrame:
    """The cells of ``dcq_published`` keyed by ``compare.CELL_KEYS``, with reasons (note)."""
    cells = _printed().query("metric in @METRICS")
    rows = published.set_index(PARTITION)
    instances = released_instances("DCQ")
    chosen = instances.groupby(["model", "dataset", "modified_answer"]).size()
    recomputed = []
    for cell in cells.itertuples(index=False):
        row = rows.loc[(cell.model, cell.dataset, cell.split)]
        note = Reason.NONE
        if cell.metric == "dcq_min_pct" and not matches_printed(row["min_pct"], cell.value):
            count = chosen[cell.model, cell.dataset, row["best_position"]]
            if matches_printed(kappa_from_rounded_percentages(row, count), cell.value):
                note = Reason.ROUNDED_INPUTS
        value = row[METRICS[cell.metric]]
        recomputed.append({**cell._asdict(), "recomputed": value, "note": note})
    return pd.DataFrame(recomputed).drop(columns="value")


def dcq_reciprocal() -> pd.DataFrame:
    """Appendix C recomputed: replicas against quiz answers, one row per partition and model.

    Added is p_adjusted, Holm's over all rows with replicas: a claim of ``reciprocal_row`` is
    shown only if it stays at most 0.05.
    """
    rows = pd.DataFrame(
        dict(zip(PARTITION, partition, strict=True)) | reciprocal_row(instances)
        for partition, instances in released_instances("DCQ").groupby(PARTITION, sort=False)
    )
    return correct_family(rows.assign(p=rows["p_at_least_as_many"])).drop(columns="p")


def reciprocal_row(instances: pd.DataFrame) -> dict[str, float | int | str]:
    """Are replicated instances also recognised? One row of ``dcq_reciprocal.csv``.

    The paper: every instance replicated exactly or nearly was also answered
    right. The control is independence of the two: expected_if_independent replicas
    right in the best quiz, and p_at_least_as_many, the hypergeometric chance of as many
    or more (undefined without replicas). One replica that was answered wrong refutes the claim
    (verdict "ruled out"). Where all were right it is shown if independence is refuted
    too. It is open where it is not: no smaller p was possible, since all being right is
    the most there is. note: why nothing was asked.

    ``instances`` holds modified_answer, answer_at_a to answer_at_d, judge.
    """
    standard = standard_answers_of(instances)
    best = assess(instances["modified_answer"].tolist(), standard).best_position
    right = pd.DataFrame(
        {position: [a == position for a in answers] for position, answers in standard.items()},
        index=instances.index,
    )
    is_replica = instances["judge"].ne("inexact")
    n, n_replicas, n_right = len(instances), int(is_replica.sum()), int(right[best].sum())
    n_right_best = int(right.loc[is_replica, best].sum())
    p = float(stats.hypergeom.sf(n_right_best - 1, n, n_right, n_replicas))
    verdict = SHOWN if p <= ALPHA else OPEN
    if n_right_best < n_replicas:
        verdict = RULED_OUT
    return {
        "n": n,
        "n_replicas": n_replicas,
        "n_right_best_quiz": n_right_best,
        "n_right_any_quiz": int(right[is_replica].any(axis=1).sum()),
        "expected_if_independent": n_replicas * n_right / n,
        "p_at_least_as_many": p if n_replicas else float("nan"),
        "verdict": verdict if n_replicas else NOT_RUN,
        "note": "" if n_replicas else "no instance was replicated",
    }


def dcq_positions() -> pd.DataFrame:
    """How often each choice was taken in every released quiz, and Figure 2's printed counts.

    position (of the original) is "" in the modified quiz, paper_count empty where the
    paper prints a curve without numbers.
    """
    parts = []
    for (model, dataset, split), instances in released_instances("DCQ").groupby(
        PARTITION, sort=False
    ):
        quizzes = {(MODIFIED, ""): instances["modified_answer"].tolist()}
        quizzes |= {(STANDARD, at): of for at, of in standard_answers_of(instances).items()}
        answers = pd.concat(
            pd.DataFrame({"quiz": quiz, "position": at, "answer": of})
            for (quiz, at), of in quizzes.items()
        )
        about = {"source": "released answers", "dataset": dataset, "split": split, "model": model}
        parts.append(position_rows(answers, **about))
    printed = pd.DataFrame(_printed_positions()).astype({"paper_count": "Int64"})
    return pd.concat([*parts, printed], ignore_index=True)


_PRINTED_QUIZZES = {
    "modified quiz": (MODIFIED, ""),
    "standard, reference at B": (STANDARD, "B"),
    "perturbation at B": (SECOND, "B"),
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
