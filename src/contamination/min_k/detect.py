"""Scores of passages under a model, one row for each passage and method, and their AUC."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from contamination import scores, statistics
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
        too_long: "window" or "refuse", see ``models.causal.token_log_probs``.
        stride: tokens by which a window moves.
        cache: keep token log-probabilities on disk.

    Returns:
        One row for each passage and method, passages in order: passage
        (number), method, k_percent (empty but for Min-k% Prob and Min-K%++),
        score (higher = more likely a member), n_tokens (of the passage),
        n_scored, n_windows (1 unless longer than the context),
        first_token_scored.

    Raises:
        ValueError: if there is no passage, one is empty, or neighbours are not
            one list each.
    """
    if len(texts) == 0:
        raise ValueError("no passage to score")
    if neighbors is not None and len(neighbors) != len(texts):
        raise ValueError(f"{len(texts)} passages but neighbours of {len(neighbors)}")
    how = {
        "score_first_token": score_first_token,
        "too_long": too_long,
        "stride": stride,
        "cache": cache,
    }
    parts = []
    for start in range(0, len(texts), STREAM_TEXTS):  # log-probabilities of a part are let go of
        some = slice(start, start + STREAM_TEXTS)
        of_part = None if neighbors is None else neighbors[some]
        part = _detect(texts[some], lm, reference, of_part, lowercase, k_percents, how)
        parts.append(part.assign(passage=part["passage"] + start))
    return pd.concat(parts, ignore_index=True)


def _detect(
    texts: Sequence[str],
    lm: CausalLM,
    reference: CausalLM | None,
    neighbors: Sequence[Sequence[str]] | None,
    lowercase: bool,
    k_percents: Sequence[float],
    how: dict[str, Any],
) -> pd.DataFrame:
    target = token_log_probs(lm, texts, with_moments=True, **how)
    others: dict[str, Sequence] = {}
    if lowercase:
        others[scores.LOWERCASE] = token_log_probs(lm, [text.lower() for text in texts], **how)
    if reference is not None:
        others[scores.SMALLER_REF] = token_log_probs(reference, texts, **how)
    if neighbors is not None:
        ends = np.cumsum([0, *map(len, neighbors)])
        flat = token_log_probs(lm, [text for group in neighbors for text in group], **how)
        others[scores.NEIGHBOR] = [flat[start:end] for start, end in pairwise(ends)]

    is_first_scored = scores_first_token(lm, how["score_first_token"])
    rows = []
    for number, (text, own) in enumerate(zip(texts, target, strict=True)):
        log_probs = own.token_log_probs
        found = [
            (scores.PPL, None, scores.perplexity_score(log_probs)),
            (scores.ZLIB, None, scores.zlib_score(log_probs, text)),
        ]
        for method, values in others.items():
            found.append((method, None, _against(method, log_probs, values[number])))
        for k_percent in k_percents:
            found += [
                (scores.MIN_K, k_percent, scores.min_k_score(log_probs, k_percent)),
                (scores.MIN_K_PLUS_PLUS, k_percent, _min_k_plus_plus(own, k_percent)),
            ]
        rows += [
            {
                "passage": number,
                "method": method,
                "k_percent": k_percent,
                "score": score,
                "n_tokens": own.n_tokens,
                "n_scored": log_probs.size,
                "n_windows": own.n_windows,
                "first_token_scored": is_first_scored,
            }
            for method, k_percent, score in found
        ]
    return pd.DataFrame(rows).astype({"k_percent": float})


def auc_by_method(
    detected: pd.DataFrame,
    is_member: Sequence[bool],
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> pd.DataFrame:
    """How well each method of ``detect`` tells members from non-members.

    Args:
        detected: as ``detect`` returns it.
        is_member: membership of each passage, shape (n_passages,).
        n_resamples: resamples of the stratified bootstrap.
        seed: its seed; all methods see the same resampled passages.
        level: level of the interval.

    Returns:
        One row for each method and k: method, k_percent, first_token_scored,
        n_members, n_non_members, windowed_share (passages longer than the
        context), auc, ci_low, ci_high, tpr_at_5_fpr (largest TPR with FPR at
        most 5 %).

    Raises:
        ValueError: if only one kind occurs, or labels and passages differ in number.
    """
    is_member = np.asarray(is_member, dtype=bool)
    if len(is_member) != detected["passage"].nunique():
        raise ValueError(
            f"{len(is_member)} labels for {detected['passage'].nunique()} scored passages"
        )
    rows = []
    for (method, k_percent), group in detected.groupby(
        ["method", "k_percent"], sort=False, dropna=False
    ):
        values = group.sort_values("passage")["score"].to_numpy()
        low, high = statistics.auc_interval(values, is_member, n_resamples, seed, level)
        rows.append(
            {
                "method": method,
                "k_percent": k_percent,
                "first_token_scored": bool(group["first_token_scored"].iloc[0]),
                "n_members": int(is_member.sum()),
                "n_non_members": int((~is_member).sum()),
                "windowed_share": float((group["n_windows"] > 1).mean()),
                "auc": statistics.auc(values, is_member),
                "ci_low": low,
                "ci_high": high,
                "tpr_at_5_fpr": statistics.tpr_at_fpr(values, is_member),
            }
        )
    return pd.DataFrame(rows)


def _against(method: str, log_probs: np.ndarray, other: TokenScores | list[TokenScores]) -> float:
    if method == scores.LOWERCASE:
        return scores.lowercase_score(log_probs, other.token_log_probs)
    if method == scores.SMALLER_REF:
        return scores.smaller_reference_score(log_probs, other.token_log_probs)
    return scores.neighbor_score(log_probs, [neighbor.token_log_probs for neighbor in other])


def _min_k_plus_plus(own: TokenScores, k_percent: float) -> float:
    return scores.min_k_plus_plus_score(
        own.token_log_probs, own.vocabulary_mean, own.vocabulary_std, k_percent
    )
