"""Every answer ever paid for: one SQLite file of JSON text.

An answer is committed, and on the disk, before anything uses it: a killed run
loses the calls in flight and nothing else. Readers never wait for a writer
(write-ahead log), so processes may share the file. Refusals and errors stand
there for the record and are never given back as answers. Each answer has its
checksum, and one that is damaged is named and not given back either:
``models.log_repair`` keeps the rest.

Processes that share the file pay once: a request is **claimed** before it is
asked, and a process that finds it claimed waits for the answer. A claim also
**reserves** the most that its call may cost, so that all processes of a run
together stay under its cap. A claim is renewed while its call is in flight and
expires otherwise, so a killed process blocks nobody for longer than a lease.

Secrets never reach this module: callers hand over request bodies, not headers.
"""

from __future__ import annotations

import functools
import json
import random
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contamination.core import storage
from contamination.models import log_layout
from contamination.models.log_layout import LogEntry

LEASE_SECONDS = 20.0  # how long a claim holds unless it is renewed
BUSY_SECONDS = 60.0  # how long to wait for other processes, to open the file and to write
_LOOKED_THROUGH: set[tuple[int, int]] = set()  # files whose structure this process has checked


def _in_one_line(method: Callable) -> Callable:
    """A method whose errors about the file or its disk name it, and the cure, in one line."""

    @functools.wraps(method)
    def told(self: ResponseLog, *given: Any, **named: Any) -> Any:
        try:
            return method(self, *given, **named)
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith("SQLITE_CORRUPT"):
                raise log_layout.damaged(self.path, str(error)) from error
            if name in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"):
                raise storage.no_room(self.path) from error
            raise

    return told


