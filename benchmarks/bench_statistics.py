"""Seconds of the statistics that every notebook leans on, median of five."""

from __future__ import annotations

import statistics as standard
import time
from collections.abc import Callable

import numpy as np

from contamination.core.statistics import auc_interval
from contamination.data import published
from contamination.replication.algorithms import (
    paired_bootstrap_p,
    unpaired_bootstrap_p,
)


def seconds(task: Callable[[], object], n_runs: int = 5) -> float:
    times = []
    for _ in range(n_runs):
        started = time.perf_counter()
        task()
        times.append(time.perf_counter() - started)
    return standard.median(times)


def main() -> None:
    instances = published.released_instances("Time Travel")
    cells = [
        (group[f"{metric}_guided"].to_numpy(), group[f"{metric}_general"].to_numpy())
        for _, group in instances.groupby(["model", "dataset", "split"])
        for metric in ("rouge", "bleurt")
    ]
    scores = np.random.default_rng(0).normal(size=1000)
    is_member = np.arange(1000) < 500
    tasks = {
        f"exact paired p, {len(cells)} cells": lambda: [paired_bootstrap_p(*c) for c in cells],
        f"exact unpaired p, {len(cells)} cells": lambda: [unpaired_bootstrap_p(*c) for c in cells],
        "10,000 resamples of an AUC of 1,000 scores": lambda: auc_interval(scores, is_member),
    }
    print(f"{'task':<46} seconds")
    for name, task in tasks.items():
        print(f"{name:<46} {seconds(task):.3f}")


if __name__ == "__main__":
    main()
