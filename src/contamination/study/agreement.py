"""Whether models that were trained again give the scores of the ledger: the spot check's rule.

In the environment that the ledger was made in, every score must be the same. Elsewhere rounding
differs and training carries it on, so that a model may lie as far off as was measured between two
environments, and must lie nearer to itself than to any other seed. Frames are ``scores`` as in
``study.protocol``; a unit is one of the seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from contamination.core.statistics import auc
from contamination.study.conditions import FRESH
from contamination.study.protocol import KEY

TOLERANCE = 1e-6  # of a score in single precision; relative to it where it is above 1
MARGIN = 10  # times the largest distance that was measured, under one other base model
REPRODUCED, DIFFERS, NOT_RECOMPUTABLE = "reproduced", "differs", "not recomputable"
SAME, WITHIN, NUMERICS = "the same scores", "within the spread", "numerics"
ALTERED, ANOTHER, RECIPE = "other scores", "another model", "another recipe"
WORLD = "other texts"
OUTCOMES = dict.fromkeys((SAME, WITHIN), REPRODUCED)
OUTCOMES |= dict.fromkeys((ALTERED, ANOTHER, RECIPE), DIFFERS)
OUTCOMES |= dict.fromkeys((NUMERICS, WORLD), NOT_RECOMPUTABLE)
HOLDS = {REPRODUCED: True, DIFFERS: False}  # else undecided


def rms(differences: Any) -> Any:
    """Root mean square, over rows where these are columns of a frame."""
    return np.sqrt((differences**2).mean())


def between_seeds(scores: pd.DataFrame) -> pd.DataFrame:
    """RMS differences of two models on the rows that none of them read, ``FRESH``.

    Returns:
        By detector: median and min over pairs of models.
    """
    unread = scores[scores["condition"].eq(FRESH)]
    rows = {}
    for detector, own in unread.groupby("detector"):
        wide = own.pivot(index="row", columns="unit", values="score")
        pairs = [rms(wide[one] - wide[other]) for one, other in combinations(wide, 2)]
        rows[detector] = {"median": np.median(pairs), "min": np.min(pairs)}
    return pd.DataFrame.from_dict(rows, orient="index")


def distances(scores: pd.DataFrame, stored: pd.DataFrame) -> pd.DataFrame:
    """How far new scores of some models lie from the stored ones of all.

    Returns:
        By unit and detector: n_scores; largest_difference, over the size of the score where that
        is above 1; relative_rms, over the median ``between_seeds``; auc_change, the largest of a
        set; is_nearest, whether the stored scores of no other seed are as near, on ``FRESH`` rows.

    ValueError where the two do not have the same rows.
    """
    known = stored[stored["unit"].isin(scores["unit"])]
    new = scores.assign(new=scores["score"].astype("float32").astype(float)).drop(columns="score")
    both = known.merge(new, on=[*KEY, "row", "is_read"])
    if not len(both) == len(known) == len(new):
        raise ValueError("the ledger does not hold one score for each row that was scored")
    unread = stored[stored["condition"].eq(FRESH)]
    typical, rows = between_seeds(stored)["median"], []
    for (unit, detector), own in both.groupby(["unit", "detector"]):
        off = own["new"] - own["score"]
        aucs = own.groupby("condition")[["new", "score", "is_read"]].apply(
            lambda part: auc(part["new"], part["is_read"]) - auc(part["score"], part["is_read"])
        )
        of_seeds = unread[unread["detector"].eq(detector)]
        of_seeds = of_seeds.pivot(index="row", columns="unit", values="score")
        again = own[own["condition"].eq(FRESH)].set_index("row")["new"]
        far = rms(of_seeds.sub(again, axis=0))
        rows.append(
            {
                "unit": unit,
                "detector": detector,
                "n_scores": len(own),
                "largest_difference": (off.abs() / own["score"].abs().clip(lower=1)).max(),
                "relative_rms": rms(off) / typical[detector],
                "auc_change": aucs.abs().max(),
                "is_nearest": bool((far.drop(unit) > far[unit]).all()),
            }
        )
    return pd.DataFrame(rows).set_index(["unit", "detector"])


def judge_agreement(
    scores: pd.DataFrame, stored: pd.DataFrame, spread: Mapping[str, Mapping], is_same: bool
) -> pd.DataFrame:
    """``distances`` with limits, and reason, ``with_outcome``.

    ``spread`` has the largest relative_rms and auc_change that were measured, by detector;
    ``is_same`` says whether the environment is the ledger's. "Another model" lies as far off as
    the two nearest seeds from one another, or nearer to another seed; "numerics" lies between.
    """
    table = distances(scores, stored).reset_index()
    apart = between_seeds(stored)
    another = table["detector"].map(apart["min"] / apart["median"])
    if is_same:
        agrees = table["largest_difference"] <= TOLERANCE
        table["tolerance"], table["reason"] = TOLERANCE, np.where(agrees, SAME, ALTERED)
    else:
        agrees = table["is_nearest"]
        for name in ("relative_rms", "auc_change"):
            largest = {detector: MARGIN * measured[name] for detector, measured in spread.items()}
            table[f"{name}_tolerance"] = table["detector"].map(largest)
            agrees &= table[name] <= table[f"{name}_tolerance"]
        is_other = ~table["is_nearest"] | (table["relative_rms"] >= another)
        table["reason"] = np.select([agrees, is_other], [WITHIN, ANOTHER], NUMERICS)
    return with_outcome(table)


def with_outcome(table: pd.DataFrame) -> pd.DataFrame:
    """The table with what its reasons mean: outcome (reproduced, differs, not recomputable), and
    holds (true, false or undecided)."""
    outcome = table["reason"].map(OUTCOMES)
    return table.assign(outcome=outcome, holds=outcome.map(HOLDS).astype("boolean"))
