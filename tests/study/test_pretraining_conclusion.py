"""The conclusion of the pretraining study, from tables that say one thing and its opposite."""

import pandas as pd
import pytest

from contamination.core.verdicts import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.study.dice_forks import CLAIMED
from contamination.study.interface import ANSWERS, LOG_PROBABILITIES
from contamination.study.pretraining_conclusion import conclusion, in_brief
from contamination.study.row_pools import PARAPHRASE
from contamination.study.shift import LENGTH, NONE

ENDS = {"ci_low": 0.5, "ci_high": 0.7, "auc_min": 0.4, "auc_max": 0.8}


def tables(
    one=NOT_SUPPORTED, high=0.90, answers=0.60, attack=0.93, paraphrase=NOT_SUPPORTED,
    shift=SUPPORTED, dice=SUPPORTED, alarm=SUPPORTED,
):  # fmt: skip
    detection = [
        ("PPL", LOG_PROBABILITIES, 1, 0.51, one),
        ("PPL", LOG_PROBABILITIES, 16, high, SUPPORTED),
        ("DCQ", ANSWERS, 1, 0.50, NOT_SUPPORTED),
        ("DCQ", ANSWERS, 16, answers, SUPPORTED),
    ]
    columns = ["detector", "access", "copies", "auc", "verdict"]
    detection = pd.DataFrame(detection, columns=columns).assign(**ENDS)
    reference = pd.DataFrame({"copies": [1, 16], "auc": [0.53, attack]})
    reference = reference.assign(is_exploratory=False, row_share_pct=[0.005, 0.08], **ENDS)
    indirect = pd.DataFrame({"detector": ["PPL", "PPL"], "copies": [4, 16], "auc": [0.5, 0.53]})
    indirect = indirect.assign(
        exposure=PARAPHRASE, verdict=[NOT_SUPPORTED, paraphrase], verbatim_auc=0.9, **ENDS
    )
    rows = [("PPL", NONE, 0.05, NOT_SUPPORTED), ("PPL", LENGTH, 0.87, shift)]
    rows += [("noise", LENGTH, 1.0, "")]
    shifts = pd.DataFrame(rows, columns=["detector", "shift", "rate", "verdict"])
    forks = pd.DataFrame({"claim": list(CLAIMED), "auc": [0.93, 0.83, 0.71]})
    forks = forks.assign(verdict=[dice, SUPPORTED, alarm], **ENDS)
    return detection, reference, indirect, shifts, forks


def test_it_says_what_the_tables_carry():
    said = conclusion(*tables())
    assert "sees one copy of a row in pretraining, 0.005 % of all its training tokens" in said
    assert "no detector finds it" in said and "sixteen copies" in said
    assert "2 of 2 detectors notice; the highest supported AUC is 0.90 [0.50, 0.70] (PPL)" in said
    assert "at no dose 0.05 more than the best detector" in said
    assert "Access matters" in said and "answers reaches 0.60" in said
    assert "never the row itself, no detector notices" in said
    assert "1 of 1 detectors call one of two sets" in said and "87 % of cases (PPL, length)" in said
    assert "DICE tells models" in said and "raises the alarm for the train split too" in said


@pytest.mark.parametrize(
    ("changed", "absent", "present"),
    [
        ({"one": SUPPORTED}, "no detector finds it", "1 of 2 detectors notices"),
        ({"attack": 0.99}, "kept little more of the row", "0.09 more than the best detector"),
        ({"answers": 0.95}, "Access matters", "Answers alone are enough"),
        (
            {"paraphrase": SUPPORTED},
            "no detector notices",
            "0 of 1 detectors notice four copies and 1 of 1 detectors notice sixteen",
        ),
        ({"shift": INCONCLUSIVE}, "a high score proves nothing", "no detector is shown to take"),
        ({"dice": INCONCLUSIVE}, "DICE tells", "is not shown to tell"),
        ({"alarm": NOT_SUPPORTED}, "raises the alarm", "is not shown to raise the alarm"),
    ],
)
def test_a_table_that_says_the_opposite_takes_the_sentence_away(changed, absent, present):
    said = conclusion(*tables(**changed))
    assert absent not in said and present in said


def brief(**changed):
    detection, reference, _, shifts, _ = tables(**changed)
    return in_brief(detection, reference, shifts)


def test_in_brief_it_says_the_same_and_takes_it_back_where_the_tables_do():
    said = brief()
    assert said.startswith(
        "One copy of a row (0.005 % of the training tokens) is noticed by 0 of 2"
    )
    assert "sixteen copies of a row (0.08 % of the training tokens) are noticed by 2 of 2" in said
    assert "is at no exposure 0.05 better than the best detector" in said
    assert "1 of 1 detectors call one of two sets" in said
    assert "is noticed by 1 of 2" in brief(one=SUPPORTED)
    assert "better than the best detector by 0.09 with sixteen copies" in brief(attack=0.99)
    assert "no detector is shown to take that" in brief(shift=NOT_SUPPORTED)
