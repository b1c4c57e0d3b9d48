"""What notebook 07 concludes follows its tables, and turns where the tables turn."""

import pandas as pd

from contamination.cases import downstream_conclusions as conclusions
from contamination.core.verdicts import INCONCLUSIVE


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
    assert "answers inserted examples better." in shown


def test_corpus_sizes_are_compared():
    rows = pd.DataFrame({"setting": ["outliers"] * 3, "n_tokens": [1, 2, 3], "n_models": 1})
    rows = rows.assign(difference=[None, 0.02, 0.03], difference_low=0.01, difference_high=0.05)
    said = conclusions.sizes_result(rows, 0.008)
    assert "changes by +0.03 [0.01, 0.05] (outliers). The order of the texts alone" in said
    assert "by 0.008. With one model for each corpus size" in said and INCONCLUSIVE in said
    many = conclusions.sizes_result(rows.assign(n_models=5), 0.0)
    assert INCONCLUSIVE not in many and "order" not in many
    assert "nothing to compare" in conclusions.sizes_result(rows.head(1), 0.0)


def study_said(change=0.05, low=-0.03, n_models=1, paper="0.86"):
    once = {"auc": 0.61, "ci_low": 0.57, "ci_high": 0.65, "share_pct": 45.7, "paper_auc": paper}
    once |= {"difference": 0.1, "difference_low": change, "difference_high": 0.2}
    correction = pd.DataFrame({"copies": [0, 8], "inflation": [0.0, 0.03]})
    correction = correction.assign(ci_low=low, ci_high=0.1)
    return conclusions.conclusion(pd.Series(once | {"n_models": n_models}), correction)


def test_the_study_concludes_what_its_tables_show():
    said = study_said()
    assert said.startswith(
        "In our models, inserting a row once raises its AUC: Min-k% Prob reaches"
    )
    assert "0.61 [0.57, 0.65], and the change is +0.10 [0.05, 0.20]." in said
    assert "46 % are inserted rows" in said and "prints 0.86 with a far smaller share" in said
    assert "the inflation is +0.03 [-0.03, 0.10], so none is shown" in said
    assert said.endswith("from one base, what this says about other models is inconclusive.")


def test_the_study_concludes_the_opposite_from_opposite_tables():
    said = study_said(change=-0.05, low=0.01, n_models=5, paper="")
    assert said.startswith("In our models, inserting a row once is not shown to raise its AUC")
    assert said.endswith("is inflated: with 8 copies, by +0.03 [0.01, 0.10].")
    assert all(part not in said for part in ("prints", "none is shown", INCONCLUSIVE))
