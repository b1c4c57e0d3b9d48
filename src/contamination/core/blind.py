"""What separates members from non-members without any model: the blind baselines.

Das et al., arXiv:2406.16201: a benchmark whose members and non-members differ
in date, topic or style can be solved from the text alone, so an AUC of a
detector says nothing until the AUC of a classifier that never saw the model
stands beside it. The scores are those of ``core.blind_scores``.

Intervals are wider than a bootstrap of the scores says. Each pair of passages is used twice:
one of them trains the classifier that judges the other, and the other way round. What
the two have in common by chance therefore counts twice, and the variance is up to twice that
of scores which were fixed beforehand. So the bootstrap's deviations are stretched by √2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
import sklearn

from contamination.core import caches, statistics
from contamination.core.blind_scores import (
    BAG_OF_WORDS,
    BASELINES,
    DATE_RULE,
    N_FOLDS,
    Folds,
    cross_validated_scores,
    feasible_folds,
    scorer_of,
)
from contamination.core.overlap import ngram_overlap_share
from contamination.core.verdicts import CLAIMS

COLUMNS = ["baseline", "n_members", "n_non_members", "auc", "ci_low", "ci_high", "p"]
COLUMNS += ["permutation_null", "permutation_high", "p_value", "tpr_at_5_fpr", "overlap_pct"]
LABELS = ["benchmark", "setting", "length", "seed"]  # put before COLUMNS in blind_baselines.csv
# Raise it when a row changes: with the code below, a blind score, the folds or a statistic.
BLIND_VERSION = 2
USED_TWICE = np.sqrt(2)  # by how much a cross-validated AUC strays further than its bootstrap

Deals = Mapping[int, Sequence[bool] | np.ndarray]  # deal to the membership of its passages


def blind_table(
    texts: Sequence[str],
    is_member: Sequence[bool] | np.ndarray,
    *,
    baselines: Sequence[str] = BASELINES,
    groups: Sequence[int] | np.ndarray | None = None,
    n_folds: int = N_FOLDS,
    n_permutations: int = 100,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """AUC of baselines that see the passages and their labels, and no model.

    Args:
        texts: n_passages passages.
        is_member: their membership, shape (n_passages,).
        baselines: of "date rule", "bag of words", "TF-IDF".
        groups: what a passage is a version of, such as its page, shape
            (n_passages,), each with both kinds. Versions of one thing fall into
            one fold, and labels are shuffled among them alone. Without groups,
            near-copies are found by the words that they share.
        n_folds: folds of the cross-validation, at most.
        n_permutations: times that labels are shuffled and everything, training
            included, is done again.
        n_resamples: resamples of the bootstrap, which keeps the trained
            classifiers and resamples the passages they are tested on.
        seed: of folds, permutations and resamples.

    Returns:
        One row for each baseline. auc and tpr_at_5_fpr are means over folds (the date
        rule needs none), ci_low, ci_high and the two-sided p those of the AUC;
        permutation_null is the mean AUC under shuffled labels,
        permutation_high its upper 95 % quantile, p_value the share of permutations,
        the true labels among them, at least as high; overlap_pct the non-members that
        share an n-gram of words with a member. The date rule's cells are empty where
        no passage names a year.

    ValueError if only one kind occurs, a fold or a group would lack one, or a baseline
    is unknown.
    """
    is_member = np.asarray(is_member, dtype=bool)
    if len(texts) != len(is_member):
        raise ValueError(f"{len(texts)} passages but {len(is_member)} labels")
    if unknown := [name for name in baselines if name not in BASELINES]:
        raise ValueError(f"unknown baselines {unknown}, choose from {list(BASELINES)}")
    smaller = min(is_member.sum(), (~is_member).sum())
    if smaller < n_folds:
        raise ValueError(
            f"{n_folds} folds need as many members and non-members, the smaller kind has {smaller}"
        )
    groups = None if groups is None else np.asarray(groups)
    if groups is not None and set(groups[is_member]) != set(groups[~is_member]):
        raise ValueError("each group needs both kinds, since labels are shuffled within it")
    settings = list(baselines), n_folds, n_permutations, n_resamples, seed
    of_groups = None if groups is None else groups.tolist()
    inputs = [list(texts), is_member.tolist(), of_groups, settings]
    inputs += [np.__version__, sklearn.__version__]

    def table() -> pd.DataFrame:
        return _blind_table(texts, is_member, groups, *settings)

    return caches.cached_table("min_k", "blind", BLIND_VERSION, inputs, table)


def _blind_table(
    texts: Sequence[str],
    is_member: np.ndarray,
    groups: np.ndarray | None,
    baselines: Sequence[str],
    n_folds: int,
    n_permutations: int,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    members, non_members = (list(compress(texts, kind)) for kind in (is_member, ~is_member))
    shared = {
        "n_members": len(members),
        "n_non_members": len(non_members),
        "overlap_pct": 100 * ngram_overlap_share(non_members, members),
    }
    rows = []
    for baseline in baselines:
        scorer = scorer_of(baseline, texts, n_folds, seed, groups)
        judged = scorer(is_member)
        row: dict[str, Any] = {"baseline": baseline} | shared
        if judged:
            row |= _judged(judged, is_member, baseline, n_resamples, seed)
            row |= _permuted(scorer, is_member, groups, row["auc"], n_permutations, seed)
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(COLUMNS[3:], float))


def blind_rows(
    texts: Mapping[int, Sequence[str]],
    is_member: Deals,
    *,
    n_permutations: int,
    n_resamples: int,
    groups: Sequence[int] | np.ndarray | None = None,
    **labels: Any,
) -> pd.DataFrame:
    """Rows of ``blind_baselines.csv``: all blind baselines on the passages of each deal.

    ``cases.downstream`` and ``cases.books`` have rows of their own: the first averages
    over datasets, the second resamples books. ``labels`` (benchmark, setting, length) and
    the deal (seed) stand before the columns of ``blind_table``.
    """
    parts = []
    for deal, passages in texts.items():
        table = blind_table(
            passages,
            is_member[deal],
            n_folds=feasible_folds(is_member[deal]),
            n_permutations=n_permutations,
            n_resamples=n_resamples,
            groups=groups,
        )
        values = labels | {"seed": deal}
        named = pd.DataFrame({name: values.get(name) for name in LABELS}, index=table.index)
        parts.append(pd.concat([named.astype({"length": "Int64"}), table], axis=1))
    return pd.concat(parts, ignore_index=True)


def with_holds(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``blind_table`` and whether the text alone leaves the kinds alike, in ``holds``.

    Column p_adjusted, where there is one, is the corrected p. A baseline that does not apply
    is empty.
    """
    p_adjusted = table["p_adjusted"] if "p_adjusted" in table else [None] * len(table)
    rows = zip(table["ci_low"], table["ci_high"], p_adjusted, strict=True)
    found = pd.Series([holds(*row) for row in rows], table.index, dtype="boolean")
    return table.assign(holds=found)


