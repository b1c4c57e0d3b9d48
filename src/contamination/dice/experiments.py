"""What the pool shows, row by row: the paper's tables and figures, controls, verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from contamination.core.statistics import CONFIDENCE, end_p, with_p_adjusted
from contamination.core.verdicts import (
    CLAIMS,
    CONTROL_FAILS,
    FEWEST_MODELS,
    OPEN,
    strongest,
    verdict_column,
)
from contamination.dice import detector, published_tables
from contamination.dice.answers import BASELINES, answer, baseline_scores
from contamination.dice.detector import (
    MEAN_DIFFERENCE,
    MLP,
    TRAINERS,
    Auroc,
    Score,
    auroc_over_models,
    probability,
)
from contamination.dice.mixtures import IN_DISTRIBUTION, MATH, SEEN, UNSEEN, Problems
from contamination.dice.pool import (
    BASE,
    CLEAN,
    CONTAMINATED,
    HIGH,
    OTHER_CLEAN,
    ModelMeasurements,
    Pool,
    condition_name,
    inflation,
    paired_seeds,
    seen_and_fresh,
    within_floor,
)
from contamination.models.local import CausalLM

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

    Trained on GSM-i's states of the pairs of other folds, at most ``N_FOLDS``. ValueError if there
    are fewer than two pairs.
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
    seeds = paired_seeds(pool, positive, negative, *tested)
    scored = []
    for seed in seeds:
        pair = pool[positive][seed], pool[negative][seed]
        detector = train_on([pair], layer, method, train, learned_from)
        scored.append(
            [detector(pool[name][seed].states[tested_on][test, layer]) for name in tested]
        )
    n_models = len({id(pool[name][seed]) for name in tested for seed in seeds})
    return auroc_over_models(scored, n_models=n_models)


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
    return auroc_over_models(scored, models)


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
        questions: those of each set that are scored; no detector was trained on them.
        partner: condition whose models are asked the same; scores are then differences to each
            that the detector never met, so that what the sets are by themselves falls out.
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

    return auroc_over_models(
        [[scores(seeds, name) for name in (higher, lower)] for seeds in models], models
    )


def taught_membership(pool: Pool, condition: str, layer: int) -> Auroc:
    """Membership itself as the label: are seen questions told from unseen ones at all?

    Neither a question nor a model is on both sides of training and test.
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
    return auroc_over_models(scored, [(seed,) for seed in seeds])


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
    return auroc_over_models(scored)


