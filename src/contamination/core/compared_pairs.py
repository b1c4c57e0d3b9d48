"""How many pairs of passages a blind AUC rests on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contamination.core.blind import BAG_OF_WORDS, cross_validated_scores


def n_compared(
    texts: Sequence[str], is_member: Sequence[bool] | np.ndarray, n_folds: int, seed: int = 0
) -> int:
    """Pairs of a member and a non-member that a blind classifier of words compares.

    Passages are compared within a fold alone, and near-copies fall into one fold, so these may be
    few of all pairs. They are the same for a bag of words and TF-IDF. Texts, membership, folds
    and seed as in ``blind.cross_validated_scores``.

    >>> n_compared(["red", "blue", "green", "black"], [True, True, False, False], 2)
    2
    """
    is_member = np.asarray(is_member, bool)
    judged = cross_validated_scores(texts, is_member, BAG_OF_WORDS, n_folds, seed)
    kinds = [is_member[items] for items, _ in judged]
    return sum(int(kind.sum() * (~kind).sum()) for kind in kinds)
