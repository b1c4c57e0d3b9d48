"""Notebook 00: its opening title, the line on words alone, and the verdicts of its findings."""

import numpy as np
import pandas as pd
import pytest

from contamination.core.verdicts import (
    CONTROL_FAILS,
    INCONCLUSIVE,
    NOT_SUPPORTED,
    SUPPORTED,
    check_verdicts,
)
from contamination.data import published
from contamination.dcq import comparison
from contamination.min_k import wikimia_tables
from contamination.study import first_look


def opening(verdicts, words=(0.97, 1.0), printed=0.72, said_by=first_look.title_of_opening):
    """What is said of a rule's verdicts, a dataset each, in two counts, and of the words' AUC."""
    rules = pd.DataFrame({"dataset": range(len(verdicts)), "verdict": verdicts})
    ends = pd.DataFrame([words] * 4, columns=["ci_low", "ci_high"])
    return said_by(pd.concat([rules, rules]), ends, printed)


def test_the_opening_title_counts_the_datasets_on_which_the_rule_is_behind():
    assert "to beat a rule on 0 of 3 datasets" in opening([SUPPORTED] * 3)
    refuted = opening([NOT_SUPPORTED, INCONCLUSIVE, NOT_SUPPORTED])
    assert refuted.startswith("GPT-4 is shown to beat a rule on 2 of 3 datasets;\n")


def test_the_opening_sentences_give_each_dataset_its_place():
    said = opening([SUPPORTED] * 3, said_by=first_look.of_opening)
    assert "On 0 of 3, it shows that GPT-4 beats" in said and "On 3, it shows that the rule" in said
    assert "within 5 percentage points" in said and "either" not in said
    behind = [NOT_SUPPORTED, INCONCLUSIVE, NOT_SUPPORTED]
    said = opening(behind, said_by=first_look.of_opening)
    assert "On 2 of 3, it shows that GPT-4 beats" in said and "as good" not in said
    assert "On the other one, the test is inconclusive." in said


@pytest.mark.parametrize(
    ("words", "line", "sentence"),
    [
        ((0.73, 1.0), "words alone have the higher AUC", "passages better than Min-k% Prob."),
        ((0.40, 0.71), "words alone have the lower AUC", "passages less well than Min-k% Prob."),
        ((0.70, 0.80), "it is open which AUC is higher", "alone do as well as Min-k% Prob."),
    ],
)
def test_the_opening_compares_the_words_by_their_interval(words, line, sentence):
    assert opening([SUPPORTED], words).endswith(f"\non WikiMIA, {line}")
    assert opening([SUPPORTED], words, said_by=first_look.of_opening).endswith(sentence)


def test_a_difference_without_an_interval_decides_nothing_in_the_opening():
    """The rule's mean is 71.748, GPT-4's 71.747: 02 finds one dataset of ten supported."""
    rules = comparison.compare_rules(published.rule_choices(), published.released_instances("DCQ"))
    rules = rules.query("model == 'GPT-4' and chosen_on_others")
    words = wikimia_tables.wikimia_blind_table(100).query("baseline == 'bag of words'")
    assert first_look.title_of_opening(rules, words, 0.72) == (
        "GPT-4 is shown to beat a rule on 2 of 10 datasets;\n"
        "on WikiMIA, words alone have the higher AUC"
    )
    said = first_look.of_opening(rules, words, 0.72)
    assert "On 2 of 10, it shows that GPT-4 beats the rule. On 1, it shows that the rule" in said
    assert "On the other 7, the test is inconclusive. On WikiMIA, words alone separate" in said


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ((0.24, 1.00), "too imprecise to tell us whether words alone would do as well"),
        ((0.42, 0.59), "the words do not tell the two halves apart"),
        ((0.60, 0.90), "the interval leaves out one half: in this draw the words differ"),
        ((0.10, 0.40), "the interval leaves out one half: in this draw the words differ"),
    ],
)
def test_what_is_said_of_the_words_follows_their_interval(ends, says):
    words = pd.Series({"auc": np.mean(ends), "ci_low": ends[0], "ci_high": ends[1]})
    said = first_look.words_alone(words, 42, 20, 25)
    assert f"{says}. " in said or f"{says} by accident. " in said
    assert "each of the 20 seen instances with each of the 25 held-out ones" in said
    assert said.endswith("within another part: 42 of these 500 pairs.")


