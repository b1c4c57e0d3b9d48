"""DICE on models of one's own: settings, checks before any cost, a model against clean references.

What pairs of contaminated and clean models give, the paper's own study, is in ``own_pairs``.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from contamination import partitions, sources
from contamination.dice.answers import parse_answer
from contamination.dice.experiments import of_pairs
from contamination.dice.fine_tuning import FP32_BYTES, LORA_RANK, memory_gb
from contamination.dice.locate import distances
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
)
from contamination.dice.pool import (
    CLEAN,
    CONTAMINATED,
    OTHER_CLEAN,
    SCORED,
    Condition,
    Measured,
    measure,
)
from contamination.models import bos
from contamination.models.causal import load_causal_lm
from contamination.models.engine import check_engine
from contamination.models.loading import DTYPES, check_model
from contamination.parameters import OwnSettings, setting

ONE_IS_NONE = "one clean model cannot show how far two of them lie apart"
N_LEAST = 4  # questions of a set
SETS = (*IN_DISTRIBUTION, *OUT_OF_DISTRIBUTION)
PAPER_MODELS = ("", "LLaMA2-7B", "Phi2-2.7B")
SEED = 0  # of the draw of problems and vanilla rows


@dataclass(frozen=True)
class OwnModels(OwnSettings):
    """Part C of notebook 05: one's own model and data."""

    target_model: str = setting("", "model to test, a folder or hub id, empty to skip")
    reference_models: list[str] = setting([], "clean models of the same base, two or more")
    dataset: str = setting("", "questions to ask target_model, a file or hub id")
    question_column: str = setting("question", "column of the questions")
    answer_column: str = setting("answer", "column of the answers")
    own_base: str = setting("", "base of pairs of clean and contaminated models, the paper's study")
    checkpoints: dict = setting({}, "the pairs where they are trained: condition to folders or ids")
    own_vanilla: str = setting("", "to train them: instruction data, a file or hub id")
    vanilla_columns: list[str] = setting(
        ["question", "response"], "columns of the instruction data"
    )
    own_conditions: list[str] = setting(
        ["GSM-i x5"], "contaminated models to train: set of problems and its copies"
    )
    n_contaminated: int = setting(2, "models that are trained of each of these")
    n_references: int = setting(3, "clean models that are trained")
    own_rows: int = setting(25000, "rows of a mixture")
    own_learning_rate: float = setting(1.0e-5, "of its fine-tuning")
    own_batch_size: int = setting(1, "rows per step of its fine-tuning")
    lora: bool = setting(False, "adapters (peft) instead of all weights")
    problem_sets: dict = setting(
        {}, "set to [file or hub id, question column, answer column, split] for your own problems"
    )
    n_questions: int = setting(0, "problems of each set, 0 for all")
    answer_tokens: int = setting(256, "longest completion, in tokens")
    paper_model: str = setting("", "column of Table 1 to show beside: LLaMA2-7B or Phi2-2.7B")
    target_dtype: str = setting(
        "float32", "of forward passes: float32, bfloat16 or float16; trained weights are float32"
    )
    bos: str = setting("", bos.MEANING)
    engine: str = setting("local", '"ray" trains and measures on a cluster, see docs/cluster.md')
    ray_address: str = setting("", 'its address, "auto" for the one of this machine')

    def __post_init__(self) -> None:
        check_engine(self.engine)
        if self.target_dtype not in DTYPES:
            raise ValueError(
                f'target_dtype must be one of {", ".join(DTYPES)}, got "{self.target_dtype}"'
            )

    def cluster(self) -> dict[str, str]:
        """Where the work runs, as ``models.engine`` takes it."""
        return {"engine": self.engine, "ray_address": self.ray_address}


