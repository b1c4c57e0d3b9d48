"""Blind baselines: what the text alone gives away, and that they find nothing in nothing."""

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT

from contamination.core import blind, statistics, storage
from contamination.core.blind import blind_table, cross_validated_scores, date_rule_scores
from contamination.data import published
from contamination.min_k import auc_tables

SYLLABLES = [f"{a}{b}" for a in "klmnprstv" for b in "aeu"]
WORDS = [f"{a}{b}" for a in SYLLABLES for b in SYLLABLES]


def random_passages(n_passages, seed, n_words=12, vocabulary=WORDS):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(vocabulary, n_words)) for _ in range(n_passages)]


def test_the_latest_year_decides_and_other_numbers_do_not_count():
    texts = ["in 2012, seen again in 1999", "12023 items at 20231", "2023-01-05"]
    assert date_rule_scores(texts).tolist() == [-2012.0, -2017.5, -2023.0]


def test_a_date_rule_without_dates_is_refused_alone_and_empty_in_the_table():
    texts = random_passages(20, seed=0)
    with pytest.raises(ValueError, match="no passage names a year"):
        date_rule_scores(texts)
    is_member = np.arange(20) < 10
    table = blind_table(texts, is_member, n_folds=5, n_permutations=2, n_resamples=20)
    row = table.set_index("baseline").loc["date rule"]
    assert np.isnan(row["auc"]) and np.isnan(row["p_value"])
    assert row["n_members"] == 10


def test_each_baseline_finds_a_leak_and_members_score_higher():
    is_member = np.arange(60) % 2 == 0
    texts = [
        f"{text} {'archive 2011' if member else 'bulletin 2023'}"
        for text, member in zip(random_passages(60, seed=1), is_member, strict=True)
    ]
    table = blind_table(texts, is_member, n_folds=5, n_permutations=19, n_resamples=200)
    assert list(table["baseline"]) == ["date rule", "bag of words", "TF-IDF"]
    assert (table["auc"] == 1).all()
    # The least p that 19 permutations allow is 1 in 20.
    assert table["p_value"].tolist() == pytest.approx([0.05] * 3)
    assert (table["permutation_high"] < 1).all()
    assert (table["tpr_at_5_fpr"] == 1).all()


@pytest.mark.parametrize("baseline", ["bag of words", "TF-IDF"])
def test_per_fold_means_are_unbiased_where_there_is_nothing_to_find(baseline, monkeypatch):
    # Few words, so that passages differ little, and folds as if none were near-copies.
    monkeypatch.setattr(blind.NearCopies, "exist", False)
    # 41 members in 5 folds: no fold has the share of members of the others.
    is_member = np.arange(81) < 41
    per_fold, pooled = [], []
    for seed in range(40):
        texts = random_passages(81, seed, vocabulary=WORDS[:25])
        scored = cross_validated_scores(texts, is_member, baseline, 5, seed)
        per_fold.append(np.mean([statistics.auc(s, is_member[i]) for i, s in scored]))
        items = np.concatenate([items for items, _ in scored])
        pooled.append(statistics.auc(np.concatenate([s for _, s in scored]), is_member[items]))
    standard_error = np.std(per_fold) / np.sqrt(len(per_fold))
    assert abs(np.mean(per_fold) - 0.5) < 3 * standard_error
    assert np.mean(pooled) < np.mean(per_fold)


def test_no_passage_is_scored_by_a_classifier_that_saw_it():
    # Each member has a word of its own: it gives the label away to whoever trained on it.
    texts = [f"{text} own{number}" for number, text in enumerate(random_passages(40, seed=2))]
    is_member = np.arange(40) < 20
    scored = cross_validated_scores(texts, is_member, "bag of words", n_folds=4)
    assert sorted(np.concatenate([items for items, _ in scored])) == list(range(40))
    assert all(is_member[items].sum() == 5 for items, _ in scored)
    assert np.mean([statistics.auc(s, is_member[items]) for items, s in scored]) < 0.8


