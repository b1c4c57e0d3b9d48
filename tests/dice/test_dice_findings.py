"""DICE: verdicts and the headline, the printed and released numbers."""

import numpy as np
import pandas as pd
import pytest

from contamination.core import statistics
from contamination.core.verdicts import CONTROL_FAILS, OPEN, RULED_OUT, SHOWN
from contamination.data.published.compare import published_vs_recomputed
from contamination.dice import experiments, pool, published_tables

NAMES = {
    name.lower(): getattr(experiments, name)
    for name in ("WITHIN", "WITHIN_CLEAN", "PAIRED", "PAIRED_CLEAN", "SWAPPED", "SWAPPED_CLEAN")
}
NAMES |= {"swapped_paired": experiments.SWAPPED_PAIRED, "strangers": experiments.HELD_OUT}
NAMES |= {"swapped_paired_clean": experiments.SWAPPED_PAIRED_CLEAN, "clean": experiments.TWO_CLEAN}


def with_verdicts(rows, of="judge_inflation", **how):
    """Rows with the verdicts that they have where no other table has tests."""
    (rows,) = statistics.with_p_adjusted(rows)
    return getattr(experiments, of)(rows, **how)


def accuracies(seen, fresh, n_models=5, other_clean=40.0):
    """Models whose accuracy on GSM-i is up to two points off either way: sd 1.58, se 0.71."""
    rows = []
    for seed, off in enumerate([-2, -1, 0, 1, 2][:n_models]):
        rows += [("clean", seed, "GSM-i", 40.0 + off), ("clean", seed, "GSM-ii", 40.0)]
        rows += [(pool.OTHER_CLEAN, seed, "GSM-i", other_clean + off)]
        rows += [(pool.OTHER_CLEAN, seed, "GSM-ii", 40.0)]
        rows += [("x", seed, "GSM-i", seen + off), ("x", seed, "GSM-ii", fresh)]
        rows += [("clean", seed, "SVAMP", 10.0), ("x", seed, "SVAMP", 9.0)]
    return pd.DataFrame(rows, columns=["condition", "seed", "benchmark", "accuracy_pct"])


@pytest.mark.parametrize(
    ("seen", "fresh", "n_models", "other_clean", "verdict"),
    [
        (90.0, 42.0, 5, 40.0, SHOWN),
        (60.0, 61.0, 5, 40.0, RULED_OUT),
        (40.0, 64.0, 5, 40.0, RULED_OUT),  # fresh questions gain more: a gap of -24 points
        (48.0, 40.0, 5, 40.0, SHOWN),  # 8 points, at least 5.7, and clean ones up to 2.3
        (90.0, 42.0, 5, 95.0, CONTROL_FAILS),  # other clean models seem inflated as much
        (90.0, 42.0, 2, 40.0, OPEN),
        (60.0, 61.0, 2, 40.0, OPEN),
    ],
)
def test_inflation_is_the_gain_that_fresh_questions_do_not_share(
    seen, fresh, n_models, other_clean, verdict
):
    scores = accuracies(seen, fresh, n_models, other_clean)
    gain = with_verdicts(pool.gains(scores)).set_index("condition")
    row = gain.loc["x"]
    expected = ["n_models", "gain_seen", "gain_fresh", "inflation_points"]
    values = [n_models, seen - 40, fresh - 40, seen - fresh]
    assert row[expected].tolist() == pytest.approx(values)
    if n_models == 5:  # t of eight degrees of freedom: 2.306
        assert row["ci_high"] - row["ci_low"] == pytest.approx(
            2 * 2.306 * np.sqrt(2 * 2.5 / 5), abs=0.01
        )
    assert gain.loc[pool.OTHER_CLEAN, "verdict"] == ""
    assert row["verdict"] == verdict
    gaps = pool.inflation(scores).groupby("condition")["gap_points"].mean()
    assert gaps["x"] == pytest.approx(seen - fresh) and gaps["clean"] == pytest.approx(0)


