"""Quizzes whose truth is known, what hangs on the respondent, and the estimator study."""

import numpy as np
import pandas as pd
import pytest

from contamination.core.verdicts import OPEN, RULED_OUT, SHOWN
from contamination.dcq import assessment, controls, known_truth
from contamination.dcq.respondents import AnswerRule, BaseRespondent

STATED = AnswerRule((1, 1, 1, 1), 1.0, 0.5)


def table_of(n):
    letters = {f"option_{k}": [f"{k}{i}\nlabel: {i % 2}" for i in range(n)] for k in "abcd"}
    instances = [f"o{i}\nlabel: {i % 2}" for i in range(n)]
    fifth = [f"f{i}\nlabel: {i % 2}" for i in range(n)]
    return pd.DataFrame({"index": range(n), "instance": instances, **letters, "fifth": fifth})


class Memory(dict):
    """Log-probabilities by hand: originals in ``known`` stand out, all else is equal but spread."""

    def __init__(self, known, n):
        spread = {"a": 0.0, "b": -2.0, "c": -4.0, "d": -6.0, "f": -3.0}
        for i in range(n):
            end = f"{i}\nlabel: {i % 2}"
            self |= {f"{k}{end}": value for k, value in spread.items()}
            self[f"o{end}"] = 100.0 if i in known else -3.0


# Known contamination


@pytest.fixture(scope="module")
def arms():
    return known_truth.deal("topics", [4, 1], 4, seed=0, with_label_arms=True)


def test_arms_are_disjoint_and_the_last_is_never_read(arms):
    plan = [(arm.condition, arm.copies) for arm in arms]
    assert plan == [
        ("with label", 1),
        ("with label", 4),
        ("without label", 4),
        ("wrong label", 4),
        ("unseen, same model", 0),
    ]
    numbers = [number for arm in arms for number in arm.quizzes["index"]]
    assert sorted(numbers) == list(range(20))
    plain = known_truth.deal("topics", [4, 1], 4, seed=0, with_label_arms=False)
    assert [arm.condition for arm in plain] == [plan[0][0], plan[1][0], plan[-1][0]]


def test_each_arm_is_read_as_its_condition_says():
    read = {}
    for condition in ("with label", "without label", "wrong label"):
        dose = known_truth.Arm(condition, 3, table_of(2)).dose("d", seed=0)
        assert dose.copies == 3
        read[condition] = dose.texts[1]
    start = "Dataset: d\nSplit: train\n"
    assert list(read.values()) == [start + "o1\nlabel: 1", start + "o1", start + "o1\nlabel: 0"]


def test_only_the_quizzed_sample_differs_between_all_and_half(arms):
    sets = {one.condition: one for one in known_truth.quizzed_sets(arms[1:], is_dosed=True)}
    assert list(sets) == ["with label", "half with label", *[arm.condition for arm in arms[2:]]]
    half = sets["half with label"]
    assert half.quizzes["index"].tolist() == [4, 5, 16, 17]
    assert half.is_read.tolist() == [True, True, False, False]
    assert sets["with label"].is_read.all() and not sets["unseen, same model"].is_read.any()
    (clean,) = known_truth.quizzed_sets(arms, is_dosed=False)
    assert clean.quizzes is arms[0].quizzes and not clean.is_read.any()


def quizzed(condition, is_read):
    return known_truth.QuizzedSet(condition, 1, table_of(len(is_read)), np.array(is_read))


def lab_rows(known, condition, is_read, model="dosed", seed=0):
    taker = BaseRespondent(None, "d", "train", STATED, _known=Memory(known, len(is_read)))
    return known_truth.lab_rows(taker, quizzed(condition, is_read), model, seed, n_resamples=20)


