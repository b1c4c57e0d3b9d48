"""Families F1, F2 and F3 of ``docs/protocol_2.md``, and the reference attack, as tables.

Each function takes the scores as ``scores.arrange_scores`` gives them. ``shares`` are
the rows of ``row_pools.exposure``: how much of the training tokens each exposure is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.scores import PPL
from contamination.core.statistics import holm
from contamination.core.verdicts import ALPHA, CLAIMS, Claim, verdict_column
from contamination.study import reference_attack
from contamination.study.assignment import HELD_OUT
from contamination.study.conditions import VERBATIM
from contamination.study.crossed import (
    CrossedScores,
    Estimate,
    LeftOut,
    auc_left_out,
    crossed_interval,
    interval_left_out,
    mean_left_out,
    permutation_p_by_model,
    smallest_stouffer,
    stouffer,
)
from contamination.study.pretraining import later_name
from contamination.study.scores import (
    ACCESS,
    CONTROLS,
    OF_LATER,
    StudyScores,
    display_name,
    exposures,
)
from contamination.study.row_pools import INDIRECT, LATER_TOKENS, ROWS

DETECTION, INDIRECTLY, LATER = (
    "pretraining_detection",
    "pretraining_indirect",
    "pretraining_later",
)
DIFFERENCES = (-1.0, 1.0)  # bounds of a difference of two AUCs


class ExposureAucs(NamedTuple):
    """AUCs of one detector at one exposure."""

    estimate: Estimate
    by_model: np.ndarray  # mean over benchmarks, shape (n_models,)
    p_values: np.ndarray  # of every model and benchmark


def _found(
    study: StudyScores, detector: str, kind: str, exposure: int, benchmarks: Sequence[str]
) -> ExposureAucs:
    found = [of_pool(study, detector, kind, exposure, benchmark) for benchmark in benchmarks]
    parts = mean_left_out([auc for auc, _ in found])
    p_values = np.concatenate([p for _, p in found])
    return ExposureAucs(interval_left_out(parts), parts.by_model, p_values)


@cache
def of_pool(
    study: StudyScores, detector: str, kind: str, exposure: int, benchmark: str
) -> tuple[LeftOut, np.ndarray]:
    """AUC and p of every model; several tables ask for the same ones."""
    benchmarks, pools = study.benchmarks(detector, kind), study.pools_of(detector, kind)
    pool = pools[benchmarks.index(benchmark)]
    return auc_left_out(pool, exposure), permutation_p_by_model(pool, exposure)


def share_pct(
    shares: pd.DataFrame, benchmarks: Sequence[str], kind: str, form: str, copies: int
) -> float:
    """What one row with its copies is of all training tokens, in percent; mean over benchmarks.

    ValueError where a benchmark is not among ``shares``.
    """
    key = {"pool": kind, "form": form, "copies": copies}
    own = shares[(shares[list(key)] == list(key.values())).all(axis=1)]
    own = own.set_index("benchmark")["row_share_pct"]
    if missing := {*benchmarks} - {*own.index}:
        raise ValueError(f"the share of {form}, {copies} copies, is not known for {min(missing)}")
    return float(own.loc[list(benchmarks)].mean())


def _auc_rows(
    study: StudyScores, shares: pd.DataFrame, detectors: Sequence[str], kind: str
) -> list[dict]:
    """A row for each detector and exposure: its AUC, averaged over benchmarks, and its p."""
    rows = []
    for detector in detectors:
        pools, benchmarks = study.pools_of(detector, kind), study.benchmarks(detector, kind)
        for exposure, group in exposures(kind).items() if pools else ():
            found = _found(study, detector, kind, exposure, benchmarks)
            n_seen = sum(int((pool.copies[0] == exposure).sum()) for pool in pools)
            n_held_out = sum(int((pool.copies[0] == HELD_OUT).sum()) for pool in pools)
            rows.append(
                {
                    "detector": display_name(detector),
                    "access": ACCESS.get(detector, ""),
                    "benchmarks": ", ".join(benchmarks),
                    "exposure": group.form,
                    "copies": group.copies,
                    "row_share_pct": share_pct(shares, benchmarks, kind, group.form, group.copies),
                    "n_models": len(study.base_seeds),
                    "n_rows": n_seen,
                    "n_held_out": n_held_out,
                    **_auc_columns(found.estimate, found.by_model),
                    "n_tests": len(found.p_values),
                    "n_flagged": int((found.p_values <= ALPHA).sum()),
                    "p_value": stouffer(found.p_values),
                }
            )
    return rows


def _auc_columns(estimate: Estimate, by_model: np.ndarray) -> dict[str, float]:
    """AUC with interval, range over models and standard errors; no interval without any spread."""
    return {
        "auc": estimate.value,
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        "auc_min": float(by_model.min()),
        "auc_max": float(by_model.max()),
        "se_models": estimate.se_models,
        "se_rows": estimate.se_rows,
    }


def judged(
    table: pd.DataFrame, claim: Claim, low: str, high: str, smallest_p: Callable[[int], float]
) -> pd.DataFrame:
    """A family with Holm's p over all its rows and the verdict of each row.

    Where every model gives the same value there is no interval, and the range over models
    (``low``, ``high``) decides. ``smallest_p``: what the test of a row can give, by its n_tests.
    """
    table = table.assign(p_adjusted=holm(table["p_value"]))
    # Holm asks the first test for the level over the number of tests.
    can_reject = [smallest_p(n) * len(table) <= ALPHA for n in table["n_tests"]]
    known = table.assign(
        ci_low=table["ci_low"].fillna(table[low]), ci_high=table["ci_high"].fillna(table[high])
    )
    verdicts = verdict_column(known, claim, n_models="n_models", can_reject=can_reject)
    return table.assign(verdict=verdicts)


def _of_auc(rows: list[dict], claim: Claim) -> pd.DataFrame:
    return judged(pd.DataFrame(rows), claim, "auc_min", "auc_max", smallest_stouffer)


def detection(study: StudyScores, shares: pd.DataFrame) -> pd.DataFrame:
    """F1: which detectors see rows that were in the pretraining data so many times.

    Returns:
        a row for each detector and number of copies: detector, access, benchmarks, exposure,
        copies, row_share_pct (one row with its copies, of all training tokens), n_models, n_rows
        and n_held_out of one model, auc, ci_low, ci_high, auc_min and auc_max over models,
        se_models, se_rows, n_tests, n_flagged (single models and benchmarks with p <= 0.05),
        p_value, lira_auc, lira_low, lira_high (the reference attack on the same benchmarks),
        p_adjusted (Holm over the table) and verdict.
    """
    rows = _auc_rows(study, shares, study.detectors, ROWS)
    for row in rows:
        asked = (tuple(row["benchmarks"].split(", ")), row["copies"], reference_attack.LIRA)
        estimate = _attack_estimate(study, *asked)
        row |= dict(zip(("lira_auc", "lira_low", "lira_high"), estimate[:3], strict=True))
    return _of_auc(rows, CLAIMS[DETECTION])


def controls(study: StudyScores, shares: pd.DataFrame) -> pd.DataFrame:
    """The three controls, asked as detectors are: none of them may be shown.

    Returns:
        the columns of ``detection`` without the reference attack; holds in place of a verdict, by
        the same rule and with Holm's correction over the controls' own rows.
    """
    asked = [name for name in CONTROLS if name in study.all_detectors]
    table = _of_auc(_auc_rows(study, shares, asked, ROWS), CLAIMS[DETECTION])
    low = table["ci_low"].fillna(table["auc_min"])
    is_shown = low.gt(CLAIMS[DETECTION].null) & table["p_adjusted"].le(ALPHA)
    return table.drop(columns=["verdict", "access"]).assign(holds=~is_shown)


def indirect(study: StudyScores, shares: pd.DataFrame) -> pd.DataFrame:
    """F2: which detectors see rows of which the model saw another form; one benchmark.

    Returns:
        a row for each detector and form: the columns of ``detection`` without the reference
        attack, and verbatim_auc of the same benchmark's rows that were seen verbatim as often.
    """
    table = _of_auc(_auc_rows(study, shares, study.detectors, INDIRECT), CLAIMS[INDIRECTLY])
    names = {display_name(name): name for name in study.detectors}
    verbatim = []
    for row in table.itertuples():
        pools = study.pools_of(names[row.detector], ROWS)
        (pool,) = [pool for pool in pools if pool.name == f"{row.benchmarks} {ROWS}"]
        verbatim.append(auc_left_out(pool, row.copies).by_model.mean())
    return table.assign(verbatim_auc=verbatim)


def later(study: StudyScores, shares: pd.DataFrame) -> pd.DataFrame:
    """F3: how much the AUC falls when the model goes on with clean text.

    The AUC of the same rows under the same base model before minus after, averaged over
    benchmarks. p is of a two-sided t test with the larger of the two standard errors.

    Returns:
        a row for each detector, length of the later training and number of copies: detector,
        later_tokens, copies, row_share_pct, n_models, auc_before, auc_after, fall, ci_low, ci_high,
        fall_min and fall_max over models, se_models, se_rows, n_tests, p_value, p_adjusted (Holm
        over the table), verdict.
    """
    rows = []
    lengths = [n for n in LATER_TOKENS if later_name(n) in study.later_models()]
    for detector in (name for name in OF_LATER if name in study.detectors):
        before, benchmarks = study.pools_of(detector), study.benchmarks(detector)
        for copies in exposures(ROWS):
            of_before = mean_left_out([auc_left_out(pool, copies) for pool in before])
            share = share_pct(shares, benchmarks, ROWS, VERBATIM, copies)
            for n_tokens in lengths:
                after = study.pools_of(detector, model=later_name(n_tokens))
                of_after = mean_left_out([auc_left_out(pool, copies) for pool in after])
                fall = of_before.minus(of_after)
                estimate = interval_left_out(fall, DIFFERENCES)
                rows.append(
                    {
                        "detector": display_name(detector),
                        "later_tokens": n_tokens,
                        "copies": copies,
                        "row_share_pct": share,
                        "n_models": len(study.base_seeds),
                        "auc_before": of_before.by_model.mean(),
                        "auc_after": of_after.by_model.mean(),
                        "fall": estimate.value,
                        "ci_low": estimate.low,
                        "ci_high": estimate.high,
                        "fall_min": fall.by_model.min(),
                        "fall_max": fall.by_model.max(),
                        "se_models": estimate.se_models,
                        "se_rows": estimate.se_rows,
                        "n_tests": 1,
                        "p_value": t_test_p(estimate, len(study.base_seeds)),
                    }
                )
    # A t test can give any p, given two models.
    return judged(pd.DataFrame(rows), CLAIMS[LATER], "fall_min", "fall_max", lambda n: 0.0)


def t_test_p(estimate: Estimate, n_models: int) -> float:
    """Two-sided p of a mean over models, by the larger of its two standard errors."""
    error = max(estimate.se_models, estimate.se_rows)
    if n_models < 2:
        return 1.0
    if np.isnan(estimate.low):  # no spread at all
        return 1.0 if estimate.value == 0 else 0.0
    return float(2 * stats.t.sf(abs(estimate.value) / error, n_models - 1))


def _attack_pools(study: StudyScores, benchmarks: Sequence[str] = ()) -> list[CrossedScores]:
    """Centred token log-probabilities of each pool; of all benchmarks when empty."""
    pools = [reference_attack.centred(pool) for pool in study.log_probabilities()]
    names = {f"{benchmark} {ROWS}" for benchmark in benchmarks or study.benchmarks(PPL)}
    return [pool for pool in pools if pool.name in names]


@cache
def _attack_estimate(
    study: StudyScores,
    benchmarks: tuple[str, ...],
    copies: int,
    form: str,
) -> Estimate:
    """AUC of the reference attack; the shadow models are chosen anew for both jackknives.

    NaN where there are so few models that a row has no shadow model.
    """
    pools = _attack_pools(study, benchmarks)
    if not reference_attack.is_defined(pools):
        return Estimate(*[np.nan] * 5)
    return crossed_interval(pools, partial(reference_attack.lira_auc, dose=copies, form=form))


def reference(study: StudyScores, shares: pd.DataFrame) -> pd.DataFrame:
    """The reference attack, which knows what the other base models saw; outside the families.

    Returns:
        a row for each form of the attack and number of copies: form, is_exploratory, copies,
        row_share_pct, n_models, n_rows, auc, ci_low, ci_high, auc_min, auc_max, se_models,
        se_rows, p_value (999 joint re-deals). No verdict. ValueError where there are so few models
        that a row has no shadow model.
    """
    pools, benchmarks = _attack_pools(study), study.benchmarks(PPL)
    forms, rows = reference_attack.FORMS, []
    p_values = {n: reference_attack.joint_permutation_p(pools, n, forms) for n in exposures(ROWS)}
    for form in forms:
        for copies in exposures(ROWS):
            attacks = [reference_attack.attack(pool, copies, form) for pool in pools]
            by_model = mean_left_out([auc_left_out(pool, copies) for pool in attacks]).by_model
            rows.append(
                {
                    "form": form,
                    "is_exploratory": form != reference_attack.LIRA,
                    "copies": copies,
                    "row_share_pct": share_pct(shares, benchmarks, ROWS, VERBATIM, copies),
                    "n_models": len(study.base_seeds),
                    "n_rows": sum(int((pool.copies[0] == copies).sum()) for pool in pools),
                    **_auc_columns(_attack_estimate(study, benchmarks, copies, form), by_model),
                    "p_value": p_values[copies][form],
                }
            )
    return pd.DataFrame(rows)


def by_benchmark(study: StudyScores) -> pd.DataFrame:
    """Every detector on every benchmark, exploratory forms too; without a verdict.

    Returns:
        detector, benchmark, copies, n_models, auc, ci_low, ci_high, auc_min, auc_max, se_models,
        se_rows, n_flagged (models with p <= 0.05) and p_value (Stouffer, not corrected).
    """
    rows = []
    for detector in (name for name in study.all_detectors if name not in CONTROLS):
        for benchmark in study.benchmarks(detector):
            for copies in exposures(ROWS):
                found = _found(study, detector, ROWS, copies, [benchmark])
                rows.append(
                    {
                        "detector": display_name(detector),
                        "benchmark": benchmark,
                        "copies": copies,
                        "n_models": len(study.base_seeds),
                        **_auc_columns(found.estimate, found.by_model),
                        "n_flagged": int((found.p_values <= ALPHA).sum()),
                        "p_value": stouffer(found.p_values),
                    }
                )
    return pd.DataFrame(rows)


def exposure_table(shares: pd.DataFrame) -> pd.DataFrame:
    """How much of the training each exposure is, averaged over benchmarks; held-out rows left out.

    Returns:
        pool, form, copies, n_rows (of one benchmark), tokens_per_row (of one copy), row_share_pct
        and group_share_pct: one row and its group with all copies, of all training tokens.
    """
    seen = shares[shares["copies"] > 0]
    groups = seen.groupby(["pool", "form", "copies"], sort=False)
    numbers = ["n_rows", "tokens_per_row", "row_share_pct", "group_share_pct"]
    return groups[numbers].mean().astype({"n_rows": int}).reset_index()
