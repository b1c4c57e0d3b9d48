"""Table 1: accuracy of every model on every set of problems, and how much of it is false."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.parallel import in_processes
from contamination.core.statistics import CONFIDENCE
from contamination.core.verdicts import FEWEST_MODELS
from contamination.dice import published_tables
from contamination.dice.answers import accuracy_row
from contamination.dice.mixtures import IN_DISTRIBUTION, SEEN, UNSEEN, Problems
from contamination.dice.pool import (
    CLEAN,
    HIGH,
    LOW,
    OTHER_CLEAN,
    Condition,
    FineTunedModel,
)
from contamination.models.causal import CausalLM, load_causal_lm

DOSE_NAMES = {0: "OpenOrca 100%", LOW: "{} 2%", HIGH: "{} 10%"}  # as Table 1 prints them


def within_floor(accuracy_pct: float, floor_pct: Sequence[float]) -> bool:
    """Whether clean models of this mean accuracy, percent, could be seen to gain and to fall."""
    return bool(floor_pct[0] <= accuracy_pct <= floor_pct[1])


def check_floor(accuracies_pct: Sequence[float], floor_pct: Sequence[float]) -> float:
    """Mean accuracy of the clean models, in percent.

    Raises:
        ValueError: if it leaves no room: nothing could be inflated, or seen to fall.
    """
    mean = float(np.mean(accuracies_pct))
    if not within_floor(mean, floor_pct):
        raise ValueError(
            f"the clean models answer {mean:.0f} % of GSM-i and GSM-ii, outside {floor_pct[0]:g} "
            f"to {floor_pct[1]:g} %: change n_skill_rows, or set floor_pct to accept it"
        )
    return mean


def accuracy_rows(
    trained: Mapping[str, Mapping[int, FineTunedModel]],
    problems: Mapping[str, Problems],
    sets: Mapping[str, Sequence[str]],
    max_new_tokens: int,
    base_model: str,
    conditions: Sequence[Condition],
    load: Callable[[Path], CausalLM] = load_causal_lm,
    paper_model: str = "LLaMA2-7B",
    processes: int | None = None,
) -> pd.DataFrame:
    """Accuracy of every model (condition, seed) on its condition's sets of problems.

    ``load`` loads a model, in another dtype or on a cluster. The printed cells of Table 1's
    base model ``paper_model`` stand beside ("" for none), empty where there is no such cell.
    ``processes`` models answer at a time, see ``core.parallel.in_processes``.
    """
    printed = published_tables.printed_accuracy(paper_model)
    jobs = [
        (load, model.folder, [problems[name] for name in sets[condition.name]], max_new_tokens)
        for condition in conditions
        for model in trained[condition.name].values()
    ]
    answered = iter(in_processes(_answer_rows, jobs, processes))
    rows = []
    for condition in conditions:
        for seed, model in trained[condition.name].items():
            for name, answers in zip(sets[condition.name], next(answered), strict=True):
                training = DOSE_NAMES.get(condition.copies, "").format(condition.problems)
                is_paper = condition.name != OTHER_CLEAN
                rows.append(
                    {"base_model": base_model, "contamination": condition.problems or CLEAN}
                    | {"condition": condition.name, "copies": condition.copies}
                    | {"dose_pct": model.dose_pct, "n_steps": model.n_steps}
                    | {"seed": seed, "benchmark": name}
                    | {"in_distribution": name in IN_DISTRIBUTION}
                    | answers
                    | {"paper": printed.get((training, name)) if is_paper else None}
                )
    return pd.DataFrame(rows)


def _answer_rows(
    load: Callable[[Path], CausalLM], folder: Path, sets: Sequence[Problems], max_new_tokens: int
) -> list[dict]:
    """``accuracy_row`` of one model on each set."""
    lm = load(folder)
    return [accuracy_row(lm, one, max_new_tokens) for one in sets]


def gains(accuracy: pd.DataFrame) -> pd.DataFrame:
    """What contamination adds to the mean accuracy of clean models, in points.

    Seen is GSM-i and fresh is GSM-ii, except in conditions that were trained on GSM-ii: there
    the two exchange roles (:func:`seen_and_fresh`).

    Returns:
        condition, reference_pct (mean accuracy of the clean models on GSM-i and GSM-ii), n_models,
        gain_seen, gain_fresh, inflation_points (gain_seen minus
        gain_fresh: what of the score is false) with ci_low and ci_high, Welch's 95 % over models,
        and p, its test of no inflation: empty for clean models, which make no claim, and with
        fewer than five models of either kind, which decide nothing.
    """
    kind = accuracy["benchmark"].map({SEEN: "gain_seen", UNSEEN: "gain_fresh"})
    means = accuracy.pivot_table("accuracy_pct", "condition", kind, sort=False)
    means = means.reindex(columns=["gain_seen", "gain_fresh"])
    gaps = _gaps(accuracy).groupby("condition")["gap"].agg(list).map(np.array)
    rows = []
    for name in means.index.drop(CLEAN):
        is_exchanged = seen_and_fresh(name)[0] == UNSEEN
        own, clean = (-values if is_exchanged else values for values in gaps[[name, CLEAN]])
        low, high, p = _welch(own, clean)
        decides = name != OTHER_CLEAN and min(len(own), len(clean)) >= FEWEST_MODELS
        gained = means.loc[name] - means.loc[CLEAN]
        if is_exchanged:
            gained = gained.rename({"gain_seen": "gain_fresh", "gain_fresh": "gain_seen"})
        rows.append(
            {"condition": name, "reference_pct": means.loc[CLEAN].mean()}
            | {"n_models": len(own)}
            | gained[means.columns].to_dict()
            | {"inflation_points": np.mean(own) - np.mean(clean), "ci_low": low, "ci_high": high}
            | {"p": p if decides else np.nan}
        )
    return pd.DataFrame(rows)


def seen_and_fresh(condition: str) -> tuple[str, str]:
    """The set whose score a condition may inflate, and the set that it is compared with.

    >>> seen_and_fresh("GSM-ii x5"), seen_and_fresh("GSM-i-Syn x5")
    (('GSM-ii', 'GSM-i'), ('GSM-i', 'GSM-ii'))
    """
    return (UNSEEN, SEEN) if condition.startswith(f"{UNSEEN} x") else (SEEN, UNSEEN)


def _welch(values: Sequence[float], others: Sequence[float]) -> tuple[float, float, float]:
    """95 % t interval of a difference of means and p of none; no width without any spread."""
    if min(len(values), len(others)) < 2:
        return np.nan, np.nan, np.nan
    difference = float(np.mean(values) - np.mean(others))
    squares = [np.var(group, ddof=1) / len(group) for group in (values, others)]
    if not sum(squares):
        return difference, difference, float(difference == 0)
    # By hand: scipy warns where one of the two has no spread, which few questions make likely.
    n_less_1 = len(values) - 1, len(others) - 1
    df = sum(squares) ** 2 / sum(s**2 / n for s, n in zip(squares, n_less_1, strict=True))
    error = float(np.sqrt(sum(squares)))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, df) * error)
    p = float(2 * stats.t.sf(abs(difference) / error, df))
    return difference - half, difference + half, p


def inflation(accuracy: pd.DataFrame) -> pd.DataFrame:
    """What contamination did to the score: accuracy on the seen minus that on the fresh set.

    Which set is which, see :func:`seen_and_fresh`. The mean gap of the clean models, what the sets
    differ in difficulty, is taken off. One row for each model that
    was asked both sets.
    """
    wide = _gaps(accuracy)
    of_clean = wide.groupby("condition")["gap"].mean()[CLEAN]
    is_exchanged = wide["condition"].map(lambda name: seen_and_fresh(name)[0] == UNSEEN)
    gaps = wide["gap"] - of_clean
    wide["gap_points"] = gaps.where(~is_exchanged, -gaps)
    wide["accuracy_seen_pct"] = wide[SEEN].where(~is_exchanged, wide[UNSEEN])
    wide["accuracy_fresh_pct"] = wide[UNSEEN].where(~is_exchanged, wide[SEEN])
    columns = ["condition", "seed", "accuracy_seen_pct", "accuracy_fresh_pct", "gap_points"]
    return wide[columns].rename_axis(columns=None)


def _gaps(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of each model on both sets, and gap, GSM-i minus GSM-ii, points."""
    wide = accuracy.pivot_table("accuracy_pct", ["condition", "seed"], "benchmark", sort=False)
    wide = wide.dropna(subset=[SEEN, UNSEEN]).reset_index()
    return wide.assign(gap=wide[SEEN] - wide[UNSEEN])
