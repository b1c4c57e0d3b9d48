"""The protocol: p values, false alarms and power by hand, and its own controls."""

import numpy as np
import pandas as pd
import pytest
from detector_frames import product, scores_of, sets_with_flags
from scipy import stats

from contamination.study import protocol
from contamination.study.conditions import CONDITIONS

NAN = np.nan


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


def one_set(scores, **columns):
    n = len(scores)
    key = {"detector": "A", "unit": 0, "benchmark": "topics", "model": "dosed"}
    key |= {"condition": "verbatim", "copies": 3} | columns
    is_read = np.arange(n) < n // 2
    return pd.DataFrame({"row": np.arange(n), "is_read": is_read, "score": scores}).assign(**key)


def test_sets_by_hand():
    # Pairs of a read and an unread row: 3 > 2, 3 > 0, 1 < 2, 1 > 0.
    sets = protocol.sets_of(one_set([3.0, 1.0, 2.0, 0.0]))
    assert list(sets) == protocol.SET_COLUMNS
    row = sets.iloc[0]
    assert (row["n_read"], row["n_unread"], row["value"]) == (2, 2, 0.75)
    assert row["p"] == pytest.approx(2 / 6, abs=0.015)
    assert np.isnan(row["own_p"])


def test_a_set_has_its_p_whatever_else_is_there_and_in_any_order():
    generator = np.random.default_rng(0)
    frames = [one_set(generator.normal(size=40), unit=unit) for unit in range(3)]
    alone = protocol.sets_of(pd.concat(frames))
    later = [one_set(generator.normal(size=40), unit=unit, detector="0") for unit in range(3)]
    both = protocol.sets_of(pd.concat([*later, *frames]).sample(frac=1, random_state=0))
    pd.testing.assert_frame_equal(both[both["detector"] == "A"].reset_index(drop=True), alone)
    # Equal scores under another key are re-dealt in another order.
    again = [
        protocol.permutation_p(frames[0]["score"], frames[0]["is_read"], (k,)) for k in range(9)
    ]
    assert len(set(again)) > 1 and np.ptp(again) < 0.03


def test_sets_refuse_what_has_no_auc():
    with pytest.raises(ValueError, match="two scores"):
        protocol.sets_of(pd.concat([one_set([1.0, 0.0])] * 2))
    with pytest.raises(ValueError, match="1 of 2 scores are undefined"):
        protocol.sets_of(one_set([NAN, 0.0]))
    with pytest.raises(ValueError, match="needs members and non-members"):
        protocol.sets_of(one_set([1.0, 0.0]).assign(is_read=True))


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


def test_threshold_comes_from_the_other_half_of_the_bases():
    # Even units: 19 unread sets of 1 to 19; odd ones: 39 of 101 to 139, and one read set each.
    values = np.array([*range(1, 20), *range(101, 140), 500.0, 500.0])
    units = np.array([0] * 19 + [1] * 39 + [2, 3])
    is_unread = np.array([True] * 58 + [False] * 2)
    thresholds = protocol.cross_fitted_thresholds(values, units, is_unread)
    # ceil(0.95 * 40) = 38th of 39 for even units, ceil(0.95 * 20) = 19th of 19 for odd ones.
    assert set(thresholds[units % 2 == 0]) == {138}
    assert set(thresholds[units % 2 == 1]) == {19}


def test_eighteen_unread_sets_give_no_threshold():
    thresholds = protocol.cross_fitted_thresholds(range(19), [0] * 18 + [1], [True] * 18 + [False])
    assert np.isnan(thresholds).all()


def test_a_detector_keeps_its_own_p_else_p_else_a_threshold():
    own = product(detector="own", unit=[0, 1, 2]).assign(own_p=[0.05, 0.06, NAN], p=0.01)
    ranked = product(detector="ranked", unit=[0, 1, 2]).assign(p=[0.05, 0.06, NAN])
    unread = {"condition": ["fresh rows", "train split"], "copies": range(10)}
    scored = [product(detector="scored", unit=[0, 1], **unread).assign(value=1.0)]
    scored += [product(detector="scored", unit=[0, 1]).assign(value=[1.0, 1.1])]
    flags = protocol.flag(pd.concat([own, ranked, *scored])).groupby("detector")["flagged"]
    np.testing.assert_array_equal(flags.get_group("own"), [1, 0, NAN])
    np.testing.assert_array_equal(flags.get_group("ranked"), [1, 0, NAN])
    assert flags.get_group("scored").tolist() == [0] * 40 + [0, 1]


