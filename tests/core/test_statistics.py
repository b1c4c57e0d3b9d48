"""AUC, intervals and tests: hand-computed cases, brute force, and laws that must hold."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

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


def test_wilson_interval_and_empty_denominator():
    low, high = statistics.share_interval(5, 10)
    assert (round(low, 4), round(high, 4)) == (0.2366, 0.7634)
    assert np.isnan(statistics.share_interval(0, 0)).all()


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


def test_a_p_by_the_end_that_faces_the_null_agrees_with_the_interval():
    """0.05 where that end is the null, on either side and over few models; less beyond it."""
    for df in (math.inf, 4):
        assert statistics.end_p(0.6, 0.5, 0.62, 0.5, df) == pytest.approx(0.05)
        assert statistics.end_p(0.4, 0.38, 0.5, 0.5, df) == pytest.approx(0.05)
        assert statistics.end_p(0.6, 0.51, 0.99, 0.5, df) < 0.05
        assert statistics.end_p(0.6, 0.49, 0.61, 0.5, df) > 0.05
    # Over few models the tails are heavier.
    few, many = (statistics.end_p(0.7, 0.6, 0.8, 0.5, df) for df in (4, math.inf))
    assert few == pytest.approx(2 * stats.t.sf(2 * stats.t.ppf(0.975, 4), 4)) and few > 10 * many
    assert np.isnan(statistics.end_p(0.7, np.nan, np.nan, 0.5))
    assert statistics.end_p(0.5, 0.5, 0.5, 0.5) == 1 and statistics.end_p(1, 1, 1, 0.5) == 0
    # A percentile interval may leave its value out.
    assert statistics.end_p(0.6, 0.61, 0.7, 0.5) < 0.05


def test_mcnemar_looks_at_cases_that_differ():
    # Four for the first, none for the second: 2 * (1 / 2)^4.
    assert statistics.mcnemar_p(4, 0) == statistics.mcnemar_p(0, 4) == 0.125
    assert statistics.mcnemar_p(0, 0) == statistics.mcnemar_p(3, 3) == 1
    assert statistics.mcnemar_p([1, 7], [3, 2]).tolist() == pytest.approx(
        [stats.binomtest(1, 4).pvalue, stats.binomtest(7, 9).pvalue]
    )


def test_units_are_drawn_together():
    """Forty passages of four books say as much as four passages, not as forty."""
    scores = np.repeat([3.0, 1.0, 2.0, 0.0], 10)
    is_member, book = np.repeat([True, True, False, False], 10), np.repeat(np.arange(4), 10)
    one_set = [(scores, is_member)]
    alone, together = (
        statistics.bootstrap_auc_within(one_set, 500, 0, units) for units in (None, [book])
    )
    assert np.nanstd(together) > 2 * np.nanstd(alone)
    assert set(np.unique(together[~np.isnan(together)])) >= {0.5, 1.0}  # a book is left out or not
