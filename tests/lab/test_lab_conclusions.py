"""What notebook 01 says about its splits, its quiz and its base model, whatever its tables say."""

import pandas as pd
import pytest

from contamination.core.verdicts import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.lab.conclusions import (
    base_model_reading,
    conclusion,
    dial_reading,
    splits_reading,
    splits_title,
)

SPLITS = ["whole families", "one per family", "fewer passages", "by version", "raw"]
AUCS = {
    "whole families": (0.79, 0.77, 0.82),
    "one per family": (0.43, 0.35, 0.52),
    "fewer passages": (0.60, 0.51, 0.69),
    "by version": (0.76, 0.71, 0.81),
    "raw": (0.49, 0.46, 0.52),
}
CHANCE, TOLD = (0.55, 0.45, 0.65), (0.7, 0.6, 0.8)


def table(shared=0.0, raw_shared=43.6, **aucs):
    values = AUCS | {name.replace("_", " "): auc for name, auc in aucs.items()}
    overlaps = pd.DataFrame(
        [values[split] for split in SPLITS], columns=["auc", "ci_low", "ci_high"]
    )
    overlaps = overlaps.assign(split=SPLITS, overlap_pct=[0.0, shared, 0.0, 0.0, raw_shared])
    contains = overlaps["ci_low"].le(0.5) & overlaps["ci_high"].ge(0.5)
    return overlaps.assign(holds=contains & overlaps["overlap_pct"].eq(0))


def dial(shared=NOT_SUPPORTED, common=NOT_SUPPORTED, ends=29.996, middle=(75.5, 31.5)):
    rows = [
        ("shared words", 0.0, 22.0, 28.4, shared),
        ("shared words", 0.5, middle[0], 81.3, SUPPORTED),
        ("shared words", 1.0, 81.5, 86.6, SUPPORTED),
        ("common words", 0.0, 23.5, ends, common),
        ("common words", 0.5, middle[1], 38.4, SUPPORTED),
        ("common words", 1.0, 59.0, 65.9, SUPPORTED),
    ]
    return pd.DataFrame(rows, columns=["rule", "naturalness", "found %", "ci_high", "verdict"])


def test_training_is_the_only_difference_where_both_controls_hold():
    passages, quiz, follows = conclusion(table(), dial()).split("\n\n")
    assert "Then no non-member shares thirteen words in a row with a member. A" in passages
    assert "only the words reaches AUC 0.43 [0.35, 0.52], and this interval contains" in passages
    assert "each family on one side, it reaches 0.60 [0.51, 0.69]." in passages
    assert "44 % of the non-members would share such a run with a member." in passages
    assert "shared words finds 22 % and common words 23.5 % of the originals, and guess" in quiz
    assert "guessing finds 20 %. Their intervals end below 30 %" in quiz
    assert "they found none" in follows and "traces of training" in follows


def test_a_control_that_fails_takes_the_conclusion_away():
    others = [
        conclusion(table(shared=2.5), dial()),
        conclusion(table(one_per_family=TOLD), dial()),
        conclusion(table(), dial(shared=SUPPORTED)),
        conclusion(table(), dial(common=SUPPORTED)),
    ]
    for other in others:
        assert "traces of training" not in other and "no later result can be trusted" in other
    assert "Then 2.5 % of the non-members share thirteen words" in others[0]
    assert "reaches AUC 0.70 [0.60, 0.80], and this interval excludes" in others[1]
    assert "So without memory, shared words finds the originals more often" in others[2]
    both = conclusion(table(), dial(SUPPORTED, SUPPORTED))
    assert "So without memory, shared words and common words find the originals more" in both


def test_the_reading_names_the_splits_that_pass_and_goes_in_the_order_of_the_table():
    said = splits_reading(table())
    assert said.startswith("Only one split passes both controls: one per family.\n\n- whole")
    assert [line[2:].split(":")[0] for line in said.splitlines() if line[:2] == "- "] == SPLITS
    two = splits_reading(table(fewer_passages=CHANCE))
    assert two.startswith("one per family and fewer passages pass both controls.")
    assert splits_reading(table(one_per_family=TOLD)).startswith("No split passes both controls.")
    assert said.endswith("\n\nSo it is not enough to remove repeated text.")
    passing = dict.fromkeys(["whole_families", "fewer_passages", "by_version"], CHANCE)
    assert "not enough to remove" not in splits_reading(table(**passing))


@pytest.mark.parametrize(
    ("split", "other", "here", "there"),
    [
        ("whole families", CHANCE, "[0.77, 0.82]). Each family has", "contains one half."),
        ("one per family", TOLD, "0.52], and its interval contains one half. No fam", "the words"),
        ("fewer passages", CHANCE, "does not pass merely because it is small", "overlooks the"),
        ("by version", CHANCE, "(AUC 0.76 [0.71, 0.81]). Old and new", "contains one half."),
        ("raw", TOLD, "The words are no help, because", "Also, the words tell members"),
    ],
)
def test_each_split_has_a_point_of_its_own(split, other, here, there):
    tables = table(), table(**{split.replace(" ", "_"): other})
    points = [
        next(line for line in splits_reading(one).splitlines() if line.startswith(f"- {split}: "))
        for one in tables
    ]
    assert [here in point for point in points] == [True, False]
    assert [there in point for point in points] == [False, True]


def test_single_pages_leak():
    assert "raw: 44 % of the non-members share a 13-gram" in splits_reading(table())
    assert "raw: 2 % of the non-members share" in splits_reading(table(raw_shared=2.1))


def test_an_auc_below_one_half_is_explained():
    assert "half of the pairs the non-member gets the higher" in splits_reading(table())
    assert "of the pairs" not in splits_reading(table(one_per_family=CHANCE))
    assert "of the pairs" not in splits_reading(table(one_per_family=(0.3, 0.2, 0.4)))


def test_the_title_counts_the_splits_that_the_words_tell_apart():
    assert splits_title(table()) == "Words alone tell members from\nnon-members in 3 of 5 splits"
    none = table(**{name.replace(" ", "_"): CHANCE for name in SPLITS})
    assert splits_title(none).endswith("in no split")


def test_the_dial_is_read_at_its_ends_and_where_the_rules_differ_most():
    said = dial_reading(dial())
    assert said.startswith("At 0, shared words finds 22 % and common words 23.5 % of the orig")
    assert "so neither rule is of much help. (The interval of common words ends only just" in said
    assert "29.996 %" in said
    assert "At 1, shared words finds 81.5 % and common words 59 % of the originals." in said
    assert "differ most at 0.5, where" in said and "some slots are drawn anew" in said
    assert "close one" not in dial_reading(dial(ends=29.2))
    assert "differ most" not in dial_reading(dial(middle=(60.0, 59.0)))


def test_verdicts_at_zero_decide_what_is_said_about_the_rules():
    unsure = dial_reading(dial(common=INCONCLUSIVE, ends=30.4))
    assert "Whether a rule beats chance there is inconclusive for common words." in unsure
    assert "neither rule" not in unsure and "close one" not in unsure
    assert "So without memory, common words finds the" in dial_reading(dial(common=SUPPORTED))


def test_a_base_model_is_described_by_its_row():
    row = {"n_layers": 4, "n_parameters": 1_377_408, "n_tokens": 1_000_111, "n_contaminated": 0}
    said = base_model_reading(pd.Series(row))
    assert "4 layers, 1.4 million parameters). It was trained on 1,000,111 tokens" in said
    assert said.endswith("saw no text but the background.")
    other = base_model_reading(pd.Series(row | {"n_contaminated": 20}))
    assert "no text but" not in other and "20 texts of other kinds" in other
