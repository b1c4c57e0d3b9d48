"""Checks of a Min-k% study: k chosen on other texts, nothing to find, words without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core import scores, statistics
from contamination.core.blind import USED_TWICE, Deals, auc_difference, blind_table
from contamination.core.blind_scores import BAG_OF_WORDS, feasible_folds
from contamination.core.verdicts import ALPHA
from contamination.min_k.auc_tables import Detected, difference_row, scores_of, select

# Fixed beforehand and the same at every size of a run.
K_SWEEP = (5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 100.0)
NULL_SEEDS = range(20)
USED_ONCE = f"{BAG_OF_WORDS}, as if its scores were fixed"
LABELLED_BY = ("chance", "the date", "date minus chance")


def swept_k(
    detected: Detected,
    is_member: Deals,
    k_percent: float,
    *,
    n_resamples: int,
    seed: int = 0,
) -> pd.DataFrame:
    """AUC of Min-k% Prob at every k, on one half of the passages and on the other.

    The k that is best on the first half (the same passages in every deal) is judged
    on the second, against ``k_percent``, the k used everywhere else.

    Args:
        detected: deal to scores at several k, of the same passages in every deal.
        is_member: deal to membership.
        n_resamples: bootstrap resamples of the second half.
        seed: of the halves and of the bootstrap.

    Returns:
        auc_chosen_on, auc_held_out (means over deals), is_best (on the first half),
        difference (held out, against ``k_percent``) with its paired interval and p, n_models.
    """
    n_passages = len(next(iter(is_member.values())))
    in_first = np.random.default_rng(seed).permutation(n_passages) < n_passages // 2
    kinds, parts = [], []
    for half in (in_first, ~in_first):
        kinds.append({deal: np.asarray(kind, bool)[half] for deal, kind in is_member.items()})
        parts.append({deal: select(table, half) for deal, table in detected.items()})
    first = next(iter(detected.values()))
    rows = []
    for k in sorted(first.loc[first["method"] == scores.MIN_K, "k_percent"].unique()):
        aucs = [
            statistics.auc(scores_of(table, scores.MIN_K, k), kinds[0][deal])
            for deal, table in parts[0].items()
        ]
        methods = ((scores.MIN_K, k_percent), (scores.MIN_K, k))
        row = difference_row(
            parts[1], parts[1], kinds[1], methods=methods, n_resamples=n_resamples, seed=seed
        )
        row |= {"k_percent": k, "auc_chosen_on": np.mean(aucs), "auc_held_out": row["last_auc"]}
        rows.append(row)
    columns = ["k_percent", "auc_chosen_on", "auc_held_out", "is_best"]
    columns += ["difference", "difference_low", "difference_high", "n_models", "p"]
    table = pd.DataFrame(rows)
    return table.assign(is_best=table.index == table["auc_chosen_on"].idxmax())[columns]


def null_rows(
    min_k_scores: np.ndarray, texts: Sequence[str], seed: int, *, n_resamples: int
) -> pd.DataFrame:
    """Whether an interval misses 0.5 when neither group was ever trained on.

    Half of the ``texts``, which the model never read, are called members; the deal's
    ``seed`` is fixed beforehand. ``min_k_scores`` are theirs, shape (n,). Rows: "Min-k% Prob",
    "bag of words", and the bag of words with the narrower interval of scores that were fixed
    beforehand, which overlooks that each pair of passages is used twice (``core.blind``);
    misses: 0.5 lies outside the interval.
    """
    is_member = np.zeros(len(texts), dtype=bool)
    dealt = np.random.default_rng([seed, 20]).permutation(len(texts))
    is_member[dealt[: len(texts) // 2]] = True
    interval = statistics.auc_interval(min_k_scores, is_member, n_resamples, seed)
    words = _bag_of_words(texts, is_member, n_resamples=n_resamples, seed=seed).iloc[0]
    rows = [
        (seed, scores.MIN_K, statistics.auc(min_k_scores, is_member), *interval),
        (seed, BAG_OF_WORDS, words["auc"], words["ci_low"], words["ci_high"]),
        (seed, USED_ONCE, words["auc"], *_narrowed(words)),
    ]
    table = pd.DataFrame(rows, columns=["seed", "method", "auc", "ci_low", "ci_high"])
    return table.assign(misses=(table["ci_low"] > 0.5) | (table["ci_high"] < 0.5))


def _bag_of_words(texts: Sequence[str], labels: np.ndarray, **resampling: int) -> pd.DataFrame:
    """One row of ``blind_table``, without shuffled labels."""
    plan: dict[str, Any] = {
        "baselines": [BAG_OF_WORDS],
        "n_folds": feasible_folds(labels),
        "n_permutations": 0,
    }
    return blind_table(texts, labels, **plan, **resampling)


def _narrowed(words: pd.Series) -> tuple[float, float]:
    ends = (words[["ci_low", "ci_high"]] - words["auc"]) / USED_TWICE
    return tuple(words["auc"] + ends)


def null_summary(null: pd.DataFrame) -> pd.DataFrame:
    """How many intervals of ``null_rows`` miss 0.5, and whether that is no more than chance.

    Columns method, deals, missed, expected (one in twenty) and holds: the binomial chance of
    at least so many is above 0.05. Given its passages, each deal is an independent draw.
    """
    counted = null.groupby("method", sort=False)["misses"].agg(deals="size", missed="sum")
    table = counted.reset_index()
    chance = stats.binom.sf(table["missed"] - 1, table["deals"], 1 - statistics.CONFIDENCE)
    return table.assign(expected=(1 - statistics.CONFIDENCE) * table["deals"], holds=chance > ALPHA)


def score_by_label(
    values: Sequence[float], by_chance: Sequence[bool], by_date: Sequence[bool]
) -> pd.DataFrame:
    """AUC of one score with labels by chance and by date, the first two of ``LABELLED_BY``.

    All three have shape (n_texts,). The intervals resample texts, 95 %.
    """
    rows = []
    for name, labels in zip(LABELLED_BY[:2], (by_chance, by_date), strict=True):
        is_member = np.asarray(labels, bool)
        low, high = statistics.auc_interval(np.asarray(values), is_member)
        row = {"who is a member": name, "n_members": is_member.sum()}
        row |= {"n_non_members": (~is_member).sum(), "ci_low": low, "ci_high": high}
        rows.append(row | {"auc": statistics.auc(np.asarray(values), is_member)})
    return pd.DataFrame(rows)


def words_by_label(
    texts: Sequence[str],
    by_chance: Sequence[bool],
    by_date: Sequence[bool],
    *,
    n_resamples: int,
) -> pd.DataFrame:
    """AUC of words alone on the same texts, with labels by chance and with labels by date.

    Both label vectors have shape (n_texts,). Rows ``LABELLED_BY``: "chance", "the date" and "date
    minus chance", the difference of the two, whose p is against 0; the other two are against 0.5.
    Columns are those of ``blind.blind_table``, and n_members and n_non_members of the difference
    are empty.
    """
    rows = []
    for name, labels in zip(LABELLED_BY[:2], (by_chance, by_date), strict=True):
        table = _bag_of_words(texts, np.asarray(labels, bool), n_resamples=n_resamples)
        table.insert(0, "who is a member", name)
        rows.append(table)
    found = auc_difference(texts, by_chance, by_date, n_resamples=n_resamples)
    difference = {"who is a member": LABELLED_BY[2], "auc": found["difference"], "p": found["p"]}
    difference |= {"ci_low": found["difference_low"], "ci_high": found["difference_high"]}
    table = pd.concat([*rows, pd.DataFrame([difference])], ignore_index=True)
    return table.astype({"n_members": "Int64", "n_non_members": "Int64"})
