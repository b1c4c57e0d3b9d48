"""What the lesson and the lab conclude follows their tables, and turns where the tables turn."""

import pandas as pd
import pytest

from contamination.core.verdicts import INCONCLUSIVE, NOT_RUN, NOT_SUPPORTED, SUPPORTED
from contamination.data import published
from contamination.dcq import (
    comparison,
    conclusions,
    controls,
    known_truth,
    lesson_findings,
    published_tables,
)
from contamination.dcq.respondent_sweep import RANGE_READING


@pytest.fixture(scope="module")
def levels():
    return published_tables.dcq_published(n_resamples=20)


@pytest.fixture(scope="module")
def answers():
    return published.released_instances("DCQ")


@pytest.fixture(scope="module")
def rules(answers):
    return comparison.compare_rules(published.rule_choices(), answers)


def test_the_lesson_concludes_what_its_tables_show(levels, rules):
    text = conclusions.conclusion(levels, rules)
    assert text.startswith("We reproduce the paper's numbers for 16 of 17 pairs of model and data")
    assert "best on the other datasets: the one that picks the text whose words are most co" in text
    assert "GPT-4 is shown to beat it on two of ten datasets (AG News and XSum)" in text
    assert "GPT-3.5 is not shown to beat it on any of seven" in text
    assert (
        "Against GPT-4, the rule does as well, to within five points, on one of ten datasets "
        "(IMDB), and the comparison is inconclusive on seven. Against GPT-3.5, the rule does as "
        "well, to within five points, on three of seven datasets (IMDB, Yelp and WNLI), and" in text
    )
    assert "Where GPT-4 is ahead, it may remember the rows. But a better rule" in text
    assert "on most datasets the answers do not show that GPT-4 remembers" in text
    assert "GPT-4 may have seen the dataset" in text
    assert max(len(paragraph.split()) for paragraph in text.split("\n\n")) <= 120
    predicted = lesson_findings.predicted_verdicts(rules)
    assert predicted.startswith("Of ten datasets, the claim is supported on one (IMDB), not sup")
    assert "not supported on two (AG News and XSum) and inconclusive on seven." in predicted


def test_a_model_that_always_beats_the_rule_is_said_to_know_more(levels, rules):
    ahead = rules.assign(verdict=NOT_SUPPORTED)
    text = conclusions.conclusion(levels, ahead)
    assert "GPT-4 is shown to beat it on ten of ten" in text
    assert "GPT-3.5 is shown to beat it on seven of seven" in text
    assert "does not explain what GPT-4 knows" in text
    assert "remembers anything" not in text and "inconclusive" not in text
    assert "does as well" not in text
    assert "supported on none, not supported on ten" in lesson_findings.predicted_verdicts(ahead)


def test_most_datasets_are_not_all_and_none_is_not_some(levels, rules):
    one = rules["dataset"] == "IMDB"
    most = rules.assign(verdict=rules["verdict"].mask(~one, NOT_SUPPORTED))
    text = conclusions.conclusion(levels, most)
    assert "on most datasets GPT-4 knows more than this rule" in text
    assert "remembers anything" not in text
    text = conclusions.conclusion(levels, rules.assign(verdict=INCONCLUSIVE))
    assert (
        "on no dataset do the answers show" in text
        and "Against GPT-4, the comparison is inconclusive on ten of ten datasets." in text
    )
    assert "beat it on any of ten" in text


@pytest.fixture(scope="module")
def rule_levels(levels):
    return controls.control_table(published.rule_choices(), levels)


def test_averages_say_who_finds_more(levels, rule_levels):
    text = lesson_findings.averages(levels, rule_levels)
    start = "At its best letter, and averaged over ten datasets, GPT-4 finds 72 % of the originals."
    assert text.startswith(start)
    assert "The best rule, word frequency, finds as many." in text
    is_length = rule_levels["control"].eq("length")
    ahead = rule_levels.assign(max_pct=rule_levels["max_pct"].mask(is_length, 90.0))
    assert "The best rule, length, finds more, 90 %." in lesson_findings.averages(levels, ahead)
    behind = rule_levels.assign(max_pct=40.0)
    assert "finds fewer, 40 %." in lesson_findings.averages(levels, behind)


def test_the_readers_quizzes_are_told_by_their_best_rule():
    found = {"you": float("nan"), "rule: centrality": 4.0, "rule: word frequency": 1.5}
    said = lesson_findings.own_quizzes(found, 5, [True, True, False])
    assert said.startswith("In your five quizzes, centrality is the best rule. Word frequency fin")
    assert "in both directions: 2 of its 3 rewrites have more common words" in said
    assert "both directions" not in lesson_findings.own_quizzes(found, 5, [False, False, False])
    said = lesson_findings.own_quizzes(found | {"rule: word frequency": 5.0}, 5, [True, False])
    assert said == "In your five quizzes, word frequency is the best rule."


