"""What can be asked of a pool of measured models: detectors, and whom they tell from whom.

Each experiment gives an :class:`~contamination.dice.detector.Auroc`; none loads a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from contamination.dice.answers import BASELINES
from contamination.dice.detector import MLP, TRAINERS, Auroc, Score, auroc_over_models
from contamination.dice.mixtures import SEEN, UNSEEN
from contamination.dice.pool import CLEAN, ModelMeasurements, Pool, paired_seeds

N_FOLDS = 4
# Where seen and unseen questions are compared, a detector is trained on one half of the questions
# and tested on the other: it scores the questions it was trained on more extremely.
ALL, TRAIN_HALF, TEST_HALF = slice(None), slice(0, None, 2), slice(1, None, 2)


def train_on(
    pairs: Sequence[tuple[ModelMeasurements, ModelMeasurements]],
    layer: int,
    method: str = MLP,
    questions: slice = ALL,
    learned_from: str = SEEN,
) -> Score:
    """A detector trained on states of (contaminated, clean) models; the paper has one pair."""
    states = [model.states[learned_from][questions, layer] for pair in pairs for model in pair]
    labels = [np.full(len(part), place % 2 == 0) for place, part in enumerate(states)]
    return TRAINERS[method](np.concatenate(states), np.concatenate(labels), 0)


def _folds(seeds: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Seeds to test, and all others."""
    for fold in np.array_split(np.array(seeds), min(N_FOLDS, len(seeds))):
        yield fold.tolist(), [seed for seed in seeds if seed not in fold]


def held_out_detectors(
    pool: Pool, condition: str, layer: int, method: str = MLP, questions: slice = ALL
) -> dict[int, Score]:
    """For each seed a detector that never met the models of that seed.

    Trained on GSM-i's states of several pairs of a contaminated and a clean
    model; the seeds are dealt into ``N_FOLDS`` folds (fewer with fewer seeds).

    Raises:
        ValueError: if there are fewer than two pairs.
    """
    seeds = paired_seeds(pool, condition, CLEAN)
    if len(seeds) < 2:
        raise ValueError(f"a test on models never met needs two pairs or more, got {len(seeds)}")
    detectors = {}
    for fold, others in _folds(seeds):
        pairs = [(pool[condition][other], pool[CLEAN][other]) for other in others]
        detectors |= dict.fromkeys(fold, train_on(pairs, layer, method, questions))
    return detectors


# Experiments


def auroc_of_seed_pairs(
    pool: Pool,
    positive: str,
    negative: str,
    layer: int,
    tested_on: str,
    method: str = MLP,
    learned_from: str = SEEN,
    tested: tuple[str, str] | None = None,
) -> Auroc:
    """The paper's protocol: each pair of models, paired by seed, has a detector of its own.

    Args:
        positive, negative: conditions that detectors are trained on.
        tested_on: set of problems whose states are scored.
        learned_from: set whose states detectors are trained on. Where it is also tested on with
            other models, as in Figure 5(b), one half of the questions trains, the other tests.
        tested: conditions that are told apart; None: those trained on, as in Table 2.
    """
    is_halved = tested is not None and learned_from == tested_on
    train, test = (TRAIN_HALF, TEST_HALF) if is_halved else (ALL, ALL)
    tested = tested or (positive, negative)
    seeds = [
        seed
        for seed in paired_seeds(pool, positive, negative)
        if all(seed in pool[name] for name in tested)
    ]
    scored = []
    for seed in seeds:
        pair = pool[positive][seed], pool[negative][seed]
        detector = train_on([pair], layer, method, train, learned_from)
        scored.append(
            [detector(pool[name][seed].states[tested_on][test, layer]) for name in tested]
        )
    n_models = len({id(pool[name][seed]) for name in tested for seed in seeds})
    positives, negatives = zip(*scored, strict=True)
    return auroc_over_models(positives, negatives, n_models)


def _over(scored: Sequence[Sequence[np.ndarray]], models: Sequence[tuple[int, ...]]) -> Auroc:
    """AUROC of pairs that share detectors: intervals draw the numbered models of each kind."""
    n_models = sum(len(set(kind)) for kind in zip(*models, strict=True))
    positives, negatives = zip(*scored, strict=True)
    return auroc_over_models(positives, negatives, n_models, models=models)


