"""Speed of token log-probabilities, beside a bare forward pass and a plain loop.

One run, one table. The contenders take turns in rotating order, and a ratio is
the median over rounds of the ratio within a round, so that a busy machine slows
all of them alike. Tokens are those of the texts; padding is not counted.

* scorer: ``token_log_probs`` on an empty cache: tokenization, batching, the
  forward pass, log-softmax in fp32, and every batch written to disk.
* scorer, Min-K%++: the same with mean and spread over the vocabulary.
* bare forward pass: ``model(input_ids)`` over the scorer's own padded batches,
  tokenized beforehand; backbone and output head, no log-softmax, nothing read
  back or written.
* one text at a time: tokenize, ``model(input_ids)``, log-softmax, gather.

The models are randomly initialised; speed does not depend on the weights.

    python scripts/bench_scoring.py
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from statistics import median
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from contamination.core.storage import CACHE_VARIABLE
from contamination.models.local import (
    CausalLM,
    batches_of,
    budget,
    encode,
    pad,
    token_log_probs,
)

VOCABULARY = 4096
MAX_SECONDS, LEAST_ROUNDS = 60, 3  # for one model
WORDS = (32, 64, 128, 256)  # lengths of passages, as in WikiMIA
SHAPES = {  # layers, width, heads, inner width, vocabulary
    "1.4 M": (4, 128, 4, 384, VOCABULARY),
    "90 M": (12, 768, 12, 2048, VOCABULARY),
    "1.4 B": (24, 2048, 16, 6144, 50_304),
}


def docstrings() -> list[str]:
    """English text that the environment brings along."""
    names = ("numpy", "scipy.stats", "scipy.signal", "pandas", "sklearn.metrics")
    found = {
        getattr(member, "__doc__", None)
        for module in map(import_module, names)
        for member in vars(module).values()
    }
    return sorted(text for text in found if isinstance(text, str) and len(text.split()) >= 256)


def passages(texts: Sequence[str], n_passages: int) -> list[str]:
    lengths = [WORDS[number % len(WORDS)] for number in range(n_passages)]
    return [
        " ".join(texts[number % len(texts)].split()[:length])
        for number, length in enumerate(lengths)
    ]


def train_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = {"bos_token": "<bos>", "eos_token": "<eos>"}
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=list(special.values()), show_progress=False
    )
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, **special)


def random_model(
    size: str, dtype: str, device: str, tokenizer: PreTrainedTokenizerFast
) -> CausalLM:
    layers, width, heads, inner, vocabulary = SHAPES[size]
    config = LlamaConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=inner,
        vocab_size=vocabulary,
        max_position_embeddings=1024,
    )
    torch.manual_seed(0)
    with torch.device(device):
        model = LlamaForCausalLM(config).to(getattr(torch, dtype)).eval()
    return CausalLM(model, tokenizer, {"model": f"random {size}", "dtype": dtype})


def seconds(contender: Callable[[], None], device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    contender()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def ratio(times: Sequence[float], others: Sequence[float]) -> float:
    return median(one / other for one, other in zip(times, others, strict=True))


def measure(lm: CausalLM, texts: Sequence[str], n_repeats: int) -> list[dict]:
    device = lm.model.device.type
    # The scorer never reads a text's last token, so neither does the bare pass.
    encoded = [token_ids[:-1] for token_ids in encode(lm, texts)]
    lengths = [len(token_ids) for token_ids in encoded]
    batches = [
        pad(lm, [encoded[item] for item in batch])
        for batch in batches_of(lengths, budget(lm, None))
    ]

    def scorer(with_moments: bool = False) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            patch.dict(os.environ, {CACHE_VARIABLE: folder}),
        ):
            token_log_probs(lm, texts, score_first_token=False, with_moments=with_moments)

    @torch.inference_mode()
    def bare() -> None:
        for batch in batches:
            lm.model(input_ids=batch, attention_mask=torch.ones_like(batch), use_cache=False)

    @torch.inference_mode()
    def loop() -> None:
        for text in texts:
            input_ids = torch.tensor([lm.tokenizer(text).input_ids], device=device)
            log_probs = (
                lm.model(input_ids=input_ids, use_cache=False).logits.float().log_softmax(-1)
            )
            log_probs[0, :-1].gather(1, input_ids[0, 1:, None]).cpu()

    contenders = {
        "scorer": scorer,
        "scorer, Min-K%++": lambda: scorer(with_moments=True),
        "bare forward pass": bare,
        "one text at a time": loop,
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    start = time.perf_counter()
    for repeat in range(n_repeats + 1):
        for name in order:
            taken = seconds(contenders[name], device)
            if repeat:  # the first round warms up
                times[name].append(taken)
        order.append(order.pop(0))
        if repeat >= LEAST_ROUNDS and time.perf_counter() - start > MAX_SECONDS:
            break
    return [
        {
            "model": lm.identity["model"],
            "dtype": lm.identity["dtype"],
            "device": device,
            "contender": name,
            "tokens_per_s": round(sum(lengths) / median(taken)),
            "of_bare_pass": ratio(times["bare forward pass"], taken),
            "of_loop": ratio(times["one text at a time"], taken),
            "rounds": len(taken),
            "padding_share": 1 - sum(lengths) / sum(batch.numel() for batch in batches),
        }
        for name, taken in times.items()
    ]


def main() -> None:
    texts = docstrings()
    tokenizer = train_tokenizer(texts)
    settings = [("1.4 M", "float32", "cpu", 64, 12), ("90 M", "float32", "cpu", 4, 8)]
    if torch.cuda.is_available():
        settings = [
            ("1.4 M", "float32", "cuda", 2048, 7),
            ("90 M", "float32", "cuda", 1024, 5),
            ("1.4 B", "float32", "cuda", 512, 3),
            ("1.4 B", "bfloat16", "cuda", 1024, 3),
        ]
    rows = []
    for size, dtype, device, n_passages, n_repeats in settings:
        lm = random_model(size, dtype, device, tokenizer)
        rows += measure(lm, passages(texts, n_passages), n_repeats)
    print(f"{len(texts)} docstrings, {torch.get_num_threads()} threads, numpy {np.__version__}")
    print(pd.DataFrame(rows).to_string(index=False, float_format="%.2f"))


if __name__ == "__main__":
    main()
