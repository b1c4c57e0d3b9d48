"""How well a judge agrees with the human labels (Time Travel, section 5 and Table 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from contamination.core.statistics import cohen_kappa, end_p, share_interval, with_p_adjusted
from contamination.core.verdicts import ALPHA, CLAIMS
from contamination.models.judging import NEAR_EXACT, rule_labels
from contamination.replication.algorithms import is_contaminated

THRESHOLDS = np.round(np.arange(0.30, 1.00, 0.01), 2)
MOST = CLAIMS["judge_agreement"]
FEWEST_MATCHES = 5  # near-exact matches below which a judge's share says nothing

# Instances whose reference stands as a worked example in the judge's prompt
# (Figure 2 and the released code): dataset, split, index.
PROMPT_EXAMPLES = {
    ("WNLI", "validation", 4),
    ("AG News", "test", 0),
    ("RTE", "validation", 0),
    ("RTE", "train", 0),
}


def best_threshold(rouge_scores: np.ndarray, reference: Sequence[str]) -> float:
    """ROUGE-L threshold whose rule labels agree best with the labels (Cohen's kappa).

    Of equally good ones the highest, the one that flags least.
    """
    kappas = [
        np.nan_to_num(cohen_kappa(rule_labels(rouge_scores, t).tolist(), reference), nan=-1)
        for t in THRESHOLDS
    ]
    best = np.flatnonzero(np.isclose(kappas, max(kappas)))
    return float(THRESHOLDS[best[-1]])


def leave_one_partition_out(
    rouge_scores: np.ndarray,
    reference: Sequence[str] | np.ndarray,
    partitions: Sequence[str] | np.ndarray,
) -> np.ndarray:
    """Threshold for each instance, chosen on all other partitions, shape (n,).

    A partition is a dataset and split: both models answer the same instances.
    """
    reference, partitions = np.asarray(reference), np.asarray(partitions)
    thresholds = np.empty(len(rouge_scores))
    for partition in np.unique(partitions):
        held_out = partitions == partition
        rest = ~held_out
        thresholds[held_out] = best_threshold(rouge_scores[rest], reference[rest].tolist())
    return thresholds


def agreement_row(
    judge: Sequence[str], reference: Sequence[str], partitions: Sequence[str]
) -> dict[str, float | int | str | None]:
    """One row of ``judge_agreement.csv``: labels against labels that are taken as true.

    n_near counts near-exact matches by the reference, n_near_flagged by the judge,
    n_near_found by both; in n_partitions_right Algorithm 2 decides as on the
    reference. near_agreement is n_near_found over the larger of the two other counts, with its
    95 % interval (near_low, near_high) and p of one half; holds: whether the two agree on most
    of these, before any correction, empty where that is open, and note: why it was not asked.
    ``partitions`` says what a completion belongs to (model, dataset, split).
    """
    labels = pd.DataFrame({"judge": judge, "reference": reference, "partition": partitions})
    decisions = labels.groupby("partition")[["judge", "reference"]].agg(is_contaminated)
    n, n_agree = len(labels), int((labels["judge"] == labels["reference"]).sum())
    low, high = share_interval(n_agree, n)
    is_near = labels[["judge", "reference"]].eq(NEAR_EXACT)
    n_near, n_flagged = int(is_near["reference"].sum()), int(is_near["judge"].sum())
    n_found, most = int(is_near.all(axis=1).sum()), max(n_near, n_flagged)
    near_low, near_high = share_interval(n_found, most)
    is_asked = n_near >= FEWEST_MATCHES
    return {
        "n": n,
        "n_agree": n_agree,
        "agreement": n_agree / n,
        "ci_low": low,
        "ci_high": high,
        "kappa": cohen_kappa(labels["judge"], labels["reference"]),
        "n_near": n_near,
        "n_near_found": n_found,
        "n_near_flagged": n_flagged,
        "n_partitions": len(decisions),
        "n_partitions_right": int((decisions["judge"] == decisions["reference"]).sum()),
        "near_agreement": n_found / most if most else float("nan"),
        "near_low": near_low,
        "near_high": near_high,
        "p": end_p(n_found / most, near_low, near_high, MOST.null) if is_asked else float("nan"),
        "holds": _holds(near_low, near_high) if is_asked else None,
        "note": "" if is_asked else f"fewer than {FEWEST_MATCHES} near-exact matches",
    }


def _holds(low: float, high: float) -> bool | None:
    # A control must not show its effect; agreement must be shown.
    is_absent = MOST.holds(low, high)
    return None if is_absent is None else not is_absent


def corrected(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``agreement_row`` with p_adjusted, Holm's over all, and holds as it leaves them."""
    (table,) = with_p_adjusted(table)
    is_lost = table["holds"].eq(True) & table["p_adjusted"].gt(ALPHA)
    return table.assign(holds=table["holds"].astype("boolean").mask(is_lost))
