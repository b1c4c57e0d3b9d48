"""Does the trace of a copy grow with the model and fade with the data? ``docs/protocol_scale.md``.

Every seed trains models of three sizes on two amounts of text. The six see the same rows four
times each, and the rows are the same share of all that a model reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.statistics import with_p_adjusted
from contamination.core.verdicts import CLAIMS, verdict_column
from contamination.dcq.contaminating import training_texts
from contamination.dcq.quizzes import quizzes_of_groups
from contamination.lab import grammar, world
from contamination.lab.training import Dose, Recipe, TrainingTexts
from contamination.study import placement, row_pools, traces
from contamination.study.assignment import HELD_OUT, assign
from contamination.study.crossed import CrossedScores, interval_left_out
from contamination.study.interface import rows_of, title
from contamination.study.row_pools import BENCHMARKS, PART, Pool

NAME = "scale"  # of the parts of the ledger
POOL_SEED = 700
BASE_SEEDS = tuple(range(700, 716))
SIZES = {"XS": 256_752, "S": 577_840, "M": 1_377_408}  # parameters, of ``world.SIZES``
LESS, MORE = 600_000, 1_500_000  # tokens of docstrings that a model reads, each once
COPIES = 4
N_SEEN, N_HELD_OUT = 60, 200  # rows of a benchmark
N_FILLERS = round(N_SEEN * COPIES * (MORE / LESS - 1))  # read once, so that the share is the same
# The registered tests: the trace in one model less that in another, of the same seed.
TESTS = (
    ("size, less text", ("M", LESS), ("XS", LESS)),
    ("size, more text", ("M", MORE), ("XS", MORE)),
    ("text, smallest model", ("XS", LESS), ("XS", MORE)),
    ("text, largest model", ("M", LESS), ("M", MORE)),
)
MATTERS = CLAIMS[NAME]


def name_of(size: str, n_tokens: int) -> str:
    """What a model is called in the ledger.

    >>> name_of("XS", 600_000)
    'XS, 600000 tokens'
    """
    return f"{size}, {n_tokens} tokens"


@cache
def pools() -> tuple[tuple[Pool, tuple[str, ...]], ...]:
    """Of each benchmark the rows, shared by all models, and the fillers as they are read."""
    found, n_rows = [], N_SEEN + N_HELD_OUT
    for benchmark in BENCHMARKS:
        made_by = grammar.BENCHMARKS[benchmark]
        drawn = grammar.draw_groups(made_by, n_rows + N_FILLERS, POOL_SEED, PART, n_paraphrases=5)
        quizzes, label = quizzes_of_groups(drawn, made_by.columns), made_by.columns[-1]
        own = quizzes.iloc[:n_rows].reset_index(drop=True)
        rows = rows_of(own, f"{title(benchmark)} T", label, (), POOL_SEED)
        fillers = training_texts(tuple(quizzes["instance"][n_rows:]), rows.dataset, rows.split)
        found.append((Pool(benchmark, NAME, rows, label), tuple(fillers)))
    return tuple(found)


def copies_of(base_seed: int, benchmark: str) -> np.ndarray:
    """Copies of each row under the models of a seed, ``COPIES`` or 0; shape (260,)."""
    dealt = assign(base_seed, benchmark, NAME, {"seen": N_SEEN, row_pools.HELD_OUT: N_HELD_OUT})
    return np.where(dealt == "seen", COPIES, HELD_OUT)


def base_recipe(
    lab: world.World, base_seed: int, size: str, n_tokens: int
) -> tuple[Recipe, TrainingTexts]:
    """How a model is trained: on so many tokens of docstrings, its rows, and fillers."""
    doses = []
    for pool, fillers in pools():
        is_seen = copies_of(base_seed, pool.benchmark) == COPIES
        texts = np.array(pool.forms[row_pools.VERBATIM], dtype=object)[is_seen]
        doses += [Dose(tuple(texts), COPIES)] + [Dose(fillers)] * (n_tokens == MORE)
    # All docstrings without repeats, since no row is one, and no row of a grammar.
    docstrings = replace(lab, background=tuple(lab.passages["text"]))
    return world.recipe_from_scratch(docstrings, doses, n_tokens, base_seed, size)


def write_part(folder: Path, name: str, about: Mapping[str, Any], base_seed: int) -> None:
    """Train the six models of a seed, score all rows, and write both as a part of the ledger."""
    lab = row_pools.the_lab()
    recipes = (
        (name_of(*kind), *base_recipe(lab, base_seed, *kind))
        for kind in product(SIZES, (LESS, MORE))
    )
    traces.write_models(folder, name, about, base_seed, recipes, [pool for pool, _ in pools()])


def crossed(stored: pd.DataFrame, detector: str, size: str, n_tokens: int) -> list[CrossedScores]:
    """Scores of a detector by benchmark; ``stored`` as ``store.read_all`` gives it.

    Seeds after a gap in their numbers are left out, as the protocol says.
    """
    is_own = stored["detector"].eq(detector) & stored["model"].eq(name_of(size, n_tokens))
    wide = stored[is_own].pivot_table("score", "base_seed", ["benchmark", "row"], observed=True)
    seeds, found = traces.without_gap(BASE_SEEDS, wide.index), []
    for benchmark in BENCHMARKS:
        values = wide.loc[seeds, benchmark].sort_index(axis=1).to_numpy(float)
        dealt = np.array([copies_of(seed, benchmark) for seed in seeds])
        found.append(CrossedScores(f"{benchmark} {NAME}", values, dealt))
    return found


def by_model(stored: pd.DataFrame) -> pd.DataFrame:
    """AUC and d' under each kind of model, with intervals and, of the AUC, the exact p."""
    rows = []
    for (size, n_parameters), n_tokens in product(SIZES.items(), (LESS, MORE)):
        of = {detector: crossed(stored, detector, size, n_tokens) for detector in traces.SHOWN}
        about = {"n_parameters": n_parameters, "n_tokens": n_tokens}
        rows += [about | found for found in traces.traces_of(of, COPIES)]
    return pd.DataFrame(rows)


def differences(stored: pd.DataFrame, detector: str = MIN_K) -> pd.DataFrame:
    """The four tests: difference in d', paired by seed, interval, p of all sign flips, verdict.

    p is two-sided; p_adjusted is Holm's over the four.
    """
    rows = []
    for test, first, second in TESTS:
        paired = traces.trace(crossed(stored, detector, *first), COPIES).minus(
            traces.trace(crossed(stored, detector, *second), COPIES)
        )
        found = interval_left_out(paired, (-np.inf, np.inf))
        about: dict[str, Any] = {
            "test": test,
            "detector": detector,
            "n_pairs": len(paired.by_model),
        }
        about |= {"difference": found.value, "ci_low": found.low, "ci_high": found.high}
        rows.append(about | {"p": placement.sign_flip_p(paired.by_model)})
    (table,) = with_p_adjusted(pd.DataFrame(rows))
    return table.assign(verdict=verdict_column(table, MATTERS, n_models="n_pairs"))
