"""Rows of the paper's Table 2 and Figures 4 to 7, read off one pool of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from contamination.dice import published_tables
from contamination.dice.accuracy import SMALL_GAP, inflation
from contamination.dice.answers import BASELINES, answer, baseline_scores
from contamination.dice.detector import MEAN_DIFFERENCE, MLP, Auroc, auroc_over_models, probability
from contamination.dice.experiments import held_out_detectors, of_pairs, pair_detector
from contamination.dice.locate import (
    ALL_TOKENS,
    EUCLIDEAN,
    commonest_layer,
    distances,
    distances_all_tokens,
)
from contamination.dice.mixtures import IN_DISTRIBUTION, MATH, SEEN, Problems
from contamination.dice.pool import BASE, CLEAN, CONTAMINATED, OTHER_CLEAN, Pool, paired_seeds
from contamination.models.causal import CausalLM

TOP_K = 50  # of the paper's sampling
PAPER_LAYERS = {SEEN: 29, MATH: 30}  # Figure 4, LLaMA2-7B contaminated with this
FLAG_THRESHOLD = 0.5  # Figure 6(a) reads predictions above it as contaminated


# Figure 4


def layer_rows(pool: Pool, condition: str, contamination: str, dataset: str = SEEN) -> pd.DataFrame:
    """Rows of ``dice_layers.csv``: where contaminated and clean models differ most.

    Args:
        pool: measured models.
        condition: the contaminated models, paired with clean ones by seed.
        contamination: set of problems they are contaminated with.
        dataset: set of problems whose prompts are read.

    Returns:
        model (the condition), dataset, n_models, layer, after_norm, distance, n,
        mean, share_argmax (share of prompts that have their largest distance
        there), null_mean (mean distance of two clean models), located (the
        commonest of these layers), paper_layer, verdict (of located layers: where
        most of the distance comes from).
    """
    values, null = (
        [
            distances(pool[name][seed].states[dataset], pool[CLEAN][seed].states[dataset])
            for seed in paired_seeds(pool, name, CLEAN)
        ]
        for name in (condition, OTHER_CLEAN)
    )
    about = {"model": condition, "dataset": dataset, "n_models": 2 * len(values)}
    stacked = (
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for parts in (values, null)
    )
    return _layer_table(*stacked, about, PAPER_LAYERS.get(contamination))


def layer_rows_all_tokens(
    pair: tuple[CausalLM, CausalLM],
    null: tuple[CausalLM, CausalLM],
    prompts: Sequence[str],
    condition: str,
    dataset: str = SEEN,
) -> pd.DataFrame:
    """As :func:`layer_rows` for one pair, by the released code's norm over all tokens."""
    values, nulls = (
        {f"{name}{ALL_TOKENS}": part for name, part in distances_all_tokens(*both, prompts).items()}
        for both in (pair, null)
    )
    return _layer_table(values, nulls, {"model": condition, "dataset": dataset, "n_models": 2})


def _layer_table(
    distances_by_name: Mapping[str, np.ndarray],
    null: Mapping[str, np.ndarray],
    about: Mapping[str, object],
    paper_layer: int | None = None,
) -> pd.DataFrame:
    rows = []
    for name, values in distances_by_name.items():
        n_largest = np.bincount(1 + values[:, 1:-1].argmax(axis=1), minlength=values.shape[1])
        for layer in range(values.shape[1]):
            after_norm = layer == values.shape[1] - 1
            is_block = layer > 0 and not after_norm
            mean, null_mean = (float(part[:, layer].mean()) for part in (values, null[name]))
            is_located = layer == commonest_layer(values)
            half = "between clean models too" if null_mean > mean / 2 else "from what was read"
            rows.append(
                dict(about)
                | {"layer": layer - after_norm, "after_norm": after_norm, "distance": name}
                | {"n": len(values), "mean": mean}
                | {"share_argmax": n_largest[layer] / len(values) if is_block else None}
                | {"null_mean": null_mean, "located": is_located, "paper_layer": paper_layer}
                | {"verdict": half if is_located else ""}
            )
    return pd.DataFrame(rows).astype({"paper_layer": "Int64", "share_argmax": float})


def located_layer(layers: pd.DataFrame) -> int:
    """The located layer by the paper's rule: Euclidean distance, last token.

    Args:
        layers: ``layer_rows`` of one condition.
    """
    rows = layers[(layers["distance"] == EUCLIDEAN) & layers["located"]]
    return int(rows["layer"].iloc[0])


# Table 2 and Figure 5


def auroc_rows(
    pool: Pool, condition: str, contamination: str, layer: int, negative: str = CLEAN
) -> list[dict]:
    """Rows of ``dice_auroc.csv``: DICE and the baselines by the paper's protocol (Table 2).

    Args:
        pool: measured models.
        condition: the contaminated models, or clean ones scored in the same way.
        contamination: the set they are contaminated with, "" for none.
        layer: place of the layer.
        negative: condition of the clean models.
    """
    printed = published_tables.printed_auroc()
    seeds = paired_seeds(pool, condition, negative)
    first = pool[condition][seeds[0]]
    rows = []
    for tested_on in [name for name in IN_DISTRIBUTION if name in first.states]:
        tested = tested_on, (condition, negative)
        for method in (MLP, MEAN_DIFFERENCE):
            auroc = of_pairs(pool, condition, negative, layer, tested_on, method)
            rows.append(_auroc_row(condition, *tested, method, layer, auroc))
        for method in first.baselines.get(tested_on, ()):
            both = [
                [pool[name][seed].baselines[tested_on][method] for seed in seeds]
                for name in (condition, negative)
            ]
            auroc = auroc_over_models(*both, 2 * len(seeds))
            rows.append(_auroc_row(condition, *tested, method, None, auroc))
    for row in rows:
        row["paper"] = printed.get((contamination, row["tested_on"], row["method"]))
    return rows