class ResponseLog:
    """The log; a context manager, safe to use from several threads and processes.

    It lies in ``responses/log.sqlite`` among the caches by default. ValueError if the file is
    damaged, not a log, or one of another version; TimeoutError if other processes hold it for
    ``BUSY_SECONDS``; ``storage.DiskFullError`` if its disk is full.
    """

    def __init__(self, path: Path | None = None, lease_seconds: float = LEASE_SECONDS) -> None:
        self.path = Path(path or storage.cache_folder("responses") / "log.sqlite")
        self.lease_seconds = lease_seconds
        self._lock = threading.Lock()  # of the writer
        # Two connections: one of them commits in a thread, and a reader on the
        # same connection would see answers that are not committed yet.
        self._writer = self._connect()
        self._reader = self._connect()
        # A damaged text is one without its checksum, and no error of another kind.
        self._reader.text_factory = lambda text: text.decode(errors="replace")
        try:
            self._open()
            self._look_through()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )

    @_in_one_line
    def _open(self) -> None:
        """Open the file and make its tables, in turn with other processes.

        SQLite's own timeout does not cover the switch to the write-ahead log.
        """
        name, deadline = self.path.name, time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self._prepare()
            except sqlite3.DatabaseError as error:
                code = error.sqlite_errorcode & 0xFF  # without the details of extended codes
                if code == sqlite3.SQLITE_NOTADB or "file format" in str(error):
                    raise log_layout.not_a_log(self.path, str(error)) from error
                if code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"{name} is in use by another process ({error}): its answers are safe, "
                        "run again when that process has ended"
                    ) from error
            time.sleep(random.uniform(0.005, 0.05))

    @_in_one_line
    def _look_through(self) -> None:
        """ValueError if the file's structure is damaged, or answers would not be found in it.

        Once a process: it takes a second for a gigabyte.
        """
        state = self.path.stat()
        if (state.st_dev, state.st_ino) not in _LOOKED_THROUGH:
            (found,) = self._reader.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise log_layout.damaged(self.path, found)
            _LOOKED_THROUGH.add((state.st_dev, state.st_ino))

    def _prepare(self) -> None:
        (mode,) = self._writer.execute("PRAGMA journal_mode").fetchone()
        if mode != "wal":
            self._check()  # before anything is changed
            self._writer.execute("PRAGMA journal_mode = WAL")
        if self._check() == log_layout.LAYOUT and set(log_layout.TABLES) <= self._names():
            return
        with self._transaction():
            for name, columns in log_layout.TABLES.items():
                self._writer.execute(f"CREATE TABLE IF NOT EXISTS {name} {columns}")
            self._writer.execute(log_layout.INDEX)
            self._writer.execute(f"PRAGMA user_version = {log_layout.LAYOUT}")

    def _names(self) -> set[str]:
        rows = self._writer.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {name for (name,) in rows if not name.startswith("sqlite_")}

    def _check(self) -> int:
        """Version of the file; ValueError if it is not a log that this code can use."""
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        names = self._names()
        if version not in (0, log_layout.LAYOUT) and "answers" in names:
            raise ValueError(
                f"{storage.shown(self.path)} is a response log of version {version} and this code "
                f"reads version {log_layout.LAYOUT}: use it with the code that wrote it"
            )
        # A new file is empty, and one that a process left half made holds tables of ours.
        known = {"answers", "spending"} <= names if version else names <= set(log_layout.TABLES)
        if version not in (0, log_layout.LAYOUT) or not known:
            raise log_layout.not_a_log(self.path, f"version {version}, tables {sorted(names)}")
        return version

    @contextmanager
    def _transaction(self, is_durable: bool = True) -> Iterator[None]:
        """All or nothing; what is durable is on the disk when the block ends."""
        with self._lock:
            self._writer.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
            self._writer.execute("BEGIN IMMEDIATE")
            with self._writer:
                yield

    def __enter__(self) -> ResponseLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the log cannot be used afterwards."""
        self._reader.close()
        self._writer.close()

    @_in_one_line
    def get(self, key: str) -> dict[str, Any] | None:
        """The first response that may serve this request again, or None.

        ValueError if it is damaged.
        """
        for number, of, is_replayed, request, response, sha256 in self._reader.execute(
            log_layout.IN_SLOT, (_slot(key),)
        ):
            if log_layout.checksum(of, is_replayed, request, response) != sha256:
                raise log_layout.damaged(self.path, f"the checksum of answer {number} differs")
            if of == key:
                return json.loads(response)
        return None

    @_in_one_line
    def __contains__(self, key: str) -> bool:
        return self._reader.execute(log_layout.ANSWERED, (_slot(key), key)).fetchone() is not None

    @_in_one_line
    def claim(
        self,
        keys: Collection[str],
        owner: str,
        *,
        run: str = "",
        most: Mapping[str, float] | None = None,
        cap: float | None = None,
    ) -> set[str]:
        """Those of the keys that the owner is to ask; to claim a key again renews the claim.

        The result leaves out keys that have an answer and keys that another owner holds.
        ``most`` is the most that the call of each key may cost (0 by default). The claim reserves
        it for the run until the call is committed or the claim ends. Under a ``cap`` the result
        also leaves out the first key that could take the run beyond it, and all that follow: what
        the run has spent and what all owners have reserved for it count.
        """
        given = keys, owner, run, most or {}, cap
        if not self._claimable(self._reader, *given):  # looking on costs the others nothing
            return set()
        # After a power cut nobody holds a claim: there is no need to wait for the disk.
        with self._transaction(is_durable=False):
            claimed = self._claimable(self._writer, *given)
            expires_at = self._lease()[1]
            self._writer.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)",
                [(key, owner, run, (most or {}).get(key, 0.0), expires_at) for key in claimed],
            )
        return set(claimed)

    def _claimable(
        self,
        connection: sqlite3.Connection,
        keys: Collection[str],
        owner: str,
        run: str,
        most: Mapping[str, float],
        cap: float | None,
    ) -> list[str]:
        free = [key for key in keys if self._is_free(connection, key, owner)]
        if cap is None or not free:
            return free
        reserved = dict(connection.execute(log_layout.RESERVED, (run, *self._lease())))
        renewed = set(free)  # some may be the owner's already
        total = sum(cost for key, cost in reserved.items() if key not in renewed)
        total += _spent(connection, run)
        claimable = []
        for key in free:
            total += most.get(key, 0.0)
            if total > cap:
                break
            claimable.append(key)
        return claimable

    def is_claimed(self, key: str, owner: str) -> bool:
        """Whether another owner holds the key."""
        return self._is_held(self._reader, key, owner)

    def _is_held(self, connection: sqlite3.Connection, key: str, owner: str) -> bool:
        return (
            connection.execute(log_layout.HELD, (key, owner, *self._lease())).fetchone() is not None
        )

    def _is_free(self, connection: sqlite3.Connection, key: str, owner: str) -> bool:
        if self._is_held(connection, key, owner):
            return False
        return connection.execute(log_layout.ANSWERED, (_slot(key), key)).fetchone() is None

    def _lease(self) -> tuple[float, float]:
        """When a claim that is made now is made, and when it expires."""
        now = time.time()
        return now, now + self.lease_seconds

    @_in_one_line
    def release(self, owner: str) -> None:
        """Give up the owner's claims, and clear away expired ones."""
        with self._transaction(is_durable=False):
            self._writer.execute(log_layout.ENDED, (owner, *self._lease()))

    @_in_one_line
    def put(self, entries: Sequence[LogEntry]) -> None:
        """Commit calls together; they are on the disk when this returns, and no longer claimed."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rows = []
        for e in entries:
            what = e.key, e.is_replayed, _json(e.request), _json(e.response)
            rows.append((*what, _slot(e.key), e.run, now, log_layout.checksum(*what)))
        spent = [(e.run, e.endpoint, e.seconds, e.cost) for e in entries]
        with self._transaction():
            self._writer.executemany(log_layout.INSERT, rows)
            self._writer.executemany(
                "INSERT INTO spending VALUES (?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET "
                "n_calls = n_calls + 1, seconds = seconds + excluded.seconds, "
                "cost = cost + excluded.cost",
                spent,
            )
            self._writer.executemany(
                "DELETE FROM claims WHERE key = ?", [(entry.key,) for entry in entries]
            )

    @_in_one_line
    def spent(self, run: str) -> float:
        """What a run has cost so far, in the currency of its prices, over all endpoints."""
        return _spent(self._reader, run)

    @_in_one_line
    def seconds_per_call(self, endpoint: str) -> float | None:
        """Mean duration of the calls to an endpoint, or None before the first."""
        query = "SELECT sum(seconds) / sum(n_calls) FROM spending WHERE endpoint = ?"
        return self._reader.execute(query, (endpoint,)).fetchone()[0]


def _spent(connection: sqlite3.Connection, run: str) -> float:
    return float(connection.execute(log_layout.SPENT, (run,)).fetchone()[0])


def _slot(key: str) -> int:
    return zlib.crc32(str(key).encode())


def _json(value: Mapping[str, Any]) -> str:
    # ASCII, since a server may send half a surrogate pair, which UTF-8 cannot hold.
    return json.dumps(value, sort_keys=True)
