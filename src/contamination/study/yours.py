"""A detector of the reader's own: what it must keep to, and its row next to all others.

Notebook 11 meets it as a function, ``tests/study/test_your_detector.py`` and ``make ledger
DETECTOR=file.py`` as a file. A detector that looks at ``tokens.row_tokens`` alone is evaluated
from the ledger, in seconds; any other needs the base models themselves.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.lab import world
from contamination.models.loading import CausalLM
from contamination.study import length, placement, pretraining, row_pools, store
from contamination.study.crossed import interval_left_out, mean_auc_left_out
from contamination.study.interface import ACCESSES, Detector, Rows, checked_scores
from contamination.study.row_pools import ROWS
from contamination.study.scores import (
    EVERY,
    arrange_scores,
    crossed_scores,
    display_name,
    seeds_of,
)
from contamination.study.tokens import StoredModel

NAME = "added"  # of the parts of the ledger
MAX_SECONDS = 10  # for each hundred rows begun; the study has 36,000 rows to score
ROUNDING = 1e-6


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


def checked(detector: Detector, lm: CausalLM | StoredModel, rows: Rows) -> np.ndarray:
    """Scores of the rows, shape (n_rows,), by a detector that keeps to the rules.

    ValueError, one line, for a function that raises, does not give one finite number a row, gives
    others when it is called again, changes the model, or takes over ``MAX_SECONDS``.
    """
    weights = {} if isinstance(lm, StoredModel) else lm.model.state_dict()
    before = {name: weight.clone() for name, weight in weights.items()}
    start = time.perf_counter()
    scores = _scores(detector, lm, rows)
    seconds = time.perf_counter() - start
    again = _scores(detector, lm, rows)
    if not all(weight.equal(weights[name]) for name, weight in before.items()):
        raise ValueError(f"{detector.name} changes the model: work on a copy")
    if not np.allclose(scores, again, rtol=0, atol=ROUNDING):
        raise ValueError(f"{detector.name} gives other scores when it is called again: seed it")
    limit = MAX_SECONDS * -(-len(rows) // 100)
    if seconds > limit:
        raise ValueError(
            f"{detector.name} takes {seconds:.0f} s for {len(rows)} rows: at most {limit} s"
        )
    return scores


def _scores(detector: Detector, lm: CausalLM | StoredModel, rows: Rows) -> np.ndarray:
    try:
        scores = np.asarray(detector.score(lm, rows), dtype=float)
    except Exception as error:
        needs = ""
        if isinstance(lm, StoredModel) and isinstance(error, AttributeError):
            needs = ": it needs the models themselves, not their tokens: run make ledger"
        raise ValueError(f"{detector.name} raises {_line(error)}{needs}") from error
    return checked_scores(detector.name, scores, rows)


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
        "world": store.world_of(lab),
        "models": {pretraining.PRETRAINED: {"recipe_hash": world.describe(model)["recipe_hash"]}},
        "environment": store.environment(),
        "seconds": store.seconds_by_detector(seconds),
    }
    tables = {"scores": scores.astype(pretraining.SMALL)}
    store.write_tables(folder, name, tables, {**made_by, **about})


def score_stored(detectors: Sequence[Detector], models: Sequence[StoredModel]) -> pd.DataFrame:
    """Scores of every verbatim row of the study under stored models.

    Returns:
        ``pretraining.COLUMNS`` and base_seed, for ``scores.arrange_scores``. ValueError, one line,
        for a detector that needs more than the rows' tokens or gives no finite score.
    """
    tables = []
    for model in models:
        for pool in (one for one in row_pools.pools() if one.kind == ROWS):
            for detector in detectors:
                values = _scores(detector, model, pool.rows)
                table = pd.DataFrame({"row": np.arange(len(values)), "score": values})
                about = {"detector": detector.name, "model": pretraining.PRETRAINED}
                about |= {"benchmark": pool.benchmark, "pool": pool.kind}
                tables.append(table.assign(**about, base_seed=model.base_seed))
    return pd.concat(tables, ignore_index=True)[[*pretraining.COLUMNS, "base_seed"]]


def next_to_others(added: pd.DataFrame) -> pd.DataFrame:
    """The study's frame with added detectors, for the base models that these were asked about.

    Args:
        added: of ``score_stored``; detectors that the ledger holds as ``NAME`` join them.
    """
    tables = [pretraining.read_parts()[0]]
    if store.has(NAME):
        tables.append(pretraining.read_parts(NAME)[0])
    names = {name for table in (*tables[1:], added) for name in table["detector"].unique()}
    stored = pd.concat(tables, ignore_index=True)
    asked = stored[stored["base_seed"].isin(added["base_seed"].unique())]
    return arrange_scores(pd.concat([asked, added], ignore_index=True), names)


def compare(frame: pd.DataFrame, detectors: Sequence[str]) -> pd.DataFrame:
    """A row for each detector: how often, when, and what fakes it.

    Args:
        frame: must hold the control *length* too.

    Returns:
        the columns that docs/ledger_card.md explains.
    """
    alarms = length.false_alarms(frame, detectors).set_index(["detector", "difference"])["rate"]
    parts = placement.timing(frame, detectors).set_index(["detector", "part"])["auc"]
    rows = []
    for name in detectors:
        shown, pools = display_name(name), [*crossed_scores(frame, name).values()]
        row: dict[str, Any] = {"detector": shown, "n_models": len(seeds_of(frame))}
        for copies in row_pools.DOSES:
            found = interval_left_out(mean_auc_left_out(pools, copies))
            names = (f"{column}_{copies}" for column in ("auc", "ci_low", "ci_high"))
            row |= dict(zip(names, found[:3], strict=True))
        row |= {"auc_early": parts[shown, "1"], "auc_late": parts[shown, str(placement.N_PARTS)]}
        row |= {"alarms": alarms[shown, 1.0], "alarms_maximum": alarms[shown, length.MAXIMUM]}
        rows.append(row)
    return pd.DataFrame(rows)