def test_the_permutation_null_is_centred_on_chance_and_the_interval_holds_the_auc():
    is_member = np.arange(60) < 30
    table = blind_table(
        random_passages(60, seed=3),
        is_member,
        baselines=("bag of words",),
        n_folds=5,
        n_permutations=60,
        n_resamples=500,
    )
    row = table.iloc[0]
    assert row["permutation_null"] == pytest.approx(0.5, abs=0.05)
    assert row["permutation_null"] < row["permutation_high"] < 0.8
    assert row["ci_low"] < row["auc"] < row["ci_high"]
    assert 1 / 61 <= row["p_value"] <= 1


def test_labels_are_shuffled_within_groups_alone():
    """Of three passages one is a member, of three others two: 3 times 3 ways, and no other."""
    groups, is_member = np.array([2, 1, 2, 1, 1, 2]), np.array([1, 1, 0, 0, 0, 1], dtype=bool)
    rng = np.random.default_rng(0)
    drawn = np.array([blind._shuffled(is_member, groups, rng) for _ in range(200)])
    assert len(np.unique(drawn, axis=0)) == 9
    assert (drawn[:, groups == 1].sum(axis=1) == 1).all()
    assert (drawn[:, groups == 2].sum(axis=1) == 2).all()


def test_a_table_is_made_again_for_another_version_and_for_other_inputs(monkeypatch, tmp_path):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path))
    made, make = [], blind._blind_table
    monkeypatch.setattr(blind, "_blind_table", lambda *asked: made.append(1) or make(*asked))
    asked = {"n_folds": 2, "n_permutations": 0, "n_resamples": 2}
    n_made = []
    for version, seed in ((1, 0), (1, 0), (2, 0), (2, 1), (1, 0)):
        monkeypatch.setattr(blind, "BLIND_VERSION", version)
        blind_table(random_passages(8, seed=0), np.arange(8) < 4, seed=seed, **asked)
        n_made.append(len(made))
    assert n_made == [1, 1, 2, 3, 3]


def test_bad_requests_are_refused():
    texts = random_passages(8, seed=0)
    with pytest.raises(ValueError, match="the smaller kind has 0"):
        blind_table(texts, [True] * 8)
    with pytest.raises(ValueError, match="5 folds need"):
        blind_table(texts, [True] * 4 + [False] * 4, n_folds=5)
    with pytest.raises(ValueError, match="8 passages but 2 labels"):
        blind_table(texts, [True, False])
    with pytest.raises(ValueError, match="unknown baselines"):
        blind_table(texts, [True] * 4 + [False] * 4, baselines=("bag",), n_folds=2)


# Verdicts


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.55, 0.70, False),
        (0.45, 0.58, True),
        (0.45, 0.70, None),
        (0.21, 0.39, False),  # a rule with its sign turned tells the kinds apart
        (0.42, 0.55, True),
        (0.39, 0.55, None),
        (np.nan, np.nan, None),  # a baseline that does not apply
    ],
)
def test_words_that_tell_in_either_direction_fail_the_control(low, high, expected):
    assert blind.holds(low, high) is expected


def test_a_correction_can_take_the_failure_of_a_control_back():
    table = pd.DataFrame({"ci_low": [0.55, 0.55], "ci_high": [0.7, 0.7]})
    assert blind.with_holds(table)["holds"].eq(False).all()
    corrected = blind.with_holds(table.assign(p_adjusted=[0.01, 0.2]))
    assert corrected["holds"].tolist() == [False, pd.NA]


