"""Gates by hand, and what the table of detectors makes of them."""

import numpy as np
import pandas as pd
import pytest
from detector_frames import product, scores_of

from contamination.core.claims import CLAIMS
from contamination.core.verdicts import (
    CONTROL_FAILS,
    INCONCLUSIVE,
    NOT_SUPPORTED,
    SUPPORTED,
    check_verdicts,
)
from contamination.study import catalogue, gates, interface, lab_panel, protocol, store
from contamination.study.interface import ANSWERS, LOG_PROBABILITIES, ROW, SET, WEIGHTS
from contamination.study.scoring import CONTROL_NAMES

NAN = np.nan
DESIGN = "detector access room condition copies n_models n_rows power_at_5_fpr ci_low ci_high"
DESIGN += " p_adjusted blind before_reading unread_rows clean_models false_positive_rate verdict"


def detector(name="A", access=WEIGHTS, unit=ROW, question=interface.READ):
    return interface.Detector(name, access, lambda lm, rows: np.zeros(len(rows)), unit, question)


def test_superiority_by_hand():
    mean, low = gates.superiority([0.1, 0.2, 0.3, NAN])
    # t of 2 degrees of freedom, 95 %: 2.920; standard error 0.1 / sqrt(3).
    assert (mean, low) == (pytest.approx(0.2), pytest.approx(0.2 - 2.920 * 0.05774, abs=1e-4))
    assert gates.superiority([0.2, 0.2, 0.2]) == (pytest.approx(0.2), pytest.approx(0.2))
    assert np.isnan(gates.superiority([0.1, 0.2])).all()


def words(**given):
    return dict.fromkeys(gates.GATES, gates.PASSED) | given


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({}, SUPPORTED),
        ({"before_reading": "not applicable"}, SUPPORTED),
        ({"before_reading": "not applicable", "unread_rows": "not run"}, INCONCLUSIVE),
        ({"before_reading": "not run"}, INCONCLUSIVE),
        ({"before_reading": "not applicable", "unread_rows": "not applicable"}, INCONCLUSIVE),
        ({"unread_rows": "failed"}, CONTROL_FAILS),
        ({"blind": "failed", "clean_models": "not run"}, CONTROL_FAILS),
        ({"clean_models": "not run"}, INCONCLUSIVE),
        ({"placebo_name": "failed"}, SUPPORTED),
        ({"false_alarms": "undetermined"}, INCONCLUSIVE),
    ],
)
def test_what_gates_allow(given, verdict):
    assert gates.gate_verdict(words(**given), 20, is_exact=False) == verdict


def test_an_exact_test_needs_no_proof_of_its_rate_and_few_units_decide_nothing():
    undetermined = words(false_alarms="undetermined")
    assert gates.gate_verdict(undetermined, 20, is_exact=True) == SUPPORTED
    assert gates.gate_verdict(words(clean_models="not run"), 20, is_exact=True) == INCONCLUSIVE
    assert gates.gate_verdict(words(), 4, is_exact=True) == INCONCLUSIVE
    assert gates.gate_verdict(words(blind="failed"), 4, is_exact=True) == INCONCLUSIVE


