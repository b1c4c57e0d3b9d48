"""Does a copy show only because a model reads many others like it? ``docs/protocol_company.md``.

Every seed trains three models. In two of them the rows of a kind are read once, or four times, and
no other row of that kind is read; in the third they are read among rows seen once, four times and
sixteen times. One kind is rows of the lab's grammars, the other is passages of docstrings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from contamination.models.local import n_tokens
from contamination.study import placement, row_pools, traces
from contamination.study.assignment import HELD_OUT, assign
from contamination.study.crossed import CrossedScores, interval_left_out
from contamination.study.detection import joint_p_values
from contamination.study.interface import Rows, rows_of, title
from contamination.study.protocol import N_REDEALS
from contamination.study.row_pools import BENCHMARKS, PART

NAME = "company"  # of the parts of the ledger
POOL_SEED = 900
BASE_SEEDS = tuple(range(900, 916))
SIZE = "M"  # of ``world.SIZES``
N_TOKENS = 1_000_000  # that a model reads in all, rows among them
N_WORDS = 32  # of a passage
GRAMMAR, NATURAL = "grammar", "natural"
ENDPOINT = 4  # copies
# Rows by the number of copies, of each benchmark of the grammar and of the passages.
DEALT = {
    GRAMMAR: {1: 40, 4: 10, 16: 20, HELD_OUT: 190},
    NATURAL: {1: 160, 4: 40, 16: 60, HELD_OUT: 280},
}
TOGETHER = "all together"
# What each model reads of each kind: the rows with these numbers of copies.
MODELS = {
    "grammar at 4, natural at 1": {GRAMMAR: (4,), NATURAL: (1,)},
    "grammar at 1, natural at 4": {GRAMMAR: (1,), NATURAL: (4,)},
    TOGETHER: {GRAMMAR: (1, 4, 16), NATURAL: (1, 4, 16)},
}
ALONE = {
    (kind, copies): model
    for model, read in MODELS.items()
    for kind, (copies, *others) in read.items()
    if not others
}
MATTERS = CLAIMS[NAME]


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows of one benchmark, or passages, that all models share, and as they are read."""

    benchmark: str
    kind: str
    rows: Rows
    texts: tuple[str, ...]


@cache
def pools() -> tuple[Pool, ...]:
    """Three benchmarks of the grammar, and passages, one from each module."""
    found = []
    for benchmark in BENCHMARKS:
        made_by, n_rows = grammar.BENCHMARKS[benchmark], sum(DEALT[GRAMMAR].values())
        drawn = grammar.draw_groups(made_by, n_rows, POOL_SEED, PART, n_paraphrases=5)
        quizzes, label = quizzes_of_groups(drawn, made_by.columns), made_by.columns[-1]
        rows = rows_of(quizzes, f"{title(benchmark)} V", label, (), POOL_SEED)
        found.append((benchmark, GRAMMAR, rows))
    passages = world.at_length(row_pools.the_lab().passages, N_WORDS)
    shuffled = passages.sample(frac=1, random_state=POOL_SEED).drop_duplicates("family")
    texts = tuple(shuffled["text"].head(sum(DEALT[NATURAL].values())))
    # Without a header or a label, and no detector here asks for a quiz.
    found.append((NATURAL, NATURAL, Rows("", PART, texts, (), pd.DataFrame(), (), POOL_SEED)))
    return tuple(
        Pool(*of, training_texts(of[-1].texts, of[-1].dataset, of[-1].split)) for of in found
    )


def copies_of(base_seed: int, pool: Pool) -> np.ndarray:
    """Copies of each row under the seed's model of all together; shape (n_rows,)."""
    sizes = {str(copies): n for copies, n in DEALT[pool.kind].items()}
    return assign(base_seed, pool.benchmark, NAME, sizes).astype(int)


