"""What is said about the replication: from the tables, and from tables that say the opposite."""

import pandas as pd
import pytest
from released_tables import time_travel

from contamination.core.verdicts import (
    CONTROL_FAILS,
    INCONCLUSIVE,
    NOT_RUN,
    NOT_SUPPORTED,
    SUPPORTED,
)
from contamination.replication import asterisks, conclusions, decisions, published_tables
from contamination.replication.algorithm2 import operating_curves
from contamination.replication.published_tables import PRINTED_TESTS


@pytest.fixture(scope="module")
def tests():
    return time_travel().tests


@pytest.fixture(scope="module")
def success():
    return time_travel().success


@pytest.fixture(scope="module")
def agreement():
    return published_tables.judge_agreement(time_travel().judged)


@pytest.fixture(scope="module")
def marks():
    return time_travel().marks


def with_verdicts(success, **verdicts):
    """Other verdicts on the paper's algorithms: of the judge, and of the two scores."""
    changed = success.copy()
    for test, verdict in zip(PRINTED_TESTS, (verdicts["scores"], verdicts["judge"]), strict=True):
        changed.loc[changed["test"].eq(test), "verdict"] = verdict
    return changed


# The lesson


def test_the_first_figure_names_the_algorithms_that_beat_a_constant_answer(success):
    title = conclusions.title_of_decisions
    assert title(success) == "Only Algorithm 2 is shown to beat the control"
    none = with_verdicts(success, judge=INCONCLUSIVE, scores=NOT_SUPPORTED)
    assert title(none) == "No algorithm is shown to beat the control"
    every = with_verdicts(success, judge=SUPPORTED, scores=SUPPORTED)
    assert title(every) == "Every algorithm beats the control"
    scores = with_verdicts(success, judge=INCONCLUSIVE, scores=SUPPORTED)
    two = "Only Algorithm 1: BLEURT and Algorithm 1: ROUGE-L are shown to beat the control"
    assert title(scores) == two


def test_headline_of_decisions(success):
    text = conclusions.summarize_decisions(success)
    assert text.startswith(
        "Always answering “clean” gives the person's decision in 20 of 28 cases."
    )
    assert text.endswith(
        "20 for Algorithm 1 with ROUGE-L and 27 for Algorithm 2 with GPT-4 as the judge."
    )


def test_headline_of_tests(tests):
    text = asterisks.summarize_tests(tests)
    assert text.startswith("Algorithm 1 runs 56 tests, and its result depends on the kind of test")
    assert "significantly in 24 of them, and by the exact sign-flip test in 18." in text
    assert "There are too few instances: the smallest possible p-value is 1/1,024, and" in text
    assert text.endswith("the correction asks for 1/1,120.")
    powerful = tests.assign(can_reject=True)
    text = asterisks.summarize_tests(powerful)
    assert text.endswith("in 18. Of the latter, 0 remain after a correction for 56 tests.")
    names = [name for name in tests if name.startswith("significant_")]
    same = powerful.assign(**{name: tests["significant"] for name in names})
    text = asterisks.summarize_tests(same)
    assert "in 24 of them, both by the paper's paired bootstrap and by the exact" in text
    assert text.endswith("corrected or not.") and "depends" not in text


def test_the_title_leaves_out_a_count_that_could_only_be_zero(tests):
    title = asterisks.title_of_asterisks
    by_test = published_tables.asterisks_by_test(tests)
    assert (
        title(by_test)
        == "The number of asterisks depends on the test: 12 to 24 where any is possible"
    )
    powerful = published_tables.asterisks_by_test(tests.assign(can_reject=True))
    assert title(powerful) == "The number of asterisks depends on the test: 0 to 24"
    assert title(powerful.assign(n_marked=7)) == "7 asterisks under every test"


def test_exact_completions_are_counted_with_the_name_and_without():
    guided = pd.Series([True] * 7 + [False] * 13)
    none = pd.Series([False] * 20)
    text = conclusions.summarize_exact(guided, none)
    assert text == (
        "Of 20 completions, 7 are right word for word if the instruction names the dataset, and "
        "none if it does not (two-sided exact test: p = 0.016). So more rows are recited under the "
        "guided instruction."
    )
    assert "So fewer rows are recited" in conclusions.summarize_exact(none, guided)
    for other in (guided, none):
        assert "too small a difference" in conclusions.summarize_exact(other, other)


