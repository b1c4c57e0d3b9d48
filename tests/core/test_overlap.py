"""Overlap of two texts, by hand."""

import math

import pytest

from contamination.core.overlap import (
    bleurt_texts,
    is_contained,
    is_equal,
    ngram_overlap_share,
    ngrams,
    normalised,
    rouge_l,
    unigram_recall,
    word_overlap,
)


def test_rouge_l_by_hand():
    # Longest common subsequence "a c d": precision 3/4, recall 3/3.
    assert rouge_l("a c d", "a b c d") == pytest.approx(2 * 0.75 / 1.75)
    assert rouge_l("running", "run") == 0.0
    assert rouge_l("one word", "") == 0.0
    assert rouge_l("word", "word") == 1.0


@pytest.mark.parametrize("reference", ["", "  ", "..."])
def test_references_without_a_word_are_refused(reference):
    with pytest.raises(ValueError, match="holds no word"):
        rouge_l(reference, "text")
    with pytest.raises(ValueError, match="holds no word"):
        unigram_recall(reference, "text")


def test_equality_ignores_what_typing_changes_and_nothing_else():
    assert is_equal("“The  Cat’s” hat.", '"the cat\'s" hat')
    assert not is_equal("25 cats", "26 cats")
    assert normalised(" A\nb . ") == "a b"


def test_containment_is_of_the_whole_reference():
    assert is_contained("the cat", "Look: the cat sat.")
    assert not is_contained("the cat sat", "the cat")


def test_shares_of_common_words_by_hand():
    assert word_overlap("a a b", "a b b") == pytest.approx(2 * 2 / 6)
    assert word_overlap("", "") == 0.0
    assert unigram_recall("a b c d", "d c x y z a") == 0.75


def test_ngrams_ignore_case_and_punctuation():
    assert ngrams("One, two THREE", 2) == {("one", "two"), ("two", "three")}
    assert ngrams("too short", 3) == set()


def test_overlap_is_the_share_of_texts_with_a_common_n_gram():
    members = ["One two, three four five six."]
    others = ["ZERO one two three four", "three two one four", "four five"]
    assert ngram_overlap_share(others, members, n=3) == 0.5  # the third is too short
    assert ngram_overlap_share(others, members, n=2) == pytest.approx(2 / 3)
    assert math.isnan(ngram_overlap_share(["too short"], members, n=3))


# Texts for BLEURT


@pytest.mark.parametrize(
    ("is_pair", "is_mid_sentence", "joining", "is_joined"),
    [
        (False, True, "paper", True),
        (False, False, "paper", False),
        (True, False, "paper", False),
        (False, True, "code", True),
        (False, False, "code", True),
        (True, False, "code", False),
    ],
)
def test_bleurt_joins_as_the_paper_or_as_the_code(is_pair, is_mid_sentence, joining, is_joined):
    how = {"is_pair": is_pair, "is_mid_sentence": is_mid_sentence, "joining": joining}
    found = bleurt_texts("one", "two", "three", **how)
    assert found == (("one two", "one three") if is_joined else ("two", "three"))
    with pytest.raises(ValueError, match='joining must be "paper" or "code"'):
        bleurt_texts("one", "two", "three", **how | {"joining": "mine"})
