"""Detectors of the tokens of a row, and the controls that must find nothing.

Min-k% Prob, its baselines, Min-K%++ and DC-PDD share the token log-probabilities of the rows as the
model reads them, header included, which is the same above every row; Lowercase turns the header's
letters small too. Neighbor is left out: its 25 neighbours of a row cost 25 forward passes, where
all others together take three.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from contamination.core import scores, storage
from contamination.dcq.contaminating import training_texts
from contamination.min_k.detect import detect
from contamination.models.loading import CausalLM
from contamination.models.local import token_log_probs
from contamination.study.interface import LOG_PROBABILITIES, WEIGHTS, Detector, Rows


def method_scores(lm: CausalLM, rows: Rows, method: str) -> np.ndarray:
    """Scores of one method of ``min_k.detect`` for each row, shape (n_rows,), higher = read.

    k is 20 % and windows score what is longer than the context. ValueError for a method that the
    model alone does not give.
    """
    texts = training_texts(rows.texts, rows.dataset, rows.split)
    is_lowercase = method == scores.LOWERCASE
    table = detect(texts, lm, lowercase=is_lowercase)
    of_method = table.loc[table["method"] == method, "score"].to_numpy()
    if of_method.size == 0:
        raise ValueError(f'no scores of method "{method}" without further models')
    return of_method


def _detector(method: str, source: str) -> Detector:
    score = partial(method_scores, method=method)
    return Detector(method, LOG_PROBABILITIES, score, source=source)


PPL = _detector(scores.PPL, "Yeom et al., 1709.01604")
ZLIB = _detector(scores.ZLIB, "Carlini et al., 2012.07805")
LOWERCASE = _detector(scores.LOWERCASE, "Carlini et al., 2012.07805")
MIN_K = _detector(scores.MIN_K, "Shi et al., 2310.16789")
MIN_K_PLUS_PLUS = _detector(scores.MIN_K_PLUS_PLUS, "Zhang et al., 2404.02936")
OF_TOKENS = (PPL, ZLIB, LOWERCASE, MIN_K, MIN_K_PLUS_PLUS)  # of the pretraining study


# DC-PDD

DC_PDD, WITHOUT_BOUND = "DC-PDD", "DC-PDD without bound"  # the second is exploratory
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
    """DC-PDD of one text (Zhang et al., arXiv:2409.14781), at least 0; higher = read.

    A token that is likely only because it is common says little. Each token contributes -p log q,
    where p is its probability under the model and q its frequency in a reference corpus, cut at a
    bound; the score is the mean over the first occurrence of each token.

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


def _dc_pdd_scores(lm: CausalLM, rows: Rows, log_frequency: np.ndarray, bound: float) -> np.ndarray:
    scored = token_log_probs(lm, training_texts(rows.texts, rows.dataset, rows.split))
    return np.array(
        [dc_pdd_score(one.token_log_probs, one.token_ids, log_frequency, bound) for one in scored]
    )


def dc_pdd(log_frequency: np.ndarray, bound: float = BOUND) -> Detector:
    """DC-PDD with the token frequencies of a reference corpus."""
    name = DC_PDD if np.isfinite(bound) else WITHOUT_BOUND
    score = partial(_dc_pdd_scores, log_frequency=log_frequency, bound=bound)
    return Detector(name, LOG_PROBABILITIES, score, source="Zhang et al., 2409.14781")


# Controls


def _noise(lm: CausalLM, rows: Rows) -> np.ndarray:
    drawn = int(storage.hash_of([lm.identity, rows.texts])[:15], 16)
    return np.random.default_rng(drawn).normal(size=len(rows))


def _length(lm: CausalLM, rows: Rows) -> np.ndarray:
    return np.array([float(len(text)) for text in rows.texts])


def _weight_norm(lm: CausalLM, rows: Rows) -> np.ndarray:
    norm = sum(float(weight.detach().square().sum()) for weight in lm.model.parameters())
    return np.full(len(rows), norm)


CONTROLS = (
    Detector("noise", LOG_PROBABILITIES, _noise),
    Detector("length", LOG_PROBABILITIES, _length),
    Detector("was fine-tuned at all", WEIGHTS, _weight_norm),
)
