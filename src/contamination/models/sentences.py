"""Sentence vectors: the pooler's (SimCSE, Gao et al., arXiv:2104.08821) and the tokens' mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel

from contamination.models.loading import (
    LanguageModel,
    load_pretrained,
    load_sentence_encoder,  # noqa: F401
)


@torch.inference_mode()
def similarities(
    encoder: LanguageModel, first: Sequence[str], second: Sequence[str], batch_size: int = 64
) -> np.ndarray:
    """Cosine of the vectors of two texts, pair by pair, -1 to 1, shape (n_pairs,).

    The vector is the pooler's output, as the authors of SimCSE use their supervised models.
    Texts longer than the encoder (of ``load_sentence_encoder``) reads are cut.
    """
    texts = sorted({*first, *second})
    vectors: dict[str, torch.Tensor] = {}
    for batch, output, _ in _encoded(encoder, texts, encoder.context_length, batch_size):
        vectors |= dict(zip(batch, _unit(output.pooler_output), strict=True))
    return np.array([float(vectors[a] @ vectors[b]) for a, b in zip(first, second, strict=True)])


def load_mean_encoder(name_or_path: str | Path, **settings: Any) -> LanguageModel:
    """Load an encoder whose mean token vector is a text's, such as all-MiniLM-L6-v2."""
    return LanguageModel(*load_pretrained(AutoModel, name_or_path, **settings))


@torch.inference_mode()
def mean_vectors(
    encoder: LanguageModel, texts: Sequence[str], max_tokens: int = 256, batch_size: int = 64
) -> np.ndarray:
    """Mean of a text's token vectors at unit length, shape (n_texts, width).

    ``encoder`` is of :func:`load_mean_encoder`. Texts are cut at ``max_tokens``, as that of
    all-MiniLM-L6-v2 declares.
    """
    found = []
    n_tokens = min(max_tokens, encoder.context_length or max_tokens)
    for _, output, mask in _encoded(encoder, texts, n_tokens, batch_size):
        weights = mask.unsqueeze(2).float()
        states = output.last_hidden_state.float()
        found.append(_unit((states * weights).sum(dim=1) / weights.sum(dim=1)))
    return torch.cat(found).numpy()


def _encoded(
    encoder: LanguageModel, texts: Sequence[str], n_tokens: int | None, batch_size: int
) -> Iterator[tuple[Sequence[str], Any, torch.Tensor]]:
    """Batches of texts, what the encoder makes of each, and which of its tokens are text."""
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        how = {"padding": True, "truncation": True, "max_length": n_tokens}
        encoded = encoder.tokenizer(list(batch), return_tensors="pt", **how)
        mask = encoded.attention_mask.to(encoder.device)
        ids = encoded.input_ids.to(encoder.device)
        yield batch, encoder.model(input_ids=ids, attention_mask=mask), mask


def _unit(vectors: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(vectors.float(), dim=1).cpu()
