"""Algorithms 1 and 2 and the judges on the released figures."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT
from released_tables import time_travel

from contamination.core import run
from contamination.core.verdicts import OPEN, RULED_OUT, SHOWN
from contamination.data import published
from contamination.models import judging
from contamination.replication import agreement, decisions, released_texts
from contamination.replication.algorithms import (
    compare_instructions,
    is_contaminated,
    partition_mark,
)

SCORER = SimpleNamespace(identity={"bleurt_by": "a package"})


@pytest.fixture
def tests():
    return time_travel().tests


@pytest.fixture
def judged():
    return time_travel().judged


@pytest.fixture
def marks():
    return time_travel().marks


@pytest.fixture
def success():
    return time_travel().success


@pytest.mark.parametrize(
    ("verdicts", "mark"),
    [
        (["inexact"] * 10, "×"),
        (["near-exact"] + ["inexact"] * 9, "×"),
        (["near-exact"] * 2 + ["inexact"] * 8, "✓✓"),
        (["exact"] + ["inexact"] * 9, "✓"),
        (["exact", "near-exact", "near-exact"], "✓"),
        ([], "×"),
    ],
)
def test_marks_of_algorithm_2(verdicts, mark):
    assert partition_mark(verdicts) == mark
    assert is_contaminated(verdicts) == (mark != "×")


def test_table_2_matches_in_every_mean_and_asterisk(tests):
    assert len(tests) == 56
    assert tests["significant"].equals(tests["paper_significant"])
    assert tests["significant"].sum() == 24
    assert tests["significant_unpaired"].sum() == 16
    assert tests["significant_holm"].sum() == 12
    assert tests["significant_sign_flip"].sum() == 18
    assert tests["significant_sign_flip_holm"].sum() == 0


def test_a_test_that_cannot_reject_is_open(tests):
    """Ten instances: p is 1/1,024 at best, and the first of 56 corrected tests needs 1/1,120."""
    assert tests["p_sign_flip_smallest"].min() == 1 / 1024 > 0.05 / 56
    assert not tests["can_reject"].any()
    assert "verdict" not in tests


def twenty_instances(guided):
    """The same 56 tests with every released instance twice, the guided scores moved."""
    instances = time_travel().instances
    more = pd.concat([instances, instances])
    for metric in ("rouge", "bleurt"):
        more[f"{metric}_guided"] = guided(more[f"{metric}_general"]).round(2)
    return released_texts.replication_published(more)


def test_with_twice_the_instances_sign_flips_can_confirm_and_refute():
    higher = twenty_instances(lambda general: general + 0.2)
    assert higher["can_reject"].all() and higher["significant_sign_flip_holm"].all()
    assert higher["difference"].round(6).eq(0.2).all()
    lower = twenty_instances(lambda general: general - 0.01)
    assert lower["significant"].sum() == 0


def test_guided_gain_has_the_right_sign():
    rows = {"model": "m", "dataset": "d", "split": "s"}
    base = pd.DataFrame([rows] * 4).assign(bleurt_general=0.5, bleurt_guided=0.5)
    gain = base.assign(rouge_general=[0.1, 0.2, 0.3, 0.4], rouge_guided=[0.5, 0.6, 0.7, 0.8])
    loss = gain.rename(columns={"rouge_general": "rouge_guided", "rouge_guided": "rouge_general"})
    p_gain = compare_instructions(gain).set_index("metric").loc["ROUGE-L"]
    p_loss = compare_instructions(loss).set_index("metric").loc["ROUGE-L"]
    assert p_gain["p_paired"] == 0.0
    assert p_loss["p_paired"] == 1.0
    assert p_gain["mean_guided"] - p_gain["mean_general"] == pytest.approx(0.4)


def test_table_1_matches_and_stands_beside_constant_answers(success):
    paper = success[success["paper_n_right"].ne("")]
    assert len(paper) == 6 + 2  # Table 1, and section 5 on Did-ChatGPT-Cheat?
    assert paper["matches"].all()
    constant = success.query("algorithm == 'always clean'").set_index("model")["n_right"]
    assert constant.to_dict() == {"GPT-4": 7, "GPT-3.5": 13, "both models": 20}
    judge = success.query("test == 'judge' and model == 'both models'").iloc[0]
    assert (judge["n_right"], judge["n_found"], judge["n_contaminated"]) == (27, 7, 8)


def test_rates_of_section_5_follow_from_the_printed_marks(tests, marks, success):
    def rates(table):
        cells = released_texts.recomputed_cells(tests, marks, table)
        cells = cells[cells["table"].eq("Section 5 text")]
        return cells.set_index("model")["recomputed"].to_dict()

    assert rates(success) == {"GPT-4": "0/14", "GPT-3.5": "11/13"}
    row = success.query("algorithm == 'Did-ChatGPT-Cheat?'").set_index("model").loc["both models"]
    # 28 partitions, 8 of them contaminated; 16 are suspicious, which is no decision.
    assert (row["n_right"], row["n_partitions"], row["n_contaminated"]) == (11, 28, 8)
    assert row["n_found"] == 0


def test_a_partition_marked_otherwise_changes_the_rate_of_section_5(tests, judged, monkeypatch):
    cells = published.printed_cells()
    is_mark = cells["row"].eq("Did-ChatGPT-Cheat?") & cells["metric"].eq("mark")
    found = is_mark & cells["model"].eq("GPT-3.5") & cells["dataset"].eq("XSum")
    found &= cells["split"].eq("test")  # the one that the human label calls contaminated
    assert found.sum() == 1
    changed = cells.assign(value=cells["value"].where(~found, "✓"))
    monkeypatch.setattr(released_texts, "printed_cells", lambda: changed)
    table = released_texts.replication_success(tests, judged).set_index(["model", "algorithm"])
    row = table.loc[("GPT-3.5", "Did-ChatGPT-Cheat?")]
    assert (row["n_right"], row["n_found"]) == (12, 1)


def test_rule_labels_by_hand():
    rouge = np.array([1.0, 0.9, 0.5])
    assert judging.rule_labels(rouge, 0.8).tolist() == ["exact", "near-exact", "inexact"]


def test_threshold_of_a_partition_does_not_see_its_own_labels():
    # In partition x near-exact begins at 0.4, elsewhere at 0.8.
    rouge = np.array([0.4, 0.4, 0.3, 0.8, 0.8, 0.7])
    labels = (["near-exact"] * 2 + ["inexact"]) * 2
    thresholds = agreement.leave_one_partition_out(rouge, labels, ["x"] * 3 + ["y"] * 3)
    assert thresholds.tolist() == [0.8] * 3 + [0.4] * 3
    # Its own labels do not move a partition's threshold.
    turned = ["inexact"] * 3 + labels[3:]
    thresholds = agreement.leave_one_partition_out(rouge, turned, ["x"] * 3 + ["y"] * 3)
    assert (thresholds[:3] == 0.8).all()


def test_agreement_by_hand():
    judge = ["exact", "inexact", "near-exact", "inexact"]
    reference = ["exact", "near-exact", "near-exact", "inexact"]
    row = agreement.agreement_row(judge, reference, ["p", "p", "q", "q"])
    assert (row["n"], row["n_agree"], row["agreement"]) == (4, 3, 0.75)
    assert (row["n_near"], row["n_near_found"], row["n_near_flagged"]) == (2, 1, 1)
    assert (row["n_partitions"], row["n_partitions_right"]) == (2, 2)
    # Of two near-exact matches nothing follows.
    assert (row["holds"], row["note"]) == (None, "fewer than 5 near-exact matches")


@pytest.mark.parametrize(("n_found", "holds"), [(20, True), (12, None), (5, False)])
def test_agreement_on_most_near_exact_matches(n_found, holds):
    judge = ["near-exact"] * n_found + ["inexact"] * (20 - n_found)
    row = agreement.agreement_row(judge, ["near-exact"] * 20, ["p"] * 20)
    assert (row["near_agreement"], row["holds"]) == (n_found / 20, holds)


def test_a_correction_for_many_judges_takes_a_small_agreement_back(judged, monkeypatch):
    """15 of 20 are most of them for one judge, and not for the best of eighteen."""

    def holds(n_found):
        def row(judge, reference, partitions):
            rows.append(n_found if not rows else 10)
            labels = ["near-exact"] * rows[-1] + ["inexact"] * (20 - rows[-1])
            return of_one(labels, ["near-exact"] * 20, ["p"] * 20)

        rows = []
        monkeypatch.setattr(released_texts, "agreement_row", row)
        return released_texts.judge_agreement(judged)["holds"][0]

    of_one = agreement.agreement_row
    assert of_one(["near-exact"] * 15 + ["inexact"] * 5, ["near-exact"] * 20, ["p"] * 20)["holds"]
    assert pd.isna(holds(15)) and holds(20)


def test_judge_agreement_of_the_released_labels(judged):
    table = released_texts.judge_agreement(judged).set_index(["judge", "subset"])
    every = table.loc[("GPT-4 ICL", "all")]
    assert every[["n", "n_agree", "n_near", "n_near_found"]].tolist() == [280, 269, 13, 7]
    assert table.loc[("GPT-4 ICL", "all, without prompt examples"), "n"] == 272
    assert table.loc[("GPT-4 ICL", "GPT-3.5"), "kappa"] < 0
    assert table.loc[("annotator 2", "all"), "n_agree"] == 280  # no second opinion


# Verdicts


def test_verdicts_of_table_1_beside_the_answer_clean(success):
    verdicts = success.set_index(["model", "algorithm", "test"])["verdict"]
    # Right alone in 7 partitions, wrong alone in none: p = 2 / 2^7, of three algorithms 6 / 2^7.
    assert verdicts["GPT-4", "Algorithm 2: GPT-4 ICL", "judge"] == SHOWN
    # 7 and 1: p = 18 / 2^8.
    assert verdicts["GPT-4", "Algorithm 1: ROUGE-L", "paired bootstrap"] == OPEN
    # 0 and 6.
    assert verdicts["GPT-3.5", "Algorithm 1: ROUGE-L", "paired bootstrap"] == RULED_OUT
    assert verdicts["GPT-3.5", "always clean", "constant"] == ""
    difference = success.set_index(["model", "algorithm", "test"])["difference_pct"]
    assert difference["GPT-4", "Algorithm 2: GPT-4 ICL", "judge"] == 50
    assert difference["GPT-3.5", "Algorithm 1: ROUGE-L", "paired bootstrap"] < -40


def test_the_three_algorithms_of_a_model_are_one_family(success):
    """A fourth test of the same p would take the judge's verdict back: 4 x 2 / 2^7 is above 5 %."""
    rows = success[success["p_adjusted"].notna()]
    assert rows.groupby("model").size().eq(3).all()
    judge = rows.query("test == 'judge' and model == 'GPT-4'").iloc[0]
    assert judge["p_adjusted"] == pytest.approx(3 * judge["p_value"]) and judge["p_value"] == 2**-6
    assert 4 * judge["p_value"] > 0.05


