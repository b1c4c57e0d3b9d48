"""Rows of the paper's Table 2 and Figures 4 to 7, read off one pool of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from contamination.dice import locate, published_tables
from contamination.dice.accuracy import SMALL_GAP, inflation
from contamination.dice.answers import BASELINES, answer, baseline_scores
from contamination.dice.detector import (
    MEAN_DIFFERENCE,
    MLP,
    Auroc,
    auroc_over_models,
    probability,
)
from contamination.dice.experiments import held_out_detectors, of_pairs, train_on
from contamination.dice.mixtures import IN_DISTRIBUTION, MATH, SEEN, Problems
from contamination.dice.pool import BASE, CLEAN, CONTAMINATED, OTHER_CLEAN, Pool, paired_seeds
from contamination.models.causal import CausalLM

TOP_K = 50  # of the paper's sampling
PAPER_LAYERS = {SEEN: 29, MATH: 30}  # Figure 4, LLaMA2-7B contaminated with this
FLAG_THRESHOLD = 0.5  # Figure 6(a) reads predictions above it as contaminated


# Figure 4


def layer_rows(pool: Pool, condition: str, contamination: str, dataset: str = SEEN) -> pd.DataFrame:
    """Rows of ``dice_layers.csv``: where models of a condition differ most from clean ones.

    Paired by seed, on the prompts of ``dataset``; ``contamination`` is the set they have read.
    share_argmax is the share of prompts with their largest distance at a layer, located the
    commonest of these, null_mean the mean distance of two clean models; the verdict of located
    layers says where most of the distance comes from.
    """
    values, null = (
        [
            locate.distances(pool[name][seed].states[dataset], pool[CLEAN][seed].states[dataset])
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
) -> pd.DataFrame:
    """As :func:`layer_rows` for one pair, by the released code's norm over all tokens."""
    values, nulls = (
        {
            f"{name}{locate.ALL_TOKENS}": part
            for name, part in locate.distances_all_tokens(*both, prompts).items()
        }
        for both in (pair, null)
    )
    return _layer_table(values, nulls, {"model": condition, "dataset": SEEN, "n_models": 2})


def _layer_table(
    distances_by_name: Mapping[str, np.ndarray],
    null: Mapping[str, np.ndarray],
    about: Mapping[str, object],
    paper_layer: int | None = None,
) -> pd.DataFrame:
    rows = []
    for name, values in distances_by_name.items():
        located = locate.commonest_layer(values)
        n_largest = np.bincount(1 + values[:, 1:-1].argmax(axis=1), minlength=values.shape[1])
        for layer in range(values.shape[1]):
            after_norm = layer == values.shape[1] - 1
            is_block = layer > 0 and not after_norm
            mean, null_mean = (float(part[:, layer].mean()) for part in (values, null[name]))
            is_located = layer == located
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
    """The located layer of one condition by the paper's rule: Euclidean distance, last token."""
    rows = layers[(layers["distance"] == locate.EUCLIDEAN) & layers["located"]]
    return int(rows["layer"].iloc[0])


# Table 2 and Figure 5


def auroc_rows(pool: Pool, condition: str, contamination: str, layer: int) -> list[dict]:
    """Rows of ``dice_auroc.csv``: DICE and the baselines by the paper's protocol (Table 2).

    A condition against clean; ``contamination`` is the set it is contaminated with, "" for none.
    """
    printed = published_tables.printed_auroc()
    pair = condition, CLEAN
    seeds = paired_seeds(pool, *pair)
    first = pool[condition][seeds[0]]
    rows = []
    for tested_on in [name for name in IN_DISTRIBUTION if name in first.states]:
        aurocs = {
            method: (layer, of_pairs(pool, *pair, layer, tested_on, method))
            for method in (MLP, MEAN_DIFFERENCE)
        }
        for method in first.baselines.get(tested_on, ()):
            both = [[pool[n][seed].baselines[tested_on][method] for seed in seeds] for n in pair]
            aurocs[method] = None, auroc_over_models(*both, 2 * len(seeds))
        for method, measured in aurocs.items():
            row = _auroc_row(condition, tested_on, pair, method, *measured)
            rows.append(row | {"paper": printed.get((contamination, tested_on, method))})
    return rows


def auroc_by_layer(
    pool: Pool, condition: str, tested: tuple[str, str], tested_on: str, learnt_from: str = SEEN
) -> list[dict]:
    """Rows of ``dice_auroc.csv`` at every layer (Figure 5).

    Detectors learn to tell ``condition`` from clean and are asked to tell ``tested`` apart, the
    contaminated one first; sets as in ``experiments.of_pairs``.
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


def correlation_rows(
    flagged: pd.DataFrame, accuracy: pd.DataFrame, whose: str = "lab"
) -> list[dict]:
    """Rows of ``dice_correlation.csv``: flag against accuracy, and against inflation.

    ``whose`` models these are stands in the column source.
    """
    merged = flagged.merge(accuracy, on=["condition", "seed", "benchmark"])
    rows = [
        {"source": f"{whose}, accuracy", "benchmark": benchmark, "n_models": len(group)}
        | {"r_squared": published_tables.r_squared(group["accuracy_pct"], group["flag"])}
        for benchmark, group in merged.groupby("benchmark", sort=False)
    ]
    gaps = inflation(accuracy).merge(
        flagged[flagged["benchmark"] == SEEN], on=["condition", "seed"]
    )
    rows.append(
        {"source": f"{whose}, gap GSM-i minus GSM-ii", "benchmark": SEEN, "n_models": len(gaps)}
        | {"r_squared": published_tables.r_squared(gaps["gap_points"], gaps["flag"])}
    )
    return [row | {"paper": None} for row in rows]


def flag_verdicts(gaps: pd.DataFrame) -> pd.DataFrame:
    """Mean flag and inflation of each condition, and whether the two agree.

    ``gaps`` holds condition, gap_points and flag (on GSM-i), one row per model.
    """
    groups = gaps.groupby("condition", sort=False)
    means = groups[["gap_points", "flag"]].mean().assign(n_models=groups.size())
    flagged = means["flag"] > FLAG_THRESHOLD
    inflated = means["gap_points"] >= SMALL_GAP
    kinds = [flagged & inflated, flagged, inflated]
    words = ["flagged, and inflated", "flagged, though fresh questions do as well"]
    verdict = np.select(kinds, [*words, "inflated, not flagged"], "neither")
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
                auroc = auroc_over_models([above], [scored[BASE][method]], 2).auroc_pct
                rows.append((name, setting, value, method, auroc))
    return pd.DataFrame(rows, columns=["model", "setting", "value", "method", "auroc_pct"])
