"""Scores of a passage: values worked out by hand, direction, and what is refused."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.core import scores

HALF, QUARTER = np.log(0.5), np.log(0.25)

# A passage the model knows and one it does not: same tokens, the second with two surprises.
MEMBER = np.log([0.5, 0.4, 0.5, 0.4])
NON_MEMBER = np.log([0.5, 0.01, 0.5, 0.02])


@pytest.mark.parametrize(("k_percent", "n_kept"), [(10, 1), (20, 1), (50, 2), (59, 2), (100, 5)])
def test_min_k_rounds_the_number_of_tokens_down_but_keeps_one(k_percent, n_kept):
    values = np.array([-1.0, -2.0, -3.0, -4.0, -5.0])
    expected = np.mean([-5.0, -4.0, -3.0, -2.0, -1.0][:n_kept])
    assert scores.min_k_score(values, k_percent) == pytest.approx(expected)


def test_min_k_at_100_percent_is_minus_the_nll_and_so_ranks_as_perplexity_does():
    assert scores.min_k_score(MEMBER, 100) == pytest.approx(MEMBER.mean())
    assert scores.perplexity_score(MEMBER) == pytest.approx(-np.exp(-MEMBER.mean()))


def test_min_k_with_ties_does_not_depend_on_the_order_of_tokens():
    values = np.log([0.5, 0.25, 0.25, 0.5, 0.25])
    assert scores.min_k_score(values, 40) == pytest.approx(QUARTER)
    assert scores.min_k_score(values[::-1], 40) == pytest.approx(QUARTER)


def test_min_k_plus_plus_standardises_before_it_picks_the_lowest():
    # (-1 + 2) / 1 = 1, (-3 + 2) / 0.5 = -2, (-4 + 3.5) / 1 = -0.5: the token with the
    # lowest log-probability, -4, is not the lowest once standardised.
    values = scores.min_k_plus_plus_score(
        np.array([-1.0, -3.0, -4.0]), np.array([-2.0, -2.0, -3.5]), np.array([1.0, 0.5, 1.0]), 34
    )
    assert values == pytest.approx(-2.0)


def test_zlib_divides_by_compressed_utf8_bytes():
    text = "déjà vu " * 5
    n_bytes = len(zlib.compress(text.encode("utf-8")))
    assert scores.zlib_score(np.array([HALF, QUARTER]), text) == pytest.approx(
        (HALF + QUARTER) / 2 / n_bytes
    )


def test_neighbours_weigh_the_same_whatever_their_length():
    short, long = np.array([HALF]), np.full(9, QUARTER)
    expected = -(HALF + QUARTER) / 2 + HALF
    assert scores.neighbor_score(np.array([HALF]), [short, long]) == pytest.approx(expected)


def test_every_score_is_higher_for_the_member():
    text = "the same words in both"
    flat, mean, std = np.log(np.full(4, 0.05)), np.full(4, -2.0), np.ones(4)
    pairs = {
        "min_k": lambda x: scores.min_k_score(x, 25),
        "min_k_plus_plus": lambda x: scores.min_k_plus_plus_score(x, mean, std, 25),
        "ppl": scores.perplexity_score,
        "zlib": lambda x: scores.zlib_score(x, text),
        "lowercase": lambda x: scores.lowercase_score(x, flat),
        "smaller_reference": lambda x: scores.smaller_reference_score(x, flat),
        "neighbor": lambda x: scores.neighbor_score(x, [flat]),
    }
    wrong = [name for name, score in pairs.items() if not score(MEMBER) > score(NON_MEMBER)]
    assert wrong == []


@pytest.mark.parametrize("k_percent", [0, -5, 101, float("nan")])
def test_k_out_of_range_is_refused(k_percent):
    with pytest.raises(ValueError, match="k_percent must be above 0 and at most 100"):
        scores.min_k_score(MEMBER, k_percent)


@pytest.mark.parametrize(
    "score",
    [
        scores.min_k_score,
        scores.perplexity_score,
        lambda x: scores.zlib_score(x, "text"),
        lambda x: scores.lowercase_score(MEMBER, x),
        lambda x: scores.smaller_reference_score(MEMBER, x),
        lambda x: scores.neighbor_score(MEMBER, [x]),
        lambda x: scores.min_k_plus_plus_score(x, x, x),
    ],
)
def test_a_passage_without_a_scored_token_is_refused(score):
    with pytest.raises(ValueError, match="no scored token"):
        score(np.array([]))


@pytest.mark.parametrize("value", [np.nan, -np.inf, 0.3])
def test_what_is_no_log_probability_is_refused(value):
    with pytest.raises(ValueError, match="finite and at most 0"):
        scores.perplexity_score(np.array([-1.0, value]))


def test_undefined_ratios_are_refused():
    with pytest.raises(ValueError, match="NLL of 0"):
        scores.lowercase_score(np.zeros(3), MEMBER)
    with pytest.raises(ValueError, match="spread"):
        scores.min_k_plus_plus_score(MEMBER, MEMBER, np.zeros(4))
    with pytest.raises(ValueError, match="one per token"):
        scores.min_k_plus_plus_score(MEMBER, MEMBER[:2], np.ones(4))
    with pytest.raises(ValueError, match="no neighbour"):
        scores.neighbor_score(MEMBER, [])
    with pytest.raises(ValueError, match="empty"):
        scores.zlib_score(MEMBER, "")


@given(
    st.lists(st.floats(-30, 0), min_size=1, max_size=40),
    st.floats(1, 100),
    st.floats(1, 100),
)
def test_min_k_rises_with_k_up_to_minus_the_nll(values, k_percent, other):
    low, high = sorted([k_percent, other])
    values = np.array(values)
    assert scores.min_k_score(values, low) <= scores.min_k_score(values, high) + 1e-9
    assert scores.min_k_score(values, high) <= values.mean() + 1e-9
