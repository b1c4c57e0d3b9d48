"""Every answer ever paid for: one SQLite file of JSON text.

An answer is committed, and on the disk, before anything uses it: a killed run
loses the calls in flight and nothing else. Readers never wait for a writer
(write-ahead log), so processes may share the file. Refusals and errors stand
there for the record and are never given back as answers.

Secrets never reach this module: callers hand over request bodies, not headers.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contamination import storage

SCHEMA = 1  # raise it when a change of code changes what is asked
LAYOUT = 2  # of the tables below
# The index holds a short number of each key: with the keys themselves it is five times
# as large, and a commit touches the more of it the more answers there are.
_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    slot INTEGER NOT NULL,
    is_replayed INTEGER NOT NULL,
    run TEXT NOT NULL,
    answered_at TEXT NOT NULL,
    request TEXT NOT NULL,
    response TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS replayed_slots ON answers (slot) WHERE is_replayed;
CREATE TABLE IF NOT EXISTS spending (
    run TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    n_calls INTEGER NOT NULL,
    seconds REAL NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (run, endpoint)
) STRICT, WITHOUT ROWID;
"""


def response_key(base_url: str, body: Mapping[str, Any], replicate: int) -> str:
    """Hash of everything that can change an answer, and of nothing else.

    Args:
        base_url: the server's address.
        body: what is sent: model, messages or prompt, all options, seed.
        replicate: number of the repetition, for asking the same thing again.
    """
    return storage.hash_of(
        {"schema": SCHEMA, "base_url": base_url, "body": dict(body), "replicate": replicate}
    )


@dataclass(frozen=True)
class LogEntry:
    """One call and what came back.

    Attributes:
        key: from ``response_key``.
        is_replayed: whether the response may serve the same request again.
        run: the run that paid for it.
        endpoint: base address and model.
        request: what was sent, as JSON values.
        response: what came back, or what went wrong, as JSON values.
        seconds: duration of the call, tries included.
        cost: price of the call, 0 where none is known.
    """

    key: str
    is_replayed: bool
    run: str
    endpoint: str
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    seconds: float
    cost: float


class ResponseLog:
    """The log; a context manager, safe to use from several threads and processes.

    Args:
        path: the file; by default ``responses/log.sqlite`` among the caches.

    Raises:
        ValueError: if the file is not a log of this version.
    """

    def __init__(self, path: Path | None = None):
        self.path = Path(path or storage.cache_folder("responses") / "log.sqlite")
        # Two connections: one of them commits in a thread, and a reader on the
        # same connection would see answers that are not committed yet.
        self._writer = self._connect()
        self._reader = self._connect()
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self.close()
            raise ValueError(
                f"{self.path.name} is not a response log ({error}): move it away and run again"
            ) from error

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)

    def _open(self) -> None:
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._writer.execute("PRAGMA synchronous = FULL")
        version = self._version()
        if version not in (0, 1, LAYOUT):
            raise sqlite3.DatabaseError(f"version {version}, this code reads {LAYOUT}")
        if version == 1:
            self._add_slots()
        self._writer.executescript(_TABLES)
        self._writer.execute(f"PRAGMA user_version = {LAYOUT}")

    def _version(self) -> int:
        return self._writer.execute("PRAGMA user_version").fetchone()[0]

    def _add_slots(self) -> None:
        """Bring a file of the first layout to this one, with its answers."""
        self._writer.create_function("slot_of", 1, _slot, deterministic=True)
        self._writer.execute("BEGIN IMMEDIATE")
        with self._writer:
            if self._version() != 1:  # another process was first
                return
            self._writer.execute("ALTER TABLE answers ADD COLUMN slot INTEGER NOT NULL DEFAULT 0")
            self._writer.execute("UPDATE answers SET slot = slot_of(key)")
            self._writer.execute("DROP INDEX replayed")
            self._writer.execute(f"PRAGMA user_version = {LAYOUT}")

    def __enter__(self) -> ResponseLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    def get(self, key: str) -> dict[str, Any] | None:
        """The first response that may serve this request again, or None."""
        row = self._reader.execute(
            "SELECT response FROM answers WHERE slot = ? AND key = ? AND is_replayed "
            "ORDER BY id LIMIT 1",
            (_slot(key), key),
        ).fetchone()
        return json.loads(row[0]) if row else None

    def __contains__(self, key: str) -> bool:
        query = "SELECT 1 FROM answers WHERE slot = ? AND key = ? AND is_replayed LIMIT 1"
        return self._reader.execute(query, (_slot(key), key)).fetchone() is not None

    def put(self, entries: Sequence[LogEntry]) -> None:
        """Commit calls together; they are on the disk when this returns."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rows = [
            (e.key, _slot(e.key), e.is_replayed, e.run, now, _json(e.request), _json(e.response))
            for e in entries
        ]
        spent = [(e.run, e.endpoint, e.seconds, e.cost) for e in entries]
        self._writer.execute("BEGIN IMMEDIATE")
        with self._writer:
            self._writer.executemany(
                "INSERT INTO answers (key, slot, is_replayed, run, answered_at, request, response) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            self._writer.executemany(
                "INSERT INTO spending VALUES (?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET "
                "n_calls = n_calls + 1, seconds = seconds + excluded.seconds, "
                "cost = cost + excluded.cost",
                spent,
            )

    def spent(self, run: str) -> float:
        """What a run has cost so far, in the currency of its prices, over all endpoints."""
        query = "SELECT coalesce(sum(cost), 0.0) FROM spending WHERE run = ?"
        return float(self._reader.execute(query, (run,)).fetchone()[0])

    def seconds_per_call(self, endpoint: str) -> float | None:
        """Mean duration of the calls to an endpoint, or None before the first."""
        query = "SELECT sum(seconds) / sum(n_calls) FROM spending WHERE endpoint = ?"
        return self._reader.execute(query, (endpoint,)).fetchone()[0]


def _slot(key: str) -> int:
    return zlib.crc32(str(key).encode())


def _json(value: Mapping[str, Any]) -> str:
    # ASCII, since a server may send half a surrogate pair, which UTF-8 cannot hold.
    return json.dumps(value, sort_keys=True)
