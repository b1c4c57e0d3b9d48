"""Which ways of reading a benchmark each method still sees: power at 5 % false positives.

The threshold of a method is fixed by clean models alone: the largest statistic
that at most 5 % of (clean model, dataset) pairs exceed. Power is the share of
dosed models whose dataset exceeds it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from contamination.evidence.conditions import CLEAN, CONDITIONS, FRESH, TRAIN_SPLIT, VERBATIM
from contamination.evidence.measuring import DICE, METHODS, Key, Measured, statistics_of
from contamination.statistics import percentile_interval, share_interval

FPR = 0.05
LEFT_OUT = "clean model, left out"
NOTHING_READ = (TRAIN_SPLIT, FRESH)  # no row asked about was read: a flag is a false alarm
N_RESAMPLES = 2_000
COLUMNS = [
    "method",
    "condition",
    "copies",
    "n_models",
    "n_detected",
    "power_at_5_fpr",
    "ci_low",
    "ci_high",
    "n_rows",
    "threshold",
    "n_clean_models",
    "n_clean_datasets",
    "verdict",
]


def threshold(clean: Sequence[float], fpr: float = FPR) -> float:
    """The smallest observed value that at most a share ``fpr`` of clean values exceeds.

    >>> threshold([0.1, 0.2, 0.3, 0.4], 0.25)
    0.3
    """
    values = np.sort(np.asarray(clean, dtype=float))[::-1]
    if not values.size:
        raise ValueError("a threshold needs the statistic of a clean model")
    # The tolerance keeps 0.05 * 20 at one in binary arithmetic.
    return float(values[min(int(fpr * values.size + 1e-9), values.size - 1)])


def evasion_table(measured: Sequence[Measured], copies: Sequence[int]) -> pd.DataFrame:
    """``evasion.csv``: every method under every condition, by dose.

    n_detected of n_models exceed the threshold; ci_low and ci_high are Wilson's interval of
    this share over models (a bootstrap of six models that agree has no width); n_rows of each
    dataset. Rows of the condition "clean model, left out" hold the share of a clean model's
    datasets above the threshold that the other clean models set, with an interval that
    resamples models; copies is the dose of DICE's detectors and empty for the other methods.
    For verdict see :func:`verdict`.
    """
    rows = []
    for dose in copies:
        for method, values in statistics_of(measured, dose).items():
            n_rows = len(measured[0].texts)
            rows += [row | {"n_rows": n_rows} for row in _rows(method, values, dose)]
    # Without a detector that learnt a dose, clean models are the same for every dose.
    table = pd.DataFrame(rows).astype({"copies": "Int64"})
    is_same = table["condition"].eq(LEFT_OUT) & table["method"].ne(DICE)
    table.loc[is_same, "copies"] = pd.NA
    table = table.drop_duplicates(["method", "condition", "copies"])
    order = {name: place for place, name in enumerate([*METHODS, *CONDITIONS, LEFT_OUT])}
    return table.sort_values(
        ["method", "copies", "condition"],
        key=lambda column: column if column.name == "copies" else column.map(order),
        ignore_index=True,
    )[COLUMNS]


def _rows(method: str, values: Mapping[Key, float], dose: int) -> list[dict]:
    clean: dict[int, list[float]] = {}
    for (kind, _, seed, _), value in values.items():
        if kind == CLEAN:
            clean.setdefault(seed, []).append(value)
    pooled = [value for of_model in clean.values() for value in of_model]
    limit = threshold(pooled)
    common = {"method": method, "copies": dose, "threshold": limit}
    common |= {"n_clean_models": len(clean), "n_clean_datasets": len(pooled)}
    rows = [common | _left_out(clean)]
    for condition in CONDITIONS:
        dosed = [v for key, v in values.items() if key[0] != CLEAN and key[3] == condition]
        n_detected = sum(value > limit for value in dosed)
        low, high = share_interval(n_detected, len(dosed))
        power = n_detected / len(dosed) if dosed else math.nan
        row = {"condition": condition, "n_models": len(dosed), "n_detected": n_detected}
        rows.append(common | row | {"power_at_5_fpr": power, "ci_low": low, "ci_high": high})
    verbatim = next(row for row in rows if row["condition"] == VERBATIM)
    return [row | {"verdict": verdict(row, verbatim)} for row in rows]


def verdict(row: Mapping, verbatim: Mapping) -> str:
    """What a method does under a condition, against 5 % false positives.

    ``verbatim`` is the row of the same method and dose for rows read word for word.

    Returns:
        "not run"; where nothing was read "false alarm" or "no alarm"; for clean models left
        out "threshold holds" or "threshold fails"; else "found" where the interval lies above
        5 %, "hidden" where it lies below that of verbatim rows, "cannot be told".
    """
    if not row["n_models"]:
        return "not run"
    is_above = row["ci_low"] > FPR
    if row["condition"] == LEFT_OUT:
        return "threshold fails" if is_above else "threshold holds"
    if row["condition"] in NOTHING_READ:
        return "false alarm" if is_above else "no alarm"
    if verbatim["ci_low"] > FPR and row["ci_high"] < verbatim["ci_low"]:
        return "hidden"
    return "found" if is_above else "cannot be told"


def _left_out(clean: Mapping[int, Sequence[float]]) -> dict:
    shares = []
    for seed, own in clean.items():
        others = [value for other, of in clean.items() if other != seed for value in of]
        shares.append(float(np.mean(np.array(own) > threshold(others))))
    shares = np.array(shares)
    drawn = np.random.default_rng(0).integers(len(shares), size=(N_RESAMPLES, len(shares)))
    low, high = percentile_interval(shares[drawn].mean(axis=1))
    n_detected = round(float(shares.sum()) * len(next(iter(clean.values()))))
    row = {"condition": LEFT_OUT, "n_models": len(clean), "n_detected": n_detected}
    return row | {"power_at_5_fpr": float(shares.mean()), "ci_low": low, "ci_high": high}
