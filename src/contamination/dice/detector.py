"""Which layer differs most, the classifier on its states, and how its AUROC is told from chance."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from contamination.core import statistics
from contamination.models.local import BEFORE_FINAL_NORM, CausalLM, hidden_states, layer_batches

EUCLIDEAN, RELATIVE, COSINE = "euclidean", "relative", "cosine"


def n_layers(lm: CausalLM) -> int:
    """Number of blocks."""
    return int(lm.model.config.get_text_config().num_hidden_layers)


def states_by_layer(lm: CausalLM, prompts: Sequence[str]) -> np.ndarray:
    """Last-token states of every layer, fp32, shape (n_prompts, n_blocks + 2, d_model).

    The embedding, every block's own output, and the last block's behind the final norm.
    """
    top = n_layers(lm)
    return hidden_states(lm, prompts, [*range(top), BEFORE_FINAL_NORM, top])


def distances(first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    """Distances between two models' states (n_prompts, n_layers, d_model) of the same prompts.

    By name, each of shape (n_prompts, n_layers): "euclidean"; "relative", that over the
    mean norm of the two states; "cosine", 1 minus their cosine.
    """
    return _distances(
        ((first - second) ** 2).sum(axis=-1),
        (first**2).sum(axis=-1),
        (second**2).sum(axis=-1),
        (first * second).sum(axis=-1),
    )


def _distances(
    squared: np.ndarray, one: np.ndarray, other: np.ndarray, product: np.ndarray
) -> dict[str, np.ndarray]:
    norms = np.sqrt(one), np.sqrt(other)
    euclidean = np.sqrt(squared)
    return {
        EUCLIDEAN: euclidean,
        RELATIVE: euclidean / ((norms[0] + norms[1]) / 2),
        COSINE: 1 - product / (norms[0] * norms[1]),
    }


def commonest_layer(euclidean: np.ndarray) -> int:
    """The located layer (equation 1): largest distance by vote of the prompts, ties to the lower.

    Of ``euclidean``, shape (n_prompts, n_blocks + 2), neither the embedding nor the normed states
    have a vote.
    """
    return 1 + int(np.bincount(euclidean[:, 1:-1].argmax(axis=1)).argmax())


def distances_all_tokens(
    first: CausalLM, second: CausalLM, prompts: Sequence[str]
) -> dict[str, np.ndarray]:
    """As :func:`distances`, "..., all tokens": their states of a prompt taken as one vector."""
    sums = np.empty((4, len(prompts), n_layers(first) + 2))
    pairs = zip(layer_batches(first, prompts), layer_batches(second, prompts), strict=True)
    for (batch, lengths, one), (_, _, other) in pairs:
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            for row, item in enumerate(batch):
                x, y = (part[row, : lengths[row]].double() for part in (a, b))
                parts = ((x - y) ** 2).sum(), (x**2).sum(), (y**2).sum(), (x * y).sum()
                sums[:, item, place] = [float(part) for part in parts]
    return {f"{name}, all tokens": values for name, values in _distances(*sums).items()}


N_EPOCHS = 100
MEAN_DIFFERENCE = "mean difference"
MLP = "DICE"
N_RESAMPLES = 2_000
# What an interval draws anew.
PAIRS = "pairs of models"
MODELS = "models of each kind; detectors stay as trained"

Score = Callable[[np.ndarray], np.ndarray]  # states (n, d_model) to scores (n,)


def train_mlp(states: np.ndarray, is_contaminated: np.ndarray, seed: int = 0) -> Score:
    """The paper's detector: ReLU layers, binary cross-entropy, Adam, exactly ``N_EPOCHS`` epochs.

    States have shape (n, d_model); ``seed`` is that of weights and order. Scores are log-odds of
    "contaminated": unlike the paper's probability they do not tie at 0 and 1.
    """
    network = MLPClassifier(
        # Three, as in the released code; the paper's text says four and names no widths.
        tuple(max(8, states.shape[1] >> step) for step in (1, 2, 3)),
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
        folded_auroc_pct: likewise, each pair's turned where it is below 50. Above 50 by chance too.
        ci_low, ci_high: 95 % interval in percent; undefined for a single pair.
        n, n_models: scores of one pair; distinct models.
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
    scored: Sequence[Sequence[np.ndarray]],
    models: Sequence[tuple[int, ...]] | None = None,
    n_models: int = 0,
) -> Auroc:
    """AUROC of each pair of models, their mean, and an interval over models.

    Models were drawn at random, not questions: a thousand questions to one pair of models are
    one observation. Where pairs share a model, models are drawn in their place, with replacement
    within each kind, and every pair among those drawn counts; shared detectors stay as trained.

    Args:
        scored: for each pair, scores of its positive states and of its negative ones.
        models: for each pair the number of its model of each kind (one number where
            both arrays are of one model); None where every pair has its own models.
        n_models: distinct models, where no model has a number and pairs share one.
    """
    aucs = 100 * np.array(
        [
            statistics.auc(np.concatenate(pair), np.repeat([True, False], [*map(len, pair)]))
            for pair in scored
        ]
    )
    drawn = [(number,) for number in range(len(aucs))] if models is None else models
    numbers = [len(set(kind)) for kind in zip(*drawn, strict=True)]
    n_models = n_models or (2 * len(aucs) if models is None else sum(numbers))
    low, high, resampled = float("nan"), float("nan"), ""
    if len(aucs) > 1:
        means = _resampled_means(aucs, drawn, np.random.default_rng(0))
        low, high = statistics.percentile_interval(means)
        resampled = PAIRS if models is None else MODELS
    folded = float(np.maximum(aucs, 100 - aucs).mean())
    n = sum(map(len, scored[0]))
    return Auroc(float(aucs.mean()), folded, low, high, n, n_models, resampled, min(numbers))


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
