"""A detector of the reader's own: what it must keep to, and its scores next to all others.

Notebook 11 meets it as a function. ``tests/study/test_your_detector.py`` and ``make ledger
DETECTOR=file.py`` meet it as a file.
"""

from __future__ import annotations

import importlib.util
import inspect
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.core.storage import hash_of
from contamination.lab import world
from contamination.models.loading import CausalLM
from contamination.study import pretraining, row_pools, scoring, spot_check, store
from contamination.study.crossed import auc_left_out, interval_left_out, mean_left_out
from contamination.study.interface import ACCESSES, Detector, Rows
from contamination.study.scores import EVERY, StudyScores, display_name

NAME = "added"  # of the parts of the ledger
MAX_SECONDS = 10  # for each hundred rows begun; the study has 36,000 rows to score
ROUNDING = 1e-6


def deal_seeds(function: Callable, n_deals: int) -> list[int]:
    """Seeds of deals, from a hash of the function's source.

    Nobody can fit a function to the rows that it will meet: after any change of it, others are
    dealt. ValueError where the source is not at hand.
    """
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise ValueError(
            "the function has no source: define it by def, in a cell or file"
        ) from error
    return [int(hash_of([source, place])[:7], 16) for place in range(n_deals)]


def load(path: Path) -> Detector:
    """``DETECTOR`` of a Python file; ValueError, one line, where it cannot join the others."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise ValueError(f"there is no Python file {path}: check the path")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} cannot be imported: {_line(error)}") from error
    detector = getattr(module, "DETECTOR", None)
    if not isinstance(detector, Detector):
        raise ValueError(f"{path} defines no DETECTOR: start from docs/detector_template.py")
    if detector.name in EVERY:
        raise ValueError(
            f'{path}: another detector is called "{detector.name}": choose another name'
        )
    if detector.access not in ACCESSES:
        raise ValueError(f"{path}: access must be one of {', '.join(ACCESSES)}")
    return detector


def checked(detector: Detector, lm: CausalLM, rows: Rows) -> np.ndarray:
    """Scores of the rows, shape (n_rows,), by a detector that keeps to the rules.

    ValueError, one line, for a function that raises, does not give one finite number a row, gives
    others when it is called again, changes the model, or takes over ``MAX_SECONDS``.
    """
    before = {name: weight.clone() for name, weight in lm.model.state_dict().items()}
    start = time.perf_counter()
    scores = _scores(detector, lm, rows)
    seconds = time.perf_counter() - start
    again = _scores(detector, lm, rows)
    after = lm.model.state_dict()
    if not all(weight.equal(after[name]) for name, weight in before.items()):
        raise ValueError(f"{detector.name} changes the model: work on a copy")
    if not np.allclose(scores, again, rtol=0, atol=ROUNDING):
        raise ValueError(f"{detector.name} gives other scores when it is called again: seed it")
    limit = MAX_SECONDS * -(-len(rows) // 100)
    if seconds > limit:
        raise ValueError(
            f"{detector.name} takes {seconds:.0f} s for {len(rows)} rows: at most {limit} s"
        )
    return scores


def _scores(detector: Detector, lm: CausalLM, rows: Rows) -> np.ndarray:
    try:
        scores = np.asarray(detector.score(lm, rows), dtype=float)
    except Exception as error:
        raise ValueError(f"{detector.name} raises {_line(error)}") from error
    if scores.shape != (len(rows),):
        shape = f"an array of shape {scores.shape}"
        raise ValueError(
            f"{detector.name} needs one score for each of {len(rows)} rows, got {shape}"
        )
    if n_undefined := int((~np.isfinite(scores)).sum()):
        raise ValueError(
            f"{detector.name} gives NaN or infinity for {n_undefined} rows: give finite scores"
        )
    return scores


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def write_part(
    folder: Path, name: str, about: Mapping[str, Any], base_seed: int, file: Path
) -> None:
    """Scores of the detector in a file under one base model of the pretraining study, as a part.

    The base model comes from the cache or is trained again.
    """
    lab, detector = row_pools.the_lab(), load(file)
    model = row_pools.base_model(lab, base_seed)
    asked = {pool: [detector] for pool in row_pools.pools()}
    scores, seconds = pretraining.score_model(model, pretraining.PRETRAINED, asked)
    made_by = {
        "base_seed": base_seed,
        "detector": {"name": detector.name, "access": detector.access, "source": detector.source},
        "world": spot_check.world_of(lab),
        "models": {pretraining.PRETRAINED: {"recipe_hash": world.describe(model)["recipe_hash"]}},
        "environment": spot_check.environment(),
        "seconds": scoring.seconds_by_detector(seconds),
    }
    tables = {"scores": scores.astype(pretraining.SMALL)}
    store.write_tables(folder, name, tables, {**made_by, **about})


def aucs(study: StudyScores) -> pd.DataFrame:
    """AUC of seen against held-out rows for every detector that was asked about every base model.

    Returns:
        detector, copies, n_models, auc, ci_low, ci_high: means over models and benchmarks, with
        the interval of ``crossed.interval_left_out``.
    """
    rows = []
    for detector in study.all_detectors:
        pools = study.pools_of(detector)
        for copies in row_pools.DOSES:
            parts = [auc_left_out(pool, copies) for pool in pools]
            found = interval_left_out(mean_left_out(parts))
            interval = (found.value, found.low, found.high)
            rows.append((display_name(detector), copies, len(study.base_seeds), *interval))
    columns = ["detector", "copies", "n_models", "auc", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns)
