"""The only module that writes files; entries of a cache: whole, damaged, or not there."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import functools
import hashlib
import io
import json
import os
import secrets
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import keys

OUTPUTS_VARIABLE = "CONTAMINATION_OUTPUTS"
STAGING_VARIABLE = "CONTAMINATION_STAGING"
PROGRESS_VARIABLE = "CONTAMINATION_PROGRESS"  # set where somebody watches a run's progress
CACHE_VARIABLE = "CONTAMINATION_CACHE"
RECORD_NAME = "record.jsonl"
CARRIED = Path(__file__).resolve().parents[1] / "project_files"  # of a wheel, see setup.py


def checkout() -> Path | None:
    """Folder of the checkout that this package is imported from; None for an installed wheel."""
    folder = Path(__file__).resolve().parents[3]
    return folder if (folder / "notebooks").is_dir() else None


def project_root() -> Path:
    """Folder of ``notebooks/`` and ``params/``: the checkout, or what a wheel carries of it."""
    return checkout() or (CARRIED if CARRIED.is_dir() else Path.cwd())


def cache_folder(*parts: str) -> Path:
    """Folder of a cache, made when missing; ``make clean`` never touches it."""
    folder = _cache_root().joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _cache_root() -> Path:
    base = os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "contamination"
    return Path(base).absolute()


def shown(path: Path) -> str:
    """A path as messages and manifests show it: the folder of the caches by its variable."""
    if not path.is_relative_to(_cache_root()):
        return str(path)
    root = f"${CACHE_VARIABLE}" if os.environ.get(CACHE_VARIABLE) else "~/.cache/contamination"
    return str(Path(root, path.relative_to(_cache_root())))


# Hashes


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal; FileNotFoundError where there is no file."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_once(path: Path) -> str:
    """SHA-256 of a file, computed once a process for as long as its size and times are the same."""
    state = path.stat()
    return _sha256_of_state(path.absolute(), state.st_size, state.st_mtime_ns, state.st_ino)


@functools.cache
def _sha256_of_state(path: Path, *_: int) -> str:
    return sha256_of_file(path)


def hash_of(value: Any) -> str:
    """SHA-256 of a JSON value, hexadecimal; the order of a mapping's keys does not matter."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def is_watched() -> bool:
    """Whether somebody sees progress bars: in a terminal that runs an audit, or in JupyterLab."""
    is_interactive = "ipykernel" in sys.modules and STAGING_VARIABLE not in os.environ
    return is_interactive or PROGRESS_VARIABLE in os.environ


# Atomic writers


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path next to ``path``, renamed to it when the block ends without error."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> Path:
    """Write a file whole or not at all, and return its path."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)
    return Path(path)


def write_text(path: Path, text: str) -> Path:
    """Write a text in UTF-8 as :func:`write_bytes` does."""
    return write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> Path:
    """Write a value as JSON with sorted keys; TypeError for a value that JSON cannot hold."""
    return write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_csv(path: Path, table: pd.DataFrame) -> Path:
    """Write a table with full precision; an undefined value becomes an empty cell.

    A text that a spreadsheet would run as a formula gets an apostrophe, which :func:`read_csv`
    takes away.
    """
    table = with_texts(table, keys.guarded)
    text = table.to_csv(index=False, lineterminator="\n")
    if "\r" in text:  # readers take one that is not quoted for the end of a line
        quoting = csv.QUOTE_NONNUMERIC
        text = table.to_csv(index=False, lineterminator="\n", quoting=quoting)
    return write_text(path, text)


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """A table as :func:`write_csv` was given it; options of ``pandas.read_csv``."""
    return with_texts(pd.read_csv(path, **options), keys.unguarded)


def read_results(path: Path) -> pd.DataFrame:
    """A table as :func:`write_csv` was given it, an empty text as a text and not as NaN."""
    table = read_csv(path)
    texts = [name for name, kind in table.dtypes.items() if isinstance(kind, pd.StringDtype)]
    # An empty text is a text; only an empty number is undefined.
    return table.fillna(dict.fromkeys(texts, ""))


def with_texts(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """The table with its texts and column names changed; a column where none is, stays."""
    changed = table.rename(columns=lambda name: change(name) if isinstance(name, str) else name)
    for place, kind in enumerate(table.dtypes):
        if pd.api.types.is_numeric_dtype(kind):
            continue
        before = list(table.iloc[:, place])
        after = [change(value) if isinstance(value, str) else value for value in before]
        if any(new is not old for new, old in zip(after, before, strict=True)):
            dtype = kind if isinstance(kind, pd.StringDtype) else object
            changed.isetitem(place, pd.Series(after, table.index, dtype=dtype))
    return changed


def write_parquet(path: Path, table: pd.DataFrame, level: int = 19) -> Path:
    """Write a table as Parquet; columns of single precision byte by byte, 40 % smaller.

    ``level``, from 1 to 22, is zstd's: files that are kept are small, a cache is fast.
    """
    singles = [*table.select_dtypes("float32").columns]
    others = [*table.columns.difference(singles)]
    packing: dict[str, Any] = {"compression": "zstd", "compression_level": level}
    if singles:
        packing |= {"use_byte_stream_split": singles, "use_dictionary": others}
    with atomic_path(path) as temporary:
        table.to_parquet(temporary, index=False, **packing)
    return Path(path)


def write_figure(path: Path, figure: Any) -> Path:
    """Write a Matplotlib figure as PNG, without a date so that equal figures are equal bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, bbox_inches="tight", metadata={"Software": None})
    return write_bytes(path, buffer.getvalue())


