"""Number twins and DC-PDD: by hand, and the sign of their scores."""

import math

import numpy as np
import pytest

from contamination.study import number_twins
from contamination.study.baselines import dc_pdd_score, log_frequencies
from contamination.study.number_twins import SOLVED, SWAPPED, solved_twin, swapped_twin, twins

PROBLEM = "Ann has 12 pens, Bo 3 more.\nanswer: 12 + 3 = 15\n#### 15"


def numbers_of(text):
    return [int(number) for number in number_twins.NUMBER.findall(text)]


def test_a_solved_twin_keeps_words_and_digits_and_its_answer_is_right():
    generator = np.random.default_rng(0)
    found = {solved_twin(PROBLEM, generator) for _ in range(20)}
    assert len(found) > 5
    for twin in found:
        first, second, a, b, total, answer = numbers_of(twin)
        assert (first, second) == (a, b) and a + b == total == answer
        assert len(twin) == len(PROBLEM)
        assert number_twins.NUMBER.sub("n", twin) == number_twins.NUMBER.sub("n", PROBLEM)


@pytest.mark.parametrize(
    "text",
    [
        "No number at all.",
        "A number, 7, and no step.",
        "Ann has 9 pens.\nanswer: 9 - 0 = 9\n#### 9",  # its number is its own result
    ],
)
def test_where_no_other_numbers_fit_there_is_no_twin(text):
    assert solved_twin(text, np.random.default_rng(0)) is None


def test_a_swapped_twin_takes_other_numbers_of_the_same_length():
    twin = swapped_twin("3 and 12 and 3", ["3", "4", "12", "88"], np.random.default_rng(0))
    assert twin == "4 and 88 and 4"
    assert swapped_twin("3 and 12", ["3", "12"], np.random.default_rng(0)) is None


def test_twins_depend_on_the_row_alone():
    rows = [PROBLEM, PROBLEM.replace("12", "14").replace("15", "17")]
    for form in (SOLVED, SWAPPED):
        both = twins(rows, form)
        if form == SOLVED:
            assert both[0] == twins(rows[:1], form)[0]
        assert all(len(own) <= number_twins.N_TWINS for own in both)
    with pytest.raises(ValueError, match="no number to swap"):
        twins(["words alone"], SOLVED)
    with pytest.raises(ValueError, match="unknown form"):
        twins(rows, "other")


def test_dc_pdd_by_hand():
    frequency = np.log([0.5, 0.25])
    # Tokens 0 and 1 once each; the second 1 does not count.
    expected = (0.5 * math.log(2) + 0.1 * math.log(4)) / 2
    assert dc_pdd_score(np.log([0.5, 0.1, 0.9]), [0, 1, 1], frequency, np.inf) == pytest.approx(
        expected
    )
    assert dc_pdd_score(np.log([0.5, 0.1]), [0, 1], frequency, bound=0.2) == pytest.approx(
        (0.2 + 0.1 * math.log(4)) / 2
    )
    with pytest.raises(ValueError, match="at least one"):
        dc_pdd_score(np.array([]), [], frequency)


def test_a_likelier_rare_token_scores_higher_and_a_common_one_counts_less():
    frequency = log_frequencies([[0] * 98 + [1]], 2)
    score = {
        (p, token): dc_pdd_score(np.log([p]), [token], frequency, np.inf)
        for p in (0.2, 0.9)
        for token in (0, 1)
    }
    assert score[0.9, 1] > score[0.2, 1] > score[0.2, 0]
    assert score[0.9, 1] > score[0.9, 0]