def check_own(mine: OwnModels) -> Problems | None:
    """Questions for ``target_model``, and whether all is there, before it costs anything.

    What pairs need is checked by ``check_pairs``.

    Args:
        mine: models are folders or hub ids, ``dataset`` a file or hub dataset
            ("owner/name" or "owner/name:configuration", split "test").

    Returns:
        Columns question and answer; None where no ``target_model`` is named.

    Raises:
        FileNotFoundError: if a model or the dataset is not there.
        ValueError: if a part is missing, or both ways are asked for.
    """
    target, dataset = mine.target_model, mine.dataset
    if not target:
        return None
    if mine.own_base:
        raise ValueError("set target_model to test a model or own_base to score pairs, not both")
    if len(mine.reference_models) < 2:
        raise ValueError(f"target_model needs two reference_models or more: {ONE_IS_NONE}")
    for model in (target, *mine.reference_models):
        check_model(model)
    if not dataset:
        raise ValueError("dataset is empty: name a file or hub dataset of questions")
    rows = _questions(dataset, "test", [mine.question_column, mine.answer_column])
    if len(rows) < N_LEAST:
        raise ValueError(f'"{dataset}" needs at least {N_LEAST} questions')
    return rows


def _questions(dataset: str, split: str, columns: Sequence[str]) -> Problems:
    """Two columns of a file, or of a split of a hub dataset, as question and answer."""
    rows = partitions.load_rows(dataset, "" if Path(dataset).suffix else split)
    missing = [name for name in columns if name not in rows]
    if missing:
        raise ValueError(f'no column "{missing[0]}" in "{dataset}": it has {", ".join(rows)}')
    return rows[list(columns)].astype(str).set_axis(["question", "answer"], axis=1)


# Pairs, before any cost


