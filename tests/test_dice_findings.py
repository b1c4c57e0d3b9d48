"""DICE: sentences built from tables, the printed and released numbers, one's own models."""

import huggingface_hub
import numpy as np
import pandas as pd
import pytest

from contamination.dice import accuracy, controls, findings, own, published_tables
from contamination.published.compare import published_vs_recomputed

INNOCENT = (controls.LEGITIMATE, controls.FORMAT_ONLY, f"{controls.ANOTHER}: MATH x5")


def table_of(**aurocs):
    """Controls with AUROCs five points wide on either side; unnamed ones are at chance."""
    names = {
        "clean": controls.TWO_CLEAN,
        "clean_learnt": controls.TWO_CLEAN_LEARNT,
        "order": controls.REORDERED_CLEAN,
        "order_learnt": controls.REORDERED_LEARNT,
        "strangers": controls.HELD_OUT,
        "within": controls.WITHIN,
        "within_clean": controls.WITHIN_CLEAN,
        "paired": controls.PAIRED,
        "paired_clean": controls.PAIRED_CLEAN,
        "swapped": controls.SWAPPED,
        "swapped_clean": controls.SWAPPED_CLEAN,
        "swapped_paired": controls.SWAPPED_PAIRED,
        "swapped_paired_clean": controls.SWAPPED_PAIRED_CLEAN,
        "taught": controls.WITHIN_TAUGHT,
        "taught_clean": controls.WITHIN_TAUGHT_CLEAN,
        "train": INNOCENT[0],
        "format": INNOCENT[1],
        "other": INNOCENT[2],
    }
    values = {name: aurocs.get(key, 50.0) for key, name in names.items()}
    table = pd.DataFrame({"control": values.keys(), "auroc_pct": values.values()})
    return table.assign(ci_low=table["auroc_pct"] - 5, ci_high=table["auroc_pct"] + 5)


# Seen questions score higher whichever half was read, in the model alone and beside a clean one.
MEMBERSHIP = {"within": 90, "swapped": 80, "paired": 95, "swapped_paired": 92}
CONFIRMING = table_of(clean=50, strangers=95, **MEMBERSHIP)
REFUTING = table_of(
    clean=100, clean_learnt=99, order=90, strangers=98, within=51, train=97, format=96, other=95
)


def test_conclusion_of_a_table_that_confirms_the_detector():
    clean, strangers, within, verdict = findings.conclusion(CONFIRMING)
    assert "does not tell two clean models apart" in clean
    assert "holds for models it never met" in strangers
    assert "It sees which questions were read" in within
    assert verdict == "A flag may be read as: this model read these questions."


def test_conclusion_of_a_table_that_refutes_it():
    clean, strangers, within, innocent, verdict = findings.conclusion(REFUTING)
    assert clean.startswith("Two clean models: AUROC 100 [95, 105] where they read other texts, 90")
    assert "learnt from 99 [94, 104] and 50 [45, 55]. Other texts are enough, another" in clean
    assert "another order alone too: the protocol tells such clean models apart" in clean
    assert "holds for models it never met" in strangers
    assert "does not see which questions" in within
    assert all(name in innocent for name in INNOCENT)
    assert "as innocent as their own train split" in verdict


def test_other_texts_may_be_enough_where_another_order_is_not():
    clean = findings.conclusion(table_of(clean=100))[0]
    assert "Other texts are enough, another order alone is not: the protocol tells" in clean
    assert (
        "Another order is enough, other texts not: the"
        in findings.conclusion(table_of(order=90))[0]
    )


def test_conclusion_where_nothing_carries_over():
    found = findings.conclusion(table_of(clean=100, strangers=50, within=50))
    assert "does not carry over" in found[1]
    assert found[-1] == "A flag may be read as: this model differs from the reference, and no more."


def test_sets_that_differ_by_themselves_are_no_membership():
    """One half scores higher in every model, whichever half was read: exchanged roles show it."""
    found = findings.conclusion(
        table_of(strangers=90, within=80, within_clean=79, swapped=20, swapped_clean=21)
    )
    assert "AUROC 80 [75, 85] and 20 [15, 25] where GSM-i and where GSM-ii was read" in found[2]
    assert "It does not see which questions were read." in found[2]
    assert "read these questions" not in found[-1]


def test_membership_in_one_role_alone_is_a_difference_of_the_sets():
    found = findings.conclusion(table_of(strangers=90, **{**MEMBERSHIP, "swapped_paired": 30}))
    assert "Only one of the two sets rises" in found[2]
    assert "read these questions" not in found[-1]


