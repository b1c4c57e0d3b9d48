"""Hidden states of a causal language model, of chosen layers or of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from contamination.models.batch_cache import BatchCache, Job, batches_of, run_batches
from contamination.models.forward import budget, encode, pad, refuse_longer
from contamination.models.loading import CausalLM

BEFORE_FINAL_NORM = -1  # a layer: the output of the highest block, before the final norm


def hidden_states(
    lm: CausalLM, texts: Sequence[str], layers: Sequence[int], max_batch_tokens: int | None = None
) -> np.ndarray:
    """Hidden states of chosen layers at the last token of each text.

    One forward pass for each text; only what is asked for is kept.

    Args:
        texts: none may be empty or longer than the context. The
            beginning-of-sequence token is put in front where the model was loaded so.
        layers: 0 is the embedding, i the output of block i. As in transformers, the
            highest one lies behind the final norm, which changes its scale;
            ``BEFORE_FINAL_NORM`` is the same block's own output.
        max_batch_tokens: padded tokens of one forward pass.

    Returns:
        fp32, shape (n_items, n_layers, d_model), layers in the order given.

    Raises:
        ValueError: if a text is empty or too long, or a layer does not exist.
    """
    config = lm.model.config.get_text_config()
    known = (BEFORE_FINAL_NORM, *range(config.num_hidden_layers + 1))
    if not layers or not all(layer in known for layer in layers):
        raise ValueError(f"layers must be in 0 to {config.num_hidden_layers}, got {list(layers)}")
    states = np.empty((len(texts), len(layers), config.hidden_size), dtype=np.float32)
    # Of what a batch gives, the last two are the highest layer without and with the final norm.
    ends = {BEFORE_FINAL_NORM: -2, config.num_hidden_layers: -1}
    wanted = [ends.get(layer, layer) for layer in layers]
    encoded, batches = _layer_requests(lm, texts, max_batch_tokens)
    settings = {"layers": list(layers), "pooling": "last", "begin": len(lm.begin)}
    # What took a cluster to compute is kept; here it is cheaper to compute than to keep.
    store = BatchCache("hidden_states", lm.identity, settings) if lm.is_elsewhere else None
    inputs = [[encoded[item] for item in batch] for batch in batches]
    jobs = [Job(rows, (rows, wanted)) for rows in inputs]
    for number, arrays in run_batches(lm, _at_last_tokens, jobs, ["states"], store):
        states[batches[number]] = arrays["states"]
    return states


def layer_batches(
    lm: CausalLM, texts: Sequence[str], max_batch_tokens: int | None = None
) -> Iterator[tuple[list[int], list[int], list[torch.Tensor]]]:
    """Hidden states of all layers and tokens, batch by batch; one forward pass for each text.

    Yields:
        Numbers of the texts; their lengths in tokens, with the beginning-of-sequence token
        where it is put; states of shape (n_rows, n_tokens, d_model): the embedding, each
        block's output, and last the highest block's behind the final norm, n_blocks + 2 in all.

    Raises:
        ValueError: if a text is empty or too long.
    """
    if lm.is_elsewhere:
        raise ValueError('states of all tokens need a model in this process: load it with "local"')
    encoded, batches = _layer_requests(lm, texts, max_batch_tokens)
    for batch in batches:
        rows = [encoded[item] for item in batch]
        yield batch, [len(row) for row in rows], _layers(lm, rows)


def _layer_requests(
    lm: CausalLM, texts: Sequence[str], max_batch_tokens: int | None
) -> tuple[list[list[int]], list[list[int]]]:
    """Tokens of every text, and numbers of the texts of every batch."""
    encoded = [lm.begin + token_ids for token_ids in encode(lm, texts)]
    for number, token_ids in enumerate(encoded):
        refuse_longer(lm, len(token_ids), f"text {number}")
    # All layers of a batch are alive at once, so a batch is smaller here.
    max_batch_tokens = max_batch_tokens or budget(lm, None) // 4
    return encoded, batches_of([len(token_ids) for token_ids in encoded], max_batch_tokens)


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
    with hook, torch.inference_mode():
        *below, normed = lm.model.base_model(
            input_ids=input_ids, attention_mask=seen, output_hidden_states=True, use_cache=False
        ).hidden_states
    return [*below, top[0], normed]


def _at_last_tokens(
    lm: CausalLM, rows: Sequence[Sequence[int]], layers: Sequence[int]
) -> dict[str, np.ndarray]:
    """Chosen layers of one batch, one vector for each text, shape (n_rows, n_layers, d_model)."""
    states = _layers(lm, rows)
    ends = list(range(len(rows))), [len(row) - 1 for row in rows]
    return {"states": np.stack([states[i][ends].float().cpu().numpy() for i in layers], axis=1)}
