"""The reference attack: how strong could a detector be that knows what other models saw?

LiRA (Carlini et al., arXiv:2112.03570) compares the score of a row under one model with its scores
under shadow models that did not see the row. Base models of the study share a pool of rows, of
which each sees others, so they are each other's shadow models. It is a reference, not an upper
bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from contamination.study.assignment import HELD_OUT
from contamination.study.crossed import CrossedScores, mean_auc

PRIOR_DEGREES = 8  # with which a row's variance is shrunk towards the pooled one
N_JOINT_REDEALS = 999


def centred(crossed: CrossedScores) -> CrossedScores:
    """Scores minus each model's median over the rows of the pool."""
    return replace(
        crossed, scores=crossed.scores - np.median(crossed.scores, axis=1, keepdims=True)
    )


def lira_scores(crossed: CrossedScores) -> CrossedScores:
    """LiRA's score of every row under every model, in standard deviations, shape as given.

    (score - mean over shadow models) / s. Shadow models of a row are the other models that hold it
    out. s^2 is (8 s0^2 + (n - 1) s_row^2) / (8 + n - 1) with n shadow models; s0^2 is the mean of
    the rows' variances, weighted by n - 1. A row with fewer than two shadow models has s0^2.

    Args:
        crossed: token log-probabilities of rows, as ``centred``.

    Raises:
        ValueError: if a row has no shadow model, or no row has two.
    """
    is_shadow = crossed.copies == HELD_OUT
    # Of each model the sums over all other models that hold the row out.
    n = is_shadow.sum(axis=0) - is_shadow
    if (n == 0).any():
        raise ValueError(f"{crossed.name}: a row is held out by no other model")
    kept = np.where(is_shadow, crossed.scores, 0.0)
    mean = (kept.sum(axis=0) - kept) / n
    square = ((kept**2).sum(axis=0) - kept**2) - n * mean**2  # sum of squared deviations
    degrees = n - 1
    if not degrees.any():
        raise ValueError(f"{crossed.name}: no row has two shadow models, so no variance is known")
    pooled = np.maximum(square, 0).sum(axis=1) / degrees.sum(axis=1)
    variance = (PRIOR_DEGREES * pooled[:, None] + np.maximum(square, 0)) / (PRIOR_DEGREES + degrees)
    return replace(crossed, scores=(crossed.scores - mean) / np.sqrt(variance))


def lira_auc(pools: Sequence[CrossedScores], dose: int) -> float:
    """Mean AUC of LiRA's scores; ``pools`` hold the centred token log-probabilities."""
    return mean_auc([lira_scores(pool) for pool in pools], dose)


def joint_redeal_p(pools: Sequence[CrossedScores], dose: int, seed: int = 0) -> float:
    """p of ``lira_auc``: rows at the dose and held-out rows re-dealt in all models at once.

    Shadow models are chosen anew in each of 999 re-deals; rows at other doses stay where they are.
    """
    generator = np.random.default_rng([seed, dose])
    observed = lira_auc(pools, dose)
    n_as_high = sum(
        lira_auc([_redealt(pool, dose, generator) for pool in pools], dose) >= observed
        for _ in range(N_JOINT_REDEALS)
    )
    return (1 + n_as_high) / (1 + N_JOINT_REDEALS)


def _redealt(crossed: CrossedScores, dose: int, generator: np.random.Generator) -> CrossedScores:
    copies = crossed.copies.copy()
    for row in copies:
        places = np.flatnonzero((row == dose) | (row == HELD_OUT))
        row[places] = generator.permutation(row[places])
    return replace(crossed, copies=copies)
