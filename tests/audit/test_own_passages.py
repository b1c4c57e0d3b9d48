"""One's own model and passages in notebook 04: the check of the input, the ready parameters."""

import json

import pytest
from notebook_files import ROOT

from contamination.audit.internals import own_passages
from contamination.audit.settings import OwnPassages
from contamination.core import run


@pytest.fixture
def own(tmp_path):
    """A model folder and a labelled file, and own_passages with both."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text(json.dumps({"model_type": "llama"}))

    def check(rows=None, model="model", label_column="label", **more):
        path = tmp_path / "own.jsonl"
        rows = rows or [{"input": f"passage {n}", "label": n % 2} for n in range(6)]
        path.write_text("\n".join(map(json.dumps, rows)))
        k_percents = more.pop("k_percents", [])
        mine = {"target_model": str(tmp_path / model) if model else "", "dataset": str(path)}
        mine |= {"text_column": "input", "label_column": label_column} | more
        return own_passages(OwnPassages.read(mine), k_percents)

    return check


def test_members_and_non_members_may_be_two_files(own, tmp_path):
    others = tmp_path / "others.jsonl"
    others.write_text('{"input": "one"}\n"two"\n"three"\n')
    with pytest.raises(ValueError, match="holds no text at row 7"):
        own(non_member_dataset=str(others))
    others.write_text("".join(f'{{"input": "other {n}"}}\n' for n in range(3)))
    texts, is_member = own(non_member_dataset=str(others))["own.jsonl"]
    assert texts[-1] == "other 2"
    assert is_member.tolist() == [True] * 6 + [False] * 3


def test_own_passages_are_named_without_the_folder(own):
    found = own()
    assert list(found) == ["own.jsonl"]
    texts, is_member = found["own.jsonl"]
    assert texts[1] == "passage 1"
    assert is_member.tolist() == [False, True] * 3


def test_nothing_named_is_nothing_to_check(own):
    assert own(model="", dataset="") == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label_column": "lable"}, 'no column "lable"'),
        ({"rows": [{"input": "a", "label": 1}] * 4}, "4 members and 0 non-members"),
        ({"rows": [{"input": "", "label": 1}, {"input": "b", "label": 0}]}, "no text at row 0"),
        (
            {"rows": [{"input": "a", "label": 1}, {"input": "b", "label": 0}]},
            "at least two members and two non-members",
        ),
        ({"model": "mistyped"}, "is neither a folder with config.json, nor a GGUF file, nor found"),
        ({"model": ""}, "target_model is empty"),
        ({"dataset": ""}, "dataset is empty"),
        ({"dataset": "mistyped.jsonl"}, 'no file "mistyped.jsonl"'),
        ({"target_dtype": "int8"}, "want float32 or bfloat16 or float16"),
        ({"engine": "dask"}, "want local or ray"),
        ({"bos": "yes"}, "want first or none or empty"),
        ({"k_percents": [20.0, 0.0]}, "k_percent must be above 0 and at most 100, got 0"),
    ],
)
def test_bad_input_is_one_line_that_names_it(own, change, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        own(**change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "params/full/min_k").glob("*.yaml")), ids=lambda p: p.stem
)
def test_ready_parameters_fit_the_notebook(path):
    parameters = run.check(ROOT / "notebooks/04_min_k_wikimia.ipynb", path)
    mine = OwnPassages.read(parameters["own_settings"])
    assert mine.target_model and mine.reference_model
    if path.stem.startswith("mimir"):
        assert "/train/" in mine.dataset
        assert mine.non_member_dataset == mine.dataset.replace("/train/", "/test/")
    else:
        assert mine.dataset == "swj0419/WikiMIA" and len(mine.dataset_splits) == 4
