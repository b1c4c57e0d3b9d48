"""The paper's study of DICE on pairs of one's own: checked before any cost, trained or given.

They become what the lab has, trained models by condition and seed and problems by set, so that
notebook 05b makes its tables of both.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from contamination.audit.local_models import arithmetic, load_model
from contamination.cases.settings import Pairs as Told
from contamination.core.words import units
from contamination.data import partitions, sources
from contamination.dice.answers import final_answer, is_plain_number
from contamination.dice.mixtures import (
    IN_DISTRIBUTION,
    MATH,
    OUT_OF_DISTRIBUTION,
    SYN,
    Mixture,
    Problems,
    mix,
    real_problems,
    rows_of,
)
from contamination.dice.pool import (
    CLEAN,
    CONTAMINATED,
    OTHER_CLEAN,
    Condition,
    FineTunedModel,
    Pool,
    Settings,
    accuracy_rows,
    fine_tune,
    measure_pool,
)
from contamination.models import source
from contamination.models.source import check_model

N_QUESTIONS = 4  # of a set, at least
LONGEST_ANSWER = 8  # words without a mark; more are prose, which no rule can compare
SETS = (*IN_DISTRIBUTION, *OUT_OF_DISTRIBUTION)
SEED = 0  # of the draw of problems and vanilla rows
# A box with braces up to two deep.
_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})+)\}")
Trained = dict[str, dict[int, FineTunedModel]]


@dataclass(frozen=True)
class Pairs:
    """Pairs that can be scored: everything named is there and fits together.

    Attributes:
        problems: set to questions and answers, each with a short answer behind ``####``; those
            of GSM-i-Syn as they are.
        sets: benchmark, n, and n_left_out, the rows without such an answer.
        mixtures: condition to what each of its models reads; empty where they are given.
    """

    problems: Mapping[str, Problems]
    sets: pd.DataFrame
    wanted: Sequence[Condition]
    mixtures: Mapping[str, Sequence[Mixture]]

    @property
    def topic(self) -> str:
        """Problems of another kind, by which baselines are centred: MATH where it is there."""
        kinds = (MATH, "TabMWP", *OUT_OF_DISTRIBUTION, *IN_DISTRIBUTION)
        return next(name for name in kinds if name in self.problems)


def check_pairs(settings: Told) -> Pairs | None:
    """The pairs that the settings name, all checked; None where no base is named.

    FileNotFoundError if a model or data are not there, ValueError if something does not fit.
    """
    base, checkpoints = settings.model.first, settings.checkpoints
    if not (base or checkpoints):
        return None
    if not base or bool(checkpoints) == bool(settings.own_vanilla):
        raise ValueError(
            "name the base in model, names, and either checkpoints to score or own_vanilla "
            "(instruction data) to train pairs"
        )
    wanted = _conditions(settings)
    for model in (base, *(one for models in checkpoints.values() for one in models)):
        check_model(model)
    problems, sets = _problems(settings)
    for condition in wanted:
        if condition.problems and condition.problems not in problems:
            raise ValueError(
                f'"{condition.name}" needs problems of {condition.problems}: name a file or hub '
                "dataset in problem_sets"
            )
    mixtures = {} if checkpoints else _mixtures(settings, wanted, problems)
    return Pairs(problems, sets, wanted, mixtures)


def _conditions(settings: Told) -> list[Condition]:
    """What the models are fine-tuned on, clean ones first; ValueError for too few of them."""
    numbers = {CLEAN: settings.n_references}
    numbers |= dict.fromkeys(settings.own_conditions, settings.n_contaminated)
    if settings.checkpoints:
        numbers = {CLEAN: 0}
        for name, models in settings.checkpoints.items():
            if not isinstance(models, list) or len(set(map(str, models))) < len(models):
                raise ValueError(f'checkpoints: "{name}" must be a list of different models')
            numbers[name] = len(models)
    for name in (CLEAN, CONTAMINATED):
        if numbers.get(name, 0) < 2:
            raise ValueError(
                f'"{name}" needs two models or more: two clean ones are the control, and each '
                "contaminated one is scored by a detector that never met it"
            )
    wanted = []
    for name, n_models in numbers.items():
        found = re.fullmatch(r"(.+) x([1-9]\d*)", name)
        if name != CLEAN and (not found or found[1] not in SETS):
            raise ValueError(
                f'"{name}" is not a condition: "{CLEAN}", or a set and its copies such as '
                f'"{CONTAMINATED}"; sets are {", ".join(SETS)}'
            )
        of, copies = (found[1], int(found[2])) if found else ("", 0)
        wanted.append(Condition(name, of, copies, n_models))
    return wanted


def _problems(settings: Told) -> tuple[dict[str, Problems], pd.DataFrame]:
    """Problems by set, and how many of each are scored."""
    found = {}
    for name, where in settings.problem_sets.items():
        if name not in SETS or not (isinstance(where, list) and len(where) == 4):
            raise ValueError(
                f'problem_sets: "{name}" must be one of {", ".join(SETS)}, with [file or hub id, '
                "question column, answer column, split]; a file has no split"
            )
        dataset, question, answer, split = map(str, where)
        found[name] = _questions(dataset, split, [question, answer])
    missing = [name for name in IN_DISTRIBUTION if name not in found]
    if missing and not sources.available():
        raise FileNotFoundError(
            f'problems of {", ".join(missing)} are missing: run "make data" for the released ones, '
            "or name them in problem_sets"
        )
    found = (real_problems(0, 0, SEED) if sources.available() else {}) | found
    kept, counts = {}, []
    for name in [name for name in SETS if name in found]:
        rows = found[name]
        # Sets of one length, such as GSM-i and its paraphrases, keep the same rows.
        n = min(settings.n_questions or len(rows), len(rows))
        rows = rows.sample(n, random_state=SEED).sort_index()
        answers = rows["answer"].map(_in_form)
        if name == SYN:  # no score is taken on it, and the released answers are prose
            is_number = answers.map(is_plain_number, na_action="ignore").eq(True)
            answers = answers.where(is_number, rows["answer"])
        kept[name] = rows.assign(answer=answers).dropna().reset_index(drop=True)
        counts.append((name, len(kept[name]), len(rows) - len(kept[name])))
        if len(kept[name]) < N_QUESTIONS:
            raise ValueError(
                f"{name} needs at least {N_QUESTIONS} problems with a short answer, or one behind "
                f'"####", got {len(kept[name])} of {len(rows)}'
            )
    return kept, pd.DataFrame(counts, columns=["benchmark", "n", "n_left_out"])


def _questions(dataset: str, split: str, columns: Sequence[str]) -> pd.DataFrame:
    """Columns of a file, or of a split of a hub dataset, as question, answer, instruction."""
    rows = partitions.load_columns(dataset, split, columns)
    rows = rows.set_axis(["question", "answer", "instruction"][: len(columns)], axis=1)
    return rows.fillna({"instruction": ""}).astype(str)


def _in_form(answer: str) -> str | None:
    r"""An answer with what is scored behind ``####``, or None where it is prose without that mark.

    >>> _in_form("2 + 3 = 5\n#### 5"), _in_form("1,200"), _in_form("one half")
    ('2 + 3 = 5\n#### 5', '#### 1,200', '#### one half')
    >>> _in_form(r"So it is \boxed{\frac{1}{2}}.")  # as MATH's solutions mark it
    'So it is \\boxed{\\frac{1}{2}}.\n#### \\frac{1}{2}'
    >>> _in_form("She has two.\nSo he has three.")
    """
    if "####" in answer:
        return answer if final_answer(answer) else None
    if boxed := _BOXED.findall(answer):
        return f"{answer}\n#### {boxed[-1]}"
    is_short = 0 < len(units(answer)) <= LONGEST_ANSWER and "\n" not in answer.strip()
    return f"#### {answer}" if is_short else None


def _mixtures(
    settings: Told, wanted: Sequence[Condition], problems: Mapping[str, Problems]
) -> dict[str, list[Mixture]]:
    """What every model reads; models of one seed share their vanilla rows, as in the lab."""
    vanilla = _questions(settings.own_vanilla, "train", settings.vanilla_columns)
    n_rows = settings.own_rows
    n_drawn = min(len(vanilla), n_rows * max(one.n_models for one in wanted))
    rows = rows_of(vanilla.sample(n_drawn, random_state=SEED))
    n_copied = settings.own_copied_rows or None
    read = {
        one.name: rows_of(problems[one.problems])[:n_copied] if one.copies else [] for one in wanted
    }
    return {
        one.name: [mix(rows, read[one.name], one.copies, n_rows, s) for s in range(one.n_models)]
        for one in wanted
    }


def trained_pairs(settings: Told, pairs: Pairs) -> Trained:
    """The models of every condition by seed: those given, or trained now (or cached)."""
    trained: Trained = {one.name: {} for one in pairs.wanted}
    for name, places in settings.checkpoints.items():
        trained[name] = {s: FineTunedModel(Path(place)) for s, place in enumerate(places)}
    fine_tuning = Settings(
        settings.own_learning_rate,
        settings.own_batch_size,
        settings.lora,
        dtype=arithmetic(settings.model),
        bos=source.parse_bos(settings.model.bos),
        weight_decay=settings.own_weight_decay,
        warmup_share=settings.own_warmup_share,
    )
    for name, mixtures in pairs.mixtures.items():
        for seed, mixture in enumerate(mixtures):
            order = dataclasses.replace(fine_tuning, seed=fine_tuning.seed + seed)
            folder = fine_tune(settings.model.first, mixture.rows(order.seed), order)
            n_steps = math.ceil(mixture.n_rows / settings.own_batch_size)
            trained[name][seed] = FineTunedModel(Path(folder), mixture, n_steps)
    return trained


def measured_pairs(settings: Told, pairs: Pairs, trained: Trained) -> Pool:
    """States and baselines of all models, and under ``OTHER_CLEAN`` each next clean model."""
    asked, base = list(dict.fromkeys((*IN_DISTRIBUTION, pairs.topic))), Path(settings.model.first)
    load = partial(load_model, settings.model)
    pool = measure_pool(trained, base, pairs.problems, asked, pairs.topic, load, processes=1)
    clean = list(pool[CLEAN].values())
    return {**pool, OTHER_CLEAN: dict(enumerate([*clean[1:], clean[0]]))}


def accuracies(settings: Told, pairs: Pairs, trained: Trained) -> pd.DataFrame:
    """Every model on every set of Table 1, which leaves GSM-i-Syn out: ``accuracy_rows``."""
    asked = [name for name in pairs.problems if name != SYN]
    load, paper = partial(load_model, settings.model), settings.paper_model
    return accuracy_rows(
        trained, pairs.problems, asked, settings.answer_tokens, pairs.wanted, load, paper, 1
    )