def test_membership_beside_a_clean_model_alone_is_said_so():
    hidden = {"within": 57, "within_clean": 24, "swapped": 40, "swapped_clean": 30}
    found = findings.conclusion(table_of(strangers=90, **{**MEMBERSHIP, **hidden}))
    assert "shows beside a clean model, not in the model alone" in found[2]
    assert found[-1] == "A flag may be read as: this model was fine-tuned on such problems."


def test_a_difference_that_two_clean_models_show_too_is_no_membership():
    nulls = {"paired_clean": 96, "swapped_paired_clean": 93}
    found = findings.conclusion(table_of(strangers=90, **MEMBERSHIP, **nulls))
    assert "It does not see which questions were read." in found[2]


def test_membership_does_not_clear_a_detector_that_flags_innocents():
    verdict = findings.conclusion(table_of(strangers=95, **MEMBERSHIP, other=95))[-1]
    assert "may be as innocent" in verdict
    verdict = findings.conclusion(table_of(strangers=95))[-1]
    assert verdict == "A flag may be read as: this model was fine-tuned on such problems."


def accuracies(seen, fresh):
    rows = [("clean", "GSM-i", 40.0), ("clean", "GSM-ii", 40.0), ("clean", "SVAMP", 10.0)]
    rows += [("x", "GSM-i", seen), ("x", "GSM-ii", fresh), ("x", "SVAMP", 9.0)]
    table = pd.DataFrame(rows, columns=["condition", "benchmark", "accuracy_pct"])
    return table.assign(seed=0, in_distribution=table["benchmark"] != "SVAMP", answer_log_prob=-1.0)


def test_inflation_is_the_gain_that_fresh_questions_do_not_share():
    inflated = findings.accuracy_sentence(accuracies(90.0, 42.0), "x")
    assert "+50 points on GSM-i, +2 on fresh GSM-ii, -1 on other distributions" in inflated
    assert "is inflated" in inflated
    assert "No inflation" in findings.accuracy_sentence(accuracies(60.0, 61.0), "x")
    gaps = accuracy.inflation(accuracies(90.0, 42.0)).set_index("condition")["gap_points"]
    assert gaps.to_dict() == {"clean": 0.0, "x": 48.0}


def test_layers_sentence_weighs_two_clean_models():
    columns = ["model", "distance", "layer", "located", "mean", "null_mean"]
    rows = [("x", "euclidean", 3, True, 2.0, 1.8), ("x", "cosine", 1, True, 1.0, 0.1)]
    text = findings.layers_sentence(pd.DataFrame(rows, columns=columns), "x")
    assert "The rules disagree. Two clean models are 90 % as far apart there: most" in text
    rows = [("x", "euclidean", 3, True, 2.0, 0.2)]
    text = findings.layers_sentence(pd.DataFrame(rows, columns=columns), "x")
    assert "10 % as far apart" in text and "contaminated models read" in text


@pytest.mark.parametrize(("ppl", "reading"), [(45.0, "below DICE"), (1.0, "99 with its sign")])
def test_paper_protocol_folds_the_baselines(ppl, reading):
    rows = [("GSM-i", "DICE", 100.0), ("GSM-ii", "DICE", 98.0), ("GSM-i", "PPL", 60.0)]
    rows += [("GSM-ii", "PPL", ppl), ("GSM-ii", "mean difference", 100.0)]
    table = pd.DataFrame(rows, columns=["tested_on", "method", "auroc_pct"])
    folded = np.maximum(table["auroc_pct"], 100 - table["auroc_pct"])
    text = findings.paper_protocol_sentence(table.assign(folded_auroc_pct=folded))
    assert reading in text


def test_flag_without_a_false_score_is_named():
    correlation = pd.DataFrame(
        [("lab, accuracy", "GSM-i", 4, 0.2), ("lab, gap GSM-i minus GSM-ii", "GSM-i", 4, 0.9)],
        columns=["source", "benchmark", "n_models", "r_squared"],
    )
    columns = ["condition", "gap_points", "flag"]
    gaps = pd.DataFrame([("clean", 0.0, 0.1), ("x", 40.0, 0.9)], columns=columns)
    assert "No condition is flagged" in findings.inflation_sentence(correlation, gaps)
    gaps.loc[2] = ("train split x5", -1.0, 0.8)
    text = findings.inflation_sentence(correlation, gaps)
    assert "R² of the flag with the gap" in text and text.endswith("train split x5.")
    constant = findings.inflation_sentence(correlation.assign(r_squared=np.nan), gaps)
    assert "is undefined, with the accuracy itself undefined" in constant


