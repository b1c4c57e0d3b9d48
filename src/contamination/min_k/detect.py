"""Scores of passages under a model, local or served: one row for each passage and method."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import scores
from contamination.models.chat import Endpoint
from contamination.models.local import STREAM_TEXTS, CausalLM, scores_first_token, token_log_probs
from contamination.models.prompt_log_probs import prompt_log_probs


def detect(
    texts: Sequence[str],
    lm: CausalLM,
    *,
    reference: CausalLM | None = None,
    neighbors: Sequence[Sequence[str]] | None = None,
    lowercase: bool = True,
    k_percents: Sequence[float] = (20.0,),
) -> pd.DataFrame:
    """Score passages with Min-k% Prob, its baselines and Min-K%++.

    All methods share the token log-probabilities of the passages: a second
    call, with another k or another method, costs no forward pass for them.

    Args:
        reference: a smaller model of the same training data; adds Smaller Ref. With another
            tokenizer it is compared all the same, token by token of each, as the authors do; a
            warning says so.
        neighbors: for each passage its neighbours (``min_k.neighbors``); adds Neighbor.
        lowercase: also score the lowercased passages; adds Lowercase.
        k_percents: shares of tokens kept by Min-k% Prob and Min-K%++.

    Returns:
        One row for each passage (number) and method, passages in order; k_percent is
        empty but for Min-k% Prob and Min-K%++; score is higher for a likelier member;
        n_windows is 1 unless the passage is longer than the context.

    ValueError if there is no passage, one is empty, or neighbours are not one list each.
    """
    if len(texts) == 0:
        raise ValueError("no passage to score")
    if neighbors is not None and len(neighbors) != len(texts):
        raise ValueError(f"{len(texts)} passages but neighbours of {len(neighbors)}")
    if reference is not None and lm.identity["tokenizer"] != reference.identity["tokenizer"]:
        warnings.warn(
            f'{scores.SMALLER_REF}: "{reference.identity["model"]}" has another tokenizer than '
            f'"{lm.identity["model"]}", so nats for a token of one are compared with nats for a '
            "token of the other, as in the authors' code; take a reference of the same tokenizer "
            "to compare like with like",
            stacklevel=2,
        )
    parts = []
    for start in range(0, len(texts), STREAM_TEXTS):  # log-probabilities of a part are let go of
        part = slice(start, start + STREAM_TEXTS)
        near = None if neighbors is None else neighbors[part]
        table = _detect(texts[part], lm, reference, near, lowercase, k_percents)
        parts.append(table.assign(passage=table["passage"] + start))
    return pd.concat(parts, ignore_index=True).assign(first_token_scored=scores_first_token(lm))


def _detect(
    texts: Sequence[str],
    lm: CausalLM,
    reference: CausalLM | None,
    neighbors: Sequence[Sequence[str]] | None,
    lowercase: bool,
    k_percents: Sequence[float],
) -> pd.DataFrame:
    def log_probs(model: CausalLM, some: Sequence[str]) -> list[np.ndarray]:
        return [scored.token_log_probs for scored in token_log_probs(model, some)]

    target = token_log_probs(lm, texts, with_moments=True)
    near = None
    if neighbors is not None:
        flat = log_probs(lm, [text for group in neighbors for text in group])
        near = [flat[a:b] for a, b in pairwise(np.cumsum([0, *map(len, neighbors)]))]
    table = score_table(
        texts,
        [one.token_log_probs for one in target],
        k_percents,
        lowered=log_probs(lm, [text.lower() for text in texts]) if lowercase else None,
        smaller=log_probs(reference, texts) if reference is not None else None,
        near=near,
        moments=[(one.vocabulary_mean, one.vocabulary_std) for one in target],
    )
    return table.assign(n_windows=[target[number].n_windows for number in table["passage"]])


def score_table(
    texts: Sequence[str],
    log_probs: Sequence[np.ndarray],
    k_percents: Sequence[float],
    *,
    lowered: Sequence[np.ndarray] | None = None,
    smaller: Sequence[np.ndarray] | None = None,
    near: Sequence[Sequence[np.ndarray]] | None = None,
    moments: Sequence[tuple[Any, Any]] | None = None,
) -> pd.DataFrame:
    """Columns passage, method, k_percent and score, of log-probabilities that are there.

    For each passage those of its tokens, and where a method needs them those of the lowercased
    text, under the reference, of the neighbours, and the moments over the vocabulary (Min-K%++).
    """
    rows: list[tuple[int, str, float | None, float]] = []
    for number, (text, values) in enumerate(zip(texts, log_probs, strict=True)):
        found = {scores.PPL: scores.perplexity_score(values)}
        found[scores.ZLIB] = scores.zlib_score(values, text)
        if lowered is not None:
            found[scores.LOWERCASE] = scores.lowercase_score(values, lowered[number])
        if smaller is not None:
            found[scores.SMALLER_REF] = scores.smaller_reference_score(values, smaller[number])
        if near is not None:
            found[scores.NEIGHBOR] = scores.neighbor_score(values, near[number])
        rows += [(number, method, None, score) for method, score in found.items()]
        for k in k_percents:
            rows.append((number, scores.MIN_K, k, scores.min_k_score(values, k)))
            if moments is not None:
                score = scores.min_k_plus_plus_score(values, *moments[number], k)
                rows.append((number, scores.MIN_K_PLUS_PLUS, k, score))
    table = pd.DataFrame(rows, columns=["passage", "method", "k_percent", "score"])
    return table.astype({"k_percent": float})


def ppl_and_min_k(lm: CausalLM, texts: Sequence[str], k_percent: float) -> pd.DataFrame:
    """Columns ``PPL`` and ``MIN_K``, a row for each passage, from one forward pass."""
    log_probs = [scored.token_log_probs for scored in token_log_probs(lm, texts)]
    table = pd.DataFrame({scores.PPL: [scores.perplexity_score(values) for values in log_probs]})
    return table.assign(
        **{scores.MIN_K: [scores.min_k_score(values, k_percent) for values in log_probs]}
    )


def detect_served(
    texts: Sequence[str],
    endpoint: Endpoint,
    *,
    neighbors: Sequence[Sequence[str]] | None = None,
    k_percents: Sequence[float] = (20.0,),
    **settings: Any,
) -> pd.DataFrame:
    """As :func:`detect`, by a served model that gives log-probabilities of its prompt.

    ``settings`` are those of ``prompt_log_probs``, such as form, price and cap. Min-K%++ is
    missing: it needs the whole distribution, which no endpoint gives.
    """
    around = [[]] * len(texts) if neighbors is None else neighbors
    every = [*texts, *(text.lower() for text in texts), *(text for each in around for text in each)]
    log_probs = prompt_log_probs(endpoint, every, **settings)
    n, ends = len(texts), np.cumsum([2 * len(texts), *map(len, around)])
    near = None if neighbors is None else [log_probs[a:b] for a, b in pairwise(ends)]
    own, lowered = log_probs[:n], log_probs[n : 2 * n]
    table = score_table(texts, own, k_percents, lowered=lowered, near=near)
    return table.assign(n_windows=1, first_token_scored=False)
