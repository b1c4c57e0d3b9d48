"""AUC of every method, with intervals over passages and models: rows of ``min_k_auc.csv``.

Everything here takes what ``detect`` returned; no model is loaded. Where chance
decides membership, each model has a **deal** of its own: which passages it reads,
and how often. An interval over models draws deals with replacement, and passages
within each, so it covers the luck of the deal and of the training.

``cases.downstream`` has rows of its own: there all models share the examples, so
all see the same resampled ones. So has ``cases.books``, which resamples books.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import statistics
from contamination.core.blind import Deals, blind_rows
from contamination.core.verdicts import FEWEST_MODELS

KEYS = ["method", "k_percent"]
Detected = Mapping[int, pd.DataFrame]  # deal to what ``min_k.detect.detect`` gave for it
AUC_COLUMNS = [
    *("benchmark", "setting", "length", "model", "n_parameters", "copies", "seed", "n_models"),
    *("method", "k_percent", "reference_model", "reference_tokenizer", "first_token_scored"),
    *("n_members", "n_non_members", "windowed_share"),
    *("auc", "ci_low", "ci_high", "tpr_at_5_fpr", "blind_auc", "paper_auc", "paper_tpr"),
    *("before_auc", "before_low", "before_high"),
    *("difference", "difference_low", "difference_high", "p"),
]


def auc_rows(
    detected: Detected,
    is_member: Deals,
    *,
    n_resamples: int,
    before: Detected | None = None,
    seed: int = 0,
    **labels: Any,
) -> pd.DataFrame:
    """Rows of ``min_k_auc.csv`` for one set of passages under one or more models.

    Args:
        detected: deal (training seed) to the scores of its passages under its model;
            all deals hold the same methods.
        is_member: deal to the membership of these passages.
        n_resamples: bootstrap resamples.
        before: as ``detected``, of the same model before it read any; None where no
            such model is at hand.
        seed: of the bootstrap; methods, and a model before and after, see the same
            resampled passages.
        **labels: further columns of ``AUC_COLUMNS``, such as benchmark or length.

    Returns:
        One row for each model, method and k; with several models also a row
        with an empty seed: the mean AUC over the models, numbers of passages the
        mean of the deals, rounded. difference is what reading adds to before_auc, with
        its paired interval. Its two-sided p is left out where fewer than five models
        stand behind the row, which say little about other models.
    """
    groups: list[tuple[list[int], int | None]] = [
        ([number], deal) for number, deal in enumerate(detected)
    ]
    if len(detected) > 1:
        groups.append((list(range(len(detected))), None))
    rows = []
    first = next(iter(detected.values()))
    for (method, k_percent), _ in first.groupby(KEYS, sort=False, dropna=False):
        drawn = {"n_resamples": n_resamples, "seed": seed}
        after = _aucs(detected, is_member, method, k_percent, **drawn)
        unread = None
        if before is not None:
            unread = _aucs(before, is_member, method, k_percent, **drawn)
        rates = [
            statistics.tpr_at_fpr(
                scores_of(table, method, k_percent), np.asarray(is_member[deal], bool)
            )
            for deal, table in detected.items()
        ]
        for numbers, deal in groups:
            mean, resampled = _over_deals(after, numbers, seed)
            row = {"seed": deal, "n_models": len(numbers), "method": method, "k_percent": k_percent}
            row |= _interval("auc", mean, "ci", resampled)
            row |= {"tpr_at_5_fpr": float(np.mean([rates[number] for number in numbers]))}
            if unread is not None:
                base, base_resampled = _over_deals(unread, numbers, seed)
                row |= _interval("before_auc", base, "before", base_resampled)
                row |= _change(mean - base, resampled - base_resampled, len(numbers))
            rows.append(row | _facts(detected, is_member, numbers) | labels)
    table = pd.DataFrame(rows).reindex(columns=AUC_COLUMNS)
    return table.astype({"seed": "Int64", "copies": "Int64", "k_percent": float})


def difference_row(
    first: Detected,
    last: Detected,
    is_member: Deals,
    /,
    *,
    methods: tuple[tuple[str, float | None], tuple[str, float | None]],
    n_resamples: int,
    seed: int = 0,
    **labels: Any,
) -> dict:
    """How an AUC differs between two scores of the same passages: a row of ``min_k_trends.csv``.

    ``methods`` are method and k of ``first`` and of ``last``, which hold the same
    passages in the same order; difference is last - first, its interval paired.
    """
    numbers = list(range(len(first)))
    (first_auc, first_drawn), (last_auc, last_drawn) = (
        _over_deals(_aucs(scored, is_member, *method, n_resamples, seed), numbers, seed)
        for scored, method in zip((first, last), methods, strict=True)
    )
    facts = _facts(first, is_member, numbers)
    row = labels | {name: facts[name] for name in ("n_members", "n_non_members")}
    row |= {"n_models": len(first), "first_auc": first_auc, "last_auc": last_auc}
    return row | _change(last_auc - first_auc, last_drawn - first_drawn, len(first))


def _aucs(
    detected: Detected,
    is_member: Deals,
    method: str,
    k_percent: float | None,
    n_resamples: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """AUC of each deal, shape (n_deals,), and resampled, (n_deals, n_resamples)."""
    aucs, resampled = [], []
    for number, (deal, table) in enumerate(detected.items()):
        values, kind = scores_of(table, method, k_percent), np.asarray(is_member[deal], bool)
        aucs.append(statistics.auc(values, kind))
        resampled.append(statistics.bootstrap_aucs([values], kind, n_resamples, seed + number)[0])
    return np.array(aucs), np.array(resampled)


def _over_deals(
    aucs: tuple[np.ndarray, np.ndarray], numbers: list[int], seed: int
) -> tuple[float, np.ndarray]:
    """Mean AUC of some deals, and its resamples: deals are drawn, passages within each."""
    values, resampled = aucs
    return float(values[numbers].mean()), statistics.over_drawn_models(resampled[numbers], seed)


def _interval(name: str, value: float, ends: str, resampled: np.ndarray) -> dict[str, float]:
    low, high = statistics.percentile_interval(resampled)
    return {name: value, f"{ends}_low": low, f"{ends}_high": high}


def _change(value: float, resampled: np.ndarray, n_models: int) -> dict[str, float]:
    row = _interval("difference", value, "difference", resampled)
    is_test = n_models >= FEWEST_MODELS
    return row | {"p": statistics.bootstrap_p(value, resampled) if is_test else np.nan}


def _facts(detected: Detected, is_member: Deals, numbers: Sequence[int]) -> dict:
    chosen = [list(detected)[number] for number in numbers]
    counts = np.mean([[np.sum(is_member[d]), np.sum(~np.asarray(is_member[d]))] for d in chosen], 0)
    first = detected[chosen[0]]
    of_reference = first.get("reference_tokenizer", pd.Series("", first.index))
    windows = [detected[d].groupby("passage")["n_windows"].first().gt(1).mean() for d in chosen]
    return {
        "n_members": round(counts[0]),
        "n_non_members": round(counts[1]),
        "first_token_scored": bool(first["first_token_scored"].iloc[0]),
        "reference_tokenizer": of_reference.iloc[0],
        "windowed_share": float(np.mean(windows)),
    }


def auc_and_blind_rows(
    detected: Detected,
    texts: Mapping[int, Sequence[str]],
    is_member: Deals,
    *,
    n_permutations: int,
    n_resamples: int,
    before: Detected | None = None,
    **labels: Any,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``auc_rows`` with the best blind AUC on the same passages, and these ``blind_rows``."""
    words = blind_rows(
        texts, is_member, n_permutations=n_permutations, n_resamples=n_resamples, **labels
    )
    rows = auc_rows(detected, is_member, n_resamples=n_resamples, before=before, **labels)
    return add_blind_auc(rows, words), words