@dataclass(frozen=True)
class Pairs:
    """Pairs that can be scored: everything named is there and fits together.

    Attributes:
        problems: set to questions and answers, each with one number behind ``####``; those
            of GSM-i-Syn as they are.
        n_left_out: set to the rows without such an answer, which cannot be scored.
        wanted: the conditions, clean ones first.
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
        """Problems of another kind that Figure 6(a) sets beside GSM: MATH where it is there."""
        kinds = (MATH, "TabMWP", *OUT_OF_DISTRIBUTION)
        return next((name for name in kinds if name in self.problems), UNSEEN)


def check_pairs(mine: OwnModels) -> Pairs | None:
    """The pairs that ``own_base`` and its settings name, all checked; None where it is empty.

    Raises:
        FileNotFoundError: if a model, the instruction data or a set of problems is not there.
        ValueError: if something is missing or does not fit.
    """
    if not mine.own_base:
        if mine.checkpoints:
            raise ValueError("checkpoints need own_base: the model that they were fine-tuned from")
        return None
    if mine.checkpoints and mine.own_vanilla:
        raise ValueError("set own_vanilla to train pairs or checkpoints to score them, not both")
    if not mine.checkpoints and not mine.own_vanilla:
        raise ValueError(
            "own_base needs own_vanilla (instruction data) to train pairs, or checkpoints to score"
        )
    if mine.paper_model not in PAPER_MODELS:
        raise ValueError(f'paper_model must be one of {PAPER_MODELS}, got "{mine.paper_model}"')
    wanted = _wanted(mine)
    given = {name: list(models) for name, models in mine.checkpoints.items()}
    for model in (mine.own_base, *(one for models in given.values() for one in models)):
        check_model(model)
    problems, n_left_out = _problems(mine)
    for condition in wanted:
        if condition.problems and condition.problems not in problems:
            raise ValueError(
                f'"{condition.name}" needs problems of {condition.problems}: name a file or hub '
                "dataset in problem_sets"
            )
    mixtures = {} if given else _mixtures(mine, wanted, problems)
    return Pairs(problems, n_left_out, wanted, given, mixtures)


def _wanted(mine: OwnModels) -> list[Condition]:
    if mine.checkpoints:
        for name, models in mine.checkpoints.items():
            if not (isinstance(models, list) and all(isinstance(one, str) for one in models)):
                raise ValueError(f'checkpoints: "{name}" must be a list of folders or hub ids')
            if len(set(models)) < len(models):
                raise ValueError(f'checkpoints: "{name}" names a model twice')
        numbers = {name: len(models) for name, models in mine.checkpoints.items()}
        numbers = {CLEAN: numbers.pop(CLEAN, 0), **numbers}
    else:
        numbers = {
            CLEAN: mine.n_references,
            **dict.fromkeys(mine.own_conditions, mine.n_contaminated),
        }
    if numbers[CLEAN] < 2:
        raise ValueError(f'"{CLEAN}" needs two models or more: {ONE_IS_NONE}')
    if numbers.get(CONTAMINATED, 0) < 2:
        raise ValueError(
            f'"{CONTAMINATED}" needs two models or more: each is scored by a detector that never '
            "met it"
        )
    return [_condition(name, number) for name, number in numbers.items()]


def _condition(name: str, n_models: int) -> Condition:
    if name == CLEAN:
        return Condition(CLEAN, "", 0, n_models)
    found = re.fullmatch(r"(.+) x([1-9]\d*)", name)
    if not found or found[1] not in SETS:
        raise ValueError(
            f'"{name}" is no condition: "{CLEAN}", or a set and its copies such as '
            f'"{CONTAMINATED}"; sets are {", ".join(SETS)}'
        )
    return Condition(name, found[1], int(found[2]), n_models)


def _problems(mine: OwnModels) -> tuple[dict[str, Problems], dict[str, int]]:
    """Problems by set, and how many of each cannot be scored."""
    found = {}
    for name, source in mine.problem_sets.items():
        if name not in SETS:
            raise ValueError(f'problem_sets: "{name}" is no set: {", ".join(SETS)}')
        if not (isinstance(source, list) and len(source) == 4):
            raise ValueError(
                f'problem_sets: "{name}" must be [file or hub id, question column, answer column, '
                "split]; a file has no split"
            )
        dataset, question, answer, split = map(str, source)
        found[name] = _questions(dataset, split, [question, answer])
    missing = [name for name in IN_DISTRIBUTION if name not in found]
    if missing and not sources.available():
        raise FileNotFoundError(
            f'problems of {", ".join(missing)} are missing: run "make data" for the released ones, '
            "or name them in problem_sets"
        )
    if sources.available():
        released = real_problems(0, 0, SEED)
        found = {name: released[name] for name in SETS if name in released} | found
    kept = {}
    for name in [name for name in SETS if name in found]:
        # Sets of one length, such as GSM-i and its paraphrases, keep the same rows.
        n = min(mine.n_questions or len(found[name]), len(found[name]))
        found[name] = found[name].sample(n, random_state=SEED).sort_index()
        answers = found[name]["answer"].map(_in_form)
        if name == SYN:  # no score is taken on it, and the released answers are prose
            answers = answers.fillna(found[name]["answer"])
        kept[name] = found[name].assign(answer=answers).dropna().reset_index(drop=True)
        if len(kept[name]) < N_LEAST:
            raise ValueError(
                f"{name} needs at least {N_LEAST} problems whose answer is a number or ends in "
                f'"#### number", got {len(kept[name])} of {len(found[name])}'
            )
    return kept, {name: len(found[name]) - len(rows) for name, rows in kept.items()}


def _in_form(answer: str) -> str | None:
    """An answer with one number behind ``####``, or None where it has none.

    >>> _in_form("2 + 3 = 5\\n#### 5"), _in_form("1,200"), _in_form("#### 1/2")
    ('2 + 3 = 5\\n#### 5', '#### 1,200', None)
    """
    text = answer if "####" in answer else f"#### {answer}"
    tail = text.split("####")[1].strip().replace("$", "").replace(",", "")
    try:
        return text if parse_answer(text) == float(tail) else None
    except ValueError:
        return None


def _mixtures(
    mine: OwnModels, wanted: Sequence[Condition], problems: Mapping[str, Problems]
) -> dict[str, list[Mixture]]:
    """What every model reads; models of one seed share their vanilla rows, as in the lab."""
    vanilla = _questions(mine.own_vanilla, "train", mine.vanilla_columns)
    n_drawn = min(len(vanilla), mine.own_rows * max(one.n_models for one in wanted))
    rows = rows_of(vanilla.sample(n_drawn, random_state=SEED))
    return {
        one.name: [
            mix(
                rows,
                rows_of(problems[one.problems]) if one.copies else [],
                one.copies,
                mine.own_rows,
                s,
            )
            for s in range(one.n_models)
        ]
        for one in wanted
    }


def pairs_plan(mine: OwnModels, pairs: Pairs) -> pd.DataFrame:
    """What the pairs will take, before anything is trained; no weights are read.

    Returns:
        condition, n_models, dose_pct, n_rows, n_steps (of one training; empty
        for checkpoints), training_gb (weights, gradients and AdamW's moments in
        fp32, without activations), disk_gb (checkpoints, fp32), states_gb
        (hidden states held in memory), all in 1e9 bytes.
    """
    config = AutoConfig.from_pretrained(mine.own_base)
    with torch.device("meta"):  # shapes alone
        model = AutoModelForCausalLM.from_config(config)
    n_parameters = n_trained = model.num_parameters()
    if mine.lora:
        head = model.get_output_embeddings()
        linear = [m for m in model.modules() if isinstance(m, torch.nn.Linear) and m is not head]
        n_trained = sum(LORA_RANK * (m.in_features + m.out_features) for m in linear)
    shape = config.get_text_config()
    of_question = FP32_BYTES * (shape.num_hidden_layers + 2) * shape.hidden_size
    rows = []
    for one in pairs.wanted:
        sets = (*IN_DISTRIBUTION, pairs.topic) if one.name in SCORED else (SEEN, UNSEEN)
        n_questions = sum(len(pairs.problems[name]) for name in dict.fromkeys(sets))
        row = {"condition": one.name, "n_models": one.n_models}
        if mixture := next(iter(pairs.mixtures.get(one.name, ())), None):
            row |= {"dose_pct": mixture.dose_pct, "n_rows": mixture.n_rows}
            row |= {"n_steps": math.ceil(mixture.n_rows / mine.own_batch_size)}
            row |= {"training_gb": memory_gb(n_parameters, n_trained)}
            row |= {"disk_gb": one.n_models * FP32_BYTES * n_parameters / 1e9}
        rows.append(row | {"states_gb": one.n_models * n_questions * of_question / 1e9})
    columns = ["condition", "n_models", "dose_pct", "n_rows", "n_steps"]
    return pd.DataFrame(rows).reindex(columns=[*columns, "training_gb", "disk_gb", "states_gb"])


# A model against references


def own_rows(mine: OwnModels, problems: Problems) -> pd.DataFrame:
    """A model against clean references, and the references against one another.

    One half of the questions trains a detector for each pair, the other half
    tests it; the layer is located on the first half.

    Args:
        mine: target and references; these are clean models of the same architecture.
        problems: questions and answers.

    Returns:
        comparison ("target against reference" or "reference against
        reference"), n, n_models, layer, auroc_pct, folded_auroc_pct, ci_low,
        ci_high, bos ("first" or "none": what texts of the target begin with).
        The second row needs two references.
    """
    parts = {SEEN: problems[::2].reset_index(drop=True), UNSEEN: problems[1::2]}
    # One model at a time: two of 7 B parameters do not fit into most machines.
    how = {"dtype": mine.target_dtype, "bos": bos.wanted(mine.bos), **mine.cluster()}
    models, begins = [], []
    for one in (mine.target_model, *mine.reference_models):
        lm = load_causal_lm(one, **how)
        begins.append(lm.identity["bos"])
        models.append(measure(lm, parts))
        del lm
    clean = dict(enumerate(models[1:]))
    pool: dict[str, dict[int, Measured]] = {CLEAN: clean, OTHER_CLEAN: clean}
    pool["target"] = dict.fromkeys(clean, models[0])
    found = distances(models[0].states[SEEN], models[1].states[SEEN])["euclidean"][:, 1:-1]
    layer = 1 + int(np.bincount(found.argmax(axis=1)).argmax())
    comparisons = {"target against reference": ("target", CLEAN)}
    if len(clean) > 1:
        # Each reference takes the target's part once, against the next one.
        pool[OTHER_CLEAN] = {seed: clean[(seed + 1) % len(clean)] for seed in clean}
        comparisons["reference against reference"] = (OTHER_CLEAN, CLEAN)
    return pd.DataFrame(
        [
            {"comparison": name, "layer": layer}
            | dataclasses.asdict(of_pairs(pool, *conditions, layer, UNSEEN))
            | {"bos": begins[0]}
            for name, conditions in comparisons.items()
        ]
    )
