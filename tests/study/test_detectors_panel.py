"""The evidence panel: verdicts, the lab's rows, and those of notebooks 02 to 05."""

import math

import numpy as np
import pandas as pd
import pytest
from detector_frames import product, scores_of

from contamination.core import statistics
from contamination.core.verdicts import (
    CONTROL_FAILS,
    INCONCLUSIVE,
    NOT_RUN,
    NOT_SUPPORTED,
    SUPPORTED,
)
from contamination.study import figures, from_notebooks, lab_panel, protocol
from contamination.study.conditions import FRESH, TRUTHS, VERBATIM
from contamination.study.panel import Evidence, judge_evidence, not_run, panel, verdict


def evidence(method, what, model="M", dataset="D", statistic="share", truth=""):
    return Evidence(
        model, dataset, truth, method, statistic, 0.5, 0.4, 0.6, 10, "control", 0.25, what
    )


# Verdicts


@pytest.mark.parametrize(
    ("ends", "chance", "control", "expected"),
    [
        ((0.6, 0.8), 0.5, (0.51, 0.55), SUPPORTED),
        ((0.5, 0.7), 0.5, (0.1, 0.2), INCONCLUSIVE),  # reaches chance, and an effect of 0.10
        ((0.5, 0.59), 0.5, (0.1, 0.2), NOT_SUPPORTED),  # reaches chance, and no effect of 0.10
        ((0.0, 0.05), 0.25, (0.1, 0.2), NOT_SUPPORTED),
        ((0.6, 0.8), 0.5, (0.55, 0.6), CONTROL_FAILS),  # reaches down to the control
        ((0.6, 0.8), 0.5, (0.6, 0.6), CONTROL_FAILS),  # which has no interval
        ((0.6, 0.8), 0.5, (0.45, 0.6), INCONCLUSIVE),  # which may be at chance itself
        ((0.6, 0.8), 0.5, (math.nan, math.nan), INCONCLUSIVE),  # nothing could have overturned it
        ((math.nan, math.nan), 0.5, (0.1, 0.2), NOT_RUN),
    ],
)
def test_verdict_is_no_stronger_than_chance_and_control_allow(ends, chance, control, expected):
    assert verdict(*ends, chance, control) == expected


def test_an_interval_over_few_models_decides_nothing():
    assert verdict(0.9, 1.0, 0.5, (0.4, 0.6), n_models=4) == INCONCLUSIVE
    assert verdict(0.9, 1.0, 0.5, (0.4, 0.6), n_models=5) == SUPPORTED


def test_only_verdicts_of_the_list_are_taken():
    with pytest.raises(ValueError, match='"contaminated" is not a verdict: use one of supported'):
        evidence("DCQ", "contaminated")


def test_a_panel_has_the_columns_of_its_file_and_keeps_the_order():
    table = panel([evidence("DCQ", SUPPORTED), not_run("M", "D", "", "DICE", "no weights")])
    wanted = ["model", "dataset", "truth", "method", "statistic", "value", "control_value"]
    assert {*wanted, "verdict", "ci_low", "ci_high", "n", "control", "note"} <= set(table)
    assert table["method"].tolist() == ["DCQ", "DICE"]
    assert table["note"].tolist() == ["", "no weights"]
    assert np.isnan(table["value"][1])


def test_an_empty_panel_is_refused():
    with pytest.raises(ValueError, match="no evidence"):
        panel([])


# The lab's rows


def known_truth(units=3):
    """Units, one condition read and seen by a good detector, and one that sees nothing."""

    def good_score(deal, model, condition, is_read):
        is_seen = is_read & (model == "dosed") & (condition == VERBATIM)
        return deal.normal(size=len(is_read)) + 3 * is_seen

    def blind_score(deal, model, condition, is_read):
        return deal.random(len(is_read))

    good = scores_of("good", good_score, units=units)
    blind = scores_of("blind", blind_score, units=units)
    scores = pd.concat([good, blind], ignore_index=True)
    return scores, protocol.sets_of(scores)