def test_lab_rows_hold_truth_recall_and_precision():
    rows, answers = lab_rows({0, 1, 2}, "half with label", [True] * 4 + [False] * 4)
    assert list(rows) == known_truth.LAB_COLUMNS.split()
    respondent, ranking = rows.to_dict("records")
    assert respondent["true_contamination_pct"] == 50
    assert respondent["max_pct"] == pytest.approx(100 * 3 / 8)
    assert (respondent["recall_max_pct"], respondent["precision_max_pct"]) == (75, 100)
    # Ranked among a, b and c alone, which lie above the unknown originals.
    assert ranking["max_pct"] == pytest.approx(100 * 3 / 8) and np.isnan(ranking["min_pct"])
    assert set(answers["quiz"]) == {"modified", "standard", "second perturbation"}
    assert answers.loc[answers["quiz"] == "standard", "log_prob_b"].iloc[0] == 100


@pytest.mark.parametrize("condition", ["without label", "wrong label"])
def test_text_without_its_label_is_no_contamination(condition):
    rows, _ = lab_rows({0, 1, 2, 3}, condition, [True] * 4)
    row = rows.iloc[0]
    assert (row["true_contamination_pct"], row["text_seen_pct"]) == (0, 100)
    assert row["max_pct"] == 100 and np.isnan(row["recall_max_pct"])
    assert row["precision_max_pct"] == 0


def test_the_dial_credits_every_rule_beside_the_model():
    taker = BaseRespondent(None, "d", "test", STATED, _known=Memory(set(), 6))
    rows = known_truth.dial_rows(0.5, taker, table_of(6), 20)
    names = ["clean LM, respondent", "clean LM, option ranking"]
    assert rows["model"].tolist() == names + [f"rule: {name}" for name in controls.RULES]
    assert rows["chance_pct"].fillna(-1).tolist() == [-1] + [25] * (len(rows) - 1)
    assert rows["ci_low_pct"].le(rows["max_pct"]).all()


# The estimator


def test_with_nothing_guessed_the_range_is_the_truth():
    never = {"always E": (0, 0, 0, 0, 1)}
    table = assessment.estimator_table(never, [0.0, 0.3, 1.0], [1.0], n=10, n_simulations=5)
    assert table["mean_min_pct"].tolist() == table["mean_max_pct"].tolist() == [0, 30, 100]
    assert table["covered_share"].eq(1).all() and table["mean_miss_pct"].eq(0).all()


def test_guesses_lift_the_range_above_the_truth_and_oversight_lowers_it():
    even = {"even": (0.2, 0.2, 0.2, 0.2, 0.2)}
    table = assessment.estimator_table(even, [0.0], [1.0], n=100, n_simulations=400)
    # The best of several positions with 20 guesses each, never below the truth of 0.
    assert table["over_share"][0] > 0.9 and 20 < table["mean_max_pct"][0] < 28
    never = {"always E": (0, 0, 0, 0, 1)}
    part = assessment.estimator_table(never, [1.0], [0.5], n=100, n_simulations=400)
    assert part["under_share"][0] == 1 and part["mean_max_pct"][0] == pytest.approx(50, abs=1)
    shares = table[["covered_share", "over_share", "under_share"]].sum(axis=1)
    assert shares[0] == pytest.approx(1)


def test_profiles_are_checked_and_a_seed_repeats():
    with pytest.raises(ValueError, match="sum to 1"):
        assessment.estimator_table({"x": (1, 1, 0, 0, 0)}, [0.5], [1.0], n=10, n_simulations=2)
    mixed = {"mostly E": (0.1, 0.1, 0.1, 0.1, 0.6)}
    table = assessment.estimator_table(mixed, [0.0, 1.0], [1.0], n=100, n_simulations=20)
    again = assessment.estimator_table(mixed, [0.0, 1.0], [1.0], n=100, n_simulations=20)
    pd.testing.assert_frame_equal(table, again)


# Readings, each with a table that confirms and one that refutes


