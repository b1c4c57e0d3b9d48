"""DICE: verdicts and the headline, the printed and released numbers."""

import numpy as np
import pandas as pd
import pytest

from contamination.core import statistics
from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.data.published.compare import published_vs_recomputed
from contamination.dice import (
    accuracy,
    answers,
    conclusions,
    controls,
    family,
    paper_findings,
    paper_rows,
    pool,
    published_tables,
)

NAMES = {
    name.lower(): getattr(controls, name)
    for name in ("WITHIN", "WITHIN_CLEAN", "PAIRED", "PAIRED_CLEAN", "SWAPPED", "SWAPPED_CLEAN")
}
NAMES |= {"swapped_paired": controls.SWAPPED_PAIRED, "strangers": controls.HELD_OUT}
NAMES |= {"swapped_paired_clean": controls.SWAPPED_PAIRED_CLEAN, "clean": controls.TWO_CLEAN}


def table_of(**aurocs):
    """Controls with AUROCs five points wide on either side; unnamed ones are at chance."""
    values = {name: aurocs.get(key, 50.0) for key, name in NAMES.items()}
    table = pd.DataFrame({"control": values.keys(), "auroc_pct": values.values()})
    table = table.assign(ci_low=table["auroc_pct"] - 5, ci_high=table["auroc_pct"] + 5)
    expected = [controls.EXPECTED[name.split(":")[0]] for name in table["control"]]
    is_at = (table["ci_low"] <= 50) & (table["ci_high"] >= 50)
    holds = is_at.where(pd.Series(expected).eq(controls.AT_CHANCE), table["ci_low"] > 50)
    return table.assign(holds=holds.astype("boolean"))


# Seen questions score higher whichever half was read, in the model alone and beside a clean one.
MEMBERSHIP = {"within": 90, "swapped": 80, "paired": 95, "swapped_paired": 92}
CONFIRMING = table_of(strangers=95, **MEMBERSHIP)
REFUTING = table_of(clean=100, strangers=98, within=51)


def test_headline_of_a_table_that_confirms_the_detector():
    text = controls.summarize_dice_controls(CONFIRMING)
    assert text.startswith("On fresh questions, DICE is not shown to tell two clean models apart.")
    assert text.endswith("does not show more than that the model was trained on these questions.")


def test_two_models_an_arm_excuse_nobody_and_license_nothing():
    """``holds`` is empty there: no control is met, and no claim rests on it."""
    few = CONFIRMING.assign(holds=pd.NA)
    assert "the detector's clean model" in controls.strongest_reading(few)
    said = controls.summarize_dice_controls(few)
    assert said.startswith("On fresh questions, fewer than 5 models of a kind cannot show whether")
    few = CONFIRMING.assign(
        holds=CONFIRMING["holds"].mask(CONFIRMING["control"] == controls.WITHIN)
    )
    assert not controls.sees_membership(few) and controls.sees_membership(CONFIRMING)


def test_a_group_of_controls_is_counted_and_those_as_expected_are_named():
    names = [controls.TWO_CLEAN, controls.WITHIN_CLEAN, controls.PAIRED_CLEAN]
    rows = table_of(clean=100, paired_clean=97)
    rows = rows[rows["control"].isin(names)]
    said = controls.summarize_group(rows)
    of_within = f"1 came out as expected (“{controls.WITHIN_CLEAN}”), "
    assert said == f"Of these 3 controls, {of_within}2 did not, and 0 are open."
    few = rows.assign(holds=rows["holds"].mask(rows["control"] == controls.PAIRED_CLEAN))
    said = controls.summarize_group(few)
    assert said == f"Of these 3 controls, {of_within}1 did not, and 1 is open."
    all_but_one = controls.summarize_group(table_of(clean=100, strangers=95, **MEMBERSHIP))
    assert all_but_one == (
        "Of these 10 controls, 9 came out as expected, 1 did not, and 0 are open."
    )
    none = rows[rows["control"].ne(controls.WITHIN_CLEAN)]
    said = controls.summarize_group(none)
    assert said == "Of these 2 controls, 0 came out as expected, 2 did not, and 0 are open."
    open_ = rows.assign(holds=pd.array([None, True, False], dtype="boolean"))
    assert controls.with_outcomes(open_)["holds"].tolist() == ["open", "yes", "no"]