def test_rows_of_the_lab_carry_the_flag_of_their_set():
    scores, sets = known_truth()
    table = lab_panel.lab_rows(scores, sets)
    assert not table.duplicated(["model", "dataset", "method"]).any()
    dosed = table["model"].str.startswith("dosed, 12 copies, unit")
    read = table[dosed & table["truth"].eq(TRUTHS[VERBATIM]) & table["method"].eq("good")]
    assert read["flagged"].tolist() == [True] * 3
    assert (read["ci_low"] > 0.5).all()
    # One set in twenty is flagged where nothing was read, so a flag is not a verdict.
    assert set(table["verdict"]) == {""}
    # A clean model read nothing, whatever the dosed one reads of the dataset.
    assert set(table.loc[table["model"].str.startswith("clean"), "truth"]) == {TRUTHS[FRESH]}
    assert not table["model"].str.startswith("base").any()
    agreed = table.merge(sets, left_on=["method", "value"], right_on=["detector", "value"])
    assert (agreed["flagged"] == agreed["p"].le(0.05)).all()
    left_out = lab_panel.lab_rows(
        *(frame.replace({"detector": {"blind": "DICE"}}) for frame in (scores, sets))
    )
    assert left_out.loc[left_out["method"].eq("DICE"), "note"].str.contains("unrelated").all()


def test_the_table_of_evasion_counts_units_and_claims_nothing_where_nothing_was_read():
    _, sets = known_truth(units=6)
    table = lab_panel.evasion_table(sets).set_index(["method", "condition"])
    good = table.loc[("good", VERBATIM)]
    assert (good["n_detected"], good["n_models"], good["n_rows"]) == (6, 6, 60)
    assert good["ci_low"] == pytest.approx(0.025 ** (1 / 6))  # Clopper-Pearson of 6 of 6
    assert good["verdict"] == SUPPORTED
    # False alarms are a count and a rate, however many there are.
    alarmed = lab_panel.evasion_table(sets.assign(p=0.01)).set_index(["method", "condition"])
    for of_sets, n_flagged in ((table, 0), (alarmed, 6)):
        fresh = of_sets.loc[("good", FRESH)]
        assert (fresh["verdict"], fresh["n_detected"]) == ("", n_flagged)
    _, few = known_truth(units=4)
    words = lab_panel.evasion_table(few).set_index(["method", "condition"])["verdict"]
    assert words[("good", VERBATIM)] == INCONCLUSIVE


def over_units(sets):
    """Means over units with the verdicts that they have as a family of their own."""
    (table,) = statistics.with_p_adjusted(lab_panel.mean_auc_by_dose(sets, "A", "topics"))
    return lab_panel.units_verdict(table)


def test_the_mean_over_units_stands_beside_a_clean_model_and_fresh_rows():
    read = product(unit=[0, 1], copies=[1, 12])
    read["value"] = [0.6, 0.9, 0.8, 0.9]  # unit 0 at 1 and 12 copies, unit 1
    read["p"] = [0.2, 0.01, 0.04, 0.01]
    clean = product(unit=[0, 1], model="clean", copies=0)
    fresh = product(unit=[0, 1], condition="fresh rows", copies=[1, 12]).assign(value=0.4)
    others = [product(detector="B"), product(benchmark="reviews")]
    table = over_units(pd.concat([fresh, read, clean, *others]))
    assert table["model"].tolist() == ["clean", "dosed", "dosed", "dosed"]
    assert table["condition"].tolist() == ["verbatim"] * 3 + ["fresh rows"]
    assert table["copies"].tolist() == [0, 1, 12, 12]
    assert table["n_units"].eq(2).all() and table["n_flagged"].tolist() == [0, 1, 2, 0]
    assert table["auc"].tolist() == pytest.approx([0.5, 0.7, 0.9, 0.4])
    assert table.loc[1, "ci_high"] == pytest.approx(0.7 + 12.7062 * 0.1, abs=1e-4)  # t, 1 df
    assert table["verdict"].tolist() == ["", INCONCLUSIVE, INCONCLUSIVE, ""]  # two units
    with pytest.raises(ValueError, match="no set of reviews scored by C"):
        lab_panel.mean_auc_by_dose(product(unit=0), "C", "reviews")


