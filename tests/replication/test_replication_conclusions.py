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
from contamination.replication import (
    asterisks,
    conclusions,
    decisions,
    lab_conclusions,
    published_tables,
)
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


def doses_of(flagged=(0, 2, 0), general=0.99):
    """Algorithm 1's rows of ``lab_table``: partitions flagged, of 3 at 4, 16 and 128 copies."""
    return pd.DataFrame(
        {"dataset": f"d{copies}", "split": f"s{number}", "method": "Algorithm 1"}
        | {"metric": "ROUGE-L", "test": "paired bootstrap", "instruction": "general"}
        | {"copies": copies, "mean_guided": 1.0, "mean": general, "contaminated": number < n}
        for copies, n in zip((4, 16, 128), flagged, strict=True)
        for number in range(3)
    )


def concluded(methods, placebos, curves, lab=None):
    return lab_conclusions.conclusion(methods, placebos, curves, doses_of() if lab is None else lab)


FINDS = ("option ranking", 0, 3, 3), ("Algorithm 2, rule judge", 0, 0, 3)
FINDS_NOT = ("Algorithm 1, ROUGE-L, sign flips", 0, 0, 0)
ALARMS = ("Did-ChatGPT-Cheat?", 9, 3, 3)


def test_conclusion_of_the_lab():
    table, curves = methods(*FINDS, FINDS_NOT, ALARMS), operating_curves(0.35)
    assert table["verdict"].tolist() == [SUPPORTED, SUPPORTED, INCONCLUSIVE, CONTROL_FAILS]
    text = concluded(table, lab_of(0, 0.8), curves)
    assert "supported for option ranking (is the original likelier than its paraphrases?)" in text
    assert "and Algorithm 2 (guided completions)." in text
    assert "The fewest copies are needed by option ranking, which notices at least half of" in text
    assert "from 4 copies of each row upwards. But we have only one model, and 3 partitions" in text
    assert "The claim is not shown for Algorithm 1 (sign flips). By the paired bootstrap," in text
    assert "calls 2 of 3 partitions contaminated that were seen 16 times, but none of 3" in text
    assert "We cannot judge Did-ChatGPT-Cheat? (can the model write the first rows?)," in text
    assert "The right name matters little. By the uncorrected paired bootstrap" in text
    assert "without a name in 20 of 20 partitions. Chance alone would give about 1." in text
    assert "a wrong dataset keeps 75 % and a wrong split keeps 75 % of the gain. So at" in text
    # 1 - 0.95^10 - 10 x 0.05 x 0.95^9 is 0.086; 0.05 x 0.35 exact and 0.05 x 0.65 near give 0.196.
    assert "contaminated in 20 % of cases with 10 instances and in 97 % with 100. But its" in text
    assert text.endswith("contaminated in 9 % of cases with 10 instances and in 96 % with 100.")
    assert lab_conclusions.title_of_methods(table).startswith("2 of 4 methods notice the")
    assert lab_conclusions.title_of_curves(curves).startswith("With 100 instances a judge's errors")


def test_an_algorithm_is_named_once_with_all_its_kinds():
    bootstrap = ("Algorithm 1, ROUGE-L, paired bootstrap", 0, 0, 0)
    table = methods(FINDS_NOT, bootstrap, ("option ranking", 0, 3, 3))
    assert lab_conclusions.method_labels(table).tolist() == [
        "Algorithm 1, sign flips",
        "Algorithm 1, paired bootstrap",
        "option ranking",
    ]
    text = concluded(table, lab_of(0, 0.8), operating_curves(0.35))
    assert "The claim is not shown for Algorithm 1 (sign flips and paired bootstrap)." in text
    assert lab_conclusions.title_of_methods(table).startswith("1 of 2 methods notice the")


def test_a_method_notices_only_if_all_its_kinds_do():
    both = methods(("Algorithm 2, rule judge", 0, 3, 3), ("option ranking", 0, 3, 3))
    other = both.head(1).assign(instruction="general")
    kinds = pd.concat([both, other], ignore_index=True)
    assert lab_conclusions.title_of_methods(kinds).startswith("All 2 methods notice")
    kinds.loc[2, "verdict"] = INCONCLUSIVE
    assert lab_conclusions.title_of_methods(kinds).startswith("1 of 2 methods notice")


def test_algorithm_1_is_told_at_its_best_and_at_the_most_copies():
    text = lab_conclusions.summarize_algorithm_1(doses_of())
    assert text == (
        "By the paired bootstrap, Algorithm 1 calls 2 of 3 partitions contaminated that were seen "
        "16 times, but none of 3 partitions that were seen 128 times. There ROUGE-L is 1.00 with "
        "the name and 0.99 without it, so hardly any difference is left to find."
    )
    assert "is left to find" not in lab_conclusions.summarize_algorithm_1(doses_of(general=0.5))
    text = lab_conclusions.summarize_algorithm_1(doses_of((0, 2, 3)))
    assert text.endswith("calls 3 of 3 partitions that were seen 128 times contaminated.")
    text = lab_conclusions.summarize_algorithm_1(doses_of((0, 0, 0)))
    assert text.endswith("calls none of 3 partitions that were seen 128 times contaminated.")


@pytest.mark.parametrize(
    ("rouge", "n_found", "said"),
    [
        (0.55, 3, "are completed no better than rows that were never seen (ROUGE-L 0.55 and 0.57"),
        (0.55, 3, "But option ranking, which compares likelihoods and is explained below, calls 3"),
        (0.80, 0, "are completed better than rows that were never seen (ROUGE-L 0.80 and 0.57"),
        (0.80, 0, "And option ranking, which compares likelihoods and is explained below, calls 0"),
    ],
)
def test_few_copies_are_looked_for_in_completions_and_in_likelihoods(rouge, n_found, said):
    scored = pd.DataFrame({"copies": [0, 4, 128], "rouge": [0.57, rouge, 1.0]})
    ranked = pd.DataFrame({"copies": 4, "contaminated": [number < n_found for number in range(3)]})
    text = lab_conclusions.summarize_few_copies(scored.assign(instruction="guided"), ranked)
    assert text.startswith("Rows seen 4 times are completed") and said in text


def test_conclusion_of_a_lab_that_says_the_opposite():
    nothing, curves = methods(FINDS_NOT), operating_curves(0.35).assign(flag_probability=0.0)
    text = concluded(nothing, lab_of(20, 0.5), curves)
    assert "No method of this lab is shown to be useful." in text and "supported for" not in text
    assert "The right name matters." in text and "form of the prompt" not in text
    assert "Its false alarms do not grow with the number" in text
    assert "contaminated in 0 % of cases with 10 instances and in 0 %" in text
    assert lab_conclusions.title_of_methods(nothing).startswith("None of 1 methods notice")
    assert lab_conclusions.title_of_methods(methods(*FINDS)).startswith("All 2 methods notice")
    assert (
        lab_conclusions.title_of_curves(curves) == "More instances do not bring more false alarms"
    )
    undecided = concluded(nothing, lab_of(11, 0.5), curves)
    assert "Whether the right name matters is inconclusive." in undecided
    no_gain = lab_of(0, 0.8).assign(n_flagged=0)
    assert "cannot ask whether the right name" in concluded(nothing, no_gain, curves)
    few = concluded(nothing, lab_of(0, 0.8).assign(n_flagged=2, n_partitions=24), curves)
    assert "We see no sign that the right name matters." in few and "at least half" not in few
    assert "in 2 of 24 partitions. Chance alone would give about 1." in few
    assert "so few partitions cannot settle it" in few
