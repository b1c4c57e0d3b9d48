"""Which layer differs most between two models on the same prompts.

Tu et al., arXiv:2406.04197, Section 3.1 and equation 1: the Euclidean distance
between the two models' states of the prompt's last token, the layer with the
largest one for each prompt, and the commonest of these layers. The released
code takes the norm over all tokens instead.

The highest layer that transformers returns lies behind the final norm, which
rescales it; the distance there cannot be compared with the others and makes
the "drop" at the top by itself. Here the last block's own output stands in its
place, and the normed states are a row of their own that is never located.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contamination.models.causal import (
    BEFORE_FINAL_NORM,
    CausalLM,
    hidden_states,
    layer_batches,
)

EUCLIDEAN, RELATIVE, COSINE = "euclidean", "relative", "cosine"
ALL_TOKENS = ", all tokens"


def n_layers(lm: CausalLM) -> int:
    """Number of blocks."""
    return int(lm.model.config.get_text_config().num_hidden_layers)


def states_by_layer(lm: CausalLM, prompts: Sequence[str]) -> np.ndarray:
    """Last-token states of every layer, one forward pass for each prompt.

    fp32, shape (n_prompts, n_blocks + 2, d_model): the embedding, every block's own
    output, and the last block's behind the final norm.
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
    """The located layer: that of the largest distance, by vote over prompts; ties take the lower.

    ``euclidean`` has shape (n_prompts, n_blocks + 2); its embedding is no layer of equation 1,
    and the normed states are not comparable.
    """
    return 1 + int(np.bincount(euclidean[:, 1:-1].argmax(axis=1)).argmax())


def distances_all_tokens(
    first: CausalLM, second: CausalLM, prompts: Sequence[str]
) -> dict[str, np.ndarray]:
    """As :func:`distances`, over the states of all tokens of a prompt taken as one vector.

    Both models read a batch before the next one is composed, so that no more
    than one batch of states is held.
    """
    sums = np.empty((4, len(prompts), n_layers(first) + 2))
    pairs = zip(layer_batches(first, prompts), layer_batches(second, prompts), strict=True)
    for (batch, lengths, one), (_, _, other) in pairs:
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            for row, item in enumerate(batch):
                x, y = (part[row, : lengths[row]].double() for part in (a, b))
                parts = ((x - y) ** 2).sum(), (x**2).sum(), (y**2).sum(), (x * y).sum()
                sums[:, item, place] = [float(part) for part in parts]
    return _distances(*sums)