def test_released_texts_are_scored_by_bleurt_joined_as_the_paper_says(monkeypatch):
    rows = pd.DataFrame(
        {"first_piece": "A b", "second_piece": "c d", "completion": "c e"}, range(3)
    )
    rows = rows.assign(is_pair=[False, False, True], is_mid_sentence=[True, False, False])
    rows = rows.assign(released_rouge=0.5, released_bleurt=[0.43, 0.43, 0.44])
    asked = []

    def scores(scorer, references, candidates):
        asked.append(list(zip(references, candidates, strict=True)))
        return np.array([0.4349, 0.4351, 0.4351])

    monkeypatch.setattr(decisions.bleurt, "score_pairs", scores)
    without = released_texts.rescored(rows)
    assert without["bleurt"].isna().all() and without["bleurt_by"].eq("").all() and not asked
    table = released_texts.rescored(rows, scorer=SCORER)
    alone, joined = ("c d", "c e"), ("A b c d", "A b c e")
    assert asked.pop() == [joined, alone, alone]
    assert table["bleurt_differs"].tolist() == [False, True, False]
    assert table["bleurt_by"].eq("a package").all()
    released_texts.rescored(rows, scorer=SCORER, joining="code")
    assert asked.pop() == [joined, joined, alone]


def test_the_parameters_that_rescore_the_released_texts_use_the_paper_s_bleurt():
    path = ROOT / "params/full/replication_released.yaml"
    notebook = ROOT / "notebooks/03b_replication_lab.ipynb"
    values = run.check(notebook, path)
    assert values["use_released_files"]
    assert values["bleurt_checkpoint"].endswith("/BLEURT-20")
    demo = run.check(notebook, ROOT / "params/demo/03b_replication_lab.yaml")
    same = demo.keys() - {"use_released_files", "bleurt_checkpoint"}
    assert {name: values[name] for name in same} == {name: demo[name] for name in same}