def test_the_best_letter_is_the_one_with_the_most_originals(answers):
    said = lesson_findings.best_letter(answers, "IMDB")
    assert "in IMDB, GPT-4 finds 82 % at B, 79 % at C and 71 % at D. So its best letter" in said
    assert said.endswith("there is B, and its result is 82 %.")
    turned = answers.assign(
        answer_at_b=answers["answer_at_b"].mask(answers["answer_at_b"] > "", "E")
    )
    assert lesson_findings.best_letter(turned, "IMDB").endswith(
        "there is C, and its result is 79 %."
    )


def test_dots_to_the_right_of_the_rule_are_counted(levels, rule_levels):
    said = lesson_findings.lead_at_best_letter(levels, rule_levels)
    assert said.startswith("GPT-4's dot is ahead of word frequency on 5 of 10 datasets.")
    nowhere = lesson_findings.lead_at_best_letter(levels.assign(max_pct=0.0), rule_levels)
    assert "on 0 of 10 datasets" in nowhere


def test_a_level_is_told_next_to_what_the_rule_finds(levels, rule_levels):
    said = lesson_findings.beside_a_level(levels, rule_levels, "IMDB")
    assert "a contamination level of 81.8 to 82.0 % on IMDB" in said
    assert said.endswith("it finds 100 % of the originals, more than GPT-4.")
    behind = rule_levels.assign(max_pct=30.0)
    said = lesson_findings.beside_a_level(levels, behind, "IMDB")
    assert said.endswith("it finds 30 % of the originals, fewer than GPT-4.")
    same = rule_levels.assign(max_pct=82.0)
    assert lesson_findings.beside_a_level(levels, same, "IMDB").endswith("as many as GPT-4.")


def test_rewrites_are_rarer_only_where_the_original_is_the_most_common():
    choices = published.rule_choices()
    said = lesson_findings.original_is_most_common(choices)
    assert "in 72 % of the quizzes (mean over ten datasets, from 49 % on HumanEval to 100 %" in said
    assert said.endswith("So the rewrites by GPT-4 do tend to use rarer words.")
    tied = choices.assign(choice="ABCD")
    said = lesson_findings.original_is_most_common(tied)
    assert "in 25 % of the quizzes" in said and "rarer" not in said
    assert said.endswith("The share is higher than that on none of ten datasets.")


def test_the_answer_e_explains_a_lead_in_the_figure_without_a_verdict(rules):
    example = lesson_findings.decided_by_answer_e(rules)
    assert example["counted"].tolist() == list(lesson_findings.COUNTED_AS)
    assert example["difference_pct"].round().tolist() == [31, 0, 22]
    text = lesson_findings.example_of_answer_e(example)
    assert text.startswith("On WNLI, the first figure shows the rule 31 points ahead of GPT-4, and")
    assert "verdict is inconclusive. The reason is that GPT-4 answers 49 % of the quizzes" in text
    for other in (rules.assign(word=SUPPORTED), rules.assign(difference_pct=-1.0)):
        example = lesson_findings.decided_by_answer_e(other)
        assert example.empty and not lesson_findings.example_of_answer_e(example)


def test_only_the_rule_that_was_chosen_elsewhere_counts(levels, rules):
    """Of the other rules any verdict may be printed: the sentence is not about them."""
    other = rules.assign(verdict=rules["verdict"].where(rules["chosen_on_others"], NOT_SUPPORTED))
    assert conclusions.conclusion(levels, other) == conclusions.conclusion(levels, rules)


@pytest.mark.parametrize(
    ("n_same", "said", "unsaid"),
    [
        (17, "the numbers of all 17 pairs", "last printed digit"),
        (3, "cannot confirm the paper's arithmetic", "is right"),
    ],
)
def test_arithmetic_is_called_right_only_where_it_is(levels, rules, n_same, said, unsaid):
    table = levels.assign(matches=[row < n_same for row in range(len(levels))])
    text = conclusions.conclusion(table, rules)
    assert said in text and unsaid not in text


# Figure 2


def test_the_title_of_figure_2_counts_panels_that_have_a_control():
    verdicts = [SUPPORTED, NOT_RUN, NOT_RUN, INCONCLUSIVE]
    title = conclusions.moves_title(pd.DataFrame({"verdict": verdicts}))
    assert title == "Answers follow the original in 1 of 2 panels with a control"


# The lab


def lab_of(max_pct=33.0):
    about = {"respondent": known_truth.RESPONDENT, "dataset": "topics"}
    rows = [
        (known_truth.WITH_LABEL, 12, 100.0, max_pct),
        (known_truth.WITH_LABEL, 3, 100.0, 5.0),
        (known_truth.UNSEEN, 0, 0.0, 2.0),
    ]
    columns = ["condition", "copies", "true_contamination_pct", "max_pct"]
    return pd.DataFrame(rows, columns=columns).assign(**about)


def readings_of(side="below", verdict=SUPPORTED, others=INCONCLUSIVE):
    rows = [(RANGE_READING, side, verdict), *[("other", "x", others)] * 3]
    return pd.DataFrame(rows, columns=["reading", "stated", "verdict"])