def taught_baselines(pool: Pool, positive: str, tested_on: str, centred_on: str) -> Auroc:
    """Table 2's baselines with DICE's supervision: a logistic regression on the four scores.

    A model's scores are centred on its mean over problems that no model saw: one that is surer of
    everything is not for that contaminated. Trained on GSM-i, tested on models never met.
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
    return auroc_over_models(scored, models)


AT_CHANCE, ABOVE_CHANCE, BELOW_MLP = "at chance", "above chance", "below the MLP"

TWO_CLEAN = "two clean models, other texts"
TWO_CLEAN_LEARNED = "the same, on the detector's training questions"
BASE_VANILLA = "base model against clean"
HELD_OUT = "models never met"
WITHIN = "seen against unseen questions, contaminated model"
WITHIN_CLEAN = "the same questions, clean model"
PAIRED = "the same questions, contaminated minus clean model"
PAIRED_CLEAN = "the same questions, clean minus clean model"
SWAPPED = "roles exchanged (GSM-ii seen, GSM-i fresh), contaminated model"
SWAPPED_CLEAN = "roles exchanged, clean model"
SWAPPED_PAIRED = "roles exchanged, contaminated minus clean model"
SWAPPED_PAIRED_CLEAN = "roles exchanged, clean minus clean model"
WITHIN_TAUGHT = "seen against unseen, detector taught membership"
WITHIN_TAUGHT_CLEAN = "the same, clean models"
LAYER_0 = "layer 0"
DIRECTION = "mean difference, models never met"
SHUFFLED = "shuffled labels"
BASELINE = "baselines taught alike, centred per model"
BASELINE_CLEAN = "the same baselines, two clean models"
TOPIC = "GSM against {} questions, contaminated model (Figure 6a)"
TOPIC_CLEAN = "GSM against {} questions, clean model"

# What would be found if the detector detected contamination, written before any number; all other
# controls are expected at chance.
_ABOVE = (HELD_OUT, WITHIN, PAIRED, SWAPPED, SWAPPED_PAIRED, WITHIN_TAUGHT, TOPIC)
EXPECTED = dict.fromkeys(_ABOVE, ABOVE_CHANCE) | {DIRECTION: BELOW_MLP}


def control_row(
    control: str, auroc: Auroc, layer: int | None, mlp: Auroc | None = None, expected: str = ""
) -> dict:
    """One row of ``dice_controls.csv``.

    ``layer`` is None where no state is read. ``mlp`` is the MLP's AUROC on the same, for what is
    expected below it; ``expected`` a key of ``EXPECTED`` if ``control`` is none itself. holds is
    :func:`came_out`, empty (open) also where the interval draws fewer than five models of a kind.
    """
    expectation = EXPECTED.get(expected or control, AT_CHANCE)
    holds = None
    if not np.isnan(auroc.ci_low) and auroc.n_drawn >= FEWEST_MODELS:
        holds = came_out(expectation, auroc.ci_low, auroc.ci_high, (mlp or auroc).auroc_pct)
    row: dict[str, Any] = {"control": control, "layer": layer, "n_models": auroc.n_models}
    row |= {"n": auroc.n} | auroc.columns()
    return row | {"expected_if_detector_works": expectation, "holds": holds}


def came_out(expectation: str, low: float, high: float, mlp_pct: float = 50.0) -> bool | None:
    """Whether a control came out as expected, by its interval; None where it is open.

    An interval that excludes 50 is not at chance, and one within ten points of 50 is. An interval
    above 50 is above chance, and one that ends within ten points of 50 is not.

    >>> [came_out(AT_CHANCE, *ends) for ends in ((45, 54), (53, 57), (15, 68))]
    [True, False, None]
    >>> [came_out(ABOVE_CHANCE, *ends) for ends in ((52, 56), (41, 57), (28, 67))]
    [True, False, None]
    """
    meets, misses = {
        AT_CHANCE: (low >= 50 - SMALLEST and high <= 50 + SMALLEST, not low <= 50 <= high),
        ABOVE_CHANCE: (low > 50, high < 50 + SMALLEST),
        BELOW_MLP: (high < mlp_pct, low >= mlp_pct),
    }[expectation]
    if expectation == AT_CHANCE:
        meets = meets and not misses
    return True if meets else False if misses else None


def with_outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """``dice_controls`` for display: holds in words, "yes", "no" or "open"."""
    words = table["holds"].astype(object).map({True: "yes", False: "no"}).fillna(OPEN)
    return table.assign(holds=words)


def control_table(pool: Pool, layer: int, topic: str, centred_on: str) -> pd.DataFrame:
    """``dice_controls.csv``: all experiments on one pool.

    ``topic`` is a set of another topic, Figure 6(a)'s MATH; ``centred_on`` that of the baselines.
    """
    detectors = held_out_detectors(pool, CONTAMINATED, layer)
    directions = held_out_detectors(pool, CONTAMINATED, layer, MEAN_DIFFERENCE)
    strangers, by_line = (
        auroc_of_unmet_models(pool, each, CONTAMINATED, layer, UNSEEN)
        for each in (detectors, directions)
    )
    rows: list[tuple[Any, ...]] = [
        (TWO_CLEAN, auroc_of_seed_pairs(pool, OTHER_CLEAN, CLEAN, layer, UNSEEN), layer),
        (TWO_CLEAN_LEARNED, auroc_of_seed_pairs(pool, OTHER_CLEAN, CLEAN, layer, SEEN), layer),
        (BASE_VANILLA, auroc_of_seed_pairs(pool, CLEAN, BASE, layer, UNSEEN), layer),
        (HELD_OUT, strangers, layer),
        *((name, auroc, layer) for name, auroc in _membership(pool, layer)),
        (LAYER_0, auroc_of_seed_pairs(pool, CONTAMINATED, CLEAN, 0, UNSEEN), 0),
        (DIRECTION, by_line, layer, strangers),
        (SHUFFLED, shuffled_labels(pool, CONTAMINATED, layer, UNSEEN), layer),
        (BASELINE, taught_baselines(pool, CONTAMINATED, UNSEEN, centred_on), None),
        (BASELINE_CLEAN, taught_baselines(pool, OTHER_CLEAN, UNSEEN, centred_on), None),
    ]
    table = [control_row(*row) for row in rows] + topic_rows(pool, detectors, layer, topic)
    return pd.DataFrame(table).astype({"layer": "Int64", "holds": "boolean"})


def topic_rows(pool: Pool, detectors: Mapping[int, Score], layer: int, topic: str) -> list[dict]:
    """Figure 6(a): GSM questions against those of a topic, in contaminated and in clean models.

    ``detectors`` are of ``experiments.held_out_detectors``, so none has met its model.
    """
    rows = []
    for expected, condition in ((TOPIC, CONTAMINATED), (TOPIC_CLEAN, CLEAN)):
        auroc = auroc_within_models(pool, detectors, condition, layer, UNSEEN, topic)
        rows.append(control_row(expected.format(topic), auroc, layer, expected=expected))
    return rows


def _membership(pool: Pool, layer: int) -> Iterator[tuple[str, Auroc]]:
    """Seen against unseen questions, with either half of the problems in the role of the seen.

    One detector serves both roles. It was trained on GSM-i and may favour GSM-i, but then
    it does so for every model.
    """
    half = held_out_detectors(pool, CONTAMINATED, layer, questions=TRAIN_HALF)
    roles = {
        (SEEN, UNSEEN): (WITHIN, WITHIN_CLEAN, PAIRED, PAIRED_CLEAN),
        (UNSEEN, SEEN): (SWAPPED, SWAPPED_CLEAN, SWAPPED_PAIRED, SWAPPED_PAIRED_CLEAN),
    }
    for (read, fresh), names in roles.items():
        of_role = condition_name(read, HIGH)
        pairs = (of_role, ""), (CLEAN, ""), (of_role, CLEAN), (OTHER_CLEAN, CLEAN)
        for name, (models, partner) in zip(names, pairs, strict=True):
            asked = read, fresh, TEST_HALF, partner
            yield name, auroc_within_models(pool, half, models, layer, *asked)
    for name, condition in ((WITHIN_TAUGHT, CONTAMINATED), (WITHIN_TAUGHT_CLEAN, CLEAN)):
        yield name, taught_membership(pool, condition, layer)


TOP_K = 50  # of the paper's sampling
PAPER_LAYERS = {CONTAMINATED: 29, condition_name(MATH, HIGH): 30}  # Figure 4, LLaMA2-7B
FLAG_THRESHOLD = 0.5  # Figure 6(a) reads predictions above it as contaminated
Distances = Mapping[int, Mapping[str, np.ndarray]]  # seed of a pair of models, then the distance


# Figure 4


def layer_rows(pool: Pool, condition: str, dataset: str = SEEN) -> pd.DataFrame:
    """Rows of ``dice_layers.csv``: where models of a condition differ most from clean ones.

    Paired by seed, on the prompts of ``dataset``. located is the layer by the paper's rule,
    null_mean the mean distance of two clean models. Of located layers also share_from_training,
    how much of the distance two clean models do not have (mean over pairs with the 95 % t
    interval), and p of one half: empty with fewer than five pairs.
    """
    values, null = (
        {
            seed: detector.distances(
                pool[name][seed].states[dataset], pool[CLEAN][seed].states[dataset]
            )
            for seed in paired_seeds(pool, name, CLEAN)
        }
        for name in (condition, OTHER_CLEAN)
    )
    about = {"model": condition, "dataset": dataset, "n_models": 2 * len(values)}
    return _layer_table(values, null, about, PAPER_LAYERS.get(condition))


def layer_rows_all_tokens(
    pair: tuple[CausalLM, CausalLM],
    null: tuple[CausalLM, CausalLM],
    prompts: Sequence[str],
    condition: str,
) -> pd.DataFrame:
    """As :func:`layer_rows` for one pair, by the released code's norm over all tokens."""
    values, nulls = ({0: detector.distances_all_tokens(*both, prompts)} for both in (pair, null))
    return _layer_table(values, nulls, {"model": condition, "dataset": SEEN, "n_models": 2})


