"""Rows of the paper's Table 2 and Figures 4 to 7, read off one pool of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.statistics import CONFIDENCE, end_p
from contamination.core.verdicts import FEWEST_MODELS
from contamination.dice import locate, published_tables
from contamination.dice.accuracy import inflation
from contamination.dice.answers import BASELINES, answer, baseline_scores
from contamination.dice.detector import (
    MEAN_DIFFERENCE,
    MLP,
    Auroc,
    auroc_over_models,
    probability,
)
from contamination.dice.experiments import auroc_of_seed_pairs, held_out_detectors, train_on
from contamination.dice.mixtures import IN_DISTRIBUTION, MATH, SEEN, UNSEEN, Problems
from contamination.dice.pool import (
    BASE,
    CLEAN,
    CONTAMINATED,
    OTHER_CLEAN,
    Pool,
    paired_seeds,
)
from contamination.models.causal import CausalLM

TOP_K = 50  # of the paper's sampling
PAPER_LAYERS = {SEEN: 29, MATH: 30}  # Figure 4, LLaMA2-7B contaminated with this
FLAG_THRESHOLD = 0.5  # Figure 6(a) reads predictions above it as contaminated
Distances = Mapping[int, Mapping[str, np.ndarray]]  # seed of a pair of models, then the distance


# Figure 4


def layer_rows(pool: Pool, condition: str, contamination: str, dataset: str = SEEN) -> pd.DataFrame:
    """Rows of ``dice_layers.csv``: where models of a condition differ most from clean ones.

    Paired by seed, on the prompts of ``dataset``; ``contamination`` is the set they have read.
    share_argmax is the share of prompts with their largest distance at a layer, located the
    commonest of these, null_mean the mean distance of two clean models. Of located layers also
    share_from_training, how much of the distance two clean models do not have (of each pair, paired
    by seed; mean with the 95 % t interval), and p of one half: empty with fewer than five pairs.
    """
    values, null = (
        {
            seed: locate.distances(
                pool[name][seed].states[dataset], pool[CLEAN][seed].states[dataset]
            )
            for seed in paired_seeds(pool, name, CLEAN)
        }
        for name in (condition, OTHER_CLEAN)
    )
    about = {"model": condition, "dataset": dataset, "n_models": 2 * len(values)}
    return _layer_table(values, null, about, PAPER_LAYERS.get(contamination))


def layer_rows_all_tokens(
    pair: tuple[CausalLM, CausalLM],
    null: tuple[CausalLM, CausalLM],
    prompts: Sequence[str],
    condition: str,
) -> pd.DataFrame:
    """As :func:`layer_rows` for one pair, by the released code's norm over all tokens."""
    values, nulls = (
        {
            0: {
                f"{name}{locate.ALL_TOKENS}": part
                for name, part in locate.distances_all_tokens(*both, prompts).items()
            }
        }
        for both in (pair, null)
    )
    return _layer_table(values, nulls, {"model": condition, "dataset": SEEN, "n_models": 2})


def _layer_table(
    pairs: Distances, null: Distances, about: Mapping[str, object], paper_layer: int | None = None
) -> pd.DataFrame:
    rows = []
    for name in next(iter(pairs.values())):
        values, nulls = (np.concatenate([one[name] for one in of.values()]) for of in (pairs, null))
        located = locate.commonest_layer(values)
        seeds = [seed for seed in pairs if seed in null]
        own, other = (
            np.array([of[seed][name][:, located].mean() for seed in seeds]) for of in (pairs, null)
        )
        with np.errstate(invalid="ignore"):  # two equal models lie nowhere apart
            of_located = _share_from_training(1 - other / own)
        n_largest = np.bincount(1 + values[:, 1:-1].argmax(axis=1), minlength=values.shape[1])
        for layer in range(values.shape[1]):
            after_norm = layer == values.shape[1] - 1
            is_block = layer > 0 and not after_norm
            mean, null_mean = (float(part[:, layer].mean()) for part in (values, nulls))
            is_located = layer == located
            rows.append(
                dict(about)
                | {"layer": layer - after_norm, "after_norm": after_norm, "distance": name}
                | {"n": len(values), "mean": mean}
                | {"share_argmax": n_largest[layer] / len(values) if is_block else None}
                | {"null_mean": null_mean, "located": is_located, "paper_layer": paper_layer}
                | (of_located if is_located else dict.fromkeys(of_located))
            )
    numbers = dict.fromkeys(
        ["share_argmax", "share_from_training", "ci_low", "ci_high", "p"], float
    )
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
        aurocs: dict[str, tuple[int | None, Auroc]] = {
            method: (layer, auroc_of_seed_pairs(pool, *pair, layer, tested_on, method))
            for method in (MLP, MEAN_DIFFERENCE)
        }
        for method in first.baselines.get(tested_on, ()):
            higher, lower = (
                [pool[n][seed].baselines[tested_on][method] for seed in seeds] for n in pair
            )
            aurocs[method] = None, auroc_over_models(higher, lower, 2 * len(seeds))
        for method, measured in aurocs.items():
            row = _auroc_row(condition, tested_on, pair, method, *measured)
            rows.append(row | {"paper": printed.get((contamination, tested_on, method))})
    return rows


