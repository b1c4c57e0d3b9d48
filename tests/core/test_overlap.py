"""Overlap of two texts, by hand."""

import json
import math
import shutil

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
from contamination.models.bleurt import load_bleurt, score_pairs


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
    with pytest.raises(ValueError, match='joining must be "paper" or "code"'):
        bleurt_texts("one", "two", "three", **how | {"joining": "mine"})


RIVER = [21, 28, 9, 11, 25, 22, 15]  # "the old river" in the pieces of SENTENCES
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = (
    "the old river ran past a small stone house",
    "nobody had lived there for years",
    "a green fox sings seven songs",
    "two owls count nineteen stars at night",
)


def save_bleurt(folder, tokenizer):
    """A small BLEURT of random weights in bleurt-pytorch's names: it rates nothing."""
    import sentencepiece
    import torch

    if tokenizer == "SentencePiece":
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES * 5),
            model_prefix=str(folder / "spm"),
            vocab_size=60,
            hard_vocab_limit=False,
            minloglevel=2,
            pad_id=0,
            pad_piece="[PAD]",
            unk_id=1,
            unk_piece="[UNK]",
            bos_id=-1,
            eos_id=-1,
            user_defined_symbols=SPECIAL[2:],
        )
        n_tokens, narrow = 60, 8
    else:
        (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *"abcdefgh"]))
        n_tokens, narrow = 13, None
    width, inner, embedded = 16, 32, narrow or 16
    shapes = {
        "bleurt.embeddings.word_embeddings.weight": (n_tokens, embedded),
        "bleurt.embeddings.position_embeddings.weight": (24, embedded),
        "bleurt.embeddings.token_type_embeddings.weight": (2, embedded),
        "bleurt.embeddings.LayerNorm.weight": (embedded,),
        "bleurt.embeddings.LayerNorm.bias": (embedded,),
    }
    parts = {"bleurt.encoder.embedding_projection": (width, narrow)} if narrow else {}
    for layer in range(2):
        shape = {
            "attention.self.query": (width, width),
            "attention.self.key": (width, width),
            "attention.self.value": (width, width),
            "attention.output.dense": (width, width),
            "attention.output.LayerNorm": (width,),
            "intermediate.dense": (inner, width),
            "output.dense": (width, inner),
            "output.LayerNorm": (width,),
        }
        parts |= {f"bleurt.encoder.layer.{layer}.{name}": of for name, of in shape.items()}
    parts |= {"bleurt.pooler.dense": (width, width), "classifier": (1, width)}
    for name, shape in parts.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    generator = torch.Generator().manual_seed(0)
    weights = {name: torch.randn(of, generator=generator) / 2 for name, of in shapes.items()}
    weights["bleurt.embeddings.position_ids"] = torch.arange(24)[None]
    torch.save(weights, folder / "pytorch_model.bin")
    config = {
        "model_type": "bleurt",
        "architectures": ["BleurtForSequenceClassification"],
        "vocab_size": n_tokens,
        "embedding_size": narrow,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 24,
        "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def bleurt_folder(tmp_path_factory):
    return save_bleurt(tmp_path_factory.mktemp("bleurt"), "WordPiece")


@pytest.mark.parametrize(
    ("tokenizer", "token_ids", "scores"),
    [
        (
            "SentencePiece",
            [
                [2, *RIVER, 25, 10, 6, 5, 3, *RIVER, 12, 42, 27, 3],
                [2, 14, 20, 39, 3, 3],
            ],
            [-3.8213387, -3.8562927, -3.8388109, -3.7913451],
        ),
        (
            "WordPiece",
            [[2, 1, 1, 1, 1, 1, 5, 1, 1, 1, 3, 1, 1, 1, 1, 3], [2, 5, 1, 3, 3]],
            [-1.9621042, -1.9198374, -2.0492396, -1.6598289],
        ),
    ],
)
def test_bleurt_is_that_of_its_own_package(tmp_path, tokenizer, token_ids, scores):
    """What bleurt-pytorch 0.0.1 with transformers 4.57.6 gave for the same checkpoint."""
    scorer = load_bleurt(save_bleurt(tmp_path, tokenizer))
    references = [SENTENCES[0], "a fox", "two owls sing, nobody had lived"]
    references += ["zebra é house" + " river" * 30]
    candidates = ["the old river sings", "", "two owls count", "a green fox " * 8]
    rows = scorer.tokenizer(references, candidates, max_length=24).input_ids.tolist()
    assert rows[0] == token_ids[0] + [0] * (24 - len(token_ids[0]))
    assert rows[1] == token_ids[1] + [0] * (24 - len(token_ids[1]))
    assert score_pairs(scorer, references, candidates) == pytest.approx(scores, abs=1e-6)


def test_another_checkpoint_is_no_bleurt(bleurt_folder, tmp_path):
    import torch

    shutil.copytree(bleurt_folder, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "pytorch_model.bin"
    weights = torch.load(path, weights_only=True)
    torch.save({k: v for k, v in weights.items() if "pooler" not in k}, path)
    with pytest.raises(ValueError, match="no BLEURT checkpoint: bert"):
        load_bleurt(tmp_path)
    with pytest.raises(FileNotFoundError, match="no-such-bleurt"):
        load_bleurt(tmp_path / "no-such-bleurt")


def test_bleurt_scores_pairs_alike_in_any_batch(bleurt_folder):
    scorer = load_bleurt(bleurt_folder)
    references = ["a b c", "a", "b " * 40, "d e"]
    candidates = ["a b d", "", "c", "d e"]
    together = score_pairs(scorer, references, candidates)
    alone = [score_pairs(scorer, [r], [c])[0] for r, c in zip(references, candidates, strict=True)]
    assert together == pytest.approx(alone, abs=1e-5)
    assert together.shape == (4,) and len(set(together.round(6))) == 4
    # Order matters: the reference comes first.
    assert score_pairs(scorer, candidates[:1], references[:1])[0] != pytest.approx(together[0])
    assert score_pairs(scorer, [], []).shape == (0,)
    with pytest.raises(ValueError, match="2 references but 1 candidates"):
        score_pairs(scorer, ["a", "b"], ["a"])
