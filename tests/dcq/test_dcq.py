"""The quiz's rules, its bootstrap, its controls and its published tables."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.core.verdicts import (
    CONTROL_FAILS,
    NOT_RUN,
    OPEN,
    RULED_OUT,
    SHOWN,
    SMALL,
)
from contamination.data import published
from contamination.dcq import assessment, controls, published_tables, quizzes
from contamination.dcq.assessment import POSITIONS, assess


def all_positions(answers):
    return {position: list(answers) for position in POSITIONS}


def test_least_preferred_limit_is_the_next_whole_fifth():
    assert assessment.least_preferred_positions({"A": 19, "B": 20, "C": 0}, 100) == ("A", "C", "D")
    assert assessment.least_preferred_positions({"A": 14, "B": 15}, 71) == ("A", "C", "D")
    assert assessment.least_preferred_positions({"A": 32, "B": 33}, 164) == ("A", "C", "D")
    assert assessment.least_preferred_positions(dict.fromkeys("ABCDE", 20), 100) == ()


def test_levels_by_hand():
    # b(B) = 1 of 10; 6 right at B, 4 at C: kappa (6 - 1) / (10 - 1), second 4 / 10.
    found = assess(
        list("AAAAABEEEE"),
        {"B": list("BBBBBBEEEE"), "C": list("CCCCEEEEEE"), "D": list("DEEEEEEEEE")},
    )
    assert found.least_preferred == ("B", "C", "D")
    assert found.best_position == "B"
    assert found.maximum == 0.6
    assert found.kappa == pytest.approx(5 / 9)
    assert found.second == 0.4
    assert found.minimum == pytest.approx(5 / 9)


def test_no_least_preferred_position_quizzes_all_four():
    found = assess(list("AABBCCDDEE"), all_positions("AAAAAEEEEE"))
    assert found.least_preferred == ()
    assert found.maximum == 0.5
    with pytest.raises(ValueError, match="missing at position B, C, D"):
        assess(list("AABBCCDDEE"), {"A": list("AAAAAEEEEE")})


def test_undefined_negative_tied_and_unusable():
    single = assess(list("AABBCCDEEE"), {"D": list("DDDDDDEEEE")})
    assert np.isnan(single.second) and single.minimum == single.kappa == pytest.approx(5 / 9)
    assert assess(list("AABBCCDDEE"), all_positions("EEEEEEEEEE")).kappa == -0.25
    # A tie goes to the smaller bias.
    standard = {"B": list("BBBEEEEEEE"), "C": list("CCCEEEEEEE"), "D": list("EEEEEEEEEE")}
    assert assess(list("AAAAAABEEE"), standard).best_position == "C"
    # Unusable answers stay in the denominator.
    found = assess(["E", "", "prose", None, "E"], {p: [p, p, p, "", "x"] for p in "ABCD"})
    assert (found.n, found.maximum) == (5, 0.6)


def test_partitions_without_answers_are_refused():
    with pytest.raises(ValueError, match="empty"):
        assess([], {})
    with pytest.raises(ValueError, match="3 modified quizzes but 2"):
        assess(list("EEE"), {"A": list("AA")})


@given(st.data())
def test_bootstrap_of_the_sample_itself_is_the_assessment(data):
    """Every instance drawn once must give the point estimate."""
    n = data.draw(st.integers(1, 12))
    letters = st.lists(st.sampled_from("ABCDE"), min_size=n, max_size=n)
    modified = data.draw(letters)
    standard = {p: data.draw(letters) for p in POSITIONS}
    found = assess(modified, standard)
    original = assessment.resample_counts
    try:
        assessment.resample_counts = lambda n, n_resamples, seed: [np.ones((1, n))]
        values = assessment.bootstrap_assessment(modified, standard, 1)
    finally:
        assessment.resample_counts = original
    assert values.maximum[0] == pytest.approx(found.maximum)
    assert values.minimum[0] == pytest.approx(found.minimum, nan_ok=True)


def test_bootstrap_varies_the_choice_of_positions():
    # C stands at 19 of 100 in the modified quiz: many resamples rule it out.
    modified = list("C" * 19 + "E" * 81)
    standard = {p: (["C"] * 60 + ["E"] * 40 if p == "C" else ["E"] * 100) for p in POSITIONS}
    values = assessment.bootstrap_assessment(modified, standard, 2000, seed=0)
    share_without = (values.maximum == 0).mean()
    assert 0.3 < share_without < 0.7


def test_published_levels_match_but_for_one_rounded_cell():
    table = published_tables.dcq_published(n_resamples=50)
    assert len(table) == 17
    assert table["matches"].sum() == 16
    row = table.query("model == 'GPT-3.5' and dataset == 'WNLI'").iloc[0]
    assert row["min_pct"] == pytest.approx(100 * 5 / 67)
    assert published_tables.kappa_from_rounded_percentages(row, 4) == pytest.approx(7.47, abs=0.005)
    again = published_tables.dcq_published(n_resamples=50)
    pd.testing.assert_frame_equal(table, again)


def test_positions_hold_every_answer_and_the_printed_curves():
    positions = published_tables.dcq_positions()
    assert positions["count"].sum() == 7166
    printed = positions[positions["source"] == "printed"]
    assert printed["paper_count"].sum() == 300
    key = "dataset == 'AG News' and model == 'GPT-4' and quiz == 'standard' and position == 'B'"
    test_part = positions.query(key + " and split == 'test'")
    assert test_part.set_index("option")["count"].to_dict()["B"] == 91


# Appendix C


def instances_with(judge, answers_at_d):
    n = len(judge)
    return pd.DataFrame(
        {"modified_answer": ["E"] * n, "judge": judge}
        | {f"answer_at_{p}": ["E"] * n for p in "abc"}
        | {"answer_at_d": list(answers_at_d)}
    )


def test_reciprocal_row_by_hand():
    row = published_tables.reciprocal_row(
        instances_with(["exact", "near-exact", "inexact", "inexact"], ["D", "E", "D", "E"])
    )
    assert (row["n_replicas"], row["n_right_best_quiz"], row["n_right_any_quiz"]) == (2, 1, 1)
    assert row["expected_if_independent"] == 1.0
    # Hypergeometric: at least 1 of 2 replicas right when 2 of 4 are: 5 of 6.
    assert row["p_at_least_as_many"] == pytest.approx(5 / 6)
    assert row["verdict"] == RULED_OUT
    none = published_tables.reciprocal_row(instances_with(["inexact", "inexact"], "DE"))
    assert none["verdict"] == NOT_RUN and np.isnan(none["p_at_least_as_many"])
    assert none["note"] == "no instance was replicated"


def test_replicas_that_were_all_right_show_something_only_where_others_were_wrong():
    """Five of five right, where half of all are: p = 1 / 252. One of one shows nothing: p = 1/2."""
    many = instances_with(["exact"] * 5 + ["inexact"] * 5, "D" * 5 + "E" * 5)
    assert published_tables.reciprocal_row(many)["verdict"] == SHOWN
    one = published_tables.reciprocal_row(instances_with(["exact", "inexact"], "DE"))
    assert (one["verdict"], one["p_at_least_as_many"]) == (OPEN, 0.5)


def test_a_correction_for_many_pairs_takes_a_small_coincidence_back(monkeypatch):
    """Three of three right, where three of seven are: p = 1 / 35 for one pair, 2 / 35 for two."""
    rows = instances_with(["exact"] * 3 + ["inexact"] * 4, "DDDEEEE")
    names = dict.fromkeys(published_tables.PARTITION, "x")

    def words(n_pairs):
        pairs = [rows.assign(**names | {"dataset": f"{n}"}) for n in range(n_pairs)]
        monkeypatch.setattr(published_tables, "released_instances", lambda _: pd.concat(pairs))
        return published_tables.dcq_reciprocal()["verdict"].tolist()

    assert words(1) == [SHOWN] and words(2) == [OPEN] * 2


def test_released_replicas_are_recognised_no_more_often_than_others():
    table = published_tables.dcq_reciprocal()
    assert table["n_replicas"].sum() == 33
    assert table["n_right_best_quiz"].sum() == 21
    assert table["expected_if_independent"].sum() == pytest.approx(21.44, abs=0.01)


# Controls

QUIZ = pd.Series(
    {
        "dataset": "made up",
        "instance": "the cat sat here",
        "option_a": "the cat perched here",
        "option_b": "the feline sat here",
        "option_c": "the cat sat hither",
        "option_d": "The cat  sat here",
    }
)


def test_centrality_finds_the_text_that_the_others_edit():
    texts, place = controls.quiz_texts(QUIZ, "A")
    assert place == 3
    assert controls.centrality(texts).argmax() == place
    # Each edit shares 3 of 4 words with the original and 2 of 4 with each other edit.
    np.testing.assert_allclose(controls.centrality(texts), [7 / 12, 7 / 12, 7 / 12, 9 / 12])


def test_word_frequency_prefers_common_words():
    scores = controls.word_frequency(["the cat sat here", "the feline perched hither"])
    assert scores[0] > scores[1]


def test_original_replaces_the_option_at_its_position():
    free = QUIZ.replace("The cat  sat here", "the tomcat sat here")
    texts, place = controls.quiz_texts(free, "B")
    assert place == 1
    assert texts == [free.option_a, free.instance, free.option_c, free.option_d]


def test_ties_are_drawn_by_lot():
    assert controls.pick_letters(np.array([1.0, 1.0, 0.0, 0.5])) == ("AB", 0.0)
    assert controls.pick_letters(np.array([1.0, 3.0, 0.0, 0.5])) == ("B", 2.0)
    assert controls.pick_letters(np.ones(4)) == ("ABCD", 0.0)
    taken = pd.DataFrame({"position": ["A", "A", "C"], "choice": ["AB", "B", "C"]})
    assert controls.credits_of(taken).tolist() == [0.5, 0.0, 1.0]


def test_chance_of_the_best_of_several_quizzes():
    assert controls.chance_of_best(100, 1) == pytest.approx(0.25)
    rng = np.random.default_rng(0)
    simulated = rng.binomial(100, 0.25, (20_000, 3)).max(axis=1).mean() / 100
    assert controls.chance_of_best(100, 3) == pytest.approx(simulated, abs=0.001)


# Rules against models


def answered(model, dataset, at_d, modified="E", at_c=None):
    """Released answers of one model: D and, where given, C are least preferred."""
    n = len(at_d)
    others = "AB" if at_c else "ABC"
    letters = list(modified * n)[:n] if len(modified) == 1 else list(modified)
    table = {"model": model, "dataset": dataset, "index": range(n), "modified_answer": letters}
    table |= {f"answer_at_{p.lower()}": list("E" * n) for p in others}
    return pd.DataFrame(table | {"answer_at_c": list(at_c or "E" * n), "answer_at_d": list(at_d)})


def taken(dataset, control, letters, margins=None):
    """What a rule takes where the original stands at D."""
    table = {"dataset": dataset, "index": range(len(letters)), "position": "D"}
    margins = margins or [1.0] * len(letters)
    return pd.DataFrame(table | {"control": control, "choice": list(letters), "margin": margins})


def compared(choices, instances, n_resamples=2000):
    table = controls.compare_rules(choices, instances, n_resamples)
    return table.set_index(["counted", "control"])


def test_e_is_counted_in_three_ways_by_hand():
    # The model: four right, four E, two wrong, at each of A to D alike. The rule is right in six.
    instances = answered("M", "X", "DDDDEEEEAA", modified="E")
    for letter in "abc":
        instances[f"answer_at_{letter}"] = list(f"{letter.upper() * 4}EEEEDD")
    # Of the rule's four smallest margins two are right; the two of margin 3 share one place.
    choices = taken("X", "r", "DDDDDDAAAA", [9, 9, 9, 3, 1, 9, 2, 2, 3, 9])
    table = compared(choices, instances).xs("r", level="control")
    levels = table[["rule_pct", "model_pct"]]
    assert levels.loc["E wrong"].tolist() == pytest.approx([60, 40])
    assert levels.loc["E a quarter"].tolist() == pytest.approx([60, 50])
    # Left out: margins 1, 2, 2 (one right answer) and half of the pair at 3 (half a right one).
    assert levels.loc["equal coverage"].tolist() == pytest.approx([45, 40])
    assert table["n_positions"].tolist() == [4] * 3


def test_positions_are_those_that_the_modified_quiz_leaves():
    """A level is the mean over least preferred positions."""
    instances = answered("M", "X", "D" * 10, modified="AAAABBBBEE", at_c="C" * 5 + "E" * 5)
    table = compared(taken("X", "r", "D" * 10), instances).xs("r", level="control")
    assert table.loc["E wrong", ["n_positions", "model_pct"]].tolist() == [2, 75]
    # Every option of the rule's one quiz stands for both positions.
    assert table["rule_pct"].tolist() == pytest.approx([100, 75, 100])


@pytest.mark.parametrize(
    ("model_right", "rule_right", "verdict"),
    [(20, 95, RULED_OUT), (95, 20, SHOWN), (97, 97, RULED_OUT), (60, 60, OPEN)],
)
def test_verdicts_confirm_and_refute(model_right, rule_right, verdict):
    """Of a hundred quizzes so many were answered right; the 97 are the same for both."""
    rng = np.random.default_rng(1)
    model = rng.permutation(list("D" * model_right + "A" * (100 - model_right)))
    rule = rng.permutation(list("D" * rule_right + "A" * (100 - rule_right)))
    instances = answered("M", "X", model, modified="A" * 25 + "B" * 25 + "C" * 25 + "E" * 25)
    if rule_right == 97:
        rule = model.copy()
    table = compared(taken("X", "r", rule), instances)
    assert set(table["verdict"]) == {verdict}


def test_a_claim_needs_both_counts():
    """A model that mostly answers E looks bad only where E is wrong."""
    instances = answered("M", "X", "D" * 20 + "E" * 80, modified="A" * 25 + "B" * 25 + "C" * 50)
    rule = taken("X", "r", "D" * 35 + "A" * 65, [1.0] * 35 + [2.0] * 65)
    words = compared(rule, instances).xs("r", level="control")
    assert words["word"].to_dict() == {
        "E wrong": RULED_OUT,
        "equal coverage": SHOWN,  # the rule keeps its surest quizzes, wrong in them
        "E a quarter": OPEN,
    }
    assert set(words["verdict"]) == {OPEN}
    # The same rule right more often: E as a quarter rules a lead out, and alone may not claim it.
    rule = taken("X", "r", "D" * 70 + "A" * 30, [1.0] * 70 + [2.0] * 30)
    words = compared(rule, instances).xs("r", level="control")
    found = words["word"].loc[["equal coverage", "E a quarter"]].tolist()
    assert found == [SHOWN, RULED_OUT]
    assert set(words["verdict"]) == {OPEN}
    assert controls.verdict_of(pd.Series([SHOWN, SMALL])) == SHOWN
    assert controls.verdict_of(pd.Series([SHOWN, RULED_OUT])) == OPEN


def test_a_rule_that_is_worse_needs_a_corrected_test_too():
    row = {"ci_low_pct": -30.0, "ci_high_pct": -1.0, "p_as_well": 1.0}
    words = [controls.word_of(SimpleNamespace(**row, p_worse=p)) for p in (0.02, 0.03)]
    assert words == [SHOWN, OPEN]


def test_p_values_are_adjusted_over_datasets_models_and_rules():
    rng = np.random.default_rng(0)
    bias = "A" * 25 + "B" * 25 + "C" * 50

    def table(n_datasets):
        names = [f"X{k}" for k in range(n_datasets)]
        rules = [taken(d, "r", rng.permutation(list(right))) for d in names]
        models = [answered("M", d, rng.permutation(list("D" * 42 + "A" * 58)), bias) for d in names]
        return compared(pd.concat(rules), pd.concat(models))

    right = "D" * 54 + "A" * 46  # 12 points above the models
    alone, many = table(1), table(20)
    assert alone["word"].eq(RULED_OUT).all()
    assert many["difference_pct"].eq(12).all() and many["word"].eq(OPEN).any()


def word_of_interval(row):
    """The verdict that the figure's reader sees: which lines the interval lies beyond."""
    is_small = row.corrected_low_pct > -controls.RULES_CLAIM.smallest_effect + 1e-6
    if row.corrected_high_pct < -1e-6:
        return SMALL if is_small else SHOWN
    return RULED_OUT if is_small else OPEN


