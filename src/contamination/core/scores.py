"""Scores of one passage from its token log-probabilities.

Shi et al., arXiv:2310.16789, section 4.2 and equation 1, and Zhang et al.,
arXiv:2404.02936, for Min-K%++. Every function gives one number for one
passage, and a higher one always means: more likely seen in training. Where
the authors' code has lower values for members, the sign is turned.

``token_log_probs`` are natural logarithms, shape (n_scored,), one for each
token that has a context. NLL below is minus their mean, in nats for a token.
Every function raises ValueError if no token was scored or a value is not a
log-probability.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

# Spelt as in the paper's tables.
PPL = "PPL"
ZLIB = "Zlib"
LOWERCASE = "Lowercase"
SMALLER_REF = "Smaller Ref"
NEIGHBOR = "Neighbor"
MIN_K = "Min-k% Prob"
MIN_K_PLUS_PLUS = "Min-K%++"
K_PERCENT = 20.0  # share of tokens that Min-k% Prob averages, in percent


def n_lowest(n_tokens: int, k_percent: float) -> int:
    """How many of ``n_tokens`` are k %: rounded down as in the authors' code, but at least one.

    ValueError unless 0 < k_percent <= 100.

    >>> n_lowest(9, 25), n_lowest(3, 20)
    (2, 1)
    """
    if not 0 < k_percent <= 100:
        raise ValueError(f"k_percent must be above 0 and at most 100, got {k_percent}")
    return max(1, int(n_tokens * k_percent / 100))


def min_k_score(token_log_probs: np.ndarray, k_percent: float = K_PERCENT) -> float:
    """Mean log-probability of the k % least likely tokens: Min-k% Prob.

    Shi et al., equation 1. Members score higher: a passage the model has read
    holds few tokens that surprise it. Nats for a token, at most 0; at 100 % minus the NLL.
    For the number kept see :func:`n_lowest`; ValueError if k_percent is out of range.

    >>> round(min_k_score(np.log([0.5, 0.25, 0.5, 0.5]), k_percent=25), 4)
    -1.3863
    """
    return _mean_of_lowest(_checked(token_log_probs), k_percent)


def min_k_plus_plus_score(
    token_log_probs: np.ndarray,
    vocabulary_mean: np.ndarray,
    vocabulary_std: np.ndarray,
    k_percent: float = K_PERCENT,
) -> float:
    """Min-k% of log-probabilities standardised at each position: Min-K%++.

    Zhang et al., arXiv:2404.02936; beyond Shi et al. A token counts
    as surprising when it is unlikely compared with what else could stand there.
    ``vocabulary_mean`` and ``vocabulary_std`` (above 0) of the log-probability are under the
    model's own distribution at each position, shape (n_scored,). Standard deviations, any
    sign. ValueError if shapes differ, a spread is 0, or k_percent is out of range.

    >>> min_k_plus_plus_score([-1.0, -3.0], [-2.0, -2.0], [1.0, 0.5], k_percent=50)
    -2.0
    """
    values = _checked(token_log_probs)
    mean = np.asarray(vocabulary_mean, dtype=float)
    std = np.asarray(vocabulary_std, dtype=float)
    if not values.shape == mean.shape == std.shape:
        raise ValueError(
            f"log-probabilities {values.shape}, means {mean.shape} and spreads {std.shape} "
            "must be one per token"
        )
    if not (std > 0).all():
        raise ValueError("spread over the vocabulary must be above 0 at every token")
    return _mean_of_lowest((values - mean) / std, k_percent)


def perplexity_score(token_log_probs: np.ndarray) -> float:
    """Minus the perplexity, exp(NLL), at most -1: the loss attack (Yeom et al.).

    >>> round(perplexity_score(np.log([0.5, 0.125])), 4)
    -4.0
    """
    return -float(np.exp(_nll(token_log_probs)))


def zlib_score(token_log_probs: np.ndarray, text: str) -> float:
    """Minus the NLL over the size of the text compressed by zlib (Carlini et al.).

    The UTF-8 bytes of the text, which must not be empty, are compressed at zlib's
    default level. Nats for a token and byte, at most 0.

    >>> len(zlib.compress(b"abc")), round(zlib_score(np.log([0.5]), "abc") * 11, 4)
    (11, -0.6931)
    """
    if not text:
        raise ValueError("the passage is empty: leave it out")
    return -_nll(token_log_probs) / len(zlib.compress(text.encode()))


def lowercase_score(token_log_probs: np.ndarray, lowercase_token_log_probs: np.ndarray) -> float:
    """NLL of the lowercased passage over the NLL of the passage (Carlini et al.), at least 0.

    Members score higher: memory of a passage is memory of its spelling; 1 without capitals.
    As in the authors' code, the two NLL are divided, not subtracted. ValueError if the
    passage has an NLL of 0.

    >>> lowercase_score(np.log([0.5, 0.5]), np.log([0.25, 0.25]))
    2.0
    """
    nll = _nll(token_log_probs)
    if nll == 0:
        raise ValueError("the passage has an NLL of 0, so no ratio to it is defined: leave it out")
    return _nll(lowercase_token_log_probs) / nll


def smaller_reference_score(
    token_log_probs: np.ndarray, reference_token_log_probs: np.ndarray
) -> float:
    """NLL under a smaller model minus NLL under the model, nats a token (Carlini et al.).

    Each NLL is a mean over the tokens of that model's own tokenizer, as in the authors' code.
    They pair GPT-Neo with GPT-NeoX too, whose tokenizers differ, so that one text has two
    numbers of tokens and the difference also follows how finely each cuts it. Within one
    tokenizer the unit is the same; ``min_k.detect`` says which it was.

    >>> round(smaller_reference_score(np.log([0.5]), np.log([0.25])), 4)
    0.6931
    """
    return _nll(reference_token_log_probs) - _nll(token_log_probs)


def neighbor_score(
    token_log_probs: np.ndarray, neighbor_token_log_probs: Sequence[np.ndarray]
) -> float:
    """Mean NLL of a passage's neighbours minus its own NLL, nats.

    Mattern et al., arXiv:2305.18462. A passage that was read lies lower than
    passages that differ from it by a word or two. Every neighbour weighs the same,
    whatever its length; there must be one.

    >>> round(neighbor_score(np.log([0.5]), [np.log([0.25]), np.log([0.0625])]), 4)
    1.3863
    """
    if len(neighbor_token_log_probs) == 0:
        raise ValueError("the passage has no neighbour to compare with: make at least one")
    return float(np.mean([_nll(values) for values in neighbor_token_log_probs])) - _nll(
        token_log_probs
    )


def _nll(token_log_probs: np.ndarray) -> float:
    return -float(_checked(token_log_probs).mean())


def _checked(token_log_probs: np.ndarray) -> np.ndarray:
    values = np.asarray(token_log_probs, dtype=float)
    if values.ndim != 1:
        raise ValueError(f"log-probabilities of one passage have one axis, got {values.shape}")
    if values.size == 0:
        raise ValueError("the passage has no scored token: it needs two tokens or more")
    # Catches probabilities, losses and padding before they look like a score.
    if not np.isfinite(values).all() or (values > 0).any():
        raise ValueError("log-probabilities must be finite and at most 0")
    return values


def _mean_of_lowest(values: np.ndarray, k_percent: float) -> float:
    return float(np.sort(values)[: n_lowest(values.size, k_percent)].mean())