@pytest.mark.parametrize(
    ("clean", "expected"), [(0.5, SUPPORTED), (0.79, CONTROL_FAILS), (0.9, CONTROL_FAILS)]
)
def test_a_mean_over_units_is_supported_where_it_lies_above_its_controls(clean, expected):
    spread = 0.01 * np.arange(-2, 3)  # mean 0; half a 95 % interval of five: 0.0196
    read = product(unit=range(5), copies=12).assign(value=0.8 + spread, p=0.01)
    of_clean = product(unit=range(5), model="clean", copies=0).assign(value=clean + spread, p=0.5)
    table = over_units(pd.concat([read, of_clean]))
    assert table["verdict"].tolist() == ["", expected]
    nothing = over_units(pd.concat([read.assign(value=0.5 + spread)]))
    assert nothing["verdict"].tolist() == [NOT_SUPPORTED]  # at most 0.52


def test_a_correction_for_many_tests_takes_a_small_mean_over_units_back():
    """A mean of 0.55 with an interval from 0.51: shown alone, and not as one of forty tests."""
    read = product(unit=range(5), copies=12).assign(p=0.5)
    read["value"] = 0.55 + 0.02 * np.arange(-2, 3)
    table = lab_panel.mean_auc_by_dose(read, "A", "topics")
    assert table["ci_low"].item() > 0.5 and 0.01 < table["p"].item() < 0.05
    alone, large = over_units(read), over_units(read.assign(value=read["value"] + 0.3))
    assert alone["verdict"].tolist() == large["verdict"].tolist() == [SUPPORTED]
    others = pd.DataFrame({"p": [0.9] * 39})
    adjusted, _ = statistics.with_p_adjusted(table, others)
    assert lab_panel.units_verdict(adjusted)["verdict"].tolist() == [NOT_SUPPORTED]
    table = lab_panel.mean_auc_by_dose(read.assign(value=read["value"] + 0.3), "A", "topics")
    adjusted, _ = statistics.with_p_adjusted(table, others)
    assert lab_panel.units_verdict(adjusted)["verdict"].tolist() == [SUPPORTED]


def test_one_unit_has_a_mean_and_no_interval():
    table = over_units(product(unit=0))
    assert table["verdict"].tolist() == ["not run"]


def test_the_figure_shows_counts_and_false_alarms_in_another_colour():
    _, sets = known_truth()
    evasion = lab_panel.evasion_table(sets)
    once = evasion.query("method == 'good'").assign(copies=1, n_detected=2)
    figure = figures.power_matrix(pd.concat([evasion, once]))
    (axis,) = figure.axes
    left_out = evasion.assign(method=evasion["method"].replace("blind", "DICE"))
    drawn = figures.power_matrix(left_out).axes[0].get_yticklabels()
    assert [label.get_text() for label in drawn] == ["good"]
    names = [label.get_text() for label in axis.get_xticklabels()]
    assert names[:2] == ["verbatim, copies: 1", "verbatim"]  # a smaller dose: verbatim alone
    assert {text.get_text() for text in axis.texts} == {"0", "1", "2", "3"}
    assert "Models flagged, out of 3 (0.15 by chance; " in axis.get_title(loc="right")
    evasion.loc[0, "n_models"] = 2  # not all cells have as many units
    (axis,) = figures.power_matrix(evasion).axes
    assert {"3/3", "0/2"} <= {text.get_text() for text in axis.texts}
    read, unread = (mesh.get_cmap().name for mesh in axis.collections[:2])
    assert (read, unread) == ("Blues", "Oranges")


# Rows of notebooks 02 to 05