def holds(low: float, high: float, p_adjusted: float | None = None) -> bool | None:
    """Whether the interval of a blind AUC says that words tell nothing; None where it is open.

    Either direction counts: an AUC far below one half is that of a rule with its sign turned.

    >>> holds(0.55, 0.7), holds(0.21, 0.39), holds(0.45, 0.58), holds(0.3, 0.52)
    (False, False, True, None)
    """
    turned = (low, high) if low + high >= 1 else (1 - high, 1 - low)
    return CLAIMS["audit_min_k_words"].holds(*turned, p_adjusted=p_adjusted)


def auc_difference(
    texts: Sequence[str],
    first: Sequence[bool] | np.ndarray,
    second: Sequence[bool] | np.ndarray,
    *,
    baseline: str = BAG_OF_WORDS,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, float]:
    """AUC of the same passages under a second membership minus that under a first one.

    difference with its 95 % interval (difference_low, difference_high) and two-sided p. The two
    are resampled apart, since the labels and not the passages make the difference.
    """
    aucs, resampled = [], []
    for number, labels in enumerate((first, second)):
        is_member = np.asarray(labels, dtype=bool)
        n_folds = feasible_folds(is_member)
        scored = cross_validated_scores(texts, is_member, baseline, n_folds, seed)
        sets = _sets(scored, is_member)
        aucs.append(statistics.auc_within(sets))
        drawn = statistics.bootstrap_auc_within(sets, n_resamples, seed + number)
        resampled.append(widened(aucs[-1], drawn))
    value, drawn = aucs[1] - aucs[0], resampled[1] - resampled[0]
    low, high = statistics.percentile_interval(drawn)
    row = {"difference": value, "difference_low": low, "difference_high": high}
    return row | {"p": statistics.bootstrap_p(value, drawn)}


