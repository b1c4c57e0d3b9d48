"""Sentences of notebook 09, each from a table that confirms it and one that refutes it."""

import pandas as pd
import pytest

from contamination.core.verdicts import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.data.published import compare
from contamination.dice import controls
from contamination.study import results_findings as findings
from contamination.study import store
from contamination.study.protocol import CALIBRATED, MISCALIBRATED


def test_it_says_from_which_papers_cells_are_recomputed():
    cells = pd.DataFrame({"paper": ["A", "A", "B"], "matches": [True, None, None]})
    said = compare.summarize_papers(cells)
    assert said == (
        "The recomputed cells come from A (1 of 2). None of the 1 cells of B can be recomputed "
        "here."
    )
    assert "None of" not in compare.summarize_papers(cells.assign(matches=True))


def readings(reading):
    return pd.DataFrame(
        {"Method": ["[Quiz](https://x)"], "The paper's claim": ["it finds"], "Our reading": reading}
    )


def test_the_conclusion_is_what_the_tables_say():
    said = findings.conclusion("We recompute 3.", readings("no memory"))
    arithmetic, _, claims = said.split("\n\n")
    assert arithmetic.startswith("We recompute 3. This checks the papers' arithmetic.")
    assert claims == "- Quiz. Claim: it finds. Our reading: no memory."
    assert "Our reading: memory." in findings.conclusion("", readings("memory"))


def rules(word):
    counted = ["equal coverage", "E a quarter"]
    table = pd.DataFrame({"counted": counted, "word": [word, SUPPORTED]})
    table = table.assign(difference_pct=[0.0, 22.0], dataset="WNLI", model="M", control="words")
    return table.assign(chosen_on_others=True)


def test_two_ways_of_counting_may_disagree():
    said = findings.summarize_counting(rules(INCONCLUSIVE))
    assert "about the rule “words” on WNLI (+22 points in the first, +0 in the second)" in said
    assert "They agree" in findings.summarize_counting(rules(SUPPORTED))


def test_supported_is_more_than_chance_and_the_weakest_case_is_named():
    table = pd.DataFrame({"method": ["A", "B"], "condition": ["dosed, then clean text"] * 2})
    table = table.assign(n_detected=[20, 7], n_models=20, power_at_5_fpr=[1.0, 0.35])
    said = findings.summarize_power(table.assign(verdict=SUPPORTED))
    assert "that of B (then clean text), 7 of 20 base models (35 %)" in said
    assert "no cell is supported" in findings.summarize_power(table.assign(verdict=NOT_SUPPORTED))


@pytest.mark.parametrize(
    ("auc", "text"), [(0.55, "the two verdicts may differ"), (0.49, "finds nothing either")]
)
def test_a_mean_may_show_what_single_tests_do_not(auc, text):
    sets = pd.DataFrame({"value": [auc, auc], "p": [0.01, 0.3]})
    sets = sets.assign(detector="A", condition="paraphrase", model="dosed")
    said = findings.summarize_other_rule(sets, ["A"])
    assert "A, for example, flags 1 of 2 models" in said and text in said
    assert "for example" not in findings.summarize_other_rule(sets, ["B"])


def test_false_alarms_are_checked_by_all_unseen_sets(monkeypatch):
    sets = store.read(store.STUDY).sets
    table = pd.DataFrame(
        {"detector": ["Min-k% Prob"], "is_exact": True, "calibration": MISCALIBRATED}
    )
    said = findings.summarize_false_alarms(sets, table)
    assert "Min-k% Prob flags 19 of 180 (9 expected, p = 0.002)" in said
    assert "30 of 540 for Min-k% Prob" in said and "no sign of a fault" in said
    calm = table.assign(calibration=CALIBRATED)
    assert "No exact test" in findings.summarize_false_alarms(sets, calm)
    alarms = findings.first_study.false_alarms(sets).assign(holds=False)
    monkeypatch.setattr(findings.first_study, "false_alarms", lambda _: alarms)
    assert "the code needs a look" in findings.summarize_false_alarms(sets, table)


@pytest.mark.parametrize(
    ("most", "text"),
    [(17, "A flags 0 of 20 base models with 3 copies and 17 with 12"), (0, "no det")],
)
def test_more_copies_may_change_the_order(most, text):
    pairs = pd.DataFrame({"detector": ["A"], "other": ["B"]})
    table = pd.DataFrame({"method": ["A", "A", "B", "B"], "copies": [3, 12] * 2})
    table = table.assign(n_detected=[0, most, 20, 20], n_models=20, condition="verbatim")
    assert text in findings.summarize_copies(pairs, table, 3)


def test_few_rows_leave_unseen_partitions_open():
    table = pd.DataFrame(
        {"verdict": [INCONCLUSIVE, NOT_SUPPORTED], "ci_high": [0.28, 0.05], "n": 10}
    )
    table = table.assign(method="Replication", truth="never read")
    said = findings.summarize_unseen(table)
    assert "Of the 2 partitions that no model saw, 1" in said and "at least 28 %" in said
    assert "something definite" in findings.summarize_unseen(table.assign(verdict=NOT_SUPPORTED))


@pytest.mark.parametrize(
    ("paraphrase", "text"), [(4, "All of them flag fewer"), (6, "does not show that a paraphrase")]
)
def test_the_real_model_is_flagged_less_for_a_paraphrase_or_not(paraphrase, text):
    conditions = ["verbatim", "without label", "paraphrase", "fresh rows"]
    table = pd.DataFrame({"condition": conditions, "n_detected": [6, 5, paraphrase, 0]})
    table = table.assign(method="A", copies=4, n_models=6)
    said = findings.summarize_real(table, ["A"], 4)
    assert (
        "With four copies" in said and f"{paraphrase} of 6 if they saw a" in said and text in said
    )


@pytest.mark.parametrize(
    ("seen", "clean", "text"),
    [
        (
            (27, 21, 33),
            (29, 22, 37),
            "differ even for a model that saw none of them. The score does",
        ),
        ((52, 40, 60), (51, 45, 57), "(chance: 50 %). The score does not show"),
        ((80, 75, 85), (51, 45, 57), "score higher in contaminated models alone"),
    ],
)
def test_dice_is_held_against_clean_models(seen, clean, text):
    columns = ["auroc_pct", "ci_low", "ci_high"]
    table = pd.DataFrame([seen, clean], columns=columns)
    assert text in controls.summarize_halves(
        table.assign(control=[controls.WITHIN, controls.WITHIN_CLEAN])
    )
