"""Time Travel's bootstrap tests and the sign-flip test: brute force, level, refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.replication import algorithms

hundredths = st.lists(st.integers(0, 100), min_size=3, max_size=4)


@given(hundredths, st.data())
def test_exact_paired_p_is_that_of_all_resamples(guided, data):
    general = data.draw(st.lists(st.integers(0, 100), min_size=len(guided), max_size=len(guided)))
    differences = np.array(guided) - np.array(general)
    resamples = itertools.product(differences, repeat=len(differences))
    brute = np.mean([sum(resample) <= 0 for resample in resamples])
    exact = algorithms.paired_bootstrap_p(np.array(guided) / 100, np.array(general) / 100)
    assert exact == pytest.approx(brute)


@given(
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
)
def test_exact_unpaired_p_is_that_of_all_resamples(guided, general):
    pairs = itertools.product(
        itertools.product(guided, repeat=3), itertools.product(general, repeat=3)
    )
    brute = np.mean([sum(a) <= sum(b) for a, b in pairs])
    exact = algorithms.unpaired_bootstrap_p(np.array(guided) / 100, np.array(general) / 100)
    assert exact == pytest.approx(brute)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6))
def test_sign_flip_p_is_that_of_all_sign_patterns(differences):
    differences = np.array(differences)
    signs = np.array(list(itertools.product((-1, 1), repeat=len(differences))))
    brute = ((signs * np.abs(differences)).sum(axis=1) >= differences.sum()).mean()
    exact = algorithms.sign_flip_p((differences + 10) / 100, np.full(len(differences), 0.1))
    assert exact == pytest.approx(brute)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=8))
def test_the_smallest_sign_flip_p_counts_the_differences_that_are_not_zero(differences):
    """Ties do not matter: no sign pattern but one has the largest sum."""
    differences = np.array(differences)
    general = np.full(len(differences), 0.1)
    smallest = algorithms.smallest_sign_flip_p((differences + 10) / 100, general)
    reached = algorithms.sign_flip_p((np.abs(differences) + 10) / 100, general)
    assert smallest == pytest.approx(reached)


def test_the_bootstrap_interval_of_a_mean_difference_is_that_of_resamples():
    guided, general = np.array([0.5, 0.4, 0.1, 0.3, 0.9]), np.array([0.1, 0.3, 0.2, 0.3, 0.2])
    ends = algorithms.paired_bootstrap_interval(guided, general)
    drawn = np.random.default_rng(0).integers(0, 5, (50_000, 5))
    means = (guided - general)[drawn].mean(axis=1)
    assert ends == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.01)


def test_sign_flips_keep_their_level_where_the_bootstrap_does_not():
    # Ten differences of random sign: 5 % of 400 is 20, the 0.1 % limits 7 and 36.
    rng = np.random.default_rng(0)
    found = {"flip": 0, "bootstrap": 0}
    for _ in range(400):
        general = rng.integers(20, 60, 10) / 100
        guided = general + rng.choice([-1, 1], 10) * rng.integers(1, 20, 10) / 100
        found["flip"] += algorithms.sign_flip_p(guided, general) <= 0.05
        found["bootstrap"] += algorithms.paired_bootstrap_p(guided, general) <= 0.05
    assert 7 <= found["flip"] <= 36
    assert found["bootstrap"] > found["flip"]


def test_bootstrap_tests_refuse_scores_they_cannot_treat_exactly():
    with pytest.raises(ValueError, match="two decimals"):
        algorithms.paired_bootstrap_p(np.array([0.123]), np.array([0.1]))
    with pytest.raises(ValueError, match="differ in number"):
        algorithms.paired_bootstrap_p(np.array([0.1, 0.2]), np.array([0.1]))
    with pytest.raises(ValueError, match="one score per instance"):
        algorithms.paired_bootstrap_p(np.array([]), np.array([]))
