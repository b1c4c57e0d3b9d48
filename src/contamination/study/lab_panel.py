"""What detectors say of every dataset under every model, and which to take for which question."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.claims import CLAIMS
from contamination.core.statistics import CONFIDENCE, auc_interval, end_p
from contamination.core.verdicts import FEWEST_MODELS, strongest
from contamination.study import protocol
from contamination.study.conditions import (
    BASE,
    CLEAN,
    DOSED,
    FRESH,
    NOTHING_READ,
    PLACEBO,
    READERS,
    TRUTHS,
    VERBATIM,
)
from contamination.study.scoring import CONTROL_NAMES

N_RESAMPLES = 1_000
SIBLINGS = "unread rows of the same name and draw"

CLAIMED = (DOSED, VERBATIM)  # model and condition that ``mean_auc_by_dose`` makes a claim about


def evasion_table(sets: pd.DataFrame) -> pd.DataFrame:
    """``evasion.csv``: share of units that each detector flags, under every condition and dose.

    ``sets`` as in ``protocol``. Clean text after the dose is a condition of its own. n_detected of
    n_models are flagged; ci_low and ci_high are Clopper-Pearson's 95 % limits for each cell alone.

    Returns:
        method, benchmark, condition, copies, n_models, n_detected, power_at_5_fpr, ci_low,
        ci_high, n_rows, verdict: the word of ``protocol.power_table``; blank where nothing was
        read, since so few units cannot show that false alarms are at most 10 %, which the gate
        of all unread sets together asks; blank also for the protocol's own controls, which make
        no claim.
    """
    sets = protocol.flag(sets)
    dosed = sets[sets["model"].isin(READERS)]
    words = protocol.power_table(sets).set_index(["detector", *protocol.CELL])["word"]
    rows = []
    for cell, part in dosed.groupby(["detector", *protocol.CELL], sort=False):
        detector, benchmark, model, condition, copies = cell
        makes_no_claim = condition in NOTHING_READ or detector in CONTROL_NAMES
        n, n_flagged = len(part), int(part["flagged"].sum())
        low, high = protocol.clopper_pearson(n_flagged, n, protocol.ALPHA / 2)
        rows.append(
            {
                "method": detector,
                "benchmark": benchmark,
                "condition": condition if model == DOSED else model,
                "copies": copies,
                "n_models": n,
                "n_detected": n_flagged,
                "power_at_5_fpr": n_flagged / n,
                "ci_low": low,
                "ci_high": high,
                "n_rows": int((part["n_read"] + part["n_unread"]).min()),
                "verdict": "" if makes_no_claim else words[cell],
            }
        )
    return pd.DataFrame(rows)


def mean_auc_by_dose(sets: pd.DataFrame, detector: str, benchmark: str) -> pd.DataFrame:
    """AUC of rows read verbatim against their siblings, a mean over units, beside its controls.

    ``sets`` as in ``protocol``. Controls are the clean model on the same rows, and fresh rows under
    the dosed model of the largest dose. Limits are of a 95 % t interval over units, each a base
    model of its own; undefined for fewer than two. ValueError where the detector has no such set.

    Returns:
        model, condition, copies, n_units, auc, ci_low, ci_high, p (of 0.5; empty for the controls,
        and with fewer than five units, which decide nothing), n_flagged.
    """
    own = sets[sets["detector"].eq(detector) & sets["benchmark"].eq(benchmark)]
    if own.empty:
        raise ValueError(f"the ledger has no set of {benchmark} scored by {detector}")
    own = protocol.flag(own)
    largest = own["copies"].eq(own["copies"].max())
    is_read = own["model"].isin([CLEAN, DOSED]) & own["condition"].eq(VERBATIM)
    is_fresh = own["model"].eq(DOSED) & own["condition"].eq(FRESH) & largest
    rows = []
    for key, part in own[is_read | is_fresh].groupby(["condition", "copies", "model"]):
        condition, copies, model = key
        n, mean = len(part), part["value"].mean()
        t = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)
        half = t * stats.sem(part["value"]) if n > 1 else np.nan
        makes_test = (model, condition) == CLAIMED and n >= FEWEST_MODELS
        limits = mean - half, mean + half
        rows.append(
            {
                "model": model,
                "condition": condition,
                "copies": copies,
                "n_units": n,
                "auc": mean,
                "ci_low": limits[0],
                "ci_high": limits[1],
                "p": end_p(mean, *limits, 0.5, n - 1) if makes_test else np.nan,
                "n_flagged": int(part["flagged"].sum()),
            }
        )
    table = pd.DataFrame(rows).sort_values(["condition", "copies"], ascending=[False, True])
    return table.reset_index(drop=True)


def units_verdict(table: pd.DataFrame) -> pd.DataFrame:
    """``mean_auc_by_dose`` with p_adjusted, corrected within a notebook's family, and verdict.

    The verdict is blank for the controls; their intervals have to lie below that of a claim that
    is supported.
    """
    is_claim = table["model"].eq(CLAIMED[0]) & table["condition"].eq(CLAIMED[1])
    controls = table.loc[~is_claim, ["ci_low", "ci_high"]].to_numpy().tolist()
    claim = CLAIMS["over_base_models"]
    rows = zip(table.itertuples(), is_claim, strict=True)
    return table.assign(
        verdict=[
            claim.verdict(
                row.ci_low,
                row.ci_high,
                p_adjusted=row.p_adjusted,
                control=strongest(controls, row.ci_low),
                n_models=row.n_units,
            )
            if is_one
            else ""
            for row, is_one in rows
        ]
    )


def lab_rows(scores: pd.DataFrame, sets: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``evidence.csv``: every dataset of every model that read on, by detectors of rows.

    The value is the AUC of rows dealt to be read against their unread siblings, which are the
    control. flagged is whether re-dealing gives p <= 0.05. That is one set's own test, which
    flags one set in twenty where nothing was read, so the verdict is blank: a claim needs many
    sets (``evasion_table``).

    Returns:
        the fields of ``panel.Evidence``, condition and flagged.
    """
    groups = scores.groupby(protocol.KEY)
    is_asked = sets["p"].notna() & ~sets["model"].isin([BASE, PLACEBO])
    rows = []
    for row in sets[is_asked].itertuples():
        of_set = groups.get_group(tuple(getattr(row, name) for name in protocol.KEY))
        low, high = auc_interval(of_set["score"], of_set["is_read"], N_RESAMPLES)
        is_clean = row.model == CLEAN
        condition = row.condition if row.model == DOSED else row.model
        dose = f", {row.copies} copies" if row.copies else ""
        rows.append(
            {
                "model": f"{row.model}{dose}, unit {row.unit}",
                "dataset": f"{row.benchmark}, {row.condition}",
                "truth": TRUTHS[FRESH if is_clean else row.condition],
                "method": row.detector,
                "statistic": "AUC",
                "value": row.value,
                "ci_low": low,
                "ci_high": high,
                "n": row.n_read + row.n_unread,
                "control": SIBLINGS,
                "control_value": 0.5,
                "verdict": "",
                "note": protocol.LEFT_OUT.get(row.detector, ""),
                "condition": FRESH if is_clean else condition,
                "flagged": row.p <= protocol.ALPHA,
            }
        )
    return pd.DataFrame(rows)