def _strangers(
    pool: Pool, detectors: Mapping[int, Score], positive: str, negative: str
) -> list[tuple[int, int]]:
    """Pairs of seeds, one of each condition, that share a detector: it met neither model."""
    return [
        (one, other)
        for one in sorted(pool[positive])
        for other in sorted(pool[negative])
        if one in detectors and detectors[one] is detectors.get(other)
    ]


def auroc_of_unmet_models(
    pool: Pool, detectors: Mapping[int, Score], positive: str, layer: int, tested_on: str
) -> Auroc:
    """A condition against clean: every pair of models that a detector met neither of."""
    models = _strangers(pool, detectors, positive, CLEAN)
    scored = [
        [
            detectors[one](pool[name][seed].states[tested_on][:, layer])
            for name, seed in ((positive, one), (CLEAN, other))
        ]
        for one, other in models
    ]
    return _over(scored, models)


def auroc_within_models(
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
        higher, lower: sets of questions; ``higher`` should score higher.
        questions: those of each set that are scored; the detector must not have
            been trained on them.
        partner: condition whose models are asked the same questions; scores
            are then differences to each that the detector never met, so that
            what the sets are by themselves falls out.
    """
    models: Sequence[tuple[int, ...]] = (
        _strangers(pool, detectors, condition, partner)
        if partner
        else [(seed,) for seed in sorted(pool[condition]) if seed in detectors]
    )

    def scores(seeds: tuple[int, ...], problems: str) -> np.ndarray:
        of_models = [
            detectors[seed](pool[name][seed].states[problems][questions, layer])
            for name, seed in zip((condition, partner), seeds, strict=False)
        ]
        return of_models[0] - of_models[1] if partner else of_models[0]

    return _over([[scores(seeds, name) for name in (higher, lower)] for seeds in models], models)


def taught_membership(pool: Pool, condition: str, layer: int) -> Auroc:
    """Membership itself as the label: are seen questions told from unseen ones at all?

    Trained on half of the seen and half of the unseen questions in some models,
    tested on the other half in models never met, so that neither a question nor
    a model occurs on both sides.
    """
    seeds = sorted(pool[condition])
    scored = []
    for fold, others in _folds(seeds):
        train = [pool[condition][other].states for other in others]
        seen, unseen = ([s[name][TRAIN_HALF, layer] for s in train] for name in (SEEN, UNSEEN))
        states = np.concatenate([*seen, *unseen])
        detector = TRAINERS[MLP](states, np.arange(len(states)) < sum(map(len, seen)))
        test = [pool[condition][one].states for one in fold]
        scored += [[detector(s[name][TEST_HALF, layer]) for name in (SEEN, UNSEEN)] for s in test]
    return _over(scored, [(seed,) for seed in seeds])


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
    positives, negatives = zip(*scored, strict=True)
    return auroc_over_models(positives, negatives, 2 * len(seeds))


def taught_baselines(pool: Pool, positive: str, tested_on: str, centred_on: str) -> Auroc:
    """Table 2's baselines with DICE's supervision: a logistic regression on the four scores.

    A model's scores are centred on its mean over a set of problems that no
    model was trained on, since a model that is surer of everything is not for
    that contaminated. Trained on GSM-i, tested on models never met.
    """
    seeds = paired_seeds(pool, positive, CLEAN)

    def centred(name: str, seed: int, problems: str) -> np.ndarray:
        scores = pool[name][seed].baselines
        return (scores[problems] - scores[centred_on].mean())[list(BASELINES)].to_numpy()

    scored, models = [], []
    for fold, others in _folds(seeds):
        parts = [centred(name, other, SEEN) for name in (positive, CLEAN) for other in others]
        is_positive = np.arange(len(parts)) < len(others)
        model = make_pipeline(StandardScaler(), LogisticRegression())
        model.fit(np.concatenate(parts), np.repeat(is_positive, [len(part) for part in parts]))
        for one, other in product(fold, repeat=2):
            pair = (positive, one), (CLEAN, other)
            scored.append([model.decision_function(centred(*of, tested_on)) for of in pair])
            models.append((one, other))
    return _over(scored, models)