def test_corrected_intervals_agree_with_every_verdict():
    """Of the released answers, where Holm's correction decides some verdicts."""
    choices, answers = published.rule_choices(), published.released_instances("DCQ")
    table = controls.compare_rules(choices, answers)
    words = [word_of_interval(row) for row in table.itertuples()]
    assert words == table["word"].tolist() and len(set(words)) == 3
    assert (table["corrected_low_pct"] < table["ci_low_pct"]).any()
    assert (table["corrected_low_pct"] <= table["ci_low_pct"] + 1e-6).all()
    assert (table["corrected_high_pct"] >= table["ci_high_pct"] - 1e-6).all()
    uncorrected = table.assign(
        corrected_low_pct=table["ci_low_pct"], corrected_high_pct=table["ci_high_pct"]
    )
    words = [word_of_interval(row) for row in uncorrected.itertuples()]
    assert words != table["word"].tolist()  # the plain interval would claim more


def test_a_corrected_interval_by_hand():
    """One of 40 resamples may lie beyond each end; for three rows left, one of 120."""
    differences = np.arange(119.0)
    assert controls.corrected_interval(differences, 1, 1) == (2, 116)
    assert controls.corrected_interval(differences, 3, 0) == (0, 116)
    assert controls.corrected_interval(differences, 4, 4) == (-100, 100)


