"""How often must a model see a row until a detector finds it? F1 of ``docs/protocol_2.md``.

Each function takes a frame of ``scores.arrange_scores``. ``shares`` are the rows of
``row_pools.exposure``: how much of the training tokens each exposure is.

Whether a detector finds rows is decided by one exact test of the registered endpoint, the mean AUC
over models and benchmarks (``joint_p_values``), and how well it finds them by the interval. The
protocol had registered Stouffer's p and the interval together. The exact test was chosen after the
scores were known, so the tables hold both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from contamination.core.statistics import holm
from contamination.core.verdicts import (
    ALPHA,
    CLAIMS,
    FEWEST_MODELS,
    OPEN,
    RULED_OUT,
    SHOWN,
    SMALL,
    Claim,
    verdict_column,
)
from contamination.study import reference_attack
from contamination.study.assignment import HELD_OUT, seed_of
from contamination.study.conditions import VERBATIM
from contamination.study.crossed import (
    CrossedScores,
    Estimate,
    crossed_interval,
    interval_left_out,
    mean_auc,
    mean_auc_left_out,
    permutation_p_by_model,
    smallest_stouffer,
    stouffer,
)
from contamination.study.protocol import N_REDEALS, doubled_ranks
from contamination.study.row_pools import DOSES, ROWS
from contamination.study.scores import (
    ACCESS,
    CONTROLS,
    all_detectors,
    crossed_scores,
    detectors_of,
    display_name,
    exposures,
    log_probabilities,
    seeds_of,
)

DETECTION = "pretraining_detection"
N_JOINT_REDEALS = N_REDEALS  # of the exact test
ATTACK = f"reference attack ({reference_attack.LIRA})"


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


def auc_rows(
    frame: pd.DataFrame, shares: pd.DataFrame, detectors: Sequence[str], kind: str
) -> Iterator[dict]:
    """A row for each detector and exposure: its AUC, averaged over benchmarks, and its p."""
    for detector in detectors:
        pools = crossed_scores(frame, detector, kind)
        for exposure, group in exposures(kind).items() if pools else ():
            parts = mean_auc_left_out(pools.values(), exposure)
            p_values = np.concatenate(
                [permutation_p_by_model(pool, exposure) for pool in pools.values()]
            )
            yield {
                "detector": display_name(detector),
                "access": ACCESS.get(detector, ""),
                "benchmarks": ", ".join(pools),
                "exposure": group.form,
                "copies": group.copies,
                "row_share_pct": share_pct(shares, [*pools], kind, group.form, group.copies),
                "n_models": len(parts.by_model),
                "n_rows": sum(int((of.copies[0] == exposure).sum()) for of in pools.values()),
                "n_held_out": sum(int((of.copies[0] == HELD_OUT).sum()) for of in pools.values()),
                **auc_columns(interval_left_out(parts), parts.by_model),
                "n_tests": len(p_values),
                "n_flagged": int((p_values <= ALPHA).sum()),
                "p_value": stouffer(p_values),
            }


def auc_columns(estimate: Estimate, by_model: np.ndarray) -> dict[str, float]:
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
    """A family with Holm's p over all its rows and the verdict of each row, as registered.

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


def of_auc(rows: Sequence[dict], claim: Claim) -> pd.DataFrame:
    """``judged`` for a table of AUCs with Stouffer's p."""
    return judged(pd.DataFrame(rows), claim, "auc_min", "auc_max", smallest_stouffer)


# The exact test of the endpoint


def joint_p_values(
    pools: Mapping[str, Mapping[str, CrossedScores]], dose: int, n_redeals: int
) -> dict[str, float]:
    """Exact p of each detector's mean AUC over models and benchmarks, by detector.

    Rows at the dose and held-out rows are re-dealt in all models and benchmarks at once, in each
    on its own. p is (1 + re-deals with a mean at least as high) / (1 + re-deals).

    Args:
        pools: by detector and benchmark; all of the same models and assignments.
        dose: number of ``scores.exposures``.
    """
    means = {name: np.zeros(1 + n_redeals) for name in pools}
    for benchmark in dict.fromkeys(name for of in pools.values() for name in of):
        asked = {name: of[benchmark] for name, of in pools.items() if benchmark in of}
        first = next(iter(asked.values()))
        for model, copies in enumerate(first.copies):
            kept = np.flatnonzero((copies == dose) | (copies == HELD_OUT))
            is_seen = copies[kept] == dose
            # Sums of doubled ranks are whole numbers, so equal means compare as equal.
            ranks = np.stack([doubled_ranks(of.scores[model][kept]) for of in asked.values()], 1)
            generator = np.random.default_rng([seed_of(model, first.name, "joint"), dose])
            keys = generator.random((n_redeals, len(kept)), dtype=np.float32)
            n_seen = int(is_seen.sum())
            dealt = np.zeros(keys.shape, dtype=np.float32)
            places = np.argpartition(keys, n_seen, axis=1)[:, :n_seen]
            np.put_along_axis(dealt, places, 1.0, axis=1)
            sums = np.vstack([is_seen.astype(float) @ ranks, dealt @ ranks.astype(np.float32)])
            for column, name in zip(sums.T, asked, strict=True):
                means[name] += column
    return {name: float((1 + np.sum(of[1:] >= of[0])) / len(of)) for name, of in means.items()}


