"""Forward passes over many rows of tokens: batching, padding, windows, scoring.

Texts are padded on the right. A causal model sees no token to the right, so
real tokens keep their positions and need no attention mask. The output head is
applied to a few hundred positions at a time, and only to those asked for:
logits of a whole batch (tokens x vocabulary) are never held. The log-softmax
is taken in fp32 whatever the model's dtype.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from contamination.models.batch_cache import BatchCache, Job, batches_of, run_batches
from contamination.models.loading import CausalLM, LanguageModel
from contamination.models.tokens import token_ids

BATCH_TOKENS = {"cpu": 4096, "cuda": 32768}  # padded tokens of one forward pass
LOGITS_PER_CHUNK = {"cpu": 2**19, "cuda": 2**28}  # logits held at a time; 2 MB fit a cache
LEAST_PER_CHUNK = 64  # positions; fewer would read the whole head for little


class Row(NamedTuple):
    """One row of a forward pass: the tokens that go in, and the targets asked for."""

    input_ids: tuple[int, ...]
    positions: tuple[int, ...]  # of the inputs whose next token is scored
    targets: tuple[int, ...]  # that next token, for each position


def encode(lm: LanguageModel, texts: Sequence[str], allow_empty: bool = False) -> list[list[int]]:
    """Token ids of each text, without special tokens.

    ValueError for one text in place of several, for an empty text unless ``allow_empty``, and
    for a token that the model cannot embed.
    """
    if isinstance(texts, str):
        raise ValueError("texts must be a sequence of texts, got one text")
    for number, text in enumerate(texts):
        if not allow_empty and not text.strip():
            raise ValueError(f"text {number} is empty")
    encoded = token_ids(lm.tokenizer, texts)
    for number, ids in enumerate(encoded):
        if max(ids, default=0) >= lm.n_embedded:
            token = lm.tokenizer.convert_ids_to_tokens(max(ids))
            raise ValueError(
                f'text {number} holds the token "{token}", of which the model has no embedding'
            )
    return encoded


def refuse_longer(lm: CausalLM, n_tokens: int, what: str) -> None:
    """ValueError if ``n_tokens`` exceed what the model reads at once; ``what`` names the text."""
    if lm.context_length and n_tokens > lm.context_length:
        raise ValueError(f"{what} has {n_tokens} tokens, the model reads {lm.context_length}")


def budget(lm: LanguageModel, max_batch_tokens: int | None) -> int:
    """Most padded tokens of one forward pass: as given, else what suits the model's device."""
    return max_batch_tokens or BATCH_TOKENS.get(lm.device.type, BATCH_TOKENS["cpu"])


def pad(lm: LanguageModel, rows: Sequence[Sequence[int]], side: str = "right") -> torch.Tensor:
    """Rows of token ids as one tensor on the model's device, shape (n_rows, longest row).

    Padding follows the tokens, or precedes them with ``side`` "left". ValueError without any row.
    """
    length = max(len(row) for row in rows)
    padded = np.full((len(rows), length), lm.padding_id, dtype=np.int64)
    for place, row in enumerate(rows):
        padded[place, slice(len(row)) if side == "right" else slice(length - len(row), None)] = row
    return torch.from_numpy(padded).to(lm.device)


def windows(
    begin: list[int], token_ids: list[int], capacity: int | None, stride: int | None
) -> Iterator[Row]:
    """Rows that score every token of a text once, each given as much context as fits."""
    n_scored = 0 if begin else 1
    start, end = 0, min(len(token_ids), capacity or len(token_ids))
    while True:
        inputs = begin + token_ids[start:end]
        first = len(begin) + n_scored - start
        yield Row(
            tuple(inputs[:-1]), tuple(range(first - 1, len(inputs) - 1)), tuple(inputs[first:])
        )
        if end == len(token_ids):
            return
        assert stride and capacity  # where there is no limit all was scored
        n_scored = end
        end = min(len(token_ids), start + stride + capacity)
        start = end - capacity


def score_rows(
    lm: CausalLM,
    rows: Sequence[Row],
    settings: dict[str, Any],
    with_moments: bool,
    max_batch_tokens: int | None,
    cache: bool,
) -> dict[Row, dict[str, np.ndarray]]:
    """Scores of each distinct row, every array of shape (n_targets,)."""
    store = BatchCache("scores", lm.identity, settings) if cache else None
    names = ["token_log_probs"] + ["vocabulary_mean", "vocabulary_std"] * with_moments
    # Sorted by content too: the order of the texts does not change a batch.
    unique = sorted(set(rows), key=lambda row: (-len(row.input_ids), row))
    lengths = [len(row.input_ids) for row in unique]
    batches = [
        [unique[number] for number in numbers]
        for numbers in batches_of(lengths, budget(lm, max_batch_tokens))
    ]
    jobs = [Job(batch, (batch, with_moments)) for batch in batches]
    scored = {}
    for number, arrays in run_batches(lm, _score_batch, jobs, names, store):
        batch = batches[number]
        ends = np.cumsum([len(row.targets) for row in batch])[:-1]
        parts = [np.split(arrays[name], ends) for name in names]
        for row, *values in zip(batch, *parts, strict=True):
            scored[row] = dict(zip(names, values, strict=True))
    return scored


@torch.inference_mode()
def _score_batch(lm: CausalLM, batch: Sequence[Row], with_moments: bool) -> dict[str, np.ndarray]:
    input_ids = pad(lm, [row.input_ids for row in batch])
    states = lm.states(input_ids)
    width = input_ids.shape[1]
    wanted = np.concatenate([n * width + np.array(row.positions) for n, row in enumerate(batch)])
    states = states.flatten(0, 1)[torch.from_numpy(wanted).to(states.device)]
    targets = torch.from_numpy(np.concatenate([np.array(row.targets) for row in batch]))
    n_logits = LOGITS_PER_CHUNK.get(lm.device.type, LOGITS_PER_CHUNK["cpu"])
    n_chunk = max(LEAST_PER_CHUNK, n_logits // lm.model.get_output_embeddings().weight.shape[0])
    names = ["token_log_probs"] + ["vocabulary_mean", "vocabulary_std"] * with_moments
    parts_of: dict[str, list[torch.Tensor]] = {name: [] for name in names}
    for state, target in zip(states.split(n_chunk), targets.split(n_chunk), strict=True):
        log_probs = lm.logits(state).float().log_softmax(dim=-1)
        target = target.to(log_probs.device)[:, None]
        parts_of["token_log_probs"].append(log_probs.gather(1, target)[:, 0])
        if with_moments:
            probs = log_probs.exp()
            mean = torch.linalg.vecdot(probs, log_probs)
            variance = torch.linalg.vecdot(probs, (log_probs - mean[:, None]).square_())
            parts_of["vocabulary_mean"].append(mean)
            parts_of["vocabulary_std"].append(variance.sqrt())
    arrays = {name: torch.cat(parts).cpu().numpy() for name, parts in parts_of.items()}
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise ValueError(
                f"the model gave {int((~np.isfinite(values)).sum())} undefined values as {name}: "
                'load it with dtype="float32"'
            )
    return arrays