@pytest.mark.parametrize(
    ("flips", "said"), [(18, "18 asterisks, fewer than"), (24, "as many as"), (30, "more than")]
)
def test_the_prediction_on_asterisks_is_answered(flips, said):
    by_test = pd.DataFrame({"test": ["paired bootstrap", "sign flips", "paired bootstrap, Holm"]})
    text = asterisks.asterisks_left(by_test.assign(n_marked=[24, flips, 12]))
    assert said in text and text.endswith("the paired bootstrap gives 12.")


def test_cases_with_and_without_the_name_are_counted_by_the_rule_judge(marks):
    text = conclusions.summarize_names(marks)
    assert "calls 7 of 28 cases contaminated if the instruction names the dataset, and 1 if" in text
    assert text.endswith(
        "So more cases are called contaminated under the guided instruction. The decision differs "
        "in 6 cases, always in this direction (exact test: p = 0.031)."
    )
    none = marks.assign(mark=marks["mark"].where(marks["instruction"].eq("guided"), "×"))
    assert "and none if it does not." in conclusions.summarize_names(none)
    swapped = {"guided": "general", "general": "guided"}
    text = conclusions.summarize_names(marks.assign(instruction=marks["instruction"].map(swapped)))
    assert "1 of 28 cases" in text and "So fewer cases are called contaminated" in text
    for same in (marks.assign(mark="×"), marks.assign(mark="✓")):
        assert "too small a difference" in conclusions.summarize_names(same)


def test_conclusion_of_the_lesson(success, tests, agreement, marks):
    text = conclusions.conclusion(success, tests, agreement, marks)
    assert text.startswith(
        "GPT-4 wrote some rows of the benchmarks word for word, and GPT-3.5 wrote"
    )
    assert "calls 7 of 280 completions an exact match and 13 of them a near-exact match." in text
    assert "does so in 20 of 28 cases. Only Algorithm 2 with GPT-4 as the judge (27) is" in text
    assert "We cannot show this for Algorithm 1 with BLEURT (20) or" in text
    assert "The comparison favours the judge" in text
    assert "For GPT-3.5 alone, the person calls 1 of 14 cases contaminated. The judge" in text
    assert "agrees with the person in 13 of the 14, and so does always answering “clean”." in text
    assert "It remains open whether the judge and the person agree on most" in text
    assert "calls 13 completions near-exact, and the judge 12. They agree on 7 of" in text
    assert "find a significant effect anywhere, even if the models remembered every row" in text


def test_conclusion_of_the_opposite_tables(success, tests, agreement, marks):
    none = with_verdicts(success, judge=NOT_SUPPORTED, scores=NOT_SUPPORTED)
    powerful = tests.assign(can_reject=True)
    inexact = marks.assign(n_exact=0)
    text = conclusions.conclusion(none, powerful, agreement.assign(verdict=SUPPORTED), inexact)
    assert text.startswith("GPT-4 and GPT-3.5 wrote no row word for word.")
    assert "calls none of 280 completions an exact match" in text
    assert "No algorithm of the paper is shown to do better than that: Algorithm 1" in text
    assert (
        "Only" not in text and "favours" not in text and "significant effect anywhere" not in text
    )
    assert "The judge and the person agree on most" in text and "remains open" not in text
    scores = with_verdicts(success, judge=INCONCLUSIVE, scores=SUPPORTED)
    text = conclusions.conclusion(scores, tests, agreement.assign(verdict=NOT_SUPPORTED), marks)
    assert "Only Algorithm 1 with BLEURT (20) and Algorithm 1 with ROUGE-L (20) are shown" in text
    assert "cannot show this for Algorithm 2" in text and "favours the judge" not in text
    assert "The judge and the person disagree on most of the near-exact completions." in text
    every = with_verdicts(success, judge=SUPPORTED, scores=SUPPORTED)
    text = conclusions.conclusion(every, tests, agreement.assign(verdict=NOT_RUN), marks)
    assert "All algorithms of the paper are shown to do better: Algorithm 1" in text
    assert "on each model by itself, too." in text and "few contaminated" not in text
    assert "Too few completions are near-exact" in text


def test_a_judge_that_does_better_than_the_answer_clean_is_not_said_to_equal_it(
    success, tests, agreement, marks
):
    better = success.copy()
    is_judge = better["model"].eq("GPT-3.5") & better["test"].eq("judge")
    better.loc[is_judge, "n_right"] = 14
    text = conclusions.conclusion(better, tests, agreement, marks)
    assert "agrees with the person in 14 of the 14, and always answering “clean” in 13." in text


