"""What notebook 01 concludes, from tables whose controls hold and from others."""

import pandas as pd

from contamination.core.verdicts import NOT_SUPPORTED, SUPPORTED
from contamination.lab.conclusions import conclusion


def said(shared=0.0, at_zero=NOT_SUPPORTED):
    overlaps = pd.DataFrame({"split": ["clean", "raw"], "overlap_pct": [shared, 43.6]})
    dial = pd.DataFrame({"naturalness": [0.0, 1.0], "verdict": [at_zero, SUPPORTED]})
    return conclusion(overlaps, dial)


def test_training_is_the_only_difference_where_both_controls_hold():
    assert "Members and non-members share no thirteen words in a row. Had we" in said()
    assert "44 % of the non-members would share such a run with a member." in said()
    assert (
        "is not shown to find the originals more often" in said() and "traces of training" in said()
    )


def test_a_control_that_fails_takes_the_conclusion_away():
    for other in (said(shared=2.5), said(at_zero=SUPPORTED)):
        assert "traces of training" not in other and "can be trusted" in other
    assert "2.5 % of the non-members share thirteen words" in said(shared=2.5)
    assert "memory finds the originals more often than chance" in said(at_zero=SUPPORTED)
