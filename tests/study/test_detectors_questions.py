"""Which detector for which question, from a made table."""

import pandas as pd

from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.study import conditions as c
from contamination.study import interface, lab_panel

COLUMNS = ["detector", "access", "model", "condition", "copies", "n_flagged", "verdict"]
ROWS = [
    ("asks", interface.ANSWERS, c.DOSED, c.VERBATIM, 3, 12, SUPPORTED),
    ("reads", interface.LOG_PROBABILITIES, c.DOSED, c.VERBATIM, 3, 20, SUPPORTED),
    ("reads too", interface.LOG_PROBABILITIES, c.DOSED, c.VERBATIM, 3, 20, SUPPORTED),
    ("reads as well", interface.LOG_PROBABILITIES, c.DOSED, c.VERBATIM, 3, 20, SUPPORTED),
    ("sees", interface.WEIGHTS, c.DOSED, c.VERBATIM, 3, 20, CONTROL_FAILS),
    ("asks", interface.ANSWERS, c.DOSED, c.PARAPHRASE, 12, 2, NOT_SUPPORTED),
    ("sees", interface.WEIGHTS, c.LONG, c.VERBATIM, 12, 7, SUPPORTED),
    ("DICE", interface.WEIGHTS, c.LONG, c.VERBATIM, 12, 20, SUPPORTED),
]


def table(rows=ROWS):
    made = pd.DataFrame(rows, columns=COLUMNS).assign(benchmark="topics", n_units=20)
    made["power_at_5_fpr"] = made["n_flagged"] / made["n_units"]
    return made.assign(question=interface.READ)


def test_more_access_includes_less_and_all_that_tie_are_named():
    shown = lab_panel.by_access(table(), "topics").set_index("what was read")
    assert list(shown) == list(lab_panel.ACCESS) and list(shown.index) == list(lab_panel.QUESTIONS)
    tied = "reads, reads too, reads as well: 20 of 20 each"
    assert shown.loc["three copies"].tolist() == ["asks: 12 of 20", tied, tied]
    assert shown.loc["another wording"].tolist() == ["none; at best 2 of 20"] * 3
    last = "twelve copies, then much other text"
    assert shown.loc[last].tolist() == ["not asked", "not asked", "sees: 7 of 20"]


def test_the_second_best_is_named_with_all_that_tie_with_it_and_no_third():
    counts = {"a": 20, "b": 17, "c": 17, "d": 16}
    rows = [
        (name, interface.ANSWERS, c.DOSED, c.VERBATIM, 3, n, SUPPORTED)
        for name, n in counts.items()
    ]
    shown = lab_panel.by_access(table(rows), "topics").set_index("what was read")
    assert shown.loc["three copies", "answers"] == "a: 20 of 20; b, c: 17 of 20 each"


def test_what_failed_a_gate_or_answers_another_question_is_not_named():
    failed = table().assign(verdict=INCONCLUSIVE)
    shown = lab_panel.by_access(failed, "topics").set_index("what was read")
    assert shown.loc["three copies", "answers"] == "none; at best 12 of 20"
    inflated = table().assign(question=interface.INFLATED)
    assert lab_panel.by_access(inflated, "topics").isin(["not asked"]).sum().sum() == 24
    assert lab_panel.by_access(table(), "entailment").isin(["not asked"]).sum().sum() == 24