def test_the_opening_shows_the_counts_of_notebook_02():
    """Word frequency is behind where both leave out as many, and level where E is a quarter."""
    rule = published.rule_choices().query("control == 'word frequency'")
    answers = published.released_instances("DCQ").query("model == 'GPT-4'")
    levels = comparison.mean_levels(comparison.compare_rules(rule, answers, n_resamples=10))
    assert levels.index.tolist() == list(comparison.CLAIMED_BY)
    assert levels.loc["equal coverage"].round(1).tolist() == [61.7, 67.0]
    assert levels.loc["E a quarter"].round(1).tolist() == [71.7, 71.7]


def method(name, finding, *controls, chance=0.5):
    """Rows of one method: value and ends of the finding, then of its controls."""
    rows = [
        {"method": name, "chance": chance} | dict(zip(ENDS, r, strict=True))
        for r in (finding, *controls)
    ]
    return pd.DataFrame(rows)


ENDS = ("value", "ci_low", "ci_high")
ALONE = (1.0, np.nan, np.nan)  # of two models


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        (method("m", (0.9, 0.8, 1.0), (0.5, 0.3, 0.7)), SUPPORTED),
        # The finding's lower end lies above the control's value and below its upper end. The
        # control shows the same only if it lies above chance as well.
        (method("m", (0.9, 0.65, 1.0), (0.6, 0.55, 0.7)), CONTROL_FAILS),
        (method("m", (0.9, 0.65, 1.0), (0.5, 0.3, 0.7)), INCONCLUSIVE),
        (method("m", (1.0, 1.0, 1.0), (0.5, 0.3, 0.7), (0.7, 0.24, 1.0)), INCONCLUSIVE),
        (method("m", (0.9, 0.65, 1.0), (0.7, 0.24, 1.0), (0.6, 0.55, 0.7)), CONTROL_FAILS),
        (method("m", (0.6, 0.45, 0.75), (0.5, 0.3, 0.7)), INCONCLUSIVE),
        (method("m", (0.4, 0.3, 0.5), (0.5, 0.3, 0.7)), NOT_SUPPORTED),
        # A quiz has another chance, and reciting has none.
        (method("m", (0.4, 0.3, 0.5), (0.1, 0.0, 0.2), chance=0.25), SUPPORTED),
        (method("m", (0.4, 0.3, 0.5), (0.1, 0.0, 0.2), chance=np.nan), SUPPORTED),
        (method("m", ALONE, ALONE), CONTROL_FAILS),
        (method("m", ALONE, (0.6, np.nan, np.nan)), INCONCLUSIVE),  # one observation
        (method("m", (0.3, np.nan, np.nan), (0.4, np.nan, np.nan)), INCONCLUSIVE),  # below chance
    ],
)
def test_a_finding_is_held_against_the_intervals_of_its_controls(rows, verdict):
    found = first_look.finding_verdicts(rows)
    assert found.tolist() == [verdict, *[""] * (len(rows) - 1)]
    check_verdicts(found)


def test_every_method_has_its_own_controls():
    rows = [method("a", (0.9, 0.8, 1.0), (0.5, 0.3, 0.7)), method("b", ALONE, ALONE, ALONE)]
    found = first_look.finding_verdicts(pd.concat(rows, ignore_index=True))
    assert found.tolist() == [SUPPORTED, "", CONTROL_FAILS, "", ""]


