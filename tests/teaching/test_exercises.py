"""Exercises that ask for an answer: the check itself."""

import numpy as np
import pytest

from contamination.teaching.exercises import check


# Lessons have exercises in notebooks of their own, and a lab has those of its lesson.
def is_right(*arguments, **settings):
    return check(1, *arguments, **settings) == "Exercise 1: right."


def test_numbers_have_a_tolerance_and_words_a_case():
    assert is_right(14, 100 * 0.14) and not is_right(14, 14.1)
    assert is_right(0.62, np.float64(0.6195), tolerance=0.01)
    assert not is_right(0.64, 0.6195, tolerance=0.01)
    assert not is_right(float("nan"), 0.5, tolerance=1)
    assert is_right(" Perplexity", "perplexity") and not is_right("Zlib", "perplexity")
    assert is_right(["B", "A"], {"A", "B"})
    assert not is_right(["A"], {"A", "B"}) and not is_right("AB", {"A", "B"})
    # Yes and one are not the same answer.
    assert is_right(True, True) and not is_right(False, True) and not is_right(True, 1)


def test_without_an_answer_nothing_is_wrong():
    assert check(3, ..., 5) == "Exercise 3: no answer yet."
    assert check(3, 4, 5) == "Exercise 3: not yet."
    with pytest.raises(TypeError, match="exercise 2"):
        check(2, 1, None)
