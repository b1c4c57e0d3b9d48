"""What a local causal language model says of texts: log-probabilities, hidden states, answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.numpy import load_file
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from contamination.core import storage
from contamination.models.loading import CausalLM, LanguageModel, load_causal_lm, load_masked_lm  # noqa: F401


def token_ids(tokenizer: PreTrainedTokenizerBase, texts: Iterable[str]) -> list[list[int]]:
    """Token ids of each text, without special tokens; an empty list for no text."""
    texts = list(texts)
    if not texts:  # a tokenizer raises IndexError
        return []
    return tokenizer(texts, add_special_tokens=False, verbose=False).input_ids


def n_tokens(
    tokenizer: PreTrainedTokenizerBase, texts: Iterable[str], n_special: int = 0
) -> np.ndarray:
    """Number of tokens of each text, shape (n_texts,), with ``n_special`` more for its ends."""
    return np.array([len(ids) for ids in token_ids(tokenizer, texts)], dtype=int) + n_special


FORMAT = 2  # raise it when a change of code changes a number
SHOWN_AFTER = 2  # seconds, from which on a bar says how far the batches are


def batches_of(lengths: Sequence[int], max_batch_tokens: int) -> list[list[int]]:
    """Numbers of the items of each batch, such that a batch holds little padding.

    Longest items first, so that a batch that does not fit into memory is met at once. Rows
    times longest row is at most ``max_batch_tokens``, unless an item alone is longer; a row is
    padded by at most a third of its length, or by 16 tokens where that is more.

    >>> batches_of([4, 1, 5, 4], max_batch_tokens=10)
    [[2, 0], [3, 1]]
    """
    batches: list[list[int]] = []
    longest = 0
    for item in sorted(range(len(lengths)), key=lambda item: -lengths[item]):
        fits = batches and (len(batches[-1]) + 1) * longest <= max_batch_tokens
        if fits and longest - lengths[item] <= max(16, lengths[item] // 3):
            batches[-1].append(item)
        else:
            longest = lengths[item]
            batches.append([item])
    return batches


class BatchCache:
    """Arrays of one kind of computation by one model under one set of settings."""

    def __init__(self, name: str, identity: Mapping[str, str], settings: Mapping[str, Any]) -> None:
        key = {"identity": dict(identity), "settings": dict(settings), "format": FORMAT}
        self.folder = storage.cache_folder(name, storage.hash_of(key)[:32])
        self.name = name
        if not (self.folder / "key.json").exists():
            storage.write_json(self.folder / "key.json", key)

    def arrays(
        self,
        batch: Sequence[Any],
        compute: Callable[[], Mapping[str, np.ndarray]],
        names: Sequence[str],
    ) -> Mapping[str, np.ndarray]:
        """The named arrays of a batch (JSON values): read, or computed and written."""
        path = self.folder / f"{storage.hash_of(batch)}.safetensors"
        stored = load_file(path) if storage.is_whole(path) else {}
        is_hit = all(name in stored for name in names)
        if not is_hit:
            stored = compute()
            storage.seal(storage.write_safetensors(path, stored))
        storage.record("cache", name=self.name, hits=int(is_hit), misses=int(not is_hit))
        return {name: stored[name] for name in names}


def watched(lm: LanguageModel, batches: Iterable[Any]) -> Iterable[Any]:
    """The batches; who watches the run sees a bar with the time left."""
    shown = {"delay": SHOWN_AFTER, "leave": False, "unit": " batches"}
    return tqdm(batches, lm.identity["model"], disable=not storage.is_watched(), **shown)


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

    ValueError for an empty text unless ``allow_empty``, and for a token that the model cannot
    embed.
    """
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
    scored = {}
    for batch in watched(lm, batches):
        compute = partial(_score_batch, lm, batch, with_moments)
        arrays = store.arrays(batch, compute, names) if store else compute()
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