def test_a_correction_for_several_methods_takes_a_small_finding_back():
    """An AUC of 0.65 from 0.51 on is shown alone, and not as the weakest of three findings."""
    small = method("m", (0.65, 0.51, 0.79), (0.5, 0.3, 0.5))
    large = method("m", (0.90, 0.80, 1.0), (0.6, 0.52, 0.7))
    assert first_look.finding_verdicts(small)[0] == SUPPORTED
    others = [method(name, (0.52, 0.40, 0.64), (0.5, 0.4, 0.6)) for name in "ab"]
    for first, expected in ((small, INCONCLUSIVE), (large, SUPPORTED)):
        table = pd.concat([first, *others], ignore_index=True)
        assert first_look.finding_verdicts(table)[0] == expected
        p = first_look.with_p(table)
        assert p["p_adjusted"].notna().tolist() == [True, False] * 3  # controls are no test
        assert p["p_adjusted"][0] == pytest.approx(3 * p["p"][0])
    # A control that reaches a finding says nothing more where the finding is none.
    reached = method("m", (0.65, 0.51, 0.79), (0.6, 0.52, 0.7))
    assert first_look.finding_verdicts(reached)[0] == CONTROL_FAILS
    table = pd.concat([reached, *others], ignore_index=True)
    assert first_look.finding_verdicts(table)[0] == INCONCLUSIVE


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (method("m", (0.9, 0.8, 1.0), (0.5, 0.3, 0.7)), "Only the first row is shown to lie above"),
        (method("m", (0.9, 0.8, 1.0), (0.7, 0.6, 0.8)), "so does a control (control 0)"),
        (method("m", (0.6, 0.4, 0.8), (0.7, 0.6, 0.8)), "The first row is not shown to lie above"),
        (method("m", ALONE, ALONE, ALONE), "Both clean models reach"),
        (method("m", ALONE, ALONE, (0.6, np.nan, np.nan)), "1 clean model reaches"),
        (method("m", ALONE, (0.6, np.nan, np.nan)), "No clean model reaches"),
    ],
)
def test_a_table_is_read_by_the_rows_that_lie_above_chance(rows, said):
    rows["model"] = ["contaminated", *[f"control {n}" for n in range(len(rows) - 1)]]
    assert said in first_look.reading(rows)


def test_a_table_without_a_chance_level_is_read_against_zero():
    recited, none = (0.9, 0.8, 1.0), (0.0, 0.0, 0.2)
    rows = method("m", recited, none, chance=np.nan).assign(model=["contaminated", "clean"])
    assert first_look.reading(rows) == "Only the first row is shown to lie above zero."
    rows = method("m", none, recited, chance=np.nan).assign(model=["contaminated", "clean"])
    assert first_look.reading(rows) == "The first row is not shown to lie above zero."


WIDE = [(0.9, 0.8, 1.0), (0.7, 0.24, 1.0)]  # a finding, and a control that is too imprecise


def concluded(*verdicts, finding=WIDE[0], control=WIDE[1]):
    methods = ["Quiz", "Replication", "Min-k% Prob", "DICE"]
    rows = []
    for name, verdict in zip(methods, verdicts, strict=True):
        of_method = method(name, ALONE if name == "DICE" else finding, control)
        rows.append(of_method.assign(model=["contaminated", "words"], verdict=[verdict, np.nan]))
    return first_look.conclusion(pd.concat(rows, ignore_index=True))


def test_an_open_question_is_explained_by_what_leaves_it_open():
    open_ = [INCONCLUSIVE] * 4
    said = concluded(*open_)
    assert "For Min-k% Prob, the question stays open: the control “words” is too imprecise" in said
    assert "For DICE, the question stays open: two models are a single observation." in said
    said = concluded(*open_, finding=(0.6, 0.4, 0.8))
    assert "imprecise" not in said and "so few instances leave too much to chance." in said
    said = concluded(*open_, control=(0.5, 0.4, 0.6))  # a correction took the finding back
    assert "imprecise" not in said and "so few instances leave too much to chance." in said


def test_the_conclusion_says_of_each_method_what_its_verdict_allows():
    said = concluded(SUPPORTED, SUPPORTED, INCONCLUSIVE, CONTROL_FAILS)
    assert said.startswith("Quiz and Replication find what we know to be true")
    assert "For DICE, the number alone would have convinced us" in said
    assert "For Min-k% Prob, the question stays open" in said and "misses" not in said
    nothing = concluded(NOT_SUPPORTED, INCONCLUSIVE, INCONCLUSIVE, INCONCLUSIVE)
    assert nothing.startswith("None of the methods shows what we know") and "Quiz misses" in nothing
    assert "convinced" not in nothing and "memory is the explanation" not in nothing
    assert "DICE finds what" in concluded(NOT_SUPPORTED, NOT_SUPPORTED, NOT_SUPPORTED, SUPPORTED)
