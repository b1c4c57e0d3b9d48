"""AUC, intervals and tests: hand-computed cases, brute force, and laws that must hold."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.core import statistics

LABELS = np.array([True, True, False, False])
score_lists = st.lists(st.integers(-3, 3), min_size=2, max_size=8)


def test_auc_by_hand():
    # Pairs (member, non-member): 3>2, 3>0, 1<2, 1>0 -> 3 of 4.
    assert statistics.auc([3, 1, 2, 0], LABELS) == 0.75
    assert statistics.auc([1, 1, 1, 1], LABELS) == 0.5
    assert statistics.auc([2, 1, 1, 0], LABELS) == (1 + 1 + 0.5 + 1) / 4


@given(score_lists, score_lists)
def test_auc_counts_pairs_and_turns_with_the_sign(members, others):
    scores = np.array(members + others, dtype=float)
    labels = np.array([True] * len(members) + [False] * len(others))
    wins = [(m > o) + 0.5 * (m == o) for m in members for o in others]
    assert statistics.auc(scores, labels) == pytest.approx(np.mean(wins))
    assert statistics.auc(-scores, labels) == pytest.approx(1 - np.mean(wins))


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1.0, 2.0], [True, True], "2 members among 2"),
        ([1.0, 2.0], [False, False], "0 members among 2"),
        ([1.0, np.nan], [True, False], "1 of 2 scores are undefined"),
        ([1.0], [True, False], "one per item"),
    ],
)
def test_auc_refuses_what_has_no_answer(scores, labels, message):
    with pytest.raises(ValueError, match=message):
        statistics.auc(scores, labels)


def test_tpr_allows_at_most_the_given_false_positives():
    # 20 non-members 0..19; at 5 % one false alarm is allowed: threshold above 18.
    scores = np.concatenate([[18.0, 18.5, 19.5, 30.0], np.arange(20.0)])
    labels = np.array([True] * 4 + [False] * 20)
    assert statistics.tpr_at_fpr(scores, labels) == 3 / 4
    # 19 non-members: 0.95 of one, so none is allowed.
    assert statistics.tpr_at_fpr(scores[:-1], labels[:-1]) == 3 / 4
    assert statistics.tpr_at_fpr(scores[:-1], labels[:-1], fpr=0.1) == 1.0
    assert statistics.tpr_at_fpr(scores, labels, fpr=1.0) == 1.0


def test_bootstrap_aucs_equal_aucs_of_the_resampled_items(monkeypatch):
    rng = np.random.default_rng(3)
    scores, labels = rng.integers(0, 5, 30).astype(float), np.arange(30) < 12
    # Small chunks give the same resamples and the same values as one large one.
    monkeypatch.setattr(statistics, "_VALUES_PER_CHUNK", 90)
    aucs = statistics.bootstrap_aucs([scores, -scores], labels, 50, seed=1)
    members, others = np.flatnonzero(labels), np.flatnonzero(~labels)
    row = 0
    for _, (m, o) in statistics._resampled_items((members, others), 50, 1):
        for i in range(len(m)):
            items = np.concatenate([m[i], o[i]])
            expected = statistics.auc(scores[items], np.arange(30) < 12)
            assert aucs[0, row] == pytest.approx(expected)
            row += 1
    assert row == 50
    # The second score saw the same items.
    np.testing.assert_allclose(aucs[0] + aucs[1], 1)


def test_auc_interval_covers_one_half_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    labels = np.arange(80) < 40
    misses = 0
    for seed in range(200):
        low, high = statistics.auc_interval(rng.normal(size=80), labels, 400, seed)
        misses += not low <= 0.5 <= high
    # 5 % of 200 is 10; 0.1 % limits of the binomial are 2 and 23.
    assert 2 <= misses <= 23


def test_models_are_drawn_with_replacement_and_alike_for_equal_shapes():
    """Two models that differ by 1: a resample holds one of them twice, or both."""
    resampled = np.array([np.zeros(400), np.ones(400)])
    means = statistics.over_drawn_models(resampled, seed=3)
    assert set(means) == {0.0, 0.5, 1.0}
    np.testing.assert_array_equal(statistics.over_drawn_models(2 * resampled, seed=3), 2 * means)
    assert (statistics.over_drawn_models(resampled, seed=4) != means).any()


def test_an_interval_leaves_a_fortieth_of_the_values_out_at_each_end():
    values = np.arange(1001.0)
    assert statistics.percentile_interval(values) == pytest.approx((25, 975))
    assert statistics.percentile_interval([*values, np.nan]) == pytest.approx((25, 975))
    assert np.isnan(statistics.percentile_interval([np.nan])).all()


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.01, 0.2), "above"),
        ((-0.2, -0.01), "below"),
        ((0.0, 0.2), "cannot be told"),
        ((np.nan, np.nan), "not run"),
    ],
)
def test_a_verdict_needs_an_interval_that_leaves_the_null_out(ends, expected):
    assert statistics.verdict(*ends) == expected
    assert statistics.verdict(*(end + 0.5 for end in ends), null=0.5) == expected


def test_wilson_interval_and_empty_denominator():
    low, high = statistics.share_interval(5, 10)
    assert (round(low, 4), round(high, 4)) == (0.2366, 0.7634)
    assert np.isnan(statistics.share_interval(0, 0)).all()


hundredths = st.lists(st.integers(0, 100), min_size=3, max_size=4)


@given(hundredths, st.data())
def test_exact_paired_p_is_that_of_all_resamples(guided, data):
    general = data.draw(st.lists(st.integers(0, 100), min_size=len(guided), max_size=len(guided)))
    differences = np.array(guided) - np.array(general)
    resamples = itertools.product(differences, repeat=len(differences))
    brute = np.mean([sum(resample) <= 0 for resample in resamples])
    exact = statistics.paired_bootstrap_p(np.array(guided) / 100, np.array(general) / 100)
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
    exact = statistics.unpaired_bootstrap_p(np.array(guided) / 100, np.array(general) / 100)
    assert exact == pytest.approx(brute)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6))
def test_sign_flip_p_is_that_of_all_sign_patterns(differences):
    differences = np.array(differences)
    signs = np.array(list(itertools.product((-1, 1), repeat=len(differences))))
    brute = ((signs * np.abs(differences)).sum(axis=1) >= differences.sum()).mean()
    exact = statistics.sign_flip_p((differences + 10) / 100, np.full(len(differences), 0.1))
    assert exact == pytest.approx(brute)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=8))
def test_the_smallest_sign_flip_p_counts_the_differences_that_are_not_zero(differences):
    """Ties do not matter: no sign pattern but one has the largest sum."""
    differences = np.array(differences)
    general = np.full(len(differences), 0.1)
    smallest = statistics.smallest_sign_flip_p((differences + 10) / 100, general)
    reached = statistics.sign_flip_p((np.abs(differences) + 10) / 100, general)
    assert smallest == pytest.approx(reached)


def test_the_bootstrap_interval_of_a_mean_difference_is_that_of_resamples():
    guided, general = np.array([0.5, 0.4, 0.1, 0.3, 0.9]), np.array([0.1, 0.3, 0.2, 0.3, 0.2])
    ends = statistics.paired_bootstrap_interval(guided, general)
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
        found["flip"] += statistics.sign_flip_p(guided, general) <= 0.05
        found["bootstrap"] += statistics.paired_bootstrap_p(guided, general) <= 0.05
    assert 7 <= found["flip"] <= 36
    assert found["bootstrap"] > found["flip"]


def test_sampled_p_approaches_the_exact_one():
    guided = np.array([0.35, 0.01, 0.4, 0.3, 0.2])
    general = np.array([0.1, 0.3, 0.2, 0.35, 0.15])
    exact = statistics.paired_bootstrap_p(guided, general)
    sampled = statistics.sampled_paired_bootstrap_p(guided, general, 20_000, seed=0)
    # Four standard errors of a share of 20,000.
    assert abs(sampled - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)


def test_bootstrap_tests_refuse_scores_they_cannot_treat_exactly():
    with pytest.raises(ValueError, match="two decimals"):
        statistics.paired_bootstrap_p(np.array([0.123]), np.array([0.1]))
    with pytest.raises(ValueError, match="differ in number"):
        statistics.paired_bootstrap_p(np.array([0.1, 0.2]), np.array([0.1]))
    with pytest.raises(ValueError, match="one score per instance"):
        statistics.paired_bootstrap_p(np.array([]), np.array([]))


def test_chance_of_significance_near_the_level():
    assert statistics.chance_of_significance(0.0) == 1.0
    assert statistics.chance_of_significance(1.0) == 0.0
    # At p = 0.05 about half of all seeds find p <= 0.05.
    assert 0.45 < statistics.chance_of_significance(0.05) < 0.56


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_and_keeps_their_order(p_values):
    p_values = np.array(p_values)
    adjusted = statistics.holm(p_values)
    assert (adjusted >= p_values - 1e-12).all() and adjusted.max() <= 1
    assert (np.diff(adjusted[np.argsort(p_values, kind="stable")]) >= -1e-12).all()


def test_kappa_by_hand():
    # Agreement 3/4; chance 1/2 * 3/4 + 1/2 * 1/4 = 1/2.
    assert statistics.cohen_kappa("aabb", "aaab") == pytest.approx(0.5)
    assert np.isnan(statistics.cohen_kappa("aa", "aa"))
    with pytest.raises(ValueError, match="paired labels"):
        statistics.cohen_kappa("a", "ab")


def test_difference_of_shares_keeps_its_level_at_the_ends():
    low, high = statistics.share_difference_interval(12, 12, 0, 12)
    assert 0.6 < low < 0.7 and high == 1
    low, high = statistics.share_difference_interval(0, 40, 0, 40)
    assert low < 0 < high
    assert np.isnan(statistics.share_difference_interval(0, 0, 1, 2)).all()


def test_only_pairs_within_a_set_count():
    """Three pairs in the first set, one in the second, and none in the third."""
    first = ([3, 1, 2, 0], np.array([True, False, False, False]))
    second, third = ([0, 5], np.array([True, False])), ([9], np.array([True]))
    assert statistics.auc_within([first, second, third]) == pytest.approx(3 / 4)
    assert np.isnan(statistics.auc_within([third]))
    resampled = statistics.bootstrap_auc_within([first, second, third], 400, seed=0)
    assert np.nanmin(resampled) == 0 and np.nanmax(resampled) == 1  # a set alone, now and then
    assert np.isnan(statistics.bootstrap_auc_within([third], 5, seed=0)).all()


def test_one_set_has_the_spread_of_the_ordinary_bootstrap():
    rng = np.random.default_rng(3)
    scores, is_member = rng.normal(size=80).round(1), np.arange(80) < 40
    within = statistics.bootstrap_auc_within([(scores, is_member)], 4000, seed=0)
    plain = statistics.bootstrap_aucs([scores], is_member, 4000, seed=0)[0]
    assert within.std() == pytest.approx(plain.std(), rel=0.1)
    assert within.mean() == pytest.approx(plain.mean(), abs=0.01)


def test_a_p_without_spread_is_the_smallest_that_so_few_items_allow():
    assert statistics.bootstrap_p(1.0, np.ones(9), 0.5, statistics.smallest_split_p(3, 3)) == 0.1
    assert statistics.bootstrap_p(0.5, np.full(9, 0.5), 0.5) == 1
    assert np.isnan(statistics.bootstrap_p(np.nan, np.ones(9)))
    far = statistics.bootstrap_p(0.9, 0.9 + 0.02 * np.random.default_rng(0).normal(size=500), 0.5)
    assert 0 < far < 1e-50  # a count of 500 resamples would stop at 1/501


def test_the_tests_of_several_tables_are_one_family():
    first = pd.DataFrame({"p": [0.01, np.nan]})
    second = pd.DataFrame({"p": [0.04, 0.03]})
    first, second = statistics.with_p_adjusted(first, second)
    assert first["p_adjusted"].round(2).fillna(-1).tolist() == [0.03, -1]
    assert second["p_adjusted"].round(2).tolist() == [0.06, 0.06]