def test_which_sets_nobody_read():
    models = ["base", "clean", "dosed", "dosed, then clean text", "dosed, placebo name"]
    sets = protocol.flag(product(model=models, condition=["verbatim", "fresh rows"]))
    assert sets["unread"].tolist() == ["", "", "clean", "clean", "", "dosed", "", "dosed", "", ""]


def test_unknown_words_and_sets_that_stand_twice_are_refused():
    with pytest.raises(ValueError, match="is called 'verbatum'"):
        protocol.flag(product(condition="verbatum"))
    with pytest.raises(ValueError, match="occurs twice"):
        protocol.flag(product(unit=[0, 0]))


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


def test_words_at_their_bounds():
    words = [(0.0, 0.10), (0.02, 0.11), (0.06, 0.2), (0.06, 0.09), (NAN, NAN)]
    assert [protocol.calibration_word(*ends) for ends in words] == [
        *("calibrated", "undetermined", "miscalibrated", "calibrated", "not run")
    ]
    words = [(0.05, 0.4, 20), (0.06, 0.49, 20), (0.06, 0.5, 20), (NAN, NAN, 20), (0.01, 1.0, 4)]
    assert [protocol.power_word(*ends) for ends in words] == [
        *("supported", "not supported", "inconclusive", "not run", "inconclusive")
    ]


def test_a_detector_that_is_left_out_has_counts_and_no_word():
    both = [power_frame().assign(detector=name) for name in ("A", *protocol.LEFT_OUT)]
    table = protocol.power_table(pd.concat(both)).set_index("detector")
    assert table.loc["DICE", "n_flagged"].tolist() == table.loc["A", "n_flagged"].tolist()
    assert table.loc["DICE", "word"].tolist() == ["", ""]
    assert table.loc["A", "word"].tolist() == ["supported"] * 2


def test_false_alarms_apart_for_dosed_and_clean_models():
    flags = np.arange(60) < 2
    dosed = sets_with_flags(flags, condition="fresh rows")
    clean = sets_with_flags(np.arange(60) < 30, model="clean", copies=0)
    read = sets_with_flags(np.ones(60))
    row = protocol.false_alarms(pd.concat([dosed, clean, read])).loc["A"]
    # Two of 60 already leave up to 10.1 %.
    assert row["false_positive_rate"] == 2 / 60
    assert row["clean_false_positive_rate"] == 0.5
    assert row["calibration"] == "miscalibrated"
    limits = row[["false_positive_low", "false_positive_high"]].tolist()
    assert limits == pytest.approx(protocol.clopper_pearson(2, 60, 0.05))
    assert protocol.false_alarms(pd.concat([dosed, read])).loc["A", "calibration"] == "not run"


def power_frame():
    verbatim = sets_with_flags(np.arange(20) < 10)
    others = sets_with_flags(np.arange(20) < 4, condition="paraphrase")
    return pd.concat([others, verbatim], ignore_index=True)


def test_power_by_hand():
    table = protocol.power_table(power_frame()).set_index("condition")
    assert table.index.tolist() == ["verbatim", "paraphrase"]
    assert table["power_at_5_fpr"].tolist() == [0.5, 0.2]
    assert table["n_units"].tolist() == [20, 20] and table["n_rows"].tolist() == [100, 100]
    p = stats.binom.sf([9, 3], 20, 0.05)
    assert table["p_value"].tolist() == pytest.approx(p.tolist())
    assert table["p_adjusted"].tolist() == pytest.approx([2 * p[0], p[1]])
    # Two cells: 1.25 % outside each end.
    ends = protocol.clopper_pearson(4, 20, 0.0125)
    assert table.loc["paraphrase", ["ci_low", "ci_high"]].tolist() == pytest.approx(list(ends))
    # Six units change, all one way: 2 * (1 / 2)^6.
    assert np.isnan(table.loc["verbatim", "p_against_verbatim"])
    assert table.loc["paraphrase", "p_against_verbatim"] == pytest.approx(2 / 64)
    assert table["word"].tolist() == ["supported", "supported"]


def test_a_cell_that_was_not_run_costs_the_others_nothing():
    sets = power_frame()
    not_run = product(unit=range(20), condition="wrong label")
    table = protocol.power_table(pd.concat([sets, not_run])).set_index("condition")
    row = table.loc["wrong label"]
    assert (row["n_units"], row["word"]) == (0, "not run")
    assert (
        row[["power_at_5_fpr", "ci_low", "p_value", "p_adjusted", "p_against_verbatim"]]
        .isna()
        .all()
    )
    alone = protocol.power_table(sets).set_index("condition")
    pd.testing.assert_frame_equal(table.drop(index="wrong label"), alone)