N_UNITS = 60  # enough that no false alarm at all is calibrated
SPREAD = np.tile([-0.01, 0.0, 0.01], N_UNITS // 3)  # mean 0, standard error 0.00106
VALUES = {
    ("dosed", "verbatim", 12): 0.8,
    ("dosed", "fresh rows", 12): 0.5,
    ("base", "verbatim", 0): 0.6,
    ("clean", "verbatim", 0): 0.7,
    ("dosed, placebo name", "verbatim", 12): 0.9,
}


def matrix(name="A", values=VALUES, flags=("verbatim",)):
    """One benchmark; every unit has these values, the dosed verbatim one with a spread."""
    parts = []
    for (model, condition, copies), value in values.items():
        cell = {"model": model, "condition": condition, "copies": copies}
        is_cell = model == "dosed" and condition in flags
        part = product(detector=name, unit=range(N_UNITS), **cell)
        part["value"] = value + (SPREAD if is_cell else 0)
        parts.append(part.assign(p=0.01 if is_cell else 0.5))
    return pd.concat(parts, ignore_index=True)


def with_text(sets, value=0.55):
    cell = {("dosed", "verbatim", 12): value}
    texts = [matrix(f"text alone{of}", cell, flags=()) for of in ("", ", whole sets")]
    return pd.concat([sets, *texts], ignore_index=True)


def test_gates_of_rows_by_hand():
    row = gates.gate_table(with_text(matrix()), [detector()]).iloc[0]
    margins = {"blind": 0.25, "before_reading": 0.2, "unread_rows": 0.3, "clean_models": 0.1}
    half_width = 1.671 * np.std(SPREAD, ddof=1) / np.sqrt(N_UNITS)  # t of 59 degrees of freedom
    for gate, margin in margins.items():
        assert row[gate] == "passed"
        assert row[f"{gate}_margin"] == pytest.approx(margin)
        assert row[f"{gate}_low"] == pytest.approx(margin - half_width, abs=1e-5)
    assert row["placebo_name_margin"] == pytest.approx(-0.1)
    assert row["placebo_name"] == "not applicable"
    assert (row["false_alarms"], row["verdict"]) == ("passed", SUPPORTED)
    assert (row["false_positive_rate"], row["calibration"]) == (0, "calibrated")


def test_which_gates_apply_is_fixed_by_access_and_name():
    sets = pd.concat([matrix(name) for name in ("A", "ConStat")])
    asked = [detector(access=access) for access in (ANSWERS, LOG_PROBABILITIES, WEIGHTS)]
    table = gates.gate_table(with_text(sets), [*asked, detector("ConStat", LOG_PROBABILITIES)])
    left_out = [
        {gate for gate in gates.GATES if row[gate] == "not applicable"}
        for row in table.to_dict("records")
    ]
    before, placebo = "before_reading", "placebo_name"
    assert left_out == [{before}, {before, placebo}, {placebo}, {before, placebo, "blind"}]
    # The placebo name scores higher than the right one, which is said and decides nothing.
    assert table["placebo_name"].tolist()[0] == "failed"
    assert table["verdict"].tolist() == [SUPPORTED] * 4


@pytest.mark.parametrize(
    ("missing", "gate"), [("base", "before_reading"), ("clean", "clean_models")]
)
def test_a_control_that_is_not_there_is_not_run(missing, gate):
    sets = with_text(matrix())
    row = gates.gate_table(sets[sets["model"] != missing], [detector()]).iloc[0]
    assert (row[gate], row["verdict"]) == ("not run", INCONCLUSIVE)
    row = gates.gate_table(matrix(), [detector()]).iloc[0]
    assert (row["blind"], row["verdict"]) == ("not run", INCONCLUSIVE)


def test_pairs_are_of_one_unit():
    """A control that rises and falls with the score, unit by unit, leaves a narrow margin."""
    sets = matrix()
    wide = np.linspace(-0.3, 0.3, N_UNITS)
    for model in ("dosed", "clean"):
        is_model = sets["model"].eq(model) & sets["condition"].eq("verbatim")
        sets.loc[is_model, "value"] += wide
    shuffled = sets.sample(frac=1, random_state=0)
    row = gates.gate_table(with_text(shuffled), [detector()]).iloc[0]
    assert row["clean_models_low"] == pytest.approx(0.1 - 0.00178, abs=1e-4)


@pytest.mark.parametrize(
    ("n_units", "unit", "calibration", "word", "verdict"),
    [
        (3, ROW, "undetermined", "undetermined", SUPPORTED),
        (3, SET, "undetermined", "undetermined", INCONCLUSIVE),
        (20, ROW, "miscalibrated", "failed", SUPPORTED),
        (20, SET, "miscalibrated", "failed", CONTROL_FAILS),
    ],
)
def test_false_alarms_decide_nothing_of_an_exact_test_and_something_of_another(
    n_units, unit, calibration, word, verdict
):
    sets = with_text(matrix())
    is_some = sets["condition"].eq("fresh rows") & sets["unit"].lt(n_units)
    sets = sets.assign(p=sets["p"].mask(is_some, 0.01))
    row = gates.gate_table(sets, [detector(unit=unit)]).iloc[0]
    assert (row["calibration"], row["false_alarms"], row["verdict"]) == (calibration, word, verdict)


def test_a_score_of_a_set_must_exceed_that_of_an_unread_set():
    row = gates.gate_table(with_text(matrix()), [detector(unit=SET)]).iloc[0]
    assert row["unread_rows_margin"] == pytest.approx(0.3)
    # 0.8 of a set and 0.55 of the text have no common scale: all sets are flagged, no text is.
    assert (row["blind_margin"], row["blind"]) == (1, "passed")


def test_exchangeability_has_two_controls_in_its_own_arm():
    values = {("dosed", "published order", 12): 3.0, ("dosed", "same rows, shuffled", 12): 2.5}
    values |= {("dosed", "fresh rows", 12): 1.0, ("clean", "published order", 0): 0.0}
    sets = matrix("exchangeability", values, flags=["published order"])
    row = gates.gate_table(sets, [detector("exchangeability", LOG_PROBABILITIES, SET)]).iloc[0]
    assert row["unread_rows_margin"] == pytest.approx(0.5)  # the nearer of the two
    assert (row["blind"], row["verdict"]) == ("not applicable", SUPPORTED)
    one = sets[sets["condition"] != "same rows, shuffled"]
    row = gates.gate_table(one, [detector("exchangeability", LOG_PROBABILITIES, SET)]).iloc[0]
    assert (row["unread_rows"], row["verdict"]) == ("not run", INCONCLUSIVE)


def test_a_detector_without_sets_is_refused():
    with pytest.raises(ValueError, match="no set was scored by B"):
        gates.gate_table(matrix(), [detector("B")])


def table_of(sets, *detectors):
    return gates.detector_table(sets, gates.gate_table(sets, detectors))


def test_the_table_has_the_columns_that_other_programs_read():
    table = table_of(with_text(matrix()), detector())
    assert set(DESIGN.split()) <= set(table)
    row = table.iloc[0]
    assert len(table) == 1  # text alone has power too, and no line
    assert (row["n_models"], row["power_at_5_fpr"], row["room"]) == (N_UNITS, 1, "lab")
    assert (row["word"], row["verdict"], row["blind"]) == (SUPPORTED, SUPPORTED, "passed")


def test_the_verdict_is_what_power_and_gates_allow():
    sets = with_text(matrix())
    other_question = table_of(sets, detector(question=interface.INFLATED)).iloc[0]
    assert (other_question["question"], other_question["verdict"]) == (
        interface.INFLATED,
        SUPPORTED,
    )
    without_base = sets[sets["model"] != "base"]
    assert table_of(without_base, detector())["verdict"].tolist() == [INCONCLUSIVE]
    assert table_of(with_text(matrix(), 0.9), detector())["verdict"].tolist() == [CONTROL_FAILS]
    assert table_of(matrix(), detector())["verdict"].tolist() == [INCONCLUSIVE]
    unflagged = table_of(sets.assign(p=0.5), detector()).iloc[0]
    assert (unflagged["word"], unflagged["verdict"]) == (NOT_SUPPORTED, NOT_SUPPORTED)
    not_run = pd.concat([sets, product(unit=range(9), condition="paraphrase")])
    assert table_of(not_run, detector())["verdict"].tolist() == [SUPPORTED, "not run"]


def test_fewer_than_five_units_carry_no_verdict():
    sets = with_text(matrix())
    few = table_of(sets[sets["unit"] < 4], detector()).iloc[0]
    assert (few["n_flagged"], few["word"], few["verdict"]) == (4, INCONCLUSIVE, INCONCLUSIVE)


def test_a_detector_that_joins_changes_no_other_line():
    sets = with_text(matrix())
    reviews = sets.assign(benchmark="reviews", p=0.5)
    sets = pd.concat([reviews, sets], ignore_index=True)
    alone = table_of(sets, detector())
    assert alone["benchmark"].tolist() == ["reviews", "topics"]
    other = matrix("B").assign(p=0.01)
    both = table_of(
        pd.concat([other, sets]).sample(frac=1, random_state=0), detector(), detector("B")
    )
    assert both["detector"].tolist() == ["A", "A", "B"]
    pd.testing.assert_frame_equal(both[:2], alone)


# The protocol's own controls


def test_noise_length_and_was_fine_tuned_fail_on_unread_rows():
    def noise(generator, model, condition, is_read):
        return generator.normal(size=is_read.size)

    def length(generator, model, condition, is_read):
        return np.random.default_rng(is_read.size).integers(20, 60, is_read.size)

    def was_fine_tuned(generator, model, condition, is_read):
        return np.full(is_read.size, {"base": 0.0, "clean": 1.0, "dosed": 1.1}[model])

    def oracle(generator, model, condition, is_read):
        return generator.normal(size=is_read.size) + is_read * (model == "dosed")

    functions = {"noise": noise, "length": length, "was fine-tuned": was_fine_tuned}
    functions["oracle"] = oracle
    scores = pd.concat([scores_of(name, score, units=6) for name, score in functions.items()])
    table = gates.gate_table(protocol.sets_of(scores), [detector(name) for name in functions])
    assert table["unread_rows"].tolist() == ["failed"] * 3 + ["passed"]
    assert table.set_index("detector").loc["was fine-tuned", "unread_rows_margin"] == 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, False),  # a control that passes every gate does not come out as it must
        ({"blind": "failed"}, True),
        ({"blind": "failed", "unread_rows": "not run"}, True),
        ({"false_alarms": "undetermined"}, False),
        ({"placebo_name": "failed"}, False),  # no verdict depends on this gate
        ({"unread_rows": "not run"}, None),
    ],
)
def test_a_control_holds_if_a_gate_refuses_it(given, expected):
    assert gates.control_holds(words(**given)) is expected


