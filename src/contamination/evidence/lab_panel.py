"""The panel of the lab: four methods on the same models and datasets, the truth known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from contamination.evidence.conditions import CLEAN, DOSED, FRESH, REFERENCE, TRUTHS
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
from contamination.evidence.panel import (
    CONTROL_FORBIDS,
    RECOGNISED,
    Evidence,
    panel,
    verdict,
)
from contamination.replication.algorithm2 import is_contaminated
from contamination.statistics import auc_interval, percentile_interval, share_interval

N_RESAMPLES = 2_000
OTHER_CLEAN = "clean models, same kind of rows"
BLIND = "bag of words, no model"
SAME_MODEL = "the same model, rows it never read"


def model_name(measured: Measured) -> str:
    """How a model of the lab is called in the panel."""
    dose = f", {measured.copies} copies" if measured.copies else ""
    return f"{measured.kind}{dose}, seed {measured.seed}"


def lab_panel(measured: Sequence[Measured], copies: Sequence[int]) -> pd.DataFrame:
    """``evidence.csv``: every model on every dataset, by every method.

    Args:
        measured: of all models.
        copies: doses.

    Returns:
        Columns of :class:`panel.Evidence`, model by model, and control_high, the
        upper end of the control's 95 % interval, which the verdict compares with
        (empty where the control has none), and condition, what a dosed model
        read of the dataset.
    """
    known = by_key(measured)
    clean = [m for m in measured if m.kind == CLEAN and m.condition != REFERENCE]
    # A clean model has a flag for every dose that detectors learn; that of the largest counts.
    flagged = {}
    for dose in sorted(copies):
        flagged |= flags(measured, dose)
    rows, conditions = [], []
    for key, own in known.items():
        if own.condition == REFERENCE:
            continue
        reference = (*key[:3], REFERENCE)
        found = [
            *_against_clean(own, [m for m in clean if m.seed != own.seed or own.kind != CLEAN]),
            _min_k(own, known[reference]),
            _dice(own, flagged[key], flagged[reference]),
        ]
        truth = TRUTHS[FRESH if own.kind == CLEAN else own.condition]
        for statistic in found:
            rows.append((model_name(own), own.dataset, truth, statistic))
            conditions.append(own.condition)
    return as_panel(rows).assign(condition=conditions)


def as_panel(rows: Iterable[tuple[str, str, str, Statistic]]) -> pd.DataFrame:
    """Rows of the panel, with control_high.

    Args:
        rows: model, dataset, truth and what a method says.
    """
    rows = list(rows)
    table = panel([found.row(*about) for *about, found in rows])
    return table.assign(control_high=[found.control_high for *_, found in rows])


@dataclass(frozen=True)
class Statistic:
    """What one method says of one model and dataset, before it has a verdict.

    Attributes:
        method, name, value, interval, n: as in :class:`panel.Evidence`.
        chance: what no memory gives.
        control, control_value, control_high: the control, its value and the
            upper end of its interval; NaN where it has none.
        note: for the reader.
    """

    method: str
    name: str
    value: float
    interval: tuple[float, float]
    chance: float
    control: str
    control_value: float
    n: int
    control_high: float = math.nan
    note: str = ""

    def row(self, model: str, dataset: str, truth: str) -> Evidence:
        """The row of the panel; the verdict compares with ``control_high`` where there is one."""
        limit = self.control_value if math.isnan(self.control_high) else self.control_high
        return Evidence(
            model=model,
            dataset=dataset,
            truth=truth,
            method=self.method,
            statistic=self.name,
            value=self.value,
            ci_low=self.interval[0],
            ci_high=self.interval[1],
            n=self.n,
            control=self.control,
            control_value=self.control_value,
            verdict=verdict(self.value, self.interval[0], self.chance, limit),
            note=self.note,
        )


def _against_clean(own: Measured, clean: Sequence[Measured]) -> list[Statistic]:
    """What clean models score on rows of the same kind, pooled, is the control."""
    # Below Algorithm 2's rule the paper calls a partition clean, whatever the share.
    is_marked = is_contaminated(own.verdicts)
    note = "" if is_marked else "no exact match and fewer than two near-exact ones"
    found = []
    for method, name, right, chance in (
        # A respondent that may abstain has no chance of its own: its control stands for it.
        (DCQ, "right in the best quiz", lambda m: m.quiz_share * len(m.ranked), None),
        (RANKING, "share right", lambda m: m.ranked.sum(), 0.25),
        (REPLICATION, "share of matches", lambda m: m.replicated.sum(), 0.0 if is_marked else 1.0),
    ):
        n = len(own.ranked)
        n_right, n_clean = round(right(own)), sum(len(m.ranked) for m in clean)
        n_clean_right = round(sum(map(right, clean)))
        control_value = n_clean_right / n_clean
        found.append(
            Statistic(
                method=method,
                name=name,
                value=n_right / n,
                interval=share_interval(n_right, n),
                chance=control_value if chance is None else chance,
                control=OTHER_CLEAN,
                control_value=control_value,
                n=n,
                control_high=share_interval(n_clean_right, n_clean)[1],
                note=note if method == REPLICATION else "",
            )
        )
    return found


def _min_k(own: Measured, reference: Measured) -> Statistic:
    interval = auc_interval(*with_labels(own.min_k, reference.min_k), N_RESAMPLES)
    value = min_k_auc(own, reference)
    blind = blind_auc(own, reference)
    return Statistic(MIN_K, "AUC", value, interval, 0.5, BLIND, blind, n=len(own.min_k))


def _dice(own: Measured, flag: np.ndarray, reference: np.ndarray) -> Statistic:
    _, control_high = _mean_interval(reference)
    return Statistic(
        method=DICE,
        name="mean flag",
        value=float(flag.mean()),
        interval=_mean_interval(flag),
        chance=0.5,
        control=SAME_MODEL,
        control_value=float(reference.mean()),
        n=len(flag),
        control_high=control_high,
    )


def _mean_interval(values: np.ndarray) -> tuple[float, float]:
    drawn = np.random.default_rng(0).choice(values, (N_RESAMPLES, len(values)))
    return percentile_interval(drawn.mean(axis=1))


def of_seed(evidence: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The clean and dosed models of one seed, datasets named with their condition."""
    is_shown = evidence["model"].str.fullmatch(rf"({CLEAN}|{DOSED}, \d+ copies), seed {seed}")
    rows = evidence[is_shown]
    model = rows["model"].str.removesuffix(f", seed {seed}").str.removeprefix(f"{DOSED}, ")
    dataset = rows["condition"].where(rows["model"].str.startswith(DOSED), rows["dataset"])
    return rows.assign(model=model, dataset=dataset)


def verdict_table(evidence: pd.DataFrame) -> pd.DataFrame:
    """Verdicts for display, a row for each truth and a column for each method.

    Returns:
        truth, n (models and datasets), then for each method how many of
        them it recognises, with those that a control forbids in brackets.
    """
    table = {}
    for (truth, method), rows in evidence.groupby(["truth", "method"], sort=False):
        found, forbidden = (int(rows["verdict"].eq(v).sum()) for v in (RECOGNISED, CONTROL_FORBIDS))
        text = f"{found}" + (f" ({forbidden})" if forbidden else "")
        table.setdefault(truth, {"truth": truth, "n": len(rows)})[method] = text
    return pd.DataFrame(list(table.values()))