def with_exact_test(table: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """A family with p_joint, its Holm correction over the family, and the verdict by it.

    The verdict that was registered, by Stouffer's p and the interval together, moves to
    ``verdict_registered``.
    """
    names = {display_name(name): name for name in all_detectors(frame)}
    pools = {shown: crossed_scores(frame, names[shown]) for shown in table["detector"].unique()}
    n = N_JOINT_REDEALS
    p_values = {dose: joint_p_values(pools, dose, n) for dose in table["copies"].unique()}
    table = table.rename(columns={"verdict": "verdict_registered"})
    cells = zip(table["detector"], table["copies"], strict=True)
    table = table.assign(p_joint=[p_values[copies][name] for name, copies in cells])
    table = table.assign(p_joint_adjusted=holm(table["p_joint"]))
    high = table["ci_high"].fillna(table["auc_max"])
    is_small = high < CLAIMS[DETECTION].null + CLAIMS[DETECTION].smallest_effect
    found, missed = np.where(is_small, SMALL, SHOWN), np.where(is_small, RULED_OUT, OPEN)
    words = np.where(table["p_joint_adjusted"] <= ALPHA, found, missed)
    return table.assign(verdict=np.where(table["n_models"] < FEWEST_MODELS, OPEN, words))


def detection(
    frame: pd.DataFrame, shares: pd.DataFrame, detectors: Sequence[str] | None = None
) -> pd.DataFrame:
    """Which detectors find rows that were in the pretraining data so many times.

    Args:
        detectors: a family; all of the protocol that were asked, if None.

    Returns:
        a row for each detector and number of copies; docs/columns.csv says what its columns mean.
        As registered: p_value (Stouffer), p_adjusted (Holm over the table), verdict_registered; by
        the exact test: p_joint, p_joint_adjusted and verdict.
    """
    asked = detectors_of(frame) if detectors is None else detectors
    rows = [*auc_rows(frame, shares, asked, ROWS)]
    return with_exact_test(of_auc(rows, CLAIMS[DETECTION]), frame)


def controls(frame: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """The three controls, asked as detectors are: none of them may be found.

    Columns as ``detection``; holds in place of the verdicts, by the same exact test and with
    Holm's correction over the controls' own rows.
    """
    table = detection(frame, shares, detectors_of(frame, CONTROLS))
    holds = table["p_joint_adjusted"] > ALPHA
    return table.drop(columns=["verdict", "verdict_registered", "access"]).assign(holds=holds)


# The reference attack


def attack_pools(frame: pd.DataFrame) -> list[CrossedScores]:
    """Centred token log-probabilities of each benchmark's rows, which the attack compares."""
    return [reference_attack.centred(pool) for pool in log_probabilities(frame).values()]


def _lead(pools: Sequence[CrossedScores], n: int, dose: int) -> float:
    """AUC of the attack on the first n pools minus that of a detector on the others."""
    return reference_attack.lira_auc(pools[:n], dose) - mean_auc(pools[n:], dose)


def reference(frame: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """The reference attack, which knows what the other base models saw; outside the families.

    Returns:
        a row for each form of the attack and number of copies, without a verdict; p_value is of
        999 joint re-deals. For LiRA also best_detector (of those asked on all benchmarks) and its
        lead over that detector. ValueError where there are so few models that a row has no shadow
        model.
    """
    pools, rows = attack_pools(frame), []
    benchmarks = [*log_probabilities(frame)]
    detectors = {name: [*crossed_scores(frame, name).values()] for name in detectors_of(frame)}
    on_all = {name: of for name, of in detectors.items() if len(of) == len(pools)}
    forms = reference_attack.FORMS
    p_values = {n: reference_attack.joint_permutation_p(pools, n, forms) for n in DOSES}
    for form in forms:
        for copies in DOSES:
            attacks = [reference_attack.attack(pool, copies, form) for pool in pools]
            by_model = mean_auc_left_out(attacks, copies).by_model
            lira_auc = partial(reference_attack.lira_auc, dose=copies, form=form)
            row = {
                "form": form,
                "is_exploratory": form != reference_attack.LIRA,
                "copies": copies,
                "row_share_pct": share_pct(shares, benchmarks, ROWS, VERBATIM, copies),
                "n_models": len(seeds_of(frame)),
                "n_rows": sum(int((pool.copies[0] == copies).sum()) for pool in pools),
                **auc_columns(crossed_interval(pools, lira_auc), by_model),
                "p_value": p_values[copies][form],
            }
            if form == reference_attack.LIRA:
                best = max(on_all, key=lambda name: mean_auc(on_all[name], copies))
                lead = partial(_lead, n=len(pools), dose=copies)
                found = crossed_interval([*pools, *on_all[best]], lead, (-1.0, 1.0))
                row |= {"best_detector": display_name(best), "lead": found.value}
                row |= {"lead_low": found.low, "lead_high": found.high}
            rows.append(row)
    return pd.DataFrame(rows)
