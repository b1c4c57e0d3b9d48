"""Tables of the Min-k% study."""

import numpy as np
import pandas as pd
import pytest

from contamination.core import blind
from contamination.core.scores import MIN_K, PPL
from contamination.core.verdicts import CONTROL_FAILS, RULED_OUT, SHOWN
from contamination.data import published
from contamination.min_k import auc_tables

IS_MEMBER = np.array([True, True, False, False])


def detected(min_k, ppl, k_percent=20.0):
    """What ``detect`` returns for four passages, one row per passage and method."""
    rows = [
        (number, method, k, value)
        for method, k, values in ((MIN_K, k_percent, min_k), (PPL, None, ppl))
        for number, value in enumerate(values)
    ]
    table = pd.DataFrame(rows, columns=["passage", "method", "k_percent", "score"])
    return table.assign(n_windows=1, first_token_scored=True)


PERFECT, REVERSED = [4, 3, 2, 1], [1, 2, 3, 4]


# Tables


def test_each_model_has_a_deal_of_its_own():
    """One order of scores; what is a member in one deal is none in the other."""
    models = {5: detected(PERFECT, PERFECT), 6: detected(PERFECT, REVERSED)}
    deals = {5: IS_MEMBER, 6: ~IS_MEMBER}
    rows = auc_tables.auc_rows(models, deals, n_resamples=20, benchmark="b", copies=4)
    assert list(rows.columns) == auc_tables.AUC_COLUMNS
    of_min_k = rows[rows["method"] == MIN_K]
    assert of_min_k["seed"].fillna(-1).tolist() == [5, 6, -1]
    assert of_min_k["auc"].tolist() == [1.0, 0.0, 0.5]
    # No deal alone has any spread: what spread there is comes from the draw of deals.
    assert of_min_k[["ci_low", "ci_high"]].to_numpy().tolist() == [[1, 1], [0, 0], [0, 1]]
    over_all = auc_tables.pooled_rows(rows)
    assert over_all["seed"].isna().all()
    assert dict(zip(over_all["method"], over_all["auc"], strict=True)) == {MIN_K: 0.5, PPL: 1.0}
    assert set(rows["n_members"]) == {2}


def test_of_one_model_every_row_stays():
    rows = auc_tables.auc_rows({0: detected(PERFECT, PERFECT)}, {0: IS_MEMBER}, n_resamples=5)
    assert len(auc_tables.pooled_rows(rows)) == len(rows) == 2
    assert rows[["before_auc", "difference", "p"]].isna().all(axis=None)


def test_reading_is_held_against_the_same_model_before():
    """Before reading PPL stood where it stands now; Min-k% Prob had every pair wrong."""
    after = {0: detected(PERFECT, PERFECT)}
    before = {0: detected(REVERSED, PERFECT)}
    rows = auc_tables.auc_rows(after, {0: IS_MEMBER}, before=before, n_resamples=20)
    by = rows.set_index("method")
    ends = ["before_auc", "difference", "difference_low", "difference_high"]
    assert by.loc[MIN_K, ends].tolist() == [0, 1, 1, 1]
    assert by.loc[PPL, ends].tolist() == [1, 0, 0, 0]
    turned = auc_tables.auc_rows(before, {0: IS_MEMBER}, before=after, n_resamples=20)
    assert turned.set_index("method").loc[MIN_K, ends].tolist() == [1, -1, -1, -1]


@pytest.mark.parametrize("n_models", [5, 4])
def test_fewer_than_five_models_carry_no_test(n_models):
    """Twelve passages that training puts from the wrong order into the right one."""
    deals = dict.fromkeys(range(n_models), np.arange(12) < 6)
    after = dict.fromkeys(deals, detected(np.arange(12, 0, -1), []))
    before = dict.fromkeys(deals, detected(np.arange(12), []))
    rows = auc_tables.auc_rows(after, deals, before=before, n_resamples=20)
    row = auc_tables.pooled_rows(rows).iloc[0]
    assert row["n_models"] == n_models and row["difference_low"] > 0
    assert pd.isna(row["p"]) == (n_models < 5)  # no test, so no part of the family