def test_rules_of_other_instances_are_refused():
    instances = answered("M", "X", "DDDD", modified="A")
    with pytest.raises(ValueError, match="some instances of X"):
        controls.compare_rules(taken("X", "r", "DDD"), instances, 10)


def three_rules(model_at_d):
    """A hundred quizzes: r is wrong in the first sixty, of which s finds six and t none."""
    instances = answered("M", "X", model_at_d, modified="A" * 25 + "B" * 25 + "C" * 50)
    rules = {"r": "A" * 60 + "D" * 40, "s": "D" * 6 + "A" * 94, "t": "A" * 60 + "D" * 40}
    choices = pd.concat([taken("X", name, letters) for name, letters in rules.items()])
    return controls.beyond_rules(choices, instances, 2000).set_index("control").loc["r"]


def test_where_a_rule_fails_the_others_are_the_bar():
    memory = three_rules("D" * 90 + "E" * 10)
    assert (memory["n_rule_wrong"], memory["right_where_rule_wrong_pct"]) == (60, 100)
    assert (memory["strongest_other"], memory["other_where_rule_wrong_pct"]) == ("s", 10)
    assert memory["difference_pct"] == 90 and memory["verdict"] == SHOWN
    taste = three_rules("A" * 60 + "D" * 40)
    assert taste["verdict"] == RULED_OUT
    assert three_rules("D" * 8 + "A" * 92)["verdict"] == RULED_OUT  # less than 10 points
    assert three_rules("D" * 9 + "A" * 91)["verdict"] == OPEN


