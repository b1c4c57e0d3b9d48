"""Training speed of the lab's 1.4 M-parameter model against a bare PyTorch loop.

Both train the same model on the same batches in the same run, in turns, so that
a busy machine slows both: ``python benchmarks/bench_training.py [n_rounds]``.
The bare loop is what a tutorial writes: forward with labels, backward, AdamW.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from statistics import median

import torch

from contamination.lab.passages import collect_docstrings, split_by_family
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import (
    Batch,
    Recipe,
    TrainingTexts,
    build_model,
    fit,
    recipe_for,
    training_stream,
)

STEPS_PER_TURN = 10


def bare_loop(model: torch.nn.Module, batches: list[Batch], recipe: Recipe) -> None:
    """Forward, backward, step: nothing else."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate)
    for batch in batches:
        inputs = torch.from_numpy(batch.input_ids).to(model.device)
        labels = torch.from_numpy(batch.labels).to(model.device)
        model(input_ids=inputs, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def seconds(loop: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    loop(*arguments)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main(n_rounds: int) -> None:
    passages = split_by_family(collect_docstrings(), seed=0)
    background = tuple(passages.loc[passages["role"] == "background", "text"])
    texts = TrainingTexts(background, (), train_tokenizer(background))
    recipe = recipe_for(
        texts, n_background_tokens=2_048 * STEPS_PER_TURN * (n_rounds + 1), long_share=0.0
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batches = training_stream(recipe, texts).batches
    loops = {"bare loop": bare_loop, "lab": fit}
    models = {name: build_model(recipe, texts.tokenizer).to(device) for name in loops}
    rates: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(n_rounds + 1):
        turn = batches[number * STEPS_PER_TURN : (number + 1) * STEPS_PER_TURN]
        n_tokens = sum(batch.input_ids.size for batch in turn)
        order = list(loops) if number % 2 else list(loops)[::-1]
        for name in order:
            rates[name].append(n_tokens / seconds(loops[name], models[name], turn, recipe))
    n_parameters = sum(weight.numel() for weight in models["lab"].parameters())
    print(
        f"{n_parameters:,} parameters, 8 x 256 tokens a step, {device},"
        f" {torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}"
    )
    # The first round warms up.
    ratios = [lab / bare for lab, bare in zip(rates["lab"], rates["bare loop"], strict=True)][1:]
    for name in loops:
        print(f"{name:<10}{median(rates[name][1:]):>10,.0f} tokens/s (median of {n_rounds})")
    print(f"ratio     {median(ratios):>10.2f} (median of the rounds' ratios)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
