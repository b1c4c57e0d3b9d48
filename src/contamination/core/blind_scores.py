"""Scores of passages by what the text alone gives away, without any model.

Classifiers are judged on passages they were not trained on, by cross-validation, and a
passage is not judged by its near-copies (``core.folds``). Only passages of one fold
are compared. Pooling the scores of all folds is biased where there is nothing to find: a
training part with one member more predicts more members, and just there one member
fewer is left to test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer

from contamination.core import folds
from contamination.core.words import longer_words

DATE_RULE = "date rule"
BAG_OF_WORDS = "bag of words"
TF_IDF = "TF-IDF"
TRAINED = (BAG_OF_WORDS, TF_IDF)  # classifiers of the words
BASELINES = (DATE_RULE, *TRAINED)
N_FOLDS = 10

Folds = list[tuple[np.ndarray, np.ndarray]]  # numbers of passages that are compared, their scores

_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")


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
    years = np.array([max(map(float, _YEAR.findall(text)), default=np.nan) for text in texts])
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

    Args:
        texts: n_passages passages.
        is_member: their membership, shape (n_passages,).
        baseline: "bag of words" (which words occur) or "TF-IDF"; logistic
            regression on ``words.longer_words``.
        n_folds: folds, at most; see ``folds.fold_maker``.
        seed: of the folds.
        groups: what a passage is part of, such as its book, shape (n_passages,).
            Passages of one group fall into one fold, and folds are stratified: a
            classifier that has seen some of a book recognises the others by its
            names and topics.
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
) -> Callable[[np.ndarray], Folds]:
    """A function of the labels, since shuffled ones train classifiers of their own."""
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
    if groups is None:
        folds_for = folds.fold_maker(counts, n_folds, seed)
    else:
        whole_groups = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)

        def folds_for(is_member: np.ndarray) -> list[folds.Fold]:
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