def test_where_gsm_ii_was_seen_the_sets_exchange_roles():
    """Forty points on GSM-ii, none on GSM-i: inflated, and on no account by minus forty."""
    scores = accuracies(40.0, 80.0).replace({"condition": {"x": "GSM-ii x5"}})
    row = with_verdicts(pool.gains(scores)).set_index("condition").loc["GSM-ii x5"]
    names = ["gain_seen", "gain_fresh", "inflation_points"]
    assert row[names].tolist() == pytest.approx([40, 0, 40]) and row["verdict"] == SHOWN
    gaps = pool.inflation(scores).set_index("condition").loc["GSM-ii x5"]
    assert gaps["gap_points"].mean() == pytest.approx(40)
    assert gaps["accuracy_seen_pct"].mean() == 80 and gaps["accuracy_fresh_pct"].mean() == 40
    # Other clean models that gain as much on GSM-i are no control of it; those on GSM-ii are.
    for other, word in ((95.0, SHOWN), (-15.0, CONTROL_FAILS)):
        scores = accuracies(40.0, 80.0, other_clean=other)
        scores = scores.replace({"condition": {"x": "GSM-ii x5"}})
        found = with_verdicts(pool.gains(scores)).set_index("condition")
        assert found.loc["GSM-ii x5", "verdict"] == word


@pytest.mark.parametrize("clean", [0.0, 90.0])
def test_an_inflation_over_clean_models_that_lost_the_skill_fails_its_control(clean):
    """They answer nothing, or there is no room above them, so the difference says nothing."""
    scores = accuracies(90.0, 42.0)
    scores.loc[scores["condition"] == "clean", "accuracy_pct"] += clean - 40
    found = with_verdicts(pool.gains(scores), floor_pct=(30, 60)).set_index("condition")
    assert found.loc["x", "reference_pct"] == pytest.approx(clean)
    assert found.loc["x", "verdict"] == CONTROL_FAILS


def test_a_correction_for_many_tests_takes_a_small_inflation_back():
    """Twelve points, and p of 0.04: enough alone, and not as one of three tests."""
    gains = pool.gains(accuracies(90.0, 42.0)).query("condition == 'x'")
    gains = gains.assign(inflation_points=12.0, ci_low=0.5, ci_high=23.5, p=0.04)
    layers = pd.DataFrame({"located": [True, False], "p": [0.001, np.nan]})
    layers = layers.assign(ci_low=0.6, ci_high=0.9)
    aurocs = pd.DataFrame(
        {"difference_pct": [11.0], "difference_low": 0.5, "p": 0.03, "two_clean_pct": 60}
    )
    aurocs["difference_high"] = 21.5
    alone = (
        with_verdicts(gains)["verdict"].tolist()
        + with_verdicts(aurocs, "judge_aurocs")["verdict"].tolist()
    )
    assert alone == [SHOWN] * 2
    found = experiments.with_verdicts(gains, layers, aurocs)
    words = [word for table in found for word in table["verdict"]]
    assert words == [OPEN, SHOWN, "", OPEN]
    assert [table["p_adjusted"].iloc[0] for table in found] == pytest.approx([0.06, 0.003, 0.06])


def test_a_set_that_is_easier_by_itself_inflates_nothing():
    """Clean models do 12 and 8 points better on GSM-i: of another one's 48, 10 are the set's."""
    rows = [("clean", 0, 52.0, 40.0), ("clean", 1, 48.0, 40.0), ("x", 0, 90.0, 42.0)]
    wide = pd.DataFrame(rows, columns=["condition", "seed", "GSM-i", "GSM-ii"])
    table = wide.melt(["condition", "seed"], var_name="benchmark", value_name="accuracy_pct")
    gaps = pool.inflation(table).set_index(["condition", "seed"])["gap_points"]
    assert gaps.to_dict() == {("clean", 0): 2.0, ("clean", 1): -2.0, ("x", 0): 38.0}


