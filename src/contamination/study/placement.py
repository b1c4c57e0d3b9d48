"""When must a model see a row so that a detector finds it later?

Asked twice. Exploratory, of the rows that the study's models see once (``timing``): the packing
draws the place of a copy, so rows whose copy came early and rows whose copy came late differ in
nothing else. And by lot, as ``docs/protocol_3.md``, E1, fixes: new models see 360 rows of each
benchmark once, in a tenth of the training that is drawn for each row. Every seed makes two models
that see the same texts in the same order, under a learning rate that falls and under one that
stays. Further rows are seen four times, for ``scripts/length_repairs.py``.
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
from contamination.models.local import token_ids
from contamination.study import baselines, pretraining, reference_attack, row_pools, store
from contamination.study.assignment import HELD_OUT, assign, seed_of
from contamination.study.baselines import PPL
from contamination.study.crossed import (
    CrossedScores,
    LeftOut,
    auc_left_out,
    crossed_interval,
    interval_left_out,
    mean_auc,
    mean_auc_left_out,
    mean_left_out,
)
from contamination.study.detection import ATTACK, attack_pools
from contamination.study.interface import rows_of, title
from contamination.study.protocol import N_REDEALS
from contamination.study.row_pools import BENCHMARKS, PART, ROWS, VERBATIM, Pool
from contamination.study.scores import (
    CONTROLS,
    crossed_scores,
    display_name,
    log_probabilities,
    seeds_of,
    seen_rows,
)

NAME = "placement"  # of the parts of the ledger
POOL_SEED = 400
BASE_SEEDS = tuple(range(400, 420))
REFERENCE = 0  # number of the part of a model that saw no row
SCHEDULES = ("cosine", "constant")
N_PARTS = 5  # equal parts of the training, of the exploratory question
N_TENTHS, ROWS_OF_A_TENTH = 10, 36
REPEATED, N_REPEATED = "4 copies", 120
N_HELD_OUT = 480
FOUR_COPIES = N_TENTHS + 1  # marks them among the numbers of tenths; 0 is held out
SIZES = {str(tenth): ROWS_OF_A_TENTH for tenth in range(1, N_TENTHS + 1)}
SIZES |= {REPEATED: N_REPEATED, row_pools.HELD_OUT: N_HELD_OUT}
NUMBERS = {name: n for n, name in enumerate(SIZES, start=1)} | {row_pools.HELD_OUT: HELD_OUT}
EARLY, LATE = 1, 2  # the first and the last three tenths
OTHER = -1  # marks rows that are in no part which is asked about
THREE = 3
SHALLOW = {"score": "float32", "row": "int16"} | dict.fromkeys(
    ("detector", "model", "benchmark"), "category"
)


# Copies of the study's models


def steps_of_copies(lab: world.World, base_seed: int) -> tuple[pd.DataFrame, int]:
    """The step in which a base model sees each copy of each row, rebuilt by the packing code.

    No model is needed, since the order of a training follows from its recipe and texts. A larger
    model sees the same batches in the same order.

    Returns:
        benchmark, pool, row, copy (1 for the first that is seen) and step (0 for the first);
        and the number of steps of the training. ValueError where a copy is not found.
    """
    recipe, texts = row_pools.base_recipe(lab, base_seed)
    tokenizer, wanted, n_copies = lab.tokenizer, {}, 0
    for pool in row_pools.pools():
        assigned = pool.assigned(base_seed)
        encoded = {form: token_ids(tokenizer, seen) for form, seen in pool.forms.items()}
        for group in pool.groups:
            for row in np.flatnonzero(assigned == group.name) if group.copies else ():
                wanted[tuple(encoded[group.form][row])] = (pool.benchmark, pool.kind, int(row))
                n_copies += group.copies
    batches, found = training.training_stream(recipe, texts).batches, []
    for step, batch in enumerate(batches):
        for block in batch.input_ids:
            # Each text of a block stands whole behind a beginning-of-sequence token.
            starts = np.flatnonzero(block == tokenizer.bos_token_id)
            for piece in np.split(block, starts)[1:]:
                ids = piece[1 : int(np.argmax(piece == tokenizer.eos_token_id))]
                if row := wanted.get(tuple(ids.tolist())):
                    found.append((*row, step))
    if len(found) != n_copies:
        raise ValueError(f"{len(found)} of {n_copies} copies are in the batches of {base_seed}")
    table = pd.DataFrame(found, columns=["benchmark", "pool", "row", "step"])
    table = table.sort_values(["benchmark", "pool", "row", "step"], ignore_index=True)
    table["copy"] = table.groupby(["benchmark", "pool", "row"]).cumcount() + 1
    return table[["benchmark", "pool", "row", "copy", "step"]], len(batches)


def write_positions(folder: Path, name: str, about: Mapping[str, Any], base_seed: int) -> None:
    """``steps_of_copies`` as a part of the ledger ``POSITIONS``, ``about`` joined."""
    lab = row_pools.the_lab()
    steps, n_steps = steps_of_copies(lab, base_seed)
    small = dict.fromkeys(["row", "step"], "int16") | {"copy": "int8"}
    small |= dict.fromkeys(["benchmark", "pool"], "category")
    made_by = {
        "base_seed": base_seed,
        "n_steps": n_steps,
        "recipe_hash": training.recipe_hash(row_pools.base_recipe(lab, base_seed)[0]),
        "world": store.world_of(lab),
    }
    store.write_tables(folder, name, {"copies": steps.astype(small)}, {**made_by, **about})


def parts_of_training(
    pools: Mapping[str, CrossedScores], frame: pd.DataFrame
) -> list[CrossedScores]:
    """Pools in whose ``copies`` a row seen once has the number, 1 to 5, of its part of training.

    Held-out rows keep 0, and all other rows have -1.
    """
    rows = seen_rows(seeds_of(frame))
    found = []
    for benchmark, pool in pools.items():
        own = rows[rows["benchmark"].eq(benchmark) & rows["pool"].eq(ROWS)]
        place = own["position"].to_numpy().reshape(pool.scores.shape)
        part = np.minimum(np.floor(N_PARTS * np.nan_to_num(place)), N_PARTS - 1).astype(int) + 1
        number = np.where(pool.copies == 1, part, OTHER)
        number[pool.copies == HELD_OUT] = HELD_OUT
        found.append(CrossedScores(pool.name, pool.scores, number))
    return found


def _difference(pools: Sequence[CrossedScores]) -> float:
    """AUC of rows seen in the last part of the training minus that of the first."""
    return mean_auc(pools, N_PARTS) - mean_auc(pools, 1)


def timing(frame: pd.DataFrame, detectors: Sequence[str] = (MIN_K, *CONTROLS[:2])) -> pd.DataFrame:
    """AUC of rows seen once by the fifth of the training in which their copy lies.

    The interval of a difference is ``crossed.crossed_interval``'s; the reference attack's shadow
    models stay those of all models there. No verdict: the table is exploratory.

    Returns:
        a row for each detector, then for the reference attack where it is defined, and each part
        (1 to 5, or "last minus first", where auc is the difference of two).
    """
    asked = {
        display_name(name): parts_of_training(crossed_scores(frame, name), frame)
        for name in detectors
    }
    if reference_attack.is_defined(centred := attack_pools(frame)):
        attacks = map(reference_attack.lira_scores, centred)
        by_benchmark = dict(zip(log_probabilities(frame), attacks, strict=True))
        asked[ATTACK] = parts_of_training(by_benchmark, frame)
    rows = []
    for name, pools in asked.items():
        n_models = len(pools[0].scores)
        for part in range(1, N_PARTS + 1):
            found = interval_left_out(mean_auc_left_out(pools, part))
            n_rows = float(np.mean([np.sum(pool.copies == part, axis=1) for pool in pools]))
            rows.append((name, str(part), n_models, n_rows * len(pools), *found[:3]))
        found = crossed_interval(pools, _difference, (-1.0, 1.0))
        rows.append((name, "last minus first", n_models, np.nan, *found[:3]))
    columns = ["detector", "part", "n_models", "n_rows", "auc", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns)


# By lot


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
    asked = (*pretraining.token_detectors(lab)[:-1], *baselines.CONTROLS[:2])
    tables, models = [], {}
    for model, (recipe, texts) in recipes.items():
        trained = training.train(recipe, texts)
        table, _ = pretraining.score_model(trained, model, dict.fromkeys(pools(), asked))
        tables.append(table.drop(columns="pool"))
        models[model] = {"recipe_hash": training.recipe_hash(recipe)}
        models[model]["last_loss"] = round(float(training.losses_of(trained)[-50:].mean()), 4)
    made_by = {
        "base_seed": number,
        "world": store.world_of(lab),
        "models": models,
        "environment": store.environment(),
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
    """AUC of rows seen once by the tenth (1 to 10) of the training in which their copy lies."""
    rows = []
    for schedule in SCHEDULES:
        for detector in (*ASKED, *SHOWN_TOO):
            pools_ = crossed(stored, detector, schedule)
            for tenth in range(1, N_TENTHS + 1) if pools_ else ():
                parts = mean_auc_left_out(pools_, tenth)
                found = interval_left_out(parts)
                n = len(parts.by_model), len(pools_) * ROWS_OF_A_TENTH
                rows.append((schedule, detector, tenth, *n, *found[:3]))
    columns = ["schedule", "detector", "tenth", "n_models", "n_rows", "auc", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns)


def endpoint(stored: pd.DataFrame) -> pd.DataFrame:
    """The registered difference: AUC of the last three tenths minus that of the first three.

    p_adjusted (Holm) and verdict are of the registered rows alone. A registered row that is
    undefined has the verdict *not run*, and counts as p = 1.
    """
    rows = []
    for schedule in SCHEDULES:
        for detector in (*ASKED, *SHOWN_TOO):
            pools_ = crossed(stored, detector, schedule)
            if not pools_:
                rows.append((schedule, detector, 0, *[np.nan] * 6))
                continue
            early, late = (mean_auc_left_out(thirds(pools_), mark) for mark in (EARLY, LATE))
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
        CLAIMS[NAME].verdict(
            row.ci_low, row.ci_high, p_adjusted=row.p_adjusted, n_models=row.n_models
        )
        for row in table[is_asked].itertuples()
    ]
    return table


def schedules_differ(stored: pd.DataFrame) -> pd.DataFrame:
    """The endpoint under the falling rate minus that under the constant one, paired by seed.

    p is of all sign flips, two-sided.
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
