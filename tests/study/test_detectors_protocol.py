"""The protocol: p values and false alarms by hand."""

import numpy as np
import pytest
from scipy import stats

from contamination.study import protocol


@pytest.mark.parametrize(
    ("scores", "exact"),
    [
        # Both read rows lead: one of the six deals of two rows among four is as good.
        ([4, 3, 2, 1], 1 / 6),
        ([1, 1, 0, 0], 1 / 6),
        # The one high row is read in half of the deals.
        ([1, 0, 0, 0], 1 / 2),
        # Three of six deals have the two ends of 4, 3, 2, 1 or better: sums 5, 6 and 7, and 2 + 3.
        ([4, 1, 2, 3], 4 / 6),
        ([1, 2, 3, 4], 1),
        ([0, 0, 0, 0], 1),
    ],
)
def test_p_by_redealing_is_the_share_of_deals_as_good(scores, exact):
    is_read = np.array([True, True, False, False])
    p = protocol.permutation_p(np.array(scores), is_read)
    assert p == pytest.approx(exact, abs=0.015)
    assert p == 1 if exact == 1 else p < 1


def test_no_deal_as_good_is_a_p_of_one_in_ten_thousand_and_never_zero():
    is_read = np.arange(80) < 40
    assert protocol.permutation_p(is_read.astype(float), is_read) == 1 / 10_000
    assert protocol.permutation_p(-is_read.astype(float), is_read) == 1


@pytest.mark.parametrize("n_levels", [2, 1000])
def test_p_of_noise_keeps_its_level_with_and_without_ties(n_levels):
    generator = np.random.default_rng(n_levels)
    is_read = np.arange(100) < 50
    flags = [
        protocol.permutation_p(generator.integers(n_levels, size=100), is_read, (k,)) <= 0.05
        for k in range(600)
    ]
    low, high = stats.binom.ppf([0.001, 0.999], 600, 0.05)
    assert sum(flags) <= high
    assert n_levels == 2 or sum(flags) >= low


def test_clopper_pearson_by_hand():
    # No hit in n: (1 - high)^n equals the tail.
    assert protocol.clopper_pearson(0, 20, 0.025) == (0, pytest.approx(1 - 0.025 ** (1 / 20)))
    assert protocol.clopper_pearson(20, 20, 0.025) == (pytest.approx(0.025 ** (1 / 20)), 1)
    ends = stats.binomtest(7, 20).proportion_ci(0.95, "exact")
    assert protocol.clopper_pearson(7, 20, 0.025) == pytest.approx((ends.low, ends.high))


def test_false_alarms_of_one_set_a_unit_are_clopper_pearson():
    flags = np.arange(60) < 2
    expected = protocol.clopper_pearson(2, 60, 0.05)
    assert protocol.false_alarm_limits(flags, np.arange(60)) == pytest.approx(expected)
    nothing = protocol.false_alarm_limits(np.zeros(60), np.arange(60))
    assert nothing == (0, pytest.approx(1 - 0.05 ** (1 / 60)))


def test_sets_that_agree_within_a_unit_count_as_one():
    units = np.repeat(np.arange(20), 10)
    agreeing = protocol.false_alarm_limits(np.repeat(np.arange(20) < 2, 10), units)
    # 200 / (199 / 19) = 19.1 sets, times (1.6525 / 1.7291)^2 for 19 degrees of freedom: 17.44.
    assert agreeing == pytest.approx(protocol.clopper_pearson(1.744, 17.44, 0.05), abs=2e-4)
    spread = protocol.false_alarm_limits(np.arange(200) % 10 == np.arange(200) // 20, units)
    # One flag a unit: no unit differs from another, so the sets count as independent, but for t.
    n_effective = 200 * (1.6525 / 1.7291) ** 2
    by_hand = protocol.clopper_pearson(n_effective / 10, n_effective, 0.05)
    assert spread == pytest.approx(by_hand, abs=2e-4)


def test_two_units_say_nothing_of_others():
    assert np.isnan(protocol.false_alarm_limits(np.zeros(50), np.arange(50) % 2)).all()
