"""Similarity of meaning by sentence vectors: SimCSE, Gao et al., arXiv:2104.08821."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from contamination.models.loading import LanguageModel, load_sentence_encoder  # noqa: F401


@torch.inference_mode()
def similarities(
    encoder: LanguageModel, first: Sequence[str], second: Sequence[str], batch_size: int = 64
) -> np.ndarray:
    """Cosine of the vectors of two texts, pair by pair, -1 to 1, shape (n_pairs,).

    The vector is the pooler's output, as the authors of SimCSE use their supervised models.
    Texts longer than the encoder (of ``load_sentence_encoder``) reads are cut.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} texts are no pairs")
    texts = sorted({*first, *second})
    vectors: dict[str, torch.Tensor] = {}
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        encoded = encoder.tokenizer(
            batch,
            padding=True,
            truncation=True,
            max_length=encoder.context_length,
            return_tensors="pt",
        )
        pooled = encoder.model(
            input_ids=encoded.input_ids.to(encoder.device),
            attention_mask=encoded.attention_mask.to(encoder.device),
        ).pooler_output
        unit = torch.nn.functional.normalize(pooled.float(), dim=1).cpu()
        vectors |= dict(zip(batch, unit, strict=True))
    return np.array([float(vectors[a] @ vectors[b]) for a, b in zip(first, second, strict=True)])
