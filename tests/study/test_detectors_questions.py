"""Which detector for which question, from a made table."""

import pandas as pd

from contamination.study import conditions as c
from contamination.study import interface, lab_panel

COLUMNS = ["detector", "access", "model", "condition", "copies", "n_flagged", "verdict"]
ROWS = [
    ("asks", interface.ANSWERS, c.DOSED, c.VERBATIM, 3, 12, "seen"),
    ("reads", interface.LOG_PROBABILITIES, c.DOSED, c.VERBATIM, 3, 20, "seen"),
    ("reads too", interface.LOG_PROBABILITIES, c.DOSED, c.VERBATIM, 3, 20, "seen"),
    ("sees", interface.WEIGHTS, c.DOSED, c.VERBATIM, 3, 20, "cannot tell"),
    ("asks", interface.ANSWERS, c.DOSED, c.PARAPHRASE, 12, 2, "mostly escapes"),
    ("sees", interface.WEIGHTS, c.LONG, c.VERBATIM, 12, 7, "seen"),
]


def table(rows=ROWS):
    made = pd.DataFrame(rows, columns=COLUMNS).assign(benchmark="topics", n_units=20)
    made["power_at_5_fpr"] = made["n_flagged"] / made["n_units"]
    return made.assign(question=interface.READ)


def test_more_access_includes_less_and_a_tie_names_both():
    shown = lab_panel.by_access(table(), "topics").set_index("what was read")
    assert list(shown) == list(lab_panel.ACCESS) and list(shown.index) == list(lab_panel.QUESTIONS)
    both = "reads 20 of 20, reads too 20 of 20"
    assert shown.loc["three copies"].tolist() == ["asks 12 of 20", both, both]
    assert shown.loc["another wording"].tolist() == ["none; at best 2 of 20"] * 3
    last = "twelve copies, then much other text"
    assert shown.loc[last].tolist() == ["not asked", "not asked", "sees 7 of 20"]


def test_what_failed_a_gate_or_answers_another_question_is_not_named():
    failed = table().assign(verdict="cannot tell")
    shown = lab_panel.by_access(failed, "topics").set_index("what was read")
    assert shown.loc["three copies", "answers"] == "none; at best 12 of 20"
    inflated = table().assign(question=interface.INFLATED)
    assert lab_panel.by_access(inflated, "topics").isin(["not asked"]).sum().sum() == 24
    assert lab_panel.by_access(table(), "entailment").isin(["not asked"]).sum().sum() == 24
