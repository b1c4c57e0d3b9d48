"""The classifier on a layer's states, and how its AUROC is told from chance.

Tu et al., arXiv:2406.04197, Section 3.2: a multi-layer perceptron reads the
state of the prompt's last token and gives the probability that the *model* is
contaminated. It is trained on states of one contaminated and one clean model.
Notebook 05 trains the same network in PyTorch, step by step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from contamination.core import statistics

N_EPOCHS = 100
MEAN_DIFFERENCE = "mean difference"
MLP = "DICE"
N_RESAMPLES = 2_000
# What an interval draws anew.
PAIRS = "pairs of models"
MODELS = "models of each kind; detectors stay as trained"

Score = Callable[[np.ndarray], np.ndarray]  # states (n, d_model) to scores (n,)


def hidden_widths(d_model: int) -> tuple[int, ...]:
    """Widths of the hidden layers: 1/2, 1/4, 1/8 of the state, three as in the released code.

    The paper's text says four and names no widths.

    >>> hidden_widths(4096)  # LLaMA2-7B
    (2048, 1024, 512)
    """
    return tuple(max(8, d_model >> step) for step in (1, 2, 3))


def train_mlp(states: np.ndarray, is_contaminated: np.ndarray, seed: int = 0) -> Score:
    """The paper's detector: ReLU layers, binary cross-entropy, Adam, exactly ``N_EPOCHS`` epochs.

    States have shape (n, d_model); ``seed`` is that of weights and order. Scores are log-odds of
    "contaminated": unlike the paper's probability they do not tie at 0 and 1.
    """
    network = MLPClassifier(
        hidden_widths(states.shape[1]),
        alpha=0.0,
        batch_size=min(32, len(states)),
        max_iter=N_EPOCHS,
        n_iter_no_change=N_EPOCHS,  # else training ends where its own loss stays level
        random_state=seed,
    )
    with warnings.catch_warnings():
        # A fixed number of epochs is meant, so that "not converged" is no warning here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(states, np.asarray(is_contaminated, dtype=int))

    def score(others: np.ndarray) -> np.ndarray:
        hidden = np.asarray(others, dtype=states.dtype)
        for weights, bias in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
            hidden = np.maximum(hidden @ weights + bias, 0)
        return (hidden @ network.coefs_[-1] + network.intercepts_[-1])[:, 0]

    return score


def train_direction(states: np.ndarray, is_contaminated: np.ndarray, seed: int = 0) -> Score:
    """The simplest detector: position along the difference of the two models' mean states."""
    is_contaminated = np.asarray(is_contaminated, dtype=bool)
    direction = states[is_contaminated].mean(axis=0) - states[~is_contaminated].mean(axis=0)
    return lambda others: others @ direction


TRAINERS = {MLP: train_mlp, MEAN_DIFFERENCE: train_direction}


def probability(log_odds: np.ndarray) -> np.ndarray:
    """What the paper reports: the predicted probability of being contaminated, 0 to 1."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))


@dataclass(frozen=True)
class Auroc:
    """An AUROC over models.

    Attributes:
        auroc_pct: mean over pairs of models, in percent; 50 is chance.
        folded_auroc_pct: likewise, each pair's turned where it is below 50: a
            detector that is wrong separates as well. Above 50 by chance too.
        ci_low, ci_high: 95 % interval in percent; undefined for a single pair.
        n: scores of one pair.
        n_models: distinct models.
        resampled: what the interval draws, ``PAIRS`` or ``MODELS``; "" without one.
        n_drawn: how many of these it draws, of the kind that has fewest.
    """

    auroc_pct: float
    folded_auroc_pct: float
    ci_low: float
    ci_high: float
    n: int
    n_models: int
    resampled: str = ""
    n_drawn: int = 0

    def columns(self) -> dict[str, float | str]:
        """The AUROC and its interval as columns of a table."""
        names = ("auroc_pct", "folded_auroc_pct", "ci_low", "ci_high", "resampled")
        return {name: getattr(self, name) for name in names}


def auroc_over_models(
    positives: Sequence[np.ndarray],
    negatives: Sequence[np.ndarray],
    n_models: int,
    models: Sequence[tuple[int, ...]] | None = None,
) -> Auroc:
    """AUROC of each pair of models, their mean, and an interval over models.

    Models are what was drawn at random, not questions: a thousand questions to
    one pair of models are one observation of "contaminated against clean".
    Where pairs share a model they are not independent, and models are drawn in
    their place: of the contaminated and of the clean ones with replacement, then
    every pair among those drawn. Detectors that several pairs share stay as
    trained: what others would have learned from other models is left out.

    Args:
        positives, negatives: scores of the states that should be higher and of the
            others, one array a pair.
        n_models: distinct models among them.
        models: for each pair the number of its model of each kind (one number where
            both arrays are of one model); None where every pair has its own models.
    """
    aucs = 100 * np.array(
        [
            statistics.auc(np.concatenate(pair), np.repeat([True, False], [*map(len, pair)]))
            for pair in zip(positives, negatives, strict=True)
        ]
    )
    low, high, resampled = float("nan"), float("nan"), ""
    if len(aucs) > 1:
        drawn = [(number,) for number in range(len(aucs))] if models is None else models
        means = _resampled_means(aucs, drawn, np.random.default_rng(0))
        low, high = statistics.percentile_interval(means)
        resampled = PAIRS if models is None else MODELS
    folded = float(np.maximum(aucs, 100 - aucs).mean())
    n = len(positives[0]) + len(negatives[0])
    kinds = [range(len(aucs))] if models is None else zip(*models, strict=True)
    n_drawn = min(len(set(kind)) for kind in kinds)
    return Auroc(float(aucs.mean()), folded, low, high, n, n_models, resampled, n_drawn)


def _resampled_means(
    aucs: np.ndarray, models: Sequence[tuple[int, ...]], rng: np.random.Generator
) -> np.ndarray:
    """Mean AUROC over the pairs among models drawn with replacement, at most ``N_RESAMPLES``."""
    weights = np.ones((N_RESAMPLES, len(aucs)))
    for kind in zip(*models, strict=True):
        distinct, places = np.unique(kind, return_inverse=True)
        share = [1 / len(distinct)] * len(distinct)
        weights *= rng.multinomial(len(distinct), share, N_RESAMPLES)[:, places]
    totals = weights.sum(axis=1)
    # A draw may hold no two models that were paired.
    return (weights @ aucs)[totals > 0] / totals[totals > 0]
