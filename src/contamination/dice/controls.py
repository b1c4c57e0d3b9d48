"""Experiments that say what the detector detects, each with its expectation written first.

"Expected" is what should be found if DICE sees contamination and not merely a
difference between two models. Every experiment takes the states that
:func:`measure` left; no model is loaded again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from contamination.dice.answers import BASELINES, baseline_scores
from contamination.dice.detector import (
    MEAN_DIFFERENCE,
    MLP,
    TRAINERS,
    Auroc,
    Score,
    auroc_over_models,
)
from contamination.dice.locate import states_by_layer
from contamination.dice.mixtures import (
    SEEN,
    UNSEEN,
    Problems,
    prompts_of,
)
from contamination.models.causal import CausalLM

BASE, CLEAN, OTHER_CLEAN = "base", "clean", "clean, other data"
AT_CHANCE, ABOVE_CHANCE, BELOW_MLP = "at chance", "above chance", "below the MLP"

TWO_CLEAN = "two clean models"
BASE_VANILLA = "base model against clean"
HELD_OUT = "models never met"
WITHIN = "seen against unseen questions, contaminated model"
WITHIN_CLEAN = "the same questions, clean model"
WITHIN_TAUGHT = "seen against unseen, detector taught membership"
WITHIN_TAUGHT_CLEAN = "the same, clean models"
LEGITIMATE = "trained on the train split"
FORMAT_ONLY = "trained on the answer format alone"
ANOTHER = "contaminated with another task"
LAYER_0 = "layer 0"
DIRECTION = "mean difference, models never met"
SHUFFLED = "shuffled labels"
DOSE = "dose never trained on, copies: {}"
BASELINE = "baselines taught alike, centred per model"
TOPIC = "GSM against {} questions, contaminated model (Figure 6a)"
TOPIC_CLEAN = "GSM against {} questions, clean model"

# What would be found if the detector detected contamination, written before any number.
EXPECTED = {
    TWO_CLEAN: AT_CHANCE,
    BASE_VANILLA: AT_CHANCE,
    HELD_OUT: ABOVE_CHANCE,
    WITHIN: ABOVE_CHANCE,
    WITHIN_CLEAN: AT_CHANCE,
    WITHIN_TAUGHT: ABOVE_CHANCE,
    WITHIN_TAUGHT_CLEAN: AT_CHANCE,
    LEGITIMATE: AT_CHANCE,
    FORMAT_ONLY: AT_CHANCE,
    ANOTHER: AT_CHANCE,
    LAYER_0: AT_CHANCE,
    DIRECTION: BELOW_MLP,
    SHUFFLED: AT_CHANCE,
    DOSE: ABOVE_CHANCE,
    BASELINE: AT_CHANCE,
    TOPIC: ABOVE_CHANCE,
    TOPIC_CLEAN: AT_CHANCE,
}
N_FOLDS = 4
# Where seen and unseen questions are compared, a detector is trained on one half of the questions
# and tested on the other: it scores the questions it was trained on more extremely.
ALL, TRAIN_HALF, TEST_HALF = slice(None), slice(0, None, 2), slice(1, None, 2)


@dataclass(frozen=True)
class Measured:
    """What is known about one model after its forward passes.

    Attributes:
        states: name of a set of problems to last-token states, shape
            (n_problems, n_layers, d_model), layers as in ``locate.states_by_layer``.
        baselines: name of a set to ``answers.baseline_scores``; may lack sets.
    """

    states: Mapping[str, np.ndarray]
    baselines: Mapping[str, pd.DataFrame]


Pool = Mapping[str, Mapping[int, Measured]]  # condition, then seed


def measure(
    lm: CausalLM, problems: Mapping[str, Problems], with_baselines: Sequence[str] = ()
) -> Measured:
    """One model's states on every set of problems, and the baselines on some.

    Args:
        lm: the model.
        problems: name to questions and answers.
        with_baselines: names of the sets whose answers are scored too.
    """
    # All prompts at once, so that batches hold little padding.
    names = list(problems)
    prompts = [prompt for name in names for prompt in prompts_of(problems[name])]
    ends = np.cumsum([len(problems[name]) for name in names])[:-1]
    states = dict(zip(names, np.split(states_by_layer(lm, prompts), ends), strict=True))
    return Measured(states, {name: baseline_scores(lm, problems[name]) for name in with_baselines})


# Detectors


def pair_detector(
    positive: Measured, negative: Measured, layer: int, method: str = MLP, seed: int = 0
) -> Score:
    """The paper's detector: trained on GSM-i's states of one contaminated and one clean model."""
    return _train([(positive, negative)], layer, method, seed)


def held_out_detectors(
    pool: Pool,
    condition: str,
    layer: int,
    method: str = MLP,
    seed: int = 0,
    questions: slice = ALL,
) -> dict[int, Score]:
    """For each seed a detector that never met the models of that seed.

    Trained on GSM-i's states of several pairs of a contaminated and a clean
    model; the seeds are dealt into ``N_FOLDS`` folds (fewer with fewer seeds).

    Raises:
        ValueError: if there are fewer than two pairs.
    """
    seeds = paired_seeds(pool, condition, CLEAN)
    if len(seeds) < 2:
        raise ValueError(f"models never met need two pairs or more, got {len(seeds)}")
    detectors = {}
    for fold in np.array_split(np.array(seeds), min(N_FOLDS, len(seeds))):
        others = [other for other in seeds if other not in fold]
        pairs = [(pool[condition][other], pool[CLEAN][other]) for other in others]
        detector = _train(pairs, layer, method, seed, questions)
        detectors.update(dict.fromkeys(fold.tolist(), detector))
    return detectors


def paired_seeds(pool: Pool, positive: str, negative: str) -> list[int]:
    """Seeds under which both conditions have a model."""
    return sorted(set(pool[positive]) & set(pool[negative]))


def _train(
    pairs: Sequence[tuple[Measured, Measured]],
    layer: int,
    method: str,
    seed: int,
    questions: slice = ALL,
) -> Score:
    states = [model.states[SEEN][questions, layer] for pair in pairs for model in pair]
    labels = [np.full(len(part), place % 2 == 0) for place, part in enumerate(states)]
    return TRAINERS[method](np.concatenate(states), np.concatenate(labels), seed)


# Experiments


def of_pairs(
    pool: Pool, positive: str, negative: str, layer: int, tested_on: str, method: str = MLP
) -> Auroc:
    """The paper's protocol: each pair of models has a detector of its own, tested on itself.

    Args:
        pool: measured models.
        positive, negative: conditions; models are paired by seed.
        layer: place of the layer.
        tested_on: set of problems whose states are scored.
        method: "DICE" or "mean difference".
    """
    seeds = paired_seeds(pool, positive, negative)
    scored = []
    for seed in seeds:
        pair = pool[positive][seed], pool[negative][seed]
        detector = pair_detector(*pair, layer, method)
        scored.append([detector(model.states[tested_on][:, layer]) for model in pair])
    n_models = len({id(pool[name][seed]) for name in (positive, negative) for seed in seeds})
    return auroc_over_models(*zip(*scored, strict=True), n_models)


def of_strangers(
    pool: Pool,
    detectors: Mapping[int, Score],
    positive: str,
    layer: int,
    tested_on: str,
) -> Auroc:
    """A condition against clean, both scored by a detector that met neither model."""
    seeds = [seed for seed in paired_seeds(pool, positive, CLEAN) if seed in detectors]
    scored = [
        [
            detectors[seed](pool[name][seed].states[tested_on][:, layer])
            for name in (positive, CLEAN)
        ]
        for seed in seeds
    ]
    return auroc_over_models(*zip(*scored, strict=True), 2 * len(seeds))


def within_models(
    pool: Pool,
    detectors: Mapping[int, Score],
    condition: str,
    layer: int,
    higher: str,
    lower: str,
    questions: slice = ALL,
) -> Auroc:
    """Two sets of questions inside one model, by a detector that never met the model.

    ``questions`` are those of each set that are scored; the detector must not
    have been trained on them.
    """
    seeds = [seed for seed in sorted(pool[condition]) if seed in detectors]
    scored = []
    for seed in seeds:
        states = pool[condition][seed].states
        both = [states[name][questions, layer] for name in (higher, lower)]
        scored.append([detectors[seed](part) for part in both])
    return auroc_over_models(*zip(*scored, strict=True), len(seeds))


def taught_membership(pool: Pool, condition: str, layer: int, seed: int = 0) -> Auroc:
    """Membership itself as the label: are seen questions told from unseen ones at all?

    Trained on half of the seen and half of the unseen questions in some models,
    tested on the other half in models never met, so that neither a question nor
    a model occurs on both sides.
    """
    seeds = sorted(pool[condition])
    scored = []
    for fold in np.array_split(np.array(seeds), min(N_FOLDS, len(seeds))):
        train = [pool[condition][other] for other in seeds if other not in fold]
        parts = [
            [model.states[name][TRAIN_HALF, layer] for model in train] for name in (SEEN, UNSEEN)
        ]
        states = np.concatenate([part for kind in parts for part in kind])
        is_seen = np.arange(len(states)) < sum(map(len, parts[0]))
        detector = TRAINERS[MLP](states, is_seen, seed)
        scored += [
            [
                detector(pool[condition][one].states[name][TEST_HALF, layer])
                for name in (SEEN, UNSEEN)
            ]
            for one in fold
        ]
    return auroc_over_models(*zip(*scored, strict=True), len(seeds))


def shuffled_labels(pool: Pool, positive: str, layer: int, tested_on: str) -> Auroc:
    """The paper's protocol with the training labels dealt anew over the training states."""
    seeds = paired_seeds(pool, positive, CLEAN)
    scored = []
    for seed in seeds:
        pair = pool[positive][seed], pool[CLEAN][seed]
        states = np.concatenate([model.states[SEEN][:, layer] for model in pair])
        labels = np.random.default_rng(seed).permutation(np.arange(len(states)) < len(states) // 2)
        detector = TRAINERS[MLP](states, labels, seed)
        scored.append([detector(model.states[tested_on][:, layer]) for model in pair])
    return auroc_over_models(*zip(*scored, strict=True), 2 * len(seeds))


def taught_baselines(pool: Pool, positive: str, tested_on: str, centred_on: str) -> Auroc:
    """Table 2's baselines with DICE's supervision: a logistic regression on the four scores.

    A model's scores are centred on its mean over a set of problems that no
    model was trained on, since a model that is surer of everything is not for
    that contaminated. Trained on GSM-i, tested on models never met.
    """
    seeds = paired_seeds(pool, positive, CLEAN)

    def centred(name: str, seed: int, problems: str) -> np.ndarray:
        found = pool[name][seed].baselines
        return (found[problems] - found[centred_on].mean())[list(BASELINES)].to_numpy()

    scored = []
    for fold in np.array_split(np.array(seeds), min(N_FOLDS, len(seeds))):
        others = [other for other in seeds if other not in fold]
        parts = [centred(name, other, SEEN) for name in (positive, CLEAN) for other in others]
        is_positive = np.arange(len(parts)) < len(others)
        model = make_pipeline(StandardScaler(), LogisticRegression())
        model.fit(np.concatenate(parts), np.repeat(is_positive, [len(part) for part in parts]))
        scored += [
            [model.decision_function(centred(name, one, tested_on)) for name in (positive, CLEAN)]
            for one in fold.tolist()
        ]
    return auroc_over_models(*zip(*scored, strict=True), 2 * len(seeds))


def control_row(
    control: str, found: Auroc, layer: int | None, mlp: Auroc | None = None, expected: str = ""
) -> dict:
    """One row of ``dice_controls.csv``.

    Args:
        control: its name.
        found: what was measured.
        layer: place of the layer, None where no state is read.
        mlp: the MLP's AUROC on the same, for what is expected below it.
        expected: a key of ``EXPECTED`` if ``control`` is none itself.

    Returns:
        control, layer, n_models, n, auroc_pct, folded_auroc_pct, ci_low,
        ci_high, expected_if_detector_works, holds (empty without an interval):
        "at chance" where the interval holds 50, "above chance" where it lies
        above, "below the MLP" where it lies below the MLP's AUROC.
    """
    expectation = EXPECTED[expected or control]
    low, high = found.ci_low, found.ci_high
    verdicts: dict[str, Callable[[], bool]] = {
        AT_CHANCE: lambda: low <= 50 <= high,
        ABOVE_CHANCE: lambda: low > 50,
        BELOW_MLP: lambda: high < mlp.auroc_pct,
    }
    return {
        "control": control,
        "layer": layer,
        "n_models": found.n_models,
        "n": found.n,
        "auroc_pct": found.auroc_pct,
        "folded_auroc_pct": found.folded_auroc_pct,
        "ci_low": low,
        "ci_high": high,
        "expected_if_detector_works": expectation,
        "holds": None if np.isnan(low) else bool(verdicts[expectation]()),
    }


def control_table(
    pool: Pool,
    contaminated: str,
    layer: int,
    *,
    train_split: str,
    format_only: str,
    topic: str,
    centred_on: str,
    doses: Mapping[int, str] = MappingProxyType({}),
    other_tasks: Sequence[str] = (),
) -> pd.DataFrame:
    """``dice_controls.csv``: all experiments on one pool of models.

    Args:
        pool: measured models. Conditions that are not there are left out.
        contaminated: condition that takes the part of the contaminated model.
        layer: place of the located layer.
        train_split, format_only: their conditions.
        topic: set of problems of another topic, Figure 6(a)'s MATH.
        centred_on: set on which the baselines are centred.
        doses: copies to the conditions of doses no detector is trained on.
        other_tasks: conditions contaminated with something else than GSM.
    """
    detectors = held_out_detectors(pool, contaminated, layer)
    directions = held_out_detectors(pool, contaminated, layer, MEAN_DIFFERENCE)
    strangers = of_strangers(pool, detectors, contaminated, layer, UNSEEN)
    rows = [control_row(TWO_CLEAN, of_pairs(pool, OTHER_CLEAN, CLEAN, layer, UNSEEN), layer)]
    if BASE in pool:
        against_base = of_pairs(pool, CLEAN, BASE, layer, UNSEEN)
        rows.append(control_row(BASE_VANILLA, against_base, layer))
    rows.append(control_row(HELD_OUT, strangers, layer))
    halves = held_out_detectors(pool, contaminated, layer, questions=TRAIN_HALF)
    for name, condition in ((WITHIN, contaminated), (WITHIN_CLEAN, CLEAN)):
        found = within_models(pool, halves, condition, layer, SEEN, UNSEEN, TEST_HALF)
        rows.append(control_row(name, found, layer))
    for name, condition in ((WITHIN_TAUGHT, contaminated), (WITHIN_TAUGHT_CLEAN, CLEAN)):
        rows.append(control_row(name, taught_membership(pool, condition, layer), layer))
    conditions = [(LEGITIMATE, train_split), (FORMAT_ONLY, format_only)]
    conditions += [(f"{ANOTHER}: {task}", task) for task in other_tasks]
    conditions += [(DOSE.format(copies), name) for copies, name in doses.items()]
    for name, condition in conditions:
        if condition in pool:
            key = next(key for key in EXPECTED if name.startswith(key.split("{")[0]))
            found = of_strangers(pool, detectors, condition, layer, UNSEEN)
            rows.append(control_row(name, found, layer, expected=key))
    rows.append(control_row(LAYER_0, of_pairs(pool, contaminated, CLEAN, 0, UNSEEN), 0))
    found = of_strangers(pool, directions, contaminated, layer, UNSEEN)
    rows.append(control_row(DIRECTION, found, layer, strangers))
    rows.append(control_row(SHUFFLED, shuffled_labels(pool, contaminated, layer, UNSEEN), layer))
    found = taught_baselines(pool, contaminated, UNSEEN, centred_on)
    rows.append(control_row(BASELINE, found, None))
    for key, condition in ((TOPIC, contaminated), (TOPIC_CLEAN, CLEAN)):
        found = within_models(pool, detectors, condition, layer, UNSEEN, topic)
        rows.append(control_row(key.format(topic), found, layer, expected=key))
    return pd.DataFrame(rows).astype({"layer": "Int64", "holds": "boolean"})
