"""The first detector study analysed again, under the rules of ``docs/protocol_2.md``.

Its models are short fine-tunings: a base model goes on with benchmark rows, which are most of what
it then sees. The analysis was written after the first study's results were known, so its tables
carry no verdict.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.statistics import holm
from contamination.core.verdicts import ALPHA
from contamination.lab import world
from contamination.study import arms, row_pools, study
from contamination.study.conditions import CLEAN, DOSED, LATER, LONG, NOTHING_READ, READERS
from contamination.study.crossed import LEVEL_TAIL, stouffer
from contamination.study.pretraining_rates import alarm_columns
from contamination.study.pretraining_scores import display_name
from contamination.study.protocol import LEFT_OUT, doubled_ranks, permutation_p_of_ranks

ASKED = (DOSED, LATER, LONG)  # models that saw benchmark rows; two of them then saw clean text
CELL = ["detector", "model", "condition", "copies"]


def detection(scores: pd.DataFrame, sets: pd.DataFrame) -> pd.DataFrame:
    """AUC of seen against held-out rows, by detector, what was seen, and copies; no verdict.

    The AUC is averaged over benchmarks for each base model. Benchmarks of a base model that share
    one random assignment have no independent p-values, so their ranks are summed before the
    assignment is drawn again: one exact p for each assignment, combined by Stouffer's method. Rows
    belong to one base model here, so the interval is a t interval over base models.

    Args:
        scores, sets: as in ``study.protocol``, of the ledger's first study.

    Returns:
        detector, model, condition, copies, benchmarks, n_models, n_rows (seen ones of one model
        and benchmark), auc, ci_low, ci_high, n_tests (assignments), n_flagged (of these, with
        p <= 0.05), p_value, p_adjusted (Holm over the table).
    """
    is_asked = sets["model"].isin(ASKED) & ~sets["condition"].isin(NOTHING_READ)
    is_asked &= sets["p"].notna() & ~sets["detector"].isin(LEFT_OUT)
    of_cells = {cell: own for cell, own in scores.groupby(CELL)}
    rows = []
    for cell, own in sets[is_asked].groupby(CELL, sort=False):
        aucs = own.groupby("unit")["value"].mean().to_numpy()
        p_values = _p_values(own, of_cells[cell], cell)
        low, high = _t_interval(aucs)
        rows.append(
            {
                **dict(zip(CELL, cell, strict=True)),
                "benchmarks": ", ".join(sorted(own["benchmark"].unique())),
                "n_models": len(aucs),
                "n_rows": int(own["n_read"].iloc[0]),
                "auc": aucs.mean(),
                "ci_low": low,
                "ci_high": high,
                "n_tests": len(p_values),
                "n_flagged": int((p_values <= ALPHA).sum()),
                "p_value": stouffer(p_values),
            }
        )
    table = pd.DataFrame(rows).assign(detector=lambda found: found["detector"].map(display_name))
    return table.assign(p_adjusted=holm(table["p_value"]))


def _p_values(own: pd.DataFrame, scores: pd.DataFrame, cell: tuple) -> np.ndarray:
    """An exact p for each random assignment of one cell, over its base models and benchmarks."""
    if len(own["benchmark"].unique()) == 1:
        return own["p"].to_numpy()
    summed, is_seen, keys = [], [], []
    ordered = scores.sort_values(["unit", "benchmark", "row"])
    for unit, of_unit in ordered.groupby("unit"):
        by_deal: dict[bytes, list[np.ndarray]] = {}
        for _, of_set in of_unit.groupby("benchmark"):
            deal = of_set["is_read"].to_numpy(bool).tobytes()
            by_deal.setdefault(deal, []).append(doubled_ranks(of_set["score"].to_numpy()))
        for number, (deal, ranks) in enumerate(by_deal.items()):
            summed.append(np.sum(ranks, axis=0))
            is_seen.append(np.frombuffer(deal, bool))
            keys.append((*cell, unit, number))
    return permutation_p_of_ranks(summed, is_seen, keys)


def _t_interval(values: np.ndarray) -> tuple[float, float]:
    """95 % t interval of a mean, cut at 0 and 1; NaN without any spread."""
    if len(values) < 2 or np.ptp(values) == 0:
        return np.nan, np.nan
    half = stats.t.ppf(1 - LEVEL_TAIL, len(values) - 1) * stats.sem(values)
    low, high = np.clip([values.mean() - half, values.mean() + half], 0, 1)
    return float(low), float(high)


def false_alarms(sets: pd.DataFrame) -> pd.DataFrame:
    """How often the exact tests flag sets of which no row was seen: a check of the code.

    Args:
        sets: as in ``study.protocol``.

    Returns:
        the columns of ``pretraining_rates.false_alarms``.
    """
    is_unseen = sets["model"].eq(CLEAN)
    is_unseen |= sets["model"].isin(READERS) & sets["condition"].isin(NOTHING_READ)
    tested = sets[is_unseen & sets["p"].notna() & ~sets["detector"].isin(LEFT_OUT)]
    rows = [
        {"detector": display_name(name)}
        | alarm_columns(own["p"].le(ALPHA).tolist(), own["unit"].tolist())
        for name, own in tested.groupby("detector", sort=False)
    ]
    table = pd.DataFrame(rows)
    table["p_adjusted"] = holm(table["p_value"])
    return table.assign(holds=table["p_adjusted"] > ALPHA)


def shares(lab: world.World, number: int = study.UNITS[0]) -> pd.DataFrame:
    """What benchmark rows are of the tokens that a model saw after its pretraining, in percent.

    Of one base model; others differ by their texts alone.

    Returns:
        benchmark, copies, rows_share_pct (all rows of all conditions), row_share_pct (one row that
        was seen verbatim, with its copies).
    """
    rows = []
    for benchmark in row_pools.BENCHMARKS:
        unit = arms.Unit(lab, base=Path(), number=number, benchmark=benchmark, n_tokens={})
        for copies in study.COPIES:
            of_texts = [
                sum(map(len, lab.tokenizer(list(dose.texts))["input_ids"])) * dose.copies
                for dose in arms.doses(unit.datasets, copies)
            ]
            verbatim = arms.doses(unit.datasets[:1], copies)[0]
            of_row = of_texts[0] / len(verbatim.texts)
            total = sum(of_texts) + study.N_TOKENS[DOSED]
            row: dict[str, Any] = {"benchmark": benchmark, "copies": copies}
            row |= {"rows_share_pct": 100 * sum(of_texts) / total}
            rows.append(row | {"row_share_pct": 100 * of_row / total})
    return pd.DataFrame(rows)