def test_a_control_that_no_gate_refuses_has_no_verdict_and_does_not_hold():
    table = table_of(with_text(matrix("noise")), detector("noise")).iloc[0]
    assert (table["n_flagged"], table["word"], table["verdict"]) == (N_UNITS, "", "")
    assert table["holds"] in (False,)  # and not None
    blind = table_of(with_text(matrix("noise"), 0.9), detector("noise")).iloc[0]
    assert (blind["verdict"], blind["holds"]) == ("", True)


def gate_words(**by_detector):
    """Rows of a table of gates: all are passed but those that are named with their word."""
    rows = [
        {"detector": name, "benchmark": benchmark, "is_exact": True, "verdict": SUPPORTED}
        | words(**given)
        for name, of_benchmarks in by_detector.items()
        for benchmark, given in zip("XY", of_benchmarks, strict=False)
    ]
    return pd.DataFrame(rows)


def test_the_headline_has_three_groups_and_an_undetermined_gate_is_not_passed():
    table = gate_words(
        A=[{}, {"placebo_name": "failed"}],
        B=[{}, {"blind": "failed", "false_alarms": "undetermined"}],
        C=[{"false_alarms": "undetermined"}],
        DICE=[{"blind": "failed"}],
    )
    inexact = table.assign(is_exact=False)
    assert gates.summarize_gates(inexact) == (
        "1 of 3 detectors passed every gate that applies: A. "
        "1 of 3 detectors failed no gate, but a gate could not be decided: C (false alarms). "
        "1 of 3 detectors failed at least one gate: B (blind on Y)."
    )
    exact = gates.summarize_gates(table)
    assert exact.startswith("2 of 3 detectors passed every gate that applies: A, C.")
    assert exact.endswith("exact test, came out as undetermined for C.")
    none = gate_words(A=[{"unread_rows": "failed"}], C=[{"clean_models": "not run"}])
    assert gates.summarize_gates(none) == (
        "0 of 2 detectors passed every gate that applies. "
        "1 of 2 detectors failed no gate, but a gate could not be decided: C (clean models). "
        "1 of 2 detectors failed at least one gate: A (held-out rows)."
    )


