"""Entries of a cache, each a file or a folder of files: whole, damaged, or not there.

What a cache keeps is *sealed*: its SHA-256 is stored next to a file, or inside a folder. An entry
without one does not exist, and an entry whose SHA-256 has changed is damaged and made again.
``sha256sum --check`` reads these checksums too.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.core import storage

SUMS = "files.sha256"  # in a sealed folder
_SUM = re.compile(r"^([0-9a-f]{64})  (.+)$", re.MULTILINE)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside ``path``, sealed and renamed to it at the end of the block.

    Where another process was faster its folder stays; one that is not whole is replaced.
    """
    with storage.temporary_file(path) as temporary:
        staged, replaced = (
            temporary.with_name(temporary.name + end) for end in storage.FOLDER_ENDS
        )
        staged.mkdir()
        try:
            yield staged
            seal(staged)
            if path.exists() and not _is_as_sealed(path):
                path.rename(replaced)
            try:
                staged.rename(path)
            except OSError:
                if not _is_as_sealed(path):
                    raise
        finally:
            for folder in (staged, replaced):
                shutil.rmtree(folder, ignore_errors=True)


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
    hit = is_whole(path)
    storage.record("cache", name=f"{room} {name}", hits=int(hit), misses=int(not hit))
    if not hit:
        storage.write_parquet(path, make(), level=1)
        seal(path)
    table = pd.read_parquet(path)
    gaps = table.loc[:, table.isna().any()].select_dtypes(exclude="number").astype(object)
    return table.assign(**gaps.where(gaps.notna(), None))


def seal(entry: Path, durable: bool = True) -> None:
    """Write down the checksums of an entry, which is there from now on."""
    sums, names = _sums_of(entry), _names_in(entry)
    lines = [f"{storage.sha256_of_file(sums.parent / name)}  {name}\n" for name in sorted(names)]
    storage.write_bytes(sums, "".join(lines).encode(), durable)


def is_sealed(entry: Path) -> bool:
    """Whether an entry is there, perhaps damaged."""
    return entry.exists() and _sums_of(entry).is_file()


def is_whole(entry: Path) -> bool:
    """Whether an entry is there, and each of its bytes as it was when it was sealed.

    A damaged one is named in a warning: whoever asks makes it again. Folders, whose files may be
    large, are hashed once a process for as long as nothing about them changes.
    """
    if damaged := _damaged_file(entry):
        warnings.warn(
            f"{storage.shown(damaged)} is damaged (its checksum differs) and is made again",
            stacklevel=2,
        )
    return damaged is None and is_sealed(entry)


def refuse_damaged(entry: Path, cure: str = "") -> None:
    """ValueError, one line with the cure, for an entry that is there and damaged."""
    if damaged := _damaged_file(entry):
        remove = f"rm -r {storage.in_shell(entry)} removes it, and the next run makes it again"
        raise ValueError(
            f"{storage.shown(damaged)} is damaged (its checksum differs): {cure or remove}"
        )


def _is_as_sealed(entry: Path) -> bool:
    return is_sealed(entry) and _damaged_file(entry) is None


def _damaged_file(entry: Path) -> Path | None:
    """The first file of an entry that is not as it was sealed, or is new or gone."""
    if not is_sealed(entry):
        return None
    sums, names = _sums_of(entry), _names_in(entry)
    lines = sums.read_bytes().decode(errors="replace")
    sealed = {name: sha256 for sha256, name in _SUM.findall(lines)}
    hashed = storage.sha256_once if entry.is_dir() else storage.sha256_of_file
    changed = (name for name in sorted(names) if hashed(sums.parent / name) != sealed.get(name))
    gone = sorted(sealed.keys() - names)
    return next((sums.parent / name for name in chain(changed, gone)), None)


def _sums_of(entry: Path) -> Path:
    return entry / SUMS if entry.is_dir() else entry.with_name(f"{entry.name}.sha256")


def _names_in(entry: Path) -> set[str]:
    """Files of an entry as its checksums name them; what file managers hide there is none."""
    if not entry.is_dir():
        return {entry.name}
    files = (path.relative_to(entry) for path in entry.rglob("[!.]*") if path.is_file())
    return {file.as_posix() for file in files if not file.parts[0].startswith(".")} - {SUMS}
