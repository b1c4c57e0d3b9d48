"""Notebook 00: the two counts of its opening figure, and the verdicts of its findings."""

import numpy as np
import pandas as pd
import pytest

from contamination.core.verdicts import (
    CONTROL_FAILS,
    OPEN,
    RULED_OUT,
    SHOWN,
    check_verdicts,
)
from contamination.data import published
from contamination.dcq import controls
from contamination.study import first_look


def test_the_opening_shows_the_counts_of_notebook_02():
    """Word frequency is behind where both leave out as many, and level where E is a quarter."""
    rule = published.rule_choices().query("control == 'word frequency'")
    answers = published.released_instances("DCQ").query("model == 'GPT-4'")
    levels = controls.mean_levels(controls.compare_rules(rule, answers, n_resamples=10))
    assert levels.index.tolist() == list(controls.CLAIMED_BY)
    assert levels.loc["equal coverage"].round(1).tolist() == [61.7, 67.0]
    assert levels.loc["E a quarter"].round(1).tolist() == [71.7, 71.7]


def method(name, finding, *controls, chance=0.5):
    """Rows of one method: value and ends of the finding, then of its controls."""
    rows = [
        {"method": name, "chance": chance} | dict(zip(ENDS, r, strict=True))
        for r in (finding, *controls)
    ]
    return pd.DataFrame(rows)


ENDS = ("value", "ci_low", "ci_high")
ALONE = (1.0, np.nan, np.nan)  # of two models


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        (method("m", (0.9, 0.8, 1.0), (0.5, 0.3, 0.7)), SHOWN),
        # The finding's lower end lies above the control's value and below its upper end. The
        # control shows the same only if it lies above chance as well.
        (method("m", (0.9, 0.65, 1.0), (0.6, 0.55, 0.7)), CONTROL_FAILS),
        (method("m", (0.9, 0.65, 1.0), (0.5, 0.3, 0.7)), OPEN),
        (method("m", (1.0, 1.0, 1.0), (0.5, 0.3, 0.7), (0.7, 0.24, 1.0)), OPEN),
        (method("m", (0.9, 0.65, 1.0), (0.7, 0.24, 1.0), (0.6, 0.55, 0.7)), CONTROL_FAILS),
        (method("m", (0.6, 0.45, 0.75), (0.5, 0.3, 0.7)), OPEN),
        (method("m", (0.4, 0.3, 0.5), (0.5, 0.3, 0.7)), RULED_OUT),
        # A quiz has another chance, and reciting has none.
        (method("m", (0.4, 0.3, 0.5), (0.1, 0.0, 0.2), chance=0.25), SHOWN),
        (method("m", (0.4, 0.3, 0.5), (0.1, 0.0, 0.2), chance=np.nan), SHOWN),
        (method("m", ALONE, ALONE), CONTROL_FAILS),
        (method("m", ALONE, (0.6, np.nan, np.nan)), OPEN),  # one observation
        (method("m", (0.3, np.nan, np.nan), (0.4, np.nan, np.nan)), OPEN),  # below chance
    ],
)
def test_a_finding_is_held_against_the_intervals_of_its_controls(rows, verdict):
    found = first_look.finding_verdicts(rows)
    assert found.tolist() == [verdict, *[""] * (len(rows) - 1)]
    check_verdicts(found)


def test_every_method_has_its_own_controls():
    rows = [method("a", (0.9, 0.8, 1.0), (0.5, 0.3, 0.7)), method("b", ALONE, ALONE, ALONE)]
    found = first_look.finding_verdicts(pd.concat(rows, ignore_index=True))
    assert found.tolist() == [SHOWN, "", CONTROL_FAILS, "", ""]


def test_a_correction_for_several_methods_takes_a_small_finding_back():
    """An AUC of 0.65 from 0.51 on is shown alone, and not as the weakest of three findings."""
    small = method("m", (0.65, 0.51, 0.79), (0.5, 0.3, 0.5))
    large = method("m", (0.90, 0.80, 1.0), (0.6, 0.52, 0.7))
    assert first_look.finding_verdicts(small)[0] == SHOWN
    others = [method(name, (0.52, 0.40, 0.64), (0.5, 0.4, 0.6)) for name in "ab"]
    for first, expected in ((small, OPEN), (large, SHOWN)):
        table = pd.concat([first, *others], ignore_index=True)
        assert first_look.finding_verdicts(table)[0] == expected
        p = first_look.with_p(table)
        assert p["p_adjusted"].notna().tolist() == [True, False] * 3  # controls are no test
        assert p["p_adjusted"][0] == pytest.approx(3 * p["p"][0])
    # A control that reaches a finding says nothing more where the finding is none.
    reached = method("m", (0.65, 0.51, 0.79), (0.6, 0.52, 0.7))
    assert first_look.finding_verdicts(reached)[0] == CONTROL_FAILS
    table = pd.concat([reached, *others], ignore_index=True)
    assert first_look.finding_verdicts(table)[0] == OPEN