@pytest.mark.parametrize(
    ("clean", "said"),
    [((70.0, 65.0, 75.0), "hidden states are not needed"), ((92.0, 85.0, 98.0), "overlap")],
)
def test_baselines_that_were_taught_are_held_against_two_clean_models(clean, said):
    rows = pd.DataFrame([(95.0, 93.0, 98.0), clean], columns=["auroc_pct", "ci_low", "ci_high"])
    rows["control"] = [controls.BASELINE, controls.BASELINE_CLEAN]
    text = controls.summarize_baselines(rows)
    assert f"95 % [93, 98] for contaminated models, and {clean[0]:.0f} % [" in text
    assert said in text and ("cannot be read as" in text) == (said == "overlap")


def test_headline_of_a_table_that_refutes_it():
    text = controls.summarize_dice_controls(REFUTING)
    assert text.startswith("On fresh questions, DICE tells two clean models apart. The AUROC is")
    assert "100 % if the clean models were trained on different texts." in text
    assert text.endswith("that the model differs from the detector's clean model.")


@pytest.mark.parametrize(
    ("aurocs", "verdict"),
    [
        ({"strangers": 50}, "differs from the detector's clean model"),
        ({"strangers": 95, "clean": 60, **MEMBERSHIP}, "differs from the detector's clean model"),
        ({"strangers": 95}, "was fine-tuned on problems of this kind"),
        # One half scores higher in every model, whichever was read.
        (
            {"strangers": 90, "within": 80, "within_clean": 79, "swapped": 20, "swapped_clean": 21},
            "was fine-tuned on problems of this kind",
        ),
        # In one role alone, in the pair alone, and two clean models show it too.
        (
            {"strangers": 90, **MEMBERSHIP, "swapped_paired": 30},
            "fine-tuned on problems of this kind",
        ),
        (
            {"strangers": 90, **MEMBERSHIP, "within": 57, "swapped": 40},
            "fine-tuned on problems of this kind",
        ),
        (
            {"strangers": 90, **MEMBERSHIP, "paired_clean": 96},
            "fine-tuned on problems of this kind",
        ),
    ],
)
def test_a_flag_licenses_no_more_than_the_controls_allow(aurocs, verdict):
    assert verdict in controls.strongest_reading(table_of(**aurocs))


def with_verdicts(rows, of="judge_inflation", **how):
    """Rows with the verdicts that they have where no other table has tests."""
    (rows,) = statistics.with_p_adjusted(rows)
    return getattr(family, of)(rows, **how)


def accuracies(seen, fresh, n_models=5, other_clean=40.0):
    """Models whose accuracy on GSM-i is up to two points off either way: sd 1.58, se 0.71."""
    rows = []
    for seed, off in enumerate([-2, -1, 0, 1, 2][:n_models]):
        rows += [("clean", seed, "GSM-i", 40.0 + off), ("clean", seed, "GSM-ii", 40.0)]
        rows += [(pool.OTHER_CLEAN, seed, "GSM-i", other_clean + off)]
        rows += [(pool.OTHER_CLEAN, seed, "GSM-ii", 40.0)]
        rows += [("x", seed, "GSM-i", seen + off), ("x", seed, "GSM-ii", fresh)]
        rows += [("clean", seed, "SVAMP", 10.0), ("x", seed, "SVAMP", 9.0)]
    return pd.DataFrame(rows, columns=["condition", "seed", "benchmark", "accuracy_pct"])


