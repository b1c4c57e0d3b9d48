"""DICE's tables and figures on pairs of one's own, each value next to that of two clean models.

Each clean model takes the contaminated one's part once, against the next clean one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from contamination.audit.local_models import load_model
from contamination.cases import pair_flags
from contamination.cases.pairs import UNKNOWN, Pairs, measured_pairs, trained_pairs
from contamination.cases.settings import Pairs as Told
from contamination.core.statistics import end_p, share_difference_interval, with_p_adjusted
from contamination.core.verdicts import CLAIMS, FEWEST_MODELS, verdict_column
from contamination.dice import experiments, published_tables
from contamination.dice.experiments import judge_inflation, judge_layers
from contamination.dice.mixtures import (
    IN_DISTRIBUTION,
    MATH,
    OUT_OF_DISTRIBUTION,
    SEEN,
    SYN,
    UNSEEN,
)
from contamination.dice.pool import (
    BASE,
    CLEAN,
    CONTAMINATED,
    DOSE_NAMES,
    HIGH,
    OTHER_CLEAN,
    Condition,
    FineTunedModel,
    Pool,
    accuracy_rows,
    condition_name,
    gains,
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
        ``dice_figures.auroc_layers`` takes them. Tables: accuracy, table_1 (see :func:`table_1`),
        averages (see :func:`averages`), layers (Figure 4), auroc (Table 2), auroc_layers
        (Figure 5), predictions and topic (Figure 6(a)), flags and correlation (Figure 6(b)),
        inflation, decoding (Figure 7). The tests of table_1, layers, auroc and inflation are one
        family (Holm). Models of unknown training are in accuracy, flags and correlation alone.
    """
    trained = trained_pairs(settings, pairs)
    pool = measured_pairs(settings, pairs, trained)
    tables = {"accuracy": accuracies(settings, pairs, trained)}
    known = tables["accuracy"][tables["accuracy"]["condition"] != UNKNOWN]
    tables["table_1"] = table_1(known)
    tables["averages"] = averages(tables["table_1"], pairs.wanted, settings.paper_model)
    tables["layers"] = _layers(pool, settings.paper_model)
    layer = experiments.located_layer(tables["layers"].query("model == @CONTAMINATED"))
    tables["auroc"] = _table_2(pool, layer, settings.paper_model)
    tables["auroc_layers"], panels = _auroc_by_layer(pool)
    # Clean models once, not under OTHER_CLEAN again.
    shown = {name: pool[name] for name in pool if name != OTHER_CLEAN}
    load = partial(load_model, settings.model)
    more = pair_flags.more_flags(pairs, trained, pool, layer, load)
    tables["flags"] = pd.concat([experiments.flags(shown, layer), more], ignore_index=True)
    is_printed = settings.paper_model == PRINTED_MODEL and pairs.topic == MATH
    printed = published_tables.printed_topic_auroc() if is_printed else None
    tables["topic"] = pair_flags.topic_table(pool, layer, pairs.topic, printed)
    tables["predictions"] = pair_flags.predictions(pool, layer)
    correlated = experiments.correlation_rows(tables["flags"], tables["accuracy"])
    tables["correlation"] = pd.DataFrame(correlated)
    tables["inflation"] = experiments.with_flags(gains(known), tables["flags"])
    tables |= with_verdicts(tables)
    sampled = [name for name in (CONTAMINATED, condition_name(SYN, HIGH)) if name in trained]
    lms = {name: load(str(trained[name][0].folder)) for name in sampled}
    # The detector is trained on the first clean model.
    lms |= {OTHER_CLEAN: load(str(trained[CLEAN][1].folder)), BASE: load(settings.model.first)}
    how = temperatures, top_ks, settings.answer_tokens
    tables["decoding"] = experiments.decoding_rows(lms, pool, pairs.problems, layer, *how)
    return tables, layer, panels


def accuracies(
    settings: Told, pairs: Pairs, trained: Mapping[str, Mapping[int, FineTunedModel]]
) -> pd.DataFrame:
    """Every model on every set of Table 1, which leaves GSM-i-Syn out: ``accuracy_rows``."""
    return accuracy_rows(
        trained,
        pairs.problems,
        [name for name in pairs.problems if name != SYN],
        settings.answer_tokens,
        pairs.wanted,
        partial(load_model, settings.model),
        settings.paper_model,
        processes=1,
    )


