"""The protocol that is the same for every detector: p values, false alarms, power, words.

Frames, as everywhere in this room:

* ``scores``: detector, unit, benchmark, model, condition, copies, row, is_read, score;
* ``sets``: detector, unit, benchmark, model, condition, copies, n_read, n_unread, value, p, own_p;
  ``value`` is the AUC of read against unread siblings (detectors of rows) or the score of the
  set, ``own_p`` a detector's own p value; NaN where there is none.

A **unit** is a base model with its own deal of rows; a **cell** is what a dosed model read
(benchmark, model, condition, copies). One frame holds one room: thresholds never leave it.
Nothing that is said of a detector depends on which others stand in the frame; only
``detector_pairs`` corrects for the pairs that it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.claims import CLAIMS
from contamination.core.statistics import auc, holm, mcnemar_p
from contamination.core.storage import hash_of
from contamination.core.verdicts import (
    ALPHA,
    FEWEST_MODELS,
    INCONCLUSIVE,
    NOT_RUN,
    NOT_SUPPORTED,
    SUPPORTED,
)
from contamination.study.conditions import (
    CLEAN,
    CONDITIONS,
    DOSED,
    MODELS,
    NOTHING_READ,
    READERS,
    VERBATIM,
)

CELL = ["benchmark", "model", "condition", "copies"]
KEY = ["detector", "unit", *CELL]
SET_COLUMNS = [*KEY, "n_read", "n_unread", "value", "p", "own_p"]
RATES = ["false_positive_rate", "false_positive_low", "false_positive_high"]
RATES += [f"clean_{name}" for name in RATES]
POWERS = ["n_rows", "n_flagged", "power_at_5_fpr", "ci_low", "ci_high", "p_value", "p_adjusted"]
POWERS += ["p_against_verbatim"]
RANKED_CELL = ("topics", DOSED, VERBATIM, 3)  # detectors are compared here, and nowhere else

LARGEST_RATE = 0.10  # of false alarms that a calibrated detector may have
N_REDEALS = 9_999
N_UNITS = 3  # fewer say nothing about other units

MISCALIBRATED, UNDETERMINED, CALIBRATED = "miscalibrated", "undetermined", "calibrated"
# Scored and stored, but not judged: neither words nor figures count these detectors.
LEFT_OUT = {
    "DICE": "its network was trained on hidden states of three other base models, and the "
    "coordinates of hidden states are unrelated from one base model to the next"
}


def sets_of(scores: pd.DataFrame) -> pd.DataFrame:
    """``sets`` of detectors of rows: AUC of read against unread siblings, and p by re-dealing.

    ValueError for a row that stands twice, an undefined score, a set without both kinds.
    """
    if scores.duplicated([*KEY, "row"]).any():
        raise ValueError("a row has two scores by one detector under one model")
    rows = []
    for key, part in scores.sort_values("row").groupby(KEY):
        values, is_read = part["score"].to_numpy(float), part["is_read"].to_numpy(bool)
        figures = (auc(values, is_read), permutation_p(values, is_read, key), np.nan)
        rows.append((*key, is_read.sum(), (~is_read).sum(), *figures))
    return pd.DataFrame(rows, columns=SET_COLUMNS)


def permutation_p(scores: np.ndarray, is_read: np.ndarray, key: tuple = ()) -> float:
    """p of a set: (1 + re-deals of its rows with an AUC at least as high) / 10,000.

    Exact whatever the base model, the texts and the ties (mid-ranks), for which rows are read was
    dealt at random. Both arrays have shape (n_rows,). Sets of one size share 9,999 re-deals and
    apply them to their rows in an order of their own, drawn from ``key``.
    """
    return float(permutation_p_of_sets([scores], [is_read], [key])[0])


def permutation_p_of_sets(
    scores: Sequence[np.ndarray], is_read: Sequence[np.ndarray], keys: Sequence[tuple]
) -> np.ndarray:
    """``permutation_p`` of many sets, shape (n_sets,); one product for all sets of one size."""
    return permutation_p_of_ranks([doubled_ranks(values) for values in scores], is_read, keys)


def doubled_ranks(scores: np.ndarray) -> np.ndarray:
    """Twice the mid-rank of each score: whole numbers, so that their sums compare exactly.

    >>> doubled_ranks(np.array([0.3, 0.1, 0.3]))
    array([5., 2., 5.])
    """
    return 2 * stats.rankdata(scores)


def permutation_p_of_ranks(
    ranks: Sequence[np.ndarray], is_read: Sequence[np.ndarray], keys: Sequence[tuple]
) -> np.ndarray:
    """``permutation_p_of_sets`` for whole-number ranks, or their sums over sets of one deal."""
    of_size: dict[tuple[int, int], list[int]] = {}
    for number, (values, of) in enumerate(zip(ranks, is_read, strict=True)):
        of_size.setdefault((len(values), int(np.sum(of))), []).append(number)
    p_values = np.empty(len(ranks))
    for size, numbers in of_size.items():
        deals = _redeals(*size)
        dealt = np.stack([ranks[n][_order_of(keys[n], size[0])] for n in numbers], axis=1)
        found = np.array([ranks[n][is_read[n]].sum() for n in numbers])
        n_as_high = np.sum(deals @ dealt.astype(deals.dtype) >= found, axis=0)
        p_values[numbers] = (1 + n_as_high) / (1 + N_REDEALS)
    return p_values


def _order_of(key: tuple, n_rows: int) -> np.ndarray:
    seed = int(hash_of([str(part) for part in key])[:16], 16)
    return np.random.default_rng(seed).permutation(n_rows)


@lru_cache(maxsize=8)
def _redeals(n_rows: int, n_read: int) -> np.ndarray:
    places = np.random.default_rng([n_rows, n_read]).random((N_REDEALS, n_rows)).argsort(axis=1)
    # Sums below 2^24 are exact in single precision, which is twice as fast.
    return (places < n_read).astype(np.float32 if n_rows < 4_000 else float)


def cross_fitted_thresholds(
    values: np.ndarray, units: np.ndarray, is_unread: np.ndarray
) -> np.ndarray:
    """Threshold of each set, from unread sets of the other half of the bases (even, odd units).

    The ceil(0.95 (n + 1))-th smallest of the n defined values that ``is_unread`` marks: an unread
    set exceeds it with probability at most 0.05 (split conformal prediction). All arrays have
    shape (n_sets,). NaN where n < 19, which has no such value.
    """
    values, is_odd = np.asarray(values, dtype=float), np.asarray(units) % 2 == 1
    is_known = np.asarray(is_unread, dtype=bool) & ~np.isnan(values)
    thresholds = np.full(values.shape, np.nan)
    for half in (is_odd, ~is_odd):
        known = np.sort(values[is_known & ~half])
        place = -(-19 * (known.size + 1) // 20)  # ceil(0.95 (n + 1)), in whole numbers
        thresholds[half] = known[place - 1] if place <= known.size else np.nan
    return thresholds


def flag(sets: pd.DataFrame) -> pd.DataFrame:
    """``sets`` with two columns more: unread and flagged.

    unread is "clean" or "dosed" where such a model read no row of the set, else "". flagged is
    1, 0 or NaN by a detector's own p value if it has one, else by ``p``, else by the cross-fitted
    threshold within the benchmark. ValueError for an unknown word and for a set twice.
    """
    if unknown := {*sets["model"], *sets["condition"]} - {*MODELS, *CONDITIONS}:
        raise ValueError(f"no model or condition is called {min(unknown)!r}")
    if sets.duplicated(KEY).any():
        raise ValueError("a set occurs twice: keep one for each unit and cell")
    sets = sets.reset_index(drop=True).assign(unread="", flagged=np.nan)
    sets.loc[sets["model"].isin(READERS) & sets["condition"].isin(NOTHING_READ), "unread"] = DOSED
    sets.loc[sets["model"].eq(CLEAN), "unread"] = CLEAN
    for _, own in sets.groupby("detector"):
        kept = next((own[p] for p in ("own_p", "p") if own[p].notna().any()), None)
        if kept is not None:
            sets.loc[kept.dropna().index, "flagged"] = kept.dropna().le(ALPHA).astype(float)
            continue
        for _, part in own.groupby("benchmark"):
            limits = cross_fitted_thresholds(part["value"], part["unit"], part["unread"].ne(""))
            above = (part["value"] - limits).dropna()
            sets.loc[above.index, "flagged"] = above.gt(0).astype(float)
    return sets


def clopper_pearson(n_found: Any, n: Any, tail: Any) -> tuple[Any, Any]:
    """Exact limits of shares, ``tail`` outside each; n may be a fraction, and for 0 gives NaN."""
    n = np.where(np.equal(n, 0), np.nan, n)
    low = np.where(np.equal(n_found, 0), 0 * n, stats.beta.ppf(tail, n_found, n - n_found + 1))
    high = np.where(np.equal(n_found, n), 1.0, stats.beta.ppf(1 - tail, n_found + 1, n - n_found))
    return low[()], high[()]


def binomial_p(n_found: float, n: float, share: float) -> float:
    """Exact one-sided p of "the share is at most ``share``"; both numbers may be fractions.

    It agrees with the lower limit of ``clopper_pearson``: p lies below the tail where that limit
    lies above the share. NaN for NaN.

    >>> round(binomial_p(2, 10, 0.05), 4)  # 1 - 0.95^10 - 10 * 0.05 * 0.95^9
    0.0861
    """
    if n_found == 0:
        return 1.0
    return float(stats.beta.cdf(share, n_found, n - n_found + 1))


def effective_number(flags: np.ndarray, units: np.ndarray) -> float:
    """Number of independent sets that tell as much as these, where units were drawn, not sets.

    Sets of a unit may agree, for they share a base and often rows. So the number of sets is
    divided by the design effect (variance of the share between units over that of independent
    sets, at least 1) and multiplied by a squared ratio of t quantiles for few units (Korn &
    Graubard 1998). Both arrays have shape (n_sets,); NaN below three units.
    """
    flags, units = np.asarray(flags, dtype=float), np.unique(units, return_inverse=True)[1]
    n, n_units = flags.size, len(set(units))
    if n_units < N_UNITS:
        return np.nan
    rate = flags.mean()
    between = np.sum(np.bincount(units, flags - rate) ** 2) / n**2 * n_units / (n_units - 1)
    independent = rate * (1 - rate) / (n - 1)
    effect = max(1.0, between / independent) if independent > 0 else 1.0
    return float(n / effect * np.divide(*stats.t.ppf(1 - ALPHA, [n - 1, n_units - 1])) ** 2)


def false_alarm_limits(flags: np.ndarray, units: np.ndarray) -> tuple[float, float]:
    """One-sided 95 % lower and upper limit of a share of flags, where units were drawn, not sets.

    Clopper-Pearson at the effective number of sets; plain Clopper-Pearson with one set a unit. A
    bootstrap of units has no width where nothing is flagged. Both arrays have shape (n_sets,);
    NaN below three units.
    """
    n_effective = effective_number(flags, units)
    if np.isnan(n_effective):
        return np.nan, np.nan
    return clopper_pearson(np.mean(flags) * n_effective, n_effective, ALPHA)


def calibration_word(low: float, high: float) -> str:
    """Calibrated if the upper limit is at most 0.10, miscalibrated if the lower is above 0.05."""
    word = MISCALIBRATED if low > ALPHA else UNDETERMINED
    return NOT_RUN if np.isnan(low) else CALIBRATED if high <= LARGEST_RATE else word


def false_alarms(sets: pd.DataFrame) -> pd.DataFrame:
    """Share of unread sets that each detector flags, apart for dosed and for clean models.

    Benchmarks are pooled: the rule for a flag is one, and one benchmark has too few sets.

    Returns:
        Indexed by detector: ``RATES``, shares and one-sided 95 % limits ("clean_" of clean models,
        the others of dosed ones), and calibration, the worse of the two.
    """
    worst_first = (MISCALIBRATED, NOT_RUN, UNDETERMINED, CALIBRATED)
    rows = {}
    for detector, own in flag(sets).groupby("detector"):
        kinds = [own[own["unread"].eq(kind) & own["flagged"].notna()] for kind in (DOSED, CLEAN)]
        limits = [false_alarm_limits(of["flagged"], of["unit"]) for of in kinds]
        rates = [(of["flagged"].mean(), *ends) for of, ends in zip(kinds, limits, strict=True)]
        words = [calibration_word(*ends) for ends in limits]
        rows[detector] = (*rates[0], *rates[1], min(words, key=worst_first.index))
    return pd.DataFrame.from_dict(rows, orient="index", columns=[*RATES, "calibration"])


def power_word(p_adjusted: float, high: float, n_units: int) -> str:
    """The verdict on a power, which the protocol leaves to a test and an upper limit.

    Supported (the protocol's *seen*) if the adjusted p is at most 0.05; not supported (*mostly
    escapes*) if the upper limit lies below a power of one half; else inconclusive (*cannot
    tell*), as with fewer than five units. Not run for NaN.
    """
    if np.isnan(p_adjusted):
        return NOT_RUN
    if n_units < FEWEST_MODELS:
        return INCONCLUSIVE
    if p_adjusted <= ALPHA:
        return SUPPORTED
    claim = CLAIMS["detectors"]
    return NOT_SUPPORTED if high < claim.null + claim.smallest_effect else INCONCLUSIVE


def power_table(sets: pd.DataFrame) -> pd.DataFrame:
    """Share of units that each detector flags in each cell whose tested rows were read.

    Returns:
        detector, ``CELL``, n_units, ``POWERS``, word. ci_ is Clopper-Pearson, simultaneous over the
        detector's cells (Bonferroni); p_value of power <= 0.05, exact binomial, and adjusted by
        Holm over the cells; p_against_verbatim of McNemar against verbatim rows at the same dose
        with nothing read after them, adjusted so. word is blank for those that are ``LEFT_OUT``.
    """
    sets = flag(sets)
    sets = sets[sets["model"].isin(READERS) & ~sets["condition"].isin(NOTHING_READ)]
    is_verbatim = sets["model"].eq(DOSED) & sets["condition"].eq(VERBATIM)
    pair = ["detector", "unit", "benchmark", "copies"]
    verbatim = sets[is_verbatim].set_index(pair)["flagged"].rename("verbatim")
    change = (sets["flagged"] - sets.join(verbatim, on=pair)["verbatim"]).mask(is_verbatim)
    columns = {"n_rows": sets["n_read"] + sets["n_unread"]}
    columns |= {"change": change, "more": change.gt(0), "fewer": change.lt(0)}
    cells = sets.assign(**columns).groupby(["detector", *CELL])
    table = cells.agg(n_units=("flagged", "count"), n_flagged=("flagged", "sum"))
    table["n_rows"] = cells["n_rows"].min()
    p_change = mcnemar_p(cells["more"].sum(), cells["fewer"].sum())
    table["p_against_verbatim"] = np.where(cells["change"].count() > 0, p_change, np.nan)
    table = table.reset_index()
    n, n_flagged = table["n_units"], table["n_flagged"]
    table["power_at_5_fpr"] = n_flagged / n
    n_cells = n.gt(0).groupby(table["detector"]).transform("sum")
    table["ci_low"], table["ci_high"] = clopper_pearson(n_flagged, n, ALPHA / 2 / n_cells)
    table["p_value"] = stats.binom.sf(n_flagged - 1, n.where(n > 0), ALPHA)
    table["p_adjusted"] = table["p_value"]
    for name in ("p_adjusted", "p_against_verbatim"):
        for _, p in table[name].dropna().groupby(table["detector"]):
            table.loc[p.index, name] = holm(p)
    words = [*map(power_word, table["p_adjusted"], table["ci_high"], n)]
    table["word"] = np.where(table["detector"].isin(LEFT_OUT), "", words)
    order = {word: place for place, word in enumerate([*READERS, *CONDITIONS])}
    table = table.sort_values(["detector", *CELL], key=lambda column: column.replace(order))
    return table[["detector", *CELL, "n_units", *POWERS, "word"]].reset_index(drop=True)


def detector_pairs(sets: pd.DataFrame, detectors: Sequence[str]) -> pd.DataFrame:
    """Each two of some detectors on ``RANKED_CELL``, paired by unit; they are one family.

    Returns:
        detector, other, n_units, n_only_detector, n_only_other, p (``mcnemar_p``) and p_adjusted,
        by Holm over all rows.
    """
    cell = flag(sets)[(sets[CELL] == list(RANKED_CELL)).all(axis=1).to_numpy()]
    flags = cell.pivot(index="unit", columns="detector", values="flagged")
    rows = []
    for pair in combinations([name for name in detectors if name in flags], 2):
        change = (flags[pair[0]] - flags[pair[1]]).dropna()
        n_only = (int(change.gt(0).sum()), int(change.lt(0).sum()))
        rows.append((*pair, len(change), *n_only, mcnemar_p(*n_only)))
    columns = ["detector", "other", "n_units", "n_only_detector", "n_only_other", "p"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(p_adjusted=holm(table["p"]))