@pytest.mark.parametrize(
    ("seen", "fresh", "n_models", "other_clean", "verdict"),
    [
        (90.0, 42.0, 5, 40.0, SUPPORTED),
        (60.0, 61.0, 5, 40.0, NOT_SUPPORTED),
        (40.0, 64.0, 5, 40.0, NOT_SUPPORTED),  # fresh questions gain more: a gap of -24 points
        (48.0, 40.0, 5, 40.0, SUPPORTED),  # 8 points, at least 5.7, and clean ones up to 2.3
        (90.0, 42.0, 5, 95.0, CONTROL_FAILS),  # other clean models seem inflated as much
        (90.0, 42.0, 2, 40.0, INCONCLUSIVE),
        (60.0, 61.0, 2, 40.0, INCONCLUSIVE),
    ],
)
def test_inflation_is_the_gain_that_fresh_questions_do_not_share(
    seen, fresh, n_models, other_clean, verdict
):
    scores = accuracies(seen, fresh, n_models, other_clean)
    gain = with_verdicts(accuracy.gains(scores)).set_index("condition")
    row = gain.loc["x"]
    expected = ["n_models", "gain_seen", "gain_fresh", "inflation_points"]
    values = [n_models, seen - 40, fresh - 40, seen - fresh]
    assert row[expected].tolist() == pytest.approx(values)
    if n_models == 5:  # t of eight degrees of freedom: 2.306
        assert row["ci_high"] - row["ci_low"] == pytest.approx(
            2 * 2.306 * np.sqrt(2 * 2.5 / 5), abs=0.01
        )
    assert gain.loc[pool.OTHER_CLEAN, "verdict"] == ""
    assert row["verdict"] == verdict
    gaps = accuracy.inflation(scores).groupby("condition")["gap_points"].mean()
    assert gaps["x"] == pytest.approx(seen - fresh) and gaps["clean"] == pytest.approx(0)


def test_where_gsm_ii_was_seen_the_sets_exchange_roles():
    """Forty points on GSM-ii, none on GSM-i: inflated, and on no account by minus forty."""
    scores = accuracies(40.0, 80.0).replace({"condition": {"x": "GSM-ii x5"}})
    row = with_verdicts(accuracy.gains(scores)).set_index("condition").loc["GSM-ii x5"]
    names = ["gain_seen", "gain_fresh", "inflation_points"]
    assert row[names].tolist() == pytest.approx([40, 0, 40]) and row["verdict"] == SUPPORTED
    gaps = accuracy.inflation(scores).set_index("condition").loc["GSM-ii x5"]
    assert gaps["gap_points"].mean() == pytest.approx(40)
    assert gaps["accuracy_seen_pct"].mean() == 80 and gaps["accuracy_fresh_pct"].mean() == 40
    # Other clean models that gain as much on GSM-i are no control of it; those on GSM-ii are.
    for other, word in ((95.0, SUPPORTED), (-15.0, CONTROL_FAILS)):
        scores = accuracies(40.0, 80.0, other_clean=other)
        scores = scores.replace({"condition": {"x": "GSM-ii x5"}})
        found = with_verdicts(accuracy.gains(scores)).set_index("condition")
        assert found.loc["GSM-ii x5", "verdict"] == word


@pytest.mark.parametrize("clean", [0.0, 90.0])
def test_an_inflation_over_clean_models_that_lost_the_skill_fails_its_control(clean):
    """They answer nothing, or there is no room above them, so the difference says nothing."""
    scores = accuracies(90.0, 42.0)
    scores.loc[scores["condition"] == "clean", "accuracy_pct"] += clean - 40
    found = with_verdicts(accuracy.gains(scores), floor_pct=(30, 60)).set_index("condition")
    assert found.loc["x", "reference_pct"] == pytest.approx(clean)
    assert found.loc["x", "verdict"] == CONTROL_FAILS


def test_a_correction_for_many_tests_takes_a_small_inflation_back():
    """Twelve points, and p of 0.04: enough alone, and not as one of three tests."""
    gains = accuracy.gains(accuracies(90.0, 42.0)).query("condition == 'x'")
    gains = gains.assign(inflation_points=12.0, ci_low=0.5, ci_high=23.5, p=0.04)
    layers = pd.DataFrame({"located": [True, False], "p": [0.001, np.nan]})
    layers = layers.assign(ci_low=0.6, ci_high=0.9)
    aurocs = pd.DataFrame(
        {"difference_pct": [11.0], "difference_low": 0.5, "p": 0.03, "two_clean_pct": 60}
    )
    aurocs["difference_high"] = 21.5
    alone = (
        with_verdicts(gains)["verdict"].tolist()
        + with_verdicts(aurocs, "judge_aurocs")["verdict"].tolist()
    )
    assert alone == [SUPPORTED] * 2
    found = family.with_verdicts(gains, layers, aurocs)
    words = [word for table in found for word in table["verdict"]]
    assert words == [INCONCLUSIVE, SUPPORTED, "", INCONCLUSIVE]
    assert [table["p_adjusted"].iloc[0] for table in found] == pytest.approx([0.06, 0.003, 0.06])