def table_1(scores: pd.DataFrame) -> pd.DataFrame:
    """Table 1, next to clean models, of the scores of :func:`accuracies`.

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


def averages(first: pd.DataFrame, wanted: Sequence[Condition], paper_model: str) -> pd.DataFrame:
    """The rows of Table 1 that sum up: averages, gains, and ID gain minus OOD gain.

    Args:
        first: of :func:`table_1`.
        wanted: the conditions that it contains.
        paper_model: column of the printed Table 1, "" for none.

    Returns:
        condition, row (as printed), n_sets, value (percent or points), ci_low and ci_high (of
        gains alone, 95 % over questions: those of different sets are independent), and paper,
        which is empty where a set of the paper is missing. Clean models have no gain.
    """
    printed = published_tables.printed_accuracy(paper_model)
    rows = []
    for one in wanted:
        training = DOSE_NAMES.get(one.copies, "").format(one.problems)
        of_condition = first[first["condition"] == one.name]
        is_id = of_condition["benchmark"].isin(IN_DISTRIBUTION)
        n_paper = {"ID": len(IN_DISTRIBUTION) - 1, "OOD": len(OUT_OF_DISTRIBUTION)}  # no GSM-i-Syn
        parts = {"ID": of_condition[is_id], "OOD": of_condition[~is_id]}
        parts = {kind: part for kind, part in parts.items() if len(part)}
        found = [
            (f"Average {kind}", kind, (part["accuracy_pct"].mean(),) * 3)
            for kind, part in parts.items()
        ]
        gained = {kind: _mean_gain(part) for kind, part in parts.items()} if one.copies else {}
        found += [(f"{kind} Gain", kind, gain) for kind, gain in gained.items()]
        if len(gained) == len(n_paper):
            found.append(("ID Gain - OOD Gain", "both", _difference(*gained.values())))
        for row, kind, (value, low, high) in found:
            kinds = [kind] if kind in parts else list(parts)
            n_sets = sum(len(parts[k]) for k in kinds)
            is_whole = n_sets == sum(n_paper[k] for k in kinds)
            ends = {} if row.startswith("Average") else {"ci_low": low, "ci_high": high}
            about = {"condition": one.name, "row": row, "n_sets": n_sets, "value": value, **ends}
            rows.append(about | {"paper": printed.get((training, row)) if is_whole else None})
    columns = ["condition", "row", "n_sets", "value", "ci_low", "ci_high", "paper"]
    return pd.DataFrame(rows).reindex(columns=columns)


def _mean_gain(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Mean gain over sets with its interval: the errors of independent sets add as squares."""
    gain = rows["gain_points"]
    down, up = gain - rows["ci_low_points"], rows["ci_high_points"] - gain
    mean, n = gain.mean(), len(rows)
    return mean, mean - np.sqrt((down**2).sum()) / n, mean + np.sqrt((up**2).sum()) / n


def _difference(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Difference of two independent values, each with its interval."""
    value = one[0] - other[0]
    low = value - np.hypot(one[0] - one[1], other[2] - other[0])
    return value, low, value + np.hypot(one[2] - one[0], other[0] - other[1])


def with_verdicts(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Four of the tables with p_adjusted (Holm over all four) and verdict.

    A gain of table_1 has to exceed the range of clean models, an AUROC of auroc the folded value
    of two clean models; the other two are those of ``dice.experiments``. Fewer than five models of
    a kind are open. Rows of clean models are blank.
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
    low, high, limit = columns.split()
    words = verdict_column(rows, CLAIMS[claim], low, high, control=(limit, limit))
    return rows.assign(verdict=words)


def _layers(pool: Pool, paper_model: str) -> pd.DataFrame:
    """Figure 4: every condition of five copies; the printed layers are LLaMA2-7B's."""
    parts = [
        experiments.layer_rows(pool, name, MATH if problems == MATH else SEEN)
        for problems in (SEEN, SYN, UNSEEN, MATH)
        if (name := condition_name(problems, HIGH)) in pool
    ]
    rows = pd.concat(parts, ignore_index=True)
    return rows if paper_model == PRINTED_MODEL else rows.assign(paper_layer=pd.NA)


def _table_2(pool: Pool, layer: int, paper_model: str) -> pd.DataFrame:
    """Table 2, each cell next to that of two clean models; printed for LLaMA2-7B alone.

    The verdict compares the interval with their folded value, since which of two clean
    models comes first is chance. They have no interval: their pairs share models. p is of
    chance, empty with fewer than five pairs of models, which decide nothing.
    """
    keys = ["tested_on", "method"]
    names = {"auroc_pct": "two_clean_pct", "folded_auroc_pct": "two_clean_folded_pct"}
    clean = pd.DataFrame(experiments.auroc_rows(pool, OTHER_CLEAN, layer)).rename(columns=names)
    rows = [
        row
        for problems in (SEEN, SYN)
        if (name := condition_name(problems, HIGH)) in pool
        for row in experiments.auroc_rows(pool, name, layer)
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
        learned = MATH if tested_on == MATH else SEEN
        for trained_on, first, second in there:
            both = first, second
            rows += experiments.auroc_by_layer(pool, trained_on, both, tested_on, learned)
        if there:
            panels[f"asked {tested_on}"] = {one: f"{one[1]} against {one[2]}" for one in there}
    return pd.DataFrame(rows), panels