def base_recipe(lab: world.World, base_seed: int, model: str) -> tuple[Recipe, TrainingTexts]:
    """How a model is trained: on its rows, and on docstrings of other modules up to N_TOKENS."""
    doses = []
    for pool in pools():
        dealt, texts = copies_of(base_seed, pool), np.array(pool.texts, dtype=object)
        doses += [Dose(tuple(texts[dealt == n]), n) for n in MODELS[model][pool.kind]]
    prose = lab.passages.query("role == 'background'")["text"]
    n_docstrings = N_TOKENS - tokens_of(lab, doses)
    docstrings = replace(lab, background=tuple(prose))
    return world.recipe_from_scratch(docstrings, doses, n_docstrings, base_seed, SIZE)


def tokens_of(lab: world.World, doses: list[Dose]) -> int:
    """Tokens of all copies, with the two that mark the ends of each text."""
    return sum(
        dose.copies * int(n_tokens(lab.tokenizer, map(str, dose.texts), n_special=2).sum())
        for dose in doses
    )


def write_part(folder: Path, name: str, about: Mapping[str, Any], base_seed: int) -> None:
    """Train the three models of a seed, score all rows, and write both as a part of the ledger."""
    lab = row_pools.the_lab()
    recipes = ((model, *base_recipe(lab, base_seed, model)) for model in MODELS)
    traces.write_models(folder, name, about, base_seed, recipes, pools())


def crossed(stored: pd.DataFrame, detector: str, model: str, kind: str) -> list[CrossedScores]:
    """Scores of a detector for the pools of a kind; ``stored`` as ``store.read_all`` gives it."""
    is_own = stored["detector"].eq(detector) & stored["model"].eq(model)
    wide = stored[is_own].pivot_table("score", "base_seed", ["benchmark", "row"], observed=True)
    seeds, found = traces.without_gap(BASE_SEEDS, wide.index), []
    for pool in pools():
        if pool.kind == kind:
            values = wide.loc[seeds, pool.benchmark].sort_index(axis=1).to_numpy(float)
            dealt = np.array([copies_of(seed, pool) for seed in seeds])
            found.append(CrossedScores(f"{pool.benchmark} {NAME}", values, dealt))
    return found


def by_company(stored: pd.DataFrame) -> pd.DataFrame:
    """AUC and d' by kind of rows, number of copies and company; of the AUC the exact p too."""
    rows = []
    for kind, copies in product(DEALT, (1, 4, 16)):
        for company, model in ((False, ALONE.get((kind, copies))), (True, TOGETHER)):
            if model:
                of = {name: crossed(stored, name, model, kind) for name in traces.SHOWN}
                about = {"rows": kind, "copies": copies, "is_in_company": company}
                rows += [about | found for found in traces.traces_of(of, copies)]
    return pd.DataFrame(rows)


def tests(stored: pd.DataFrame, detector: str = MIN_K) -> pd.DataFrame:
    """The four tests: d' or a difference in d', its interval, p and verdict; Holm over the four."""
    rows = []
    for kind in DEALT:
        pools_ = crossed(stored, detector, ALONE[kind, ENDPOINT], kind)
        alone = traces.trace(pools_, ENDPOINT)
        together = traces.trace(crossed(stored, detector, TOGETHER, kind), ENDPOINT)
        p_alone = joint_p_values({detector: {of.name: of for of in pools_}}, ENDPOINT, N_REDEALS)
        paired = together.minus(alone)
        for test, parts, p in (
            ("alone", alone, p_alone[detector]),
            ("company", paired, placement.sign_flip_p(paired.by_model)),
        ):
            found = interval_left_out(parts, (-np.inf, np.inf))
            about = {"rows": kind, "test": test, "detector": detector, "n_seeds": len(alone[0])}
            rows.append(
                about | {"difference": found[0], "ci_low": found[1], "ci_high": found[2], "p": p}
            )
    (table,) = with_p_adjusted(pd.DataFrame(rows))
    return table.assign(verdict=verdict_column(table, MATTERS, n_models="n_seeds"))