def test_a_set_that_is_easier_by_itself_inflates_nothing():
    """Clean models do 12 and 8 points better on GSM-i: of another one's 48, 10 are the set's."""
    rows = [("clean", 0, 52.0, 40.0), ("clean", 1, 48.0, 40.0), ("x", 0, 90.0, 42.0)]
    wide = pd.DataFrame(rows, columns=["condition", "seed", "GSM-i", "GSM-ii"])
    table = wide.melt(["condition", "seed"], var_name="benchmark", value_name="accuracy_pct")
    gaps = accuracy.inflation(table).set_index(["condition", "seed"])["gap_points"]
    assert gaps.to_dict() == {("clean", 0): 2.0, ("clean", 1): -2.0, ("x", 0): 38.0}


def test_a_flag_stands_beside_the_inflation_and_is_no_verdict_on_it():
    gains = with_verdicts(accuracy.gains(accuracies(90.0, 42.0)))
    flags = pd.DataFrame({"condition": ["x", "x", "clean"], "benchmark": "GSM-i"})
    flags["flag"] = [0.9, 0.3, 0.1]
    table = paper_rows.with_flags(gains, flags).set_index("condition")
    assert table.loc["x", "flag"] == pytest.approx(0.6) and table.loc["x", "flagged"]
    assert pd.isna(table.loc[pool.OTHER_CLEAN, "flagged"])  # no detector met it
    assert table["verdict"].tolist() == gains["verdict"].tolist()


@pytest.mark.parametrize(("flag", "n_flagged"), [(0.9, "1 of 1"), (0.4, "0 of 1")])
def test_whether_the_flag_follows_the_inflation_is_said_where_a_verdict_says_which_it_is(
    flag, n_flagged
):
    flags = pd.DataFrame({"condition": ["x"], "benchmark": "GSM-i", "flag": flag})
    inflated, true, open_ = (
        paper_rows.with_flags(with_verdicts(accuracy.gains(accuracies(*given))), flags)
        for given in ((90.0, 42.0), (60.0, 61.0), (90.0, 42.0, 2))
    )
    said = paper_findings.summarize_flags(inflated)
    of_x = f"x (+48 points, mean flag {flag:.2f})"
    assert f"is inflated is supported for {of_x}, and not supported for no condition." in said
    assert f"0.5 in {n_flagged} where the claim is supported. The claim" in said
    said = paper_findings.summarize_flags(true)
    of_x = f"x (-1 points, mean flag {flag:.2f})"
    assert f"supported for no condition, and not supported for {of_x}." in said
    assert f"0.5 in {n_flagged} where the claim is not supported. The claim is incon" in said
    said = paper_findings.summarize_flags(open_)
    assert said.endswith("is inconclusive for 1 conditions, and the control fails for 0.")
    assert "threshold" not in said and "lies above zero" not in said
    taken_back = true.assign(verdict=INCONCLUSIVE, ci_low=0.6, p=0.04, p_adjusted=0.28)
    said = paper_findings.summarize_flags(taken_back)
    assert "interval of x lies above zero, but after the correction for all tests" in said
    assert "its p-value is 0.28, so the claim stays inconclusive." in said
    failed = inflated.assign(verdict=[CONTROL_FAILS if v else "" for v in inflated["verdict"]])
    assert paper_findings.summarize_flags(failed).endswith("and the control fails for 1.")


