"""Files are written whole or not at all, and tables survive the round trip."""

import json

import numpy as np
import pandas as pd
import pytest

from contamination.core import storage


def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = storage.write_text(tmp_path / "a.txt", "old")
    with pytest.raises(RuntimeError), storage.atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_full_disk_is_an_error_and_leaves_nothing_half_written(tmp_path, monkeypatch):
    import errno
    import os

    path = storage.write_text(tmp_path / "a.txt", "old")

    def no_space(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(storage.os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        storage.write_text(path, "new")
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


def test_safetensors_round_trip(tmp_path):
    arrays = {"w": np.arange(6, dtype=np.float32).reshape(2, 3).T}
    storage.write_safetensors(tmp_path / "a.safetensors", arrays, {"dtype": "float32"})
    again, metadata = storage.read_safetensors(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(again["w"], arrays["w"])
    assert metadata == {"dtype": "float32"}


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
