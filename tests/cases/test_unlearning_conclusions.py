"""What notebook 08 concludes follows its tables, and turns where the tables turn."""

import pandas as pd

from contamination.cases import unlearning_conclusions as conclusions
from contamination.core.scores import MIN_K


def models(left, other=(5.95, 5.95)):
    table = pd.DataFrame({"model": ["original", "retrained", "ascent"]})
    table = table.assign(unlearned=[False, False, True], left=[100, 0, left])
    return table.assign(other_nll=[other[0], 5.7, other[1]])


def test_what_unlearning_left_and_what_it_cost():
    hardly = conclusions.memory_left(models(90), models(90)["left"])
    assert "90 % after ascent" in hardly and "unlearned almost nothing" in hardly
    assert "is 5.95 before and after unlearning, so on this text unlearning has no price" in hardly
    well = models(10, other=(5.95, 6.2))
    said = conclusions.memory_left(well, well["left"])
    assert "almost nothing" not in said and said.endswith("text changes by +0.25 (ascent).")
    unknown = conclusions.memory_left(models(90), models(float("nan"))["left"])
    assert unknown.startswith("The original model does not write the story better")


def test_why_interval_and_p_value_may_seem_to_differ():
    audit = pd.DataFrame({"p": [0.1, 0.2, None]})
    shown = pd.DataFrame({"ci_low": [0.1, None], "n_selected": [8, 0]})
    said = conclusions.corrected_p(audit, shown)
    assert "corrected for 2 tests" in said and "of only 8 in the smallest group" in said
    assert "bootstrap" not in conclusions.corrected_p(audit, shown.tail(1))


def leads(low=0.1):
    tests = [("ascent", ""), ("ascent", "retrained"), ("ascent", "original")]
    rows = pd.DataFrame(tests, columns=["model", "against"])
    rows = rows.assign(unlearning="ascent", task="chapters", n_selected=8, difference=0.2)
    return rows.assign(ci_low=[0.1, 0.1, low], ci_high=0.3)


def truth(selected, other, low=-0.4, p=0.46, task="chapters"):
    row = {"unlearning": "ascent", "task": task, "mean_selected": selected, "mean_other": other}
    row |= {"difference": selected - other, "ci_low": low, "ci_high": 0.6, "p_adjusted": p}
    return pd.DataFrame([row])


def test_a_lead_is_told_with_the_truth_about_the_items():
    missed = conclusions.lead_without_the_truth(leads(), truth(0.0, 0.28), "retrained")
    assert "the 8 selected items lead by +0.20 [0.10, 0.30]" in missed
    assert "But the share" in missed and "0.00 among the selected items and 0.28" in missed
    assert missed.endswith("the selection does not find the items that we left out.")
    found = conclusions.lead_without_the_truth(leads(), truth(0.5, 0.2), "retrained")
    assert "And the share" in found and "does not find" not in found
    none = conclusions.lead_without_the_truth(leads(low=-0.1), truth(0.0, 0.28), "retrained")
    assert none == "In no audit do all three intervals lie above 0."


def counts(*selected):
    return pd.DataFrame({"n_items": 64, MIN_K: selected})


def test_a_window_that_selects_none_or_all_is_no_rule():
    useless = conclusions.window_result(counts(0, 64, 33))
    assert "0 of 64, 64 of 64 and 33 of 64 items. In 2 of 3 audits" in useless
    assert "cannot be used here" in useless
    assert "two groups that can be compared" in conclusions.window_result(counts(12, 33))


def test_whether_the_selection_finds_what_was_left_out():
    said = conclusions.left_out_result(truth(0.58, 0.17, low=0.12))
    assert "0.58 of the selected items were left out and 0.17 of the others" in said
    assert said.endswith("After the correction this is not significant.")
    assert "correction" not in conclusions.left_out_result(truth(0.6, 0.1, 0.12, 0.01))
    assert conclusions.left_out_result(truth(0.0, 0.28)).startswith("In no audit")


def test_the_audit_concludes_what_its_tables_show():
    elsewhere = truth(0.6, 0.2, low=0.1, task="questions")
    said = conclusions.conclusion(leads(), elsewhere, counts(0), models(90))
    assert said.startswith("We cannot say whether the suspicious items are still in the model's")
    assert "After ascent (90 %), most of the memory is left" in said
    assert "none or all of the items in 1 of 1 audits" in said
    assert "ahead in every comparison in 1 of 1 audits" in said
    assert "These are different audits, so the two signs do not agree." in said
    here = truth(0.6, 0.2, low=0.1)
    other = conclusions.conclusion(leads(), here, counts(33), models(10))
    assert "different audits" not in other
    assert "most of the memory" not in other and "window" not in other