def _layer_table(
    pairs: Distances, null: Distances, about: Mapping[str, object], paper_layer: int | None = None
) -> pd.DataFrame:
    rows = []
    for name in next(iter(pairs.values())):
        values, nulls = (np.concatenate([one[name] for one in of.values()]) for of in (pairs, null))
        located = detector.commonest_layer(values)
        seeds = [seed for seed in pairs if seed in null]
        own, other = (
            np.array([of[seed][name][:, located].mean() for seed in seeds]) for of in (pairs, null)
        )
        with np.errstate(invalid="ignore"):  # two equal models lie nowhere apart
            of_located = _share_from_training(1 - other / own)
        for layer in range(values.shape[1] - 1):  # without the normed states
            mean, null_mean = (float(part[:, layer].mean()) for part in (values, nulls))
            is_located = layer == located
            rows.append(
                dict(about)
                | {"layer": layer, "distance": name, "n": len(values), "mean": mean}
                | {"null_mean": null_mean, "located": is_located, "paper_layer": paper_layer}
                | (of_located if is_located else dict.fromkeys(of_located))
            )
    numbers = dict.fromkeys(["share_from_training", "ci_low", "ci_high", "p"], float)
    return pd.DataFrame(rows).astype({"paper_layer": "Int64"} | numbers)