def test_the_change_is_paired():
    """Noise that both models share moves either AUC, and their difference not at all."""
    noise = np.random.default_rng(0).normal(size=40)
    deals = {0: np.arange(40) < 20}
    scored = {0: detected(noise, noise)}
    rows = auc_tables.auc_rows(scored, deals, before=scored, n_resamples=50)
    assert (rows["ci_high"] - rows["ci_low"] > 0.1).all()
    assert (rows[["difference_low", "difference_high"]] == 0).all(axis=None)


def test_selected_passages_are_numbered_anew():
    kept = auc_tables.select(detected(PERFECT, REVERSED), [False, True, False, True])
    of_min_k = kept[kept["method"] == MIN_K]
    assert of_min_k["passage"].tolist() == [0, 1]
    assert of_min_k["score"].tolist() == [3, 1]


def test_one_k_and_the_methods_without_k():
    both = pd.concat([detected(PERFECT, PERFECT), detected(REVERSED, [], k_percent=50.0)])
    kept = auc_tables.at_k(both, 50.0)
    assert set(kept["method"]) == {MIN_K, PPL}
    assert kept.loc[kept["method"] == MIN_K, "score"].tolist() == REVERSED


def test_a_difference_is_last_minus_first():
    scored = {0: detected(PERFECT, REVERSED)}
    how = {"methods": ((PPL, None), (MIN_K, 20.0)), "n_resamples": 20, "what": "method"}
    row = auc_tables.difference_row(scored, scored, {0: IS_MEMBER}, **how)
    assert [row[name] for name in ("first_auc", "last_auc", "difference")] == [0, 1, 1]
    assert (row["difference_low"], row["difference_high"]) == (1, 1)
    assert (row["what"], row["n_members"], row["n_models"]) == ("method", 2, 1)


def test_k_is_chosen_on_one_half_and_judged_on_the_other():
    """At k = 5 every member is above every non-member, at k = 50 below."""
    is_member = np.arange(16) % 2 == 0
    at_5 = np.where(is_member, 1.0, 0.0)
    both = pd.concat([detected(at_5, [], 5.0), detected(-at_5, [], 50.0)])
    deals = dict.fromkeys(range(5), is_member)
    sweep = auc_tables.swept_k(dict.fromkeys(deals, both), deals, 50.0, n_resamples=20)
    assert sweep["auc_chosen_on"].tolist() == sweep["auc_held_out"].tolist() == [1.0, 0.0]
    assert sweep["is_best"].tolist() == [True, False]
    assert sweep["difference"].tolist() == [1.0, 0.0]
    # The k used everywhere else is compared with itself.
    assert (sweep["difference_low"] > 0).tolist() == [True, False]


def test_a_null_deal_misses_where_its_interval_leaves_chance_out():
    """Two of four: 2 of the 6 deals are perfect, one way or the other, and have no spread."""
    texts = [f"word{number} and more" for number in range(4)]
    deals = [
        auc_tables.null_rows(np.arange(4.0), texts, seed, n_resamples=50) for seed in range(20)
    ]
    null = pd.concat(deals)
    assert null.groupby("method").size().tolist() == [20, 20, 20]
    of_min_k = null[null["method"] == MIN_K]
    assert set(of_min_k["auc"]) == {0.0, 0.25, 0.5, 0.75, 1.0}
    assert of_min_k["misses"].tolist() == of_min_k["auc"].isin([0.0, 1.0]).tolist()


def test_the_narrower_interval_of_words_misses_where_the_honest_one_need_not():
    """0.3 below a half: 0.32 to either side reaches it, 0.32 / √2 does not."""
    words = pd.Series({"auc": 0.2, "ci_low": -0.12, "ci_high": 0.52})
    assert auc_tables._narrowed(words) == pytest.approx((-0.026, 0.426), abs=0.001)