def test_a_detector_that_is_left_out_has_counts_and_no_verdict():
    table = table_of(with_text(matrix("DICE")), detector("DICE")).iloc[0]
    assert (table["n_flagged"], table["word"], table["verdict"]) == (N_UNITS, "", "")


def test_the_tables_of_the_study_use_the_five_words_for_one_claim_each():
    sets = catalogue.in_order(store.read(store.STUDY).sets)
    known = [one for one in catalogue.ALL if one.name in set(sets["detector"])]
    detectors = gates.detector_table(sets, gates.gate_table(sets, known))
    tables = {"detectors": detectors, "evasion": lab_panel.evasion_table(sets)}
    for name, table in tables.items():
        assert CLAIMS[name].text.endswith(".")
        check_verdicts(table["verdict"])
    check_verdicts(detectors["word"])
    is_dice, is_control = (detectors["detector"].isin(of) for of in (["DICE"], CONTROL_NAMES))
    blank = is_dice | is_control
    assert detectors.loc[blank, ["word", "verdict"]].eq("").all(axis=None)
    assert not detectors.loc[~blank, "verdict"].eq("").any()
    # Each control is refused by a gate.
    assert detectors.loc[is_control, "holds"].eq(True).all()
    assert detectors.loc[~is_control, "holds"].isna().all()
    evasion = tables["evasion"]
    assert evasion.loc[evasion["method"].isin(CONTROL_NAMES), "verdict"].eq("").all()
    undetermined = detectors[detectors["calibration"].eq("undetermined")]
    assert undetermined["false_alarms"].eq("undetermined").all()
