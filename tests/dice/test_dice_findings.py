"""DICE: verdicts and the headline, the printed and released numbers."""

import numpy as np
import pandas as pd
import pytest

from contamination.data.published.compare import published_vs_recomputed
from contamination.dice import accuracy, controls, paper_rows, published_tables

NAMES = {
    name.lower(): getattr(controls, name)
    for name in ("WITHIN", "WITHIN_CLEAN", "PAIRED", "PAIRED_CLEAN", "SWAPPED", "SWAPPED_CLEAN")
}
NAMES |= {"swapped_paired": controls.SWAPPED_PAIRED, "strangers": controls.HELD_OUT}
NAMES |= {"swapped_paired_clean": controls.SWAPPED_PAIRED_CLEAN, "clean": controls.TWO_CLEAN}
NAMES |= {"order": controls.REORDERED_CLEAN, "train": controls.LEGITIMATE}
NAMES |= {"format": controls.FORMAT_ONLY, "other": f"{controls.ANOTHER}: MATH x5"}


def table_of(**aurocs):
    """Controls with AUROCs five points wide on either side; unnamed ones are at chance."""
    values = {name: aurocs.get(key, 50.0) for key, name in NAMES.items()}
    table = pd.DataFrame({"control": values.keys(), "auroc_pct": values.values()})
    return table.assign(ci_low=table["auroc_pct"] - 5, ci_high=table["auroc_pct"] + 5)


# Seen questions score higher whichever half was read, in the model alone and beside a clean one.
MEMBERSHIP = {"within": 90, "swapped": 80, "paired": 95, "swapped_paired": 92}
CONFIRMING = table_of(strangers=95, **MEMBERSHIP)
REFUTING = table_of(clean=100, order=90, strangers=98, within=51, train=97, other=95)


def test_headline_of_a_table_that_confirms_the_detector():
    text = controls.headline(CONFIRMING)
    assert text.startswith("On fresh questions DICE does not tell two clean models apart")
    assert text.endswith("may be read as: it read these questions.")


@pytest.mark.parametrize("clean", [{"clean": 100}, {"order": 90}])
def test_headline_of_a_table_that_refutes_it(clean):
    assert "DICE tells two clean models apart" in controls.headline(table_of(**clean))
    text = controls.headline(REFUTING)
    assert "100 % where they read other texts, 90 % where the same in another order" in text
    assert text.endswith("perhaps their train split.")


@pytest.mark.parametrize(
    ("aurocs", "verdict"),
    [
        ({"strangers": 50}, "differs from the reference, and no more"),
        ({"strangers": 95}, "was fine-tuned on such problems"),
        ({"strangers": 95, "train": 95, **MEMBERSHIP}, "perhaps their train split"),
        # One half scores higher in every model, whichever was read.
        (
            {"strangers": 90, "within": 80, "within_clean": 79, "swapped": 20, "swapped_clean": 21},
            "was fine-tuned on such problems",
        ),
        # In one role alone, in the pair alone, and two clean models show it too.
        ({"strangers": 90, **MEMBERSHIP, "swapped_paired": 30}, "fine-tuned on such"),
        ({"strangers": 90, **MEMBERSHIP, "within": 57, "swapped": 40}, "fine-tuned on such"),
        ({"strangers": 90, **MEMBERSHIP, "paired_clean": 96}, "fine-tuned on such"),
    ],
)
def test_a_flag_licenses_no_more_than_the_controls_allow(aurocs, verdict):
    assert verdict in controls.licensed(table_of(**aurocs))


def accuracies(seen, fresh):
    rows = [("clean", "GSM-i", 40.0), ("clean", "GSM-ii", 40.0), ("clean", "SVAMP", 10.0)]
    rows += [("x", "GSM-i", seen), ("x", "GSM-ii", fresh), ("x", "SVAMP", 9.0)]
    table = pd.DataFrame(rows, columns=["condition", "benchmark", "accuracy_pct"])
    return table.assign(seed=0, in_distribution=table["benchmark"] != "SVAMP")


