"""Which rows did the model see? Scores of every row, and a list with a bound on its false names.

A row's score is compared with the scores of the comparison rows, which gives its conformal
p-value. The procedure of Benjamini and Hochberg then chooses how many rows to name, so that on
average at most a stated share of the names is false (``conformal``). This is true only if
comparison rows and unseen dataset rows are exchangeable, and it is true of audits on average and
not of any single list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.audit.conformal import conformal_p, named_rows
from contamination.audit.finding import Finding
from contamination.audit.prepared import DCQ, MIN_K, REPLICATION, Audit
from contamination.core.statistics import CONFIDENCE, share_interval
from contamination.models.chat import OK
from contamination.replication.instructions import GUIDED

SCORES = {MIN_K: "min_k_score", REPLICATION: "completion_rouge", DCQ: "quiz_share"}
COLUMNS = ["model", "index", *SCORES.values(), "p_value", "p_adjusted", "is_listed"]
NO_COMPARISON = (
    "there are no comparison rows, so nobody knows how high an unseen row scores: name rows that "
    "the model cannot have seen (docs/audit.md says where they come from)"
)
LISTED, REST = "listed as seen", "named by no list"
FEWEST_OF_MEAN = 2  # values that an interval of a mean needs
NO_SCORES = "no method gave a score of single rows for dataset and comparison rows"


def row_scores(audit: Audit, findings: Mapping[str, Finding]) -> pd.DataFrame:
    """Scores of every dataset row and comparison row by the methods that were run.

    Returns:
        index (row of its file, from 0), is_unseen (a comparison row), min_k_score (nats, higher
        for rows that the model finds more familiar), completion_rouge (ROUGE-L of the guided
        completion, 0 to 1) and quiz_share (share of the quizzes in which the model picked the
        original, 0 to 1; dataset rows only); NaN where a method did not score the row.
    """
    sets = [rows.rows[["index"]].assign(is_unseen=bool(k)) for k, rows in enumerate(audit.sets)]
    table = pd.concat(sets, ignore_index=True).assign(**dict.fromkeys(SCORES.values(), math.nan))
    if len(details := _details(findings, MIN_K)):
        table["min_k_score"] = details["score"].to_numpy()
    if len(details := _details(findings, REPLICATION)):
        guided = details[details["instruction"].eq(GUIDED)]
        of_unseen = guided["rows"].ne("dataset").to_numpy()
        for is_unseen in (False, True):
            values = guided.loc[of_unseen == is_unseen, "rouge"].to_numpy()
            places = table.index[table["is_unseen"].eq(is_unseen)][: len(values)]
            table.loc[places, "completion_rouge"] = values
    if len(details := _details(findings, DCQ)):
        asked = details[details["position"].ne("")]
        is_right = (asked["answer"].eq(asked["position"]) & asked["status"].eq(OK)).astype(float)
        shares = is_right.groupby(asked["index"]).mean()
        is_data = ~table["is_unseen"]
        table.loc[is_data, "quiz_share"] = table.loc[is_data, "index"].map(shares)
    return table


def _details(findings: Mapping[str, Finding], method: str) -> pd.DataFrame:
    found = findings.get(method)
    return pd.DataFrame() if found is None else found.details


def listed_rows(
    audit: Audit, findings: Mapping[str, Mapping[str, Finding]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``audit_rows.csv`` and ``audit_lists.csv``: the rows of the dataset, and one list a model.

    A list rests on Min-k% Prob where it was run and on the completions elsewhere; a quiz gives too
    few answers to a row. The lists of two models are two lists, each with its own rate.

    ``findings`` are by model, then by method; the rate is ``false_discovery_rate`` of the settings.

    Returns:
        Rows with columns ``COLUMNS``, one for each model and dataset row: p_value is conformal,
        p_adjusted is Benjamini and Hochberg's; both, and is_listed, are empty where no list is
        possible. And lists: model, method, n_rows (with a score), n_comparison, rate, n_listed
        (empty where no list is possible) and note, one or two sentences.
    """
    rate = audit.told.false_discovery_rate
    of_models = [_of_model(audit, name, of_model, rate) for name, of_model in findings.items()]
    rows = pd.concat([of_rows for of_rows, _ in of_models], ignore_index=True)
    lists = pd.DataFrame([of_list for _, of_list in of_models])
    return rows, lists.astype({"n_listed": "Int64"})


