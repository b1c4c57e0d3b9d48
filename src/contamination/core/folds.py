"""Folds for classifiers of texts, in which near-copies of a passage do not judge it.

Texts often come in families: templates with other names in them, versions of one page. Where
a family's passages were dealt to members and non-members evenly, ordinary cross-validation
is biased *below* one half. Hold out one member of a family, and the classifier is trained on
one non-member more than members of that family, so it calls the passage a non-member. On
eight templates whose sentences were dealt in turn, ordinary folds give a mean AUC of 0.36
(TF-IDF) although there is nothing to find. So near-copies are left out together, or, where a
family is too large for that, its passages are compared with one another alone. Either
way the labels that train say nothing about the labels that are compared.

If members and non-members come from *different* families (members quote one letter head,
non-members another), that is what tells them apart, and the folds are ordinary ones.
Copies that the words do not betray, such as paraphrases, need ``groups`` in ``core.blind``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, vstack
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import StratifiedKFold

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
    folds with one judged set each. Otherwise passages fall into folds whatever their labels,
    so a judged set may be small, or hold one kind alone, which says nothing.
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
    """The fold of each passage: units by size into the emptiest fold, whatever their labels."""
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
