"""Folds of blind classifiers: unbiased at chance whatever families the texts come in."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold

from contamination.core import blind, statistics

N_DEALS = 30


def text_families(n_families, n_texts, seed=0, n_shared=12):
    """Texts of families, one after another: so many words of the family and eight drawn ones."""
    rng = np.random.default_rng(seed)
    return [
        " ".join([f"f{family}x{word}" for word in range(n_shared)])
        + " "
        + " ".join(f"w{word}" for word in rng.choice(400, 8, replace=False))
        for family in range(n_families)
        for _ in range(n_texts)
    ]


def counted(texts):
    return CountVectorizer().fit_transform(texts)


def dealt(design, n_families, n_texts, share, rng):
    """Membership by pure chance, or the same share of each family."""
    n = n_families * n_texts
    if design == "random":
        return rng.permutation(n) < round(share * n)
    order = [rng.permutation(n_texts) < round(share * n_texts) for _ in range(n_families)]
    return np.concatenate(order)


def mean_auc(texts, deals, n_folds=5):
    found = []
    for number, is_member in enumerate(deals):
        sets = blind.cross_validated_scores(texts, is_member, blind.TF_IDF, n_folds, number)
        found.append(statistics.auc_within([(s, is_member[items]) for items, s in sets]))
    return np.mean(found), np.std(found) / np.sqrt(len(found))


@pytest.mark.parametrize("design", ["random", "in turn"])
@pytest.mark.parametrize(
    ("n_families", "n_texts", "share"), [(8, 10, 0.5), (8, 10, 0.2), (3, 30, 0.5)]
)
def test_the_mean_is_one_half_at_chance_however_families_are_dealt(
    design, n_families, n_texts, share
):
    texts, rng = text_families(n_families, n_texts), np.random.default_rng(5)
    deals = [dealt(design, n_families, n_texts, share, rng) for _ in range(N_DEALS)]
    mean, error = mean_auc(texts, deals)
    assert abs(mean - 0.5) < 3 * error


def test_ordinary_folds_are_far_below_one_half_where_families_are_dealt_in_turn(monkeypatch):
    texts, rng = text_families(8, 10), np.random.default_rng(5)
    deals = [dealt("in turn", 8, 10, 0.5, rng) for _ in range(20)]
    monkeypatch.setattr(blind.NearCopies, "exist", False)
    mean, error = mean_auc(texts, deals)
    assert mean + 3 * error < 0.45


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_texts_without_near_copies_are_at_one_half_too(share):
    texts, rng = text_families(60, 1), np.random.default_rng(6)
    assert not blind.near_copies(counted(texts)).exist
    deals = [dealt("random", 60, 1, share, rng) for _ in range(N_DEALS)]
    mean, error = mean_auc(texts, deals)
    assert abs(mean - 0.5) < 3 * error


def test_a_difference_is_found_within_families_and_between_them():
    is_member = np.arange(80) % 2 == 0
    texts = text_families(8, 10)
    told = [
        f"{text} {'older' if one else 'newer'}" for text, one in zip(texts, is_member, strict=True)
    ]
    assert mean_auc(told, [is_member])[0] > 0.95
    # Each kind has one family of its own, as where each quotes a letter head of its own.
    by_head = text_families(2, 40)
    assert mean_auc(by_head, [np.arange(80) < 40])[0] == 1
    # Three in four of one family, one in four of the other: beyond chance.
    mostly = np.concatenate([np.arange(40) % 4 > 0, np.arange(40) % 4 == 0])
    assert blind.families_differ(np.repeat([0, 1], 40), mostly)
    assert mean_auc(by_head, [mostly])[0] > 0.65


def test_families_are_held_against_the_share_of_members_and_not_against_one_half():
    """A quarter are members, and all of them stand in the largest of 21 families."""
    family = np.concatenate([np.zeros(60, int), 1 + np.arange(20)])
    assert blind.families_differ(family, np.arange(80) < 20)
    assert not blind.families_differ(family, np.arange(80) % 4 == 0)


def test_near_copies_fall_into_one_fold():
    texts = text_families(30, 2)
    is_member = np.arange(60) % 2 == 0
    found = blind.fold_maker(counted(texts), 5)(is_member)
    assert sorted(np.concatenate([test for _, sets in found for test in sets])) == list(range(60))
    for train, sets in found:
        assert not {item // 2 for item in train} & {item // 2 for test in sets for item in test}


def test_a_family_that_is_too_large_is_compared_with_itself_alone():
    texts = text_families(2, 30, n_shared=9)
    copies = blind.near_copies(counted(texts))
    assert np.unique(copies.family).size == 2
    assert [set(copies.compared[:30]), set(copies.compared[30:])] == [{1}, {31}]
    found = blind.fold_maker(counted(texts), 10)(np.arange(60) % 2 == 0)
    assert len(found) == blind.MOST_FOLDS
    assert all(len({item // 30 for item in test}) == 1 for _, sets in found for test in sets)


def test_folds_of_near_copies_do_not_follow_the_labels():
    """Else the labels that train would tell how many members are left to judge."""
    make = blind.fold_maker(counted(text_families(10, 4)), 5)
    rng = np.random.default_rng(0)
    first, second = (make(dealt("random", 10, 4, 0.5, rng)) for _ in range(2))
    assert all((a == b).all() for (a, _), (b, _) in zip(first, second, strict=True))


def test_without_near_copies_folds_are_stratified():
    is_member = np.arange(60) % 3 == 0
    found = blind.fold_maker(counted(text_families(60, 1)), 5, seed=3)(is_member)
    same = StratifiedKFold(5, shuffle=True, random_state=3).split(is_member, is_member)
    assert all((a == b).all() for (a, _), (b, _) in zip(found, same, strict=True))


def test_near_copies_share_a_third_of_their_words():
    words = [f"w{n}" for n in range(30)]
    texts = [" ".join(words[:20]), " ".join(words[10:30]), " ".join(words[11:30])]
    # 10 of 30 words, 9 of 30, and 19 of 20: the second joins the first and the third.
    assert blind.near_copies(counted(texts[:2])).exist
    assert not blind.near_copies(counted([texts[0], texts[2]])).exist


def test_the_interval_allows_for_pairs_that_are_used_twice():
    """At chance the bootstrap of the scores misses one half too often, the widened one does not."""
    texts, rng = text_families(100, 1, n_shared=0), np.random.default_rng(7)
    missed = np.zeros(2)
    for number in range(100):
        is_member = dealt("random", 100, 1, 0.5, rng)
        scored = blind.cross_validated_scores(texts, is_member, blind.TF_IDF, 5, number)
        sets = [(scores, is_member[items]) for items, scores in scored]
        auc = statistics.auc_within(sets)
        plain = statistics.bootstrap_auc_within(sets, 200, number)
        for place, resampled in enumerate((plain, blind.widened(auc, plain))):
            low, high = statistics.percentile_interval(resampled)
            missed[place] += not low <= 0.5 <= high
    assert missed[0] > 10 and missed[1] < 8