def test_a_taker_of_some_instances_stands_beside_the_model_s_answers_to_them():
    """Of ten rows the ranking took five: two right, where the model was right five times."""
    instances = answered("M", "X", "D" * 6 + "E" * 4, modified="A" * 4 + "B" * 3 + "C" * 3)
    choices = pd.concat([taken("X", "r", "DDAAA"), taken("X", "s", "DDDDD")])
    table = controls.compare_with_released_answers(choices, instances, 500).set_index("control")
    row = table.loc["r"]
    assert (row["n"], row["model_pct"], row["control_pct"]) == (5, 100, 40)
    assert (
        row["difference_pct"] == -60 and -100 <= row["ci_low_pct"] < -60 < row["ci_high_pct"] <= 0
    )
    assert (row["n_control_wrong"], row["model_where_wrong_pct"]) == (3, 100)
    equal = table.loc["s", ["difference_pct", "ci_low_pct", "ci_high_pct", "n_control_wrong"]]
    assert equal.tolist() == [0, 0, 0, 0] and np.isnan(table.loc["s", "model_where_wrong_pct"])


def test_a_rule_that_is_never_wrong_leaves_nothing_to_say():
    instances = answered("M", "X", "D" * 20, modified="A")
    instances[["answer_at_b", "answer_at_c"]] = "E"
    choices = pd.concat([taken("X", "r", "D" * 20), taken("X", "s", "A" * 20)])
    table = controls.beyond_rules(choices, instances, 50).set_index("control")
    assert table.loc["r", ["verdict", "note"]].tolist() == [
        NOT_RUN,
        "fewer than 10 quizzes that the rule gets wrong",
    ]
    assert table.loc["s", "strongest_other"] == "r"


