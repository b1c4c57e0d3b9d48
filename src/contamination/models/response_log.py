"""Every call that was ever paid for: one table of one SQLite file.

What a call may cost is written before it is sent, and corrected when its answer is there. So a run
that is killed in the middle has spent what stands here, and its cap holds. An answer is on the disk
before anything uses it. Refusals and errors stand here for the record and are never given back as
answers. One run at a time asks and writes; readers wait for nobody (write-ahead log).

Secrets never reach this module: callers hand over request bodies, not headers.
"""

from __future__ import annotations

import fcntl
import functools
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contamination.core import storage

VERSION = 4  # of the table
TABLE = """CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    run TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    begun_at TEXT NOT NULL,
    request TEXT NOT NULL,
    response TEXT,
    is_replayed INTEGER NOT NULL,
    cost REAL NOT NULL,
    seconds REAL,
    sha256 TEXT NOT NULL
) STRICT"""
INDEXES = (
    "CREATE INDEX IF NOT EXISTS replayed ON calls (key) WHERE is_replayed",
    "CREATE INDEX IF NOT EXISTS of_run ON calls (run)",
)
ROWS = "SELECT id, sha256, key, run, request, response, is_replayed, cost FROM calls "
INSERT = (
    "INSERT INTO calls (begun_at, endpoint, sha256, key, run, request, response, is_replayed, "
    "cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class InUseError(OSError):
    """Another run asks and writes on this log; the message is one line."""


def _in_one_line(method: Callable) -> Callable:
    """A method whose errors about the file or its disk name it, and the cure, in one line."""

    @functools.wraps(method)
    def told(self: ResponseLog, *given: Any, **named: Any) -> Any:
        try:
            return method(self, *given, **named)
        except (UnicodeDecodeError, sqlite3.DatabaseError) as error:
            raise self.unusable(str(error)) from error

    return told


class ResponseLog:
    """The log; a context manager, safe to use from several threads.

    It lies in ``responses/log.sqlite`` among the caches by default. ValueError if the file is
    damaged, not a log, or one of another version, or if its disk is full.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = Path(path or storage.cache_folder("responses") / "log.sqlite")
        self._lock = threading.RLock()
        self._file = sqlite3.connect(
            self.path, timeout=60, isolation_level=None, check_same_thread=False
        )
        # A damaged text is one without its checksum, and no error of another kind.
        self._file.text_factory = lambda text: text.decode(errors="replace")
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @_in_one_line
    def _open(self) -> None:
        (version,) = self._file.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in self._file.execute("SELECT name FROM sqlite_master")}
        if version != VERSION and (version or tables - {"calls", "replayed", "of_run"}):
            raise ValueError(
                f"{storage.shown(self.path)} is not a response log of version {VERSION} (it has "
                f"version {version}): move it away and run again"
            )
        (found,) = self._file.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise self.unusable(found)
        if version != VERSION:
            with self.in_use(fcntl.LOCK_EX):  # two processes may begin at once
                self._file.execute("PRAGMA journal_mode = WAL")
                for statement in (TABLE, *INDEXES, f"PRAGMA user_version = {VERSION}"):
                    self._file.execute(statement)
        self._file.execute("PRAGMA synchronous = FULL")

    def unusable(self, what: str) -> ValueError:
        """The error for a log that is not as it was written or cannot be, with what mends it."""
        return ValueError(
            f"{storage.shown(self.path)} cannot be used ({' '.join(what.split())}): make room on "
            "its disk, or if it is damaged move it away, or see docs/audit.md for how sqlite3 "
            "recovers what is whole"
        )

    def __enter__(self) -> ResponseLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the log cannot be used afterwards."""
        self._file.close()

    @contextmanager
    def in_use(self, how: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> Iterator[None]:
        """Ask and write as the one run on this log; InUseError where another run does."""
        with self.path.with_name(f"{self.path.name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, how)  # until it is closed, as the end of the process does
            except BlockingIOError:
                raise InUseError(
                    f"{storage.shown(self.path)} is in use by another run: wait until that run "
                    "has ended; you will not pay again for the answers that it got"
                ) from None
            yield

    @_in_one_line
    def get(self, key: str) -> dict[str, Any] | None:
        """The first response that may serve this request again, or None; ValueError if damaged."""
        query = f"{ROWS}WHERE key = ? AND is_replayed ORDER BY id LIMIT 1"
        with self._lock:
            row = self._file.execute(query, (key,)).fetchone()
        if row is None:
            return None
        self._check(*row)
        return json.loads(row[5])

    @_in_one_line
    def __contains__(self, key: str) -> bool:
        query = "SELECT 1 FROM calls WHERE key = ? AND is_replayed ORDER BY id LIMIT 1"
        with self._lock:
            return self._file.execute(query, (key,)).fetchone() is not None

    def _check(self, number: int, sha256: str, *checked: Any) -> None:
        if storage.hash_of(list(checked)) != sha256:
            raise self.unusable(f"the checksum of call {number} differs")

    @_in_one_line
    def begin(
        self, key: str, run: str, endpoint: str, request: Mapping[str, Any], most: float
    ) -> int:
        """Write down what a call may cost, before it is sent; its number."""
        checked = key, run, _json(request), None, 0, float(most)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        row = now, endpoint, storage.hash_of(list(checked)), *checked
        with self._lock:
            return self._file.execute(INSERT, row).lastrowid or 0

    @_in_one_line
    def end(
        self,
        number: int,
        response: Mapping[str, Any],
        *,
        is_replayed: bool,
        cost: float,
        seconds: float,
    ) -> None:
        """Write what came of a call and what it cost; on the disk when this returns.

        ``is_replayed``: whether the response may serve the same request again.
        """
        with self._lock:
            query = "SELECT key, run, request FROM calls WHERE id = ?"
            asked = self._file.execute(query, (number,)).fetchone()
            checked = *asked, _json(response), int(is_replayed), float(cost)
            self._file.execute(
                "UPDATE calls SET response = ?, is_replayed = ?, cost = ?, seconds = ?, sha256 = ? "
                "WHERE id = ?",
                (*checked[3:], seconds, storage.hash_of(list(checked)), number),
            )

    @_in_one_line
    def spent(self, run: str) -> float:
        """What a run has cost so far, in the currency of its prices, over all endpoints.

        Calls that were never answered count as the most that they may have cost. ValueError if a
        row is damaged.
        """
        total = 0.0
        with self._lock:
            for row in self._file.execute(f"{ROWS}WHERE run = ?", (run,)):
                self._check(*row)
                total += row[-1]
        return total


def _json(value: Mapping[str, Any]) -> str:
    # ASCII, since a server may send half a surrogate pair, which UTF-8 cannot hold.
    return json.dumps(value, sort_keys=True)