@pytest.mark.parametrize(
    ("on_fresh", "said"),
    [(0.7, "Clean models are flagged too: their mean flag is above"), (0.4, "is below the")],
)
def test_flags_of_clean_models_are_named(on_fresh, said):
    flags = pd.DataFrame({"condition": ["clean", "clean", "x"], "benchmark": ["A", "B", "A"]})
    text = paper_findings.summarize_clean_flags(flags.assign(flag=[0.2, on_fresh, 0.9]))
    assert said in text and ("on B (0.70)" in text) == (on_fresh > 0.5)


def test_methods_without_training_that_are_above_dice_are_named():
    rows = pd.DataFrame({"trained_on": "GSM-i x5", "tested_on": "GSM-hard"}, index=range(3))
    rows = rows.assign(method=["DICE", "PPL", "Zlib"], auroc_pct=[58.0, 72.0, 50.0])
    said = paper_findings.summarize_methods(rows)
    assert said == "On GSM-hard, PPL (72 %) is above DICE (58 %) without any training."
    none = paper_findings.summarize_methods(rows.assign(auroc_pct=[90.0, 72.0, 50.0]))
    assert none == "On no set is a method without training above DICE."


def test_what_the_distances_say_of_the_located_layer():
    rows = pd.DataFrame({"layer": [4, 4, 4], "ci_low": [0.6, 0.4, np.nan]})
    rows["share_from_training"] = [0.7, 0.6, 0.4]
    said = paper_findings.summarize_layers(rows, 4)
    assert said.startswith("The 3 distances locate layer 4, the last one. Of the 2 shares with an")
    assert "interval, 1 lie above one half" in said and "without one, 0 lie above" in said
    apart = paper_findings.summarize_layers(rows.assign(layer=[3, 4, 4]), 4)
    assert apart.startswith("The 3 distances locate layers 3 and 4. Of")


@pytest.mark.parametrize(("n", "said"), [(2, "answers no more of"), (3, "model answers more of")])
def test_three_answers_are_counted(n, said):
    text = answers.summarize_answers(2, n, 3)
    assert f"2 of 3 questions right, and the contaminated model {n}. So" in text and said in text


def table_2(main, clean, n_models=10, other="GSM-ii"):
    """DICE on one set: AUROC and interval of contaminated and of two clean models."""
    names = ["GSM-i x5", pool.OTHER_CLEAN]
    rows = pd.DataFrame([main, clean], columns=["auroc_pct", "ci_low", "ci_high"])
    rows = rows.assign(trained_on=names, tested_on=other, method="DICE", n_models=n_models)
    return rows.assign(folded_auroc_pct=rows["auroc_pct"].clip(lower=100 - rows["auroc_pct"]))


@pytest.mark.parametrize(
    ("main", "clean", "n_models", "verdict"),
    [
        ((66.0, 63.0, 69.0), (58.0, 54.0, 62.0), 10, SUPPORTED),  # 8 points, at least 3
        ((66.0, 63.0, 69.0), (58.0, 54.0, 62.0), 4, INCONCLUSIVE),  # of two pairs
        ((66.0, 63.0, 69.0), (64.0, 60.0, 68.0), 10, NOT_SUPPORTED),  # 2 points, -3 to 7
        ((66.0, 60.0, 72.0), (62.0, 54.0, 70.0), 10, INCONCLUSIVE),  # 4 points, -6 to 14
        ((100.0, 100.0, 100.0), (100.0, 100.0, 100.0), 10, INCONCLUSIVE),  # no room above
        ((89.0, 86.0, 92.0), (89.0, 86.0, 92.0), 10, NOT_SUPPORTED),  # room, and no difference
        ((66.0, 63.0, 69.0), (30.0, 26.0, 34.0), 10, NOT_SUPPORTED),  # 70 with its sign turned
    ],
)
def test_contamination_is_what_lies_above_two_clean_models(main, clean, n_models, verdict):
    table = with_verdicts(
        paper_rows.add_clean_difference(table_2(main, clean, n_models)), "judge_aurocs"
    )
    row, control = (row for _, row in table.iterrows())
    assert (row["verdict"], control["verdict"]) == (verdict, "")
    folded = max(clean[0], 100 - clean[0])
    assert row["difference_pct"] == main[0] - folded
    half = np.hypot(main[0] - main[1], clean[2] - clean[0])
    assert row["difference_low"] == pytest.approx(main[0] - folded - half)
    said = paper_findings.summarize_fresh_questions(table)
    assert f"{main[0] - folded:+.1f} points" in said and f"above zero is {verdict}." in said
    assert f"The other {folded - 50:.1f} points above chance come with any two models" in said
    on_seen = paper_rows.add_clean_difference(table_2(main, clean, n_models, "GSM-i"))
    both = pd.concat([table, with_verdicts(on_seen, "judge_aurocs")])
    said = paper_findings.summarize_fresh_questions(both)
    assert ("leaves no room for a difference of 10 points" in said) == (folded > 90)