def test_a_flag_stands_beside_the_inflation_and_is_no_verdict_on_it():
    gains = with_verdicts(pool.gains(accuracies(90.0, 42.0)))
    flags = pd.DataFrame({"condition": ["x", "x", "clean"], "benchmark": "GSM-i"})
    flags["flag"] = [0.9, 0.3, 0.1]
    table = experiments.with_flags(gains, flags).set_index("condition")
    assert table.loc["x", "flag"] == pytest.approx(0.6) and table.loc["x", "flagged"]
    assert pd.isna(table.loc[pool.OTHER_CLEAN, "flagged"])  # no detector met it
    assert table["verdict"].tolist() == gains["verdict"].tolist()


def table_2(main, clean, n_models=10, other="GSM-ii"):
    """DICE on one set: AUROC and interval of contaminated and of two clean models."""
    names = ["GSM-i x5", pool.OTHER_CLEAN]
    rows = pd.DataFrame([main, clean], columns=["auroc_pct", "ci_low", "ci_high"])
    rows = rows.assign(trained_on=names, tested_on=other, method="DICE", n_models=n_models)
    return rows.assign(folded_auroc_pct=rows["auroc_pct"].clip(lower=100 - rows["auroc_pct"]))


@pytest.mark.parametrize(
    ("main", "clean", "n_models", "verdict"),
    [
        ((66.0, 63.0, 69.0), (58.0, 54.0, 62.0), 10, SHOWN),  # 8 points, at least 3
        ((66.0, 63.0, 69.0), (58.0, 54.0, 62.0), 4, OPEN),  # of two pairs
        ((66.0, 63.0, 69.0), (64.0, 60.0, 68.0), 10, RULED_OUT),  # 2 points, -3 to 7
        ((66.0, 60.0, 72.0), (62.0, 54.0, 70.0), 10, OPEN),  # 4 points, -6 to 14
        ((100.0, 100.0, 100.0), (100.0, 100.0, 100.0), 10, OPEN),  # no room above
        ((89.0, 86.0, 92.0), (89.0, 86.0, 92.0), 10, RULED_OUT),  # room, and no difference
        ((66.0, 63.0, 69.0), (30.0, 26.0, 34.0), 10, RULED_OUT),  # 70 with its sign turned
    ],
)
def test_contamination_is_what_lies_above_two_clean_models(main, clean, n_models, verdict):
    table = with_verdicts(
        experiments.add_clean_difference(table_2(main, clean, n_models)), "judge_aurocs"
    )
    row, control = (row for _, row in table.iterrows())
    assert (row["verdict"], control["verdict"]) == (verdict, "")
    folded = max(clean[0], 100 - clean[0])
    assert row["difference_pct"] == main[0] - folded
    half = np.hypot(main[0] - main[1], clean[2] - clean[0])
    assert row["difference_low"] == pytest.approx(main[0] - folded - half)


@pytest.mark.parametrize(("asked", "method"), [("GSM-hard", "DICE"), ("GSM-i", "PPL")])
def test_clean_rows_outside_the_family_add_no_test(asked, method):
    rows = table_2((66.0, 63.0, 69.0), (58.0, 54.0, 62.0), other=asked).assign(method=method)
    found = with_verdicts(experiments.add_clean_difference(rows), "judge_aurocs")
    assert found["p"].isna().all() and found["verdict"].tolist() == ["", ""]


def test_a_row_without_a_control_claims_nothing():
    rows = table_2((66.0, 63.0, 69.0), (58.0, 54.0, 62.0)).head(1)
    assert with_verdicts(experiments.add_clean_difference(rows), "judge_aurocs")[
        "verdict"
    ].tolist() == [""]


# Printed and released numbers


def test_printed_tables_are_complete():
    table_1 = published_tables.printed_table_1()
    assert table_1.shape == (13, 11) and len(published_tables.printed_auroc()) == 40
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
    differing = both[both["difference"].abs() > 1e-9]
    assert differing["row"].nunique() == 2 and (differing["difference"] != 0).all()


def test_no_released_file_gives_no_cell():
    assert published_tables.recomputed_cells(pd.DataFrame()).empty
