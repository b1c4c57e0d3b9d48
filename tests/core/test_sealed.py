"""Entries of a cache are whole or made again; what a killed process leaves goes; full disks."""

import errno
import os
import subprocess
import sys
import time
import warnings

import pandas as pd
import pytest
from damage import DAMAGES, cut, flip, said_of
from notebook_files import ROOT

from contamination.core import storage

TABLE = pd.DataFrame({"text": ["a", None], "n": [1, 2]})
SHA256_OF_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def made_table(times):
    """The cached table, and a note in ``times`` if it had to be made."""
    return storage.cached_table("room", "table", 1, ["it"], lambda: times.append(1) or TABLE)


def table_file():
    (path,) = storage.cache_folder("room", "table").glob("*.parquet")
    return path


def folder_of(path, text="abc"):
    with storage.atomic_folder(path) as staged:
        (staged / "a.txt").write_text(text)
    return path


# Whole, damaged, not there


def test_a_checksum_is_what_sha256sum_writes(tmp_path):
    storage.seal(storage.write_text(tmp_path / "a.txt", "abc"))
    folder_of(tmp_path / "b")
    line = f"{SHA256_OF_ABC}  a.txt\n"
    assert (tmp_path / "a.txt.sha256").read_text() == line
    assert (tmp_path / "b" / storage.SUMS).read_text() == line


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_named_and_made_again(damage):
    times = []
    first = made_table(times)
    whole = table_file().read_bytes()
    damage(table_file())
    with pytest.warns(UserWarning, match=said_of(table_file())):
        again = made_table(times)
    pd.testing.assert_frame_equal(again, first)
    assert table_file().read_bytes() == whole and len(times) == 2
    with warnings.catch_warnings(action="error"):
        made_table(times)
    assert len(times) == 2


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checksum_makes_the_table_again(damage):
    times = []
    made_table(times)
    damage(table_file().with_name(f"{table_file().name}.sha256"))
    with pytest.warns(UserWarning, match=said_of(table_file())):
        made_table(times)
    assert len(times) == 2


def test_an_entry_without_a_checksum_is_not_there_and_nothing_is_said():
    times = []
    made_table(times)
    table_file().with_name(f"{table_file().name}.sha256").unlink()
    with warnings.catch_warnings(action="error"):
        made_table(times)
    assert len(times) == 2


def test_a_folder_is_damaged_by_a_file_that_is_new_or_gone_and_not_by_a_hidden_one(tmp_path):
    folder = folder_of(tmp_path / "a")
    (folder / ".DS_Store").write_text("seen by a file manager")
    assert storage.is_whole(folder)
    (folder / "b.txt").write_text("new")
    with pytest.warns(UserWarning, match=said_of(folder)):
        assert not storage.is_whole(folder)
    (folder / "b.txt").unlink()
    (folder / "a.txt").unlink()
    with pytest.warns(UserWarning, match=said_of(folder)):
        assert not storage.is_whole(folder)


def test_a_folder_is_hashed_once_a_process_unless_it_changes(tmp_path, monkeypatch):
    folder = folder_of(tmp_path / "a")
    hashed, real = [], storage.sha256_of_file
    monkeypatch.setattr(storage, "sha256_of_file", lambda path: hashed.append(path) or real(path))
    assert storage.is_whole(folder) and storage.is_whole(folder)
    assert [path.name for path in hashed] == ["a.txt"]
    os.utime(folder / "a.txt", (1, 1))
    assert storage.is_whole(folder) and len(hashed) == 2


def test_a_folder_is_replaced_whole_and_a_failed_one_leaves_nothing(tmp_path):
    flip(folder_of(tmp_path / "a") / "a.txt")
    with pytest.raises(RuntimeError), storage.atomic_folder(tmp_path / "a") as staged:
        (staged / "a.txt").write_text("half")
        raise RuntimeError
    assert not storage.is_whole(tmp_path / "a")
    assert (folder_of(tmp_path / "a", "again") / "a.txt").read_text() == "again"
    assert storage.is_whole(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_cannot_be_made_again_is_refused_in_one_line_with_the_cure(tmp_path, monkeypatch):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "my cache"))
    folder = folder_of(storage.cache_folder() / "a")
    storage.refuse_damaged(folder)
    cut(folder / "a.txt")
    with pytest.raises(ValueError, match=said_of(folder)) as refused:
        storage.refuse_damaged(folder)
    assert str(refused.value).startswith(f"${storage.CACHE_VARIABLE}/a is damaged")
    assert str(tmp_path) not in str(refused.value)
    with pytest.raises(ValueError, match=r': run "make it"$'):
        storage.refuse_damaged(folder, 'run "make it"')


# Several processes, and killed ones

MAKER = """
import sys
from pathlib import Path
from contamination.core import storage
entry = Path(sys.argv[1])
def make():
    with storage.atomic_folder(entry) as staged:
        print("making", flush=True)
        (staged / "a.txt").write_text(sys.stdin.readline())
print("wants", flush=True)
storage.cached("models", entry, make)
print("done", flush=True)
"""


def maker(entry):
    """A process that wants an entry; while it makes it, it waits for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKER, entry],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "wants\n"
    return process


def test_of_two_processes_one_makes_an_entry_and_the_other_waits(tmp_path):
    with maker(tmp_path / "a") as first:
        assert first.stdout.readline() == "making\n"
        with maker(tmp_path / "a") as second:
            time.sleep(1)  # enough to begin, were it not for the lock
            assert first.communicate("by the first\n")[0] == "done\n"
            assert second.communicate()[0] == "done\n"
    assert (tmp_path / "a/a.txt").read_text() == "by the first\n"


def test_after_a_killed_process_the_next_one_makes_the_entry(tmp_path):
    with maker(tmp_path / "a") as killed:
        assert killed.stdout.readline() == "making\n"
        with maker(tmp_path / "a") as next_one:
            killed.kill()
            assert next_one.communicate("by the next\n")[0] == "making\ndone\n"
    assert (tmp_path / "a/a.txt").read_text() == "by the next\n"
    assert list(tmp_path.glob(".*.part")) == []


# A full disk


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    path = storage.cache_folder("room") / "a.txt"
    monkeypatch.setattr(storage.Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left on device") as error:
        storage.write_bytes(path, b"abc")
    assert error.value.errno == errno.ENOSPC and "\n" not in str(error.value)
    assert list(path.parent.iterdir()) == []
