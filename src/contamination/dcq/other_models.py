"""A model of the reader's next to a paper's released answers, and next to a clean model."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from contamination.core.families import correct_family
from contamination.core.statistics import end_p, percentile_interval
from contamination.core.verdicts import CLAIMS, strongest
from contamination.dcq.assessment import resample_counts
from contamination.dcq.comparison import answers_of, share_pct
from contamination.dcq.controls import by_position, credits_of


def compare_with_released_answers(
    choices: pd.DataFrame, instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Every taker of ``choices`` beside a model's released answers, on the instances it took.

    Shares are means over the model's least preferred positions, found on all its instances; E
    counts as wrong. The interval of difference_pct (taker minus model, points) is a paired
    bootstrap over instances.

    Returns:
        model, dataset, control, n, model_pct, control_pct, difference_pct, ci_low_pct,
        ci_high_pct, n_control_wrong (mean over positions) and model_where_wrong_pct, the model's
        share on the quizzes that the taker gets wrong: ``beyond_rules`` judges it.
    """
    rows, choices = [], choices.assign(credit=credits_of(choices))
    for _, of_pair in instances.groupby(["model", "dataset"], sort=False):
        answers = answers_of(of_pair)
        of_dataset = choices[choices["dataset"] == answers.dataset]
        for control, of_control in of_dataset.groupby("control", sort=False):
            credit = by_position(of_control, "credit", answers.positions)
            taken = np.isin(answers.index, of_control["index"].unique())
            right = answers.is_right[:, taken]
            gain = 100 * (credit - right).mean(axis=0)
            weights = np.vstack(list(resample_counts(len(gain), n_resamples, seed)))
            low, high = percentile_interval(weights @ gain / len(gain))
            row = {"model": answers.model, "dataset": answers.dataset, "control": control}
            row |= {"n": len(gain), "model_pct": 100 * right.mean()}
            row |= {"control_pct": 100 * credit.mean(), "difference_pct": gain.mean()}
            row |= {"ci_low_pct": low, "ci_high_pct": high}
            row["n_control_wrong"] = (1 - credit).sum(axis=1).mean()
            rows.append(row | {"model_where_wrong_pct": share_pct(right, 1 - credit)})
    return pd.DataFrame(rows)


def compare_with_clean_model(
    choices: pd.DataFrame,
    taker: str,
    clean: str,
    unread: Collection[str] = (),
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """``pretrained_readings.csv``: a taker beside one that has read none of the quizzes.

    Both take the same quizzes. ``taker`` and ``clean`` are controls of ``choices``. A share is
    the mean over instances and positions of the original, in percent, 25 by chance. Datasets of
    ``unread`` nobody can have read, so they show what the taker's taste alone can do.

    Returns:
        dataset, n, taker_pct and clean_pct, each with a 95 % interval (taker_low_pct, ...), and
        difference_pct with its own (ci_low_pct, ci_high_pct): a bootstrap over instances, paired;
        is_unread; holds, of unread datasets alone: the taker is not ahead there; and verdict,
        of all other datasets: the taker is ahead by more than on any unread dataset, whose
        intervals are the controls; p of no difference, for datasets with a verdict alone, and
        p_adjusted (Holm over these datasets).
    """
    rows, choices = [], choices.assign(credit=100 * credits_of(choices))
    for dataset, of_dataset in choices.groupby("dataset", sort=False):
        credit = of_dataset.groupby(["control", "index"], sort=False)["credit"].mean().unstack()
        values = {"taker": credit.loc[taker].to_numpy(), "clean": credit.loc[clean].to_numpy()}
        values["difference"] = values["taker"] - values["clean"]
        n = credit.shape[1]
        weights = np.vstack(list(resample_counts(n, n_resamples, seed))) / n
        row = {"dataset": dataset, "n": n}
        for name, value in values.items():
            low, high = percentile_interval(weights @ value)
            ends = "ci" if name == "difference" else name
            row |= {f"{name}_pct": value.mean(), f"{ends}_low_pct": low, f"{ends}_high_pct": high}
        rows.append(row | {"is_unread": dataset in unread})
    table = pd.DataFrame(rows)
    claim, ends = CLAIMS["pretrained_readings"], ["ci_low_pct", "ci_high_pct"]
    by_taste = table.loc[table["is_unread"], ends].to_numpy().tolist()
    table["holds"] = (table["ci_low_pct"] <= claim.null).astype(object).where(table["is_unread"])
    table["verdict"] = [
        ""
        if row.is_unread
        else claim.verdict(
            row.ci_low_pct, row.ci_high_pct, control=strongest(by_taste, row.ci_low_pct)
        )
        for row in table.itertuples()
    ]
    ends = table["difference_pct"], table["ci_low_pct"], table["ci_high_pct"]
    p_values = pd.Series([end_p(*of_row) for of_row in zip(*ends, strict=True)], table.index)
    return correct_family(table.assign(p=p_values.mask(table["is_unread"])))
