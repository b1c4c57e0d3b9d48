"""Algorithms 1 and 2, the judges, and the sentences built from their tables."""

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT

from contamination import judging, published, run
from contamination.replication import agreement, findings, published_tables
from contamination.replication.algorithm1 import compare_instructions
from contamination.replication.algorithm2 import is_contaminated, partition_mark


@pytest.fixture(scope="module")
def instances():
    return published.released_instances("Time Travel")


@pytest.fixture(scope="module")
def tests(instances):
    return published_tables.replication_published(instances, n_resamples=200)


@pytest.fixture(scope="module")
def judged(instances):
    return published_tables.judged_instances(instances)


@pytest.fixture(scope="module")
def marks(judged):
    return published_tables.replication_marks(judged)


@pytest.fixture(scope="module")
def success(tests, judged):
    return published_tables.replication_success(tests, judged)


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
    assert tests["matches"].all()
    assert tests["significant"].sum() == 24
    assert tests["significant_unpaired"].sum() == 16
    assert tests["significant_holm"].sum() == 12
    assert tests["significant_sign_flip"].sum() == 18
    assert tests["significant_sign_flip_holm"].sum() == 0


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
        cells = published_tables.recomputed_cells(tests, marks, table)
        cells = cells[cells["table"].eq("Section 5 text")]
        return cells.set_index("model")["recomputed"].to_dict()

    assert rates(success) == {"GPT-4": "0/14", "GPT-3.5": "11/13"}
    row = success.query("algorithm == 'Did-ChatGPT-Cheat?'").set_index("model").loc["both models"]
    # 28 partitions, 8 of them contaminated; 16 are suspicious, which is no decision.
    assert (row["n_right"], row["n_partitions"], row["n_contaminated"]) == (11, 28, 8)
    assert (row["n_found"], row["n_flagged"]) == (0, 0)


def test_a_partition_marked_otherwise_changes_the_rate_of_section_5(tests, judged, monkeypatch):
    cells = published.printed_cells()
    is_mark = cells["row"].eq("Did-ChatGPT-Cheat?") & cells["metric"].eq("mark")
    found = is_mark & cells["model"].eq("GPT-3.5") & cells["dataset"].eq("XSum")
    found &= cells["split"].eq("test")  # the one that the human label calls contaminated
    assert found.sum() == 1
    changed = cells.assign(value=cells["value"].where(~found, "✓"))
    monkeypatch.setattr(published_tables, "printed_cells", lambda: changed)
    table = published_tables.replication_success(tests, judged).set_index(["model", "algorithm"])
    row = table.loc[("GPT-3.5", "Did-ChatGPT-Cheat?")]
    assert (row["n_right"], row["n_found"], row["n_flagged"]) == (12, 1, 1)


def test_marks_differ_only_where_both_apply(marks):
    differing = marks[marks["matches"].eq(False)]
    assert len(differing) == 2
    assert set(differing["dataset"]) == {"RTE"}
    assert (differing["n_exact"].ge(1) & differing["n_near_exact"].ge(2)).all()


def test_rule_verdicts_by_hand():
    rouge = np.array([1.0, 0.9, 0.5])
    assert judging.rule_verdicts(rouge, 0.8).tolist() == ["exact", "near-exact", "inexact"]
    equal, contained = np.array([False, False, False]), np.array([False, False, True])
    verdicts = judging.rule_verdicts(rouge, 0.95, equal, contained)
    assert verdicts.tolist() == ["near-exact", "inexact", "near-exact"]


@pytest.mark.parametrize(
    ("reference", "candidate", "verdict"),
    [
        ("The cat sat.", "the cat  sat", "exact"),
        ("The cat sat on the mat", "The cat sat on the mat and slept all day long", "near-exact"),
        ("The cat", "The cat sat on the mat", "inexact"),
        ("The cat sat on the mat", "", "inexact"),
        ("The cat sat on the mat", "A dog", "inexact"),
    ],
)
def test_rule_judge_on_texts(reference, candidate, verdict):
    assert judging.rule_verdict(reference, candidate, near_exact_threshold=0.8) == verdict


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


