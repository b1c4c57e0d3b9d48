"""The conclusion of the pretraining study, from tables that say one thing and its opposite."""

import pandas as pd
import pytest

from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.study.changes_conclusion import (
    larger_in_brief,
    larger_models,
    larger_rates,
)
from contamination.study.conditions import PARAPHRASE
from contamination.study.dice_forks import CLAIMED
from contamination.study.interface import ANSWERS, LOG_PROBABILITIES
from contamination.study.pretraining_conclusion import conclusion, in_brief
from contamination.study.shift import LENGTH, NONE

ENDS = {"ci_low": 0.5, "ci_high": 0.7, "auc_min": 0.4, "auc_max": 0.8}


def tables(
    one=NOT_SUPPORTED, high=0.90, answers=0.60, attack=0.93, paraphrase=NOT_SUPPORTED,
    shift=SUPPORTED, dice=SUPPORTED, alarm=SUPPORTED, found=0.41,
):  # fmt: skip
    detection = [
        ("PPL", LOG_PROBABILITIES, 1, 0.51, one),
        ("PPL", LOG_PROBABILITIES, 16, high, SUPPORTED),
        ("DCQ", ANSWERS, 1, 0.50, NOT_SUPPORTED),
        ("DCQ", ANSWERS, 16, answers, SUPPORTED),
    ]
    columns = ["detector", "access", "copies", "auc", "verdict"]
    detection = pd.DataFrame(detection, columns=columns).assign(benchmarks="topics", **ENDS)
    reference = pd.DataFrame({"copies": [1, 16], "auc": [0.53, attack]})
    reference = reference.assign(is_exploratory=False, row_share_pct=[0.005, 0.08], **ENDS)
    indirect = pd.DataFrame({"detector": ["PPL", "PPL"], "copies": [4, 16], "auc": [0.5, 0.53]})
    indirect = indirect.assign(
        exposure=PARAPHRASE, verdict=[NOT_SUPPORTED, paraphrase], verbatim_auc=0.9, **ENDS
    )
    names = ["PPL", "DC-PDD without bound", "reference attack (LiRA)"]
    rates = pd.DataFrame({"detector": names * 2, "tpr": [0.5, 0.6, 0.7, 0.26, 0.3, found]})
    rates = rates.assign(copies=16, fpr=[0.05] * 3 + [0.01] * 3)
    rows = [("PPL", NONE, 0.05, NOT_SUPPORTED), ("PPL", LENGTH, 0.87, shift)]
    rows += [("noise", LENGTH, 1.0, "")]
    shifts = pd.DataFrame(rows, columns=["detector", "shift", "rate", "verdict"])
    forks = pd.DataFrame({"claim": list(CLAIMED), "auc": [0.93, 0.83, 0.71]})
    forks = forks.assign(verdict=[dice, SUPPORTED, alarm], **ENDS)
    return detection, reference, indirect, rates, shifts, forks


def test_it_says_what_the_tables_carry():
    said = conclusion(*tables())
    assert "With one copy of a row in pretraining (0.005 % of the training tokens)" in said
    assert "no detector is shown to be above chance on average over the models. The h" in said
    assert "0.51 [0.50, 0.70] (PPL), which is too low for judging a single row." in said
    assert "2 of 2 detectors are shown to be above chance on average over the models" in said
    assert "The highest supported AUC is 0.900 [0.500, 0.700] (PPL)." in said
    assert "It never beats the best detector by 0.05 or more" in said
    # The exploratory form is not a detector of the families.
    assert "At 1 % false positives, with sixteen copies, that attack finds 41 % of the rows" in said
    assert "the best detector 26 % (PPL), which suggests that the model retains traces" in said
    assert "Access matters" in said and "answers reaches 0.60" in said
    assert (
        "a paraphrase (the same template with different content words) and never the row it" in said
    )
    assert "never the row itself, no detector notices" in said
    assert (
        "length misleads 1 of 1 detectors, with false alarms in up to 87 % of cases (PPL, length)"
        in said
    )
    assert "Within one base model it tells models" in said and "DICE judges models and not" in said
    assert "raises the alarm for the train split too" in said
    assert [text.split()[0] for text in said.split("\n\n")] == ["With", "Access", "But"]


@pytest.mark.parametrize(
    ("changed", "absent", "present"),
    [
        (
            {"one": SUPPORTED},
            "no detector is shown",
            "1 of 2 detectors is shown to be above chance",
        ),
        ({"attack": 0.99}, "at no dose", "0.09 more than the best detector"),
        ({"found": 0.28}, "keeps more of a row", "no upper bound on what the model keeps"),
        ({"answers": 0.95}, "Access matters", "Answers alone are enough"),
        (
            {"paraphrase": SUPPORTED},
            "no detector notices",
            "0 of 1 detectors notice four copies and 1 of 1 detectors notice sixteen",
        ),
        ({"shift": INCONCLUSIVE}, "a high score proves nothing", "no detector is shown to take"),
        ({"dice": INCONCLUSIVE}, "it tells models", "is not shown to tell"),
        ({"alarm": NOT_SUPPORTED}, "raises the alarm", "is not shown to raise the alarm"),
    ],
)
def test_a_table_that_says_the_opposite_takes_the_sentence_away(changed, absent, present):
    said = conclusion(*tables(**changed))
    assert absent not in said and present in said


