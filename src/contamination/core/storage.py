"""The only module that writes files.

Every write is atomic: the bytes go to a temporary file in the target's own
folder and are renamed over the target, so a reader finds the old file or the
new one and never half of either. Tables are CSV with full precision and "\\n"
line ends, so that two runs give the same bytes.

Where things live:

* results: ``outputs/<profile>/`` when Make or ``contamination.core.run`` runs a
  notebook, ``outputs/interactive/`` otherwise;
* caches (trained models, scores, completions, downloads):
  ``~/.cache/contamination``, or the folder that ``CONTAMINATION_CACHE`` names.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

OUTPUTS_VARIABLE = "CONTAMINATION_OUTPUTS"
STAGING_VARIABLE = "CONTAMINATION_STAGING"
CACHE_VARIABLE = "CONTAMINATION_CACHE"
RECORD_NAME = "record.jsonl"
# What a spreadsheet takes for a formula (the wide signs in some languages), and the numbers among
# it. Apostrophes before it count, so that taking one away gives back exactly what was written.
_FORMULA = re.compile("'*[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def project_root() -> Path:
    """Folder that holds ``notebooks/`` and ``params/``; the working directory elsewhere."""
    checkout = Path(__file__).resolve().parents[3]
    return checkout if (checkout / "notebooks").is_dir() else Path.cwd()


def cache_folder(*parts: str) -> Path:
    """Folder of a cache, made when missing; ``make clean`` never touches it."""
    base = os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "contamination"
    folder = Path(base).absolute().joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def empty_cache() -> Iterator[None]:
    """A cache that begins empty and is removed at the end: what is wanted inside is made anew."""
    before = os.environ.get(CACHE_VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE_VARIABLE] = folder
        try:
            yield
        finally:
            os.environ.pop(CACHE_VARIABLE)
            os.environ.update({} if before is None else {CACHE_VARIABLE: before})


# Hashes


def sha256_of_file(path: Path) -> str:
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_of(value: Any) -> str:
    """SHA-256 of a JSON value, hexadecimal; the order of a mapping's keys does not matter."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


# Atomic writers


@contextlib.contextmanager
def atomic_path(path: Path, durable: bool = True) -> Iterator[Path]:
    """A temporary path beside ``path``, renamed to it when the block ends without error.

    A ``durable`` file outlives a power cut as well; a cache can do without, and is
    many times faster to fill.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if durable:
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
        # mkstemp makes private files; results are ordinary ones.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_bytes(path: Path, data: bytes, durable: bool = True) -> Path:
    with atomic_path(path, durable) as temporary:
        temporary.write_bytes(data)
    return Path(path)


def write_text(path: Path, text: str) -> Path:
    return write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> Path:
    return write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_csv(path: Path, table: pd.DataFrame) -> Path:
    """Write a table with full precision; an undefined value becomes an empty cell.

    A text that a spreadsheet would run as a formula gets an apostrophe, which :func:`read_csv`
    takes away: it begins with ``=``, ``+``, ``-``, ``@``, tab or carriage return, and is no number.
    """
    table = with_texts(table, guarded)
    text = table.to_csv(index=False, lineterminator="\n")
    if "\r" in text:
        # Only what ends a line is quoted, and readers take a carriage return for such an end.
        parts = table.to_csv(index=False, lineterminator="\r\n").split('"')
        parts[::2] = [outside.replace("\r\n", "\n") for outside in parts[::2]]
        text = '"'.join(parts)
    return write_text(path, text)


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """A table as :func:`write_csv` was given it; options of ``pandas.read_csv``."""
    return with_texts(pd.read_csv(path, **options), unguarded)


def guarded(text: str) -> str:
    """A text of a table as it stands in a CSV file.

    >>> guarded("=1+1"), guarded("-0.5")
    ("'=1+1", '-0.5')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """The text that :func:`guarded` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


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


def write_parquet(path: Path, table: pd.DataFrame) -> Path:
    with atomic_path(path) as temporary:
        table.to_parquet(temporary, index=False)
    return Path(path)


def write_figure(path: Path, figure: Any) -> Path:
    """Write a Matplotlib figure as PNG, without a date so that equal figures are equal bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, bbox_inches="tight", metadata={"Software": None})
    return write_bytes(path, buffer.getvalue())


def write_safetensors(
    path: Path,
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, str] | None = None,
    durable: bool = True,
) -> Path:
    """Write named arrays as safetensors, with text metadata in the header."""
    from safetensors.numpy import save

    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return write_bytes(path, save(contiguous, metadata=dict(metadata or {})), durable)


def read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of a safetensors file and its text metadata."""
    from safetensors import safe_open

    with safe_open(path, framework="np") as stream:
        arrays = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
        return arrays, dict(stream.metadata() or {})


# What a run reads, and how often a cache served it


def record(kind: str, **what: Any) -> None:
    """Note something for the manifest of the run in progress; silent outside one.

    Kinds in use: ``input`` (name, sha256), ``model`` (what identifies a loaded
    model) and ``cache`` (name, hits, misses).
    """
    staging = os.environ.get(STAGING_VARIABLE)
    if staging:
        line = json.dumps({"kind": kind, **what}, sort_keys=True, ensure_ascii=False)
        with (Path(staging) / RECORD_NAME).open("a") as stream:
            stream.write(line + "\n")


def cached_table(
    room: str, name: str, made_by: Any, make: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """A table from the cache, or made and kept; a text that is missing is None.

    ``made_by``, a JSON value, is all that decides it: arguments, code, versions.
    """
    path = cache_folder(room, name) / f"{hash_of(made_by)[:24]}.parquet"
    hit = path.exists()
    record("cache", name=f"{room} {name}", hits=int(hit), misses=int(not hit))
    if not hit:
        write_parquet(path, make())
    table = pd.read_parquet(path)
    gaps = table.loc[:, table.isna().any()].select_dtypes(exclude="number").astype(object)
    return table.assign(**gaps.where(gaps.notna(), None))


class Outputs:
    """Where one notebook reads upstream tables and leaves its own.

    Under ``contamination.core.run`` results go to a staging folder first and move to
    ``outputs/<profile>/`` together, once every cell has completed.
    """

    def __init__(self) -> None:
        interactive = project_root() / "outputs" / "interactive"
        self.folder = Path(os.environ.get(OUTPUTS_VARIABLE) or interactive).absolute()
        self._target = Path(os.environ.get(STAGING_VARIABLE) or self.folder).absolute()

    def write_table(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Write ``tables/<name>.csv`` and hand the table back for display."""
        write_csv(self._target / "tables" / f"{name}.csv", table)
        return table

    def write_figure(self, name: str, figure: Any) -> None:
        """Write ``figures/<name>.png``."""
        write_figure(self._target / "figures" / f"{name}.png", figure)

    def has_table(self, name: str) -> bool:
        return (self.folder / "tables" / f"{name}.csv").exists()

    def read_table(self, name: str, written_by: str) -> pd.DataFrame:
        """Read ``tables/<name>.csv`` as another notebook left it, which must have run before."""
        path = self.folder / "tables" / f"{name}.csv"
        if not path.exists():
            raise FileNotFoundError(
                f"{self.folder.name}/tables/{name}.csv is missing: "
                f"run notebooks/{written_by}.ipynb first"
            )
        record("input", name=f"tables/{name}.csv", sha256=sha256_of_file(path))
        table = read_csv(path)
        texts = [name for name, kind in table.dtypes.items() if isinstance(kind, pd.StringDtype)]
        # An empty text is a text; only an empty number is undefined.
        return table.fillna(dict.fromkeys(texts, ""))
