"""A damaged response log: every answer that is whole goes into a new one.

    python -m contamination.models.log_repair ~/.cache/contamination/responses/log.sqlite

The damaged file stays beside it, with ``.damaged`` at the end of its name.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from contamination.core import storage
from contamination.models.log_layout import INSERT, checksum
from contamination.models.response_log import ResponseLog

SMALLEST_ANSWER = 200  # bytes; key and checksum alone are 128
_ANSWER = (
    "SELECT key, is_replayed, request, response, slot, run, answered_at, sha256 FROM answers "
    "WHERE id = ?"
)
_SPENDING = "SELECT run, endpoint, n_calls, seconds, cost FROM spending"


def repair(path: Path) -> tuple[int, bool]:
    """Put a new log with the answers that are whole in the place of a damaged one.

    Returns:
        How many answers were kept, and whether what runs have spent could be read too.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if no answer in it is whole, another process uses it, or it was repaired
            before.
    """
    name = storage.shown(path)
    fresh, aside = (path.with_name(path.name + end) for end in (".repaired", ".damaged"))
    if not path.is_file():
        raise FileNotFoundError(f"there is no response log {name}: check the path")
    if aside.exists():
        raise ValueError(f"{storage.shown(aside)} is there from before: move it away and run again")
    fresh.unlink(missing_ok=True)
    with ResponseLog(fresh):
        pass  # its tables
    try:
        with contextlib.closing(sqlite3.connect(path)) as old:
            old.text_factory = lambda text: text.decode(errors="replace")
            n_kept, has_spending = _copy(old, fresh, path.stat().st_size)
        if not n_kept:
            raise ValueError(f"no answer in {name} is whole, so nothing can be saved: move it away")
        if path.with_name(f"{path.name}-wal").exists():  # whoever closes a log last removes it
            raise ValueError(f"another process uses {name}: end it and run again")
        path.rename(aside)
        fresh.rename(path)
    finally:
        fresh.unlink(missing_ok=True)
    return n_kept, has_spending


def _copy(old: sqlite3.Connection, fresh: Path, n_bytes: int) -> tuple[int, bool]:
    try:
        spending = old.execute(_SPENDING).fetchall()
    except sqlite3.DatabaseError:
        spending = None
    with contextlib.closing(sqlite3.connect(fresh)) as new, new:
        n_kept = new.executemany(INSERT, _whole_answers(old, n_bytes)).rowcount
        new.executemany("INSERT INTO spending VALUES (?, ?, ?, ?, ?)", spending or ())
    return max(n_kept, 0), spending is not None


def _whole_answers(old: sqlite3.Connection, n_bytes: int) -> Iterator[tuple]:
    """Each answer is looked up by its number: a page that cannot be read hides no other."""
    for number in range(1, 1 + n_bytes // SMALLEST_ANSWER):
        with contextlib.suppress(sqlite3.DatabaseError):
            row = old.execute(_ANSWER, (number,)).fetchone()
            if row and checksum(*row[:4]) == row[-1]:
                yield row


def main(arguments: list[str]) -> int:
    """Repair the log that is named and say what was kept; 0 if a new one is there, else 1."""
    if len(arguments) != 1:
        print("name one file: python -m contamination.models.log_repair FILE", file=sys.stderr)
        return 1
    path = Path(arguments[0]).absolute()
    try:
        n_kept, has_spending = repair(path)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    name = storage.shown(path)
    print(f"{name}: {n_kept} answers are whole and kept; the damaged file is {name}.damaged")
    if not has_spending:
        print("what runs have spent could not be read: their caps start again at zero")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