def test_a_detectors_own_p_decides_its_flags():
    sets = power_frame().assign(own_p=0.01)
    table = protocol.power_table(sets).set_index("condition")
    assert table["power_at_5_fpr"].tolist() == [1, 1]


def test_cells_where_nothing_was_read_have_no_power():
    cells = {"model": ["base", "clean", "dosed", "dosed, placebo name", "dosed, then clean text"]}
    sets = product(unit=range(3), condition=["verbatim", "train split"], **cells).assign(p=0.5)
    table = protocol.power_table(sets)
    assert table["model"].tolist() == ["dosed", "dosed, then clean text"]
    assert table["condition"].tolist() == ["verbatim"] * 2
    # What is read later is compared with what was read verbatim before.
    assert table["p_against_verbatim"].isna().tolist() == [True, False]


def test_pairs_of_detectors_on_the_one_cell():
    flags = np.arange(20)
    sets = pd.concat(
        [
            sets_with_flags(flags < 10, detector="A"),
            sets_with_flags(flags < 4, detector="B"),
            sets_with_flags(flags < 20, detector="B", copies=12),
        ]
    )
    row = protocol.detector_pairs(sets, ["A", "B", "absent"]).to_dict("records")
    assert row == [
        {"detector": "A", "other": "B", "n_units": 20, "n_only_detector": 6, "n_only_other": 0}
        | {"p": 2 / 64, "p_adjusted": 2 / 64}
    ]


def test_pairs_of_detectors_are_one_family():
    """6, 10 and 4 units differ one way: p 2/64, 2/1024 and 2/16, times 2, 3 and 1 by Holm."""
    flags = np.arange(20)
    of = {"A": flags < 10, "B": flags < 4, "C": flags < 0}
    sets = pd.concat([sets_with_flags(own, detector=name) for name, own in of.items()])
    table = protocol.detector_pairs(sets, list(of)).set_index(["detector", "other"])
    assert table["p_adjusted"].to_dict() == pytest.approx(
        {("A", "B"): 4 / 64, ("A", "C"): 6 / 1024, ("B", "C"): 2 / 16}
    )
    # Alone, the first pair would be significant.
    assert protocol.detector_pairs(sets, ["A", "B"])["p_adjusted"].item() < 0.05


# The protocol's own controls


def replicates(powers, n_units=20, n_replicates=200, seed=1):
    """Each replicate stands as one detector: what is said of one depends on no other.

    Its cells are three doses under five conditions; ``powers`` has one for each dose.
    """
    sets = product(
        detector=[f"{k:03}" for k in range(n_replicates)],
        unit=range(n_units),
        condition=CONDITIONS[:5],
        copies=[1, 3, 12],
    )
    truth = sets["copies"].map(dict(zip([1, 3, 12], powers, strict=True)))
    is_flagged = np.random.default_rng(seed).random(len(sets)) < truth
    return protocol.power_table(sets.assign(p=np.where(is_flagged, 0.01, 0.5)))


def test_the_power_of_noise_is_supported_in_at_most_5_percent_of_replicates():
    table = replicates([0.05, 0.05, 0.05])
    is_rejected = table[["p_adjusted", "p_value"]].le(0.05).groupby(table["detector"]).any()
    assert is_rejected["p_adjusted"].sum() <= stats.binom.ppf(0.99, 200, 0.05)
    # The control can fail: without Holm a cell in 63 has four flags, so a replicate in five.
    assert is_rejected["p_value"].sum() > 20


def test_known_power_is_covered():
    powers = {1: 0.05, 3: 0.3, 12: 0.8}
    table = replicates(powers.values())
    truth = table["copies"].map(powers)
    is_covered = (table["ci_low"] <= truth) & (truth <= table["ci_high"])
    assert is_covered.groupby(table["detector"]).all().mean() >= 0.93
    assert (table["power_at_5_fpr"] - truth).abs().max() > 0.2


def test_an_oracle_is_supported_and_noise_is_not_from_row_scores_on():
    def oracle(generator, model, condition, is_read):
        is_known = model == "dosed" and condition == "verbatim"
        return generator.normal(size=is_read.size) + 3 * is_read * is_known

    def noise(generator, model, condition, is_read):
        return generator.normal(size=is_read.size)

    scores = pd.concat([scores_of("oracle", oracle), scores_of("noise", noise)])
    table = protocol.power_table(protocol.sets_of(scores)).set_index("detector")
    assert table.loc["oracle", ["power_at_5_fpr", "word"]].tolist() == [1, "supported"]
    assert table.loc["noise", "word"] != "supported"
