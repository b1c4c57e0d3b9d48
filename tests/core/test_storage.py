"""Files are written whole or not at all, and tables survive the round trip."""

import csv
import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.core import storage


def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = storage.write_text(tmp_path / "a.txt", "old")
    with pytest.raises(RuntimeError), storage.atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_csv_keeps_full_precision_and_equal_tables_are_equal_bytes(tmp_path):
    table = pd.DataFrame({"x": [0.1 + 0.2, 1 / 3, np.nan], "name": ["a", "", "ü"]})
    first = storage.write_csv(tmp_path / "a.csv", table).read_bytes()
    assert first == storage.write_csv(tmp_path / "b.csv", table).read_bytes()
    assert b"\r" not in first
    again = pd.read_csv(tmp_path / "a.csv")
    assert again["x"][0] == 0.1 + 0.2
    assert again["x"][1] == 1 / 3


def test_equal_figures_are_equal_bytes(tmp_path):
    from matplotlib.figure import Figure

    def figure():
        figure = Figure()
        figure.subplots().plot([1, 2])
        return figure

    storage.write_figure(tmp_path / "a.png", figure())
    storage.write_figure(tmp_path / "b.png", figure())
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_hash_ignores_the_order_of_keys_and_nothing_else():
    assert storage.hash_of({"a": 1, "b": 2}) == storage.hash_of({"b": 2, "a": 1})
    assert storage.hash_of({"a": 1}) != storage.hash_of({"a": 1.5})
    assert storage.hash_of([1, 2]) != storage.hash_of([2, 1])
    with pytest.raises(TypeError):
        storage.hash_of({1, 2})
    with pytest.raises(ValueError, match="not JSON compliant"):
        storage.hash_of(float("nan"))


def test_missing_upstream_table_names_the_notebook_to_run():
    with pytest.raises(FileNotFoundError, match=r"run notebooks/02_dcq\.ipynb first"):
        storage.Outputs().read_table("dcq_published", written_by="02_dcq")


def test_texts_that_are_empty_stay_texts():
    outputs = storage.Outputs()
    outputs.write_table("t", pd.DataFrame({"name": ["a", ""], "x": [1.0, np.nan]}))
    table = outputs.read_table("t", written_by="x")
    assert table["name"].tolist() == ["a", ""]
    assert np.isnan(table["x"][1])


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"]
NO_FORMULAS = ["-0.5", "+5", "-1e-5", ".5", "plain", "'tis", "a=b", "5-3", "", "\n- item", "Ü"]
# Texts as they would be written, had they not been there before.
LIKE_OURS = ["'=1+1", "''-2", "'-0.5", "a;'=1"]
IN_A_CELL = {"a;=1+1": "a;'=1+1", "a;b; =c": "a;b; =c", ";-1;@x": ";'-1;'@x"}


def test_no_text_of_a_table_is_a_formula_and_all_come_back_as_they_were(tmp_path):
    texts = [*FORMULAS, *NO_FORMULAS, *LIKE_OURS, *IN_A_CELL, "a\rb", 'c"\r\n"d', "\r\n"]
    table = pd.DataFrame({"text": texts, "=name": -1.5, "mixed": [1, *texts[1:]], "'-": "x"})
    path = storage.write_csv(tmp_path / "t.csv", table)
    with path.open(newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header == ["text", "'=name", "mixed", "''-"]
    shown = [row[0] for row in rows]
    assert shown[: len(FORMULAS)] == [f"'{text}" for text in FORMULAS]
    assert shown[len(FORMULAS) :][: len(NO_FORMULAS)] == NO_FORMULAS
    assert {row[1] for row in rows} == {"-1.5"}  # a number
    assert {*IN_A_CELL.values()} <= {*shown}
    again = storage.read_results(path)
    assert list(again.columns) == list(table.columns)
    assert again["text"].tolist() == texts
    assert again["mixed"].tolist() == ["1", *texts[1:]]


def test_what_acts_on_a_terminal_stands_in_a_result_as_it_is_escaped():
    outputs = storage.Outputs()
    given = outputs.write_table("t", pd.DataFrame({"text": ["a\x1b[2J", "tab\tand\nline"]}))
    assert given["text"][0] == "a\x1b[2J"  # what follows has the text itself
    again = outputs.read_table("t", written_by="x")
    assert again["text"].tolist() == ["a\\x1b[2J", "tab\tand\nline"]


def test_a_table_without_formulas_is_written_as_pandas_writes_it(tmp_path):
    kinds = {"text": pd.array(["-0.5", None, "b,c"], "string"), "object": [1, None, "x"]}
    kinds |= {"category": pd.Categorical(["a", "b", "a"]), "flag": [True, False, True]}
    kinds |= {"number": [-0.5, np.nan, 1e-9], "day": pd.to_datetime(["2024-01-31"] * 3)}
    table = pd.DataFrame(kinds)
    before = table.copy()
    path = storage.write_csv(tmp_path / "a.csv", table)
    assert path.read_bytes() == table.to_csv(index=False, lineterminator="\n").encode()
    storage.write_csv(tmp_path / "b.csv", table.assign(text="=1"))
    pd.testing.assert_frame_equal(table, before)


@given(st.lists(st.text(st.sampled_from("'=-+@\t\r\n\",;a0.e ")), min_size=1))
def test_any_texts_come_back(texts):
    texts = [*texts, "a word"]  # a column of numbers alone is read as numbers
    with tempfile.TemporaryDirectory() as folder:
        path = storage.write_csv(Path(folder) / "t.csv", pd.DataFrame({"t": texts, "n": 1}))
        again = storage.read_csv(path, keep_default_na=False, dtype={"t": str})
    assert again["t"].tolist() == texts


def test_results_go_to_staging_and_are_read_from_the_outputs(tmp_path, monkeypatch):
    monkeypatch.setenv(storage.STAGING_VARIABLE, str(tmp_path / "staging"))
    (tmp_path / "staging").mkdir()
    outputs = storage.Outputs()
    outputs.write_table("t", pd.DataFrame({"x": [1]}))
    assert (tmp_path / "staging/tables/t.csv").exists()
    assert not outputs.has_table("t")
    storage.record("cache", name="scores", hits=1, misses=2)
    line = (tmp_path / "staging" / storage.RECORD_NAME).read_text()
    assert json.loads(line) == {"kind": "cache", "name": "scores", "hits": 1, "misses": 2}
