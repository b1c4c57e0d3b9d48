"""The trace of copies under several models of a seed, which two studies ask about.

``study.scale`` and ``study.company`` train models, ask the same detectors, and measure d'.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.scores import MIN_K
from contamination.lab import training, world
from contamination.lab.training import Recipe, TrainingTexts
from contamination.study import baselines, placement, pretraining, row_pools, store
from contamination.study.crossed import CrossedScores, LeftOut, interval_left_out, mean_auc_left_out
from contamination.study.detection import joint_p_values
from contamination.study.protocol import N_REDEALS

CONTROLS = baselines.CONTROLS[:2]  # noise and length
ASKED = (*baselines.OF_TOKENS, *CONTROLS)
SHOWN = (MIN_K, baselines.PPL.name, *(control.name for control in CONTROLS))


def write_models(
    folder: Path,
    name: str,
    about: Mapping[str, Any],
    base_seed: int,
    recipes: Iterable[tuple[str, Recipe, TrainingTexts]],
    pools_: Sequence[Any],
) -> None:
    """Train models, each with its name, ask ``ASKED`` about all rows of pools, write a part."""
    start, tables, models = time.perf_counter(), [], {}
    for model, recipe, texts in recipes:
        trained = training.train(recipe, texts)
        scored, _ = pretraining.score_model(trained, model, dict.fromkeys(pools_, ASKED))
        tables.append(scored.drop(columns="pool"))
        known = world.describe(trained)
        models[model] = {key: known[key] for key in ("recipe_hash", "n_parameters", "n_tokens")}
        models[model]["last_loss"] = round(float(training.losses_of(trained)[-50:].mean()), 4)
    made_by: dict[str, Any] = {
        "base_seed": base_seed,
        "world": store.world_of(row_pools.the_lab()),
        "models": models,
    }
    made_by |= {"environment": store.environment()}
    made_by |= {"seconds_in_all": round(time.perf_counter() - start, 1)}
    scores = pd.concat(tables, ignore_index=True).astype(placement.SHALLOW)
    store.write_tables(folder, name, {"scores": scores}, {**made_by, **about})


def without_gap(planned: Sequence[int], there: Collection[int]) -> list[int]:
    """The first seeds of a plan, up to the first that is missing.

    >>> without_gap([700, 701, 702], {700, 702})
    [700]
    """
    return list(takewhile(there.__contains__, planned))


def trace(pools_: list[CrossedScores], copies: int) -> LeftOut:
    """d' = sqrt(2) times the normal quantile of the AUC, which is a mean over benchmarks.

    It is the distance between seen and held-out rows in standard deviations, if both are normal
    with one variance.
    """
    aucs = mean_auc_left_out(pools_, copies)
    return LeftOut(*(np.sqrt(2) * stats.norm.ppf(part) for part in aucs))


def traces_of(of: Mapping[str, list[CrossedScores]], copies: int) -> Iterator[dict[str, Any]]:
    """Of each detector the AUC of rows with so many copies, its exact p, and d', as a row."""
    named = {name: {pool.name: pool for pool in pools_} for name, pools_ in of.items()}
    p_values = joint_p_values(named, copies, N_REDEALS)
    for detector, pools_ in of.items():
        auc = interval_left_out(mean_auc_left_out(pools_, copies))
        d_prime = interval_left_out(trace(pools_, copies), (-np.inf, np.inf))
        row = {"detector": detector, "n_models": len(pools_[0].scores), "auc": auc.value}
        row |= {"ci_low": auc.low, "ci_high": auc.high, "p": p_values[detector]}
        row |= {"d_prime": d_prime.value, "d_prime_low": d_prime.low}
        yield row | {"d_prime_high": d_prime.high}