def lab(**columns):
    defaults = {"respondent": "respondent", "dataset": "d", "seed": 0, "copies": 4}
    defaults |= {"text_seen_pct": 100.0, "recall_max_pct": 80.0, "condition": "with label"}
    defaults["true_contamination_pct"] = 100.0
    return pd.DataFrame(defaults | columns)


HIGH = lab(min_pct=[60.0], max_pct=[80.0], true_contamination_pct=50.0)
LOW = lab(min_pct=[10.0, 95.0, 20.0], max_pct=[20.0, 100.0, 30.0])
LOW_HALF = lab(min_pct=[10.0], max_pct=[20.0], true_contamination_pct=50.0)
LOW = pd.concat([LOW, LOW_HALF.assign(condition="half with label")])
MOVED = lab(modified_pct=[4.0, 4.0, 4.0], original_pct=[60.0, 60.0, 8.0], fifth_pct=[6, 40, 4])
CONDITIONS = ["with label", "without label", "wrong label"]
READ = lab(max_pct=[20.0, 40.0], replication_pct=[10.0, 20.0])
UNREAD = lab(max_pct=[4.0], replication_pct=[2.0], condition="unseen, same model")


@pytest.mark.parametrize(
    ("reading", "table", "expected"),
    [
        ("range_and_truth", LOW, "below"),
        ("range_and_truth", HIGH, "above"),
        ("range_and_truth", lab(min_pct=[90.0], max_pct=[100.0]), "neither"),
        ("level_of_unread", lab(max_pct=[2.0, 6.0], condition="clean model"), "at most 10 %"),
        ("level_of_unread", lab(max_pct=[25.0], condition="clean model"), "above 10 %"),
        ("label_matters", lab(max_pct=[80, 60, 5], condition=CONDITIONS), "without label"),
        (
            "label_matters",
            lab(max_pct=[80, 60, 50], condition=CONDITIONS),
            "without label and wrong label",
        ),
        ("label_matters", lab(max_pct=[80, 6, 5], condition=CONDITIONS), "neither"),
        ("label_matters", lab(max_pct=[4, 6, 5], condition=CONDITIONS), "too little is recognised"),
        ("label_matters", lab(max_pct=[80.0]), "not read otherwise"),
        ("quiz_and_replication", pd.concat([READ, UNREAD]), "1 of 1"),
        # Replicated less often, yet further above what is replicated unread.
        ("quiz_and_replication", pd.concat([READ, UNREAD.assign(max_pct=20.0)]), "0 of 1"),
        ("answers_move", MOVED, "1 of 3"),
        ("answers_of_clean_models_move", MOVED.assign(condition="clean model"), "2 of 3"),
    ],
)
def test_readings(reading, table, expected):
    assert getattr(known_truth, reading)(table) == expected


def read_and_unread(respondent, ranking):
    """Levels of sets read and never read, by both, under two models."""
    parts = [
        lab(max_pct=levels, condition=condition, respondent=name, seed=[0, 1])
        for name, both in (("respondent", respondent), ("option ranking", ranking))
        for condition, levels in zip(("with label", "unseen, same model"), both, strict=True)
    ]
    return pd.concat(parts)


def test_gains_are_taken_over_what_the_same_model_never_read():
    found = read_and_unread([[40, 44], [4, 6]], [[90, 94], [25, 27]])
    assert known_truth.gains(found, "respondent").tolist() == [36, 38]
    assert known_truth.read_and_unread(found) == "1 of 1"
    assert known_truth.respondent_and_ranking(found) == "1 of 1"
    # Ranking starts from one in four, so more right answers are no larger gain.
    found = read_and_unread([[20, 3], [4, 4]], [[30, 30], [29, 29]])
    assert known_truth.read_and_unread(found) == "0 of 1"
    assert known_truth.respondent_and_ranking(found) == "0 of 1"


# The sweep


