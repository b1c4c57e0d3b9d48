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
    assert half.quizzes["is_read"].tolist() == [True, True, False, False]
    is_read = {condition: one.quizzes["is_read"] for condition, one in sets.items()}
    assert is_read["with label"].all() and not is_read["unseen, same model"].any()
    (clean,) = known_truth.quizzed_sets(arms, is_dosed=False)
    assert clean.quizzes["index"].equals(arms[0].quizzes["index"])
    assert not clean.quizzes["is_read"].any()


def quizzed(condition, is_read):
    return known_truth.Arm(condition, 1, table_of(len(is_read)).assign(is_read=is_read))


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
    assert row["true_contamination_pct"] == 0
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


def test_a_seed_of_the_estimator_study_repeats():
    mixed = {"mostly E": (0.1, 0.1, 0.1, 0.1, 0.6)}
    table = assessment.estimator_table(mixed, [0.0, 1.0], [1.0], n=100, n_simulations=20)
    again = assessment.estimator_table(mixed, [0.0, 1.0], [1.0], n=100, n_simulations=20)
    pd.testing.assert_frame_equal(table, again)


# Readings


def lab(**columns):
    defaults = {"respondent": "respondent", "dataset": "d", "seed": 0, "copies": 4}
    return pd.DataFrame(defaults | {"condition": "with label"} | columns)


SETS = ["with label", "half with label", "without label", "wrong label", "unseen, same model"]
SHOWN_BY = {"condition": [*SETS, "clean model"], "copies": [4, 4, 4, 4, 0, 0]}
SHOWN_BY |= {"true_contamination_pct": [100, 50, 0, 0, 0, 0], "min_pct": [10, 10, 0, 0, 0, 0]}
SHOWN_BY |= {"max_pct": [20, 15, 12, 5, 4, 2], "replication_pct": [10, 5, 0, 0, 2, 2]}
SHOWN_BY |= {"modified_pct": 4, "original_pct": [60, 4, 4, 4, 4, 8], "fifth_pct": 6}
RANKED = lab(condition=["with label", "unseen, same model"], copies=[4, 0], max_pct=[90, 25])
RANKED = RANKED.assign(respondent="option ranking")


@pytest.mark.parametrize(
    ("reading", "expected", "changed", "instead"),
    [
        ("range", "below", {"max_pct": [100, 60, 12, 5, 4, 2]}, "neither"),
        ("range", "below", {"min_pct": [101] * 6, "max_pct": [102] * 6}, "above"),
        ("otherwise", "without label", {"max_pct": [20, 15, 12, 11, 4, 2]},
         "without label and wrong label"),
        ("otherwise", "without label", {"max_pct": [20, 15, 6, 5, 4, 2]}, "neither"),
        ("otherwise", "without label", {"max_pct": [4, 4, 6, 5, 4, 2]}, "too little is recognised"),
        ("nobody", "at most 10 %", {"max_pct": [20, 15, 12, 5, 25, 2]}, "above 10 %"),
        # Replicated less often, yet further above what is replicated unread.
        ("replication", "1 of 1", {"max_pct": [20, 15, 12, 5, 20, 2]}, "0 of 1"),
        ("fifth", "1 of 1", {"fifth_pct": 40}, "0 of 1"),
        ("clean models", "0 of 1", {"original_pct": [60, 4, 4, 4, 4, 60]}, "1 of 1"),
    ],
)  # fmt: skip
def test_readings_confirm_and_refute(reading, expected, changed, instead):
    for columns, answer in ((SHOWN_BY, expected), (SHOWN_BY | changed, instead)):
        found = known_truth.readings_of(pd.concat([lab(**columns), RANKED]))
        assert [said for name, said in found.items() if reading in name] == [answer]


def test_gains_are_taken_over_what_the_same_model_never_read():
    def said(respondent, ranking):
        tables = [lab(**SHOWN_BY | {"seed": seed}) for seed in (0, 1)]
        rows = pd.concat([*tables, RANKED, RANKED.assign(seed=1)])
        for name, both in (("respondent", respondent), ("option ranking", ranking)):
            for condition, levels in zip(("with label", "unseen, same model"), both, strict=True):
                at = rows["respondent"].eq(name) & rows["condition"].eq(condition)
                rows.loc[at, "max_pct"] = levels
        answers = known_truth.readings_of(rows)
        gains = known_truth.gains(rows, "respondent").tolist()
        return gains, [said for name, said in answers.items() if "than o" in name]

    assert said([[40, 44], [4, 6]], [[90, 94], [25, 27]]) == ([36, 38], ["1 of 1", "1 of 1"])
    # Ranking starts from one in four, so more right answers are no larger gain.
    assert said([[20, 3], [4, 4]], [[30, 30], [29, 29]])[1] == ["0 of 1", "0 of 1"]


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


def test_readings_that_hold_and_that_hang(monkeypatch):
    lab_table, swept = swept_lab()
    said = lambda rows: {"hangs": f"{rows['none_below'].min():.1f}", "holds": "so"}  # noqa: E731
    monkeypatch.setattr(known_truth, "readings_of", said)
    found = known_truth.readings_table(swept, lab_table).set_index("reading")
    assert found.loc["hangs", ["stated", "n_settings", "n_same"]].tolist() == ["0.5", 16, 4]
    assert not found.loc["hangs", "holds"]
    assert found.loc["holds", ["n_same", "holds", "elsewhere"]].tolist() == [16, True, ""]


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