def test_shipped_choices_hold_every_quiz_and_no_text():
    choices = published.rule_choices()
    n = choices.drop_duplicates(["dataset", "index"]).groupby("dataset").size()
    assert n.sum() == 1035 and list(choices["control"].unique()) == list(controls.RULES)
    n_asked = 4 * n[list(published.DCQ_DATASETS[:3])].sum() + 671
    assert len(choices) == len(controls.RULES) * n_asked
    assert choices["choice"].str.fullmatch("A?B?C?D?").all() and choices["choice"].ne("").all()
    assert choices["margin"].ge(0).all()
    levels = published_tables.dcq_published(n_resamples=20)
    table = controls.control_table(choices, levels).set_index(["dataset", "control", "model"])
    assert table.loc[("DROP", "centrality", "GPT-4"), "n_quizzes"] == 3
    assert table.loc[("WNLI", "word frequency", "GPT-4"), "max_pct"] == pytest.approx(100 * 58 / 71)


@pytest.mark.mirror
def test_shipped_choices_are_those_of_the_released_quizzes():
    found = controls.rule_choices(quizzes.released_quizzes())
    pd.testing.assert_frame_equal(found, published.rule_choices(), atol=1e-6)


def test_a_taker_beside_a_clean_one_is_paired_by_instance():
    parts = [taken("X", "model", "D" * 19 + "A"), taken("X", "clean", "D" * 10 + "A" * 10)]
    parts += [taken("Y", "model", "DADADADA"), taken("Y", "clean", "ADADADAD")]
    table = controls.compare_with_clean_model(pd.concat(parts), "model", "clean", n_resamples=2000)
    assert table["n"].tolist() == [20, 8]
    assert table[["taker_pct", "clean_pct", "difference_pct"]].to_numpy().tolist() == [
        [95, 50, 45],
        [50, 50, 0],
    ]
    assert table["verdict"].tolist() == [SHOWN, OPEN]
    first = table.iloc[0]
    assert 20 < first["ci_low_pct"] < 45 < first["ci_high_pct"] < 70
    assert first["clean_low_pct"] < 50 < first["clean_high_pct"]


