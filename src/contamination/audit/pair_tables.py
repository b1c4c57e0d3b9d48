"""DICE's tables and figures on pairs of one's own, with two clean models beside every value.

Each clean model takes the contaminated one's part once, against the next clean one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.local_models import load_model
from contamination.audit.pairs import Pairs, measured_pairs, trained_pairs
from contamination.audit.settings import Pairs as Told
from contamination.core.claims import CLAIMS
from contamination.core.statistics import end_p, share_difference_interval, with_p_adjusted
from contamination.core.verdicts import FEWEST_MODELS, INCONCLUSIVE
from contamination.dice import paper_rows
from contamination.dice.accuracy import accuracy_rows, gains
from contamination.dice.family import judge_inflation, judge_layers
from contamination.dice.mixtures import MATH, SEEN, SYN, UNSEEN
from contamination.dice.pool import (
    BASE,
    CLEAN,
    CONTAMINATED,
    HIGH,
    OTHER_CLEAN,
    FineTunedModel,
    Pool,
    condition_name,
)

PRINTED_MODEL = "LLaMA2-7B"  # of Table 2 and Figure 4(a) and (b)
Panels = dict[str, dict[tuple[str, str, str], str]]
# Figure 5, panel by panel: detectors of, contaminated models tested, clean models tested.
PANELS = {
    UNSEEN: [
        (CONTAMINATED, condition_name(UNSEEN, HIGH), BASE),
        (CONTAMINATED, OTHER_CLEAN, BASE),
        (CONTAMINATED, CONTAMINATED, CLEAN),
        (OTHER_CLEAN, OTHER_CLEAN, CLEAN),
    ],
    MATH: [
        (condition_name(MATH, HIGH), condition_name(MATH, HIGH), BASE),
        (condition_name(MATH, HIGH), OTHER_CLEAN, BASE),
    ],
}


def tables_of(
    settings: Told, pairs: Pairs, temperatures: Sequence[float], top_ks: Sequence[int]
) -> tuple[dict[str, pd.DataFrame], int, Panels]:
    """Everything that ``dice_own_*.csv`` hold; models are trained where none are given.

    Returns:
        The tables by name, the located layer, and Figure 5's panels as
        ``plots.auroc_layers`` takes them. Tables: accuracy, table_1 (see :func:`table_1`),
        layers (Figure 4), auroc (Table 2), auroc_layers (Figure 5), flags, correlation and
        inflation (Figure 6), decoding (Figure 7). The tests of table_1, layers, auroc and
        inflation are one family (Holm).
    """
    trained = trained_pairs(settings, pairs)
    pool = measured_pairs(settings, pairs, trained)
    tables = {"accuracy": accuracies(settings, pairs, trained)}
    tables["table_1"] = table_1(tables["accuracy"])
    tables["layers"] = _layers(pool, settings.paper_model)
    layer = paper_rows.located_layer(tables["layers"].query("model == @CONTAMINATED"))
    tables["auroc"] = _table_2(pool, layer, settings.paper_model)
    tables["auroc_layers"], panels = _auroc_by_layer(pool)
    # Clean models once, not under OTHER_CLEAN again.
    shown = {name: pool[name] for name in pool if name != OTHER_CLEAN}
    tables["flags"] = paper_rows.flags(shown, layer)
    correlated = paper_rows.correlation_rows(tables["flags"], tables["accuracy"], "own")
    tables["correlation"] = pd.DataFrame(correlated).drop(columns="paper")
    tables["inflation"] = paper_rows.with_flags(gains(tables["accuracy"]), tables["flags"])
    tables |= with_verdicts(tables)
    # All four models at most are held at once, in this process: a cluster has room for one.
    load = partial(load_model, dataclasses.replace(settings.model, engine="local"))
    sampled = [name for name in (CONTAMINATED, condition_name(SYN, HIGH)) if name in trained]
    lms = {name: load(str(trained[name][0].folder)) for name in sampled}
    # The detector is trained on the first clean model.
    lms |= {OTHER_CLEAN: load(str(trained[CLEAN][1].folder)), BASE: load(settings.model.first)}
    how = temperatures, top_ks, settings.answer_tokens
    tables["decoding"] = paper_rows.decoding_rows(lms, pool, pairs.problems, layer, *how)
    return tables, layer, panels


def accuracies(
    settings: Told, pairs: Pairs, trained: Mapping[str, Mapping[int, FineTunedModel]]
) -> pd.DataFrame:
    """Every model on every set of Table 1, which leaves GSM-i-Syn out: ``accuracy_rows``."""
    asked = {key: [name for name in pairs.problems if name != SYN] for key in trained}
    return accuracy_rows(
        trained,
        pairs.problems,
        asked,
        settings.answer_tokens,
        Path(settings.model.first).name,
        pairs.wanted,
        partial(load_model, settings.model),
        settings.paper_model,
    )


def table_1(scores: pd.DataFrame) -> pd.DataFrame:
    """Table 1 with clean models beside it, of the scores of :func:`accuracies`.

    Returns:
        benchmark, condition, n, n_models, accuracy_pct and
        accuracy_released_rules_pct (means over models), gain_points (over the
        clean mean), ci_low_points and ci_high_points (95 % over questions: each
        counts once, however many models answer it), clean_range_points (largest
        minus smallest accuracy of clean models), p (of no gain; empty for clean models and
        with fewer than five models of either kind, which decide nothing), paper.
    """
    groups = scores.groupby(["benchmark", "condition"], sort=False)
    columns = ["accuracy_pct", "accuracy_released_rules_pct"]
    found = groups[columns].mean().assign(n_models=groups.size())
    found = found.join(groups[["n", "paper"]].first()).reset_index()
    clean = scores[scores["condition"] == CLEAN].groupby("benchmark")["accuracy_pct"]
    found["gain_points"] = found["accuracy_pct"] - found["benchmark"].map(clean.mean())
    found["clean_range_points"] = found["benchmark"].map(clean.max() - clean.min())
    rights = found["accuracy_pct"], found["accuracy_pct"] - found["gain_points"]
    counts = [(of / 100 * found["n"]).tolist() for of in rights]
    of_questions = zip(counts[0], found["n"], counts[1], found["n"], strict=True)
    ends = 100 * np.array([share_difference_interval(*row) for row in of_questions])
    found["ci_low_points"], found["ci_high_points"] = ends.T
    n_clean = found["benchmark"].map(clean.size())
    fewest = np.minimum(found["n_models"], n_clean)
    p_values = [
        end_p(row.gain_points, row.ci_low_points, row.ci_high_points) for row in found.itertuples()
    ]
    makes_test = found["condition"].ne(CLEAN) & fewest.ge(FEWEST_MODELS)
    found["p"] = pd.Series(p_values, found.index).where(makes_test)
    order = ["benchmark", "condition", "n", "n_models", *columns, "gain_points"]
    order += ["ci_low_points", "ci_high_points"]
    return found[[*order, "clean_range_points", "p", "paper"]]


def with_verdicts(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Four of the tables with p_adjusted (Holm over all four) and verdict.

    A gain of table_1 has to exceed the range of clean models, an AUROC of auroc the folded value
    of two clean models; the other two are those of ``dice.family``. Fewer than five models of a
    kind are inconclusive. Rows of clean models are blank.
    """
    names = ["table_1", "layers", "auroc", "inflation"]
    by = dict(zip(names, with_p_adjusted(*(tables[name] for name in names)), strict=True))
    by["layers"], by["inflation"] = judge_layers(by["layers"]), judge_inflation(by["inflation"])
    by["table_1"] = _judged(
        by["table_1"], "dice_own_table_1", "ci_low_points ci_high_points clean_range_points"
    ).assign(verdict=lambda rows: rows["verdict"].mask(rows["condition"].eq(CLEAN), ""))
    by["auroc"] = _judged(by["auroc"], "dice_own_auroc", "ci_low ci_high two_clean_folded_pct")
    return by