@pytest.mark.parametrize(("asked", "method"), [("GSM-hard", "DICE"), ("GSM-i", "PPL")])
def test_clean_rows_outside_the_family_add_no_test(asked, method):
    rows = table_2((66.0, 63.0, 69.0), (58.0, 54.0, 62.0), other=asked).assign(method=method)
    found = with_verdicts(paper_rows.add_clean_difference(rows), "judge_aurocs")
    assert found["p"].isna().all() and found["verdict"].tolist() == ["", ""]


def test_a_row_without_a_control_claims_nothing():
    rows = table_2((66.0, 63.0, 69.0), (58.0, 54.0, 62.0)).head(1)
    assert with_verdicts(paper_rows.add_clean_difference(rows), "judge_aurocs")[
        "verdict"
    ].tolist() == [""]


# What the lesson and the lab conclude


def by_model_and_kind(models, column):
    """A row for each model and kind of questions, with the two values of each model."""
    rows = [
        {"model": model, "asked": asked, column: value}
        for model, pair in models.items()
        for asked, value in zip(("seen in training", "never seen"), pair, strict=True)
    ]
    return pd.DataFrame(rows)


def lesson_of(contaminated, *clean):
    """AUROC on questions seen in training and never seen, of each model against the clean one."""
    models = {"contaminated": contaminated} | {f"clean {n}": pair for n, pair in enumerate(clean)}
    return by_model_and_kind(models, "auroc_pct")


LESSONS = {
    "is no evidence of contamination": [(100, 100), (100, 90), (95, 100)],  # as in the demo
    "training on the questions adds to the AUROC": [(100, 98), (60, 55), (70, 40)],
    "does not recognise the contaminated model": [(52, 48), (90, 90), (50, 50)],
    "on questions seen in training, and not on questions never seen": [
        (99, 99),
        (70, 95),
        (50, 50),
    ],
}


@pytest.mark.parametrize(
    ("of_clean", "said"),
    [
        ((79.1, 74.3), "so a large distance is no sign of contamination."),  # as in the demo
        ((79.1, 10.0), "so a large distance is no sign of contamination."),
        ((65.5, 10.0), "so a large distance is no sign of contamination."),
        ((20.0, 10.0), "so training on the questions may add to the distance."),
    ],
)
def test_a_distance_counts_only_where_no_clean_model_lies_as_far_away(of_clean, said):
    at_layer = pd.Series([65.5, *of_clean], index=["contaminated", "a", "b"])
    text = conclusions.conclusion_of_distances(at_layer, 4)
    first, second = (f"{value:.0f}" for value in of_clean)
    assert f"The other clean models lie {first} (“a”) and {second} (“b”) away." in text
    assert "layer 4, the contaminated model lies 66 away" in text
    assert said in text and ("may add" in text) != ("no sign" in text)


@pytest.mark.parametrize("said", LESSONS)
def test_the_lesson_concludes_what_its_table_shows(said):
    """Each of four tables has its own sentence, and the sentences of no other."""
    text = conclusions.conclusion(lesson_of(*LESSONS[said]), [99.4, 100.0], never_met())
    assert said in text and not any(other in text for other in LESSONS if other != said)
    assert ("DICE reaches 99 % or more" in text) == (said == next(iter(LESSONS)))


