"""The pretraining study of ``docs/protocol_2.md``: base models that saw rows, and detectors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.lab import training, world
from contamination.models.local import load_causal_lm, token_ids
from contamination.study import (
    baselines,
    context,
    four_methods,
    number_twins,
    row_pools,
    sampling,
    store,
)
from contamination.study.interface import WORD_PROBLEMS, Detector, row_scores
from contamination.study.row_pools import (
    INDIRECT_ON,
    LATER_TOKENS,
    ROWS,
    Pool,
    base_model,
    later_model,
)

NAME = "pretraining"  # of the parts of the ledger
LARGER = "larger"  # the same with models of 29 M parameters, of ``docs/protocol_larger.md``
PRETRAINED = "pretrained"
COLUMNS = ["detector", "model", "benchmark", "pool", "row", "score"]
WORDS = COLUMNS[:4]
# How a part of the ledger stores its scores.
SMALL = {"score": "float32", "row": "int16"} | dict.fromkeys(WORDS, "category")
REFERENCE_SEED = 0  # of the base model that no row of the pools was shown
N_REFERENCE_TOKENS = 1_000_000


def later_name(n_tokens: int) -> str:
    """What a base model is called that went on for so many clean tokens."""
    return f"then {n_tokens:,} clean tokens"


def token_detectors(lab: world.World) -> tuple[Detector, ...]:
    """Detectors of one forward pass a row, which are asked after later training too."""
    ids = token_ids(lab.tokenizer, lab.background)
    frequency = baselines.log_frequencies(ids, len(lab.tokenizer))
    return (
        *baselines.OF_TOKENS,
        baselines.dc_pdd(frequency),
        baselines.dc_pdd(frequency, bound=np.inf),
    )


def detectors_of(
    lab: world.World, benchmark: str, kind: str, of_tokens: Sequence[Detector]
) -> tuple[Detector, ...]:
    """All detectors that are asked about rows of a benchmark, the controls last.

    ``kind`` is that of a pool, ``ROWS`` or ``INDIRECT``; ``of_tokens`` (``token_detectors``) are
    the first.
    """
    asked = [*of_tokens, four_methods.RANKING, context.CODEC]
    asked += [four_methods.DCQ, four_methods.REPLICATION]
    if benchmark == INDIRECT_ON:
        asked += [context.RECALL, sampling.CDD, sampling.COVERAGE]
    if benchmark == WORD_PROBLEMS and kind == ROWS:
        reference = world.base_model(lab, N_REFERENCE_TOKENS, REFERENCE_SEED)
        lm = load_causal_lm(reference)
        asked += [number_twins.number_twins(lm, form) for form in number_twins.FORMS]
    return (*asked, *baselines.CONTROLS)


def larger_detectors_of(benchmark: str, of_tokens: Sequence[Detector]) -> tuple[Detector, ...]:
    """Those that are asked of larger models: none writes text or needs a model of its own."""
    asked = [*of_tokens, four_methods.RANKING, context.CODEC, four_methods.DCQ]
    if benchmark == INDIRECT_ON:
        asked.append(context.RECALL)
    return (*asked, *baselines.CONTROLS)


def score_model(
    folder: Path, model: str, detectors: Mapping[Pool, Sequence[Detector]]
) -> tuple[pd.DataFrame, list[dict]]:
    """``COLUMNS`` of every row of some pools under one model, and the seconds of each detector.

    ValueError for a score that is undefined.
    """
    lm, tables, seconds = load_causal_lm(folder), [], []
    for pool, asked in detectors.items():
        for detector in asked:
            start = time.perf_counter()
            values = row_scores(detector, lm, pool.rows)
            about = {"detector": detector.name, "model": model}
            about |= {"benchmark": pool.benchmark, "pool": pool.kind}
            table = pd.DataFrame({"row": np.arange(len(values)), "score": values})
            tables.append(table.assign(**about)[COLUMNS])
            seconds.append({"detector": detector.name, "seconds": time.perf_counter() - start})
    return pd.concat(tables, ignore_index=True), seconds


def score_base(
    lab: world.World, base_seed: int, is_larger: bool = False
) -> tuple[pd.DataFrame, np.ndarray, dict[str, Any]]:
    """One part of the ledger: a base model and its two continuations, trained and scored.

    For a larger model no continuation is made; it is asked by ``larger_detectors_of`` about the
    pools of verbatim rows.

    Returns:
        ``COLUMNS``; the base model's loss at every step of its training; and what made them:
        base_seed, recipe hashes and tokens of the models, the environment, seconds in all, by
        detector and of the training.
    """
    start = time.perf_counter()
    folders = {PRETRAINED: base_model(lab, base_seed, is_larger)}
    trained = time.perf_counter() - start
    for n_tokens in () if is_larger else LATER_TOKENS:
        later = later_model(lab, folders[PRETRAINED], base_seed, n_tokens)
        folders[later_name(n_tokens)] = later
    of_tokens = token_detectors(lab)
    of_rows = [pool for pool in row_pools.pools() if pool.kind == ROWS]
    if is_larger:
        every = {pool: larger_detectors_of(pool.benchmark, of_tokens) for pool in of_rows}
    else:
        every = {
            pool: detectors_of(lab, pool.benchmark, pool.kind, of_tokens)
            for pool in row_pools.pools()
        }
    few = dict.fromkeys(of_rows, of_tokens)
    tables, seconds = [], []
    for model, folder in folders.items():
        asked = every if model == PRETRAINED else few
        table, spent = score_model(folder, model, asked)
        tables.append(table)
        seconds += spent
    about = {
        "base_seed": base_seed,
        "world": store.world_of(lab),
        "models": {
            model: {name: world.describe(folder)[name] for name in ("recipe_hash", "n_tokens")}
            for model, folder in folders.items()
        },
        "environment": store.environment(),
        "seconds_in_all": round(time.perf_counter() - start, 1),
        "seconds": {"training": round(trained, 1), **store.seconds_by_detector(seconds)},
    }
    losses = training.losses_of(folders[PRETRAINED])
    return pd.concat(tables, ignore_index=True), losses, about


def write_part(
    folder: Path,
    name: str,
    about: Mapping[str, Any],
    base_seed: int,
    is_larger: bool = False,
) -> None:
    """``score_base`` as files of the ledger, ``about`` joined; scores in single precision."""
    scores, losses, made_by = score_base(row_pools.the_lab(), base_seed, is_larger)
    of_steps = pd.DataFrame({"step": np.arange(len(losses), dtype="int16")})
    of_steps["loss"] = losses.astype("float32")
    tables = {"scores": scores.astype(SMALL), "losses": of_steps}
    store.write_tables(folder, name, tables, {**made_by, **about})


write_larger_part = partial(write_part, is_larger=True)


def read_parts(
    name: str = NAME, folder: Path | None = None
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """All parts of a study of base models: scores with a column base_seed, and what made each."""
    return store.read_all(name, "scores", folder)


def read_losses(name: str = NAME) -> dict[int, np.ndarray]:
    """Loss of every step of a base model's training, nats per token, by base seed."""
    parts = (store.read_tables(part_name) for part_name in store.names(name))
    return {about["base_seed"]: part["losses"]["loss"].to_numpy() for part, about in parts}