def test_texts_dealt_in_turn_within_their_templates_are_not_told_apart():
    """Ordinary folds gave AUC 0.34 and 0.30 here, below chance, and the text said equal."""
    rows = [
        pd.read_json(ROOT / f"params/audit/{name}.jsonl", lines=True)
        for name in ("sample", "unseen")
    ]
    texts = [text for each in rows for text in each["text"]]
    trained = ["bag of words", "TF-IDF"]
    how = {"baselines": trained, "n_folds": 5, "n_permutations": 0, "n_resamples": 200}
    table = blind_table(texts, np.arange(120) < 60, **how)
    assert table["auc"].between(0.44, 0.56).all()
    assert (table["ci_low"] < 0.5).all() and (table["ci_high"] > 0.5).all()


def test_a_shuffle_that_reaches_the_same_auc_counts_as_high():
    """Texts of one year: every deal of the labels gives one half."""
    texts = [f"word{n:02} and more in 2012" for n in range(12)]
    table = blind.blind_table(
        texts,
        [True, False] * 6,
        baselines=["date rule"],
        n_folds=2,
        n_permutations=9,
        n_resamples=2,
    )
    assert table["auc"].item() == 0.5 and table["p_value"].item() == 1


# Scores without texts


def test_scores_alone_give_the_same_table_as_the_texts():
    is_member = np.arange(60) % 2 == 0
    texts = [
        f"{text} {2000 + number % 7} {'archive' if number % 3 else ''}"
        for number, text in enumerate(random_passages(60, seed=1))
    ]
    how = {"n_resamples": 100, "seed": 3}
    of_texts = blind_table(texts, is_member, n_folds=5, n_permutations=0, **how)
    scored = blind.fold_scores(texts, is_member, n_folds=5, seed=3)
    assert scored.groupby("fold").size().tolist() == [12] * 5
    of_scores = blind.table_of_scores(scored, **how)
    assert of_scores["overlap_pct"].isna().all()
    same = ["baseline", "n_members", "n_non_members", "auc", "ci_low", "ci_high", "tpr_at_5_fpr"]
    pd.testing.assert_frame_equal(of_scores[same], of_texts[same])


def test_scores_are_compared_within_a_fold_alone():
    """Each fold is perfect, on a level of its own: pooled, one pair in four would be lost."""
    scored = pd.DataFrame({"is_member": [True, False] * 2, "fold": [0, 0, 1, 1]})
    scored[[blind.BAG_OF_WORDS, blind.TF_IDF]] = np.array([[4, 3, 2, 1]] * 2).T
    scored[blind.DATE_RULE] = [4, 3, 2, 1]
    auc = blind.table_of_scores(scored, n_resamples=5).set_index("baseline")["auc"]
    assert auc.to_dict() == {
        blind.DATE_RULE: 0.75,
        blind.BAG_OF_WORDS: 1,
        blind.TF_IDF: 1,
    }


def test_the_package_holds_numbers_for_every_passage_of_wikimia():
    scored = published.wikimia_blind_scores()
    counts = scored.groupby("length")["is_member"].agg(["size", "sum"])
    assert counts.to_numpy().tolist() == [[776, 387], [542, 284], [250, 139], [82, 51]]
    assert not scored.duplicated(["length", "index"]).any()
    assert all(kind.kind in "bif" for kind in scored.dtypes)
    table = auc_tables.wikimia_blind_table(n_resamples=20)
    words = table[table["baseline"] == blind.BAG_OF_WORDS]
    assert (words["ci_low"] > 0.9).all()
    assert blind.with_holds(words)["holds"].eq(False).all()


@pytest.mark.mirror
def test_the_packages_scores_are_those_of_the_files():
    found, kept = auc_tables.wikimia_blind_scores(), published.wikimia_blind_scores()
    pd.testing.assert_frame_equal(found, kept, rtol=0, atol=2 * 10**-auc_tables.DECIMALS)
    for length, scored in kept.groupby("length"):
        of_texts = blind_table(
            *auc_tables.wikimia_passages(length), n_permutations=0, n_resamples=2
        )
        of_scores = blind.table_of_scores(scored, n_resamples=2)
        assert of_scores["auc"].tolist() == pytest.approx(of_texts["auc"].tolist(), abs=1e-6)
