"""BLEURT by its own package, on a small checkpoint of random weights."""

import json
import pickle
import shutil
import sys

import pytest
import sentencepiece
import torch
from safetensors.torch import save_file

from contamination.models.bleurt import PACKAGE, load_bleurt, score_pairs

# Under transformers 5 the package cannot be imported.
pytest.importorskip("bleurt_pytorch", exc_type=ImportError)
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


REFERENCES = [SENTENCES[0], "a fox", "two owls sing, nobody had lived"]
REFERENCES += ["zebra é house" + " river" * 30]
CANDIDATES = ["the old river sings", "", "two owls count", "a green fox " * 8]


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
def test_ids_and_scores_are_those_of_the_package(tmp_path, tokenizer, token_ids, scores):
    """What bleurt-pytorch 0.0.1 with transformers 4.57.6 gives for the same checkpoint."""
    scorer = load_bleurt(save_bleurt(tmp_path, tokenizer))
    assert scorer.identity["bleurt_by"] == PACKAGE
    how = {"padding": True, "truncation": True, "max_length": 24}
    rows = scorer.tokenizer(REFERENCES, CANDIDATES, **how, return_tensors="pt").input_ids.tolist()
    assert rows[0] == token_ids[0] + [0] * (24 - len(token_ids[0]))
    assert rows[1] == token_ids[1] + [0] * (24 - len(token_ids[1]))
    assert score_pairs(scorer, REFERENCES, CANDIDATES) == pytest.approx(scores, abs=1e-6)


def test_without_the_package_one_line_says_which_versions_it_needs(bleurt_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "bleurt_pytorch", None)  # as if it could not be imported
    with pytest.raises(ImportError, match=r"bleurt-pytorch cannot be imported .*transformers>=4"):
        load_bleurt(bleurt_folder)


def test_weights_are_read_as_tensors_alone(bleurt_folder, tmp_path):
    """A file that would run code when unpickled is refused, and safetensors come first."""
    shutil.copytree(bleurt_folder, tmp_path, dirs_exist_ok=True)
    weights = torch.load(tmp_path / "pytorch_model.bin", weights_only=True)
    torch.save(Harmful(), tmp_path / "pytorch_model.bin")
    with pytest.raises((pickle.UnpicklingError, OSError)):
        load_bleurt(tmp_path)
    assert Harmful.n_run == 0
    save_file(weights, tmp_path / "model.safetensors")
    assert score_pairs(load_bleurt(tmp_path), ["a"], ["b"]).shape == (1,)


class Harmful:
    """An object whose loading runs code of its own."""

    n_run = 0

    def __reduce__(self):
        return Harmful.run, ()

    @classmethod
    def run(cls):
        cls.n_run += 1


def test_another_checkpoint_is_no_bleurt(bleurt_folder, tmp_path):
    shutil.copytree(bleurt_folder, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "pytorch_model.bin"
    weights = torch.load(path, weights_only=True)
    torch.save({k: v for k, v in weights.items() if "pooler" not in k}, path)
    with pytest.raises(ValueError, match=r"lacks 2 of its weights, such as bleurt\.pooler"):
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
    with pytest.raises(ValueError, match="does not match batch length"):
        score_pairs(scorer, ["a", "b"], ["a"])