# The lab


def methods(*rows):
    """``method_verdicts`` of partitions flagged: (method, clean of 12, then of 3 at each dose)."""
    doses = [
        {"method": method, "instruction": "guided", "copies": copies}
        | {"n_partitions": 3 if copies else 12, "n_flagged": n}
        for method, *flagged in rows
        for copies, n in zip((0, 4, 16), flagged, strict=True)
    ]
    return decisions.method_verdicts(pd.DataFrame(doses))


def lab_of(n_placebo, mean_placebo):
    """``placebo_verdicts`` of 20 partitions in which guided beats general by 0.4."""
    rows = [
        {"dataset": f"d{number}", "split": "train", "method": "Algorithm 1", "metric": "ROUGE-L"}
        | {"test": "paired bootstrap", "instruction": instruction, "mean_guided": 0.9}
        | {"mean": mean, "contaminated": number < n}
        for number in range(20)
        for instruction, mean, n in (
            ("general", 0.5, 20),
            ("wrong dataset", mean_placebo, n_placebo),
            ("wrong split", mean_placebo, n_placebo),
        )
    ]
    return decisions.placebo_verdicts(pd.DataFrame(rows))


FINDS = ("option ranking", 0, 3, 3), ("Algorithm 2, rule judge", 0, 0, 3)
FINDS_NOT = ("Algorithm 1, ROUGE-L, sign flips", 0, 0, 0)
ALARMS = ("Did-ChatGPT-Cheat?", 9, 3, 3)


def test_conclusion_of_the_lab():
    table, curves = methods(*FINDS, FINDS_NOT, ALARMS), operating_curves(0.35)
    assert table["verdict"].tolist() == [SUPPORTED, SUPPORTED, INCONCLUSIVE, CONTROL_FAILS]
    text = conclusions.lab_conclusion(table, lab_of(0, 0.8), curves)
    assert "supported for option ranking (is the original likelier than its paraphrases?)" in text
    assert "and Algorithm 2 (guided completions)." in text
    assert "copies is option ranking: it notices at least half of the partitions from 4" in text
    assert "The claim is not shown for Algorithm 1 (sign flips)." in text
    assert "We cannot judge Did-ChatGPT-Cheat? (can the model write the first rows?)," in text
    assert "The right name matters little. In 20 partitions the completions" in text
    assert "a wrong dataset keeps 75 % and a wrong split keeps 75 % of the gain. So at" in text
    # 1 - 0.95^10 - 10 x 0.05 x 0.95^9 is 0.086.
    assert text.endswith("is 9 % at 10 instances and 96 % at 100.")
    assert conclusions.title_of_methods(table).startswith("2 of 4 methods notice the")
    assert conclusions.title_of_curves(curves).startswith("With 100 instances a judge's errors")


def test_an_algorithm_is_named_once_with_all_its_kinds():
    bootstrap = ("Algorithm 1, ROUGE-L, paired bootstrap", 0, 0, 0)
    table = methods(FINDS_NOT, bootstrap, ("option ranking", 0, 3, 3))
    assert conclusions.method_labels(table).tolist() == [
        "Algorithm 1, sign flips",
        "Algorithm 1, paired bootstrap",
        "option ranking",
    ]
    text = conclusions.lab_conclusion(table, lab_of(0, 0.8), operating_curves(0.35))
    assert "The claim is not shown for Algorithm 1 (sign flips and paired bootstrap)." in text


def test_conclusion_of_a_lab_that_says_the_opposite():
    nothing, curves = methods(FINDS_NOT), operating_curves(0.35).assign(flag_probability=0.0)
    text = conclusions.lab_conclusion(nothing, lab_of(20, 0.5), curves)
    assert "No method of this lab is shown to be useful." in text and "supported for" not in text
    assert "The right name matters." in text and "form of the prompt" not in text
    assert "do not grow with the instances" in text
    assert conclusions.title_of_methods(nothing).startswith("None of 1 methods notice")
    assert conclusions.title_of_methods(methods(*FINDS)).startswith("All 2 methods notice")
    assert conclusions.title_of_curves(curves) == "More instances do not bring more false alarms"
    undecided = conclusions.lab_conclusion(nothing, lab_of(11, 0.5), curves)
    assert "We cannot tell whether the right name matters." in undecided
    no_gain = lab_of(0, 0.8).assign(n_flagged=0)
    assert "cannot ask whether the right name" in conclusions.lab_conclusion(
        nothing, no_gain, curves
    )
