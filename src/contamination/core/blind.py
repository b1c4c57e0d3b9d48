"""What separates members from non-members without any model: the blind baselines, and the folds in
which near-copies of a passage do not judge it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from scipy.sparse import coo_matrix, csr_matrix, vstack
from scipy.sparse.csgraph import connected_components
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer

from contamination.core import statistics, storage
from contamination.core.overlap import ngram_overlap_share
from contamination.core.verdicts import CLAIMS
from contamination.core.words import longer_words

# Near-copies share a third of their words (Jaccard). A family that holds more than a quarter
# of all passages at one of these shares is taken apart at the next.
SHARES = (1 / 3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LARGEST_FAMILY = 0.25
UNEQUAL_P = 0.01  # families are dealt unequally if a shuffle test gives at most this
N_SHUFFLES = 499
MOST_FOLDS = 5  # where a family is compared with itself alone: more would leave few in a fold
_PAIRS_AT_ONCE = 20_000_000  # bounds the memory of the comparison of all pairs

Fold = tuple[np.ndarray, list[np.ndarray]]  # what trains, and the sets that are judged apart


@dataclass(frozen=True)
class NearCopies:
    """Which passages are left out together, and which are compared; shapes (n_passages,)."""

    family: np.ndarray  # number of the family at the first of ``SHARES``
    unit: np.ndarray  # number of what falls into one fold
    compared: np.ndarray  # passages are compared with those of the same number alone

    @property
    def exist(self) -> bool:
        """Whether any passage has a near-copy."""
        return self.family.max() + 1 < self.family.size


def near_copies(counts: csr_matrix) -> NearCopies:
    """Families of passages that share words, from word counts of shape (n_passages, n_words)."""
    likeness, n = _likeness(counts), counts.shape[0]
    family, unit, compared = np.arange(n), np.arange(n), np.zeros(n, dtype=int)
    left = np.arange(n)
    for share in SHARES:
        group = connected_components(likeness[left][:, left] >= share - 1e-6, directed=False)[1]
        if share == SHARES[0]:
            family = group
        is_large = np.bincount(group)[group] > max(1, LARGEST_FAMILY * n)
        # The number of a unit is that of its first passage.
        firsts = np.unique(group, return_index=True)[1]
        unit[left[~is_large]] = left[firsts[group[~is_large]]]
        compared[left[is_large]] = 1 + left[firsts[group[is_large]]]
        left = left[is_large]
        if not left.size:
            break
    return NearCopies(family, unit, compared)


def fold_maker(
    counts: csr_matrix, n_folds: int, seed: int = 0
) -> Callable[[np.ndarray], list[Fold]]:
    """A function of the labels, shape (n_passages,), that gives the folds for them.

    Without near-copies, or where the two kinds hold different families, they are stratified
    folds with one judged set each. Otherwise folds ignore the labels. A judged set may then be
    small or hold one kind only, and says nothing.
    """
    copies = near_copies(counts)
    n_most = min(n_folds, MOST_FOLDS) if copies.compared.any() else n_folds
    fold = _folds_of_units(copies, n_most, seed) if copies.exist else None

    def folds(is_member: np.ndarray) -> list[Fold]:
        if fold is not None and not families_differ(copies.family, is_member, seed):
            found = [_fold(fold == number, copies.compared) for number in np.unique(fold)]
            if all(_has_both(is_member[train]) for train, _ in found) and any(
                _has_both(is_member[judged]) for _, sets in found for judged in sets
            ):
                return found
        ordinary = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        return [(train, [test]) for train, test in ordinary.split(is_member, is_member)]

    return folds


def families_differ(family: np.ndarray, is_member: np.ndarray, seed: int = 0) -> bool:
    """Whether members and non-members hold other families than chance would give them.

    A shuffle test of how far each family's share of members lies from the share of all. Both
    arrays have shape (n_passages,).
    """
    family, is_member = np.unique(family, return_inverse=True)[1], np.asarray(is_member, bool)
    order, sizes = np.argsort(family, kind="stable"), np.bincount(family)
    starts = np.cumsum(sizes) - sizes

    def distance(labels: np.ndarray) -> np.ndarray:
        members = np.add.reduceat(labels[..., order], starts, axis=-1, dtype=float)
        return ((members - is_member.mean() * sizes) ** 2).sum(axis=-1)

    rng = np.random.default_rng([seed, 30])
    shuffled = rng.permuted(np.tile(is_member, (N_SHUFFLES, 1)), axis=1)
    n_as_far = int((distance(shuffled) >= distance(is_member) - 1e-9).sum())
    return (1 + n_as_far) / (1 + N_SHUFFLES) <= UNEQUAL_P


def _likeness(counts: csr_matrix) -> csr_matrix:
    """Jaccard overlap of the words of every two passages, where it is at least the first share."""
    words = csr_matrix(counts > 0, dtype=np.float32)
    n, n_words = words.shape[0], np.asarray(words.sum(axis=1)).ravel()
    at_once, parts = max(1, _PAIRS_AT_ONCE // n), []
    for start in range(0, n, at_once):
        common = coo_matrix(words[start : start + at_once] @ words.T)
        all_words = n_words[start + common.row] + n_words[common.col] - common.data
        share = common.data / all_words
        keep = share >= SHARES[0] - 1e-6
        places = (common.row[keep], common.col[keep])
        parts.append(csr_matrix((share[keep], places), shape=common.shape))
    return vstack(parts, format="csr")


def _folds_of_units(copies: NearCopies, n_folds: int, seed: int) -> np.ndarray:
    """The fold of each passage. Units go by size into the emptiest fold; labels do not matter."""
    rng = np.random.default_rng([seed, 31])
    fold, load = np.empty_like(copies.unit), np.zeros(n_folds)
    for compared in np.unique(copies.compared):
        units, sizes = np.unique(copies.unit[copies.compared == compared], return_counts=True)
        order = rng.permutation(units.size)
        order = order[np.argsort(-sizes[order], kind="stable")]
        of_these = np.zeros(n_folds)
        for unit, size in zip(units[order], sizes[order], strict=True):
            emptiest = np.lexsort((load, of_these))[0]
            fold[copies.unit == unit] = emptiest
            of_these[emptiest] += size
            load[emptiest] += size
    return fold


def _fold(is_tested: np.ndarray, compared: np.ndarray) -> Fold:
    tested = np.flatnonzero(is_tested)
    sets = [tested[compared[tested] == number] for number in np.unique(compared[tested])]
    return np.flatnonzero(~is_tested), sets


def _has_both(is_member: np.ndarray) -> bool:
    return 0 < is_member.sum() < is_member.size


DATE_RULE = "date rule"
BAG_OF_WORDS = "bag of words"
TF_IDF = "TF-IDF"
TRAINED = (BAG_OF_WORDS, TF_IDF)  # classifiers of the words
BASELINES = (DATE_RULE, *TRAINED)
N_FOLDS = 10

Folds = list[tuple[np.ndarray, np.ndarray]]  # numbers of passages that are compared, their scores

YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")


def feasible_folds(
    is_member: Sequence[bool] | np.ndarray, most: int = N_FOLDS, per_fold: int = 1
) -> int:
    """Folds of a blind baseline: two to ``most``, each with ``per_fold`` of either kind.

    Two are given even where there are too few passages for them. ``is_member`` has one value
    for each passage, or for each group of passages that stay together.

    >>> feasible_folds([True] * 9 + [False] * 6), feasible_folds([True] * 9 + [False] * 6, 8, 2)
    (6, 3)
    """
    is_member = np.asarray(is_member, dtype=bool)
    smaller = int(min(is_member.sum(), (~is_member).sum()))
    return max(2, min(most, smaller // per_fold))


def date_rule_scores(texts: Sequence[str]) -> np.ndarray:
    """Minus the latest year, 1500 to 2099, of each passage: old passages score higher.

    A passage without a year gets the median year, which counts for neither kind.
    ValueError if no passage names a year.

    >>> date_rule_scores(["In 2012 and 2013", "after 2023", "no year"]).tolist()
    [-2013.0, -2023.0, -2018.0]
    """
    years = np.array([max(map(float, YEAR.findall(text)), default=np.nan) for text in texts])
    if np.isnan(years).all():
        raise ValueError("no passage names a year, the date rule does not apply")
    return -np.where(np.isnan(years), np.nanmedian(years), years)


def cross_validated_scores(
    texts: Sequence[str],
    is_member: Sequence[bool] | np.ndarray,
    baseline: str,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    groups: Sequence[int] | np.ndarray | None = None,
) -> Folds:
    """Numbers of passages that are compared, and their scores by a classifier of other folds.

    ``baseline`` is "bag of words" (which words occur) or "TF-IDF"; logistic regression on
    ``words.longer_words``. ``is_member`` and ``groups`` have shape (n_passages,); a group is what
    a passage is part of, such as its book. Its passages fall into one fold: a classifier that has
    seen some of a book recognises the others by its names and topics.
    """
    return scorer_of(baseline, texts, n_folds, seed, groups)(np.asarray(is_member, bool))


def fold_scores(
    texts: Sequence[str],
    is_member: Sequence[bool] | np.ndarray,
    n_folds: int = N_FOLDS,
    seed: int = 0,
) -> pd.DataFrame:
    """What the blind baselines make of each passage: figures alone, which may be shared.

    fold is that of the classifiers, whose decision values are comparable within a fold
    alone. ValueError if no passage names a year.
    """
    table = pd.DataFrame({"is_member": np.asarray(is_member, bool), "fold": -1})
    table[DATE_RULE] = date_rule_scores(texts)
    for baseline in TRAINED:
        judged = cross_validated_scores(texts, is_member, baseline, n_folds, seed)
        for number, (items, values) in enumerate(judged):
            table.loc[items, ["fold", baseline]] = np.column_stack([[number] * len(items), values])
    return table.astype({"fold": int})


def scorer_of(
    baseline: str,
    texts: Sequence[str],
    n_folds: int,
    seed: int,
    groups: Sequence[int] | np.ndarray | None = None,
    fold: np.ndarray | None = None,
) -> Callable[[np.ndarray], Folds]:
    """A function of the labels, since shuffled ones train classifiers of their own.

    ``fold``, shape (n_passages,), are folds that the caller has dealt.
    """
    if baseline == DATE_RULE:
        try:
            scored = [(np.arange(len(texts)), date_rule_scores(texts))]
        except ValueError:
            scored = []
        return lambda is_member: scored
    # A word that no training passage holds keeps weight 0, so counting over all
    # passages at once tells the classifier nothing about those it is tested on.
    counts = CountVectorizer(analyzer=longer_words).fit_transform(texts)
    transform = Binarizer() if baseline == BAG_OF_WORDS else TfidfTransformer(sublinear_tf=True)
    if fold is not None:
        dealt = [_fold(fold == number, np.zeros_like(fold)) for number in np.unique(fold)]

        def folds_for(is_member: np.ndarray) -> list[Fold]:
            return dealt
    elif groups is None:
        folds_for = fold_maker(counts, n_folds, seed)
    else:
        whole_groups = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)

        def folds_for(is_member: np.ndarray) -> list[Fold]:
            found = whole_groups.split(counts, is_member, groups)
            return [(train, [test]) for train, test in found]

    def cross_validate(is_member: np.ndarray) -> Folds:
        scored = []
        for train, tests in folds_for(is_member):
            classifier = make_pipeline(
                transform, LogisticRegression(solver="liblinear", class_weight="balanced")
            )
            classifier.fit(counts[train], is_member[train])
            scored += [(test, classifier.decision_function(counts[test])) for test in tests]
        return scored

    return cross_validate


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
        baselines: of ``BASELINES``.
        groups: what a passage is a version of, such as its page, shape (n_passages,), each with
            both kinds. Versions of one thing fall into one fold, and labels are shuffled among
            them alone. Without groups, near-copies are found by the words that they share.
        n_folds: folds of the cross-validation, at most.
        n_permutations: times that labels are shuffled and all training is done again.
        n_resamples: of the bootstrap, which resamples the passages that trained classifiers judge.
        seed: of folds, permutations and resamples.

    Returns:
        One row for each baseline. auc and tpr_at_5_fpr are means over folds (the date rule needs
        none), ci_low, ci_high and the two-sided p those of the AUC; permutation_null is the mean
        AUC under shuffled labels, permutation_high its upper 95 % quantile, p_value the share of
        permutations, the true labels among them, at least as high; overlap_pct the non-members
        that share an n-gram of words with a member. The date rule's cells are empty where no
        passage names a year.

    ValueError if only one kind occurs, a fold or a group would lack one, or a baseline is unknown.
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

    return storage.cached_table("min_k", "blind", BLIND_VERSION, inputs, table)


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
