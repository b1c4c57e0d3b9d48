"""Parameter files against parameters cells: each test is a trap of YAML or papermill."""

from __future__ import annotations

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_notebook
from notebook_files import build
from papermill.inspection import _infer_parameters

from contamination.audit.settings import Model
from contamination.cases.settings import OwnBooks
from contamination.core.parameters import (
    OwnSettings,
    ParameterError,
    checked_parameters,
    declared_in,
    declared_parameters,
    load_parameter_file,
    setting,
)

CELL = """\
rate: float = 1.0e-3  # learning rate
n: int = 3  # how many
name: str = "a"  # which one
flag: bool = False  # whether
lengths: list[int] = [32, 64]  # passage lengths in words
names: list[str] = []  # which ones"""


def declared(source=CELL):
    return declared_parameters(source, "x.ipynb")


def check(text, source=CELL):
    return checked_parameters(yaml.safe_load(text) or {}, declared(source), "p.yaml")


def test_defaults_are_overridden_by_the_file():
    rest = {"rate": 1e-3, "name": "a", "flag": False, "lengths": [32, 64], "names": []}
    assert check("n: 7") == rest | {"n": 7}


def test_a_whole_number_is_a_float_where_one_is_meant():
    value = check("rate: 1")["rate"]
    assert value == 1.0
    assert isinstance(value, float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nn: 3", 'unknown name "nn" (did you mean "n"?)'),
        ("seed: 3", 'unknown name "seed" (known: rate, n, name, flag, lengths, names)'),
        ("rate: 1e-3", "1.0e-3"),
        ("name: on", "quote it"),
        ("name: 2023-01-01", "quote it"),
        ("n: 3.0", "want int"),
        ("n: true", "want int"),
        ("flag: 1", "true or false"),
        ("rate: .nan", "want float"),
        ("lengths: 32", "want list[int]"),
        ("lengths: [32, a]", "want list[int]"),
        ("names: [on]", "want list[str] (quote it"),
        ("n: null", '"n" is None, want int'),
    ],
)
def test_wrong_values_are_one_line(text, message):
    with pytest.raises(ParameterError) as caught:
        check(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_default_of_another_type_is_refused_as_a_value_is():
    with pytest.raises(ParameterError, match="\"n\" is 'a', want int"):
        check("", "n: int = 'a'  # how many")


@pytest.mark.parametrize(
    "line",
    [
        "n = 3  # no type",
        "n: int = 3",
        "n: int = 3  # with n = 3",
        "n: int | None = 3  # a union hides it from the help page",
        "n: int = 3 + 4  # computed",
        "import os",
    ],
)
def test_lines_that_papermill_would_not_list_are_refused(line):
    with pytest.raises(ParameterError):
        declared(line)


def test_papermill_lists_what_is_declared(tmp_path):
    notebook = nbformat.read(build(tmp_path / "x.ipynb", CELL), as_version=4)
    notebook.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "x"}
    listed = _infer_parameters(notebook)
    assert [parameter.name for parameter in listed] == list(declared().model_fields)
    assert all(parameter.help for parameter in listed)


@pytest.mark.parametrize("text", ["a: [1", "- a\n- b\n", "1: 2\n", "\x00"])
def test_unreadable_parameter_files_are_one_line(tmp_path, text):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(ParameterError) as caught:
        load_parameter_file(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["a: &x [1]\nb: *x\n", "a: &x {n: 1}\nb:\n  <<: *x\n"])
def test_references_are_refused_since_few_lines_of_them_stand_for_gigabytes(tmp_path, text):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ParameterError, match=r"contains a reference \(\*name\)"):
        load_parameter_file(tmp_path / "p.yaml")


@pytest.mark.parametrize("text", ["n: 1\nn: 2\n", "own: {n: 1, n: 2}\n"])
def test_a_name_that_stands_twice_is_refused_at_any_depth(tmp_path, text):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ParameterError, match='"n" occurs twice: keep one of them'):
        load_parameter_file(tmp_path / "p.yaml")


def test_missing_and_empty_parameter_files(tmp_path):
    with pytest.raises(ParameterError, match="No such file or directory"):
        load_parameter_file(tmp_path / "none.yaml")
    (tmp_path / "empty.yaml").write_text("")
    assert load_parameter_file(tmp_path / "empty.yaml") == {}


def test_exactly_one_parameters_cell(tmp_path):
    path = tmp_path / "x.ipynb"
    path.write_text(nbformat.writes(new_notebook(cells=[new_code_cell("x = 1")])))
    with pytest.raises(ParameterError, match="0 cells"):
        declared_in(path)


# What part C is told of one's own model and data


class Own(OwnSettings):
    target_model: str = setting("", "folder or hub id")
    columns: list[str] = setting(["text"], "columns of an instance")
    rate: float = setting(0.5, "a share")


class OwnAndMore(Own):
    dry_run: bool = setting(False, "only say what would be asked")


def test_settings_override_the_defaults_of_their_class_and_its_base():
    mine = OwnAndMore.read({"rate": 1, "dry_run": True})
    assert (mine.target_model, mine.columns, mine.rate, mine.dry_run) == ("", ["text"], 1.0, True)
    assert isinstance(mine.rate, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"target_mode": "m"}, 'own_settings: unknown name "target_mode" (did you mean "target_'),
        ({"dry_run": 1}, "write true or false"),
    ],
)
def test_wrong_settings_are_one_line(values, message):
    with pytest.raises(ParameterError) as caught:
        OwnAndMore.read(values)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_block_is_read_as_strictly_and_an_empty_one_has_its_defaults():
    """``cases.settings.OwnBooks`` has the block ``model``; its class is named by its module."""
    assert OwnBooks.read({}).model == Model()
    mine = OwnBooks.read({"model": {"names": ["a"], "cost_cap": 1}})
    assert isinstance(mine.model, Model) and mine.model.cost_cap == 1.0
    shown = OwnBooks.described().set_index("setting")["default"]
    assert shown["model: names"] == "[]" and shown["test_folder"] == "''"
    for model, message in [
        ({"nmes": []}, 'own_settings: model: unknown name "nmes" (did you mean "names"?)'),
        ({"dtype": "int8"}, "own_settings: model: \"dtype\" is 'int8'"),
        ({"dtype": "float16"}, "own_settings: model: model names nothing to audit"),
        ("a", "own_settings: \"model\" is 'a', want dict"),
    ]:
        with pytest.raises(ParameterError) as caught:
            OwnBooks.read({"model": model})
        assert str(caught.value).startswith(message)


def test_settings_share_no_default():
    Own.read({}).columns.append("label")
    assert Own.read({}).columns == ["text"]
    assert Own.described()["default"].tolist() == ["''", "['text']", "0.5"]
