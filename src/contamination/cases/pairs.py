"""The paper's study of DICE on pairs of one's own: checked before any cost, trained or given.

They become the structures of the lab part, trained models by condition and seed and
problems by set, so that ``dice.pool`` and the tables serve both.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import AutoModelForCausalLM

from contamination.audit.local_models import arithmetic, load_model
from contamination.cases.settings import Pairs as Told
from contamination.core.words import units
from contamination.data import partitions, sources
from contamination.dice.answers import final_answer, is_plain_number
from contamination.dice.mixtures import (
    IN_DISTRIBUTION,
    MATH,
    OUT_OF_DISTRIBUTION,
    SEEN,
    SYN,
    UNSEEN,
    Mixture,
    Problems,
    mix,
    real_problems,
    rows_of,
    vanilla_problems,
)
from contamination.dice.pool import (
    CLEAN,
    CONTAMINATED,
    FP32_BYTES,
    LORA_RANK,
    OTHER_CLEAN,
    SCORED,
    Condition,
    FineTunedModel,
    Pool,
    Settings,
    fine_tune,
    measure_pool,
    memory_gb,
)
from contamination.models import source
from contamination.models.source import check_model, load_config

N_QUESTIONS = 4  # of a set, at least
LONGEST_ANSWER = 8  # words without a mark; more are prose, which no rule can compare
ONE_IS_NONE = "one clean model cannot show how far two of them lie apart"
SETS = (*IN_DISTRIBUTION, *OUT_OF_DISTRIBUTION)
UNKNOWN = "unknown"  # condition of models that others fine-tuned: Figure 6(b) alone has them
DOCSTRINGS = "docstrings"  # as ``own_vanilla``: the lab's vanilla rows, which are always there
SEED = 0  # of the draw of problems and vanilla rows
# A box with braces up to two deep.
_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})+)\}")


@dataclass(frozen=True)
class Pairs:
    """Pairs that can be scored: everything named is there and fits together.

    Attributes:
        problems: set to questions and answers, each with a short answer behind ``####``; those
            of GSM-i-Syn as they are.
        n_left_out: set to the rows without such an answer, which cannot be scored.
        given: condition to checkpoints; empty where the pairs are trained.
        mixtures: condition to what each of its models reads; empty where they are given.
    """

    problems: Mapping[str, Problems]
    n_left_out: Mapping[str, int]
    wanted: Sequence[Condition]
    given: Mapping[str, Sequence[str]]
    mixtures: Mapping[str, Sequence[Mixture]]

    @property
    def sets(self) -> pd.DataFrame:
        """benchmark, n, n_left_out of every set."""
        rows = [(name, len(rows), self.n_left_out[name]) for name, rows in self.problems.items()]
        return pd.DataFrame(rows, columns=["benchmark", "n", "n_left_out"])

    @property
    def topic(self) -> str:
        """Problems of another kind, which Figure 6(a) compares with GSM: MATH where it is there."""
        kinds = (MATH, "TabMWP", *OUT_OF_DISTRIBUTION)
        return next((name for name in kinds if name in self.problems), UNSEEN)


def check_pairs(settings: Told) -> Pairs | None:
    """The pairs that the settings name, all checked; None where no base is named.

    FileNotFoundError if a model or data are not there, ValueError if something does not fit.
    """
    base, checkpoints, vanilla = settings.model.first, settings.checkpoints, settings.own_vanilla
    if not base:
        if checkpoints:
            raise ValueError(
                "checkpoints need model, names: the base that they were fine-tuned from"
            )
        return None
    if checkpoints and vanilla:
        raise ValueError("set own_vanilla to train pairs or checkpoints to score them, not both")
    if not checkpoints and not vanilla:
        raise ValueError(
            "a base needs own_vanilla (instruction data) to train pairs, or checkpoints to score"
        )
    wanted = wanted_conditions(settings)
    for model in (base, *(one for models in checkpoints.values() for one in models)):
        check_model(model)
    problems, n_left_out = _problems(settings)
    for condition in wanted:
        if condition.problems and condition.problems not in problems:
            raise ValueError(
                f'"{condition.name}" needs problems of {condition.problems}: name a file or hub '
                "dataset in problem_sets"
            )
    mixtures = {} if checkpoints else _mixtures(settings, wanted, problems)
    return Pairs(problems, n_left_out, wanted, checkpoints, mixtures)


def wanted_conditions(settings: Told) -> list[Condition]:
    """What the models are fine-tuned on, clean ones first; ValueError for too few of them."""
    numbers = {CLEAN: settings.n_references}
    numbers |= dict.fromkeys(settings.own_conditions, settings.n_contaminated)
    if settings.checkpoints:
        numbers = {CLEAN: 0}
        for name, models in settings.checkpoints.items():
            if not (isinstance(models, list) and all(isinstance(one, str) for one in models)):
                raise ValueError(f'checkpoints: "{name}" must be a list of folders or hub ids')
            if len(set(models)) < len(models):
                raise ValueError(f'checkpoints: "{name}" names a model twice')
            numbers[name] = len(models)
    if numbers[CLEAN] < 2:
        raise ValueError(f'"{CLEAN}" needs two models or more: {ONE_IS_NONE}')
    if numbers.get(CONTAMINATED, 0) < 2:
        raise ValueError(
            f'"{CONTAMINATED}" needs two models or more: each is scored by a detector that never '
            "met it"
        )
    return [_condition(name, number) for name, number in numbers.items()]


def _condition(name: str, n_models: int) -> Condition:
    if name in (CLEAN, UNKNOWN):
        return Condition(name, "", 0, n_models)
    found = re.fullmatch(r"(.+) x([1-9]\d*)", name)
    if not found or found[1] not in SETS:
        raise ValueError(
            f'"{name}" is not a condition: "{CLEAN}", "{UNKNOWN}", or a set and its copies such as '
            f'"{CONTAMINATED}"; sets are {", ".join(SETS)}'
        )
    return Condition(name, found[1], int(found[2]), n_models)


def _problems(settings: Told) -> tuple[dict[str, Problems], dict[str, int]]:
    """Problems by set, and how many of each cannot be scored."""
    found = {}
    for name, where in settings.problem_sets.items():
        if name not in SETS:
            raise ValueError(f'problem_sets: "{name}" is not a set: {", ".join(SETS)}')
        if not (isinstance(where, list) and len(where) == 4):
            raise ValueError(
                f'problem_sets: "{name}" must be [file or hub id, question column, answer column, '
                "split]; a file has no split"
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
    kept, n_left_out = {}, {}
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
        n_left_out[name] = len(rows) - len(kept[name])
        if len(kept[name]) < N_QUESTIONS:
            raise ValueError(
                f"{name} needs at least {N_QUESTIONS} problems with a short answer, or one behind "
                f'"####", got {len(kept[name])} of {len(rows)}'
            )
    return kept, n_left_out


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
    if settings.own_vanilla == DOCSTRINGS:
        vanilla = vanilla_problems()
    else:
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


def pairs_plan(settings: Told, pairs: Pairs) -> pd.DataFrame:
    """What the pairs will take, before anything is trained; no weights are read.

    n_steps are those of one training (empty for checkpoints); in 1e9 bytes training_gb
    (weights, gradients and AdamW's moments in fp32, without activations), disk_gb (fp32
    checkpoints) and states_gb (hidden states held in memory).
    """
    config = load_config(settings.model.first)
    with torch.device("meta"):  # shapes alone
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    n_parameters = n_trained = model.num_parameters()
    if settings.lora:
        head = model.get_output_embeddings()
        linear = [m for m in model.modules() if isinstance(m, torch.nn.Linear) and m is not head]
        n_trained = sum(LORA_RANK * (m.in_features + m.out_features) for m in linear)
    shape = config.get_text_config()
    of_question = FP32_BYTES * (shape.num_hidden_layers + 2) * shape.hidden_size
    rows = []
    for one in [one for one in pairs.wanted if one.name != UNKNOWN]:
        sets = (*IN_DISTRIBUTION, pairs.topic) if one.name in SCORED else (SEEN, UNSEEN)
        n_questions = sum(len(pairs.problems[name]) for name in dict.fromkeys(sets))
        row: dict[str, Any] = {"condition": one.name, "n_models": one.n_models}
        if mixture := next(iter(pairs.mixtures.get(one.name, ())), None):
            row |= {"dose_pct": mixture.dose_pct, "n_rows": mixture.n_rows}
            row |= {"n_steps": math.ceil(mixture.n_rows / settings.own_batch_size)}
            row |= {"training_gb": memory_gb(n_parameters, n_trained)}
            row |= {"disk_gb": one.n_models * FP32_BYTES * n_parameters / 1e9}
        rows.append(row | {"states_gb": one.n_models * n_questions * of_question / 1e9})
    columns = ["condition", "n_models", "dose_pct", "n_rows", "n_steps"]
    return pd.DataFrame(rows).reindex(columns=[*columns, "training_gb", "disk_gb", "states_gb"])


def trained_pairs(settings: Told, pairs: Pairs) -> dict[str, dict[int, FineTunedModel]]:
    """The models of every condition by seed: those given, or trained now (or cached)."""
    if pairs.given:
        return {
            one.name: {
                s: FineTunedModel(Path(place)) for s, place in enumerate(pairs.given[one.name])
            }
            for one in pairs.wanted
        }
    optimiser = settings.own_learning_rate, settings.own_batch_size, settings.lora
    begin = source.parse_bos(settings.model.bos)
    fine_tuning = Settings(
        *optimiser,
        dtype=arithmetic(settings.model),
        bos=begin,
        weight_decay=settings.own_weight_decay,
        warmup_share=settings.own_warmup_share,
    )
    jobs, read = [], []
    for name, mixtures in pairs.mixtures.items():
        for seed, mixture in enumerate(mixtures):
            order = dataclasses.replace(fine_tuning, seed=fine_tuning.seed + seed)
            jobs.append((settings.model.first, mixture.rows(order.seed), order))
            read.append((name, seed, mixture))
    trained: dict[str, dict[int, FineTunedModel]] = {one.name: {} for one in pairs.wanted}
    folders = [fine_tune(*job) for job in jobs]
    for (name, seed, mixture), folder in zip(read, folders, strict=True):
        n_steps = math.ceil(mixture.n_rows / settings.own_batch_size)
        trained[name][seed] = FineTunedModel(Path(folder), mixture, n_steps)
    return trained


def measured_pairs(
    settings: Told, pairs: Pairs, trained: Mapping[str, Mapping[int, FineTunedModel]]
) -> Pool:
    """States and baselines of all models, and under ``OTHER_CLEAN`` each next clean model.

    Models of unknown training are not among them.
    """
    trained = {name: models for name, models in trained.items() if name != UNKNOWN}
    asked, base = list(dict.fromkeys((*IN_DISTRIBUTION, pairs.topic))), Path(settings.model.first)
    load = partial(load_model, settings.model)
    pool = measure_pool(trained, base, pairs.problems, asked, pairs.topic, load, processes=1)
    clean = list(pool[CLEAN].values())
    return {**pool, OTHER_CLEAN: dict(enumerate([*clean[1:], clean[0]]))}
