"""Token ids of texts, and how many there are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from transformers import PreTrainedTokenizerBase


def token_ids(tokenizer: PreTrainedTokenizerBase, texts: Iterable[str]) -> list[list[int]]:
    """Token ids of each text, without special tokens; an empty list for no text."""
    texts = list(texts)
    if not texts:  # a tokenizer raises IndexError
        return []
    return tokenizer(texts, add_special_tokens=False, verbose=False).input_ids


def n_tokens(
    tokenizer: PreTrainedTokenizerBase, texts: Iterable[str], n_special: int = 0
) -> np.ndarray:
    """Number of tokens of each text, shape (n_texts,).

    ``n_special`` is added to each: how many tokens mark a text's beginning and end.
    """
    return np.array([len(ids) for ids in token_ids(tokenizer, texts)], dtype=int) + n_special
