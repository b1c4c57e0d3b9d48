"""What notebooks 07 and 08 conclude follows their tables, and turns where the tables turn."""

import pandas as pd
import pytest

from contamination.cases import conclusions
from contamination.core.scores import MIN_K
from contamination.core.verdicts import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED

# Notebook 07


def test_an_auc_above_chance_may_find_few_rows_at_the_top():
    few = conclusions.top_of_the_list(0.67, 0.02)
    assert few.startswith("Although the AUC is above chance, fewer than 5 % of the inserted rows")
    many = conclusions.top_of_the_list(0.67, 0.3)
    assert many.startswith("The limit finds 30 % of the inserted rows.") and "fewer" not in many
    assert conclusions.top_of_the_list(0.4, 0.02).startswith("The AUC is not above chance")


def by_times(low):
    rows = pd.DataFrame({"occurrence": [1, 4], "blind_auc": [0.5, 0.7]})
    return rows.assign(blind_ci_low=[0.4, low], blind_ci_high=[0.6, 0.8])


def test_uneven_words_are_named():
    uneven = conclusions.words_by_occurrence(by_times(low=0.55))
    assert "inserted 4 or more times (0.70 [0.55, 0.80])" in uneven and "its change" in uneven
    even = conclusions.words_by_occurrence(by_times(low=0.45))
    assert "contains one half for every number" in even and "0.70" not in even


def rates(gap_low, n_models=1):
    rows = pd.DataFrame({"accuracy_contaminants": [0.4, 0.6], "accuracy_others": [0.4, 0.5]})
    rows = rows.assign(gap_low=[-0.1, gap_low], gap_high=[0.1, 0.2], n_models=n_models)
    return rows.assign(difference=[None, 0.13], difference_low=0.1, difference_high=0.16)


def test_learning_rates_are_compared():
    open_ = conclusions.rates_result(rates(gap_low=-0.05))
    assert "is +0.13 [0.10, 0.16]" in open_ and "+0.10 [-0.05, 0.20] at the raised one" in open_
    assert "no gap is shown. With one model for each rate, " in open_
    assert open_.endswith("other models is inconclusive.")
    shown = conclusions.rates_result(rates(gap_low=0.05, n_models=5))
    assert "answers inserted examples better. The verdicts are below." in shown


def test_corpus_sizes_are_compared():
    rows = pd.DataFrame({"setting": ["outliers"] * 3, "n_tokens": [1, 2, 3], "n_models": 1})
    rows = rows.assign(difference=[None, 0.02, 0.03], difference_low=0.01, difference_high=0.05)
    said = conclusions.sizes_result(rows, 0.008)
    assert "changes by +0.03 [0.01, 0.05] (outliers). The order of the texts alone" in said
    assert "by 0.008. With one model for each corpus size" in said and INCONCLUSIVE in said
    many = conclusions.sizes_result(rows.assign(n_models=5), 0.0)
    assert INCONCLUSIVE not in many and "order" not in many
    assert "nothing to compare" in conclusions.sizes_result(rows.head(1), 0.0)


def test_verdicts_in_one_sentence():
    rows = pd.DataFrame({"n_models": [2, 1], "verdict": INCONCLUSIVE})
    said = conclusions.verdicts_in_brief(rows)
    assert "make 2 claims" in said and "All are inconclusive, because we trained at most 2" in said
    other = conclusions.verdicts_in_brief(rows.assign(n_models=5, verdict=[SUPPORTED] * 2))
    assert other.endswith(": supported (2).")


def of_bases(verdict=SUPPORTED, auc=0.98):
    rows = pd.DataFrame({"copies": [0, 1, 12], "n_units": 20, "auc": [0.52, 0.65, auc]})
    return rows.assign(
        ci_low=rows["auc"] - 0.02, ci_high=rows["auc"] + 0.02, verdict=["", verdict, verdict]
    )


def study_said(bases, low=-0.03, n_models=1, paper="0.86"):
    once = {"auc": 0.61, "ci_low": 0.57, "ci_high": 0.65, "share_pct": 45.7, "paper_auc": paper}
    correction = pd.DataFrame({"copies": [0, 8], "inflation": [0.0, 0.03]})
    correction = correction.assign(ci_low=low, ci_high=0.1)
    others = pd.DataFrame({"n_models": [n_models]})
    return conclusions.downstream_conclusion(bases, pd.Series(once), correction, others)


def test_the_study_concludes_what_its_tables_show():
    said = study_said(of_bases())
    assert said.startswith("Inserted rows can be found, and more easily if they occur often. Over")
    assert "0.65 [0.63, 0.67] for rows seen once and 0.98 [0.96, 1.00] for rows seen 12" in said
    assert "control is 0.52 [0.50, 0.54]" in said and "46 % are inserted rows" in said
    assert "prints 0.86 with a far smaller share" in said
    assert "the inflation is +0.03 [-0.03, 0.10], so none is shown" in said
    assert said.endswith("too few models for each comparison.")


def test_the_study_concludes_the_opposite_from_opposite_tables():
    said = study_said(of_bases(NOT_SUPPORTED), low=0.01, n_models=5, paper="")
    assert said.startswith("That inserted rows can be found is not shown.")
    assert "is inflated: with 8 copies, by +0.03 [0.01, 0.10]." in said
    assert all(part not in said for part in ("prints", "none is shown", INCONCLUSIVE))
    assert "more copies help is not shown" in study_said(of_bases(auc=0.66))


# Notebook 08


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


def truth(selected, other, low=-0.4, verdict=INCONCLUSIVE, task="chapters"):
    row = {"unlearning": "ascent", "task": task, "mean_selected": selected, "mean_other": other}
    row |= {"difference": selected - other, "ci_low": low, "ci_high": 0.6, "p_adjusted": 0.46}
    return pd.DataFrame([row | {"verdict": verdict}])


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
    assert said.endswith("After the correction this is inconclusive.")
    assert INCONCLUSIVE not in conclusions.left_out_result(truth(0.6, 0.1, 0.12, SUPPORTED))
    assert conclusions.left_out_result(truth(0.0, 0.28)).startswith("In no audit")


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (INCONCLUSIVE, "or are simply easy, is inconclusive: we have one model of each kind."),
        (SUPPORTED, "In 1 of 1 audits, the selected items were not unlearned."),
        (NOT_SUPPORTED, "In no audit do we show that the selected items were not unlearned."),
    ],
)
def test_the_audit_concludes_what_its_tables_show(verdict, expected):
    meant = pd.DataFrame({"verdict": [verdict]})
    elsewhere = truth(0.6, 0.2, low=0.1, task="questions")
    said = conclusions.unlearning_conclusion(leads(), elsewhere, meant, counts(0), models(90))
    assert expected in said and "After ascent (90 %), most of the memory is left" in said
    assert "none or all of the items in 1 of 1 audits" in said
    assert "These are different audits, so the two signs do not agree." in said
    here = truth(0.6, 0.2, low=0.1)
    other = conclusions.unlearning_conclusion(leads(), here, meant, counts(33), models(10))
    assert expected in other and "different audits" not in other
    assert "most of the memory" not in other and "window" not in other
