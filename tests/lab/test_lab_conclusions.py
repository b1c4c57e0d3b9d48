"""What notebook 01 concludes, from tables whose controls hold and from others."""

import pandas as pd

from contamination.core.verdicts import NOT_SUPPORTED, SUPPORTED
from contamination.lab.conclusions import conclusion


def said(shared=0.0, at_zero=NOT_SUPPORTED, words_at_zero=NOT_SUPPORTED):
    overlaps = pd.DataFrame({"split": ["clean", "raw"], "overlap_pct": [shared, 43.6]})
    dial = pd.DataFrame({"rule": ["shared", "shared", "common"], "naturalness": [0.0, 1.0, 0.0]})
    dial["verdict"] = [at_zero, SUPPORTED, words_at_zero]
    return conclusion(overlaps, dial)


def test_training_is_the_only_difference_where_both_controls_hold():
    assert "Members and non-members share no thirteen words in a row. Had we" in said()
    assert "44 % of the non-members would share such a run with a member." in said()
    assert "(naturalness 0), no rule that we tried (shared and common) is shown" in said()
    assert "traces of training" in said()


def test_a_control_that_fails_takes_the_conclusion_away():
    for other in (said(shared=2.5), said(at_zero=SUPPORTED), said(words_at_zero=SUPPORTED)):
        assert "traces of training" not in other and "can be trusted" in other
    assert "2.5 % of the non-members share thirteen words" in said(shared=2.5)
    assert "memory (shared) finds the originals more often" in said(at_zero=SUPPORTED)
    both = said(at_zero=SUPPORTED, words_at_zero=SUPPORTED)
    assert "memory (shared and common) find the originals more often than chance" in both
