"""The quiz's rules, its bootstrap, its controls and its sentences."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination import plots, published
from contamination.dcq import assessment, controls, findings, published_tables, reciprocal
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


def test_a_single_least_preferred_position_has_no_second():
    found = assess(list("AABBCCDEEE"), {"D": list("DDDDDDEEEE")})
    assert np.isnan(found.second)
    assert found.minimum == found.kappa == pytest.approx(5 / 9)


def test_negative_kappa_shows():
    assert assess(list("AABBCCDDEE"), all_positions("EEEEEEEEEE")).kappa == -0.25


def test_tie_goes_to_the_smaller_bias():
    standard = {"B": list("BBBEEEEEEE"), "C": list("CCCEEEEEEE"), "D": list("EEEEEEEEEE")}
    assert assess(list("AAAAAABEEE"), standard).best_position == "C"


def test_unusable_answers_stay_in_the_denominator():
    standard = {p: [p, p, p, "", "x"] for p in "ABCD"}
    found = assess(["E", "", "prose", None, "E"], standard)
    assert found.n == 5
    assert found.maximum == 0.6


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
    original = assessment._resample_counts
    try:
        assessment._resample_counts = lambda n, n_resamples, seed: [np.ones((1, n))]
        values = assessment.bootstrap_assessment(modified, standard, 1)
    finally:
        assessment._resample_counts = original
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
    row = reciprocal.reciprocal_row(
        instances_with(["exact", "near-exact", "inexact", "inexact"], ["D", "E", "D", "E"])
    )
    assert (row["n_replicas"], row["n_right_best_quiz"], row["n_right_any_quiz"]) == (2, 1, 1)
    assert row["expected_if_independent"] == 1.0
    # Hypergeometric: at least 1 of 2 replicas right when 2 of 4 are: 5 of 6.
    assert row["p_at_least_as_many"] == pytest.approx(5 / 6)


def test_reciprocal_sentence_confirms_and_refutes():
    def table(answers):
        row = reciprocal.reciprocal_row(instances_with(["exact", "inexact"], answers))
        return pd.DataFrame([row | {"dataset": "X"}, row | {"dataset": "Y"}])

    assert "This confirms the paper" in findings.reciprocal_sentence(table("DE"))
    refuting = findings.reciprocal_sentence(table("ED"))
    assert "2 replicas were right in no quiz" in refuting
    assert "Without X, which holds most replicas, 0 of 1 are right" in refuting
    assert "neither refuted nor shown" in refuting
    none = table("DE").assign(n_replicas=0)
    assert "nothing to compare" in findings.reciprocal_sentence(none)


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
    assert controls.credit(np.array([1.0, 1.0, 0.0, 0.0]), 0) == 0.5
    assert controls.credit(np.array([1.0, 2.0, 0.0, 0.0]), 0) == 0.0


def test_chance_of_the_best_of_several_quizzes():
    assert controls.chance_of_best(100, 1) == pytest.approx(0.25)
    rng = np.random.default_rng(0)
    simulated = rng.binomial(100, 0.25, (20_000, 3)).max(axis=1).mean() / 100
    assert controls.chance_of_best(100, 3) == pytest.approx(simulated, abs=0.001)


def control_rows(max_pct, low, paper):
    return pd.DataFrame(
        [
            {"dataset": d, "control": "centrality", "chance_pct": 25.0, "max_pct": max_pct}
            | {"ci_low_pct": low, "model": "GPT-4", "paper_max_pct": paper}
            for d in ("X", "Y")
        ]
    )


def test_control_sentence_confirms_and_refutes():
    at_chance = findings.control_sentence(control_rows(25.0, 17.0, 80.0))
    assert "No rule stands above chance" in at_chance
    assert "in 0 of 2 datasets of GPT-4" in at_chance
    solved = findings.control_sentence(control_rows(90.0, 83.0, 80.0))
    assert "in 2 of 2 datasets of GPT-4" in solved
    assert "no proof of memory" in solved


def test_beyond_rules_by_hand():
    # The longest text is the original in the first two quizzes, not in the last two.
    long, short = "one two three four five", "one two"
    rows = [
        {"dataset": "X", "instance": text, "option_d": text}
        | {f"option_{p}": f"{p} b c" for p in "abc"}
        for text in (long, long + " six", short, short + " three")
    ]
    quizzes = pd.DataFrame(rows).assign(dataset="X")
    answers = instances_with(["inexact"] * 4, "DEDD").assign(model="M", dataset="X")
    table = controls.beyond_rules(quizzes, answers).set_index("control").loc["length"]
    assert (table["n"], table["n_answered_none"], table["max_pct"]) == (4, 1, 75.0)
    assert table["right_when_chosen_pct"] == 100.0
    # Quiz 4 is a tie of all four texts: right by a chance of one in four.
    assert table["n_rule_right"] == 2.25
    assert table["right_where_rule_right_pct"] == pytest.approx(100 * 1.25 / 2.25)
    assert table["right_where_rule_wrong_pct"] == 100.0


def test_beyond_rules_sentence_confirms_and_refutes():
    row = {"model": "M", "dataset": "X", "control": "length", "n": 100, "n_rule_right": 50.0}
    row |= {"n_rule_wrong": 50.0, "right_where_rule_right_pct": 90.0, "right_when_chosen_pct": 85.0}
    memory = pd.DataFrame([row | {"right_where_rule_wrong_pct": 80.0}])
    text = findings.beyond_rules_sentence(memory, "length")
    assert "M in 1 of 1 datasets" in text
    assert "+10 points more often" in text
    assert "in 1 of 1 pairs" in text
    taste = memory.assign(right_where_rule_wrong_pct=5.0, right_when_chosen_pct=40.0)
    text = findings.beyond_rules_sentence(taste, "length")
    assert "M in 0 of 1 datasets" in text
    assert "in 0 of 1 pairs" in text
    few = memory.assign(n_rule_wrong=2.0)
    assert "Too few quizzes" in findings.beyond_rules_sentence(few, "length")


def test_audit_counts_what_gives_the_original_away():
    breaks = QUIZ.to_dict() | {"instance": "the cat\nsat here", "option_d": "the cat sat there"}
    audit = controls.audit_options(pd.DataFrame([QUIZ.to_dict(), breaks])).iloc[0]
    assert audit["n_option_d_is_original"] == 1
    assert audit["n_line_breaks_alone"] == 1
    clean = pd.DataFrame([{"dataset": "X", "n": 9, "n_option_d_is_original": 0}])
    clean = clean.assign(n_line_breaks_alone=0)
    assert "In no dataset" in findings.audit_sentence(clean)
    leaky = clean.assign(n_option_d_is_original=9)
    assert "In all 9 rows of 1 datasets (X)" in findings.audit_sentence(leaky)


def test_position_sentence_confirms_and_refutes():
    positions = published_tables.dcq_positions()
    panels = [("AG News", "train", "B"), ("WNLI", "validation", "B")]
    text = findings.position_sentence(positions, panels)
    assert "AG News train: 0 to 88 answers at B" in text
    assert "WNLI validation: 0 to 33 answers at B" in text
    assert "as the paper reports" in text
    still = positions.assign(count=5, paper_count=5)
    assert "against what the paper reports" in findings.position_sentence(still, panels)


def test_interval_sentence_names_fragile_rows_or_none():
    table = published_tables.dcq_published(n_resamples=300)
    assert "GPT-3.5 on IMDB" in findings.interval_sentence(table)
    firm = table.assign(ci_low_pct=table["max_pct"] - 1, ci_high_pct=table["max_pct"] + 1)
    assert "No row is wider" in findings.interval_sentence(firm)


def test_figures_show_every_row_and_are_not_left_open():
    import matplotlib.pyplot as plt

    levels = published_tables.dcq_published(n_resamples=20)
    figure = plots.quiz_levels(levels)
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels == list(published.DCQ_DATASETS)
    panels = [("AG News", "train", "B"), ("AG News", "test", "B")]
    figure = plots.quiz_positions(published_tables.dcq_positions(), panels)
    assert [len(axis.patches) for axis in figure.axes] == [15, 10]
    assert not plt.get_fignums()


@pytest.mark.mirror
def test_rules_take_the_released_quizzes():
    from contamination.dcq.released import released_quizzes

    quizzes = released_quizzes()
    assert len(quizzes) == 1035
    audit = controls.audit_options(quizzes).set_index("dataset")
    wild = audit.loc[list(published.WILD_DATASETS)]
    assert (wild["n_option_d_is_original"] == wild["n"]).all()
    assert audit.loc["HumanEval", "n_line_breaks_alone"] == 12
    levels = published_tables.dcq_published(n_resamples=20)
    small = quizzes[quizzes["dataset"].isin(["WNLI", "DROP"])]
    table = controls.control_table(small, levels).set_index(["dataset", "control", "model"])
    assert table.loc[("DROP", "centrality", "GPT-4"), "n_quizzes"] == 3
    assert table.loc[("WNLI", "word frequency", "GPT-4"), "max_pct"] == pytest.approx(100 * 58 / 71)
