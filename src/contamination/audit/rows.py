"""The rows of one's own partition: read, checked, sampled, as each method needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.settings import Data, OwnPassages, Partition
from contamination.data import partitions

FEWEST_LETTERS = 16  # a shorter text says nothing about memory
FEWEST_ROWS = 4


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
    """

    rows: pd.DataFrame
    columns: tuple[str, ...]
    labels: tuple[str, ...] = ()
    counts: dict[str, int] | None = None

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
        """The sample as the papers print it."""
        return partitions.format_instances(self.rows, self.columns)

    @property
    def passages(self) -> list[str]:
        """The texts alone, without column names and label."""
        return [" ".join(row) for row in self.rows[self.texts].itertuples(index=False)]

    def head(self, n: int) -> Rows:
        """The first n rows, which are a random sample themselves."""
        chosen = self.rows.head(n)
        return replace(self, rows=chosen, counts=dict(self.counts or {}) | {"n": len(chosen)})


def whole(data: Partition, labels: Sequence[str]) -> pd.DataFrame:
    """All rows of a partition, the first label as prompts print it."""
    if data.label_names and not any(labels):
        raise ValueError("label_names needs label_column: leave both empty for a summary")
    rows = partitions.load_rows(data.dataset, data.dataset_split, data.dataset_revision)
    if data.label_names:
        rows = partitions.with_label_names(rows, labels[0], data.label_names)
    return rows


def cleaned(
    data: Data,
    source: str,
    split: str,
    n: int,
    seed: int,
    unlike: Rows | None = None,
    revision: str = "",
) -> Rows:
    """Rows that every method can use, at most n of them at random.

    Left out and counted: rows with an empty or very short text, without a label
    where there should be one, repeated ones, and those that ``unlike`` (the dataset)
    holds too. Texts stay as they are: markup belongs to what a model read.

    Raises:
        FileNotFoundError, ValueError: in one line, before anything costs.
    """
    if n < FEWEST_ROWS:
        raise ValueError(f"n_instances and n_passages must be at least {FEWEST_ROWS}, got {n}")
    try:
        found = partitions.load_rows(source, split, revision)
    except FileNotFoundError as error:  # a path may read like a file on the hub
        raise FileNotFoundError(f'no rows from "{source}": {error}') from error
    texts, label = list(data.text_columns), data.label_column
    columns = [*texts, *([label] if label else [])]
    if "index" in columns:
        raise ValueError('column "index" is kept for the row of origin: rename yours')
    partitions.format_instance(dict.fromkeys(found.columns, ""), columns)  # names a missing column
    table = found.assign(index=np.arange(len(found)))
    table[columns] = found[columns].map(str).mask(found[columns].isna(), "").map(str.strip)
    lengths = table[texts].map(len)
    reasons = {"n_empty": lengths.min(axis=1).eq(0)}
    reasons["n_short"] = lengths.sum(axis=1).lt(FEWEST_LETTERS)
    reasons["n_unlabelled"] = table[label].eq("") if label else pd.Series(False, table.index)
    if label and reasons["n_unlabelled"].all():
        raise ValueError(
            f'column "{label}" of "{source}" is empty in every row: set '
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
    # In random order, so that the first rows of the sample are a random sample too.
    kept = np.random.default_rng([seed, 10]).permutation(kept)[:n]
    sample = table.iloc[kept].reset_index(drop=True)
    labels = (label,) if label else ()
    return Rows(sample, tuple(columns), labels, counts | {"n": len(sample)})


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


def labelled(data: OwnPassages) -> dict[str, tuple[list[str], np.ndarray]]:
    """Passages and their membership, by the dataset's name with its split."""
    found = {}
    for split in data.dataset_splits or [""]:
        rows = partitions.load_rows(data.dataset, split, data.dataset_revision)
        if data.non_member_dataset:
            others = partitions.load_rows(data.non_member_dataset, split, data.dataset_revision)
            both = [rows.assign(**{data.label_column: 1}), others.assign(**{data.label_column: 0})]
            rows = pd.concat(both, ignore_index=True)
        columns = data.text_column, data.label_column
        texts, is_member = partitions.labelled_passages(rows, *columns, data.max_samples)
        if min(is_member.sum(), (~is_member).sum()) < 2:
            raise ValueError(f'"{data.dataset}" needs at least two members and two non-members')
        path = Path(data.dataset)  # tables hold no path of the machine
        name = path.name if path.is_absolute() else data.dataset
        found[f"{name} {split}".strip()] = texts, is_member
    return found


def questions(dataset: str, split: str, columns: Sequence[str]) -> pd.DataFrame:
    """Two columns of a file, or of a split of a hub dataset, as question and answer."""
    rows = _columns_of(dataset, split, columns)
    return rows.astype(str).set_axis(["question", "answer"], axis=1)


def column_of(dataset: str, split: str, column: str) -> pd.Series:
    """One column of texts of a file or of a split of a hub dataset, without missing ones."""
    return _columns_of(dataset, split, [column])[column].dropna().astype(str)


def _columns_of(dataset: str, split: str, columns: Sequence[str]) -> pd.DataFrame:
    rows = partitions.load_rows(dataset, "" if Path(dataset).suffix else split)
    if missing := [name for name in columns if name not in rows]:
        raise ValueError(f'no column "{missing[0]}" in "{dataset}": it has {", ".join(rows)}')
    return rows[list(columns)]
