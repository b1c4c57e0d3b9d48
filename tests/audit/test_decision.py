"""The rule of an audit: by hand on few rows, its level on made scores, and what it notices."""

from itertools import combinations

import numpy as np
import pytest

from contamination.audit import decision
from contamination.audit.decision import Comparison, conformal_p


def a_comparison(suspected, comparison, features=None, n_redeals=999):
    scores = np.array([*suspected, *comparison], float)
    is_suspected = np.arange(len(scores)) < len(suspected)
    features = np.zeros((len(scores), 2)) if features is None else features
    return Comparison(scores, is_suspected, features, 0, n_redeals)


def test_both_statistics_by_hand():
    """Scores 4, 2 against 3, 1: ranks 4 + 2; no comparison row is above 4, one is above 2."""
    scores, deal = np.array([4.0, 2.0, 3.0, 1.0]), np.array([[True, True, False, False]])
    ranks, tails = decision.both_statistics(scores, deal)
    assert ranks.tolist() == [6]
    assert tails[0] == pytest.approx(np.sqrt(3) + np.sqrt(3 / 2))
    # Tied scores share a rank, and a comparison row as high counts against a suspected one.
    ranks, tails = decision.both_statistics(np.array([1.0, 1.0]), np.array([[True, False]]))
    assert ranks[0] == 1.5 and tails[0] == 1


def test_the_p_value_is_the_share_of_deals_that_are_as_extreme():
    """Three of six rows, wholly above the others: one deal of twenty is as extreme."""
    labels = np.arange(6) < 3
    p, other = decision.redeal_p(np.array([4.0, 5, 6, 1, 2, 3]), labels, np.zeros(6), 9_999, 1)
    n_deals = len([*combinations(range(6), 3)])
    assert p == pytest.approx(1 / n_deals, abs=0.006) and other == 1
    assert a_comparison([1, 2, 3], [4, 5, 6]).p_values[1] <= 0.08


def test_labels_are_dealt_within_strata_alone():
    strata, labels = np.repeat([0, 1], 10), np.arange(20) % 10 < 3
    dealt = decision.dealt_within(strata, labels, np.random.default_rng(0))
    assert dealt[:10].sum() == dealt[10:].sum() == 3 and not (dealt == labels).all()
    # Suspected rows fill one stratum, comparison rows the other: no other deal is possible.
    assert decision.redeal_p(np.arange(20.0), strata == 1, strata, 99)[0] == 1


def test_rows_of_one_length_are_in_one_stratum():
    """Where the files do not differ in their features, all rows are dealt together."""
    assert len({*decision.strata_of(np.zeros(60))}) == 1
    assert a_comparison(range(60, 120), range(60)).p_values[0] == 0.001


def test_what_length_explains_is_taken_away():
    length = np.arange(20.0)
    assert np.abs(decision.adjusted(3 * length + 1, length[:, None])).max() < 1e-6
    assert not decision.adjusted(np.full(20, -0.7), length[:, None]).any()  # ties stay ties


def test_tied_and_separated_scores_have_an_interval_that_n_allows():
    low, high = decision.auc_interval(0.5, 60, 60)
    assert high - low == pytest.approx(0.2, abs=0.01)
    low, high = decision.auc_interval(1.0, 60, 60)
    assert high == 1 and 0.9 < low < 0.97
    assert a_comparison(np.zeros(60), np.zeros(60)).p_values == (1, 1)


def seen(n, n_seen, effect, generator):
    return generator.normal(size=n) + effect * (np.arange(n) < n_seen)


@pytest.mark.parametrize("difference", [0.0, 1.0])
def test_false_alarms_are_as_rare_as_the_level_says(difference):
    """Also where the files differ in what the score depends on; 200 draws of 30 + 30 rows."""
    generator, rejected = np.random.default_rng(0), 0
    for _ in range(200):
        features = generator.normal(size=(60, 2))
        features[:30, 0] += difference
        scores = generator.normal(size=60) + features[:, 0]
        audit = a_comparison(scores[:30], scores[30:], features, n_redeals=199)
        rejected += audit.p_values[0] <= 0.05
    assert rejected <= 200 * 0.05 + 2.6 * np.sqrt(200 * 0.05 * 0.95)


def test_a_part_of_the_rows_is_noticed_and_the_bound_is_below_the_truth():
    generator, noticed, covered = np.random.default_rng(1), [], []
    for _ in range(20):
        scores = seen(60, 20, 3.0, generator), generator.normal(size=60)
        audit = a_comparison(*scores, n_redeals=199)
        noticed.append(audit.p_values[0] <= 0.05)
        covered.append(audit.n_seen_at_least() <= 20)
    assert np.mean(noticed) >= 0.95 and np.mean(covered) >= 0.9


def test_a_clear_fifth_of_ninety_rows_is_noticed():
    """The old rule could never show it, whatever the score."""
    generator = np.random.default_rng(2)
    audit = a_comparison(seen(90, 18, 9.0, generator), generator.normal(size=60))
    assert audit.p_values[0] <= 0.001
    assert 9 <= audit.n_seen_at_least() <= 18
    assert audit.listed(0.1)[:18].all() and audit.listed(0.1)[18:].sum() <= 3


@pytest.mark.parametrize("effect", [0.0, 0.5, 3.0])
def test_the_bound_is_above_zero_exactly_where_the_test_rejects(effect):
    for number in range(10):
        generator = np.random.default_rng(number)
        scores = seen(30, 10, effect, generator), generator.normal(size=30)
        audit = a_comparison(*scores, n_redeals=99)
        for level in (0.05, 0.02):
            assert (audit.n_seen_at_least(level) > 0) == (audit.p_values[0] <= level)
            assert (audit.overturned_by(level) > 0) == (audit.p_values[0] <= level)


def test_conformal_p_values_count_comparison_rows_that_are_as_high():
    assert conformal_p(np.array([3.0, 2.0, 0.0]), np.array([1.0, 2.0, 3.0])).tolist() == [
        0.5,
        0.75,
        1.0,
    ]
    assert decision.shortest_list(60, 200, 0.1) == 3  # 3 names of p = 1 / 201


def test_features_know_length_and_common_words():
    rows = decision.text_features(["the the cat", "the cat sat on it", "zyx"])
    assert rows[1, 0] > rows[0, 0] > rows[2, 0]
    assert rows[0, 1] > rows[1, 1] > rows[2, 1] == 0