def _share_from_training(shares: Sequence[float]) -> dict[str, float]:
    """Mean over pairs of models with its 95 % t interval, and p of one half."""
    n, low, high, p = len(shares), np.nan, np.nan, np.nan
    mean = float(np.mean(shares)) if n else np.nan
    if n > 1:
        error = max(stats.sem(shares), 1e-12)
        low, high = stats.t.interval(CONFIDENCE, n - 1, mean, error)
        p = float(2 * stats.t.sf(abs(mean - 0.5) / error, n - 1)) if n >= FEWEST_MODELS else p
    return {"share_from_training": mean, "ci_low": low, "ci_high": high, "p": p}


def located_layer(layers: pd.DataFrame) -> int:
    """The located layer of one condition by the paper's rule: Euclidean distance, last token."""
    rows = layers[(layers["distance"] == detector.EUCLIDEAN) & layers["located"]]
    return int(rows["layer"].iloc[0])


# Table 2 and Figure 5


def auroc_rows(pool: Pool, condition: str, layer: int) -> list[dict]:
    """Rows of ``dice_auroc.csv``: a condition against clean by the paper's protocol (Table 2)."""
    printed = published_tables.printed_auroc()
    pair = condition, CLEAN
    seeds = paired_seeds(pool, *pair)
    first = pool[condition][seeds[0]]
    rows = []
    for tested_on in [name for name in IN_DISTRIBUTION if name in first.states]:
        aurocs: dict[str, tuple[int | None, Auroc]] = {
            method: (layer, auroc_of_seed_pairs(pool, *pair, layer, tested_on, method))
            for method in (MLP, MEAN_DIFFERENCE)
        }
        for method in first.baselines.get(tested_on, ()):
            scored = [
                [pool[name][seed].baselines[tested_on][method] for name in pair] for seed in seeds
            ]
            aurocs[method] = None, auroc_over_models(scored)
        for method, measured in aurocs.items():
            row = _auroc_row(condition, tested_on, pair, method, *measured)
            training = condition.removesuffix(f" x{HIGH}")
            rows.append(row | {"paper": printed.get((training, tested_on, method))})
    return rows