def test_judge_agreement_of_the_released_labels(judged):
    table = published_tables.judge_agreement(judged).set_index(["judge", "subset"])
    every = table.loc[("GPT-4 ICL", "all")]
    assert (every["n"], every["n_agree"], every["n_near"], every["n_near_found"]) == (
        280,
        269,
        13,
        7,
    )
    assert table.loc[("GPT-4 ICL", "all, without prompt examples"), "n"] == 272
    assert table.loc[("GPT-4 ICL", "GPT-3.5"), "kappa"] < 0


def test_confusion_keeps_kinds_that_do_not_occur():
    table = agreement.confusion(["exact", "inexact"], ["exact", "inexact"])
    assert table.shape == (3, 3)
    assert table.to_numpy().sum() == 2


# Sentences: a table that confirms and one that refutes


def test_test_choice_sentence(tests):
    assert "depends on the choice of test" in findings.test_choice_sentence(tests)
    names = [name for name in tests if name.startswith("significant_")]
    same = tests.assign(**{name: tests["significant"] for name in names})
    assert "changes nothing" in findings.test_choice_sentence(same)


def test_power_sentence(tests):
    assert "10 instances are too few for 56 tests" in findings.power_sentence(tests)
    assert "a cell can pass" in findings.power_sentence(tests.assign(n=20))


def test_seed_sentence(tests):
    text = findings.seed_sentence(tests)
    assert "2 cells depend on the seed" in text
    assert "GPT-3.5 WNLI validation ROUGE-L" in text
    assert "No cell" in findings.seed_sentence(tests.assign(chance_significant=1.0))


def test_success_sentence(success):
    text = findings.success_sentence(success)
    assert "answering “always clean” is right in 13, Algorithm 1: BLEURT 9" in text
    assert "cannot separate the methods" in text
    assert text.endswith("Better than the constant answer: Algorithm 2: GPT-4 ICL.")
    worse = success.assign(n_right=success["n_right"].where(success["test"].eq("constant"), 0))
    assert findings.success_sentence(worse).endswith("Better than the constant answer: none.")


def test_sentences_do_not_change_when_a_table_goes_through_a_file(
    tests, success, marks, judged, tmp_path
):
    from contamination.storage import Outputs

    agreement_table = published_tables.judge_agreement(judged)
    outputs = Outputs()
    for name, table, sentence in [
        ("tests", tests, findings.test_choice_sentence),
        ("success", success, findings.success_sentence),
        ("marks", marks, findings.false_positive_sentence),
        ("agreement", agreement_table, findings.judge_sentence),
    ]:
        outputs.write_table(name, table)
        assert sentence(outputs.read_table(name, "x")) == sentence(table)


def test_judge_sentence(judged):
    table = published_tables.judge_agreement(judged)
    text = findings.judge_sentence(table)
    assert "0 of 3 near-exact matches found (95 % interval 0 to 56 %), too few to tell" in text
    enough = findings.judge_sentence(table.assign(n_near=30))
    assert "too few" not in enough


def test_annotator_sentence(judged):
    table = published_tables.judge_agreement(judged)
    assert "the same in all 280 cases" in findings.annotator_sentence(table)
    assert "bounds what any judge" in findings.annotator_sentence(table.assign(n_agree=270))


def test_false_positive_sentence(marks):
    text = findings.false_positive_sentence(marks)
    assert "GPT-4 on WNLI validation with a threshold of 0.56" in text
    assert "a mistake of the rule" in text
    assert "1 of 28 on the general ones (95 % interval 1 to 18 %)" in text
    general = marks["instruction"].eq("general")
    clean = marks.assign(mark=marks["mark"].where(~general, "×"))
    assert "no flag arises" in findings.false_positive_sentence(clean)
    flagged = marks.assign(mark=marks["mark"].where(~general, "✓✓"))
    assert "the texts must be read" in findings.false_positive_sentence(flagged)


