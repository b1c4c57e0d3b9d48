"""Overhead of the Ray engine at one worker, beside the same scoring in this process.

Both score the same texts with the same model on an empty cache and one thread,
and take turns; the ratio is the median over rounds of the ratio within a round,
so that a busy machine slows both alike. Starting Ray and loading the model are
paid once and are not in it. The models are randomly initialised. Without a GPU
the 5,000 texts of the large model are short, and they are scored once each.

    python benchmarks/bench_engine.py
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median

import ray
import torch
from bench_scoring import docstrings, passages, random_model, train_tokenizer
from transformers import PreTrainedTokenizerFast

from contamination.core.storage import CACHE_VARIABLE
from contamination.models.causal import CausalLM, load_causal_lm, token_log_probs
from contamination.models.engine import load

LIMIT = 1.1
SHORT = 8  # words


def seconds(lm: CausalLM, texts: list[str]) -> float:
    """Time of one scoring on an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE_VARIABLE] = folder
        start = time.perf_counter()
        token_log_probs(lm, texts)
        return time.perf_counter() - start


def measure(
    size: str, texts: list[str], n_rounds: int, tokenizer: PreTrainedTokenizerFast, device: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        random_model(size, "float32", "cpu", tokenizer).model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        lms = {
            "in-process": load_causal_lm(folder, device=device),
            "ray, one worker": load(folder, device=device, engine="ray"),
        }
    times: dict[str, list[float]] = {name: [] for name in lms}
    order = list(lms)
    for lm in lms.values():  # warms up
        seconds(lm, texts[:8])
    for _ in range(n_rounds):
        for name in order:
            times[name].append(seconds(lms[name], texts))
        order.reverse()
    here, there = times.values()
    ratio = median(other / one for one, other in zip(here, there, strict=True))
    n_tokens = sum(map(len, tokenizer(texts).input_ids))
    print(f"{size} parameters, {len(texts):,} texts of {n_tokens:,} tokens, {n_rounds} rounds")
    for name, taken in times.items():
        print(f"  {name:<16} {median(taken):8.2f} s   {n_tokens / median(taken):8,.0f} tokens/s")
    print(f"  ratio            {ratio:8.3f}     (limit {LIMIT})")


def main() -> None:
    # A worker has as many threads as this process.
    torch.set_num_threads(1)
    has_gpu = torch.cuda.is_available()
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    prose = docstrings()
    tokenizer = train_tokenizer(prose)
    settings = [("90 M", 5_000, 3, None)]
    if not has_gpu:
        settings = [("1.4 M", 1_000, 3, None), ("90 M", 5_000, 1, SHORT)]
    for size, n_texts, n_rounds, n_words in settings:
        words = [text.split()[:n_words] for text in passages(prose, n_texts)]
        texts = [f"{number} {' '.join(text)}" for number, text in enumerate(words)]
        measure(size, texts, n_rounds, tokenizer, "cuda" if has_gpu else "cpu")


if __name__ == "__main__":
    main()
