"""Are comparison rows of the dataset's kind? Asked of the texts alone, before any model is.

A method that holds the dataset against comparison rows sees memory only where the texts
themselves do not tell the two apart (Das et al., arXiv:2406.16201). Four classifiers look at
date, length and style (words, punctuation, capitals, line breaks).

The rule, fixed beforehand: the rows are told apart, and nothing is asked, if for one of the four
the 95 % interval of its AUC lies above 0.5 and its p is at most 0.05 / 4. An interval that leaves
out 0.5 in any other way is said: the two files then differ, or rows of one have near-copies in the
other. A classifier that has learned a row of one file puts its near-copy there as well, so that
near-copies push its AUC below 0.5. They are counted first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from contamination.core import statistics
from contamination.core.blind import blind_table
from contamination.core.blind_scores import (
    BAG_OF_WORDS,
    DATE_RULE,
    TF_IDF,
    date_rule_scores,
    feasible_folds,
    n_compared,
)
from contamination.core.overlap import is_latin, ngrams, words
from contamination.core.statistics import CHANCE
from contamination.core.tables import interval_text, p_text
from contamination.core.verdicts import ALPHA

NEAR_COPIES = "near-copies of dataset rows among the comparison rows"
NEAR_COPY = 0.8  # share of two texts' words that they have in common, as ``overlap.word_overlap``
MOST_COMPARED = 400  # rows of either, the first of a random order: each is compared with each
LENGTH = "length"
CLASSIFIERS = (DATE_RULE, LENGTH, BAG_OF_WORDS, TF_IDF)
N_SHUFFLES, N_RESAMPLES = 99, 1000
MOST_FOLDS = 5
_ROWS_OF_A_FOLD = 4  # of either kind, at least: an AUC of one row against one has no interval
_NO_MODEL = ", no model"
_MARK = re.compile(r"[^\w\s]|\n")
_CAPITAL = re.compile(r"\b[A-Z]")

Judged = tuple[dict[str, float], Callable[[], float]]  # AUC with its interval, and its p


def near_copies(dataset: Sequence[str], comparison: Sequence[str]) -> dict[str, Any]:
    """How many dataset rows have a near-copy among the comparison rows.

    A near-copy has 13 words in a row in common with a text (``overlap.ngrams``), or 80 % of the
    words of both (``overlap.word_overlap``). At most 400 rows of either are compared.

    Returns:
        A row as of :func:`by_text_alone`: n dataset rows, the share with a near-copy (0 to 1) and
        its interval; holds where there is none.

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
    return row | {"decides": False, "holds": n_found == 0}


def by_text_alone(
    dataset: Sequence[str], comparison: Sequence[str], seed: int = 0
) -> tuple[dict[str, Any], ...]:
    """What classifiers that see no model make of dataset rows against comparison rows.

    Returns:
        One row for each classifier that applies (the date rule needs a year in some text), as
        ``finding.control_row``: control, n (of both), value (AUC, 0 to 1; of date and length in
        the direction that is larger), ci_low, ci_high, decides (told apart by it); and chance
        (0.5), p_value: Mann-Whitney's for date and length, of shuffled labels with all training
        done again for words; NaN where the interval or an earlier row has decided already; holds,
        whether the interval contains chance; n_pairs, the pairs of a dataset row and a comparison
        row that are compared: all for date and length, for words those of one fold
        (``core.folds``).
    """
    texts = [*dataset, *comparison]
    is_data = np.arange(len(texts)) < len(dataset)
    found: list[dict[str, Any]] = []
    for name in CLASSIFIERS:
        try:
            by = _by_words if name in (BAG_OF_WORDS, TF_IDF) else _by_score
            judged, p_value = by(name, texts, is_data, seed)
        except ValueError:  # no text names a year, or none holds a word
            continue
        p = math.nan
        if judged["ci_low"] > CHANCE and not any(row["decides"] for row in found):
            p = p_value()
        shown = {"control": name + _NO_MODEL, "n": len(texts), "value": judged["auc"]}
        shown |= {"ci_low": judged["ci_low"], "ci_high": judged["ci_high"], "chance": CHANCE}
        shown |= {"p_value": p, "decides": bool(p <= ALPHA / len(CLASSIFIERS))}
        shown |= {"n_pairs": judged["n_pairs"]}
        found.append(shown | {"holds": judged["ci_low"] <= CHANCE <= judged["ci_high"]})
    return tuple(found)


def refusal(found: Sequence[dict[str, Any]]) -> str:
    """Why nothing may be concluded from these comparison rows; "" if they are not told apart."""
    apart = [row for row in found if row["decides"]]
    if not apart:
        return ""
    by = max(apart, key=lambda row: row["ci_low"])
    return (
        f"dataset and comparison rows are told apart by {_short(by)} alone (AUC {by['value']:.2f} "
        f"{interval_text(by['ci_low'], by['ci_high'], 2)}, {p_text(by['p_value'])}, n = {by['n']}, "
        f"chance {CHANCE:.2f}): take rows of the same dates, length and style, or none"
    )