@pytest.mark.parametrize(
    ("seen", "fresh", "verdict"), [(90.0, 42.0, "inflated"), (60.0, 61.0, "not inflated")]
)
def test_inflation_is_the_gain_that_fresh_questions_do_not_share(seen, fresh, verdict):
    gain = accuracy.gains(accuracies(seen, fresh)).set_index("condition").loc["x"]
    assert gain.tolist() == [seen - 40, fresh - 40, -1.0, verdict]
    gaps = accuracy.inflation(accuracies(seen, fresh)).set_index("condition")["gap_points"]
    assert gaps.to_dict() == {"clean": 0.0, "x": seen - fresh}


def test_a_set_that_is_easier_by_itself_inflates_nothing():
    """Clean models do 12 and 8 points better on GSM-i: of another one's 48, 10 are the set's."""
    rows = [("clean", 0, 52.0, 40.0), ("clean", 1, 48.0, 40.0), ("x", 0, 90.0, 42.0)]
    wide = pd.DataFrame(rows, columns=["condition", "seed", "GSM-i", "GSM-ii"])
    table = wide.melt(["condition", "seed"], var_name="benchmark", value_name="accuracy_pct")
    gaps = accuracy.inflation(table).set_index(["condition", "seed"])["gap_points"]
    assert gaps.to_dict() == {("clean", 0): 2.0, ("clean", 1): -2.0, ("x", 0): 38.0}


def test_flag_without_a_false_score_is_named():
    rows = [("clean", 0.0, 0.1), ("x", 40.0, 0.9), ("train split x5", -9.0, 0.8), ("y", 30.0, 0.2)]
    gaps = pd.DataFrame(rows, columns=["condition", "gap_points", "flag"])
    verdicts = paper_rows.flag_verdicts(gaps)["verdict"].tolist()
    assert verdicts == [
        "neither",
        "flagged, and inflated",
        "flagged, though fresh questions do as well",
        "inflated, not flagged",
    ]


# Printed and released numbers


def test_printed_tables_are_complete():
    table_1, table_2 = (published_tables.printed(f"Table {number}") for number in (1, 2))
    assert table_1.shape == (13, 11) and table_2.shape == (10, 6)
    assert table_1.iloc[0, :4].tolist() == ["GSM-i", "4.4", "26.9", "94.1"]
    assert published_tables.printed_accuracy()["GSM-i-Syn 10%", "GSM-ii"] == "30.4"
    assert published_tables.printed_auroc()["GSM-i-Syn", "GSM-hard", "Min-k Prob"] == "15.1"


def test_r_squared_by_hand():
    # Correlation of (1, 2, 3) and (1, 3, 2) is one half.
    assert published_tables.r_squared([1, 2, 3], [1, 3, 2]) == pytest.approx(0.25)
    assert np.isnan(published_tables.r_squared([1, 2], [3, 3]))


def test_misalignment_is_counted_from_the_alignment():
    """Counted in the alignment file by hand: 1,319 questions, two of GSM-i without a paraphrase."""
    assert published_tables.misalignment() == {
        "n_paraphrases": 1317,
        "n_seen": 655,
        "n_unseen": 657,
        "n_dropped": 5,
        "n_same_row": 3,
        "n_without": 2,
    }


@pytest.mark.mirror
def test_released_generations_give_four_printed_cells():
    rescored = published_tables.rescored_generations()
    assert rescored["n"].tolist() == [657] * 4
    assert rescored["matches"].all()
    cells = published_vs_recomputed(published_tables.recomputed_cells(rescored))
    assert cells["matches"].eq(True).sum() == 4


@pytest.mark.mirror
def test_released_scores_disagree_where_the_accuracies_agree():
    scores = published_tables.released_scores()
    correlation = published_tables.released_correlation(scores)
    assert correlation["n_models"].tolist() == [10] * 4 + [4] * 4 + [10] * 4
    first = correlation["r_squared"][:4]
    assert first.min() >= 0.605 and first.max() <= 0.755  # printed: 0.61 to 0.75
    both = published_tables.disagreement(scores)
    assert both["row"].nunique() == 4
    differing = both[both["verdict"] == "another score"]
    assert differing["row"].nunique() == 2 and (differing["difference"] != 0).all()


def test_no_released_file_gives_no_cell():
    assert published_tables.recomputed_cells(pd.DataFrame()).empty