def rises_of(verdict=SUPPORTED):
    return pd.DataFrame({"rise_pct": [20.0, 58.6, -5.0], "verdict": [verdict] * 2 + [INCONCLUSIVE]})


def covered_of(*shares):
    table = pd.DataFrame({"bias_profile": ["even", "A or E", "GPT-4, as released"]})
    return table.assign(covered_share=shares, mean_miss_pct=[10.13, 0.1, 1.15])


@pytest.fixture(scope="module")
def replicas():
    return published_tables.dcq_reciprocal()


@pytest.fixture(scope="module")
def beyond(answers):
    return comparison.beyond_rules(published.rule_choices(), answers)


def test_the_lab_concludes_what_its_tables_show(replicas, beyond):
    tables = lab_of(), readings_of(), rises_of(), covered_of(0.2, 0.1, 0.9), replicas, beyond
    text = conclusions.lab_conclusion(*tables)
    assert text.startswith("For most sets of rows that were seen with their labels, the range lies")
    assert "the range lies below the truth, at every setting" in text
    assert "With 12 copies of each row the true level is 100 %" in text
    assert "a maximum of 33 %, and rows" in text and "never saw 2 % (means over" in text
    assert "Of four findings on these models, only one is the same" in text
    assert "as our dial makes them, they give the original away: two of three resp" in text
    assert "up to 59 points" in text
    assert "for only one of three answer habits. How much this matters" in text
    assert "is 1.1 points from the truth with that of GPT-4, and 10.1 points with “even”" in text
    assert "At the best letter, this is refuted for five of nine pairs" in text
    assert "(for three if a right answer at any letter counts)" in text
    assert "beat every other rule on one of nine datasets (XSum). So these rules do not" in text
    assert "Memory is one explanation." in text
    assert max(len(paragraph.split()) for paragraph in text.split("\n\n")) <= 120


def test_the_lab_says_the_opposite_where_the_tables_do(replicas, beyond):
    right = replicas.assign(verdict=replicas["verdict"].replace(NOT_SUPPORTED, SUPPORTED))
    behind = beyond.assign(verdict=beyond["verdict"].replace(SUPPORTED, INCONCLUSIVE))
    text = conclusions.lab_conclusion(
        lab_of(95.0),
        readings_of("above", INCONCLUSIVE),
        rises_of(NOT_SUPPORTED),
        covered_of(0.9, 0.8, 0.7),
        right,
        behind,
    )
    assert "the range lies above the truth, but not so at every setting" in text
    assert "maximum of 95 %" in text and "only none" not in text
    assert "have not shown that natural paraphrases" in text and "up to" not in text
    assert "has a fault" not in text and "points from the truth" not in text
    assert "for all answer habits" in text and "for only" not in text
    assert "refuted for no pair" in text and "supported for five of nine" in text
    assert "every other rule on no dataset" in text and "one explanation" not in text


def test_a_range_that_never_contains_the_truth_and_replicas_that_are_right_somewhere(
    replicas, beyond
):
    everywhere = replicas.assign(n_right_any_quiz=replicas["n_replicas"])
    tables = lab_of(), readings_of(), rises_of(), covered_of(0.2, 0.1, 0.3), everywhere, beyond
    text = conclusions.lab_conclusion(*tables)
    assert "in most partitions for none of three answer habits" in text
    assert "(for none if a right answer at any letter counts)" in text


def test_levels_are_told_with_the_label_and_without_it():
    conditions = [known_truth.WITH_LABEL, known_truth.WITHOUT_LABEL, known_truth.WRONG_LABEL]
    index = pd.MultiIndex.from_tuples(
        [(known_truth.WITH_LABEL, 3), *((condition, 12) for condition in conditions)],
        names=["condition", "copies"],
    )
    levels = pd.DataFrame({"max_pct": [5.0, 29.0, 35.0, 37.0]}, index=index)
    text = conclusions.levels_found(0, levels, 50)
    assert text.startswith("The range contains the true level in 0 of 4 row sets. Rows seen 12 ti")
    assert "29 % with their label, 35 % without it and 37 % with a wrong one" in text
    assert text.endswith("chance alone can move the level of one model by up to 14 points.")
    turned = levels.assign(max_pct=[5.0, 90.0, 1.0, 2.0])
    text = conclusions.levels_found(4, turned, 500)
    assert "in 4 of 4" in text and "90 % with their label, 1 % without it and 2 %" in text
    assert text.endswith("by up to 4 points.")


def test_findings_that_are_all_robust_may_be_transferred(replicas, beyond):
    tables = rises_of(), covered_of(0.2, 0.1, 0.9), replicas, beyond
    text = conclusions.lab_conclusion(lab_of(), readings_of(others=SUPPORTED), *tables)
    assert (
        "All four findings on these models are the same" in text and "do not transfer" not in text
    )