def _judged(rows: pd.DataFrame, claim: str, columns: str) -> pd.DataFrame:
    """Rows with the verdict by the two ends of an interval and the limit of a control."""
    words = [
        INCONCLUSIVE
        if np.isnan(p)
        else CLAIMS[claim].verdict(low, high, p_adjusted=adjusted, control=(limit, limit))
        for low, high, limit, p, adjusted in rows[[*columns.split(), "p", "p_adjusted"]].to_numpy()
    ]
    return rows.assign(verdict=words)


def _layers(pool: Pool, paper_model: str) -> pd.DataFrame:
    """Figure 4: every condition of five copies; the layers that stand beside are LLaMA2-7B's."""
    parts = [
        paper_rows.layer_rows(pool, name, problems, problems if problems == MATH else SEEN)
        for problems in (SEEN, SYN, UNSEEN, MATH)
        if (name := condition_name(problems, HIGH)) in pool
    ]
    rows = pd.concat(parts, ignore_index=True)
    return rows if paper_model == PRINTED_MODEL else rows.assign(paper_layer=pd.NA)


def _table_2(pool: Pool, layer: int, paper_model: str) -> pd.DataFrame:
    """Table 2, each cell beside that of two clean models; printed for LLaMA2-7B alone.

    The verdict compares the interval with their folded value, since which of two clean
    models comes first is chance. They have no interval: their pairs share models. p is of
    chance, empty with fewer than five pairs of models, which decide nothing.
    """
    keys = ["tested_on", "method"]
    names = {"auroc_pct": "two_clean_pct", "folded_auroc_pct": "two_clean_folded_pct"}
    clean = pd.DataFrame(paper_rows.auroc_rows(pool, OTHER_CLEAN, "", layer)).rename(columns=names)
    rows = [
        row
        for problems in (SEEN, SYN)
        if (name := condition_name(problems, HIGH)) in pool
        for row in paper_rows.auroc_rows(pool, name, problems, layer)
    ]
    found = pd.DataFrame(rows).merge(clean[[*keys, *names.values()]], on=keys)
    found["p"] = [
        end_p(row.auroc_pct, row.ci_low, row.ci_high, 50, row.n_models // 2 - 1)
        if row.n_models // 2 >= FEWEST_MODELS
        else np.nan
        for row in found.itertuples()
    ]
    return found if paper_model == PRINTED_MODEL else found.assign(paper=None)


def _auroc_by_layer(pool: Pool) -> tuple[pd.DataFrame, Panels]:
    """Figure 5."""
    rows, panels = [], {}
    for tested_on, curves in PANELS.items():
        there = [curve for curve in curves if all(name in pool for name in curve)]
        learnt = MATH if tested_on == MATH else SEEN
        for trained_on, first, second in there:
            both = first, second
            rows += paper_rows.auroc_by_layer(pool, trained_on, both, tested_on, learnt)
        if there:
            panels[f"asked {tested_on}"] = {one: f"{one[1]} against {one[2]}" for one in there}
    return pd.DataFrame(rows), panels