@pytest.mark.parametrize(("n_missed", "holds"), [(1, True), (3, True), (4, False)])
def test_more_misses_than_chance_allows_are_a_fault_of_the_interval(n_missed, holds):
    """Of 20, at least three come with p = 0.08, at least four with p = 0.02."""
    null = pd.DataFrame({"method": "m", "misses": np.arange(20) < n_missed})
    row = auc_tables.null_summary(null).iloc[0]
    assert (row["missed"], row["expected"], row["holds"]) == (n_missed, pytest.approx(1), holds)


def test_the_best_words_stand_beside_every_method():
    """Words give the members of one deal away and not those of the other."""
    texts = [f"old page number {n}" for n in range(4)] + [f"new page number {n}" for n in range(4)]
    deals = {0: np.repeat([True, False], 4), 1: np.arange(8) % 2 == 0}
    scored = dict.fromkeys(deals, detected(np.arange(8, 0, -1), np.arange(8)))
    how = {"n_permutations": 2, "n_resamples": 10, "benchmark": "b", "length": 32}
    rows, words = auc_tables.auc_and_blind_rows(scored, dict.fromkeys(deals, texts), deals, **how)
    of_first = rows[rows["seed"] == 0]
    assert dict(zip(of_first["method"], of_first["auc"], strict=True)) == {MIN_K: 1.0, PPL: 0.0}
    assert of_first["blind_auc"].tolist() == [1.0] * 2
    of_second, of_all = (rows[rows["seed"].fillna(-1) == seed]["blind_auc"] for seed in (1, -1))
    assert (of_second < 1).all()
    # The mean of one baseline over both deals, so not above the mean of the two best.
    assert of_all.between(0.5, (1 + of_second.iloc[0]) / 2).all()
    assert set(rows["length"]) == set(words["length"]) == {32}


def test_the_words_of_a_deal_are_the_best_and_of_all_deals_the_best_mean_of_one():
    words = pd.DataFrame({"seed": [0, 0, 1, 1], "baseline": ["bag", "idf"] * 2})
    words["auc"] = [0.6, 0.9, 0.8, 0.6]  # means 0.7 of the bag, 0.75 of the other
    rows = pd.DataFrame({"seed": pd.array([0, 1, None], dtype="Int64")})
    assert auc_tables.add_blind_auc(rows, words)["blind_auc"].tolist() == [0.9, 0.8, 0.75]


def test_printed_average_stands_beside_the_methods_it_has():
    rows = pd.DataFrame({"method": [PPL, "Min-K%++", MIN_K]}, index=[7, 7, 9])
    beside = auc_tables.with_printed_wikimia(rows)
    assert beside["paper_auc"].fillna("").tolist() == ["0.67", "", "0.72"]


# The words that give a label away


def test_telling_words_are_those_of_one_kind_alone():
    """All passages say "the"; all members "old", half of them "year"; all others "new"."""
    texts = ["the old year", "the old"] * 4 + ["the new"] * 8
    words = auc_tables.telling_words(texts, np.arange(16) < 8, n_of_label=2)
    assert words["is_member"].tolist() == [1, 1, 0, 0]
    assert words["word"].tolist()[:3] == ["old", "year", "new"]
    assert words["member_pct"].tolist()[:3] == [100, 50, 0]
    assert words["non_member_pct"].tolist()[:3] == [0, 0, 100]
    assert (words["weight"][:2] > 0).all() and words["weight"][2] < 0


def test_the_package_holds_single_words_of_wikimia():
    words = published.wikimia_words()
    assert words["is_member"].tolist() == [True] * 10 + [False] * 10
    assert words["word"].str.fullmatch(r"\w+").all() and words["word"].is_unique
    assert (words["weight"].gt(0) == words["is_member"]).all()
    assert (
        words["member_pct"].between(0, 100).all() and words["non_member_pct"].between(0, 100).all()
    )
    sizes = words.groupby("is_member")["weight"].apply(lambda of: of.abs().is_monotonic_decreasing)
    assert sizes.all()


