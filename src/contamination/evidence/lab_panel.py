"""The panel of the lab: four methods on the same models and datasets, the truth known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from contamination.evidence.conditions import CLEAN, FRESH, REFERENCE, TRUTHS
from contamination.evidence.measuring import (
    DCQ,
    DICE,
    MIN_K,
    RANKING,
    REPLICATION,
    Measured,
    blind_auc,
    by_key,
    flags,
    min_k_auc,
    with_labels,
)
from contamination.evidence.panel import judged
from contamination.replication.algorithm2 import is_contaminated
from contamination.statistics import auc_interval, percentile_interval, share_interval

N_RESAMPLES = 2_000
OTHER_CLEAN = "clean models, same kind of rows"
BLIND = "bag of words, no model"
SAME_MODEL = "the same model, rows it never read"


def model_name(measured: Measured) -> str:
    dose = f", {measured.copies} copies" if measured.copies else ""
    return f"{measured.kind}{dose}, seed {measured.seed}"


def lab_panel(measured: Sequence[Measured], copies: Sequence[int]) -> pd.DataFrame:
    """``evidence.csv``: every model on every dataset, by every method.

    Columns of :func:`panel.judged`, model by model, and condition, what a dosed model read of
    the dataset.
    """
    known = by_key(measured)
    clean = [m for m in measured if m.kind == CLEAN and m.condition != REFERENCE]
    # A clean model has a flag for every dose that detectors learn; that of the largest counts.
    flagged = {}
    for dose in sorted(copies):
        flagged |= flags(measured, dose)
    rows = []
    for key, own in known.items():
        if own.condition == REFERENCE:
            continue
        reference = (*key[:3], REFERENCE)
        about = {"model": model_name(own), "dataset": own.dataset, "condition": own.condition}
        about["truth"] = TRUTHS[FRESH if own.kind == CLEAN else own.condition]
        others = [m for m in clean if m.seed != own.seed or own.kind != CLEAN]
        rows += [about | statistic for statistic in _against_clean(own, others)]
        rows.append(about | _min_k(own, known[reference]))
        rows.append(about | _dice(flagged[key], flagged[reference]))
    return judged(rows)


def _against_clean(own: Measured, clean: Sequence[Measured]) -> list[dict]:
    """What clean models score on rows of the same kind, pooled, is the control."""
    # Below Algorithm 2's rule the paper calls a partition clean, whatever the share.
    is_marked = is_contaminated(own.verdicts)
    note = "" if is_marked else "no exact match and fewer than two near-exact ones"
    statistics = []
    for method, name, right, chance in (
        # A respondent that may abstain has no chance of its own: its control stands for it.
        (DCQ, "right in the best quiz", lambda m: m.quiz_share * len(m.ranked), None),
        (RANKING, "share right", lambda m: m.ranked.sum(), 0.25),
        (REPLICATION, "share of matches", lambda m: m.replicated.sum(), 0.0 if is_marked else 1.0),
    ):
        n = len(own.ranked)
        n_right, n_clean = round(right(own)), sum(len(m.ranked) for m in clean)
        n_clean_right = round(sum(map(right, clean)))
        low, high = share_interval(n_right, n)
        statistics.append(
            {
                "method": method,
                "statistic": name,
                "value": n_right / n,
                "ci_low": low,
                "ci_high": high,
                "chance": n_clean_right / n_clean if chance is None else chance,
                "control": OTHER_CLEAN,
                "control_value": n_clean_right / n_clean,
                "control_high": share_interval(n_clean_right, n_clean)[1],
                "n": n,
                "note": note if method == REPLICATION else "",
            }
        )
    return statistics


def _min_k(own: Measured, reference: Measured) -> dict:
    low, high = auc_interval(*with_labels(own.min_k, reference.min_k), N_RESAMPLES)
    return {
        "method": MIN_K,
        "statistic": "AUC",
        "value": min_k_auc(own, reference),
        "ci_low": low,
        "ci_high": high,
        "chance": 0.5,
        "control": BLIND,
        "control_value": blind_auc(own, reference),
        "n": len(own.min_k),
    }


def _dice(flag: np.ndarray, reference: np.ndarray) -> dict:
    low, high = _mean_interval(flag)
    return {
        "method": DICE,
        "statistic": "mean flag",
        "value": float(flag.mean()),
        "ci_low": low,
        "ci_high": high,
        "chance": 0.5,
        "control": SAME_MODEL,
        "control_value": float(reference.mean()),
        "control_high": _mean_interval(reference)[1],
        "n": len(flag),
    }


def _mean_interval(values: np.ndarray) -> tuple[float, float]:
    drawn = np.random.default_rng(0).choice(values, (N_RESAMPLES, len(values)))
    return percentile_interval(drawn.mean(axis=1))
