"""The pool of models that all experiments share: how each is trained, what it says, and Table 1."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as functional
from scipy import stats

from contamination.core import storage
from contamination.core.parallel import in_processes
from contamination.core.statistics import CONFIDENCE
from contamination.core.verdicts import FEWEST_MODELS
from contamination.dice import mixtures, published_tables
from contamination.dice.answers import accuracy_row, baseline_scores
from contamination.dice.detector import states_by_layer
from contamination.dice.mixtures import MATH, SEEN, SYN, UNSEEN, Mixture, Problems, Row, skill_texts
from contamination.lab.training import IGNORED, Dose, TrainingTexts, describe, recipe_for, train
from contamination.lab.world import World
from contamination.models.loading import DTYPES, write_causal_lm
from contamination.models.local import CausalLM, load_causal_lm

WARMUP_SHARE = 0.05
CODE_SCHEMA = 1  # raise it when the hub training below changes what it makes
SKILL_LEARNING_RATE = 2e-3
BLOCKS_PER_STEP = 2  # many small steps, as batches of one row are at the paper's scale
LORA_RANK, LORA_ALPHA = 16, 32


def skilled_model(lab: World, base: Path, n_rows: int, fact_copies: int, seed: int) -> Path:
    """The base of all DICE lab models, trained on ``n_rows`` problems with operands up to 9.

    And on ``fact_copies`` of each sum of two digits.
    """
    problems, facts = skill_texts(n_rows, seed)
    doses = (Dose(tuple(problems)), Dose(tuple(facts), fact_copies))
    return _train_lab(lab, base, doses, seed, SKILL_LEARNING_RATE, "cosine")


def fine_tune_lab(
    lab: World, base: Path, mixture: Mixture, seed: int, learning_rate: float
) -> Path:
    """A lab model fine-tuned on a mixture, packed into blocks; ``seed`` is that of the order."""
    doses = [Dose(mixture.vanilla)]
    if mixture.contamination:
        doses.append(Dose(mixture.contamination, mixture.copies))
    return _train_lab(lab, base, tuple(doses), seed, learning_rate, "linear")


def _train_lab(
    lab: World, base: Path, doses: tuple[Dose, ...], seed: int, learning_rate: float, schedule: str
) -> Path:
    texts = TrainingTexts((), doses, lab.tokenizer)
    parent = describe(base)
    shape = {name: parent["recipe"][name] for name in ("n_layers", "width", "n_heads", "seed")}
    steps = {"learning_rate": learning_rate, "schedule": schedule, "warmup_share": WARMUP_SHARE}
    order = {"order_seed": seed, "batch_size": BLOCKS_PER_STEP, "n_background_tokens": 0}
    recipe = recipe_for(texts, **order, **steps, parent=parent["recipe_hash"], **shape)
    return train(recipe, texts, parent=base)


# Hub models


@dataclass(frozen=True)
class Settings:
    """How a hub model is fine-tuned (the paper's for LLaMA2-7B), by AdamW, linear decay to zero."""

    learning_rate: float = 1e-5
    batch_size: int = 1
    lora: bool = False  # train low-rank adapters and merge them: less memory than the paper's way
    max_tokens: int = 1024  # longer rows are cut at their end
    dtype: str = "bfloat16"  # of the arithmetic alone, or "float32" or "float16"
    revision: str = ""  # commit of the base model
    seed: int = 42  # of the order and of the adapters
    bos: bool | None = None  # whether rows begin with that token; None as the base declares
    weight_decay: float = 0.01  # PyTorch's default; the released code has 0.0
    warmup_share: float = WARMUP_SHARE  # the released code has none for Phi-2

    def identity(self) -> dict[str, Any]:
        """What names a checkpoint: all settings, of the last two what is no default.

        So the checkpoints that the ledger names keep their names.
        """
        unsaid = {"weight_decay": Settings.weight_decay, "warmup_share": WARMUP_SHARE}
        told = dataclasses.asdict(self).items()
        return {name: value for name, value in told if value != unsaid.get(name, ...)}


def fine_tune(base: str | Path, rows: Sequence[Row], settings: Settings) -> Path:
    """Folder of a hub model (or folder) fine-tuned on rows of prompt and response; cached.

    Rows are read once each, in this order. The weights that AdamW steps on, and the checkpoint,
    are fp32, ``dtype`` that of the matrix products alone (autocast): a bfloat16 weight of 0.02 has
    no neighbour nearer than 1.2e-4, so a step at a rate of 1e-5 would round back to it.

    Raises:
        ValueError: if there is no row, one is empty, or there is no such dtype.
    """
    if not rows:
        raise ValueError("a fine-tuning needs at least one row")
    if settings.dtype not in DTYPES:
        raise ValueError(f'dtype must be one of {", ".join(DTYPES)}, got "{settings.dtype}"')
    # The dtype named here is part of the identity, and so of the checkpoint's name.
    lm = load_causal_lm(base, settings.revision or None, "float32", bos=settings.bos)
    identity: dict[str, Any] = {"identity": lm.identity, "rows": [list(row) for row in rows]}
    identity |= {"settings": settings.identity(), "code_schema": CODE_SCHEMA}
    folder = storage.cache_folder("dice", "models") / storage.hash_of(identity)[:24]

    def make() -> None:
        torch.manual_seed(settings.seed)
        model = lm.model
        if settings.lora:
            # Only this needs peft, and importing it takes seconds.
            from peft import LoraConfig, get_peft_model

            config = LoraConfig(r=LORA_RANK, lora_alpha=LORA_ALPHA, target_modules="all-linear")
            model = get_peft_model(model, config)
        _fit(model, [_tokens(lm, row, settings.max_tokens) for row in rows], settings)
        if settings.lora:
            model = model.merge_and_unload()
        with storage.atomic_folder(folder) as staged:
            write_causal_lm(lm, staged, model)

    return storage.cached("fine-tuned models", folder, make)


def _tokens(lm: CausalLM, row: Row, max_tokens: int) -> tuple[list[int], list[int]]:
    """Input ids and labels of a row; prompt and beginning-of-sequence token are not learned."""
    prompt, response = (lm.tokenizer(part, add_special_tokens=False).input_ids for part in row)
    prompt = [*lm.begin, *prompt]
    if not response:
        raise ValueError(f"a row has an empty response: {row[0][:60]!r}")
    ids = [*prompt, *response, lm.tokenizer.eos_token_id][:max_tokens]
    return ids, [*[IGNORED] * len(prompt), *ids[len(prompt) :]][:max_tokens]


def _fit(
    model: torch.nn.Module, encoded: list[tuple[list[int], list[int]]], settings: Settings
) -> None:
    """One epoch of AdamW: linear rise over the warm-up, then linear decay to zero."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(
        weights, lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    starts = range(0, len(encoded), settings.batch_size)
    n_warmup = max(1, round(settings.warmup_share * len(starts))) if settings.warmup_share else 0
    n_decay = max(1, len(starts) - n_warmup)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / max(1, n_warmup), (len(starts) - step) / n_decay)
    )
    device = next(model.parameters()).device
    arithmetic = getattr(torch, settings.dtype)
    # Small gradients vanish in fp16; where it is not enabled the scaler passes everything on.
    scaler = torch.amp.GradScaler(device.type, enabled=arithmetic == torch.float16)
    model.train()
    for start in starts:
        batch = encoded[start : start + settings.batch_size]
        length = max(len(ids) for ids, _ in batch)
        # Padding at the end of a row changes nothing: it is neither learned nor attended to.
        inputs, labels = (
            np.stack([np.pad(row, (0, length - len(row)), constant_values=fill) for row in rows])
            for rows, fill in zip(zip(*batch, strict=True), (0, IGNORED), strict=True)
        )
        input_ids = torch.from_numpy(inputs).to(device)
        seen = torch.ones_like(input_ids)  # as in CausalLM.states
        with torch.autocast(device.type, arithmetic, enabled=arithmetic != torch.float32):
            logits = model(input_ids=input_ids, attention_mask=seen, use_cache=False).logits
        targets = torch.from_numpy(labels[:, 1:].copy()).to(device)
        loss = functional.cross_entropy(
            logits[:, :-1].flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED
        )
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        schedule.step()
    model.eval()


BASE, CLEAN = "base", "clean"
OTHER_CLEAN = "clean, other data"
HIGH = 5  # copies: the paper's larger dose


@dataclass(frozen=True)
class Condition:
    """What a group of models is fine-tuned on, one model for each seed from 0."""

    name: str
    problems: str  # set of problems it is contaminated with; "" for none
    copies: int  # of each of these problems
    n_models: int
    first_seed: int = 0  # added to the seeds of data and order; 100 gives other clean data


def condition_name(problems: str, copies: int) -> str:
    """Name of the condition contaminated with so many copies of a set of problems."""
    return f"{problems} x{copies}"


CONTAMINATED = condition_name(SEEN, HIGH)  # against clean: the paper's pair of models
# Conditions that Table 2 compares, with the two clean models that are its control.
SCORED = (CLEAN, OTHER_CLEAN, CONTAMINATED, condition_name(SYN, HIGH))
ON_MATH = (condition_name(MATH, HIGH),)  # next to these and base, what Figure 5(b) compares


def conditions(n_models: int) -> list[Condition]:
    """The four conditions of the study: clean and contaminated with GSM-i, and two controls.

    Controls are clean models trained on other texts, and models that saw GSM-ii instead.
    """
    return [
        Condition(CLEAN, "", 0, n_models),
        Condition(OTHER_CLEAN, "", 0, n_models, first_seed=100),
        *(Condition(condition_name(half, HIGH), half, HIGH, n_models) for half in (SEEN, UNSEEN)),
    ]


@dataclass(frozen=True)
class FineTunedModel:
    """A fine-tuned model: checkpoint (or hub id); mixture and steps, None if made elsewhere."""

    folder: Path
    mixture: Mixture | None = None
    n_steps: int | None = None

    @property
    def dose_pct(self) -> float | None:
        """Contamination rows in percent of all rows; None for a model made elsewhere."""
        return None if self.mixture is None else self.mixture.dose_pct


def train_pool(
    lab: World,
    base: Path,
    problems: Mapping[str, Problems],
    vanilla: Sequence[Row],
    wanted: Sequence[Condition],
    n_rows: int,
    learning_rate: float,
) -> dict[str, dict[int, FineTunedModel]]:
    """All models of the study by condition and seed, trained now or taken from the cache.

    ``n_rows`` is the number of rows of a clean mixture, drawn from ``vanilla``.
    """
    places, jobs = [], []
    for condition in wanted:
        rows = mixtures.rows_of(problems[condition.problems]) if condition.problems else []
        for seed in range(condition.n_models):
            data_seed = condition.first_seed + seed
            mixture = mixtures.mix(vanilla, rows, condition.copies, n_rows, data_seed)
            places.append((condition.name, seed))
            jobs.append((lab, base, mixture, data_seed, learning_rate))
    pool: dict[str, dict[int, FineTunedModel]] = {condition.name: {} for condition in wanted}
    folders = in_processes(fine_tune_lab, jobs)
    for (name, seed), (_, _, mixture, *_), folder in zip(places, jobs, folders, strict=True):
        pool[name][seed] = FineTunedModel(folder, mixture, describe(folder)["n_steps"])
    return pool


@dataclass(frozen=True)
class ModelMeasurements:
    """What is known about one model after its forward passes, by name of a set of problems."""

    states: Mapping[str, np.ndarray]  # (n_problems, n_layers, d_model), ``states_by_layer``
    baselines: Mapping[str, pd.DataFrame]  # ``answers.baseline_scores``; may lack sets


Pool = Mapping[str, Mapping[int, ModelMeasurements]]  # condition, then seed


def measure(
    lm: CausalLM, problems: Mapping[str, Problems], with_baselines: Sequence[str] = ()
) -> ModelMeasurements:
    """One model's states on every set of problems, and the baselines on some."""
    # All prompts at once, so that batches hold little padding.
    names = list(problems)
    prompts = [prompt for name in names for prompt in mixtures.prompts_of(problems[name])]
    ends = np.cumsum([len(problems[name]) for name in names])[:-1]
    states = dict(zip(names, np.split(states_by_layer(lm, prompts), ends), strict=True))
    return ModelMeasurements(
        states, {name: baseline_scores(lm, problems[name]) for name in with_baselines}
    )


def measure_pool(
    trained: Mapping[str, Mapping[int, FineTunedModel]],
    base: Path,
    problems: Mapping[str, Problems],
    tested_on: Sequence[str],
    centred_on: str,
    load: Callable[[Path], CausalLM] = load_causal_lm,
    processes: int | None = None,
) -> Pool:
    """States of every model, and Table 2's baselines; the base model is under every seed.

    Models of ``SCORED`` read the sets ``tested_on``, all others GSM-i and GSM-ii, those of
    Figure 5(b) MATH as well. Baselines are of the GSM sets and of ``centred_on``
    (``experiments.taught_baselines``). ``processes`` as ``core.parallel.in_processes``.
    """
    halves = {name: problems[name] for name in (SEEN, UNSEEN)}
    with_math = halves | {name: problems[name] for name in (MATH,) if name in problems}
    sets = {name: problems[name] for name in tested_on}
    scored = [*mixtures.IN_DISTRIBUTION, centred_on]
    places, jobs = [], []
    for condition, models in trained.items():
        read = with_math if condition in ON_MATH else halves
        asked = (sets, scored) if condition in SCORED else (read, ())
        for seed, model in models.items():
            places.append((condition, seed))
            jobs.append((load, model.folder, *asked))
    *measured, of_base = in_processes(
        _measure_folder, [*jobs, (load, base, with_math, ())], processes
    )
    pool: dict[str, dict[int, ModelMeasurements]] = {condition: {} for condition in trained}
    for (condition, seed), measurements in zip(places, measured, strict=True):
        pool[condition][seed] = measurements
    return pool | {BASE: dict.fromkeys(pool[CLEAN], of_base)}


def _measure_folder(
    load: Callable[[Path], CausalLM],
    folder: Path,
    problems: Mapping[str, Problems],
    with_baselines: Sequence[str],
) -> ModelMeasurements:
    return measure(load(folder), problems, with_baselines)


def paired_seeds(pool: Pool, *conditions: str) -> list[int]:
    """Seeds under which all conditions have a model."""
    return sorted(set.intersection(*(set(pool[name]) for name in conditions)))


DOSE_NAMES = {0: "OpenOrca 100%", 1: "{} 2%", HIGH: "{} 10%"}  # as Table 1 prints them


def within_floor(accuracy_pct: float, floor_pct: Sequence[float]) -> bool:
    """Whether clean models of this mean accuracy, percent, could be seen to gain and to fall."""
    return bool(floor_pct[0] <= accuracy_pct <= floor_pct[1])


def check_floor(accuracies_pct: Sequence[float], floor_pct: Sequence[float]) -> float:
    """Mean accuracy of the clean models, in percent.

    Raises:
        ValueError: if it leaves no room: nothing could be inflated, or seen to fall.
    """
    mean = float(np.mean(accuracies_pct))
    if not within_floor(mean, floor_pct):
        raise ValueError(
            f"the clean models answer {mean:.0f} % of GSM-i and GSM-ii, outside {floor_pct[0]:g} "
            f"to {floor_pct[1]:g} %: change n_skill_rows, or set floor_pct to accept it"
        )
    return mean


def accuracy_rows(
    trained: Mapping[str, Mapping[int, FineTunedModel]],
    problems: Mapping[str, Problems],
    names: Sequence[str],
    max_new_tokens: int,
    conditions: Sequence[Condition],
    load: Callable[[Path], CausalLM] = load_causal_lm,
    paper_model: str = "LLaMA2-7B",
    processes: int | None = None,
) -> pd.DataFrame:
    """Accuracy of every model (condition, seed) on the sets of these names (benchmark).

    Columns of ``answers.accuracy_row``, dose_pct and n_steps of the training, and paper, the
    printed cell of Table 1's base model ``paper_model`` ("" for none), empty where there is none.
    ``processes`` as ``core.parallel.in_processes``.
    """
    printed = published_tables.printed_accuracy(paper_model)
    jobs = [
        (load, model.folder, [problems[name] for name in names], max_new_tokens)
        for condition in conditions
        for model in trained[condition.name].values()
    ]
    answered = iter(in_processes(_answer_rows, jobs, processes))
    rows = []
    for condition in conditions:
        for seed, model in trained[condition.name].items():
            for name, answers in zip(names, next(answered), strict=True):
                training = DOSE_NAMES.get(condition.copies, "").format(condition.problems)
                is_paper = condition.name != OTHER_CLEAN
                rows.append(
                    {"condition": condition.name, "seed": seed, "benchmark": name}
                    | {"dose_pct": model.dose_pct, "n_steps": model.n_steps}
                    | answers
                    | {"paper": printed.get((training, name)) if is_paper else None}
                )
    return pd.DataFrame(rows)


def _answer_rows(
    load: Callable[[Path], CausalLM], folder: Path, sets: Sequence[Problems], max_new_tokens: int
) -> list[dict]:
    """``accuracy_row`` of one model on each set."""
    lm = load(folder)
    return [accuracy_row(lm, one, max_new_tokens) for one in sets]


def gains(accuracy: pd.DataFrame) -> pd.DataFrame:
    """What contamination adds to the mean accuracy of clean models, in points.

    Returns:
        condition, reference_pct (mean accuracy of the clean models on GSM-i and GSM-ii), n_models,
        gain_seen, gain_fresh (:func:`seen_and_fresh`), inflation_points (their difference: what of
        the score is false) with ci_low and ci_high, Welch's 95 % over models, and p of no
        inflation: empty for clean models and with fewer than five models of either kind.
    """
    kind = accuracy["benchmark"].map({SEEN: "gain_seen", UNSEEN: "gain_fresh"})
    means = accuracy.pivot_table("accuracy_pct", "condition", kind, sort=False)
    means = means.reindex(columns=["gain_seen", "gain_fresh"])
    gaps = _gaps(accuracy).groupby("condition")["gap"].agg(list).map(np.array)
    rows = []
    for name in means.index.drop(CLEAN):
        is_exchanged = seen_and_fresh(name)[0] == UNSEEN
        own, clean = (-values if is_exchanged else values for values in gaps[[name, CLEAN]])
        low, high, p = _welch(own, clean)
        decides = name != OTHER_CLEAN and min(len(own), len(clean)) >= FEWEST_MODELS
        gained = means.loc[name] - means.loc[CLEAN]
        if is_exchanged:
            gained = gained.rename({"gain_seen": "gain_fresh", "gain_fresh": "gain_seen"})
        rows.append(
            {"condition": name, "reference_pct": means.loc[CLEAN].mean()}
            | {"n_models": len(own)}
            | gained[means.columns].to_dict()
            | {"inflation_points": np.mean(own) - np.mean(clean), "ci_low": low, "ci_high": high}
            | {"p": p if decides else np.nan}
        )
    return pd.DataFrame(rows)


def seen_and_fresh(condition: str) -> tuple[str, str]:
    """The set whose score a condition may inflate, and the set that it is compared with.

    >>> seen_and_fresh("GSM-ii x5"), seen_and_fresh("GSM-i-Syn x5")
    (('GSM-ii', 'GSM-i'), ('GSM-i', 'GSM-ii'))
    """
    return (UNSEEN, SEEN) if condition.startswith(f"{UNSEEN} x") else (SEEN, UNSEEN)


def _welch(values: Sequence[float], others: Sequence[float]) -> tuple[float, float, float]:
    """95 % t interval of a difference of means and p of none; no width without any spread."""
    if min(len(values), len(others)) < 2:
        return np.nan, np.nan, np.nan
    difference = float(np.mean(values) - np.mean(others))
    squares = [np.var(group, ddof=1) / len(group) for group in (values, others)]
    if not sum(squares):
        return difference, difference, float(difference == 0)
    # By hand: scipy warns where one of the two has no spread, which few questions make likely.
    n_less_1 = len(values) - 1, len(others) - 1
    df = sum(squares) ** 2 / sum(s**2 / n for s, n in zip(squares, n_less_1, strict=True))
    error = float(np.sqrt(sum(squares)))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, df) * error)
    p = float(2 * stats.t.sf(abs(difference) / error, df))
    return difference - half, difference + half, p