# Printed and released numbers


def test_printed_tables_are_complete():
    accuracy, auroc = published_tables.printed("Table 1"), published_tables.printed("Table 2")
    assert accuracy.shape == (13, 11) and auroc.shape == (10, 6)
    assert accuracy.iloc[0, :4].tolist() == ["GSM-i", "4.4", "26.9", "94.1"]
    assert published_tables.printed_accuracy()["GSM-i-Syn 10%", "GSM-ii"] == "30.4"
    assert published_tables.printed_auroc()["GSM-i-Syn", "GSM-hard", "Min-k Prob"] == "15.1"


def test_r_squared_by_hand():
    # Correlation of (1, 2, 3) and (1, 3, 2) is one half.
    assert published_tables.r_squared([1, 2, 3], [1, 3, 2]) == pytest.approx(0.25)
    assert np.isnan(published_tables.r_squared([1, 2], [3, 3]))


def test_misalignment_is_counted_from_the_alignment():
    """Counted in the alignment file by hand: 1,319 questions, two of GSM-i without a paraphrase."""
    counts = published_tables.misalignment()
    assert counts == {
        "n_paraphrases": 1317,
        "n_seen": 655,
        "n_unseen": 657,
        "n_dropped": 5,
        "n_same_row": 3,
        "n_without": 2,
    }
    text = findings.misalignment_sentence(counts)
    assert "655 belong to GSM-i and 657 to GSM-ii; 3 stand in the row" in text
    assert "has read paraphrases of GSM-ii too" in text
    assert "GSM-i alone" in findings.misalignment_sentence({**counts, "n_unseen": 0})


@pytest.mark.mirror
def test_released_generations_give_four_printed_cells():
    rescored = published_tables.rescored_generations()
    assert rescored["n"].tolist() == [657] * 4
    assert rescored["matches"].all()
    cells = published_vs_recomputed(published_tables.recomputed_cells(rescored))
    assert cells["matches"].eq(True).sum() == 4
    assert "4 of 4 cells" in findings.rescoring_sentence(rescored)
    worse = rescored.assign(matches=False, matches_correct_parsing=False)
    assert findings.rescoring_sentence(worse).startswith("0 of 4 cells")


@pytest.mark.mirror
def test_released_scores_disagree_where_the_accuracies_agree():
    scores = published_tables.released_scores()
    correlation = published_tables.released_correlation(scores)
    assert correlation["n_models"].tolist() == [10] * 4 + [4] * 4 + [10] * 4
    first = correlation["r_squared"][:4]
    assert first.min() >= 0.605 and first.max() <= 0.755  # printed: 0.61 to 0.75
    both = published_tables.disagreement(scores)
    assert both["row"].nunique() == 4
    text = findings.released_scores_sentence(both, correlation)
    assert "for 2 of them the scores differ" in text
    agreeing = both.assign(difference=0.0)
    assert "their scores agree" in findings.released_scores_sentence(agreeing, correlation)


def test_no_released_file_gives_no_cell():
    assert published_tables.recomputed_cells(pd.DataFrame()).empty


# One's own models


def own_table(target, clean):
    rows = [("target against reference", target), ("reference against reference", clean)]
    table = pd.DataFrame(rows, columns=["comparison", "auroc_pct"])
    return table.assign(ci_low=table["auroc_pct"] - 5, ci_high=table["auroc_pct"] + 5)


def test_verdict_says_no_more_than_the_controls_allow():
    assert "no verdict" in findings.own_verdict(own_table(100, 100), CONFIRMING, 3)
    assert "no verdict" in findings.own_verdict(own_table(52, 40), CONFIRMING, 3)
    assert "read these questions" in findings.own_verdict(own_table(95, 55), CONFIRMING, 3)
    weak = findings.own_verdict(own_table(95, 55), REFUTING, 3)
    assert "read these questions" not in weak and "innocent as their own train split" in weak


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_model": "x", "dataset": "q.csv"}, "needs two reference_models"),
        ({"target_model": "x", "reference_models": ["x"]}, "needs two reference_models"),
        ({"target_model": "no_such_folder", "reference_models": ["x", "y"]}, "neither a folder"),
        ({"target_model": "base", "reference_models": ["base"] * 2}, "dataset is empty"),
        ({"target_modle": "x"}, "target_model"),
        ({"own_rows": "many"}, "own_rows"),
    ],
)
def test_part_c_is_checked_first(settings, message, monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        own.check_own(own.OwnModels.read(settings))


def test_part_c_is_skipped_where_no_model_is_named():
    assert own.check_own(own.OwnModels.read({})) is None
