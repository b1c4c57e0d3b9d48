"""DC-PDD: token probabilities weighed against how common the tokens are anyway.

Zhang et al., arXiv:2409.14781. A token that is likely only because it is common says little about
membership. Each token contributes -p log q, where p is its probability under the model and q its
frequency in a reference corpus; contributions are cut at a bound, and a text's score is their mean
over the first occurrence of each token. Higher means more likely a member.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from contamination.dcq.contaminating import training_texts
from contamination.models.loading import CausalLM
from contamination.models.local import token_log_probs
from contamination.study.interface import LOG_PROBABILITIES, Detector, Rows

NAME, WITHOUT_BOUND = "DC-PDD", "DC-PDD without bound"  # of the detectors; the second: exploratory
BOUND = 0.01  # of a token's contribution, as in public implementations; the paper tunes it


def log_frequencies(token_ids: Sequence[Sequence[int]], vocabulary: int) -> np.ndarray:
    """Natural logarithm of each token's frequency in a corpus, shape (vocabulary,).

    Frequencies are smoothed: (count + 1) / (tokens + vocabulary).

    >>> np.exp(log_frequencies([[0, 0], [1]], 3)).round(3).tolist()
    [0.5, 0.333, 0.167]
    """
    counts = np.zeros(vocabulary)
    for ids in token_ids:
        counts += np.bincount(ids, minlength=vocabulary)
    return np.log((counts + 1) / (counts.sum() + vocabulary))


def dc_pdd_score(
    token_log_probs: np.ndarray,
    token_ids: Sequence[int] | np.ndarray,
    log_frequency: np.ndarray,
    bound: float = BOUND,
) -> float:
    """DC-PDD of one text, at least 0; higher means more likely a member.

    Args:
        token_log_probs: natural-log probability of each scored token, shape (n_tokens,).
        token_ids: the same tokens.
        log_frequency: of every token of the vocabulary, see :func:`log_frequencies`.
        bound: largest contribution of a token; infinity for none.

    Raises:
        ValueError: if no token is scored or the two sequences differ in length.

    >>> frequency = np.log([0.5, 0.25])
    >>> score = dc_pdd_score(np.log([0.5, 0.1, 0.9]), [0, 1, 1], frequency, bound=np.inf)
    >>> round(score, 4)  # (0.5 log 2 + 0.1 log 4) / 2: the second 1 does not count
    0.2426
    """
    if len(token_log_probs) != len(token_ids) or not len(token_ids):
        raise ValueError(
            f"{len(token_log_probs)} log-probabilities of {len(token_ids)} tokens: one each, "
            "and at least one"
        )
    first = np.unique(np.asarray(token_ids), return_index=True)[1]
    ids = np.asarray(token_ids)[first]
    contributions = -np.exp(np.asarray(token_log_probs)[first]) * log_frequency[ids]
    return float(np.minimum(contributions, bound).mean())


def _scores(lm: CausalLM, rows: Rows, log_frequency: np.ndarray, bound: float) -> np.ndarray:
    scored = token_log_probs(lm, training_texts(rows.texts, rows.dataset, rows.split))
    return np.array(
        [dc_pdd_score(one.token_log_probs, one.token_ids, log_frequency, bound) for one in scored]
    )


def dc_pdd(log_frequency: np.ndarray, bound: float = BOUND) -> Detector:
    """DC-PDD with the token frequencies of a reference corpus."""
    name = NAME if np.isfinite(bound) else WITHOUT_BOUND
    score = partial(_scores, log_frequency=log_frequency, bound=bound)
    return Detector(name, LOG_PROBABILITIES, score, source="Zhang et al., 2409.14781")