def inflation(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Of each model the accuracy on the seen minus that on the fresh set (:func:`seen_and_fresh`).

    The mean gap of the clean models, what the sets differ in difficulty, is taken off.
    """
    wide = _gaps(accuracy)
    of_clean = wide.groupby("condition")["gap"].mean()[CLEAN]
    is_exchanged = wide["condition"].map(lambda name: seen_and_fresh(name)[0] == UNSEEN)
    gaps = wide["gap"] - of_clean
    wide["gap_points"] = gaps.where(~is_exchanged, -gaps)
    wide["accuracy_seen_pct"] = wide[SEEN].where(~is_exchanged, wide[UNSEEN])
    wide["accuracy_fresh_pct"] = wide[UNSEEN].where(~is_exchanged, wide[SEEN])
    columns = ["condition", "seed", "accuracy_seen_pct", "accuracy_fresh_pct", "gap_points"]
    return wide[columns].rename_axis(columns=None)


def _gaps(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of each model on both sets, and gap, GSM-i minus GSM-ii, points."""
    wide = accuracy.pivot_table("accuracy_pct", ["condition", "seed"], "benchmark", sort=False)
    wide = wide.dropna(subset=[SEEN, UNSEEN]).reset_index()
    return wide.assign(gap=wide[SEEN] - wide[UNSEEN])