def add_clean_difference(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 2's rows with how far each lies above two clean models that were scored alike.

    Returns:
        the columns of ``rows``; two_clean_pct, the folded AUROC of two clean models (which of
        them comes first is chance); difference_pct with
        difference_low and difference_high, from the 95 % intervals of both (the root of the sum
        of squares); and p of no difference, by Student's t. p is empty with fewer than five pairs
        of models. All of it is empty for clean models, and outside the family of tests: that is
        DICE and the mean difference, asked about GSM-i and GSM-ii.
    """
    is_clean = rows["trained_on"].eq(OTHER_CLEAN)
    is_tested = rows["method"].isin([MLP, MEAN_DIFFERENCE]) & rows["tested_on"].isin([SEEN, UNSEEN])
    of_clean = rows[is_clean & is_tested].set_index(["tested_on", "method"], drop=False)
    by_cell = of_clean.to_dict("index")
    found = []
    for row, is_control in zip(rows.to_dict("records"), is_clean, strict=True):
        control = by_cell.get((row["tested_on"], row["method"]))
        if is_control or control is None:
            found.append({})
            continue
        value, low, high = (row[name] for name in ("auroc_pct", "ci_low", "ci_high"))
        of_clean, clean_low, clean_high = _folded(control)
        difference = value - of_clean
        ends = (
            difference - np.hypot(value - low, clean_high - of_clean),
            difference + np.hypot(high - value, of_clean - clean_low),
        )
        n_pairs = min(row["n_models"], control["n_models"]) // 2
        p = end_p(difference, *ends, df=n_pairs - 1) if n_pairs >= FEWEST_MODELS else np.nan
        found.append(
            {"two_clean_pct": of_clean, "difference_pct": difference, "p": p}
            | dict(zip(("difference_low", "difference_high"), ends, strict=True))
        )
    columns = ["two_clean_pct", "difference_pct", "difference_low", "difference_high", "p"]
    return rows.join(pd.DataFrame(found, index=rows.index).reindex(columns=columns))


def _folded(row: Mapping[str, float]) -> tuple[float, float, float]:
    """AUROC and its interval with the sign that makes it larger."""
    low, high = row["ci_low"], row["ci_high"]
    if row["auroc_pct"] < 50:
        low, high = 100 - high, 100 - low
    return row["folded_auroc_pct"], low, high


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


def correlation_rows(
    flagged: pd.DataFrame, accuracy: pd.DataFrame, whose: str = "lab"
) -> list[dict]:
    """Rows of ``dice_own_correlation.csv``: flag against accuracy, and against inflation.

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
        {"source": f"{whose}, gap seen minus fresh", "benchmark": SEEN, "n_models": len(gaps)}
        | {"r_squared": published_tables.r_squared(gaps["gap_points"], gaps["flag"])}
    )
    return [row | {"paper": None} for row in rows]


def with_flags(gains: pd.DataFrame, flagged: pd.DataFrame) -> pd.DataFrame:
    """``dice_inflation.csv``: the inflation of each condition beside its mean flag on GSM-i.

    ``gains`` as ``accuracy.gains``, ``flagged`` as :func:`flags`; added are flag (0 to 1, empty
    where no detector met the condition) and flagged, whether it is above the paper's threshold.
    The flag is asked about GSM-i in every condition, also where GSM-ii was seen, so that flags can
    be compared: clean models have other flags on GSM-ii.
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