def describe_check(found: Sequence[dict[str, Any]], copies: Mapping[str, Any]) -> str:
    """One line: told apart, different, or how large a difference would not have been seen.

    It ends with the number of near-copies, which come first in the tables.

    ``found`` of :func:`by_text_alone`, ``copies`` of :func:`near_copies`.
    """
    n_copies = _counted(copies)
    if text := refusal(found):
        return f"{text}; {n_copies}"
    apart = [row for row in found if not row["holds"]]
    if not apart:
        shown = ", ".join(
            f"{_short(row)} {row['value']:.2f} ± {(row['ci_high'] - row['ci_low']) / 2:.2f} "
            f"({row['n_pairs']:,} pairs)"
            for row in found
        )
        return (
            f"dataset and comparison rows (n = {found[0]['n']}) are not told apart by their text "
            f"alone; a difference within these margins would not show: AUC {shown}, chance "
            f"{CHANCE:.2f}; {n_copies}"
        )
    shown = ", ".join(
        f"{_short(row)} {row['value']:.2f} {interval_text(row['ci_low'], row['ci_high'], 2)} "
        f"({row['n_pairs']:,} pairs)"
        for row in apart
    )
    above = "; above chance, though not after correction for four classifiers"
    below = (
        "; below chance, as where rows resemble rows of the other file more than those of their "
    )
    below += "own (near-copies, or rows dealt to the files in pairs), which makes gaps smaller"
    kinds = {row["ci_low"] > CHANCE for row in apart}
    return (
        f"dataset and comparison rows (n = {found[0]['n']}) are not two random draws of one kind: "
        f"AUC {shown}, chance {CHANCE:.2f}{above * (True in kinds)}{below * (False in kinds)}; "
        f"{n_copies}"
    )


def warning(copies: Mapping[str, Any]) -> str:
    """What near-copies do to an audit and what to do, in one line; "" where there are none.

    >>> warning(near_copies(["a red cat sat"], ["one two three"]))
    ''
    """
    if copies["holds"]:
        return ""
    return (
        f"{_counted(copies)}: a model that was trained on the dataset knows these comparison rows "
        "too, which makes every gap smaller, so take other ones if you can"
    )


def _counted(copies: Mapping[str, Any]) -> str:
    n_found = round(copies["value"] * copies["n"])
    return f"{n_found} of {copies['n']} dataset rows have a near-copy among the comparison rows"


def _short(row: Mapping[str, Any]) -> str:
    return row["control"].removesuffix(_NO_MODEL)


def _by_score(name: str, texts: Sequence[str], is_data: np.ndarray, seed: int) -> Judged:
    """Date or length: no training, and either direction counts."""
    scores = date_rule_scores(texts) if name == DATE_RULE else np.array([*map(len, texts)], float)
    if statistics.auc(scores, is_data) < CHANCE:
        scores = -scores
    low, high = statistics.auc_interval(scores, is_data, N_RESAMPLES, seed)
    judged = {"auc": statistics.auc(scores, is_data), "ci_low": low, "ci_high": high}
    judged["n_pairs"] = int(is_data.sum() * (~is_data).sum())
    return judged, lambda: float(mannwhitneyu(scores[is_data], scores[~is_data]).pvalue)


def _by_words(name: str, texts: Sequence[str], is_data: np.ndarray, seed: int) -> Judged:
    """A classifier of the words, by cross-validation; its p takes a hundred trainings."""
    of: dict[str, Any] = {"baselines": [name], "n_resamples": N_RESAMPLES, "seed": seed}
    of["n_folds"] = feasible_folds(is_data, MOST_FOLDS, _ROWS_OF_A_FOLD)
    counted = [_for_counting(text) for text in texts]
    judged = blind_table(counted, is_data, n_permutations=0, **of).iloc[0].to_dict()
    judged["n_pairs"] = n_compared(counted, is_data, of["n_folds"], seed)

    def p_value() -> float:
        return blind_table(counted, is_data, n_permutations=N_SHUFFLES, **of)["p_value"].iloc[0]

    return judged, p_value


def _for_counting(text: str) -> str:
    """A text as word counts need it: pairs of unspaced characters, and its marks as words."""
    units = [text]
    if not is_latin(text):
        units = words(text)
        units += ["".join(pair) for pair in pairwise(units)]
    marks = [f"mark{ord(mark):x}" for mark in _MARK.findall(text)]
    return " ".join([*units, *marks, *["capitalletter"] * len(_CAPITAL.findall(text))])
