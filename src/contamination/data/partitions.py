"""A dataset partition as a table of instances: load it, check it, sample it, print it.

An instance is one row; a partition is the train, validation or test part of a
dataset, or a file of one's own. Values stay as the source wrote them: a CSV or
TSV gives text alone, and a whole number stays one when other rows lack it.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import storage
from contamination.core.keys import reason
from contamination.data import hub

_LABELS = {"member": True, "true": True, "1": True, "1.0": True}
_LABELS |= {"non-member": False, "false": False, "0": False, "0.0": False}
_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(:[^:/\s]+)?")
_HUB_FILE = re.compile(r"([\w-][\w.-]*/[\w-][\w.-]*)/([^:\s]+)")

_DELIMITERS = (",", ";", "\t")  # the one that the first line has most often
LONGEST_VALUE = 1_000_000  # characters; what follows compares texts word by word
_ARROW_FILE = b"ARROW1"  # how the file format of Arrow begins; a stream begins otherwise

Columns = dict[str, Sequence[Any]]


def load_rows(
    source: str, split: str = "", revision: str = "", column_names: Sequence[str] = ()
) -> pd.DataFrame:
    """The instances of one partition, one row each, in the order of the source, with its columns.

    A missing value stays missing (NaN or None); an empty CSV cell is the empty text.

    Args:
        source: a file (.jsonl, .json with a list of objects, .csv, .tsv, .txt with a row a
            line, .parquet or .arrow, in UTF-8; text also as .gz; looked for in the working
            directory, then in the project's root), or a hub dataset as "owner/name",
            "owner/name:configuration", or one of its files as "owner/name/path/of/file.jsonl". A
            JSON text in place of an object, and a line of .txt, becomes a row with the column
            "text". Commas, semicolons or tabs part the columns of .csv and .tsv.
        split: of a hub dataset, such as "test"; a file is one partition.
        revision: of a hub dataset. Anything but a commit is resolved to one now, recorded, and
            warned about.
        column_names: of a .csv or .tsv file without a header, in order.

    Raises:
        FileNotFoundError: if there is no such file or dataset, or the hub is out of reach.
        ValueError: if the content is malformed, or an argument does not fit the source.
    """
    path = find_file(source)
    if path is not None:
        if revision:
            raise ValueError(f'"{source}" is a file and has no revision: leave revision empty')
        rows = _read_file(path, column_names)
        record_file(path)
        return rows
    is_readable = _ending(source) in _READERS
    if is_readable and (hub_file := _HUB_FILE.fullmatch(source)):
        return _read_file(hub.file(*hub_file.groups(), revision), column_names)
    if not _HUB_ID.fullmatch(source) or is_readable:
        raise FileNotFoundError(
            f'no file "{source}" (a hub dataset is named as "owner/name"): check the path, which '
            "starts at the working directory or the project's root"
        )
    return _as_frame(hub.columns(source, split, revision))


def is_delimited(source: str | Path) -> bool:
    """Whether a file's name is that of a CSV or TSV, whose columns may have no names."""
    return _READERS.get(_ending(source)) is _read_delimited


def _ending(source: str | Path) -> str:
    """The ending of a file's name in small letters, with the one before ``.gz``."""
    ends = [end.lower() for end in Path(source).suffixes]
    return "".join(ends[-2:] if ends[-1:] == [".gz"] else ends[-1:])


def find_file(source: str) -> Path | None:
    """The file that a source names, None where there is none; ValueError for a folder."""
    path = Path(source).expanduser()
    for candidate in (path, storage.project_root() / path):
        if candidate.is_dir():
            raise ValueError(f'"{source}" is a folder: name the file of one partition in it')
        if candidate.exists():
            return candidate
    return None


def record_file(path: Path) -> None:
    """Name and SHA-256 of a file that was read, for the manifest of the run.

    The name holds no path of this machine: inside the project it is relative, else the file's own.
    """
    whole, root = path.resolve(), storage.project_root().resolve()
    name = whole.relative_to(root).as_posix() if whole.is_relative_to(root) else whole.name
    storage.record("input", name=name, sha256=storage.sha256_of_file(path))


def _read_file(path: Path, column_names: Sequence[str]) -> pd.DataFrame:
    reader = _READERS.get(_ending(path))
    if reader is None:
        known = ", ".join(end for end in _READERS if not end.endswith(".gz"))
        raise ValueError(f'{path.name}: format "{path.suffix}" is not read: convert it to {known}')
    if column_names and not is_delimited(path):
        raise ValueError(f"{path.name}: only a CSV or TSV without a header needs column names")
    try:
        return _as_frame(reader(path, *filter(None, [column_names])))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name}: not UTF-8 text: save the file as UTF-8") from error
    # pyarrow's errors derive from the first two, the others are of a cut or damaged .gz.
    except (ValueError, OSError, EOFError, zlib.error) as error:
        rule = " (.jsonl holds one object per line, .json one list)" * (reader is _read_json)
        raise ValueError(f"{path.name}: {reason(error)}{rule}") from error