def add_clean_difference(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 2's rows with how far each lies above two clean models that were scored alike.

    Returns:
        the columns of ``rows``; two_clean_pct, the folded AUROC of two clean models (which comes
        first is chance); difference_pct with difference_low and difference_high, from the 95 %
        intervals of both (root of the sum of squares); and p of no difference, by Student's t,
        empty with fewer than five pairs of models. All of it is empty for clean models, and
        outside the family of tests: DICE and the mean difference, asked about GSM-i and GSM-ii.
    """
    keys, is_clean = ["tested_on", "method"], rows["trained_on"].eq(OTHER_CLEAN)
    is_tested = rows["method"].isin([MLP, MEAN_DIFFERENCE]) & rows["tested_on"].isin([SEEN, UNSEEN])
    numbers = ["auroc_pct", "folded_auroc_pct", "ci_low", "ci_high", "n_models"]
    clean = rows[is_clean & is_tested].set_index(keys)[numbers].astype(float)
    clean = clean.reindex(pd.MultiIndex.from_frame(rows[keys])).set_index(rows.index)
    clean.loc[is_clean] = np.nan  # they are the control and have none
    value, of_clean = rows["auroc_pct"], clean["folded_auroc_pct"]
    is_turned = clean["auroc_pct"] < 50
    low = clean["ci_low"].mask(is_turned, 100 - clean["ci_high"])
    high = clean["ci_high"].mask(is_turned, 100 - clean["ci_low"])
    difference = value - of_clean
    ends = (
        difference - np.hypot(value - rows["ci_low"], high - of_clean),
        difference + np.hypot(rows["ci_high"] - value, of_clean - low),
    )
    n_pairs = np.minimum(rows["n_models"], clean["n_models"]) // 2
    p_values = [
        end_p(*row, df=n - 1) if n >= FEWEST_MODELS else np.nan
        for *row, n in zip(difference, *ends, n_pairs, strict=True)
    ]
    found = {"two_clean_pct": of_clean, "difference_pct": difference}
    return rows.assign(**found, difference_low=ends[0], difference_high=ends[1], p=p_values)


def auroc_by_layer(
    pool: Pool, condition: str, tested: tuple[str, str], tested_on: str, learned_from: str = SEEN
) -> list[dict]:
    """Rows of ``dice_auroc.csv`` at every layer (Figure 5).

    Detectors learn to tell ``condition`` from clean and are asked to tell ``tested`` apart, the
    contaminated one first; sets as in ``experiments.auroc_of_seed_pairs``.
    """
    n_layers = next(iter(pool[condition].values())).states[tested_on].shape[1]
    others = None if tested == (condition, CLEAN) else tested
    rows = []
    for layer in range(n_layers - 1):
        auroc = auroc_of_seed_pairs(
            pool, condition, CLEAN, layer, tested_on, learned_from=learned_from, tested=others
        )
        rows.append(_auroc_row(condition, tested_on, tested, f"{MLP}, by layer", layer, auroc))
    return rows


def _auroc_row(
    trained_on: str, tested_on: str, tested: Sequence[str], method: str, layer: int | None,
    auroc: Auroc,
) -> dict:  # fmt: skip
    row: dict[str, Any] = {"trained_on": trained_on, "tested_on": tested_on}
    row |= {"positive_model": tested[0], "negative_model": tested[1]}
    row |= {"method": method, "layer": layer, "n": auroc.n, "n_models": auroc.n_models}
    return row | auroc.columns() | {"paper": None}


# Figure 6


def flags(pool: Pool, layer: int) -> pd.DataFrame:
    """Mean predicted probability of contamination (0 to 1), for every model and set that it read.

    By the detector that met no model of that seed.
    """
    detectors = held_out_detectors(pool, CONTAMINATED, layer)
    return pd.DataFrame(
        [
            {"condition": name, "seed": seed, "benchmark": benchmark}
            | {"flag": float(probability(detectors[seed](states[:, layer])).mean())}
            for name, models in pool.items()
            if name != BASE
            for seed, model in models.items()
            if seed in detectors
            for benchmark, states in model.states.items()
        ]
    )


def correlation_rows(flagged: pd.DataFrame, accuracy: pd.DataFrame) -> list[dict]:
    """Rows of ``dice_own_correlation.csv``: flag against accuracy, and against inflation."""
    merged = flagged.merge(accuracy, on=["condition", "seed", "benchmark"])
    rows = [
        {"source": "own, accuracy", "benchmark": benchmark, "n_models": len(group)}
        | {"r_squared": published_tables.r_squared(group["accuracy_pct"], group["flag"])}
        for benchmark, group in merged.groupby("benchmark", sort=False)
    ]
    gaps = inflation(accuracy).merge(
        flagged[flagged["benchmark"] == SEEN], on=["condition", "seed"]
    )
    rows.append(
        {"source": "own, gap seen minus fresh", "benchmark": SEEN, "n_models": len(gaps)}
        | {"r_squared": published_tables.r_squared(gaps["gap_points"], gaps["flag"])}
    )
    return rows


def with_flags(gains: pd.DataFrame, flagged: pd.DataFrame) -> pd.DataFrame:
    """``dice_inflation.csv``: how much each condition gains, and how often it is flagged on GSM-i.

    To ``pool.gains`` come flag (0 to 1, empty where no detector met the condition) and flagged,
    whether it is above the paper's threshold. Where GSM-ii was seen GSM-i is asked about all the
    same: clean models have other flags on GSM-ii, so flags could not be compared.
    """
    means = flagged[flagged["benchmark"] == SEEN].groupby("condition")["flag"].mean()
    flag = gains["condition"].map(means)
    return gains.assign(flag=flag, flagged=flag.gt(FLAG_THRESHOLD).where(flag.notna()))


# Figure 7


def decoding_rows(
    lms: Mapping[str, CausalLM],
    pool: Pool,
    problems: Mapping[str, Problems],
    layer: int,
    temperatures: Sequence[float],
    top_ks: Sequence[int],
    max_new_tokens: int,
) -> pd.DataFrame:
    """AUROC of DICE and of the baselines by how answers are sampled (Figure 7), on GSM-i.

    The baselines read what the model wrote, DICE the prompt alone, so its line is flat by
    construction. The detector is that of the first contaminated and the first clean model.

    Args:
        lms: condition to its first model, the base model among them: others are told from it.
        pool: their states, and those of the detector's models.
        temperatures: of sampling from the ``TOP_K`` likeliest tokens; 0 is greedy.
        top_ks: numbers of likeliest tokens sampled from at temperature 1.
    """
    detector = train_on([(pool[CONTAMINATED][0], pool[CLEAN][0])], layer)
    states = {name: detector(pool[name][0].states[SEEN][:, layer]) for name in lms}
    settings = [("temperature", value, value, TOP_K) for value in temperatures]
    settings += [("top-k", value, 1.0, value) for value in top_ks]
    rows = []
    for setting, value, temperature, top_k in settings:
        scored = {}
        for name, lm in lms.items():
            sampling = {"temperature": temperature, "top_k": top_k}
            written = answer(lm, problems[SEEN], max_new_tokens, **sampling)
            # An empty answer has no token to score: it counts as its end-of-line.
            texts = problems[SEEN].assign(answer=[text or "\n" for text in written])
            scores = baseline_scores(lm, texts)
            scored[name] = {MLP: states[name]} | {m: scores[m].to_numpy() for m in BASELINES}
        for name in [name for name in lms if name != BASE]:
            for method, above in scored[name].items():
                auroc = auroc_over_models([[above, scored[BASE][method]]]).auroc_pct
                rows.append((name, setting, value, method, auroc))
    return pd.DataFrame(rows, columns=["model", "setting", "value", "method", "auroc_pct"])


ANY_FLOOR = (0.0, 100.0)
SMALLEST = CLAIMS["dice_auroc"].smallest_effect  # points of AUROC that would matter


def with_verdicts(
    gains: pd.DataFrame,
    layers: pd.DataFrame,
    aurocs: pd.DataFrame,
    floor_pct: Sequence[float] = ANY_FLOOR,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Tables 1 and 2 and Figure 4 with p_adjusted (Holm over all three) and verdict.

    Of ``pool.gains``, :func:`layer_rows` and :func:`add_clean_difference`. ``floor_pct`` bounds the
    accuracy of clean models that can be seen to gain and to fall.
    """
    gains, layers, aurocs = with_p_adjusted(gains, layers, aurocs)
    return judge_inflation(gains, floor_pct), judge_layers(layers), judge_aurocs(aurocs)


def judge_inflation(gains: pd.DataFrame, floor_pct: Sequence[float] = ANY_FLOOR) -> pd.DataFrame:
    """``gains`` with the verdict: is the score inflated, by more than other clean models'?

    The control fails where the clean models lie outside ``floor_pct``: those that answer nothing
    cannot be inflated. The verdict of clean models is blank. Where the sets exchange roles, they
    do so for clean models as well.
    """
    is_clean = gains["condition"].eq(OTHER_CLEAN)
    controls = gains.loc[is_clean, ["ci_low", "ci_high"]].to_numpy().tolist()
    words = []
    for row in gains.itertuples():
        is_exchanged = seen_and_fresh(row.condition)[0] == UNSEEN
        of_clean = [(-high, -low) for low, high in controls] if is_exchanged else controls
        control = strongest(of_clean, row.ci_low)
        word = OPEN  # without a p there were too few models, which decide nothing
        if not np.isnan(row.p):
            ends = row.ci_low, row.ci_high
            word = CLAIMS["dice_inflation"].verdict(
                *ends, p_adjusted=row.p_adjusted, control=control
            )
        words.append(word if within_floor(row.reference_pct, floor_pct) else CONTROL_FAILS)
    return gains.assign(verdict=pd.Series(words, gains.index, dtype=object).mask(is_clean, ""))


def judge_layers(layers: pd.DataFrame) -> pd.DataFrame:
    """``layers`` with the verdict on more than a half, at located layers alone."""
    words = verdict_column(layers, CLAIMS["dice_layers"], where=layers["located"].astype(bool))
    return layers.assign(verdict=words)


def judge_aurocs(aurocs: pd.DataFrame) -> pd.DataFrame:
    """``aurocs`` with the verdict on the difference; blank where there is none.

    An AUROC ends at 100 %. Where two clean models leave no room for the smallest difference that
    would matter, the verdict is open.
    """
    ends, is_asked = ("difference_low", "difference_high"), aurocs["difference_pct"].notna()
    can_reject = 100 - aurocs["two_clean_pct"] >= SMALLEST
    words = verdict_column(
        aurocs, CLAIMS["dice_auroc"], *ends, can_reject=can_reject, where=is_asked
    )
    return aurocs.assign(verdict=words)