BEFORE_FINAL_NORM = -1  # a layer: the output of the highest block, before the final norm


def hidden_states(
    lm: CausalLM, texts: Sequence[str], layers: Sequence[int], max_batch_tokens: int | None = None
) -> np.ndarray:
    """Hidden states at the last token of each text, fp32, shape (n_items, n_layers, d_model).

    Layer 0 is the embedding, i the output of block i. As in transformers, the highest one lies
    behind the final norm, which changes its scale; ``BEFORE_FINAL_NORM`` is the same block's own
    output. ValueError if a layer does not exist, and as :func:`layer_batches`.
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

    Yields numbers of the texts; their lengths in tokens, with the beginning-of-sequence token
    where the model was loaded so; states of shape (n_rows, n_tokens, d_model): the embedding, each
    block's output, and last the highest block's behind the final norm, n_blocks + 2 in all.
    ValueError if a text is empty or longer than the context.
    """
    encoded = [lm.begin + token_ids for token_ids in encode(lm, texts)]
    for number, token_ids in enumerate(encoded):
        refuse_longer(lm, len(token_ids), f"text {number}")
    # All layers of a batch are alive at once, so a batch is smaller here.
    max_batch_tokens = max_batch_tokens or budget(lm, None) // 4
    batches = batches_of([len(token_ids) for token_ids in encoded], max_batch_tokens)
    for batch in watched(lm, batches):
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


STREAM_TEXTS = 4096  # texts of one request of a stream


@dataclass(frozen=True)
class TokenScores:
    """What the model says about the tokens of one text.

    Arrays have shape (n_scored,): the scored tokens; the natural-log probability of each
    given those before it, fp32; mean and standard deviation of the log-probability under the
    model's own distribution at that position, or None. ``n_tokens`` of the text is n_scored,
    or one more where the first token has no context. ``n_windows`` is 1 unless the text is
    longer than the context.
    """

    token_ids: np.ndarray
    token_log_probs: np.ndarray
    n_tokens: int
    n_windows: int
    vocabulary_mean: np.ndarray | None = None
    vocabulary_std: np.ndarray | None = None


def scores_first_token(lm: CausalLM, score_first_token: bool | None = None) -> bool:
    """Whether the first token of a text is scored, which takes a token before it.

    True puts the beginning-of-sequence token in front (ValueError where the tokenizer has
    none), False does not. None does as the model was loaded, by default as its checkpoint
    declares, which is the rule of the code of Shi et al. (scored by LLaMA and OPT, not by
    GPT-NeoX and Pythia).
    """
    if score_first_token and lm.tokenizer.bos_token_id is None:
        raise ValueError(
            "the tokenizer has no beginning-of-sequence token to score the first token from: "
            "pass score_first_token=False"
        )
    return bool(lm.begin) if score_first_token is None else score_first_token


def token_log_probs(
    lm: CausalLM,
    texts: Sequence[str],
    *,
    score_first_token: bool | None = None,
    too_long: str = "window",
    with_moments: bool = False,
    max_batch_tokens: int | None = None,
    cache: bool = True,
) -> list[TokenScores]:
    """Log-probability of every token of every text, a ``TokenScores`` each, in order.

    Args:
        score_first_token: see ``scores_first_token``.
        too_long: "window" scores a text longer than the context in windows, which move by half
            of it; the last one ends with the text. "refuse" raises.
        with_moments: also what Min-K%++ needs, the moments over the vocabulary.
        max_batch_tokens: padded tokens of one forward pass; it decides which texts share a
            batch and so enters the last bits of a score.
        cache: keep scores on disk; a second call then needs no forward pass.

    Raises:
        ValueError: if a text is empty, has no scored token, or is too long.
    """
    begin = [lm.tokenizer.bos_token_id] if scores_first_token(lm, score_first_token) else []
    capacity = lm.context_length - len(begin) if lm.context_length else None
    stride = capacity // 2 if capacity else None
    rows_of_text = []
    encoded = encode(lm, texts)
    for number, token_ids in enumerate(encoded):
        if len(begin) + len(token_ids) < 2:
            raise ValueError(
                f"text {number} has one token, which nothing precedes: give a longer text"
            )
        if too_long == "refuse":
            refuse_longer(lm, len(begin) + len(token_ids), f"text {number}")
        rows_of_text.append(list(windows(begin, token_ids, capacity, stride)))

    rows = [row for rows in rows_of_text for row in rows]
    settings = {"begin": begin, "capacity": capacity, "stride": stride}
    scored = score_rows(lm, rows, settings, with_moments, max_batch_tokens, cache)
    results = []
    for token_ids, rows in zip(encoded, rows_of_text, strict=True):
        columns = {
            name: np.concatenate([scored[row][name] for row in rows]) for name in scored[rows[0]]
        }
        targets = np.array([target for row in rows for target in row.targets])
        results.append(
            TokenScores(targets, n_tokens=len(token_ids), n_windows=len(rows), **columns)
        )
    return results