def opened(path: Path, newline: str | None = None) -> Any:
    """A text file in UTF-8, compressed if its name ends in ``.gz``."""
    opens: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opens(path, "rt", encoding="utf-8-sig", newline=newline)


def _as_frame(columns: Columns) -> pd.DataFrame:
    if not any(columns.values()):
        raise ValueError("no rows: name a file or split that holds at least one instance")
    for name, values in columns.items():
        for row, value in enumerate(values):
            if isinstance(value, str) and len(value) > LONGEST_VALUE:
                said = f'column "{name}" has {len(value):,} characters in row {row} (from 0)'
                raise ValueError(f"{said}, more than {LONGEST_VALUE:,}: cut or drop it")
    # A column of whole numbers with gaps or shares would turn into 1.0, 2.0.
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=object if len(set(map(type, values))) > 1 else None)
            for name, values in columns.items()
        }
    )


def _read_json(path: Path) -> Columns:
    with opened(path) as stream:
        text = stream.read()
    if _ending(path) in (".json", ".json.gz"):
        records = parse_json(text, list) if text.strip() else []
    else:
        records = []
        # Not splitlines: it cuts at separators that may stand inside a JSON text.
        for number, line in enumerate(text.split("\n"), 1):
            try:
                records += [parse_json(line, dict)] if line.strip() else []
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
    if not all(isinstance(record, dict) for record in records):
        raise ValueError("not a list of objects")
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


def parse_json(text: str, kind: type) -> Any:
    """A JSON value of one kind, dict or list; a text in place of an object is {"text": ...}.

    Raises:
        ValueError: in one line, also if it is nested too deep, names something twice or holds
            half a surrogate pair.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_duplicates([name for name, _ in pairs])
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if "\\ud" in text.lower():  # half a surrogate pair, which no file and no tokenizer takes
        json.dumps(value, ensure_ascii=False).encode()
    if kind is dict and isinstance(value, str):
        return {"text": value}
    if not isinstance(value, kind):
        raise ValueError("not an object in braces" if kind is dict else "not a list of objects")
    return value


def _refuse_duplicates(names: Sequence[str], cure: str = "") -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'the name "{twice}" occurs twice: rename one of the columns{cure}')


def _read_delimited(path: Path, names: Sequence[str] = ()) -> Columns:
    with opened(path) as stream:
        first = stream.readline()
    usual = "\t" if _ending(path).startswith(".tsv") else ","
    rows = _parted(path, max((usual, *_DELIMITERS), key=first.count))
    if rows and names:
        if len(names) != len(rows[0]):
            raise ValueError(f"{len(names)} column names for {len(rows[0])} columns")
        rows = [list(names), *rows[rows[0] == list(names) :]]
    _refuse_duplicates(rows[0] if rows else [], ", or name all of them if the file has no header")
    return dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True)) if len(rows) > 1 else {}


def _parted(path: Path, delimiter: str) -> list[list[str]]:
    # pandas would rename a repeated column, read "None" as missing and pad a short row.
    csv.field_size_limit(2**31 - 1)
    rows: list[list[str]] = []
    with opened(path, newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        try:
            for row in filter(None, reader):
                rows.append(row)
                if len(row) != len(rows[0]):
                    raise csv.Error(f"{len(row)} values for {len(rows[0])} columns")
        except csv.Error as error:
            raise ValueError(
                f"line {reader.line_num}: {error}: quote each value that holds a delimiter or quote"
            ) from error
    return rows


def _read_lines(path: Path) -> Columns:
    with opened(path) as stream:
        lines = stream.read().split("\n")  # not splitlines, as in _read_json
    return {"text": lines if lines[-1] else lines[:-1]}


def _read_parquet(path: Path) -> Columns:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        _refuse_duplicates(file.schema_arrow.names)
        return file.read().to_pydict()


def _read_arrow(path: Path) -> Columns:
    from pyarrow import ipc, memory_map

    with path.open("rb") as stream:
        is_file = stream.read(len(_ARROW_FILE)) == _ARROW_FILE
    with memory_map(str(path)) as source:  # datasets writes streams, most others files
        table = (ipc.open_file if is_file else ipc.open_stream)(source).read_all()
        table.validate(full=True)
        _refuse_duplicates(table.column_names)
        return table.to_pydict()


_READERS: dict[str, Callable[..., Columns]] = {
    **dict.fromkeys((".jsonl", ".json", ".jsonl.gz", ".json.gz"), _read_json),
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), _read_delimited),
    **dict.fromkeys((".txt", ".txt.gz"), _read_lines),
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
}


def commit_of(source: str) -> str:
    """The commit that a hub dataset, named as in :func:`load_rows`, stands at; "" for others."""
    is_readable = _ending(source) in _READERS
    found = (_HUB_FILE if is_readable else _HUB_ID).fullmatch(source)
    if found is None or find_file(source) is not None:
        return ""
    return hub.commit(found[1] if is_readable else source.partition(":")[0])


def format_instance(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    """An instance as the papers print it: one ``column: value`` line per column.

    >>> format_instance({"sentence": "It rained.", "label": "1 (positive)"}, ["sentence", "label"])
    'sentence: It rained.\\nlabel: 1 (positive)'
    """
    _check_columns(row.keys(), columns)
    return "\n".join(f"{column}: {row[column]}" for column in columns)


def format_instances(rows: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Every row by :func:`format_instance`; ValueError also for no row or a missing value."""
    _check_columns(rows.columns, columns)
    if rows.empty:
        raise ValueError("no rows: a partition holds at least one instance")
    chosen = rows[list(columns)]
    for column in columns:
        missing = np.flatnonzero(chosen[column].isna())
        if len(missing):
            raise ValueError(
                f'column "{column}" has no value in {len(missing)} of {len(rows)} rows, the first '
                f"at row {missing[0]} (from 0): fill or drop them, or leave the column out"
            )
    return [format_instance(row, columns) for row in chosen.to_dict("records")]


