"""Rows of evidence, their verdicts and their table."""

import math

import numpy as np
import pytest

from contamination.audit.evidence import Evidence, not_run, panel, verdict
from contamination.core.verdicts import (
    CONTROL_FAILS,
    NOT_RUN,
    OPEN,
    RULED_OUT,
    SHOWN,
)


def evidence(method, what, model="M", dataset="D", statistic="share", truth=""):
    return Evidence(
        model, dataset, truth, method, statistic, 0.5, 0.4, 0.6, 10, "control", 0.25, what
    )


# Verdicts


@pytest.mark.parametrize(
    ("ends", "chance", "control", "expected"),
    [
        ((0.6, 0.8), 0.5, (0.51, 0.55), SHOWN),
        ((0.5, 0.7), 0.5, (0.1, 0.2), OPEN),  # reaches chance, and an effect of 0.10
        ((0.5, 0.59), 0.5, (0.1, 0.2), RULED_OUT),  # reaches chance, and no effect of 0.10
        ((0.0, 0.05), 0.25, (0.1, 0.2), RULED_OUT),
        ((0.6, 0.8), 0.5, (0.55, 0.6), CONTROL_FAILS),  # reaches down to the control
        ((0.6, 0.8), 0.5, (0.6, 0.6), CONTROL_FAILS),  # which has no interval
        ((0.6, 0.8), 0.5, (0.45, 0.6), OPEN),  # which may be at chance itself
        ((0.6, 0.8), 0.5, (math.nan, math.nan), OPEN),  # nothing could have overturned it
        ((math.nan, math.nan), 0.5, (0.1, 0.2), NOT_RUN),
    ],
)
def test_verdict_is_no_stronger_than_chance_and_control_allow(ends, chance, control, expected):
    assert verdict(*ends, chance, control) == expected


def test_an_interval_over_few_models_decides_nothing():
    assert verdict(0.9, 1.0, 0.5, (0.4, 0.6), n_models=4) == OPEN
    assert verdict(0.9, 1.0, 0.5, (0.4, 0.6), n_models=5) == SHOWN


def test_only_verdicts_of_the_list_are_taken():
    with pytest.raises(ValueError, match='"contaminated" is not a verdict: use one of shown'):
        evidence("DCQ", "contaminated")


def test_a_panel_has_the_columns_of_its_file_and_keeps_the_order():
    table = panel([evidence("DCQ", SHOWN), not_run("M", "D", "", "DICE", "no weights")])
    wanted = ["model", "dataset", "truth", "method", "statistic", "value", "control_value"]
    assert {*wanted, "verdict", "ci_low", "ci_high", "n", "control", "note"} <= set(table)
    assert table["method"].tolist() == ["DCQ", "DICE"]
    assert table["note"].tolist() == ["", "no weights"]
    assert np.isnan(table["value"][1])


def test_an_empty_panel_is_refused():
    with pytest.raises(ValueError, match="no evidence"):
        panel([])
