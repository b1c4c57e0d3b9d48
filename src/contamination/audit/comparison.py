"""Are comparison rows of the dataset's kind? Asked of the texts alone, before any model is.

A score that differs between two files of texts need not be memory (Das et al., arXiv:2406.16201).
The test (``audit.decision``) takes length and word frequency into account. Three classifiers that
see no model look for other differences: the latest year that a text names, and two of its words,
punctuation, capitals and line breaks.

The rule, fixed beforehand: the files are told apart, and nothing is asked, if the p-value of one
of the three is at most 0.05 / 3. For words, labels are dealt again within the test's own strata,
all training is done again, and length and word frequency are taken from what a classifier says.
Near-copies are counted, too: a model that was trained on the dataset knows them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from contamination.audit import decision
from contamination.core import statistics
from contamination.core.blind import (
    BAG_OF_WORDS,
    DATE_RULE,
    TF_IDF,
    Folds,
    date_rule_scores,
    feasible_folds,
    scorer_of,
)
from contamination.core.overlap import is_latin, ngrams, words
from contamination.core.tables import p_text
from contamination.core.verdicts import ALPHA

NEAR_COPIES = "near-copies of dataset rows among the comparison rows"
NEAR_COPY = 0.8  # share of two texts' words that they have in common, as ``overlap.word_overlap``
MOST_COMPARED = 400  # rows of either, the first of a random order: each is compared with each
INDEX = "length and word frequency"
CLASSIFIERS = (DATE_RULE, BAG_OF_WORDS, TF_IDF)
N_SHUFFLES = 99
MOST_FOLDS = 5
_ROWS_OF_A_FOLD = 4  # of either kind, at least
_NO_MODEL = ", no model"
_MARK = re.compile(r"[^\w\s]|\n")
_CAPITAL = re.compile(r"\b[A-Z]")


def near_copies(dataset: Sequence[str], comparison: Sequence[str]) -> dict[str, Any]:
    """The row of :func:`by_text_alone` for dataset rows with a near-copy in the comparison rows.

    A near-copy has 13 words in a row in common with a text (``overlap.ngrams``), or 80 % of the
    words of both (``overlap.word_overlap``). At most 400 rows of either are compared.

    >>> near_copies(["a red cat sat", "one two"], ["a red cat sat here"])["value"]
    0.5
    """
    # Words are counted once for each text, which ``word_overlap`` would do for each pair.
    others = [(Counter(words(text)), ngrams(text)) for text in comparison[:MOST_COMPARED]]

    def has_copy(text: str) -> bool:
        own, runs = Counter(words(text)), ngrams(text)
        return any(
            not runs.isdisjoint(known)
            or 2 * (own & other).total() >= NEAR_COPY * (own.total() + other.total())
            for other, known in others
            if own
        )

    n = min(len(dataset), MOST_COMPARED)
    n_found = sum(map(has_copy, dataset[:n]))
    low, high = statistics.share_interval(n_found, n)
    row = {"control": NEAR_COPIES, "n": n, "value": n_found / n, "ci_low": low, "ci_high": high}
    return row | {"p_value": math.nan, "decides": False, "holds": n_found == 0}


def by_text_alone(
    dataset: Sequence[str], comparison: Sequence[str], seed: int = 0
) -> tuple[dict[str, Any], ...]:
    """What the texts alone, without any model, say of dataset rows against comparison rows.

    Returns:
        A row for length and word frequency, and one for each classifier that applies (the date
        rule needs a year in some text): control; n (of both); value (AUC, 0 to 1; of dates in the
        direction that is larger); ci_low and ci_high, NaN for words; p_value, NaN for length and
        word frequency; decides, whether the files are told apart by it; holds, whether it came
        out as it should.
    """
    texts = [*dataset, *comparison]
    is_data = np.arange(len(texts)) < len(dataset)
    features = decision.text_features(texts)
    index = decision.text_index(is_data, features)
    auc = statistics.auc(index, is_data)
    found = [_row(INDEX, is_data, auc, math.nan) | {"holds": auc <= decision.MOST_APART}]
    for name in CLASSIFIERS:
        try:
            if name == DATE_RULE:
                found.append(_row(name, is_data, *_by_date(texts, is_data)))
            else:
                counted = [_for_counting(text) for text in texts]
                row = _row(name, is_data, *_by_words(name, counted, is_data, features, seed))
                found.append(row | {"ci_low": math.nan, "ci_high": math.nan})
        except ValueError:  # no text names a year, or none holds a word
            continue
    return tuple(found)


def _row(name: str, is_data: np.ndarray, auc: float, p: float) -> dict[str, Any]:
    low, high = decision.auc_interval(auc, int(is_data.sum()), int((~is_data).sum()))
    decides = bool(p <= ALPHA / len(CLASSIFIERS))
    row = {"control": name + _NO_MODEL, "n": len(is_data), "value": auc, "ci_low": low}
    return row | {"ci_high": high, "p_value": p, "decides": decides, "holds": not decides}


def _by_date(texts: Sequence[str], is_data: np.ndarray) -> tuple[float, float]:
    scores = date_rule_scores(texts)
    auc = statistics.auc(scores, is_data)
    p = mannwhitneyu(scores[is_data], scores[~is_data]).pvalue
    return max(auc, 1 - auc), float(p)


def _by_words(
    name: str, counted: Sequence[str], is_data: np.ndarray, features: np.ndarray, seed: int
) -> tuple[float, float]:
    """AUC by cross-validation beyond length and word frequency, and its p by dealing again.

    Dealing stops when the result can no longer decide: after the k-th deal that is the first to
    reach the AUC, p is 1 / k (Besag and Clifford, Biometrika 78 (1991) 301).
    """
    n_folds = feasible_folds(is_data, MOST_FOLDS, _ROWS_OF_A_FOLD)
    scorer = scorer_of(name, counted, n_folds, seed)
    strata = decision.strata_of(decision.text_index(is_data, features))
    generator = np.random.default_rng([seed, 30])

    def auc_of(labels: np.ndarray) -> float:
        folds: Folds = scorer(labels)
        sets = [
            (decision.adjusted(values, features[items]), labels[items]) for items, values in folds
        ]
        return statistics.auc_within(sets)

    found = auc_of(is_data)
    for k in range(1, N_SHUFFLES + 1):
        if auc_of(decision.dealt_within(strata, is_data, generator)) >= found:
            return found, 1 / k
    return found, 1 / (1 + N_SHUFFLES)


def refusal(found: Sequence[Mapping[str, Any]]) -> str:
    """Why nothing may be concluded from these comparison rows; "" if they are not told apart."""
    apart = [row for row in found if row["decides"]]
    if not apart:
        return ""
    by = max(apart, key=lambda row: row["value"])
    return (
        f"without any model, {_short(by)} tells dataset and comparison rows apart (AUC "
        f"{by['value']:.2f}, {p_text(by['p_value'])}, n = {by['n']}): take rows of the same dates, "
        "topics and style"
    )


def describe_check(found: Sequence[Mapping[str, Any]], copies: Mapping[str, Any]) -> str:
    """One line on what the texts alone say, with the number of near-copies.

    ``found`` of :func:`by_text_alone`, ``copies`` of :func:`near_copies`.
    """
    if text := refusal(found):
        return f"{text}; {_counted(copies)}"
    index, *others = found
    said = "; ".join(f"{_short(row)} {row['value']:.2f}" for row in others)
    apart = f"{INDEX} tell dataset and comparison rows apart with an AUC of {index['value']:.2f}"
    taken = ", which the test takes into account"
    if not index["holds"]:
        taken = f", above {decision.MOST_APART}, so no verdict can be above open: match the rows"
    return f"{apart}{taken} (AUC beyond them: {said or 'none'}); {_counted(copies)}"


def _counted(copies: Mapping[str, Any]) -> str:
    n_found = round(copies["value"] * copies["n"])
    counted = f"{n_found} of {copies['n']} dataset rows have a near-copy among the comparison rows"
    cure = ": a model that saw the dataset knows these too, so take other ones if you can"
    return counted + cure * bool(n_found)


def _short(row: Mapping[str, Any]) -> str:
    return row["control"].removesuffix(_NO_MODEL)


def _for_counting(text: str) -> str:
    """A text as word counts need it: pairs of unspaced characters, and its marks as words."""
    units = [text]
    if not is_latin(text):
        units = words(text)
        units += ["".join(pair) for pair in pairwise(units)]
    marks = [f"mark{ord(mark):x}" for mark in _MARK.findall(text)]
    return " ".join([*units, *marks, *["capitalletter"] * len(_CAPITAL.findall(text))])
