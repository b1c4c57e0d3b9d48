"""Overhead of the Ray engine at one worker, beside the same scoring in this process.

Both score the same texts with the same model on an empty cache and one thread,
and take turns; the ratio is the median over rounds of the ratio within a round,
so that a busy machine slows both alike. Starting Ray and loading the model are
timed apart: they are paid once. The model is randomly initialised.

    python benchmarks/bench_engine.py [n_texts] [size] [n_rounds]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from bench_scoring import docstrings, passages, random_model, train_tokenizer

from contamination.models.causal import CausalLM, load_causal_lm, token_log_probs
from contamination.storage import CACHE_VARIABLE

LIMIT = 1.1


def seconds(lm: CausalLM, texts: list[str]) -> tuple[float, int]:
    """Time of one scoring on an empty cache, and the tokens scored."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE_VARIABLE] = folder
        start = time.perf_counter()
        scored = token_log_probs(lm, texts)
        return time.perf_counter() - start, sum(one.token_log_probs.size for one in scored)


def main(n_texts: int = 5_000, size: str = "90 M", n_rounds: int = 3) -> None:
    # A worker has as many threads as this process: one, on a machine that others use too.
    torch.set_num_threads(1)
    found = docstrings()
    tokenizer = train_tokenizer(found)
    texts = [f"{number} {text}" for number, text in enumerate(passages(found, n_texts))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        random_model(size, "float32", "cpu", tokenizer).model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        start = time.perf_counter()
        lms = {"in-process": load_causal_lm(folder, device="cpu")}
        loaded = time.perf_counter()
        lms["ray, one worker"] = load_causal_lm(folder, device="cpu", engine="ray")
        started = time.perf_counter()
        lms["ray, one worker"].workers.keep(1)
        times: dict[str, list[float]] = {name: [] for name in lms}
        order = list(lms)
        for lm in lms.values():  # warms up
            seconds(lm, texts[:8])
        for _ in range(n_rounds):
            for name in order:
                taken, n_tokens = seconds(lms[name], texts)
                times[name].append(taken)
            order.reverse()
    print(f"{n_texts:,} texts of {n_tokens:,} tokens, {size} parameters, 1 thread, {n_rounds} rounds")
    print(f"  loading the model here {loaded - start:6.1f} s, Ray and its worker "
          f"{started - loaded:6.1f} s, once")
    for name, taken in times.items():
        print(f"  {name:<16} {median(taken):8.2f} s   {n_tokens / median(taken):8,.0f} tokens/s")
    here, there = times.values()
    ratio = median(other / one for one, other in zip(here, there, strict=True))
    print(f"  ratio            {ratio:8.3f}     (limit {LIMIT})")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(*[int(value) if value.isdigit() else value for value in given])