def add_blind_auc(rows: pd.DataFrame, words: pd.DataFrame) -> pd.DataFrame:
    """``auc_rows`` with the best blind AUC, over several deals the best mean of one baseline."""
    of_deal = words.groupby("seed")["auc"].max()
    of_all = words.groupby("baseline")["auc"].mean().max()
    return rows.assign(blind_auc=rows["seed"].map(of_deal).astype(float).fillna(of_all))


def pooled_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Of ``auc_rows`` the rows over all models together; every row where there is one model."""
    return rows[rows["n_models"] == rows["n_models"].max()]


def blind_line(rows: pd.DataFrame, x: str) -> pd.DataFrame:
    """AUC of the best blind baseline along a column of ``auc_rows``: columns ``x`` and auc."""
    return rows.groupby(x, as_index=False)["blind_auc"].first().rename(columns={"blind_auc": "auc"})


def numbers_of(rows: pd.DataFrame) -> str:
    """Models and passages behind a figure, for its title.

    >>> columns = ["n_models", "n_members", "n_non_members"]
    >>> numbers_of(pd.DataFrame([[3, 44, 155], [3, 20, 155]], columns=columns))
    '3 models, 20 to 44 members, 155 non-members'
    """
    parts = [f"{rows['n_models'].max()} models"]
    for column, kind in (("n_members", "members"), ("n_non_members", "non-members")):
        low, high = rows[column].min(), rows[column].max()
        parts.append(f"{low} {kind}" if low == high else f"{low} to {high} {kind}")
    return ", ".join(parts)


def texts_and_labels(passages: Mapping[int, pd.DataFrame]) -> tuple[dict[int, list[str]], dict]:
    """Of the passages of each deal (columns text and role) the texts and who is a member."""
    texts = {deal: rows["text"].tolist() for deal, rows in passages.items()}
    return texts, {deal: rows["role"].eq("member").to_numpy() for deal, rows in passages.items()}


def at_k(detected: pd.DataFrame, k_percent: float) -> pd.DataFrame:
    """Scores at one k; methods without k stay."""
    return detected[detected["k_percent"].isna() | (detected["k_percent"] == k_percent)]


def scores_of(detected: pd.DataFrame, method: str, k_percent: float | None) -> np.ndarray:
    """Scores of one method at one k (None or NaN: the method has none), passages in order."""
    chosen = detected[detected["method"] == method]
    if pd.notna(k_percent):
        chosen = chosen[chosen["k_percent"] == k_percent]
    return chosen.sort_values("passage")["score"].to_numpy()


def select(detected: pd.DataFrame, keep: Sequence[bool] | np.ndarray) -> pd.DataFrame:
    """Scores of some of the passages, numbered anew."""
    numbers = np.flatnonzero(np.asarray(keep, dtype=bool))
    renumbered = pd.Series(np.arange(len(numbers)), index=numbers)
    chosen = detected[detected["passage"].isin(numbers)]
    return chosen.assign(passage=chosen["passage"].map(renumbered).to_numpy())
