"""The paper's study on pairs of one's own: models given as checkpoints, or trained here.

They become the structures of the lab part, trained models by condition and seed and
problems by set, so that ``pool``, ``accuracy`` and ``study`` serve both. Every table
has two clean models beside it: each clean model takes the contaminated one's part once,
against the next clean one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from contamination.dice import accuracy
from contamination.dice import paper_rows as study
from contamination.dice.fine_tuning import Settings, fine_tune
from contamination.dice.mixtures import IN_DISTRIBUTION, MATH, SEEN, SYN, UNSEEN
from contamination.dice.own import OwnModels, Pairs
from contamination.dice.pool import (
    BASE,
    CLEAN,
    CONTAMINATED,
    HIGH,
    OTHER_CLEAN,
    Pool,
    Trained,
    measure_pool,
    named,
)
from contamination.models import bos
from contamination.models.causal import load_causal_lm
from contamination.models.engine import sweep

PRINTED_MODEL = "LLaMA2-7B"  # of Table 2 and Figure 4(a) and (b)
BEYOND, WITHIN = "beyond two clean models", "no more than two clean models"
# Figure 5, panel by panel: detectors of, contaminated models tested, clean models tested.
PANELS = {
    UNSEEN: [
        (CONTAMINATED, named(UNSEEN, HIGH), BASE),
        (CONTAMINATED, OTHER_CLEAN, BASE),
        (CONTAMINATED, CONTAMINATED, CLEAN),
        (OTHER_CLEAN, OTHER_CLEAN, CLEAN),
    ],
    MATH: [(named(MATH, HIGH), named(MATH, HIGH), BASE), (named(MATH, HIGH), OTHER_CLEAN, BASE)],
}


# The models


def trained_pairs(mine: OwnModels, pairs: Pairs) -> dict[str, dict[int, Trained]]:
    """The models of every condition by seed: those given, or trained now (or cached)."""
    if pairs.given:
        return {
            one.name: {s: Trained(Path(place)) for s, place in enumerate(pairs.given[one.name])}
            for one in pairs.wanted
        }
    settings = Settings(
        mine.own_learning_rate,
        mine.own_batch_size,
        mine.lora,
        dtype=mine.target_dtype,
        bos=bos.wanted(mine.bos),
    )
    jobs, read = [], []
    for name, mixtures in pairs.mixtures.items():
        for seed, mixture in enumerate(mixtures):
            order = dataclasses.replace(settings, seed=settings.seed + seed)
            jobs.append((mine.own_base, mixture.rows(order.seed), order))
            read.append((name, seed, mixture))
    trained: dict[str, dict[int, Trained]] = {one.name: {} for one in pairs.wanted}
    folders = sweep(fine_tune, jobs, **mine.cluster())
    for (name, seed, mixture), folder in zip(read, folders, strict=True):
        n_steps = math.ceil(mixture.n_rows / mine.own_batch_size)
        trained[name][seed] = Trained(Path(folder), mixture, n_steps)
    return trained


def _load(mine: OwnModels) -> partial:
    return partial(load_causal_lm, dtype=mine.target_dtype, bos=bos.wanted(mine.bos))


def loader(mine: OwnModels) -> partial:
    """Loads a model in the dtype and on the machines of the settings."""
    return partial(_load(mine), **mine.cluster())


def measured_pairs(
    mine: OwnModels, pairs: Pairs, trained: Mapping[str, Mapping[int, Trained]]
) -> Pool:
    """States and baselines of all models, and under ``OTHER_CLEAN`` each next clean model."""
    asked = dict.fromkeys((*IN_DISTRIBUTION, pairs.topic))
    base, load = Path(mine.own_base), loader(mine)
    pool = measure_pool(trained, base, pairs.problems, list(asked), pairs.topic, load)
    clean = list(pool[CLEAN].values())
    return {**pool, OTHER_CLEAN: dict(enumerate([*clean[1:], clean[0]]))}


# Tables and figures


def accuracies(
    mine: OwnModels, pairs: Pairs, trained: Mapping[str, Mapping[int, Trained]]
) -> pd.DataFrame:
    """Every model on every set of Table 1, which leaves GSM-i-Syn out: ``accuracy_rows``."""
    asked = {key: [name for name in pairs.problems if name != SYN] for key in trained}
    how = (asked, mine.answer_tokens, Path(mine.own_base).name, pairs.wanted, loader(mine))
    return accuracy.accuracy_rows(trained, pairs.problems, *how, mine.paper_model)


def table_1(scores: pd.DataFrame) -> pd.DataFrame:
    """Table 1 with clean models beside it.

    Args:
        scores: :func:`accuracies`.

    Returns:
        benchmark, condition, n, n_models, accuracy_pct and
        accuracy_released_rules_pct (means over models), gain_points (over the
        clean mean), clean_range_points (largest minus smallest accuracy of clean
        models), verdict (whether the gain, up or down, exceeds that range), paper.
    """
    groups = scores.groupby(["benchmark", "condition"], sort=False)
    columns = ["accuracy_pct", "accuracy_released_rules_pct"]
    found = (
        groups[columns]
        .mean()
        .assign(n=groups["n"].first(), n_models=groups.size(), paper=groups["paper"].first())
    )
    found = found.reset_index()
    clean = scores[scores["condition"] == CLEAN].groupby("benchmark")["accuracy_pct"]
    spread = clean.max() - clean.min()
    found["gain_points"] = found["accuracy_pct"] - found["benchmark"].map(clean.mean())
    found["clean_range_points"] = found["benchmark"].map(spread)
    beyond = found["gain_points"].abs() > found["clean_range_points"]
    found["verdict"] = beyond.map({True: BEYOND, False: WITHIN})
    found.loc[found["condition"] == CLEAN, "verdict"] = None
    order = ["benchmark", "condition", "n", "n_models", *columns, "gain_points"]
    return found[[*order, "clean_range_points", "verdict", "paper"]]


def layers(pool: Pool, paper_model: str) -> pd.DataFrame:
    """Figure 4: rows of ``study.layer_rows`` for every condition of five copies.

    Args:
        pool: :func:`measured_pairs`.
        paper_model: base model; the layers that stand beside are LLaMA2-7B's.
    """
    found = []
    for problems in (SEEN, SYN, UNSEEN, MATH):
        if (name := named(problems, HIGH)) in pool:
            asked = problems if problems == MATH else SEEN
            found.append(study.layer_rows(pool, name, problems, asked))
    rows = pd.concat(found, ignore_index=True)
    return rows if paper_model == PRINTED_MODEL else rows.assign(paper_layer=pd.NA)


def table_2(pool: Pool, layer: int, paper_model: str) -> pd.DataFrame:
    """Table 2, each cell beside that of two clean models.

    Args:
        pool: :func:`measured_pairs`.
        layer: place of the located layer.
        paper_model: base model; the paper prints LLaMA2-7B alone.

    Returns:
        Columns of ``study.auroc_rows``, then two_clean_pct, two_clean_folded_pct and
        verdict: "beyond two clean models" where the interval lies above
        two_clean_folded_pct, empty without an interval. Folded, since which of two
        clean models comes first is chance. Two clean models have no interval: their
        pairs share models.
    """
    clean = pd.DataFrame(study.auroc_rows(pool, OTHER_CLEAN, "", layer))
    clean = clean[["tested_on", "method", "auroc_pct", "folded_auroc_pct"]].set_axis(
        ["tested_on", "method", "two_clean_pct", "two_clean_folded_pct"], axis=1
    )
    rows = [
        row
        for problems in (SEEN, SYN)
        if (name := named(problems, HIGH)) in pool
        for row in study.auroc_rows(pool, name, problems, layer)
    ]
    found = pd.DataFrame(rows).merge(clean, on=["tested_on", "method"])
    beyond = found["ci_low"] > found["two_clean_folded_pct"]
    found["verdict"] = beyond.map({True: BEYOND, False: WITHIN}).where(found["ci_low"].notna())
    return found if paper_model == PRINTED_MODEL else found.assign(paper=None)


def auroc_by_layer(pool: Pool) -> tuple[pd.DataFrame, dict[str, dict[tuple[str, str, str], str]]]:
    """Figure 5: its rows, and panels as ``plots.auroc_layers`` takes them."""
    rows, panels = [], {}
    for tested_on, curves in PANELS.items():
        there = [curve for curve in curves if all(name in pool for name in curve)]
        learnt_from = MATH if tested_on == MATH else SEEN
        for trained_on, *tested in there:
            rows += study.auroc_by_layer(pool, trained_on, tuple(tested), tested_on, learnt_from)
        if there:
            panels[f"asked {tested_on}"] = {
                curve: f"{curve[1]} against {curve[2]}" for curve in there
            }
    return pd.DataFrame(rows), panels


def flags(pool: Pool, layer: int) -> pd.DataFrame:
    """Figure 6: ``study.flags``; clean models once, not under ``OTHER_CLEAN`` again."""
    return study.flags({name: pool[name] for name in pool if name != OTHER_CLEAN}, layer)


def decoding(
    mine: OwnModels,
    pairs: Pairs,
    trained: Mapping[str, Mapping[int, Trained]],
    pool: Pool,
    layer: int,
    temperatures: Sequence[float],
    top_ks: Sequence[int],
) -> pd.DataFrame:
    """Figure 7: ``study.decoding_rows`` of the contaminated models, and of a clean one.

    All four models at most are held at once, in this process whatever ``engine`` says: a
    cluster has room for one.
    """
    load = _load(mine)
    names = [name for name in (CONTAMINATED, named(SYN, HIGH)) if name in trained]
    lms = {name: load(trained[name][0].folder) for name in names}
    # The second clean model: the detector is trained on the first.
    lms |= {OTHER_CLEAN: load(trained[CLEAN][1].folder), BASE: load(mine.own_base)}
    how = (temperatures, top_ks, mine.answer_tokens)
    return study.decoding_rows(lms, pool, pairs.problems, layer, *how)