def table_of_scores(
    scored: pd.DataFrame, *, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """``blind_table`` of ``fold_scores`` alone; columns that need the texts stay empty."""
    is_member, fold = scored["is_member"].to_numpy(bool), scored["fold"].to_numpy()
    of_folds = [np.flatnonzero(fold == number) for number in np.unique(fold)]
    counts = {"n_members": int(is_member.sum()), "n_non_members": int((~is_member).sum())}
    rows = []
    for baseline in BASELINES:
        values = scored[baseline].to_numpy()
        parts = [np.arange(len(fold))] if baseline == DATE_RULE else of_folds
        judged = [(items, values[items]) for items in parts]
        row = _judged(judged, is_member, baseline, n_resamples, seed)
        rows.append({"baseline": baseline} | counts | row)
    return pd.DataFrame(rows).reindex(columns=COLUMNS)


def _sets(judged: Folds, is_member: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(values, is_member[items]) for items, values in judged]


def widened(auc: float, resampled: np.ndarray) -> np.ndarray:
    """Resamples of a cross-validated AUC with the spread that it has: see the module."""
    return np.clip(auc + USED_TWICE * (resampled - auc), 0, 1)


def _judged(
    judged: Folds, is_member: np.ndarray, baseline: str, n_resamples: int, seed: int
) -> dict[str, Any]:
    sets = _sets(judged, is_member)
    auc = statistics.auc_within(sets)
    if baseline == DATE_RULE:  # it is one set, and nothing was trained
        resampled = statistics.bootstrap_aucs([sets[0][0]], is_member, n_resamples, seed)[0]
    else:
        resampled = widened(auc, statistics.bootstrap_auc_within(sets, n_resamples, seed))
    low, high = statistics.percentile_interval(resampled)
    smallest = statistics.smallest_split_p(int(is_member.sum()), int((~is_member).sum()))
    p = statistics.bootstrap_p(auc, resampled, 0.5, smallest)
    known = [one for one in sets if 0 < one[1].sum() < one[1].size]
    rates = [statistics.tpr_at_fpr(*one) for one in known]
    rate = float(np.average(rates, weights=[kind.sum() for _, kind in known]))
    return {"auc": auc, "ci_low": low, "ci_high": high, "p": p, "tpr_at_5_fpr": rate}


def _permuted(
    scorer: Callable[[np.ndarray], Folds],
    is_member: np.ndarray,
    groups: np.ndarray | None,
    auc: float,
    n_permutations: int,
    seed: int,
) -> dict[str, float]:
    """The same with shuffled labels; empty without permutations."""
    if not n_permutations:
        return {}
    rng = np.random.default_rng(seed)
    shuffled = (_shuffled(is_member, groups, rng) for _ in range(n_permutations))
    null = np.array([statistics.auc_within(_sets(scorer(labels), labels)) for labels in shuffled])
    return {
        "permutation_null": float(null.mean()),
        "permutation_high": float(np.quantile(null, statistics.CONFIDENCE)),
        "p_value": (1 + (null >= auc).sum()) / (1 + n_permutations),
    }


def _shuffled(
    is_member: np.ndarray, groups: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    if groups is None:
        return rng.permutation(is_member)
    # Sorted by group, and in random order within each.
    mixed = np.lexsort((rng.random(len(groups)), groups))
    shuffled = np.empty_like(is_member)
    shuffled[np.argsort(groups, kind="stable")] = is_member[mixed]
    return shuffled