def partition_row(
    name: str, task: str, source: str, rows: pd.DataFrame, columns: Sequence[str]
) -> dict[str, Any]:
    """One row of ``partitions.csv``: name, task, source, n_rows, n_unique and sha256.

    The last two are of the printed instances, which these columns of the rows make up.
    """
    texts = format_instances(rows, columns)
    return {
        "partition": name,
        "task": task,
        "source": source,
        "n_rows": len(texts),
        "n_unique": len(set(texts)),
        "sha256": storage.hash_of(texts),
    }


def is_member(rows: pd.DataFrame, column: str) -> np.ndarray:
    """Which rows a column marks as members (1, true or "member", in any case); bool, shape (n,).

    ValueError if there is no such column, or if a label is none of these nor their opposite.
    """
    _check_columns(rows.columns, [column])
    labels = [str(label).strip().lower() for label in rows[column].tolist()]
    wrong = [i for i, label in enumerate(labels) if label not in _LABELS]
    if wrong:
        raise ValueError(
            f'column "{column}" holds {labels[wrong[0]][:40]!r} at row {wrong[0]} (from 0): '
            'write 1, true or "member", or 0, false or "non-member"'
        )
    return np.array([_LABELS[label] for label in labels], dtype=bool)


def labelled_passages(
    rows: pd.DataFrame, text_column: str, label_column: str
) -> tuple[list[str], np.ndarray]:
    """Passages and whether each :func:`is_member`; ValueError also for an empty one or one kind."""
    _check_columns(rows.columns, [text_column, label_column])
    texts = rows[text_column].tolist()
    empty = [i for i, text in enumerate(texts) if not isinstance(text, str) or not text.strip()]
    if empty:
        raise ValueError(
            f'column "{text_column}" holds no text at row {empty[0]} (from 0): fill or drop it'
        )
    found = is_member(rows, label_column)
    if (n_members := int(found.sum())) in (0, len(found)):
        raise ValueError(
            f'column "{label_column}" marks {n_members} members and {len(found) - n_members} '
            "non-members: both kinds are needed"
        )
    return texts, found


def load_columns(source: str, split: str, columns: Sequence[str]) -> pd.DataFrame:
    """Some columns of a file, or of a split of a hub dataset; errors as :func:`load_rows`."""
    rows = load_rows(source, "" if Path(source).suffix else split)
    _check_columns(rows.columns, columns)
    return rows[list(columns)]


def _check_columns(known: Sequence[str] | pd.Index, columns: Sequence[str]) -> None:
    if not columns:
        raise ValueError("no columns named: name at least one")
    for column in columns:
        if column not in known:
            names = [str(name) for name in known]
            close = get_close_matches(column, names, n=1)
            hint = f' (did you mean "{close[0]}"?)' if close else ""
            raise ValueError(f'no column "{column}"{hint}; the columns are {", ".join(names)}')
