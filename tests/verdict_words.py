"""What columns of verdicts may hold, checked of every table that notebooks write."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from contamination.core.verdicts import CLAIMS, VERDICTS


def check_verdicts(words: Iterable[object]) -> None:
    """ValueError for a value that is not a verdict; blank cells are rows without a claim."""
    given = {str(word) for word in words if not (pd.isna(word) or word == "")}
    if unknown := given - {*VERDICTS}:
        raise ValueError(f'"{min(unknown)}" is not a verdict: use one of {", ".join(VERDICTS)}')


def check_table(table: pd.DataFrame, name: str | None = None) -> None:
    """ValueError, one line, for a table whose verdicts are no verdicts or answer no known claim.

    Columns of verdicts are ``verdict``, those that end in ``_verdict``, and next to a ``verdict``
    the column ``word``, which is the verdict before its control is asked.

    Args:
        name: of the table, which ``CLAIMS`` must know. The claim of a column ``easy_verdict``
            is that of ``<name>_easy``. None for a table that is displayed and has no name.
    """
    whole = {"verdict", "word"} if "verdict" in table else set()
    for column in map(str, table):
        part = column.removesuffix("_verdict")
        if part == column and column not in whole:
            continue
        try:
            check_verdicts(table[column])
        except ValueError as error:
            raise ValueError(f"{name or 'displayed table'}, column {column}: {error}") from error
        claim = name if part == column else f"{name}_{part}"
        if name is not None and claim not in CLAIMS:
            raise ValueError(f'{name}, column {column}: add "{claim}" to core/claims.csv')
