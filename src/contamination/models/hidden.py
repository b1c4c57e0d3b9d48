"""Hidden states of a causal language model, of chosen layers or of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from tqdm import tqdm

from contamination.core import storage
from contamination.models.batch_cache import SHOWN_AFTER, batches_of
from contamination.models.forward import budget, encode, pad, refuse_longer
from contamination.models.loading import CausalLM

BEFORE_FINAL_NORM = -1  # a layer: the output of the highest block, before the final norm


def hidden_states(
    lm: CausalLM, texts: Sequence[str], layers: Sequence[int], max_batch_tokens: int | None = None
) -> np.ndarray:
    """Hidden states of chosen layers at the last token of each text.

    Args:
        layers: 0 is the embedding, i the output of block i. As in transformers, the
            highest one lies behind the final norm, which changes its scale;
            ``BEFORE_FINAL_NORM`` is the same block's own output.

    Returns:
        fp32, shape (n_items, n_layers, d_model), layers in the order given.

    Raises:
        ValueError: if a layer does not exist, and as :func:`layer_batches`.
    """
    config = lm.model.config.get_text_config()
    known = (BEFORE_FINAL_NORM, *range(config.num_hidden_layers + 1))
    if not layers or not all(layer in known for layer in layers):
        raise ValueError(f"layers must be in 0 to {config.num_hidden_layers}, got {list(layers)}")
    states = np.empty((len(texts), len(layers), config.hidden_size), dtype=np.float32)
    # Of what a batch gives, the last two are the highest layer without and with the final norm.
    ends = {BEFORE_FINAL_NORM: -2, config.num_hidden_layers: -1}
    wanted = [ends.get(layer, layer) for layer in layers]
    for batch, lengths, found in layer_batches(lm, texts, max_batch_tokens):
        last = list(range(len(batch))), [length - 1 for length in lengths]
        states[batch] = np.stack([found[i][last].float().cpu().numpy() for i in wanted], axis=1)
    return states


def layer_batches(
    lm: CausalLM, texts: Sequence[str], max_batch_tokens: int | None = None
) -> Iterator[tuple[list[int], list[int], list[torch.Tensor]]]:
    """Hidden states of all layers and tokens, batch by batch; one forward pass for each text.

    Texts begin with the beginning-of-sequence token where the model was loaded so.

    Yields:
        Numbers of the texts; their lengths in tokens, with the beginning-of-sequence token
        where it is put; states of shape (n_rows, n_tokens, d_model): the embedding, each
        block's output, and last the highest block's behind the final norm, n_blocks + 2 in all.

    Raises:
        ValueError: if a text is empty or longer than the context.
    """
    encoded = [lm.begin + token_ids for token_ids in encode(lm, texts)]
    for number, token_ids in enumerate(encoded):
        refuse_longer(lm, len(token_ids), f"text {number}")
    # All layers of a batch are alive at once, so a batch is smaller here.
    max_batch_tokens = max_batch_tokens or budget(lm, None) // 4
    batches = batches_of([len(token_ids) for token_ids in encoded], max_batch_tokens)
    shown = {"delay": SHOWN_AFTER, "leave": False, "unit": " batches"}
    shown["disable"] = not storage.is_watched()
    for batch in tqdm(batches, lm.identity["model"], **shown):
        rows = [encoded[item] for item in batch]
        yield batch, [len(row) for row in rows], _layers(lm, rows)


@torch.inference_mode()
def _layers(lm: CausalLM, rows: Sequence[Sequence[int]]) -> list[torch.Tensor]:
    """States of all layers of one batch, as ``layer_batches`` yields them."""
    n_blocks = lm.model.config.get_text_config().num_hidden_layers
    blocks = next(
        part
        for part in lm.model.base_model.modules()
        if isinstance(part, torch.nn.ModuleList) and len(part) == n_blocks
    )
    top: list[torch.Tensor] = []
    hook = blocks[-1].register_forward_hook(
        lambda block, inputs, output: top.append(output[0] if isinstance(output, tuple) else output)
    )
    input_ids = pad(lm, rows)
    seen = torch.ones_like(input_ids)  # as in CausalLM.states
    with hook:
        *below, normed = lm.model.base_model(
            input_ids=input_ids, attention_mask=seen, output_hidden_states=True, use_cache=False
        ).hidden_states
    return [*below, top[0], normed]