def brief(**changed):
    detection, *_, shifts, _ = tables(**changed)
    return in_brief(detection, shifts)


def test_in_brief_it_is_three_sentences_about_the_same_numbers():
    said = brief()
    assert said == (
        "With one copy of a row in the training data, no detector is shown to be above chance; the "
        "highest AUC is 0.51 [0.50, 0.70] (PPL), which is too low for judging a single row. With "
        "sixteen copies, 2 of 2 detectors are shown to be above chance, and the best of these has "
        "an AUC of 0.900 [0.500, 0.700] (PPL). But the suspected rows and the held-out rows may "
        "differ in something else, which many detectors take for contamination: length misleads 1 "
        "of 1 detectors, with false alarms in up to 87 % of cases (PPL, length)."
    )
    assert "no detector is shown to take that" in brief(shift=NOT_SUPPORTED)
    assert "1 of 2 detectors is shown to be above chance" in brief(one=SUPPORTED)
    assert "too low" in brief(high=0.54, answers=0.53).split("With sixteen")[1]


def made_larger(difference, verdict, ci=0.02, p=0.001):
    table = pd.DataFrame({"detector": ["PPL", "PPL", "Zlib", "Zlib"], "copies": [1, 16, 1, 16]})
    table = table.assign(auc=[0.52, 0.88, 0.51, 0.85], difference=difference, verdict=verdict)
    table["auc_larger"] = table["auc"] + table["difference"]
    ends = {"ci_low": table["difference"] - ci, "ci_high": table["difference"] + ci}
    ends |= {"larger_low": table["auc_larger"] - ci, "larger_high": table["auc_larger"] + ci}
    return table.assign(p_adjusted=p, **ends)


def test_larger_models_that_give_rows_away_more_easily_are_counted():
    table = made_larger([0.05, 0.1, 0.05, 0.1], [SUPPORTED] * 4)
    said = larger_models(table, "PPL")
    assert "2 of 2 detectors with one copy and 2 of 2 detectors with sixteen copies" in said
    assert "by +0.05 [+0.03, +0.07] with one copy and +0.10 [+0.08, +0.12] with sixteen" in said
    assert "The largest rise is that of PPL with sixteen copies, from 0.88 to 0.98." in said
    assert "falls" not in said and "no detector's AUC rises" not in said
    brief_text = larger_in_brief(table, "PPL")
    assert "0.57 [0.55, 0.59] with one copy and 0.98 [0.96, 1.00] with sixteen" in brief_text


def test_larger_models_that_hide_rows_are_named():
    table = made_larger([0.0, 0.0, 0.0, -0.1], [NOT_SUPPORTED] * 4)
    said = larger_models(table, "PPL")
    assert "0 of 2 detectors with one copy and 0 of 2 detectors with sixteen copies" in said
    assert said.endswith("The AUC falls for Zlib with sixteen copies, from 0.85 to 0.75.")
    assert "With one copy and sixteen copies, no detector's AUC rises by 0.05" in said
    assert "falls" not in larger_models(table.assign(p_adjusted=0.2), "PPL")
    assert "largest rise" not in said


@pytest.mark.parametrize(
    ("low", "said"),
    [
        (
            0.02,
            "1 of 1 methods find more than 1 % (PPL: 3.0 %) and 1 of 1 methods find more than 5",
        ),
        (
            0.01,
            "0 of 1 methods find more than 1 % (PPL: 3.0 %) and 1 of 1 methods find more than 5",
        ),
    ],
)
def test_rows_that_larger_models_give_away_singly(low, said):
    one = {"detector": "PPL", "tpr": 0.015, "tpr_larger": 0.03, "ci_low": low, "ci_high": 0.04}
    many = one | {"tpr": 0.5, "tpr_larger": 0.905, "ci_low": 0.88, "ci_high": 0.93}
    rows = [one | {"copies": 1, "fpr": 0.01}, many | {"copies": 16, "fpr": 0.01}]
    rows += [many | {"copies": copies, "fpr": 0.05} for copies in (1, 16)]
    text = larger_rates(pd.DataFrame([*rows, rows[1] | {"detector": "Zlib"}]), "PPL")
    few = f"3.0 % [{100 * low:.1f}, 4.0] of the rows with one copy (small models: 1.5 %)"
    many_found = "90.5 % [88.0, 93.0] of the rows with sixteen copies (small models: 50.0 %)."
    assert f"at 1 % false positives, PPL finds {few} and {many_found}" in text
    assert said in text


def test_larger_models_that_learned_less_say_nothing():
    table = made_larger([0.1] * 4, [CONTROL_FAILS] * 4)
    assert larger_models(table, "PPL").startswith("The control fails")
    assert larger_in_brief(table, "PPL") == ""


def test_differences_between_sets_are_counted_one_by_one():
    rows = [("PPL", LENGTH, 0.9, SUPPORTED), ("Zlib", LENGTH, 0.8, SUPPORTED)]
    rows += [("PPL", "date", 0.3, SUPPORTED), ("Zlib", "date", 0.1, NOT_SUPPORTED)]
    shifts = pd.DataFrame(rows, columns=["detector", "shift", "rate", "verdict"])
    said = in_brief(tables()[0], shifts)
    assert "length misleads 2 of 2 detectors and date misleads 1 of 2, with" in said
