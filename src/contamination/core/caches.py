"""Entries of a cache, each a file or a folder of files: whole, damaged, or not there.

What a cache keeps is *sealed*: its SHA-256 is stored next to a file, or inside a folder. An entry
without one does not exist, and an entry whose SHA-256 has changed is damaged and made again.
``sha256sum --check`` reads these checksums too.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.core import storage

SUMS = "files.sha256"  # in a sealed folder


def cached(name: str, entry: Path, make: Callable[[], object]) -> Path:
    """The entry, which ``make`` writes and seals unless it is there and whole.

    Of several processes that want it one makes it, and the others wait. ``name`` is the cache's
    in the manifest.
    """
    hit = is_whole(entry)
    if not hit:
        # The system unlocks it when the process ends, however it does.
        with entry.with_name(f".{entry.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            hit = is_whole(entry)
            if not hit:
                make()
    storage.record("cache", name=name, hits=int(hit), misses=int(not hit))
    return entry


def cached_table(
    room: str, name: str, version: int, inputs: Any, make: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """A table from the cache, or made and kept; a text that is missing is None.

    Args:
        version: raise it where the code changes what the table means.
        inputs: a JSON value, all else that decides the table: arguments, versions of libraries.
    """
    key = storage.hash_of([version, inputs])[:24]
    path = storage.cache_folder(room, name) / f"{key}.parquet"
    cached(f"{room} {name}", path, lambda: seal(storage.write_parquet(path, make(), level=1)))
    table = pd.read_parquet(path)
    gaps = table.loc[:, table.isna().any()].select_dtypes(exclude="number").astype(object)
    return table.assign(**gaps.where(gaps.notna(), None))


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside ``path``, sealed and renamed to it at the end of the block.

    One process at a time: what a killed one left is removed.
    """
    staged = path.with_name(f".{path.name}.part")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    try:
        yield staged
        seal(staged)
        shutil.rmtree(path, ignore_errors=True)
        staged.rename(path)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def seal(entry: Path) -> None:
    """Write down the checksums of an entry, which is there from now on."""
    storage.write_text(_sums_of(entry), _sums(entry, storage.sha256_of_file))


def is_sealed(entry: Path) -> bool:
    """Whether an entry is there, perhaps damaged."""
    return entry.exists() and _sums_of(entry).is_file()


def is_whole(entry: Path) -> bool:
    """Whether an entry is there, and each of its bytes as it was when it was sealed.

    A damaged one is named in a warning: whoever asks makes it again. Folders, whose files may be
    large, are hashed once a process for as long as nothing about them changes.
    """
    if is_damaged := _is_damaged(entry):
        warnings.warn(f"{_said_of(entry)} and is made again", stacklevel=2)
    return is_sealed(entry) and not is_damaged


def refuse_damaged(entry: Path, cure: str = "") -> None:
    """ValueError, one line with the cure, for an entry that is there and damaged."""
    if _is_damaged(entry):
        raise ValueError(f"{_said_of(entry)}: {cure or 'remove it and run again'}")


def _said_of(entry: Path) -> str:
    return f"{storage.shown(entry)} is damaged (its checksum differs)"


def _is_damaged(entry: Path) -> bool:
    if not is_sealed(entry):
        return False
    hashed = storage.sha256_once if entry.is_dir() else storage.sha256_of_file
    return _sums_of(entry).read_bytes() != _sums(entry, hashed).encode()


def _sums_of(entry: Path) -> Path:
    return entry / SUMS if entry.is_dir() else entry.with_name(f"{entry.name}.sha256")


def _sums(entry: Path, hashed: Callable[[Path], str]) -> str:
    """Checksum and name of each file; what file managers hide in a folder is none of it."""
    files = {entry.name: entry}
    if entry.is_dir():
        inside = [path for path in entry.rglob("[!.]*") if path.is_file() and path.name != SUMS]
        files = {path.relative_to(entry).as_posix(): path for path in inside}
    return "".join(f"{hashed(path)}  {name}\n" for name, path in sorted(files.items()))
