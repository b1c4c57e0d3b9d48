"""The rows of an audit: loaded, cleaned of what no method can use, sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from contamination import partitions
from contamination.audit.settings import Data

FEWEST_LETTERS = 16  # a shorter text says nothing about memory
FEWEST_ROWS = 4


@dataclass(frozen=True)
class Rows:
    """A sample of one partition.

    Attributes:
        rows: column ``index`` (row of the source, from 0), the source's columns,
            and ``text``-columns and label as text; one row per instance.
        counts: n_rows (of the source), n_empty, n_short, n_unlabelled,
            n_repeated, n_shared (left out, in this order of reasons) and n (in the
            sample).
        columns: what makes up an instance, in order.
        label_column: its label, "" for none.
    """

    rows: pd.DataFrame
    counts: dict[str, int]
    columns: tuple[str, ...]
    label_column: str

    @property
    def instances(self) -> list[str]:
        """The sample as the papers print it."""
        return partitions.format_instances(self.rows, self.columns)

    @property
    def passages(self) -> list[str]:
        """The texts alone, without column names and label."""
        texts = [column for column in self.columns if column != self.label_column]
        return [" ".join(row) for row in self.rows[texts].itertuples(index=False)]


def load(
    data: Data,
    source: str,
    split: str,
    n: int,
    seed: int,
    unlike: Sequence[str] = (),
    revision: str = "",
) -> Rows:
    """Rows of a file or hub dataset, cleaned, at most n of them at random.

    Left out and counted: rows with an empty or very short text, without a
    label where there should be one, repeated ones, and those that ``unlike``
    holds too. Texts stay as they are: markup belongs to what a model read.

    Args:
        data: the columns, and names of labels.
        source, split, revision: of ``partitions.load_rows``.
        n: size of the sample.
        seed: of the sample.
        unlike: printed instances that may not occur, of the dataset that this one
            is compared with.

    Raises:
        FileNotFoundError, ValueError: in one line, before anything costs.
    """
    if n < FEWEST_ROWS:
        raise ValueError(f"n_instances and n_passages must be at least {FEWEST_ROWS}, got {n}")
    try:
        found = partitions.load_rows(source, split, revision)
    except FileNotFoundError as error:  # a path may read like a file on the hub
        raise FileNotFoundError(f'no rows from "{source}": {error}') from error
    texts = list(data.text_columns)
    columns = [*texts, *([data.label_column] if data.label_column else [])]
    if "index" in columns:
        raise ValueError('column "index" is kept for the row of origin: rename yours')
    partitions.format_instance(dict.fromkeys(found.columns, ""), columns)  # names a missing column
    table = found.assign(index=np.arange(len(found)))
    for column in columns:
        table[column] = found[column].map(lambda value: "" if _is_missing(value) else str(value))
        table[column] = table[column].str.strip()
    lengths = pd.DataFrame({column: table[column].str.len() for column in texts})
    reasons = {"n_empty": lengths.min(axis=1).eq(0)}
    reasons["n_short"] = lengths.sum(axis=1).lt(FEWEST_LETTERS)
    reasons["n_unlabelled"] = pd.Series(False, table.index)
    if data.label_column:
        reasons["n_unlabelled"] = table[data.label_column].eq("")
        if reasons["n_unlabelled"].all():
            raise ValueError(
                f'column "{data.label_column}" of "{source}" is empty in every row: set '
                'label_column to "" and task to a summary, whose prompts show no label'
            )
        if data.label_names:
            table[data.label_column] = _named(table[data.label_column], data, source)
    reasons["n_repeated"] = table.duplicated(columns)
    reasons["n_shared"] = pd.Series(_texts_of(table, texts), table.index).isin(set(unlike))
    left = pd.Series(True, table.index)
    counts = {"n_rows": len(table)}
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
    counts["n"] = len(sample)
    return Rows(sample, counts, tuple(columns), data.label_column)


def texts_of(rows: Rows) -> list[str]:
    """What ``load`` compares with ``unlike``."""
    return _texts_of(rows.rows, [name for name in rows.columns if name != rows.label_column])


def _texts_of(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    return ["\n".join(row) for row in table[list(columns)].itertuples(index=False)]


def head(rows: Rows, n: int) -> Rows:
    """The first n rows of a sample, which are a random sample themselves."""
    chosen = rows.rows.head(n)
    return Rows(chosen, rows.counts | {"n": len(chosen)}, rows.columns, rows.label_column)


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))


def _named(labels: pd.Series, data: Data, source: str) -> pd.Series:
    names = {str(number): name for number, name in enumerate(data.label_names)}
    names |= {f"{number}.0": name for number, name in enumerate(data.label_names)}
    unknown = labels[labels.ne("") & ~labels.isin(list(names))]
    if len(unknown):
        raise ValueError(
            f'column "{data.label_column}" of "{source}" holds {unknown.iloc[0]!r}: '
            f"label_names has {len(data.label_names)} names, for 0 to {len(data.label_names) - 1}"
        )
    return labels.map(names).fillna("")
