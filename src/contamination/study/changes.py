"""How AUCs change in larger models that saw the same rows (``docs/protocol_larger.md``), as tables.

Scores are as ``scores.arrange_scores`` gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from contamination.core.verdicts import CLAIMS, CONTROL_FAILS
from contamination.study.assignment import HELD_OUT
from contamination.study.crossed import (
    Estimate,
    auc_left_out,
    interval_left_out,
    mean_left_out,
)
from contamination.study.rates import true_positive_rates
from contamination.study.detection import DIFFERENCES, judged, t_test_p
from contamination.study.scores import (
    StudyScores,
    display_name,
    exposures,
)
from contamination.study.row_pools import ROWS

LARGER = "pretraining_larger"
LAST_SHARE = 0.1  # of the steps of a training, over which its loss is compared


class Change(NamedTuple):
    """AUCs of one detector at one dose under some base models and under others like them."""

    detector: str
    copies: int
    auc: float
    other: Estimate  # AUC under the other models
    by_model: np.ndarray  # differences, other minus first, shape (n_models,)
    estimate: Estimate  # of their mean

    def columns(self) -> dict[str, float]:
        """The mean difference with its interval and standard errors, as columns of a table."""
        names = ("difference", "ci_low", "ci_high", "se_models", "se_rows")
        return dict(zip(names, self.estimate, strict=True))


def _changes(study: StudyScores, other: StudyScores, detectors: Sequence[str]) -> Iterator[Change]:
    """Paired changes for every detector that both have, at every dose of verbatim rows."""
    same = study.of_models(other.base_seeds)
    for detector in (name for name in detectors if name in study.detectors):
        for copies in exposures(ROWS):
            before, after = (
                mean_left_out([auc_left_out(pool, copies) for pool in of.pools_of(detector)])
                for of in (same, other)
            )
            change = after.minus(before)
            estimate = interval_left_out(change, DIFFERENCES)
            aucs = before.by_model.mean(), interval_left_out(after)
            yield Change(detector, copies, *aucs, change.by_model, estimate)


def larger(study: StudyScores, of_larger: StudyScores, losses: pd.DataFrame) -> pd.DataFrame:
    """F5 of ``docs/protocol_larger.md``: how the AUC changes under larger models, same exposure.

    p is of a two-sided t test with the larger of the two standard errors. The verdict is *control
    fails* where a larger model has not learned more from its texts.

    Args:
        study: all base models.
        of_larger: larger models with the same seeds, or with some of them.
        losses: ``larger_losses`` of these models.

    Returns:
        detector, benchmarks, copies, n_models, auc and auc_larger of the models that have both,
        larger_low and larger_high (of auc_larger), difference (larger minus not), ci_low, ci_high,
        se_models, se_rows, difference_min and difference_max over models, n_tests, p_value,
        p_adjusted (Holm over the table), verdict.
    """
    n_models = len(of_larger.base_seeds)
    table = pd.DataFrame(
        {
            "detector": display_name(change.detector),
            "benchmarks": ", ".join(of_larger.benchmarks(change.detector)),
            "copies": change.copies,
            "n_models": n_models,
            "auc": change.auc,
            "auc_larger": change.other.value,
            "larger_low": change.other.low,
            "larger_high": change.other.high,
            **change.columns(),
            "difference_min": change.by_model.min(),
            "difference_max": change.by_model.max(),
            "n_tests": 1,
            "p_value": t_test_p(change.estimate, n_models),
        }
        for change in _changes(study, of_larger, of_larger.detectors)
    )
    # A t test can give any p, given two models.
    ends = ("difference_min", "difference_max")
    table = judged(table, CLAIMS[LARGER], *ends, lambda n: 0.0)
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


def held_out_losses(study: StudyScores) -> pd.Series:
    """Loss on the rows that a base model never saw, nats per token, mean over benchmarks, by seed.

    What a model learned of the benchmarks' language and not of single rows.
    """
    by_pool = [
        np.where(pool.copies == HELD_OUT, -pool.scores, 0).sum(axis=1)
        / (pool.copies == HELD_OUT).sum(axis=1)
        for pool in study.log_probabilities()
    ]
    index = pd.Index(study.base_seeds, name="base_seed")
    return pd.Series(np.mean(by_pool, axis=0), index, name="held_out_loss")


def larger_rates(rates: pd.DataFrame, of_larger: StudyScores) -> pd.DataFrame:
    """True-positive rates under the larger models, next to those under the small ones; no verdict.

    The protocol of the larger models does not ask for them, so they are exploratory.

    Args:
        rates: those of the small models, from ``rates.true_positive_rates``.

    Returns:
        a row for each detector that both have, number of copies and false-positive rate, the
        reference attack last: detector, copies, fpr, n_models, tpr (small models), tpr_larger,
        ci_low and ci_high (of tpr_larger). A true-positive rate is a share of the seen rows.
    """
    key = ["detector", "copies", "fpr"]
    larger_ones = true_positive_rates(of_larger).rename(columns={"tpr": "tpr_larger"})
    small = rates[[*key, "tpr"]]
    found = larger_ones.merge(small, on=key, how="inner", validate="one_to_one")
    return found[[*key, "n_models", "tpr", "tpr_larger", "ci_low", "ci_high"]]
