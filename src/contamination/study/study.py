"""The study that ``docs/protocol.md`` fixes: its values, and one unit of it trained and scored.

A unit is a part of the ledger: what it holds depends on nothing of the other units. What learns
(DICE, the bag of words) learns on the units of the pilot, which the study does not use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.lab import recipes, world
from contamination.models.causal import load_causal_lm
from contamination.study import arms, catalogue, constat, protocol, row_pools, scoring, store
from contamination.study.conditions import CLEAN, DOSED, LATER, LONG
from contamination.study.gates import GATE_COPIES
from contamination.study.interface import COSTLY_ON, ROW, SET, WORD_PROBLEMS, Detector
from contamination.study.whole_sets import WORDS_ALONE

UNITS = tuple(range(100, 120))
LEARNING_UNITS = (1, 2, 3)
COPIES = (1, 3, 12)
WHOLE_SETS_ON = COSTLY_ON
N_BACKGROUND_TOKENS = 1_000_000
N_TOKENS = {CLEAN: 20_000, DOSED: 10_000, LATER: 10_000, LONG: 100_000}
TRAINING = {"learning_rate": 0.002, "batch_size": 2}  # as in audit.lab_models


def unit_of(number: int, benchmark: str) -> arms.Unit:
    """A unit with a base model of its own; trained, or taken from the cache."""
    base = world.base_model(row_pools.the_lab(), N_BACKGROUND_TOKENS, number)
    return arms.Unit(row_pools.the_lab(), base, number, benchmark, N_TOKENS, TRAINING)


def write_unit(folder: Path, name: str, about: Mapping[str, Any], number: int, *asked: Any) -> None:
    """``score_unit`` as files, ``about`` joined: a run of several units that is stopped goes on."""
    scores, sets, made_by = score_unit(number, *asked)
    store.write(folder, name, store.Ledger(scores, sets, {**made_by, **about}))


def score_unit(
    number: int,
    benchmarks: Sequence[str] = row_pools.BENCHMARKS,
    copies: Sequence[int] = COPIES,
    detector: Detector | None = None,
) -> store.Ledger:
    """One part of the ledger: every model of a unit, scored by every detector, or by one alone."""
    scores, sets, seconds, hashes = [], [], [], {}
    for benchmark in benchmarks:
        unit = unit_of(number, benchmark)
        models = list(arms.models_of(unit, copies))
        whole = []
        if benchmark == WHOLE_SETS_ON:
            whole = list(arms.whole_set_models(unit, copies[-1]))
        rows = [*catalogue.OF_ROWS, *scoring.CONTROLS] if detector is None else [detector]
        rows = [_fitted(one, benchmark) for one in rows if one.unit == ROW]
        questions = [(scoring.score_models, models, rows)]
        of_sets = [*catalogue.OF_SETS, WORDS_ALONE] if detector is None else [detector]
        questions.append((scoring.score_sets, whole, [one for one in of_sets if one.unit == SET]))
        if benchmark == WORD_PROBLEMS and detector is None:
            questions.append((scoring.score_sets, models, [_constat()]))
        for score, asked_models, detectors in questions:
            if asked_models and detectors:
                table, spent = score(asked_models, detectors)
                (scores if score is scoring.score_models else sets).append(table)
                seconds.append(spent)
        if detector is None:
            scores.append(scoring.text_alone(models, _learning_deals(benchmark)))
        for model in (*models, *whole):
            words = (number, benchmark, model.kind, model.copies, model.datasets[0].condition)
            hashes[" ".join(map(str, words))] = world.describe(model.folder)["recipe_hash"]
    about = {
        "units": [number],
        "copies": list(copies),
        "n_background_tokens": N_BACKGROUND_TOKENS,
        "n_tokens": N_TOKENS,
        "training": TRAINING,
        "environment": recipes.environment("cpu"),
        "models": hashes,
        "seconds": scoring.by_detector(pd.concat(seconds)),
    }
    # A detector that joins later is of rows or of sets, so that one of the tables may be empty.
    rows = pd.concat(scores, ignore_index=True) if scores else pd.DataFrame(columns=scoring.COLUMNS)
    if scores:
        sets.insert(0, protocol.sets_of(rows))
    return store.Ledger(rows, pd.concat(sets, ignore_index=True), about)


@cache
def _fitted(detector: Detector, benchmark: str) -> Detector:
    if detector.learn is None:
        return detector
    units = [unit_of(number, benchmark) for number in LEARNING_UNITS]
    models = [model for unit in units for model in (unit.clean(), unit.dosed(GATE_COPIES))]
    return scoring.fit_detector(detector, models)


@cache
def _learning_deals(benchmark: str) -> list[list[arms.Dataset]]:
    return [arms.deal(benchmark, number) for number in LEARNING_UNITS]


@lru_cache(maxsize=1)
def _constat() -> Detector:
    paths = arms.reference_models(row_pools.the_lab(), N_BACKGROUND_TOKENS)
    return constat.constat_detector([load_causal_lm(path) for path in paths])