def test_a_correction_for_many_datasets_takes_a_small_lead_back():
    """Six quizzes of twenty more are shown on one dataset, and not on one of thirty."""

    def words(right, n_others):
        parts = [taken("X", "model", right), taken("X", "clean", "D" * 4 + "A" * 16)]
        for n in range(n_others):
            parts += [taken(f"{n}", who, "DADADADA") for who in ("model", "clean")]
        return controls.compare_with_clean_model(pd.concat(parts), "model", "clean", (), 500)[
            "verdict"
        ][0]

    assert [words("D" * 8 + "A" * 12, n) for n in (0, 29)] == [SHOWN, OPEN]
    assert [words("D" * 18 + "A" * 2, n) for n in (0, 29)] == [SHOWN] * 2


@pytest.mark.parametrize(
    ("on_unread", "holds", "verdict"),
    [("D" * 10 + "A" * 10, True, SHOWN), ("D" * 19 + "A", False, CONTROL_FAILS)],
)
def test_a_taker_ahead_on_quizzes_that_nobody_read_has_shown_no_memory(on_unread, holds, verdict):
    """Twenty quizzes that the taker may have read, and twenty others."""
    parts = [taken("X", "model", "D" * 19 + "A"), taken("X", "clean", "D" * 2 + "A" * 18)]
    parts += [taken("new", "model", on_unread), taken("new", "clean", "D" * 10 + "A" * 10)]
    table = controls.compare_with_clean_model(pd.concat(parts), "model", "clean", ["new"], 2000)
    table = table.set_index("dataset")
    assert table["verdict"].to_dict() == {"X": verdict, "new": ""}
    assert table.loc["new", "holds"] == holds and table["holds"].isna()["X"]


# Figure 2


def answers_there(chosen, n=100, n_others=0):
    """How often the position of the original was chosen in each quiz, of ``n``."""
    still = dict.fromkeys(["modified", "standard", "second perturbation"], 5)
    rows = [
        {"panel": panel, "quiz": quiz, "is_there": is_there, "answers": k if is_there else n - k}
        for panel, of_panel in [("P", chosen), *[(f"{n}", still) for n in range(n_others)]]
        for quiz, k in of_panel.items()
        for is_there in (True, False)
    ]
    return quizzes.moves_table(pd.DataFrame(rows)).iloc[0]


@pytest.mark.parametrize(
    ("standard", "second", "verdict"),
    [
        (60, 5, SHOWN),
        (60, 55, CONTROL_FAILS),  # another text there draws the answers as well
        (6, 5, RULED_OUT),
        (11, 5, OPEN),
    ],
)
def test_answers_move_to_the_original_and_to_nothing_else(standard, second, verdict):
    found = answers_there({"modified": 5, "standard": standard, "second perturbation": second})
    assert (found["rise_pct"], found["verdict"]) == (pytest.approx(standard - 5), verdict)


def test_a_correction_for_many_panels_takes_a_small_move_back():
    """Nine answers of a hundred more are shown in one panel, and not in one of thirty."""
    small = {"modified": 5, "standard": 15, "second perturbation": 0}
    large = small | {"standard": 60}
    words = [[answers_there(of, n_others=n)["verdict"] for n in (0, 29)] for of in (small, large)]
    assert words == [[SHOWN, OPEN], [SHOWN, SHOWN]]


def test_without_the_control_s_answers_there_is_no_verdict():
    found = answers_there({"modified": 5, "standard": 90})
    assert (found["verdict"], found["rise_pct"]) == (NOT_RUN, pytest.approx(85))
    assert "not released" in found["note"]
