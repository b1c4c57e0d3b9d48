"""Blind baselines: what the text alone gives away, and that they find nothing in nothing."""

import doctest

import numpy as np
import pytest

from contamination import statistics
from contamination.min_k import blind
from contamination.min_k.blind import (
    blind_table,
    cross_validated_scores,
    date_rule_scores,
)

WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "nu", "pe") for b in ("ra", "so", "ti", "vu", "ze")]


def random_passages(n_passages, seed, n_words=12):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, n_words)) for _ in range(n_passages)]


def test_docstring_examples():
    assert doctest.testmod(blind).failed == 0


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
def test_per_fold_means_are_unbiased_where_there_is_nothing_to_find(baseline):
    # 41 members in 5 folds: no fold has the share of members of the others.
    is_member = np.arange(81) < 41
    per_fold, pooled = [], []
    for seed in range(40):
        folds = cross_validated_scores(random_passages(81, seed), is_member, baseline, 5, seed)
        per_fold.append(np.mean([statistics.auc(s, is_member[i]) for i, s in folds]))
        items = np.concatenate([items for items, _ in folds])
        pooled.append(statistics.auc(np.concatenate([s for _, s in folds]), is_member[items]))
    standard_error = np.std(per_fold) / np.sqrt(len(per_fold))
    assert abs(np.mean(per_fold) - 0.5) < 3 * standard_error
    assert np.mean(pooled) < np.mean(per_fold)


def test_no_passage_is_scored_by_a_classifier_that_saw_it():
    # Each member has a word of its own: it gives the label away to whoever trained on it.
    texts = [f"{text} own{number}" for number, text in enumerate(random_passages(40, seed=2))]
    is_member = np.arange(40) < 20
    folds = cross_validated_scores(texts, is_member, "bag of words", n_folds=4)
    assert sorted(np.concatenate([items for items, _ in folds])) == list(range(40))
    assert all(is_member[items].sum() == 5 for items, _ in folds)
    assert np.mean([statistics.auc(s, is_member[items]) for items, s in folds]) < 0.8


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


def test_the_same_seed_gives_the_same_table():
    how = {"n_folds": 5, "n_permutations": 3, "n_resamples": 50, "seed": 4}
    texts, is_member = random_passages(30, seed=5), np.arange(30) % 2 == 0
    assert blind_table(texts, is_member, **how).equals(blind_table(texts, is_member, **how))


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