def _of_model(
    audit: Audit, model: str, findings: Mapping[str, Finding], rate: float
) -> tuple[pd.DataFrame, dict[str, object]]:
    scores = row_scores(audit, findings)
    table = scores[~scores["is_unseen"]].assign(model=model, p_value=math.nan, p_adjusted=math.nan)
    table["is_listed"] = pd.array([pd.NA] * len(table), dtype="boolean")
    method, why = _basis(audit, scores)
    of_list: dict[str, Any] = {
        "model": model,
        "method": method,
        "n_rows": 0,
        "n_comparison": 0,
        "rate": rate,
    }
    of_list |= {"n_listed": pd.NA, "note": why}
    if method:
        values = table[SCORES[method]].dropna()
        unseen = scores.loc[scores["is_unseen"], SCORES[method]].dropna().to_numpy()
        p_values = conformal_p(values.to_numpy(), unseen)
        table.loc[values.index, "p_value"] = p_values
        table.loc[values.index, "p_adjusted"] = stats.false_discovery_control(p_values)
        table.loc[values.index, "is_listed"] = named_rows(p_values, rate)
        n_listed = int(table["is_listed"].sum())
        of_list |= {"n_rows": len(values), "n_comparison": len(unseen), "n_listed": n_listed}
        of_list["note"] = _note(method, len(values), len(unseen), n_listed, rate)
    return table[COLUMNS].reset_index(drop=True), of_list


def _basis(audit: Audit, scores: pd.DataFrame) -> tuple[str, str]:
    """The method whose score the list uses, or why there can be no list."""
    if audit.unseen is None:
        return "", f"No list of rows: {NO_COMPARISON}."
    if audit.refusal:
        return "", f"No list of rows: {audit.refusal}."
    has_scores = scores.groupby("is_unseen")[list(SCORES.values())].count().gt(0).all()
    for method in (MIN_K, REPLICATION):
        if has_scores[SCORES[method]]:
            return method, ""
    return "", f"No list of rows: {NO_SCORES}."


def _note(method: str, n_rows: int, n_unseen: int, n_listed: int, rate: float) -> str:
    """What the list says; where it is empty, how many rows it would have taken."""
    limit = f"{100 * rate:g} %"
    if n_listed:
        return (
            f"{n_listed} of {n_rows} rows are listed as seen, by {method}. If the comparison rows "
            f"are of the dataset's kind, at most {limit} of the rows on such a list are named "
            "wrongly, on average over audits; on a single list it can be more."
        )
    # The smallest p is that of a row above all comparison rows.
    fewest = max(1, math.ceil(n_rows / (rate * (n_unseen + 1))))
    if fewest > n_rows:
        return (
            f"The list is empty, because {n_unseen} comparison rows are too few for any list at "
            f"{limit} false names: at least {math.ceil(1 / rate) - 1} are needed."
        )
    return (
        f"The list is empty: no rows stand out far enough by {method} for at most {limit} of the "
        f"names to be false. For that, {fewest} of the {n_rows} rows would have to score above "
        f"all {n_unseen} comparison rows, or more rows would have to score a little lower."
    )


def unlisted_rows(rows: pd.DataFrame) -> list[int]:
    """Numbers of the rows that were scored and that no model's list names, rising, from 0.

    ``rows`` is ``audit_rows.csv``. The list says no more than that these rows did not stand out:
    none of them is thereby shown to be unseen. It is empty where no list was possible.
    """
    known = rows.dropna(subset=["is_listed"])
    is_listed = known["is_listed"].astype(bool).groupby(known["index"]).any()
    return sorted(int(index) for index in is_listed.index[~is_listed])


def scores_by_list(scores: pd.Series, rows: pd.DataFrame) -> pd.DataFrame:
    """The score of an evaluation on the rows that a list names, and on those that none names.

    Args:
        scores: of every row of the dataset, by its number from 0, NaN where there is none.
        rows: ``audit_rows.csv``.

    Returns:
        rows (which they are), n, value (mean score), ci_low and ci_high (of a share by Wilson, of
        any other score by Student's t; NaN for fewer than two rows). Empty where no list was
        possible or no row has a score.
    """
    unlisted = unlisted_rows(rows)
    known = rows.dropna(subset=["is_listed"])["index"].unique()
    listed = sorted({*map(int, known)} - {*unlisted})
    groups = {"all rows that were scored": [*listed, *unlisted], LISTED: listed, REST: unlisted}
    found = []
    for name, places in groups.items():
        values = scores.reindex(places).dropna().to_numpy(float)
        low, high = _mean_interval(values)
        mean = float(values.mean()) if len(values) else math.nan
        found.append(
            {"rows": name, "n": len(values), "value": mean, "ci_low": low, "ci_high": high}
        )
    table = pd.DataFrame(found)
    return table if len(known) and table["n"].any() else table.iloc[:0]


def _mean_interval(values: np.ndarray) -> tuple[float, float]:
    if len(values) < FEWEST_OF_MEAN:
        return math.nan, math.nan
    if np.isin(values, (0, 1)).all():
        return share_interval(int(values.sum()), len(values))
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    return stats.t.interval(CONFIDENCE, len(values) - 1, values.mean(), stats.sem(values))
