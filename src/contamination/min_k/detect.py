"""Scores of passages under a model, one row for each passage and method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd

from contamination import scores
from contamination.models.causal import (
    STREAM_TEXTS,
    CausalLM,
    TokenScores,
    scores_first_token,
    token_log_probs,
)


def detect(
    texts: Sequence[str],
    lm: CausalLM,
    *,
    reference: CausalLM | None = None,
    neighbors: Sequence[Sequence[str]] | None = None,
    lowercase: bool = True,
    k_percents: Sequence[float] = (20.0,),
    score_first_token: bool | None = None,
    too_long: str = "window",
    stride: int | None = None,
    cache: bool = True,
) -> pd.DataFrame:
    """Score passages with Min-k% Prob, its baselines and Min-K%++.

    All methods share the token log-probabilities of the passages: a second
    call, with another k or another method, costs no forward pass for them.

    Args:
        texts: n_passages passages.
        lm: the model whose training data is in question.
        reference: a smaller model of the same training data; adds Smaller Ref.
        neighbors: for each passage its neighbours (``min_k.neighbors``); adds
            Neighbor.
        lowercase: also score the lowercased passages; adds Lowercase.
        k_percents: shares of tokens kept by Min-k% Prob and Min-K%++.
        score_first_token: see ``models.causal.scores_first_token``.
        too_long, stride: see ``models.causal.token_log_probs``.
        cache: keep token log-probabilities on disk.

    Returns:
        One row for each passage (number) and method, passages in order; k_percent is
        empty but for Min-k% Prob and Min-K%++; score is higher for a likelier member;
        n_tokens of the passage, n_windows 1 unless longer than the context.

    ValueError if there is no passage, one is empty, or neighbours are not one list each.
    """
    if len(texts) == 0:
        raise ValueError("no passage to score")
    if neighbors is not None and len(neighbors) != len(texts):
        raise ValueError(f"{len(texts)} passages but neighbours of {len(neighbors)}")
    token_scores = partial(
        token_log_probs,
        score_first_token=score_first_token,
        too_long=too_long,
        stride=stride,
        cache=cache,
    )
    parts = []
    for start in range(0, len(texts), STREAM_TEXTS):  # log-probabilities of a part are let go of
        part = slice(start, start + STREAM_TEXTS)
        near = None if neighbors is None else neighbors[part]
        table = _detect(texts[part], lm, reference, near, lowercase, k_percents, token_scores)
        parts.append(table.assign(passage=table["passage"] + start))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(first_token_scored=scores_first_token(lm, score_first_token))


def _detect(
    texts: Sequence[str],
    lm: CausalLM,
    reference: CausalLM | None,
    neighbors: Sequence[Sequence[str]] | None,
    lowercase: bool,
    k_percents: Sequence[float],
    token_scores: Callable[..., list[TokenScores]],
) -> pd.DataFrame:
    target = token_scores(lm, texts, with_moments=True)
    lowered = token_scores(lm, [text.lower() for text in texts]) if lowercase else None
    smaller = token_scores(reference, texts) if reference is not None else None
    if neighbors is not None:
        flat = token_scores(lm, [text for group in neighbors for text in group])
        flat = [neighbor.token_log_probs for neighbor in flat]
        ends = np.cumsum([0, *map(len, neighbors)])
        near = [flat[start:end] for start, end in pairwise(ends)]

    rows = []
    for number, (text, own) in enumerate(zip(texts, target, strict=True)):
        values = own.token_log_probs
        moments = own.vocabulary_mean, own.vocabulary_std
        of_methods = [
            (scores.PPL, None, scores.perplexity_score(values)),
            (scores.ZLIB, None, scores.zlib_score(values, text)),
        ]
        if lowercase:
            score = scores.lowercase_score(values, lowered[number].token_log_probs)
            of_methods.append((scores.LOWERCASE, None, score))
        if reference is not None:
            score = scores.smaller_reference_score(values, smaller[number].token_log_probs)
            of_methods.append((scores.SMALLER_REF, None, score))
        if neighbors is not None:
            of_methods.append((scores.NEIGHBOR, None, scores.neighbor_score(values, near[number])))
        for k in k_percents:
            plus_plus = scores.min_k_plus_plus_score(values, *moments, k)
            of_methods.append((scores.MIN_K, k, scores.min_k_score(values, k)))
            of_methods.append((scores.MIN_K_PLUS_PLUS, k, plus_plus))
        counts = own.n_tokens, values.size, own.n_windows
        rows += [(number, *of_method, *counts) for of_method in of_methods]
    columns = ["passage", "method", "k_percent", "score", "n_tokens", "n_scored", "n_windows"]
    return pd.DataFrame(rows, columns=columns).astype({"k_percent": float})