def swept_lab(known=(0, 1, 2)):
    """Tables of one model that knows some of eight instances, and the sweep over them."""
    rows, answers = [], []
    for condition, seen in (("with label", 8), ("unseen, same model", 0)):
        of_set = lab_rows(set(known), condition, np.arange(8) < seen, model=f"m {seen}")
        rows.append(of_set[0].assign(replication_pct=0.0))
        answers.append(of_set[1])
    lab_table, answers = pd.concat(rows, ignore_index=True), pd.concat(answers, ignore_index=True)
    return lab_table, known_truth.sweep(lab_table, answers, STATED)


def test_the_sweep_gives_the_tables_level_at_the_stated_setting():
    lab_table, swept = swept_lab()
    assert len(swept) == 2 * 4 * 4 == len(swept.drop_duplicates([*known_truth.KEYS, *SETTING]))
    stated = swept[swept["is_stated"]].reset_index()
    of_quiz = lab_table[lab_table["respondent"] == "respondent"].reset_index()
    for name in ("max_pct", "min_pct", "true_contamination_pct", "n"):
        assert stated[name].tolist() == pytest.approx(of_quiz[name].tolist())


SETTING = ["temperature", "none_below"]


def test_the_threshold_decides_how_often_e_is_answered():
    _, swept = swept_lab()
    shares = swept.groupby("none_below")["none_pct"].mean()
    assert shares[0.0] == 0 and shares.is_monotonic_increasing and shares[0.9] > 0


def test_readings_that_hold_and_that_hang():
    lab_table, swept = swept_lab()
    readings = {"hangs": lambda rows: f"{rows['none_below'].min():.1f}", "holds": lambda rows: "so"}
    found = known_truth.readings_table(swept, lab_table, readings).set_index("reading")
    assert found.loc["hangs", ["stated", "n_settings", "n_same"]].tolist() == ["0.5", 16, 4]
    assert not found.loc["hangs", "holds"]
    assert found.loc["holds", ["n_same", "holds", "elsewhere"]].tolist() == [16, True, ""]
    both = known_truth.readings_table(swept, lab_table, known_truth.READINGS)
    assert both["reading"].tolist() == list(known_truth.READINGS)


# The dial


@pytest.mark.parametrize(("at_last", "verdict"), [(60, SHOWN), (25, RULED_OUT), (32, OPEN)])
def test_a_taker_rises_where_the_whole_turn_of_the_dial_lifts_it(at_last, verdict):
    """Two datasets of a hundred quizzes at each setting; one taker may answer E."""
    rows = [
        {"dial": dial, "dataset": dataset, "model": model, "n": 100, "max_pct": right}
        | {"chance_pct": chance}
        for dial, right in ((0.0, 25.0), (0.5, 0.0), (1.0, float(at_last)))
        for dataset in "XY"
        for model, chance in (("rule", 25.0), ("respondent", np.nan))
    ]
    (row,) = known_truth.dial_rises(pd.DataFrame(rows)).to_dict("records")
    assert (row["model"], row["rise_pct"]) == ("rule", pytest.approx(at_last - 25))
    assert row["ci_low_pct"] < row["rise_pct"] < row["ci_high_pct"]
    assert row["verdict"] == verdict


def test_a_correction_for_many_takers_takes_a_small_rise_back():
    """Ten points of two hundred are shown for one taker, and not for one of thirty."""

    def rises(last, n_others):
        of_models = {"rule": last} | {f"{n}": 25.0 for n in range(n_others)}
        rows = [
            {"dial": dial, "model": model, "n": 200, "max_pct": right, "chance_pct": 25.0}
            for model, at_last in of_models.items()
            for dial, right in ((0.0, 25.0), (1.0, at_last))
        ]
        return known_truth.dial_rises(pd.DataFrame(rows))["verdict"][0]

    assert [rises(35.0, n) for n in (0, 29)] == [SHOWN, OPEN]
    assert [rises(60.0, n) for n in (0, 29)] == [SHOWN] * 2
