"""A detector of the reader's own: deals that nobody can know beforehand, and what it must keep to.

Notebook 11 meets it as a function, ``tests/study/test_your_detector.py`` as a file that is sent.
"""

from __future__ import annotations

import importlib.util
import inspect
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.core.storage import hash_of
from contamination.models.loading import CausalLM
from contamination.study import catalogue, gates, protocol
from contamination.study.conditions import READERS
from contamination.study.interface import ROW, Detector, Rows

MAX_SECONDS = 10  # for each hundred rows begun; the study scores a few hundred thousand
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
    if detector.name in {*catalogue.BY_NAME, gates.TEXT_ALONE}:
        raise ValueError(
            f'{path}: another detector is called "{detector.name}": choose another name'
        )
    if detector.access not in gates.APPLICABLE:
        raise ValueError(f"{path}: access must be one of {', '.join(gates.APPLICABLE)}")
    if detector.unit != ROW or detector.learn:
        raise ValueError(f"{path}: only detectors that score rows and learn nothing can be checked")
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


def summarize_own_detector(sets: pd.DataFrame, gate_table: pd.DataFrame, name: str) -> str:
    """What the detector ``name`` flags and which gates refuse it, in one sentence.

    ``sets`` as in ``protocol``, ``gate_table`` of ``gates.gate_table`` for them.
    """
    own = protocol.flag(sets[sets["detector"].eq(name)])
    is_read = own["model"].isin(READERS) & own["unread"].eq("")
    read, unread = own.loc[is_read, "flagged"], own.loc[own["unread"].ne(""), "flagged"]
    words = gate_table[gate_table["detector"].eq(name)].iloc[0][list(gates.GATES)]
    words = words.drop(gates.PLACEBO_NAME)  # no verdict hangs on it
    failed = words.index[words.eq(gates.FAILED)]
    open_ = words.index[words.isin([protocol.NOT_RUN, protocol.UNDETERMINED])]
    verdict = "It fails no gate."
    if len(failed):
        verdict = f"It fails these gates: {', '.join(map(gates.spoken, failed))}."
    if len(open_):
        verdict += f" These gates could not be decided: {', '.join(map(gates.spoken, open_))}."
    return (
        f"{name} flags {read.sum():.0f} of {len(read)} datasets that a model saw and "
        f"{unread.sum():.0f} of {len(unread)} that no model saw. {verdict}"
    )