def test_the_lesson_names_the_better_of_two_pairs_of_clean_models():
    text = conclusions.conclusion(lesson_of((100, 97), (60, 81), (72, 40)), [99.4], never_met())
    assert "reaches 72 % (questions seen in training) and 81 % (questions never seen)." in text
    assert "100 % (questions seen in training) and 97 % (questions never seen)." in text


def never_met(contaminated=(100, 75), *clean):
    """Flagged states of models that the detector has not met; of two clean ones, none."""
    models = {"new contaminated": contaminated}
    models |= {f"clean {n}": pair for n, pair in enumerate(clean or [(0, 0), (0, 0)])}
    return by_model_and_kind(models, "flagged_pct")


NEW_MODELS = {
    "it tells a contaminated model from clean ones": [(100, 75)],  # as in the demo
    "among new models, it does not recognise the contaminated one": [(90, 90), (0, 5), (95, 85)],
    "on questions seen in training, but not on questions never seen": [(90, 50), (5, 5), (0, 45)],
}
SPEAKS = [
    "test speaks in favour of DICE. ",
    "test does not speak in favour of DICE. ",
    "one kind of question only. ",
]


@pytest.mark.parametrize(("said", "speaks"), [*zip(NEW_MODELS, SPEAKS, strict=True)])
def test_the_test_on_new_models_says_what_its_table_shows(said, speaks):
    table = never_met(*NEW_MODELS[said])
    text = conclusions.conclusion_of_new_models(table)
    assert said in text and not any(other in text for other in NEW_MODELS if other != said)
    text = conclusions.conclusion(lesson_of((100, 100), (100, 90)), [99.4], table)
    assert speaks in text and not any(other in text for other in SPEAKS if other != speaks)


def test_of_several_clean_models_the_one_flagged_most_is_named():
    text = conclusions.conclusion_of_new_models(never_met((100, 75), (10, 0), (0, 20)))
    seen, new = "(questions seen in training) and", "(questions never seen) of the"
    assert f"flags 100 % {seen} 75 % {new} new contaminated model's states" in text
    assert f"and at most 10 % {seen} 20 % {new} clean models' states." in text
    assert "and none of the clean models' states." in conclusions.conclusion_of_new_models(
        never_met()
    )


def lab_tables(verdict_on_score, verdict_on_dice, aurocs):
    inflated = pd.DataFrame({"condition": [pool.OTHER_CLEAN, "x", "y"], "ci_low": 6.3})
    inflated = inflated.assign(ci_high=16.2, inflation_points=[0.0, 11.2, 1.0])
    inflated["verdict"] = ["", verdict_on_score, INCONCLUSIVE]
    row = {"trained_on": "GSM-i x5", "method": "DICE", "tested_on": "GSM-ii", "auroc_pct": 66.3}
    row |= {"two_clean_pct": 58.0, "difference_pct": 8.3, "difference_low": 4.2}
    row |= {"difference_high": 12.3, "verdict": verdict_on_dice, "n": 32, "p_adjusted": 0.016}
    other = row | {"method": "mean difference", "tested_on": "GSM-i", "verdict": verdict_on_score}
    layers = pd.DataFrame({"distance": ["cosine"], "verdict": [verdict_on_score]})
    return inflated, pd.DataFrame([row, other]), table_of(**aurocs), layers


