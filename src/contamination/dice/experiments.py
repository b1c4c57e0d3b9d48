"""What can be asked of a pool of measured models: detectors, and whom they tell from whom.

Each experiment gives an :class:`~contamination.dice.detector.Auroc`; none loads a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from contamination.dice.answers import BASELINES
from contamination.dice.detector import MLP, TRAINERS, Auroc, Score, auroc_over_models
from contamination.dice.mixtures import SEEN, UNSEEN
from contamination.dice.pool import CLEAN, Measured, Pool, paired_seeds

N_FOLDS = 4
# Where seen and unseen questions are compared, a detector is trained on one half of the questions
# and tested on the other: it scores the questions it was trained on more extremely.
ALL, TRAIN_HALF, TEST_HALF = slice(None), slice(0, None, 2), slice(1, None, 2)


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
    partner: str = "",
) -> Auroc:
    """Two sets of questions inside one model, by a detector that never met the model.

    Args:
        pool: measured models.
        detectors: one for each seed.
        condition: the models.
        layer: place of the layer.
        higher, lower: sets of questions; ``higher`` should score higher.
        questions: those of each set that are scored; the detector must not have
            been trained on them.
        partner: condition whose model of the same seed is asked the same
            questions; scores are then differences to it, so that what the sets
            are by themselves falls out.
    """
    seeds = [seed for seed in sorted(pool[condition]) if seed in detectors]

    def scores(seed: int, problems: str) -> np.ndarray:
        found = [
            detectors[seed](pool[name][seed].states[problems][questions, layer])
            for name in (condition, partner)
            if name
        ]
        return found[0] - found[1] if partner else found[0]

    scored = [[scores(seed, problems) for problems in (higher, lower)] for seed in seeds]
    n_models = len(seeds) * (2 if partner else 1)
    return auroc_over_models(*zip(*scored, strict=True), n_models)


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