def test_a_quiz_is_held_against_the_same_models_unread_rows():
    common = {"dataset": "topics", "model": "dosed", "respondent": "respondent", "n": 50}
    unread = common | {"condition": "unseen, same model", "copies": 0, "max_pct": 4.0}
    unread |= {"ci_low_pct": 0.0, "ci_high_pct": 10.0}
    read = common | {"condition": "with label", "copies": 12, "max_pct": 30.0}
    # The control's value is the chance level here, so its interval always contains it.
    for low, expected in ((18.0, SUPPORTED), (8.0, INCONCLUSIVE), (2.0, INCONCLUSIVE)):
        lab = pd.DataFrame([unread, read | {"ci_low_pct": low, "ci_high_pct": 44.0}])
        table = judge_evidence(from_notebooks.dcq_rows(lab))
        assert table["verdict"].tolist() == [expected]
        shown = ["value", "control_value", "control_low", "control_high"]
        assert table[shown].to_numpy().tolist() == [[0.3, 0.04, 0.0, 0.1]]


def replication_lab():
    common = {"benchmark": "topics", "model": "continued", "seed": 0, "split": "test"}
    common |= {"method": "Algorithm 2", "metric": "rule judge", "instruction": "guided"}
    rows = [
        {"dataset": "Topics A", "copies": 16, "n_exact": 8, "n_near_exact": 1},
        {"dataset": "Topics B", "copies": 0, "n_exact": 0, "n_near_exact": 1},
        {"dataset": "Topics C", "copies": 0, "n_exact": 0, "n_near_exact": 0},
    ]
    flags = [True, False, False]
    table = pd.DataFrame([common | row | {"n_valid": 10} for row in rows])
    other = table.assign(instruction="general")
    return pd.concat([table.assign(contaminated=flags), other.assign(contaminated=flags)])


def test_a_replication_is_held_against_the_other_clean_partitions():
    table = judge_evidence(from_notebooks.replication_rows(replication_lab()))
    # A: 9 of 10, at least 0.60. B: 1 of 10, above none of C's 10, whose upper end of 0.28 may be
    # as high. C: none of 10, whose upper end leaves room for 10 points above B's share.
    assert table["verdict"].tolist() == [SUPPORTED, INCONCLUSIVE, INCONCLUSIVE]
    assert table["control_low"].iloc[1] == 0 and table["control_high"].round(2).iloc[1] == 0.28
    # B's one near-exact match counts for A and C, not against B itself.
    assert table["control_value"].tolist() == [0.05, 0.0, 0.1]
    assert table["truth"].tolist() == [TRUTHS[VERBATIM], TRUTHS[FRESH], TRUTHS[FRESH]]


def test_a_replication_is_judged_by_its_interval_and_not_by_the_algorithm_s_decision():
    """One match of ten flags a partition, and so do nine; the decision does not move a verdict."""
    lab = replication_lab()
    decided = judge_evidence(from_notebooks.replication_rows(lab))
    reversed_ = judge_evidence(
        from_notebooks.replication_rows(lab.assign(contaminated=~lab["contaminated"]))
    )
    assert reversed_["verdict"].tolist() == decided["verdict"].tolist()
    none = lab.assign(n_exact=0, n_near_exact=0, n_valid=200)
    assert (
        judge_evidence(from_notebooks.replication_rows(none))["verdict"].tolist()
        == [NOT_SUPPORTED] * 3
    )


def test_a_correction_for_many_rows_takes_a_small_one_back():
    """0.65 from 0.51 on is shown alone, and not as one of twenty; 0.9 from 0.8 on is shown."""
    row = {name: "" for name in ("model", "dataset", "truth", "method", "statistic", "control")}
    row |= {"value": 0.65, "ci_low": 0.51, "ci_high": 0.79, "chance": 0.5, "n": 90}
    row |= {"control_value": 0.5}
    assert judge_evidence([row])["verdict"].tolist() == [SUPPORTED]
    others = [row | {"value": 0.5, "ci_low": 0.41, "ci_high": 0.59}] * 19
    assert (
        judge_evidence([row, *others])["verdict"].tolist() == [INCONCLUSIVE] + [NOT_SUPPORTED] * 19
    )
    large = row | {"value": 0.9, "ci_low": 0.8, "ci_high": 1.0}
    assert judge_evidence([large, *others])["verdict"][0] == SUPPORTED
    # What cannot support its claim is no test, and does not count against the others.
    idle = [other | {"may_support": False} for other in others]
    table = judge_evidence([row, *idle, row | {"control_value": math.nan}, row | {"n_models": 4}])
    assert table["p"].notna().sum() == 1 and table["verdict"][0] == SUPPORTED


