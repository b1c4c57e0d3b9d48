"""Verdicts on a completion: exact, near-exact or inexact match.

The *rule judge* reads strings and asks no model. It is a lower bound, not a
judge: a near-exact match in the paper's sense (same structure and meaning)
cannot be told from overlap alone.
"""

from __future__ import annotations

import numpy as np

from contamination.overlap import is_contained, is_equal, rouge_l, words

EXACT, NEAR_EXACT, INEXACT = "exact", "near-exact", "inexact"


def rule_verdicts(
    rouge_scores: np.ndarray,
    near_exact_threshold: float,
    equal: np.ndarray | None = None,
    contained: np.ndarray | None = None,
) -> np.ndarray:
    """Rule judge from figures: equality first, then overlap or containment.

    Args:
        rouge_scores: ROUGE-L of each completion, shape (n,), 0 to 1.
        near_exact_threshold: ROUGE-L from which a completion is near-exact.
        equal: whether the texts are equal once normalised; without the texts,
            a ROUGE-L of 1 stands in for it.
        contained: whether the completion holds the whole reference.

    Returns:
        "exact", "near-exact" or "inexact", shape (n,).
    """
    rouge_scores = np.asarray(rouge_scores, dtype=float)
    equal = rouge_scores >= 1 if equal is None else np.asarray(equal, dtype=bool)
    near = rouge_scores >= near_exact_threshold
    if contained is not None:
        near |= np.asarray(contained, dtype=bool)
    return np.where(equal, EXACT, np.where(near, NEAR_EXACT, INEXACT))


def rule_verdict(
    reference: str, candidate: str, near_exact_threshold: float, min_reference_words: int = 4
) -> str:
    """Rule judge from texts.

    A reference of fewer than ``min_reference_words`` words is contained in
    many completions by chance, so containment does not count there.
    """
    long_enough = len(words(reference)) >= min_reference_words
    verdicts = rule_verdicts(
        np.array([rouge_l(reference, candidate)]),
        near_exact_threshold,
        equal=np.array([is_equal(reference, candidate)]),
        contained=np.array([long_enough and is_contained(reference, candidate)]),
    )
    return str(verdicts[0])