@pytest.mark.mirror
def test_released_completions_give_the_released_scores():
    completions = released_texts.time_travel_completions()
    assert len(completions) == 560
    assert released_texts.rescored(completions)["differs"].sum() == 2
    values = published.released_instances("Time Travel")
    assert sorted(completions["released_bleurt"]) == sorted(
        [*values["bleurt_guided"], *values["bleurt_general"]]
    )
    # Pairs are never cut; AG News and XSum are cut within a sentence, most others at an end.
    cut_within = completions.groupby("dataset")["is_mid_sentence"].mean()
    assert cut_within[["RTE", "WNLI"]].eq(0).all() and cut_within[["AG News", "XSum"]].eq(1).all()
    assert cut_within[["IMDB", "Yelp", "SAMSum"]].lt(0.5).all()


@pytest.mark.mirror
def test_rule_judge_finds_the_exact_matches_of_the_dcq_repository():
    completions = released_texts.dcq_completions()
    assert len(completions) == 1706
    assert completions["judge"].notna().all()
    key = ["model", "dataset", "split", "index"]
    both = completions.merge(published.released_instances("DCQ"), on=key, suffixes=("", "_figures"))
    assert (both["judge"] == both["judge_figures"]).all()
    some = completions[completions["judge"].ne("inexact")]
    pairs = zip(some["second_piece"], some["completion"], strict=True)
    verdicts = np.array([judging.rule_label(*pair) for pair in pairs])
    assert ((verdicts == "exact") == some["judge"].eq("exact")).all()
