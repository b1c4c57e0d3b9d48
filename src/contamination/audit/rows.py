"""The rows of a file or a dataset of the hub: read, checked, sampled, as each method needs them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit import logs
from contamination.audit.settings import Data
from contamination.core import keys, storage
from contamination.core.keys import one_line
from contamination.core.verdicts import EXACT, INEXACT, NEAR_EXACT
from contamination.data import partitions
from contamination.dcq.quizzes import OPTION_COLUMNS

WRITTEN_COLUMN = "instance"  # of quizzes that an audit wrote
N_FIRST = 10  # instances at the head of the split that Did-ChatGPT-Cheat? knows
FEWEST_LETTERS = 16  # a shorter text says nothing about memory
FEWEST_ROWS = 4
LABELS = (EXACT, NEAR_EXACT, INEXACT)
OBVIOUS = ("text", "question", "prompt", "input", "instance", "problem")  # names of a text
# Why a row is left out, by its count, in the order of reasons.
_LEFT_OUT = {
    "n_empty": "without a text",
    "n_short": f"of fewer than {FEWEST_LETTERS} characters",
    "n_unlabelled": "without a label",
    "n_repeated": "repeated",
    "n_shared": "that the dataset has too",
}
_TEXT, _LABEL = "--text or text_columns", "--label or label_column"  # on the line, in a file
_SAID_IN = ("content", "value", "text")  # fields of a chat message that hold what was said
_MOST_NAMED = 8  # fields that a message names


@dataclass(frozen=True)
class Rows:
    """A sample of one partition.

    Attributes:
        rows: column ``index`` (row of the source, from 0) and the source's columns, those
            of the instance as text; one row per instance.
        columns: what makes up an instance, in order; of these ``labels`` are labels.
        counts: n_rows (of the source), n_empty, n_short, n_unlabelled, n_repeated, n_shared
            (left out, in this order of reasons) and n (in the sample); empty where nothing
            is left out but repetitions.
        first: the first texts of the source.
    """

    rows: pd.DataFrame
    columns: tuple[str, ...]
    labels: tuple[str, ...] = ()
    counts: dict[str, int] | None = None
    first: tuple[str, ...] = ()

    @property
    def has_options(self) -> bool:
        """Whether every row brings four options of a quiz."""
        return set(OPTION_COLUMNS) <= set(self.rows)

    @property
    def texts(self) -> list[str]:
        """The columns that are no label."""
        return [column for column in self.columns if column not in self.labels]

    @property
    def label_column(self) -> str:
        """The first label, "" where there is none."""
        return next(iter(self.labels), "")

    @property
    def instances(self) -> list[str]:
        """The sample as the papers print it; quizzes that an audit wrote hold it like that."""
        if self.columns == (WRITTEN_COLUMN,) and self.has_options:
            return self.rows[WRITTEN_COLUMN].tolist()
        return partitions.format_instances(self.rows, self.columns)

    @property
    def passages(self) -> list[str]:
        """The texts alone, without column names and label."""
        return [" ".join(row) for row in self.rows[self.texts].itertuples(index=False)]

    def head(self, n: int) -> Rows:
        """The first n rows, which are a random sample themselves."""
        chosen = self.rows.head(n)
        return replace(self, rows=chosen, counts=dict(self.counts or {}) | {"n": len(chosen)})


def load(data: Data, source: str, split: str = "", revision: str = "") -> pd.DataFrame:
    """All rows of the dataset or of the comparison rows, of a log of an evaluation its questions.

    Errors as ``logs.read_log`` and ``partitions.load_rows``.
    """
    if log := logs.read_log(source):
        return log.rows
    has_names = source == data.dataset or partitions.is_delimited(source)
    try:
        found = partitions.load_rows(source, split, revision, data.column_names * has_names)
    except FileNotFoundError as error:  # a path may read like a file on the hub
        raise FileNotFoundError(f'no rows from "{source}": {error}') from error
    if source.lower().endswith(".csv") and {WRITTEN_COLUMN, *OPTION_COLUMNS} <= set(found):
        return storage.with_texts(found, keys.unguarded)  # as an audit wrote them
    return found


def load_with_comparison(
    data: Data, comparison: str, n: int, seed: int, found: pd.DataFrame | None = None
) -> tuple[Rows, Rows | None]:
    """At most n rows of the dataset, whose rows ``found`` may hold, and of ``comparison``.

    The comparison rows may also be those of the dataset that ``member_column`` marks with 0.
    None in their place where there are none. Errors as :func:`clean_rows`.
    """
    if found is None:
        found = load(data, data.dataset, data.first_split, data.revision)
    if data.member_column:
        is_member = partitions.is_member(found, data.member_column)
        found, others = found[is_member], found[~is_member]
    elif comparison:
        others = load(data, comparison, data.comparison_split or next(iter(data.splits), ""))
    rows = clean_rows(data, data.dataset, found, n, seed)
    if not (data.member_column or comparison):
        return rows, None
    return rows, clean_rows(data, comparison or data.dataset, others, n, seed, unlike=rows)


def describe_rows(source: str, rows: Rows) -> str:
    """One line: how many rows a file has, how many are left out and why, how many are used."""
    counts = rows.counts or {}
    out = [f"{counts[name]:,} {why}" for name, why in _LEFT_OUT.items() if counts.get(name)]
    return (
        f"{source}: {counts['n_rows']:,} rows, {', '.join(out) or 'none'} left out, "
        f"{counts['n']:,} used"
    )


def clean_rows(
    data: Data, source: str, found: pd.DataFrame, n: int, seed: int, unlike: Rows | None = None
) -> Rows:
    """Rows that every method can use, at most n of them at random; ``unlike`` is the dataset.

    Rows are left out and counted as ``_LEFT_OUT`` says. Texts stay as they are: markup belongs to
    what a model read. If the comparison rows have one column, it is their text.

    Raises:
        ValueError: in one line, before anything costs.
    """
    places, label = list(data.text_columns), data.label_column
    if unlike and len(places) == len(found.columns) == 1:
        places = list(found.columns)
    places += [label] if label else []
    if "index" in places:
        raise ValueError('column "index" is kept for the row of origin: rename yours')
    columns = list(unlike.columns) if unlike else [_printed(found, place) for place in places]
    columns = columns if len(set(columns)) == len(columns) else places
    texts, label = columns[: len(data.text_columns)], columns[-1] if label else ""
    named_by = [_TEXT] * len(texts) + [_LABEL] * bool(label)
    pairs = zip(places, named_by, strict=True)
    values = [texts_at(found, place, source, option) for place, option in pairs]
    table = found.assign(index=np.arange(len(found)), **dict(zip(columns, values, strict=True)))
    lengths = table[texts].map(len)
    reasons = {"n_empty": lengths.min(axis=1).eq(0)}
    reasons["n_short"] = lengths.sum(axis=1).lt(FEWEST_LETTERS)
    reasons["n_unlabelled"] = table[label].eq("") if label else pd.Series(False, table.index)
    if label and reasons["n_unlabelled"].all():
        raise ValueError(
            f'column "{data.label_column}" of "{source}" is empty in every row: set '
            'label_column to "" and task to a summary, whose prompts show no label'
        )
    if data.label_names:
        table[label] = _named(table[label], data, source)
    reasons["n_repeated"] = table.duplicated(columns)
    known = _joined(unlike.rows, unlike.texts) if unlike else []
    reasons["n_shared"] = pd.Series(_joined(table, texts), table.index).isin(known)
    left, counts = pd.Series(True, table.index), {"n_rows": len(table)}
    for name, is_out in reasons.items():
        counts[name] = int((left & is_out).sum())
        left &= ~is_out
    kept = np.flatnonzero(left)
    if len(kept) < FEWEST_ROWS:
        out = ", ".join(f"{name[2:]} {value}" for name, value in counts.items() if name != "n_rows")
        raise ValueError(
            f'"{source}" has {len(kept)} usable rows of {len(table)} ({out}): at least '
            f"{FEWEST_ROWS} are needed"
        )
    first = tuple(table[texts[0]].head(N_FIRST))
    # In random order, so that the first rows of the sample are a random sample too.
    kept = np.random.default_rng([seed, 10]).permutation(kept)[:n]
    sample = table.iloc[kept].reset_index(drop=True)
    labels = (label,) if label else ()
    return Rows(sample, tuple(columns), labels, counts | {"n": len(sample)}, first)


def _joined(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    return ["\n".join(row) for row in table[list(columns)].itertuples(index=False)]


def _named(labels: pd.Series, data: Data, source: str) -> pd.Series:
    names = {f"{k}{end}": name for k, name in enumerate(data.label_names) for end in ("", ".0")}
    unknown = labels[labels.ne("") & ~labels.isin(list(names))]
    if len(unknown):
        raise ValueError(
            f'column "{data.label_column}" of "{source}" holds {unknown.iloc[0]!r}: '
            f"label_names has {len(data.label_names)} names, for 0 to {len(data.label_names) - 1}"
        )
    return labels.map(names).fillna("")


def read_labels(path: str) -> pd.DataFrame:
    """A person's labels of completions: index (row of the dataset, from 0), label, model if named.

    Raises:
        ValueError, FileNotFoundError: in one line, if a column is missing, a label is none of
            ``LABELS``, or a row of a model is labelled twice.
    """
    found = partitions.load_rows(path, "", "")
    if missing := {"index", "label"} - set(found):
        raise ValueError(f'"{path}" has no column "{sorted(missing)[0]}": name index and label')
    found = found.assign(index=pd.to_numeric(found["index"], errors="coerce"))
    found["label"] = found["label"].astype(str).str.strip()
    unknown = found[found["index"].isna() | ~found["label"].isin(LABELS)]
    if len(unknown):
        what = unknown.iloc[0][["index", "label"]].tolist()
        raise ValueError(f'"{path}" has the row {what}: write a number and one of {LABELS}')
    if found.duplicated([name for name in ("model", "index") if name in found]).any():
        raise ValueError(f'"{path}" labels a row twice: keep one label for each row of a model')
    return found.astype({"index": int})


# Where the texts of a file are


def text_column(found: pd.DataFrame, source: str) -> str:
    """The one column that its name says to be the text; ValueError if there are more or none."""
    obvious = [name for name in found if name.lower() in OBVIOUS]
    if len(obvious) == 1:
        return obvious[0]
    if not obvious:
        raise ValueError(_no_column(found, "", source, _TEXT))
    raise ValueError(
        f'several columns of "{source}" may be the text: name one of {", ".join(obvious)} by '
        f"--text, or join them, as in --text {','.join(obvious[:2])}"
    )


def texts_at(found: pd.DataFrame, place: str, source: str, option: str = _TEXT) -> pd.Series:
    """The texts of one place in each row, without space around them; "" where there is none.

    Args:
        place: a column; a field of one, as "metadata.question" or "messages.0.content" (of the
            first item of a list); or several of these, as "question,answer". Texts of several
            places or items are joined by line breaks.
        option: what names the place, for the message.

    Raises:
        ValueError: in one line, with the places that have texts.
    """
    if place not in found and "," in place:
        parts = [texts_at(found, part.strip(), source, option) for part in place.split(",")]
        joined = ["\n".join(filter(None, row)) for row in zip(*parts, strict=True)]
        return pd.Series(joined, found.index, dtype=object)
    names = place.split(".")
    lengths = range(len(names), 0, -1)  # a column's own name may have a point
    n = next((n for n in lengths if ".".join(names[:n]) in found), 0)
    if not n:
        raise ValueError(_no_column(found, place, source, option))
    column, rest = ".".join(names[:n]), names[n:]
    values = [_within(value, rest) for value in found[column]]
    if rest and all(value is None for value in values):
        raise ValueError(_no_column(found, place, source, option))
    texts = [_as_text(value, place).strip() for value in values]
    return pd.Series(texts, found.index, dtype=object)


def _printed(found: pd.DataFrame, place: str) -> str:
    """What prompts call a place: a column as it is called, a field by its own name."""
    if place in found:
        return place
    fields = [part for part in place.split(".") if not part.isdigit()]
    name = "text" if "," in place else fields[-1]
    return place if name in (*found, "index") else name


def _within(value: Any, fields: Sequence[str]) -> Any:
    """What a row holds under these fields, of lists by number; None if it has no such field."""
    for name in fields:
        if isinstance(value, list):
            value = value[int(name)] if name.isdigit() and int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _as_text(value: Any, place: str) -> str:
    """A value of a row as one text; ValueError for an object that is not a chat message."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, (_as_text(item, place) for item in value)))
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(
                f'"{place}" holds bytes that are no UTF-8: convert it to text'
            ) from None
    if not isinstance(value, dict):
        return str(value)
    said = next((value[name] for name in _SAID_IN if name in value), value)
    if said is value:
        fields = ", ".join(f"{place}.{name}" for name in list(value)[:_MOST_NAMED])
        raise ValueError(f'"{place}" is an object and no text: name one of {fields}')
    return _as_text(said, place)


def _no_column(found: pd.DataFrame, place: str, source: str, option: str) -> str:
    """Why there is no text at a place, or no obvious one (""), and which columns there are."""
    known = [one_line(str(name), 40) for name in found]
    close = get_close_matches(place, known, n=1)
    hint = f' (did you mean "{close[0]}"?)' if close else ""
    what = f'no column "{place}"{hint} in "{source}"'
    what = what if place else f'no column of "{source}" has a usual name of a text'
    headless = "; --columns names all of a CSV without a header" * partitions.is_delimited(source)
    return f"{what}: name one of {', '.join(known)}, or a field of one, by {option}{headless}"
