"""The layout of the response log: its tables, its statements, and what a row of it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contamination.core import storage

SCHEMA = 1  # raise it when a change of code changes what is asked
LAYOUT = 3  # of the tables
# The index holds a short number of each key: with the keys themselves it is five times
# as large, and a commit touches the more of it the more answers there are.
TABLES = {
    "answers": """(
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    slot INTEGER NOT NULL,
    is_replayed INTEGER NOT NULL,
    run TEXT NOT NULL,
    answered_at TEXT NOT NULL,
    request TEXT NOT NULL,
    response TEXT NOT NULL,
    sha256 TEXT NOT NULL
) STRICT""",
    "spending": """(
    run TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    n_calls INTEGER NOT NULL,
    seconds REAL NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (run, endpoint)
) STRICT, WITHOUT ROWID""",
    "claims": """(
    key TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    run TEXT NOT NULL,
    most REAL NOT NULL,
    expires_at REAL NOT NULL
) STRICT, WITHOUT ROWID""",
}
INDEX = "CREATE INDEX IF NOT EXISTS replayed_slots ON answers (slot) WHERE is_replayed"
INSERT = (
    "INSERT INTO answers (key, is_replayed, request, response, slot, run, answered_at, sha256) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
IN_SLOT = (
    "SELECT id, key, is_replayed, request, response, sha256 FROM answers "
    "WHERE slot = ? AND is_replayed ORDER BY id"
)
ANSWERED = "SELECT 1 FROM answers WHERE slot = ? AND key = ? AND is_replayed LIMIT 1"
# A claim that would hold for longer than a lease was made before the clock was set back.
HELD = "SELECT 1 FROM claims WHERE key = ? AND owner != ? AND expires_at BETWEEN ? AND ?"
RESERVED = "SELECT key, most FROM claims WHERE run = ? AND expires_at BETWEEN ? AND ?"
ENDED = "DELETE FROM claims WHERE owner = ? OR expires_at NOT BETWEEN ? AND ?"
SPENT = "SELECT coalesce(sum(cost), 0.0) FROM spending WHERE run = ?"


def response_key(base_url: str, body: Mapping[str, Any], replicate: int) -> str:
    """Hash of everything that can change an answer, and of nothing else.

    ``body`` is what is sent: model, messages or prompt, all options, seed.
    """
    return storage.hash_of(
        {"schema": SCHEMA, "base_url": base_url, "body": dict(body), "replicate": replicate}
    )


@dataclass(frozen=True)
class LogEntry:
    """One call and what came back."""

    key: str
    is_replayed: bool  # whether the response may serve the same request again
    run: str  # that paid for it
    endpoint: str  # base address and model
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    seconds: float  # duration, tries included
    cost: float  # 0 where no price is known


def damaged(path: Path, what: str) -> ValueError:
    """The error for a log that is not as it was written, with the command that mends it."""
    command = f"python -m contamination.models.log_repair {storage.in_shell(path)}"
    what = " ".join(what.split())
    return ValueError(
        f"{storage.shown(path)} is damaged ({what}): {command} keeps every answer that is whole"
    )


def not_a_log(path: Path, what: str) -> ValueError:
    """The error for a file that is none, with what to do."""
    return ValueError(
        f"{storage.shown(path)} is not a response log ({what}): move it away and run again"
    )


def checksum(key: str, is_replayed: bool, request: str, response: str) -> str:
    """SHA-256 of an answer, which is stored beside it."""
    return storage.hash_of([key, bool(is_replayed), request, response])