@pytest.mark.mirror
def test_the_packages_words_are_those_of_the_files():
    found = auc_tables.wikimia_telling_words().astype({"is_member": bool})
    pd.testing.assert_frame_equal(
        found, published.wikimia_words(), rtol=0, atol=2 * 10**-auc_tables.DECIMALS
    )


# A time capsule


def test_a_random_half_of_each_kind_gets_copies():
    is_member = np.array([True] * 6 + [False] * 4)
    is_read = auc_tables.read_half(is_member, 0)
    assert (is_read[is_member].sum(), is_read[~is_member].sum()) == (3, 2)
    assert (is_read != auc_tables.read_half(is_member, 1)).any()
    numbers = auc_tables.sample_passages(is_member, 2, 0)
    assert (
        list(numbers) == sorted(numbers) and is_member[numbers].tolist() == [True] * 2 + [False] * 2
    )
    assert list(auc_tables.sample_passages(is_member, 0, 0)) == list(range(10))


def test_copies_show_in_every_pairing_and_the_date_across_kinds_alone():
    """Older pages score 10 higher by themselves, copies add 3; values differ by less than 1."""
    is_member = np.repeat([True, False], 20)
    is_read = auc_tables.read_half(is_member, 0)
    noise = np.random.default_rng(0).random(40)
    before = detected(noise + 10 * is_member, [])
    after = detected(noise + 10 * is_member + 3 * is_read, [])
    rows = auc_tables.pairings(after, before, is_member, is_read, n_resamples=200)
    rows = rows.set_index("setting")
    assert rows["auc"].tolist() == [1, 1, 1, 0]
    across = ["copies of older pages, none of newer pages"]
    across += ["copies of newer pages, none of older pages"]
    assert rows.loc[across, "before_auc"].tolist() == [1, 0]
    within = rows.drop(index=across)
    assert within["before_auc"].between(0.2, 0.8).all() and within["holds"].all()
    assert rows.loc[across, "holds"].isna().all() and "verdict" not in rows
    unmoved = auc_tables.pairings(before, before, is_member, is_read, n_resamples=50)
    assert not unmoved.set_index("setting").loc[within.index, "holds"].any()
    assert (rows[["n_members", "n_non_members"]] == 10).all(axis=None)


def test_a_k_that_is_better_by_luck_does_not_carry_over():
    """Nothing but noise at any k: whichever is best on one half, the other cannot tell."""
    rng = np.random.default_rng(2)
    both = pd.concat([detected(rng.normal(size=60), [], k) for k in (5.0, 50.0)])
    deals = dict.fromkeys(range(5), np.arange(60) % 2 == 0)
    sweep = auc_tables.swept_k(dict.fromkeys(deals, both), deals, 50.0, n_resamples=200)
    # Other passages stand behind the AUC that is reported than behind the choice.
    assert (sweep["auc_chosen_on"] != sweep["auc_held_out"]).all()
    held_out = sweep["auc_held_out"]
    assert sweep["difference"].tolist() == pytest.approx((held_out - held_out.iloc[1]).tolist())
    assert (sweep["difference_low"] <= 0).all()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.55, 0.65, CONTROL_FAILS), (0.995, 1.0, SHOWN), (0.45, 0.55, RULED_OUT)],
)
def test_a_time_capsule_has_to_beat_the_words(low, high, expected):
    """The words alone tell older from newer pages with an AUC of 0.99."""
    row = {"auc": (low + high) / 2, "ci_low": low, "ci_high": high, "blind_auc": 0.99}
    judged = auc_tables.with_capsule_verdict(pd.DataFrame([row]))
    assert judged["verdict"].item() == expected


def test_folds_follow_the_smaller_kind():
    assert blind.feasible_folds([True] * 30 + [False] * 20) == 10
    assert blind.feasible_folds([True] * 30 + [False] * 3) == 3
