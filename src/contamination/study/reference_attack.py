"""The reference attack: how strong could a detector be that knows what other models saw?

LiRA (Carlini et al., arXiv:2112.03570) compares the score of a row under one model with its scores
under shadow models that did not see the row. Base models of the study share a pool of rows, of
which each sees others, so they are each other's shadow models. It is a reference, not an upper
bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from contamination.study.assignment import HELD_OUT
from contamination.study.crossed import CrossedScores, mean_auc

PRIOR_DEGREES = 8  # with which a row's variance is shrunk towards the pooled one
SHRINKAGE = 0.5  # of the mean shift of rows that were seen
N_JOINT_REDEALS = 999
LIRA, RATIO = "LiRA", "likelihood ratio"  # the second form is exploratory
FORMS = (LIRA, RATIO)


def centred(crossed: CrossedScores) -> CrossedScores:
    """Scores minus each model's median over the rows of the pool."""
    return replace(
        crossed, scores=crossed.scores - np.median(crossed.scores, axis=1, keepdims=True)
    )


def is_defined(pools: Sequence[CrossedScores]) -> bool:
    """Whether every row keeps a shadow model, also where a jackknife leaves a model out."""
    return all((_n_shadows(pool.copies) > 1).all() for pool in pools)


class Shadows(NamedTuple):
    """What the other models that hold a row out say of it; both have the shape of the scores."""

    mean: np.ndarray
    variance: np.ndarray


def shadows(crossed: CrossedScores) -> Shadows:
    """Mean and variance of each row's scores under the shadow models of each model.

    Shadow models of a row are the other models that hold it out. The variance is shrunk: with n
    shadow models it is (8 s0^2 + (n - 1) s_row^2) / (8 + n - 1), where s0^2 is the mean of the
    rows' variances, weighted by n - 1. A row with fewer than two shadow models has s0^2.

    Args:
        crossed: token log-probabilities of rows, as ``centred``.

    Raises:
        ValueError: if a row has no shadow model, or no row has two.
    """
    n = _n_shadows(crossed.copies)
    if (n == 0).any():
        raise ValueError(f"{crossed.name}: a row is held out by no other model")
    # Of each model the sums over all other models that hold the row out.
    kept = np.where(crossed.copies == HELD_OUT, crossed.scores, 0.0)
    mean = (kept.sum(axis=0) - kept) / n
    square = ((kept**2).sum(axis=0) - kept**2) - n * mean**2  # sum of squared deviations
    degrees = n - 1
    if not degrees.any():
        raise ValueError(f"{crossed.name}: no row has two shadow models, so no variance is known")
    pooled = np.maximum(square, 0).sum(axis=1) / degrees.sum(axis=1)
    shrunk = PRIOR_DEGREES * pooled[:, None] + np.maximum(square, 0)
    return Shadows(mean, shrunk / (PRIOR_DEGREES + degrees))


def lira_scores(crossed: CrossedScores, others: Shadows | None = None) -> CrossedScores:
    """LiRA's score of every row under every model: (score - mean of shadows) / s, shape as given.

    In standard deviations. ``crossed`` and errors as in :func:`shadows`, whose result ``others``
    is where it is known.
    """
    others = others or shadows(crossed)
    return replace(crossed, scores=(crossed.scores - others.mean) / np.sqrt(others.variance))


def mean_shift(crossed: CrossedScores, others: Shadows, dose: int) -> np.ndarray:
    """How much higher rows at a dose score, as the other models say; shape (n_models,).

    For each model the mean over the rows at the dose under all other models of the score minus
    the mean of the row's shadow models, without the model itself. ValueError where no other
    model has a row at the dose.
    """
    is_seen = crossed.copies == dose
    seen = np.where(is_seen, crossed.scores, 0.0)
    n_others = is_seen.sum(axis=0) - is_seen  # other models that see the row at this dose
    if not n_others.sum(axis=1).all():
        raise ValueError(f"{crossed.name}: no other model has a row at {dose} copies")
    # A model at the dose is no shadow, so the row's mean without the model is ``others.mean``.
    gains = (seen.sum(axis=0) - seen) - n_others * others.mean
    return gains.sum(axis=1) / n_others.sum(axis=1)


def ratio_scores(crossed: CrossedScores, dose: int, others: Shadows | None = None) -> CrossedScores:
    """Log-likelihood ratio of "seen at this dose" against "held out", shape as given.

    Two Gaussians with the variance of the row, whose means differ by half of ``mean_shift``.
    ``crossed``, ``others`` and errors as in :func:`lira_scores` and :func:`mean_shift`.
    """
    others = others or shadows(crossed)
    shift = SHRINKAGE * mean_shift(crossed, others, dose)[:, None]
    ratio = shift * (crossed.scores - others.mean - shift / 2) / others.variance
    return replace(crossed, scores=ratio)


def attack(
    crossed: CrossedScores, dose: int, form: str = LIRA, others: Shadows | None = None
) -> CrossedScores:
    """Scores of one form of the attack; ValueError for an unknown form."""
    if form not in FORMS:
        raise ValueError(
            f'no form of the attack is called "{form}": choose one of {", ".join(FORMS)}'
        )
    if form == LIRA:
        return lira_scores(crossed, others)
    return ratio_scores(crossed, dose, others)


def lira_auc(pools: Sequence[CrossedScores], dose: int, form: str = LIRA) -> float:
    """Mean AUC of one form's scores; ``pools`` hold the centred token log-probabilities."""
    return mean_auc([attack(pool, dose, form) for pool in pools], dose)


def joint_permutation_p(
    pools: Sequence[CrossedScores], dose: int, forms: Sequence[str] = (LIRA,), seed: int = 0
) -> dict[str, float]:
    """p of ``lira_auc`` by form: rows at the dose and held-out rows re-dealt in all models at once.

    Shadow models are chosen anew in each of 999 re-deals, which all forms share; rows at other
    doses stay where they are.
    """
    generator = np.random.default_rng([seed, dose])
    observed = {form: lira_auc(pools, dose, form) for form in forms}
    n_as_high = dict.fromkeys(forms, 0)
    for _ in range(N_JOINT_REDEALS):
        redealt = [_redealt(pool, dose, generator) for pool in pools]
        others = [shadows(pool) for pool in redealt]
        for form in forms:
            both = zip(redealt, others, strict=True)
            attacks = [attack(pool, dose, form, known) for pool, known in both]
            n_as_high[form] += mean_auc(attacks, dose) >= observed[form]
    return {form: (1 + n) / (1 + N_JOINT_REDEALS) for form, n in n_as_high.items()}


def _redealt(crossed: CrossedScores, dose: int, generator: np.random.Generator) -> CrossedScores:
    """Another assignment of the rows in which each row has a shadow model, as it has in ours.

    An assignment without is drawn again. The p-value stays exact, given that the attack is defined.
    """
    while True:
        copies = crossed.copies.copy()
        for row in copies:
            places = np.flatnonzero((row == dose) | (row == HELD_OUT))
            row[places] = generator.permutation(row[places])
        if (_n_shadows(copies) > 0).all():
            return replace(crossed, copies=copies)


def _n_shadows(copies: np.ndarray) -> np.ndarray:
    """How many other models hold each row out, under each model; shape as given."""
    is_shadow = copies == HELD_OUT
    return is_shadow.sum(axis=0) - is_shadow
