"""Are comparison rows of the dataset's kind? Asked of the texts alone, before any model is.

A method that holds the dataset against comparison rows sees memory only where the texts
themselves do not tell the two apart (Das et al., arXiv:2406.16201). Four classifiers look at
date, length and style (words, punctuation, capitals, line breaks).

The rule, fixed beforehand: the rows are told apart if for one classifier the 95 % interval of its
AUC lies above 0.5 and its p, corrected for the number of classifiers, is at most 0.05.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import rankdata

from contamination import statistics
from contamination.min_k.blind import (
    BAG_OF_WORDS,
    DATE_RULE,
    N_FOLDS,
    TF_IDF,
    Folds,
    cross_validated_scores,
    date_rule_scores,
    judged_folds,
)
from contamination.overlap import is_latin, words

LENGTH = "length"
CHANCE, LEVEL = 0.5, 0.05
N_SHUFFLES, N_RESAMPLES = 999, 1000
_ROWS_OF_A_FOLD = 4  # of either kind, at least: an AUC of one row against one has no interval
_MARK = re.compile(r"[^\w\s]|\n")
_CAPITAL = re.compile(r"\b[A-Z]")


def by_text_alone(
    dataset: Sequence[str], comparison: Sequence[str], seed: int = 0
) -> tuple[dict[str, Any], ...]:
    """What classifiers that see no model make of dataset rows against comparison rows.

    Returns:
        One row for each classifier that applies (the date rule needs a year in some text), as
        ``finding.control_row``: control, n (of both), value (AUC, 0 to 1; of date and length in
        the direction that is larger), ci_low, ci_high, decides (told apart by it); and chance
        (0.5), p_value: share of shuffles of the held-out labels, by Holm over the classifiers.
    """
    texts = [*dataset, *comparison]
    is_data = np.arange(len(texts)) < len(dataset)
    found = []
    for name in (DATE_RULE, LENGTH, BAG_OF_WORDS, TF_IDF):
        try:
            folds = _folds(name, texts, is_data, seed)
        except ValueError:  # no text names a year, or none holds a word
            continue
        row = {"control": f"{name}, no model", "n": len(texts), "chance": CHANCE}
        judged = judged_folds(folds, is_data, N_RESAMPLES, seed)
        row |= {"value": judged["auc"], "ci_low": judged["ci_low"], "ci_high": judged["ci_high"]}
        found.append(row | {"p_value": _p_value(folds, is_data, seed)})
    adjusted = statistics.holm([row["p_value"] for row in found])
    for row, p in zip(found, adjusted, strict=True):
        row |= {"p_value": float(p), "decides": bool(row["ci_low"] > CHANCE and p <= LEVEL)}
    return tuple(found)


def refusal(found: Sequence[dict[str, Any]]) -> str:
    """Why nothing may be concluded from these comparison rows; "" if they are not told apart."""
    apart = [row for row in found if row["decides"]]
    if not apart:
        return ""
    by = max(apart, key=lambda row: row["ci_low"])
    return (
        f"dataset and comparison rows are told apart by {by['control']} (AUC {by['value']:.2f} "
        f"[{by['ci_low']:.2f}, {by['ci_high']:.2f}], p {by['p_value']:.2g}, n = {by['n']}, "
        f"chance {CHANCE:.2f}): take rows of the same dates, length and style, or none"
    )


def said(found: Sequence[dict[str, Any]]) -> str:
    """One line: told apart, or how large a difference would not have been seen."""
    if text := refusal(found):
        return text
    shown = ", ".join(
        f"{row['control']} {row['value']:.2f} ± {(row['ci_high'] - row['ci_low']) / 2:.2f}"
        for row in found
    )
    return (
        f"dataset and comparison rows (n = {found[0]['n']}) are not told apart by their text "
        f"alone; a smaller difference would not show: AUC {shown}, chance {CHANCE:.2f}"
    )


def _folds(name: str, texts: Sequence[str], is_data: np.ndarray, seed: int) -> Folds:
    """Scores of the texts: of the whole without training, of words by cross-validation."""
    if name in (BAG_OF_WORDS, TF_IDF):
        smaller = int(min(is_data.sum(), (~is_data).sum()))
        n_folds = min(N_FOLDS, max(2, smaller // _ROWS_OF_A_FOLD))
        counted = [_for_counting(text) for text in texts]
        return cross_validated_scores(counted, is_data, name, n_folds, seed)
    scores = date_rule_scores(texts) if name == DATE_RULE else np.array([*map(len, texts)], float)
    is_turned = statistics.auc(scores, is_data) < CHANCE  # longer or shorter, older or newer
    return [(np.arange(len(texts)), -scores if is_turned else scores)]


def _p_value(folds: Folds, is_data: np.ndarray, seed: int) -> float:
    """Share of shuffles within the folds whose AUC is at least as far from 0.5 as the true one."""
    rng, shuffled, true = np.random.default_rng([seed, 12]), 0.0, 0.0
    for items, scores in folds:
        is_of_fold, ranks = is_data[items], rankdata(scores)
        n = is_of_fold.sum()
        to_auc = len(folds) * n * (len(items) - n)
        true += (ranks[is_of_fold].sum() - n * (len(items) + 1) / 2) / to_auc
        drawn = rng.permuted(np.tile(ranks, (N_SHUFFLES, 1)), axis=1)[:, :n].sum(axis=1)
        shuffled += (drawn - n * (len(items) + 1) / 2) / to_auc
    return float((1 + (np.abs(shuffled) >= abs(true) - 1e-12).sum()) / (1 + N_SHUFFLES))


def _for_counting(text: str) -> str:
    """A text as word counts need it: pairs of unspaced characters, and its marks as words."""
    units = [text]
    if not is_latin(text):
        units = words(text)
        units += ["".join(pair) for pair in pairwise(units)]
    marks = [f"mark{ord(mark):x}" for mark in _MARK.findall(text)]
    return " ".join([*units, *marks, *["capitalletter"] * len(_CAPITAL.findall(text))])