def option_log_probs(
    lm: CausalLM,
    prompts: Sequence[str],
    options: Sequence[Sequence[str]],
    *,
    per_token: bool = False,
    score_first_token: bool | None = None,
) -> list[np.ndarray]:
    """Log-probability of each answer option as the continuation of its prompt.

    Prompt and option are tokenized together; the tokens that the prompt alone would have are
    context, the others are scored. Options of one token share the forward pass of their
    prompt. ``score_first_token`` is here whether the prompt starts with the
    beginning-of-sequence token.

    ``options`` have a leading space where the language wants one. Natural-log probabilities for
    each prompt, shape (n_options,), summed over the option's tokens, or their mean with
    ``per_token``. ValueError if an option is empty, or does not fit into the context with its
    prompt.
    """
    begin = [lm.tokenizer.bos_token_id] if scores_first_token(lm, score_first_token) else []
    # Options with the same input (all those of one token) become one row.
    targets_of: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    places: list[list[tuple[tuple[int, ...], int, int]]] = []
    prompt_ids = encode(lm, prompts, allow_empty=True)
    for number, (prompt, choices) in enumerate(zip(prompts, options, strict=True)):
        if not choices or not all(choices):
            raise ValueError(f"prompt {number} has an empty option")
        places.append([])
        for whole in encode(lm, [prompt + choice for choice in choices]):
            context = _common_prefix(prompt_ids[number], whole)
            token_ids = tuple(begin + whole)
            first = len(begin) + min(context, len(whole) - 1)
            if first == 0:
                raise ValueError(f"prompt {number} gives its options no context: it is empty")
            refuse_longer(lm, len(token_ids) - 1, f"prompt {number} with an option")
            pairs = targets_of.setdefault(token_ids[:-1], [])
            places[-1].append((token_ids[:-1], len(pairs), len(token_ids) - first))
            pairs += [(place - 1, token_ids[place]) for place in range(first, len(token_ids))]
    rows = {
        inputs: Row(inputs, *(tuple(part) for part in zip(*pairs, strict=True)))
        for inputs, pairs in targets_of.items()
    }
    scored = score_rows(lm, list(rows.values()), {"begin": begin}, False, None, True)
    reduce = np.mean if per_token else np.sum
    return [
        np.array(
            [
                reduce(scored[rows[inputs]]["token_log_probs"][start : start + count])
                for inputs, start, count in of_prompt
            ]
        )
        for of_prompt in places
    ]


def as_chat(lm: CausalLM, texts: Sequence[str]) -> list[str]:
    """Each text as a user's message in the model's chat template, up to where an answer begins.

    The template puts its own beginning-of-sequence token where it wants one. ValueError if the
    tokenizer has no template.
    """
    if not lm.tokenizer.chat_template:
        raise ValueError(
            "the tokenizer has no chat template, so this is not an instruct model: ask it as a "
            'base model (respondent "base", prompt_form "continue")'
        )
    messages = [[{"role": "user", "content": text}] for text in texts]
    options = {"add_generation_prompt": True, "tokenize": False}
    return [lm.tokenizer.apply_chat_template(one, **options) for one in messages]


