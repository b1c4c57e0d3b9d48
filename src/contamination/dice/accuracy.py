"""Table 1: accuracy of every model on every set of problems, and how much of it is false."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.verdicts import CLAIMS, strongest
from contamination.dice import published_tables
from contamination.dice.answers import accuracy_row
from contamination.dice.mixtures import IN_DISTRIBUTION, SEEN, UNSEEN, Problems
from contamination.dice.pool import (
    CLEAN,
    CLEAN_CONTROLS,
    HIGH,
    LOW,
    OTHER_CLEAN,
    ROWS,
    Condition,
    Trained,
)
from contamination.models.causal import CausalLM, load_causal_lm

DOSE_NAMES = {0: "OpenOrca 100%", LOW: "{} 2%", HIGH: "{} 10%"}  # as Table 1 prints them


def check_floor(accuracies_pct: Sequence[float], floor_pct: Sequence[float]) -> float:
    """Mean accuracy of the clean models, in percent.

    Raises:
        ValueError: if it leaves no room: nothing could be inflated, or seen to fall.
    """
    mean = float(np.mean(accuracies_pct))
    if not floor_pct[0] <= mean <= floor_pct[1]:
        raise ValueError(
            f"the clean models answer {mean:.0f} % of GSM-i and GSM-ii, outside {floor_pct[0]:g} "
            f"to {floor_pct[1]:g} %: change n_skill_rows, or set floor_pct to accept it"
        )
    return mean


def accuracy_rows(
    trained: Mapping[str, Mapping[int, Trained]],
    problems: Mapping[str, Problems],
    sets: Mapping[str, Sequence[str]],
    max_new_tokens: int,
    base_model: str,
    conditions: Sequence[Condition],
    load: Callable[[Path], CausalLM] = load_causal_lm,
    paper_model: str = "LLaMA2-7B",
) -> pd.DataFrame:
    """``dice_accuracy.csv``: every model (condition, seed) on its condition's sets of problems.

    ``load`` loads a model, in another dtype or on a cluster. The printed cells of Table 1's
    base model ``paper_model`` stand beside ("" for none), empty where there is no such cell.
    """
    printed = published_tables.printed_accuracy(paper_model)
    rows = []
    for condition in conditions:
        for seed, model in trained[condition.name].items():
            lm = load(model.folder)
            for name in sets[condition.name]:
                training = DOSE_NAMES.get(condition.copies, "").format(condition.problems)
                is_paper = condition.name != OTHER_CLEAN and condition.fixed == ROWS
                is_paper &= condition.times_rate == 1
                rows.append(
                    {"base_model": base_model, "contamination": condition.problems or CLEAN}
                    | {"condition": condition.name, "copies": condition.copies}
                    | {"dose_pct": model.dose_pct, "fixed": condition.fixed}
                    | {"n_steps": model.n_steps, "seed": seed, "benchmark": name}
                    | {"in_distribution": name in IN_DISTRIBUTION}
                    | accuracy_row(lm, problems[name], max_new_tokens)
                    | {"paper": printed.get((training, name)) if is_paper else None}
                )
    return pd.DataFrame(rows)


def gains(accuracy: pd.DataFrame) -> pd.DataFrame:
    """What contamination adds to the clean models' mean accuracy, in points.

    Returns:
        condition, n_models, gain_seen (GSM-i), gain_fresh (GSM-ii), gain_elsewhere (other
        distributions; undefined where none was asked), inflation_points (gain_seen minus
        gain_fresh: what of the score is false) with ci_low and ci_high, Welch's 95 % over models,
        and verdict: whether it is inflated, by more than other clean models seem to be. The
        verdict of clean models is blank.
    """
    kind = accuracy["benchmark"].map({SEEN: "gain_seen", UNSEEN: "gain_fresh"})
    kind = kind.where(accuracy["in_distribution"], "gain_elsewhere")
    means = accuracy.pivot_table("accuracy_pct", "condition", kind, sort=False)
    means = means.reindex(columns=["gain_seen", "gain_fresh", "gain_elsewhere"])
    gain = (means - means.loc[CLEAN]).drop(index=CLEAN)
    gaps = inflation(accuracy).groupby("condition")["gap_points"].agg(list)
    clean, claim = gaps[CLEAN], CLAIMS["dice_inflation"]
    gain.insert(0, "n_models", [len(gaps[name]) for name in gain.index])
    gain["inflation_points"] = [np.mean(gaps[name]) for name in gain.index]
    gain[["ci_low", "ci_high"]] = [_welch_interval(gaps[name], clean) for name in gain.index]
    is_clean = gain.index.isin(CLEAN_CONTROLS)
    controls = gain.loc[is_clean, ["ci_low", "ci_high"]].to_numpy().tolist()
    gain["verdict"] = [
        claim.verdict(
            row.ci_low,
            row.ci_high,
            control=strongest(controls, row.ci_low),
            n_models=min(row.n_models, len(clean)),
        )
        for row in gain.itertuples()
    ]
    gain["verdict"] = gain["verdict"].mask(is_clean, "")
    return gain.reset_index()


def _welch_interval(values: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """95 % t interval of a difference of means; without any spread it has no width."""
    if min(len(values), len(others)) < 2:
        return np.nan, np.nan
    difference = float(np.mean(values) - np.mean(others))
    squares = [np.var(group, ddof=1) / len(group) for group in (values, others)]
    if not sum(squares):
        return difference, difference
    # By hand: scipy warns where one of the two has no spread, which few questions make likely.
    n_less_1 = len(values) - 1, len(others) - 1
    df = sum(squares) ** 2 / sum(s**2 / n for s, n in zip(squares, n_less_1, strict=True))
    half = float(stats.t.ppf(0.975, df) * np.sqrt(sum(squares)))
    return difference - half, difference + half


def inflation(accuracy: pd.DataFrame) -> pd.DataFrame:
    """What contamination did to the score: accuracy on GSM-i minus that on fresh GSM-ii.

    The clean models' mean gap, what the sets differ in difficulty, is taken off. One row
    for each model that was asked both sets.
    """
    wide = accuracy.pivot_table("accuracy_pct", ["condition", "seed"], "benchmark", sort=False)
    wide = wide.dropna(subset=[SEEN, UNSEEN]).reset_index()
    gap = wide[SEEN] - wide[UNSEEN]
    wide["gap_points"] = gap - gap[wide["condition"] == CLEAN].mean()
    wide = wide.rename(columns={SEEN: "accuracy_seen_pct", UNSEEN: "accuracy_fresh_pct"})
    columns = ["condition", "seed", "accuracy_seen_pct", "accuracy_fresh_pct", "gap_points"]
    return wide[columns].rename_axis(columns=None)
