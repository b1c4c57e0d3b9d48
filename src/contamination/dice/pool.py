"""The pool of models that all experiments share: what each is trained on, and what it says.

A condition is a group of models trained on the same kind of mixture, one for
each seed. Conditions are paired by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.core.parallel import in_processes
from contamination.dice import mixtures
from contamination.dice.answers import baseline_scores
from contamination.dice.fine_tuning import fine_tune_lab
from contamination.dice.locate import states_by_layer
from contamination.dice.mixtures import MATH, SEEN, SYN, UNSEEN
from contamination.lab.training import describe
from contamination.lab.world import World
from contamination.models.causal import CausalLM, load_causal_lm

BASE, CLEAN = "base", "clean"
OTHER_CLEAN = "clean, other data"
HIGH, LOW = 5, 1  # copies: the paper's two


@dataclass(frozen=True)
class Condition:
    """What a group of models is fine-tuned on, one model for each seed from 0.

    Attributes:
        problems: set of problems it is contaminated with; "" for none.
        copies: of each of these problems.
        first_seed: added to the seeds of data and order; 100 gives other clean data.
    """

    name: str
    problems: str
    copies: int
    n_models: int
    first_seed: int = 0


def condition_name(problems: str, copies: int) -> str:
    """Name of the condition contaminated with so many copies of a set of problems."""
    return f"{problems} x{copies}"


CONTAMINATED = condition_name(SEEN, HIGH)  # against clean: the paper's pair of models
# Conditions that Table 2 compares, with the two clean models that are its control.
SCORED = (CLEAN, OTHER_CLEAN, CONTAMINATED, condition_name(SYN, HIGH))
ON_MATH = (condition_name(MATH, HIGH),)  # next to these and base, what Figure 5(b) compares


def conditions(n_models: int) -> list[Condition]:
    """The four conditions of the study, with ``n_models`` models each.

    Clean models and models contaminated with GSM-i are compared. Two controls stand beside them:
    clean models trained on other texts, and models that saw GSM-ii in the place of GSM-i.
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
    mixture: mixtures.Mixture | None = None
    n_steps: int | None = None

    @property
    def dose_pct(self) -> float | None:
        """Contamination rows in percent of all rows; None for a model made elsewhere."""
        return None if self.mixture is None else self.mixture.dose_pct


def train_pool(
    lab: World,
    base: Path,
    problems: Mapping[str, mixtures.Problems],
    vanilla: Sequence[mixtures.Row],
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
    """What is known about one model after its forward passes, by name of a set of problems.

    Attributes:
        states: last-token states, shape (n_problems, n_layers, d_model), layers as in
            ``locate.states_by_layer``.
        baselines: ``answers.baseline_scores``; may lack sets.
    """

    states: Mapping[str, np.ndarray]
    baselines: Mapping[str, pd.DataFrame]


Pool = Mapping[str, Mapping[int, ModelMeasurements]]  # condition, then seed


def measure(
    lm: CausalLM, problems: Mapping[str, mixtures.Problems], with_baselines: Sequence[str] = ()
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
    problems: Mapping[str, mixtures.Problems],
    tested_on: Sequence[str],
    centred_on: str,
    load: Callable[[Path], CausalLM] = load_causal_lm,
    processes: int | None = None,
) -> Pool:
    """States of every model, and Table 2's baselines; the base model stands under every seed.

    Models of ``SCORED`` read the sets ``tested_on``, all others GSM-i and GSM-ii, those of
    Figure 5(b) MATH as well. Baselines need the set ``centred_on`` beside the GSM sets, see
    ``experiments.taught_baselines``. ``processes`` models are measured at a time, see
    ``core.parallel.in_processes``.
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
    problems: Mapping[str, mixtures.Problems],
    with_baselines: Sequence[str],
) -> ModelMeasurements:
    return measure(load(folder), problems, with_baselines)


def paired_seeds(pool: Pool, positive: str, negative: str) -> list[int]:
    """Seeds under which both conditions have a model."""
    return sorted(set(pool[positive]) & set(pool[negative]))