def auroc_by_layer(
    pool: Pool, condition: str, tested: tuple[str, str], tested_on: str, learnt_from: str = SEEN
) -> list[dict]:
    """Rows of ``dice_auroc.csv`` at every layer (Figure 5).

    Args:
        pool: measured models.
        condition: models that detectors are trained to tell from clean ones.
        tested: conditions that are told apart, the contaminated one first.
        tested_on, learnt_from: as in ``experiments.of_pairs``.
    """
    n_layers = next(iter(pool[condition].values())).states[tested_on].shape[1]
    others = None if tested == (condition, CLEAN) else tested
    rows = []
    for layer in range(n_layers - 1):
        auroc = of_pairs(
            pool, condition, CLEAN, layer, tested_on, learnt_from=learnt_from, tested=others
        )
        rows.append(_auroc_row(condition, tested_on, tested, f"{MLP}, by layer", layer, auroc))
    return rows


def _auroc_row(
    trained_on: str, tested_on: str, tested: Sequence[str], method: str, layer: int | None,
    auroc: Auroc,
) -> dict:  # fmt: skip
    row = {"trained_on": trained_on, "tested_on": tested_on}
    row |= {"positive_model": tested[0], "negative_model": tested[1]}
    row |= {"method": method, "layer": layer, "n": auroc.n, "n_models": auroc.n_models}
    return row | auroc.columns() | {"paper": None}


# Figure 6


def flags(pool: Pool, layer: int) -> pd.DataFrame:
    """Mean predicted probability of contamination, for every model and set of problems it read.

    By the detector that met no model of that seed.

    Returns:
        condition, seed, benchmark, flag (0 to 1).
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
    """Rows of ``dice_correlation.csv`` of the lab: flag against accuracy, and against inflation."""
    merged = flagged.merge(accuracy, on=["condition", "seed", "benchmark"])
    rows = [
        {"source": "lab, accuracy", "benchmark": benchmark, "n_models": len(group)}
        | {"r_squared": published_tables.r_squared(group["accuracy_pct"], group["flag"])}
        for benchmark, group in merged.groupby("benchmark", sort=False)
    ]
    gaps = inflation(accuracy).merge(
        flagged[flagged["benchmark"] == SEEN], on=["condition", "seed"]
    )
    rows.append(
        {"source": "lab, gap GSM-i minus GSM-ii", "benchmark": SEEN, "n_models": len(gaps)}
        | {"r_squared": published_tables.r_squared(gaps["gap_points"], gaps["flag"])}
    )
    return [row | {"paper": None} for row in rows]


def flag_verdicts(gaps: pd.DataFrame) -> pd.DataFrame:
    """Mean flag and inflation of each condition, and whether the two agree.

    Args:
        gaps: condition, gap_points and flag (on GSM-i), one row per model.

    Returns:
        condition, n_models, gap_points, flag, verdict.
    """
    groups = gaps.groupby("condition", sort=False)
    means = groups[["gap_points", "flag"]].mean().assign(n_models=groups.size())
    flagged = means["flag"] > FLAG_THRESHOLD
    inflated = means["gap_points"] >= SMALL_GAP
    verdicts = {
        (True, True): "flagged, and inflated",
        (True, False): "flagged, though fresh questions do as well",
        (False, True): "inflated, not flagged",
        (False, False): "neither",
    }
    verdict = [verdicts[pair] for pair in zip(flagged, inflated, strict=True)]
    columns = ["condition", "n_models", "gap_points", "flag", "verdict"]
    return means.assign(verdict=verdict).reset_index()[columns]


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

    The baselines read what the model wrote, DICE the prompt alone: its states do
    not know how the answer is decoded, so its line is flat by construction. The
    detector is the one of the first contaminated and the first clean model.

    Args:
        lms: condition to its first model; each is told from the base model, which is
            among them.
        pool: their states, and those of the detector's models.
        problems: name to questions; GSM-i is asked.
        layer: place of the layer.
        temperatures: of sampling from the ``TOP_K`` likeliest tokens; 0 is greedy.
        top_ks: numbers of likeliest tokens sampled from at temperature 1.
        max_new_tokens: longest completion.

    Returns:
        model (the condition), setting ("temperature" or "top-k"), value, method, auroc_pct.
    """
    detector = pair_detector(pool[CONTAMINATED][0], pool[CLEAN][0], layer)
    states = {name: detector(pool[name][0].states[SEEN][:, layer]) for name in lms}
    settings = [("temperature", value, value, TOP_K) for value in temperatures]
    settings += [("top-k", value, 1.0, value) for value in top_ks]
    rows = []
    for setting, value, temperature, top_k in settings:
        scored = {}
        for name, lm in lms.items():
            written = answer(lm, problems[SEEN], max_new_tokens, temperature, top_k)
            # An empty answer has no token to score: it counts as its end-of-line.
            texts = problems[SEEN].assign(answer=[text or "\n" for text in written])
            scores = baseline_scores(lm, texts)
            scored[name] = {MLP: states[name]} | {m: scores[m].to_numpy() for m in BASELINES}
        for name in [name for name in lms if name != BASE]:
            for method, above in scored[name].items():
                auroc = auroc_over_models([above], [scored[BASE][method]], 2).auroc_pct
                rows.append((name, setting, value, method, auroc))
    return pd.DataFrame(rows, columns=["model", "setting", "value", "method", "auroc_pct"])