def complete(
    lm: CausalLM,
    prompts: Sequence[str],
    max_new_tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    seed: int = 0,
    max_batch_tokens: int | None = None,
    cache: bool = True,
) -> list[str]:
    """Continue each prompt, greedily or by sampling; the completions without their prompts.

    Prompts begin with the beginning-of-sequence token where the model was loaded so, once: a
    chat template may have put it already. A completion ends at the model's stop token, which
    is not part of it.

    Args:
        prompts: repeat a prompt for several samples of it.
        max_new_tokens: longest completion, in tokens.
        temperature: 0 takes the likeliest token each time; above 0 samples.
        top_k: number of likeliest tokens that are sampled from; 0 means all.
        seed: of the samples; each batch draws from its own stream.
        max_batch_tokens: padded tokens of a batch, prompt and completion.

    Raises:
        ValueError: if prompt and completion together exceed the context.
    """
    encoded = [
        token_ids if token_ids[:1] == lm.begin else lm.begin + token_ids
        for token_ids in encode(lm, prompts, allow_empty=bool(lm.begin))
    ]
    lengths = [len(token_ids) + max_new_tokens for token_ids in encoded]
    for number, length in enumerate(lengths):
        refuse_longer(lm, length, f"prompt {number} with its completion")
    sampling = {"temperature": temperature, "seed": seed} if temperature > 0 else {}
    if sampling and top_k:
        sampling["top_k"] = top_k
    settings = {"max_new_tokens": max_new_tokens, **sampling}
    store = BatchCache("completions", lm.identity, settings) if cache else None
    stop = lm.model.generation_config.eos_token_id
    stops = set(stop) if isinstance(stop, list) else {stop}
    completions = [""] * len(encoded)
    batches = batches_of(lengths, budget(lm, max_batch_tokens))
    for batch_number, batch in enumerate(watched(lm, batches)):
        inputs = [encoded[item] for item in batch]
        name = [inputs, batch_number if sampling else 0]
        batch_seed = int(storage.hash_of([seed, name])[:15], 16)
        compute = partial(_generate, lm, inputs, max_new_tokens, temperature, batch_seed, top_k)
        arrays = store.arrays(name, compute, ["token_ids"]) if store else compute()
        for item, row in zip(batch, arrays["token_ids"].tolist(), strict=True):
            end = next((place for place, token in enumerate(row) if token in stops), len(row))
            completions[item] = lm.tokenizer.decode(row[:end], skip_special_tokens=True)
    return completions


def _common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _generate(
    lm: CausalLM,
    inputs: Sequence[Sequence[int]],
    max_new_tokens: int,
    temperature: float,
    seed: int,
    top_k: int,
) -> dict[str, np.ndarray]:
    """New token ids, shape (n_rows, n_new); what follows a stop token is padding."""
    input_ids = pad(lm, inputs, side="left")
    lengths = torch.tensor([len(row) for row in inputs], device=lm.device)
    from_left = torch.arange(input_ids.shape[1], device=lm.device)
    mask = (from_left >= input_ids.shape[1] - lengths[:, None]).long()
    decoding = {"do_sample": False}
    if temperature > 0:
        decoding = {"do_sample": True, "temperature": temperature, "top_k": top_k, "top_p": 1.0}
    devices = [lm.device] if lm.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.inference_mode():
        torch.manual_seed(seed)
        output = lm.model.generate(
            input_ids,
            attention_mask=mask,
            max_new_tokens=max_new_tokens,
            pad_token_id=lm.padding_id,
            **decoding,
        )
    return {"token_ids": output[:, input_ids.shape[1] :].cpu().numpy()}
