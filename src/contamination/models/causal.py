"""What a local causal language model says about texts.

Token log-probabilities, scores of answer options, completions and hidden
states, for many texts at a time. Every function composes its batches from the
whole request, so that results depend on the request alone: not on what was
cached, nor on where an earlier run was stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from contamination.core import storage
from contamination.models.batch_cache import BatchCache, Job, batches_of, run_batches
from contamination.models.forward import (
    Row,
    budget,
    encode,
    pad,
    refuse_longer,
    score_rows,
    windows,
)
from contamination.models.hidden import BEFORE_FINAL_NORM, hidden_states, layer_batches  # noqa: F401
from contamination.models.loading import CausalLM, load_causal_lm, load_masked_lm  # noqa: F401

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
    if too_long not in ("window", "refuse"):
        raise ValueError(f'too_long must be "window" or "refuse", got "{too_long}"')
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

    Args:
        options: for each prompt, with a leading space where the language wants one.
        per_token: mean over the option's tokens instead of their sum.

    Returns:
        For each prompt natural-log probabilities, shape (n_options,).

    Raises:
        ValueError: if an option is empty, or does not fit into the context with its prompt.
    """
    if len(prompts) != len(options):
        raise ValueError(f"{len(prompts)} prompts but options for {len(options)}")
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
    if max_new_tokens < 1 or temperature < 0 or top_k < 0:
        raise ValueError(
            "max_new_tokens must be at least 1, temperature and top_k must be at least 0"
        )
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
    jobs = []
    for batch_number, batch in enumerate(batches):
        inputs = [encoded[item] for item in batch]
        name = [inputs, batch_number if sampling else 0]
        batch_seed = int(storage.hash_of([seed, name])[:15], 16)
        jobs.append(Job(name, (inputs, max_new_tokens, temperature, batch_seed, top_k)))
    for number, arrays in run_batches(lm, _generate, jobs, ["token_ids"], store):
        for item, row in zip(batches[number], arrays["token_ids"].tolist(), strict=True):
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