def write_safetensors(
    path: Path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None
) -> Path:
    """Write named arrays as safetensors, with text metadata in the header."""
    from safetensors.numpy import save

    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return write_bytes(path, save(contiguous, metadata=dict(metadata or {})))


# What a run reads, and how often a cache served it


def record(kind: str, **what: Any) -> None:
    """Note an ``input``, a ``model`` or use of a ``cache`` for the manifest of the run, if any."""
    staging = os.environ.get(STAGING_VARIABLE)
    if staging:
        line = json.dumps({"kind": kind, **what}, sort_keys=True, ensure_ascii=False)
        with (Path(staging) / RECORD_NAME).open("a") as stream:
            stream.write(line + "\n")


class Outputs:
    """Where one notebook reads upstream tables and leaves its own; see ``core.run``."""

    def __init__(self) -> None:
        # Never inside an installed package.
        interactive = (checkout() or Path.cwd()) / "outputs" / "interactive"
        self.folder = Path(os.environ.get(OUTPUTS_VARIABLE) or interactive).absolute()
        self._target = Path(os.environ.get(STAGING_VARIABLE) or self.folder).absolute()

    def write_table(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Write ``tables/<name>.csv``, control characters as escapes; the table for display."""
        shown = with_texts(table, keys.visible)
        write_csv(self._target / "tables" / f"{name}.csv", shown)
        return table

    def write_figure(self, name: str, figure: Any) -> None:
        """Write ``figures/<name>.png``."""
        write_figure(self._target / "figures" / f"{name}.png", figure)

    def has_table(self, name: str) -> bool:
        """Whether a table of this name, without its ending, has been written."""
        return (self.folder / "tables" / f"{name}.csv").exists()

    def read_table(self, name: str, written_by: str) -> pd.DataFrame:
        """``tables/<name>.csv`` of another notebook; FileNotFoundError if that has not run."""
        path = self.folder / "tables" / f"{name}.csv"
        if not path.exists():
            raise FileNotFoundError(
                f"{self.folder.name}/tables/{name}.csv is missing: "
                f"run notebooks/{written_by}.ipynb first"
            )
        record("input", name=f"tables/{name}.csv", sha256=sha256_of_file(path))
        return read_results(path)


SUMS = "files.sha256"  # in a sealed folder


def cached(name: str, entry: Path, make: Callable[[], object]) -> Path:
    """The entry, which ``make`` writes and seals unless it is there and whole.

    Of several processes that want it one makes it, and the others wait.
    """
    hit = is_whole(entry)
    if not hit:
        # The system unlocks it when the process ends, however it does.
        with entry.with_name(f".{entry.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            hit = is_whole(entry)
            if not hit:
                make()
    record("cache", name=name, hits=int(hit), misses=int(not hit))
    return entry


def cached_table(
    room: str, name: str, version: int, inputs: Any, make: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """A table from the cache, or made and kept; a text that is missing is None.

    Args:
        version: raise it where the code changes what the table means.
        inputs: a JSON value, all else that decides the table: arguments, versions of libraries.
    """
    key = hash_of([version, inputs])[:24]
    path = cache_folder(room, name) / f"{key}.parquet"
    cached(f"{room} {name}", path, lambda: seal(write_parquet(path, make(), level=1)))
    table = pd.read_parquet(path)
    gaps = table.loc[:, table.isna().any()].select_dtypes(exclude="number").astype(object)
    return table.assign(**gaps.where(gaps.notna(), None))


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder next to ``path``, sealed and renamed to it at the end of the block.

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
    write_text(_sums_of(entry), _sums(entry, sha256_of_file))


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
    return f"{shown(entry)} is damaged (its checksum differs)"


def _is_damaged(entry: Path) -> bool:
    if not is_sealed(entry):
        return False
    hashed = sha256_once if entry.is_dir() else sha256_of_file
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
