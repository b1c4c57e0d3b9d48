"""The five verdicts: what an interval, a test and a control allow."""

import math

import pandas as pd
import pytest
from verdict_words import check_table, check_verdicts

from contamination.core.verdicts import (
    CONTROL_FAILS,
    NOT_RUN,
    OPEN,
    RULED_OUT,
    SHOWN,
    SMALL,
    Claim,
    strongest,
)

AUC = Claim("members score higher")
POINTS = Claim("the rule does at least as well", null=-5.0, smallest_effect=5.0, unit="points")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.51, 0.58, SMALL),
        (0.50, 0.59, RULED_OUT),  # an effect of 0.10 is ruled out
        (0.50, 0.60, OPEN),  # it is not
        (0.20, 0.40, RULED_OUT),
        (math.nan, 0.6, NOT_RUN),
    ],
)
def test_an_interval_that_reaches_chance_is_no_evidence_of_absence(low, high, expected):
    assert AUC.verdict(low, high) == expected


def test_the_null_and_the_smallest_effect_are_those_of_the_claim():
    assert POINTS.verdict(-4.0, 10.0) == SHOWN
    assert POINTS.verdict(-30.0, -1.0) == RULED_OUT
    assert POINTS.verdict(-30.0, 0.5) == OPEN


def test_a_corrected_test_can_take_a_verdict_back_and_never_give_one():
    assert AUC.verdict(0.52, 0.80, p_adjusted=0.2) == OPEN
    assert AUC.verdict(0.52, 0.80, p_adjusted=0.05) == SHOWN
    assert AUC.verdict(0.52, 0.58, p_adjusted=0.2) == RULED_OUT
    assert AUC.verdict(0.48, 0.80, p_adjusted=0.01) == OPEN


def test_a_control_that_shows_as_much_forbids_the_claim():
    assert AUC.verdict(0.70, 0.90, control=(0.55, 0.70)) == CONTROL_FAILS
    assert AUC.verdict(0.70, 0.90, control=(0.55, 0.69)) == SHOWN
    assert AUC.verdict(0.70, 0.90, control=(0.75, 0.75)) == CONTROL_FAILS  # has no interval


def test_a_control_that_is_merely_imprecise_leaves_the_claim_open():
    assert AUC.verdict(1.00, 1.00, control=(0.24, 1.00)) == OPEN
    assert AUC.verdict(0.70, 0.90, control=(0.50, 0.75)) == OPEN  # reaches the null
    assert AUC.verdict(0.70, 0.90, control=(math.nan, math.nan)) == OPEN  # there is none
    assert AUC.verdict(0.45, 0.55, control=(0.24, 1.00)) == RULED_OUT


@pytest.mark.parametrize(
    ("controls", "expected"),
    [
        ([(0.30, 0.60), (0.40, 0.65)], SHOWN),
        ([(0.30, 0.90), (0.60, 0.72)], CONTROL_FAILS),  # the second reaches it and shows the same
        ([(0.30, 0.90), (0.60, 0.65)], OPEN),  # the second shows less, the first nothing
        ([(math.nan, math.nan)], SHOWN),
        ([], SHOWN),
    ],
)
def test_an_imprecise_control_does_not_hide_one_that_shows_the_same(controls, expected):
    assert AUC.verdict(0.70, 0.95, control=strongest(controls, 0.70)) == expected


def test_few_models_and_tests_that_cannot_reject_decide_nothing():
    assert AUC.verdict(0.9, 1.0, n_models=4) == OPEN
    assert AUC.verdict(0.9, 1.0, n_models=5) == SHOWN
    assert AUC.verdict(0.4, 0.5, can_reject=False) == OPEN


def test_other_words_are_refused_and_blank_cells_are_not():
    check_verdicts([SHOWN, "", math.nan, None, pd.NA])
    with pytest.raises(ValueError, match='"cannot tell" is not a verdict'):
        check_verdicts(["cannot tell"])
    with pytest.raises(ValueError, match='"True" is not a verdict'):
        check_verdicts([True])


@pytest.mark.parametrize(
    ("name", "column", "word", "message"),
    [
        ("audit", "verdict", "yes", 'audit, column verdict: "yes" is not a verdict'),
        (None, "verdict", "yes", 'displayed table, column verdict: "yes" is not a verdict'),
        ("audit", "easy_verdict", "no", 'column easy_verdict: "no" is not a verdict'),
        ("new_table", "verdict", SHOWN, 'add "new_table" to core/claims.csv'),
        ("audit", "easy_verdict", SHOWN, 'add "audit_easy" to core/claims.csv'),
    ],
)
def test_a_table_is_refused_for_another_word_or_without_a_claim(name, column, word, message):
    with pytest.raises(ValueError, match=message) as error:
        check_table(pd.DataFrame({column: [SHOWN, word]}), name)
    assert "\n" not in str(error.value)


def test_a_word_is_a_verdict_only_next_to_one():
    check_table(pd.DataFrame({"word": ["house"]}), "frequencies")
    check_table(pd.DataFrame({"word": [SHOWN, ""], "verdict": [SHOWN, ""]}), "dcq_rules")
    with pytest.raises(ValueError, match='dcq_rules, column word: "seen" is not a verdict'):
        check_table(pd.DataFrame({"word": ["seen"], "verdict": [SHOWN]}), "dcq_rules")
