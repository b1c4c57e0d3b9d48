"""Overlap of two texts, by hand."""

import math

import pytest

from contamination.models.loading import load_bleurt
from contamination.overlap import (
    bleurt,
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


def test_word_overlap_counts_repeated_words():
    assert word_overlap("a a b", "a b b") == pytest.approx(2 * 2 / 6)
    assert word_overlap("", "") == 0.0


def test_unigram_recall_is_relative_to_the_reference():
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


# BLEURT


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


def test_another_joining_is_refused():
    with pytest.raises(ValueError, match='joining must be "paper" or "code"'):
        bleurt_texts("a", "b", "c", is_pair=False, is_mid_sentence=True, joining="mine")


@pytest.fixture(scope="module")
def bleurt_folder(tmp_path_factory):
    """A small BLEURT of random weights: it runs the code and rates nothing."""
    import torch
    from bleurt_pytorch import BleurtConfig, BleurtForSequenceClassification

    folder = tmp_path_factory.mktemp("bleurt")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    torch.manual_seed(0)
    config = BleurtConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        initializer_range=0.5,
    )
    BleurtForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_bleurt_scores_pairs_alike_in_any_batch(bleurt_folder):
    scorer = load_bleurt(bleurt_folder)
    references = ["a b c", "a", "b " * 40, "d e"]
    candidates = ["a b d", "", "c", "d e"]
    together = bleurt(scorer, references, candidates)
    alone = [bleurt(scorer, [r], [c])[0] for r, c in zip(references, candidates, strict=True)]
    assert together == pytest.approx(alone, abs=1e-5)
    assert together.shape == (4,) and len(set(together.round(6))) == 4
    # Order matters: the reference comes first.
    assert bleurt(scorer, candidates[:1], references[:1])[0] != pytest.approx(together[0])
    assert bleurt(scorer, [], []).shape == (0,)
    with pytest.raises(ValueError, match="2 references but 1 candidates"):
        bleurt(scorer, ["a", "b"], ["a"])


def test_a_missing_bleurt_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no-such-bleurt"):
        load_bleurt(tmp_path / "no-such-bleurt")