def test_min_k_is_held_against_the_best_classifier_of_words():
    aucs = pd.DataFrame({"benchmark": ["docstrings"] * 2, "setting": "random", "model": "M"})
    aucs = aucs.assign(method="Min-k% Prob", seed=[0.0, np.nan], copies=4, n_members=9)
    aucs = aucs.assign(n_non_members=8, auc=0.7, ci_low=0.6, ci_high=0.8)
    aucs = aucs.assign(copies=[4.0, np.nan])  # as a file with gaps gives them
    words = {"setting": "random, 4 copies", "baseline": ["date rule", "bag of words"]}
    of_other_deal = pd.DataFrame(words | {"seed": 1, "auc": 0.9, "ci_low": 0.8, "ci_high": 0.95})
    confirming, refuting, imprecise = (0.45, 0.58), (0.51, 0.62), (0.45, 0.62)
    ends_of = {confirming: SUPPORTED, refuting: CONTROL_FAILS, imprecise: INCONCLUSIVE}
    for (low, high), expected in ends_of.items():
        blind = pd.DataFrame(words | {"seed": 0, "auc": [0.5, 0.52], "ci_high": [0.9, high]})
        blind["ci_low"] = [0.1, low]
        blind = pd.concat([of_other_deal, blind])
        table = judge_evidence(from_notebooks.min_k_rows(aucs, blind))
        assert table["verdict"].tolist() == [expected]  # one row: the mean over seeds is none
        assert table["control"].tolist() == ["bag of words, no model"]


@pytest.mark.parametrize(("high", "first"), [(96.0, SUPPORTED), (99.0, CONTROL_FAILS)])
def test_dice_is_held_against_two_clean_models(monkeypatch, high, first):
    """Asked the same questions: on GSM-i, those that detectors were trained on."""
    aurocs = pd.DataFrame({"tested_on": ["GSM-i", "GSM-ii", "GSM-hard"], "method": "DICE"})
    aurocs = aurocs.assign(trained_on="GSM-i x5", auroc_pct=[99.0, 60.0, 70.0], n_models=16)
    aurocs = aurocs.assign(ci_low=[98.0, 55.0, 65.0], ci_high=100.0)
    names = ["two clean models, other texts", "the same, on the detector's training questions"]
    controls = pd.DataFrame({"control": names, "auroc_pct": [64.0, 90.0], "ci_high": [67.0, high]})
    controls["ci_low"] = [61.0, 84.0]
    monkeypatch.setattr(from_notebooks.dice_controls, "sees_membership", lambda table: True)
    table = judge_evidence(from_notebooks.dice_rows(aurocs, controls))
    assert table["dataset"].tolist() == ["GSM-i", "GSM-ii"]
    assert table["control"].tolist() == names[::-1]
    assert table["verdict"].tolist() == [first, CONTROL_FAILS]
    few = judge_evidence(from_notebooks.dice_rows(aurocs.assign(n_models=4), controls))
    assert few["verdict"].tolist() == [INCONCLUSIVE] * 2  # two pairs of models
    # A detector of which model it is cannot support that a dataset was read.
    monkeypatch.setattr(from_notebooks.dice_controls, "sees_membership", lambda table: False)
    blind = judge_evidence(from_notebooks.dice_rows(aurocs, controls))
    assert not blind["verdict"].eq(SUPPORTED).any()
    assert blind["note"].eq("it cannot say which questions were read").all()
