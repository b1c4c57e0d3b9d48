"""What notebook 01 concludes, from tables whose controls hold and from others."""

import pandas as pd

from contamination.core.verdicts import NOT_SUPPORTED, SUPPORTED
from contamination.lab.conclusions import conclusion


def said(shared=0.0, at_zero=NOT_SUPPORTED, words_at_zero=NOT_SUPPORTED, low=0.45):
    overlaps = pd.DataFrame({"split": ["one per family", "whole families", "raw"]})
    overlaps = overlaps.assign(auc=[0.55, 0.79, 0.5])
    overlaps = overlaps.assign(overlap_pct=[shared, 0.0, 43.6])
    overlaps = overlaps.assign(ci_low=[low, 0.77, 0.46], ci_high=[0.65, 0.82, 0.54])
    dial = pd.DataFrame({"rule": ["shared", "shared", "common"], "naturalness": [0.0, 1.0, 0.0]})
    dial["verdict"] = [at_zero, SUPPORTED, words_at_zero]
    return conclusion(overlaps, dial)


def test_training_is_the_only_difference_where_both_controls_hold():
    assert "Members and non-members share no thirteen words in a row, and a class" in said()
    assert "the words is not shown to tell them apart (AUC 0.55 [0.45, 0.65]). Had we" in said()
    assert "44 % of the non-members would share such a run with a member. With all pass" in said()
    assert "the classifier's AUC would be 0.79 [0.77, 0.82]." in said()
    assert "benchmark topics), no rule that we tried (shared and common) is shown" in said()
    assert "traces of training" in said()


def test_a_control_that_fails_takes_the_conclusion_away():
    words_tell = said(low=0.51)
    assert "the words tells them apart (AUC 0.55 [0.51, 0.65])" in words_tell
    others = said(shared=2.5), said(at_zero=SUPPORTED), said(words_at_zero=SUPPORTED), words_tell
    for other in others:
        assert "traces of training" not in other and "can be trusted" in other
    assert "2.5 % of the non-members share thirteen words" in said(shared=2.5)
    assert "memory (shared) finds the originals more often" in said(at_zero=SUPPORTED)
    both = said(at_zero=SUPPORTED, words_at_zero=SUPPORTED)
    assert "memory (shared and common) find the originals more often than chance" in both
