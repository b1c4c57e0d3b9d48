"""What a method gave for a model, before any verdict: scores, counts, the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from contamination.audit.rows import Rows
from contamination.models.chat import ERROR, OK, REFUSED, Endpoint

SCORES = ["index", "is_unseen", "score"]


@dataclass(frozen=True)
class Target:
    """A model that is audited, or the log-probabilities of a text by the text in its place."""

    name: str  # in tables
    place: Any  # an endpoint or a CausalLM; values by text; None in a dry run
    truth: str = ""  # what it is known to have read
    form: str = ""  # in which an address gives log-probabilities of prompts, "" for none
    identity: Mapping[str, str] = field(default_factory=dict)  # of a local model

    @property
    def begins(self) -> str:
        """What texts of a local model begin with, "first" or "none"; "" for others."""
        return self.identity.get("bos", "")

    @property
    def weights(self) -> dict[str, str | None]:
        """Name, and the hash of a local model's files or its commit, or why there is none."""
        known = self.identity.get("revision")
        why = "" if known else "no model was loaded"
        if isinstance(self.place, Endpoint):
            why = f"served at {self.place.base_url}, where no weights can be seen"
        elif isinstance(self.place, Mapping):
            why = "log-probabilities from a file: no model was loaded"
        return {"name": self.name, "weights": known, "why_none": why}


@dataclass(frozen=True)
class Finding:
    """What one method gave for one model."""

    statistic: str = ""  # what the score of a row is
    scores: pd.DataFrame | None = None  # of ``scores_of``; None without any
    why_not: str = ""  # why it was not run
    note: str = ""  # what a reader must know
    counts: Mapping[str, int] = field(default_factory=dict)  # of ``status_counts``
    details: pd.DataFrame = field(default_factory=pd.DataFrame)  # what is behind it, row by row
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # the paper's, by name


def scores_of(
    sets: Sequence[Rows], scores: Sequence[float], **features: Sequence[float]
) -> pd.DataFrame:
    """Scores of the rows of one or two files, in their order.

    Returns:
        index (of the row in its file), is_unseen (a comparison row), score (higher means more
        likely seen; NaN without a usable answer), then features of the method's own, which may
        explain a score without memory.
    """
    parts = [rows.rows[["index"]].assign(is_unseen=bool(place)) for place, rows in enumerate(sets)]
    return pd.concat(parts, ignore_index=True).assign(score=scores, **features)


def status_counts(status: pd.Series) -> dict[str, int]:
    """How many answers were usable, refused, failed, or came and could not be read."""
    kinds = {"n_valid": OK, "n_refused": REFUSED, "n_error": ERROR}
    counts = {name: int(status.eq(kind).sum()) for name, kind in kinds.items()}
    return counts | {"n_unusable": len(status) - sum(counts.values())}


def describe_unusable(status: pd.Series) -> str:
    """What became of the other answers; "" where there are none."""
    others = status[status.ne(OK)]
    kinds = ", ".join(f"{kind} {count}" for kind, count in others.value_counts().items())
    return f"{len(others)} of {len(status)} answers unusable ({kinds})" if len(others) else ""
