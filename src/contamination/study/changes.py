"""What changes a detection: another form, later training, a larger model (F2, F3 and F5).

F2 and F3 are families of ``docs/protocol_2.md``, F5 is that of ``docs/protocol_larger.md``. Each
function takes frames of ``scores.arrange_scores``; verdicts follow the rule that was registered.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.verdicts import CLAIMS, CONTROL_FAILS
from contamination.study.conditions import VERBATIM
from contamination.study.crossed import (
    Estimate,
    LeftOut,
    auc_left_out,
    interval_left_out,
    mean_auc_left_out,
)
from contamination.study.detection import auc_rows, judged, of_auc, share_pct
from contamination.study.pretraining import later_name
from contamination.study.row_pools import DOSES, INDIRECT, LATER_TOKENS, ROWS
from contamination.study.scores import (
    OF_LATER,
    crossed_scores,
    detectors_of,
    display_name,
    seeds_of,
)

INDIRECTLY, LATER, LARGER = "pretraining_indirect", "pretraining_later", "pretraining_larger"
DIFFERENCES = (-1.0, 1.0)  # bounds of a difference of two AUCs
LAST_SHARE = 0.1  # of the steps of a training, over which its loss is compared


def indirect(frame: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """F2: which detectors find rows of which the model saw another form; one benchmark.

    A row for each detector and form, with Stouffer's p and Holm's correction over the table;
    verbatim_auc is of the same benchmark's rows that were seen verbatim as often.
    """
    rows = [*auc_rows(frame, shares, detectors_of(frame), INDIRECT)]
    table = of_auc(rows, CLAIMS[INDIRECTLY])
    names = {display_name(name): name for name in detectors_of(frame)}
    verbatim = [
        auc_left_out(crossed_scores(frame, names[row.detector])[row.benchmarks], row.copies)
        for row in table.itertuples()
    ]
    return table.assign(verbatim_auc=[found.by_model.mean() for found in verbatim])


def _difference_columns(name: str, difference: LeftOut) -> dict[str, float]:
    """A paired difference with its interval, range over models and t test."""
    estimate = interval_left_out(difference, DIFFERENCES)
    return {
        name: estimate.value,
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        f"{name}_min": difference.by_model.min(),
        f"{name}_max": difference.by_model.max(),
        "se_models": estimate.se_models,
        "se_rows": estimate.se_rows,
        "n_tests": 1,
        "p_value": t_test_p(estimate, len(difference.by_model)),
    }


def t_test_p(estimate: Estimate, n_models: int) -> float:
    """Two-sided p of a mean over models, by the larger of its two standard errors."""
    error = max(estimate.se_models, estimate.se_rows)
    if n_models < 2:
        return 1.0
    if np.isnan(estimate.low):  # no spread at all
        return 1.0 if estimate.value == 0 else 0.0
    return float(2 * stats.t.sf(abs(estimate.value) / error, n_models - 1))


def later(frame: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """F3: how much the AUC falls when the model goes on with clean text.

    A row for each detector, length of the later training and number of copies. fall: the AUC of
    the same rows under the same base model before minus after, averaged over benchmarks. p is of
    a two-sided t test with the larger of the two standard errors.
    """
    rows = []
    for detector in detectors_of(frame, OF_LATER):
        before = crossed_scores(frame, detector)
        for copies in DOSES:
            share = share_pct(shares, [*before], ROWS, VERBATIM, copies)
            of_before = mean_auc_left_out(before.values(), copies)
            for n_tokens in LATER_TOKENS:
                after = crossed_scores(frame, detector, model=later_name(n_tokens))
                if not after:
                    continue
                of_after = mean_auc_left_out(after.values(), copies)
                rows.append(
                    {
                        "detector": display_name(detector),
                        "later_tokens": n_tokens,
                        "copies": copies,
                        "row_share_pct": share,
                        "n_models": len(of_after.by_model),
                        "auc_before": of_before.by_model.mean(),
                        "auc_after": of_after.by_model.mean(),
                        **_difference_columns("fall", of_before.minus(of_after)),
                    }
                )
    # A t test can give any p, given two models.
    return judged(pd.DataFrame(rows), CLAIMS[LATER], "fall_min", "fall_max", lambda n: 0.0)


def larger(frame: pd.DataFrame, of_larger: pd.DataFrame, losses: pd.DataFrame) -> pd.DataFrame:
    """F5: how the AUC changes under larger models, same exposure.

    The verdict is *control fails* where a larger model has not learned more from its texts.

    Args:
        frame: all small models.
        of_larger: larger models with the same seeds, or with some of them.
        losses: ``larger_losses`` of these models.

    Returns:
        a row for each detector and number of copies: auc and auc_larger of the models that have
        both, and their difference (larger minus not) with the interval and p of ``later``.
    """
    same, rows = frame[frame["base_seed"].isin(seeds_of(of_larger))], []
    for detector in detectors_of(of_larger):
        before, after = crossed_scores(same, detector), crossed_scores(of_larger, detector)
        for copies in DOSES if before else ():
            of_before, of_after = (mean_auc_left_out(of.values(), copies) for of in (before, after))
            estimate = interval_left_out(of_after)
            rows.append(
                {
                    "detector": display_name(detector),
                    "benchmarks": ", ".join(after),
                    "copies": copies,
                    "n_models": len(of_after.by_model),
                    "auc": of_before.by_model.mean(),
                    "auc_larger": estimate.value,
                    "larger_low": estimate.low,
                    "larger_high": estimate.high,
                    **_difference_columns("difference", of_after.minus(of_before)),
                }
            )
    ends = ("difference_min", "difference_max")
    table = judged(pd.DataFrame(rows), CLAIMS[LARGER], *ends, lambda n: 0.0)
    return table if losses["holds"].all() else table.assign(verdict=CONTROL_FAILS)


def larger_losses(
    losses: Mapping[int, np.ndarray], of_larger: Mapping[int, np.ndarray]
) -> pd.DataFrame:
    """Whether every larger model has learned more from the same texts than the small one.

    Args:
        losses: loss of every step of a training, nats per token, by base seed.
        of_larger: the same of the larger models.

    Returns:
        base_seed, loss and loss_larger (means over the last tenth of the steps), holds.
        ValueError where a seed has no small model, or not as many steps.
    """
    rows = []
    for seed, by_step in of_larger.items():
        if seed not in losses or len(losses[seed]) != len(by_step):
            raise ValueError(f"base model {seed} has no small model with as many steps")
        last = len(by_step) - round(LAST_SHARE * len(by_step))
        small, large = losses[seed][last:].mean(), by_step[last:].mean()
        rows.append({"base_seed": seed, "loss": small, "loss_larger": large})
    return pd.DataFrame(rows).assign(holds=lambda t: t["loss_larger"] < t["loss"])