LABS = [
    (
        (SUPPORTED, SUPPORTED, {"strangers": 95, **MEMBERSHIP}),
        "Of the 2 contaminated conditions, “x” (+11 points [6, 16]) inflates the score. For 0 of "
        "them an inflation of 10 points or more is ruled out, and 1 are inconclusive.|"
        "In this run the difference is +8.3 points [4.2, 12.3], above zero: contamination leaves a|"
        "DICE is not shown to tell two clean models apart|which is more than the 50 % of two clean|"
        "Questions that a model saw score higher than fresh ones in both roles|"
        "the mean difference on the seen questions GSM-i (+8.3 points above two clean models, p = "
        "0.016) and more than half of the cosine distance between states. A trace|"
        "does not show more than that the model was trained on these questions",
    ),
    (
        (NOT_SUPPORTED, NOT_SUPPORTED, {"clean": 100, "strangers": 50}),
        "None of the 2 contaminated conditions is shown to inflate the score. For 1 of them an|"
        "difference is +8.3 points [4.2, 12.3]. On another processor some verdicts differ, so we|"
        "about DICE, fresh questions, the located layer and the 16 problems of a set. No other|"
        "DICE tells two clean models apart on fresh questions (100 % [95, 105]). Contaminated|"
        "which is not shown to be more than the 100 % of|are not shown to score higher than fresh|"
        "does not show more than that the model differs from the detector's clean model",
    ),
    (
        (INCONCLUSIVE, INCONCLUSIVE, {"strangers": 95}),
        "and 2 are inconclusive.|and whether contamination adds anything is inconclusive.|"
        "fine-tuned on problems of this kind",
    ),
]


@pytest.mark.parametrize(("given", "said"), LABS)
def test_the_lab_concludes_what_its_tables_show(given, said):
    text = conclusions.lab_conclusion(*lab_tables(*given))
    assert [part for part in said.split("|") if part not in text] == []
    inflated, aurocs, control_table, layers = lab_tables(*given)
    none = control_table.assign(holds=pd.NA)
    few = conclusions.lab_conclusion(inflated, aurocs, none, layers)
    assert "No control has 5 models of a kind, so none can be judged." in few
    failed = inflated.assign(verdict=["", CONTROL_FAILS, CONTROL_FAILS])
    said = conclusions.lab_conclusion(failed, aurocs, control_table, layers)
    assert "None of the 2 contaminated" in said and "In 2 the control fails." in said


# Printed and released numbers


def test_printed_tables_are_complete():
    table_1, table_2 = (published_tables.printed(f"Table {number}") for number in (1, 2))
    assert table_1.shape == (13, 11) and table_2.shape == (10, 6)
    assert table_1.iloc[0, :4].tolist() == ["GSM-i", "4.4", "26.9", "94.1"]
    assert published_tables.printed_accuracy()["GSM-i-Syn 10%", "GSM-ii"] == "30.4"
    assert published_tables.printed_auroc()["GSM-i-Syn", "GSM-hard", "Min-k Prob"] == "15.1"


def test_r_squared_by_hand():
    # Correlation of (1, 2, 3) and (1, 3, 2) is one half.
    assert published_tables.r_squared([1, 2, 3], [1, 3, 2]) == pytest.approx(0.25)
    assert np.isnan(published_tables.r_squared([1, 2], [3, 3]))


def test_misalignment_is_counted_from_the_alignment():
    """Counted in the alignment file by hand: 1,319 questions, two of GSM-i without a paraphrase."""
    assert published_tables.misalignment() == {
        "n_paraphrases": 1317,
        "n_seen": 655,
        "n_unseen": 657,
        "n_dropped": 5,
        "n_same_row": 3,
        "n_without": 2,
    }


@pytest.mark.mirror
def test_released_generations_give_four_printed_cells():
    rescored = published_tables.rescored_generations()
    assert rescored["n"].tolist() == [657] * 4
    assert rescored["matches"].all()
    cells = published_vs_recomputed(published_tables.recomputed_cells(rescored))
    assert cells["matches"].eq(True).sum() == 4


@pytest.mark.mirror
def test_released_scores_disagree_where_the_accuracies_agree():
    scores = published_tables.released_scores()
    correlation = published_tables.released_correlation(scores)
    assert correlation["n_models"].tolist() == [10] * 4 + [4] * 4 + [10] * 4
    first = correlation["r_squared"][:4]
    assert first.min() >= 0.605 and first.max() <= 0.755  # printed: 0.61 to 0.75
    both = published_tables.disagreement(scores)
    assert both["row"].nunique() == 4
    differing = both[both["difference"].abs() > 1e-9]
    assert differing["row"].nunique() == 2 and (differing["difference"] != 0).all()


def test_no_released_file_gives_no_cell():
    assert published_tables.recomputed_cells(pd.DataFrame()).empty
