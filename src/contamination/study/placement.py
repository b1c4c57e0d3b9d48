"""Does the place of a copy in the training decide whether it shows? ``docs/protocol_3.md``, E1.

Models see 360 rows of each benchmark once, in a tenth of the training that is drawn for each row.
Every seed makes two models that see the same texts in the same order, under a learning rate that
falls and under one that stays. Further rows are seen four times, for ``study.repairs``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.statistics import holm
from contamination.core.verdicts import CLAIMS
from contamination.dcq.quizzes import quizzes_of_groups
from contamination.lab import grammar, training, world
from contamination.lab.grammar import draw_groups
from contamination.lab.training import Dose, Recipe, TrainingTexts
from contamination.study import pretraining, reference_attack, row_pools, scoring, spot_check, store
from contamination.study.arms import rows_of, title
from contamination.study.assignment import HELD_OUT, assign, seed_of
from contamination.study.baselines import PPL
from contamination.study.crossed import (
    CrossedScores,
    LeftOut,
    auc_left_out,
    interval_left_out,
    mean_left_out,
)
from contamination.study.detection import ATTACK
from contamination.study.protocol import N_REDEALS
from contamination.study.row_pools import BENCHMARKS, PART, VERBATIM, Pool
from contamination.study.scores import CONTROLS

NAME = "placement"  # of the parts of the ledger
POOL_SEED = 400
BASE_SEEDS = tuple(range(400, 420))
REFERENCE = 0  # number of the part of a model that saw no row
SCHEDULES = ("cosine", "constant")
N_TENTHS, ROWS_OF_A_TENTH = 10, 36
REPEATED, N_REPEATED = "4 copies", 120
N_HELD_OUT = 480
FOUR_COPIES = N_TENTHS + 1  # marks them among the numbers of tenths; 0 is held out
SIZES = {str(tenth): ROWS_OF_A_TENTH for tenth in range(1, N_TENTHS + 1)}
SIZES |= {REPEATED: N_REPEATED, row_pools.HELD_OUT: N_HELD_OUT}
NUMBERS = {name: n for n, name in enumerate(SIZES, start=1)} | {row_pools.HELD_OUT: HELD_OUT}
EARLY, LATE, OTHER = 1, 2, -1  # the first and the last three tenths, and what is neither
THREE = 3
LATER_IS_FOUND = CLAIMS[NAME]
SHALLOW = {"score": "float32", "row": "int16"} | dict.fromkeys(
    ("detector", "model", "benchmark"), "category"
)


@cache
def pools() -> tuple[Pool, ...]:
    """The rows of each benchmark, shared by all models."""
    found = []
    for benchmark in BENCHMARKS:
        made_by = grammar.BENCHMARKS[benchmark]
        drawn = draw_groups(made_by, sum(SIZES.values()), POOL_SEED, PART, n_paraphrases=5)
        quizzes = quizzes_of_groups(drawn, made_by.columns)
        label = made_by.columns[-1]
        rows = rows_of(quizzes, f"{title(benchmark)} R", label, (), POOL_SEED)
        found.append(Pool(benchmark, NAME, rows, label))
    return tuple(found)


def numbers(base_seed: int, benchmark: str) -> np.ndarray:
    """Of each row its tenth (1 to 10), ``FOUR_COPIES`` or 0 for held out; shape (n_rows,)."""
    return np.array([NUMBERS[name] for name in assign(base_seed, benchmark, NAME, SIZES)])


def base_recipe(lab: world.World, base_seed: int, schedule: str) -> tuple[Recipe, TrainingTexts]:
    """How a model is trained: as ``row_pools.base_recipe``, but for its rows and the schedule."""
    doses = []
    for pool in pools():
        texts = np.array(pool.forms[VERBATIM], dtype=object)
        dealt = numbers(base_seed, pool.benchmark)
        for tenth in range(1, N_TENTHS + 1):
            span = ((tenth - 1) / N_TENTHS, tenth / N_TENTHS)
            doses.append(Dose(tuple(texts[dealt == tenth]), span=span))
        doses.append(Dose(tuple(texts[dealt == FOUR_COPIES]), copies=4))
    n_tokens = row_pools.background_tokens(lab)
    return world.recipe_from_scratch(
        lab, doses, n_tokens, base_seed, world.DEFAULT_SIZE, schedule=schedule
    )


def write_part(folder: Path, name: str, about: Mapping[str, Any], number: int) -> None:
    """Train the models of a seed, score all rows, and write both as a part of the ledger.

    The part ``REFERENCE`` is one model that saw the background alone.
    """
    start, lab = time.perf_counter(), row_pools.the_lab()
    if number == REFERENCE:
        recipes = {
            "clean": world.recipe_from_scratch(
                lab, (), row_pools.background_tokens(lab), REFERENCE, world.DEFAULT_SIZE
            )
        }
    else:
        recipes = {schedule: base_recipe(lab, number, schedule) for schedule in SCHEDULES}
    asked = (*pretraining.token_detectors(lab)[:-1], *scoring.CONTROLS[:2])
    tables, models = [], {}
    for model, (recipe, texts) in recipes.items():
        trained = training.train(recipe, texts)
        table, _ = pretraining.score_model(trained, model, dict.fromkeys(pools(), asked))
        tables.append(table.drop(columns="pool"))
        models[model] = {"recipe_hash": training.recipe_hash(recipe)}
        models[model]["last_loss"] = round(float(training.losses_of(trained)[-50:].mean()), 4)
    made_by = {
        "base_seed": number,
        "world": spot_check.world_of(lab),
        "models": models,
        "environment": spot_check.environment(),
        "seconds_in_all": round(time.perf_counter() - start, 1),
    }
    scores = pd.concat(tables, ignore_index=True).astype(SHALLOW)
    store.write_tables(folder, name, {"scores": scores}, {**made_by, **about})


def crossed(stored: pd.DataFrame, detector: str, schedule: str) -> list[CrossedScores]:
    """Scores of a detector by benchmark; ``copies`` holds ``numbers``.

    ``stored`` as ``store.read_all`` gives it. The detector ``ATTACK`` is the reference attack,
    whose shadow models are those of the same schedule. It is undefined, and the list empty, where
    models are so few that a row is held out by no other one.
    """
    name = PPL.name if detector == ATTACK else detector
    own = stored[stored["detector"].eq(name) & stored["model"].eq(schedule)]
    seeds, found = sorted(own["base_seed"].unique().tolist()), []
    for benchmark in BENCHMARKS:
        part = own[own["benchmark"] == benchmark].sort_values(["base_seed", "row"])
        values = part["score"].to_numpy(float).reshape(len(seeds), sum(SIZES.values()))
        dealt = np.array([numbers(seed, benchmark) for seed in seeds])
        if detector == ATTACK:
            likely = CrossedScores(benchmark, -np.log(-values), dealt)
            if not reference_attack.is_defined([likely]):
                return []
            values = reference_attack.lira_scores(reference_attack.centred(likely)).scores
        found.append(CrossedScores(f"{benchmark} {NAME}", values, dealt))
    return found


def thirds(pools_: Sequence[CrossedScores]) -> list[CrossedScores]:
    """The same with ``EARLY`` and ``LATE`` in place of the first and the last three tenths."""
    found = []
    for pool in pools_:
        marks = np.full_like(pool.copies, OTHER)
        marks[pool.copies == HELD_OUT] = HELD_OUT
        marks[(pool.copies >= 1) & (pool.copies <= THREE)] = EARLY
        marks[(pool.copies > N_TENTHS - THREE) & (pool.copies <= N_TENTHS)] = LATE
        found.append(CrossedScores(pool.name, pool.scores, marks))
    return found


def late_minus_early(pools_: Sequence[CrossedScores]) -> LeftOut:
    """AUC of rows of the last three tenths minus that of the first three, under each model."""
    parts = thirds(pools_)
    return mean_left_out([auc_left_out(of, LATE).minus(auc_left_out(of, EARLY)) for of in parts])


def redeal_p(pools_: Sequence[CrossedScores]) -> float:
    """p of "a later copy shows no more": tenths re-dealt within every model and benchmark.

    (1 + re-deals with a difference at least as high) / (1 + re-deals), which is exact since the
    tenths were dealt at random. All sets share their re-deals, each in an order of its own.
    """
    signs, wins, observed = _redealt_signs(), [], 0.0
    for pool in pools_:
        for model, (scores, dealt) in enumerate(zip(pool.scores, pool.copies, strict=True)):
            held_out = np.sort(scores[dealt == HELD_OUT])
            once = (dealt >= 1) & (dealt <= N_TENTHS)
            values, tenth = scores[once], dealt[once]
            won = held_out.searchsorted(values, "left") + held_out.searchsorted(values, "right")
            observed += won @ (1 * (tenth > N_TENTHS - THREE) - 1 * (tenth <= THREE))
            order = np.random.default_rng(seed_of(model, pool.name, "re-dealt")).permutation
            wins.append(order(won))
    # Sums of whole numbers below 2^53, so that ties are ties.
    as_high = (signs @ np.array(wins, dtype=float).T).sum(axis=1) >= observed
    return float((1 + as_high.sum()) / (1 + N_REDEALS))


@cache
def _redealt_signs() -> np.ndarray:
    """1 for a row dealt to the last three tenths, -1 to the first three; (n_redeals, n_rows)."""
    n_rows, n_third = N_TENTHS * ROWS_OF_A_TENTH, THREE * ROWS_OF_A_TENTH
    places = np.random.default_rng(POOL_SEED).random((N_REDEALS, n_rows)).argsort(axis=1)
    return 1.0 * (places < n_third) - 1.0 * (places >= n_rows - n_third)


def sign_flip_p(differences: np.ndarray) -> float:
    """Two-sided p of "no difference between pairs", by all signs; (n_pairs,), at most 20 pairs.

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0]))  # 2 of 8
    0.25
    """
    sums = np.zeros(1)
    for one in np.abs(differences):
        sums = np.concatenate([sums + one, sums - one])
    return float(np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-9))


ASKED = (MIN_K, ATTACK)  # in the registered family
SHOWN_TOO = (PPL.name, *CONTROLS[:2])


def by_tenth(stored: pd.DataFrame) -> pd.DataFrame:
    """AUC of rows seen once by the tenth of the training in which their copy lies.

    Returns:
        schedule, detector, tenth (1 to 10), n_models, n_rows (of one model), auc, ci_low, ci_high.
    """
    rows = []
    for schedule in SCHEDULES:
        for detector in (*ASKED, *SHOWN_TOO):
            pools_ = crossed(stored, detector, schedule)
            for tenth in range(1, N_TENTHS + 1) if pools_ else ():
                parts = mean_left_out([auc_left_out(pool, tenth) for pool in pools_])
                found = interval_left_out(parts)
                n = len(parts.by_model), len(pools_) * ROWS_OF_A_TENTH
                rows.append((schedule, detector, tenth, *n, *found[:3]))
    columns = ["schedule", "detector", "tenth", "n_models", "n_rows", "auc", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns)


def endpoint(stored: pd.DataFrame) -> pd.DataFrame:
    """The registered difference: AUC of the last three tenths minus that of the first three.

    Returns:
        schedule, detector, n_models, early, late (AUCs), difference, ci_low, ci_high, p,
        p_adjusted (Holm over the registered rows, NaN for others), verdict (None for others).
        A registered row that is undefined has the verdict *not run*, and counts as p = 1.
    """
    rows = []
    for schedule in SCHEDULES:
        for detector in (*ASKED, *SHOWN_TOO):
            pools_ = crossed(stored, detector, schedule)
            if not pools_:
                rows.append((schedule, detector, 0, *[np.nan] * 6))
                continue
            early, late = (
                mean_left_out([auc_left_out(of, mark) for of in thirds(pools_)])
                for mark in (EARLY, LATE)
            )
            found = interval_left_out(late.minus(early), (-1.0, 1.0))
            aucs = early.by_model.mean(), late.by_model.mean()
            n_models = len(early.by_model)
            rows.append((schedule, detector, n_models, *aucs, *found[:3], redeal_p(pools_)))
    columns = ["schedule", "detector", "n_models", "early", "late", "difference"]
    table = pd.DataFrame(rows, columns=[*columns, "ci_low", "ci_high", "p"])
    is_asked = table["detector"].isin(ASKED)
    table.loc[is_asked, "p_adjusted"] = holm(table.loc[is_asked, "p"].fillna(1).to_numpy())
    table.loc[table["p"].isna(), "p_adjusted"] = np.nan
    table["verdict"] = None
    table.loc[is_asked, "verdict"] = [
        LATER_IS_FOUND.verdict(
            row.ci_low, row.ci_high, p_adjusted=row.p_adjusted, n_models=row.n_models
        )
        for row in table[is_asked].itertuples()
    ]
    return table


def schedules_differ(stored: pd.DataFrame) -> pd.DataFrame:
    """The endpoint under the falling rate minus that under the constant one, paired by seed.

    Returns:
        detector, n_pairs, difference, ci_low, ci_high and p (all sign flips, two-sided).
    """
    rows = []
    for detector in ASKED:
        both = [crossed(stored, detector, schedule) for schedule in SCHEDULES]
        if not all(both):
            continue
        falling, constant = map(late_minus_early, both)
        paired = falling.minus(constant)
        found = interval_left_out(paired, (-2.0, 2.0))
        rows.append((detector, len(paired.by_model), *found[:3], sign_flip_p(paired.by_model)))
    columns = ["detector", "n_pairs", "difference", "ci_low", "ci_high", "p"]
    return pd.DataFrame(rows, columns=columns)


def read() -> pd.DataFrame:
    """All stored scores with base_seed, the reference model's left out."""
    stored, _ = store.read_all(NAME, "scores")
    return stored[stored["base_seed"] != REFERENCE]