def test_rescoring_and_text_rule_sentences():
    rows = pd.DataFrame({"model": ["m"], "dataset": ["d"], "split": ["s"]})
    rows = rows.assign(rouge=0.5, released_rouge=0.5, differs=False)
    assert findings.rescoring_sentence(rows).startswith("1 of 1")
    differing = rows.assign(rouge=0.6, differs=True)
    assert "1 do not (m d s; the largest difference is 0.100)" in findings.rescoring_sentence(
        differing
    )
    row = agreement.agreement_row(["near-exact"] * 2, ["near-exact"] * 2, ["p", "p"])
    assert "mostly agree" in findings.text_rule_sentence(pd.DataFrame([row]))
    row = agreement.agreement_row(["near-exact", "inexact"], ["inexact", "near-exact"], ["p", "q"])
    assert "for near-exact ones it is not" in findings.text_rule_sentence(pd.DataFrame([row]))


def test_released_texts_are_scored_by_bleurt_joined_as_the_paper_says(monkeypatch):
    from contamination.replication import released

    rows = pd.DataFrame(
        {"first_piece": "A b", "second_piece": "c d", "completion": "c e"}, range(3)
    )
    rows = rows.assign(is_pair=[False, False, True], is_mid_sentence=[True, False, False])
    rows = rows.assign(released_rouge=0.5, released_bleurt=[0.43, 0.43, 0.44])
    asked = []

    def scores(scorer, references, candidates):
        asked.append(list(zip(references, candidates, strict=True)))
        return np.array([0.4349, 0.4351, 0.4351])

    monkeypatch.setattr(released, "bleurt", scores)
    without = released.rescored(rows)
    assert without["bleurt"].isna().all() and not asked
    table = released.rescored(rows, scorer=object())
    alone, joined = ("c d", "c e"), ("A b c d", "A b c e")
    assert asked.pop() == [joined, alone, alone]
    assert table["bleurt_differs"].tolist() == [False, True, False]
    text = findings.rescoring_sentence(
        table.assign(model="m", dataset="d", split="s"), metric="BLEURT"
    )
    assert text.startswith("2 of 3 released BLEURT values follow") and "is 0.005)" in text
    released.rescored(rows, scorer=object(), joining="code")
    assert asked.pop() == [joined, joined, alone]


def test_the_parameters_that_rescore_the_released_texts_use_the_paper_s_bleurt():
    path = ROOT / "params/full/replication_released.yaml"
    values = run.check(ROOT / "notebooks/03_replication_icl_judge.ipynb", path)
    assert values["use_released_files"] and values["own_settings"] == {}
    assert values["bleurt_checkpoint"].endswith("/BLEURT-20")
    demo = run.check(
        ROOT / "notebooks/03_replication_icl_judge.ipynb",
        ROOT / "params/demo/03_replication_icl_judge.yaml",
    )
    same = demo.keys() - {"use_released_files", "bleurt_checkpoint"}
    assert {name: values[name] for name in same} == {name: demo[name] for name in same}


@pytest.mark.mirror
def test_released_completions_give_the_released_scores():
    from contamination.replication import released

    completions = released.time_travel_completions()
    assert len(completions) == 560
    assert released.rescored(completions)["differs"].sum() == 2
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
    from contamination.replication import released

    completions = released.dcq_completions()
    assert len(completions) == 1706
    assert completions["judge"].notna().all()
    key = ["model", "dataset", "split", "index"]
    both = completions.merge(published.released_instances("DCQ"), on=key, suffixes=("", "_figures"))
    assert (both["judge"] == both["judge_figures"]).all()
    some = completions[completions["judge"].ne("inexact")]
    judged_texts = released.rule_judged(some, near_exact_threshold=0.82)
    assert (judged_texts["rule"].eq("exact") == judged_texts["judge"].eq("exact")).all()
