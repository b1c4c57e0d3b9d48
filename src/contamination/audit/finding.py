"""What a method gave for a model, before any verdict: scores of rows, counts, the paper's tables.

``audit.verdict`` decides; a method does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from contamination.audit.rows import Rows
from contamination.core import statistics
from contamination.models.chat import ERROR, OK, REFUSED, Endpoint
from contamination.models.local import CausalLM

SCORES = ["index", "is_unseen", "score"]


@dataclass(frozen=True)
class Target:
    """A model that is audited."""

    name: str  # in tables
    place: Endpoint | CausalLM
    truth: str = ""  # what it is known to have read
    source: str = ""  # folder or hub id of a local model
    form: str = ""  # in which an address gives log-probabilities of prompts, "" for none

    @property
    def begins(self) -> str:
        """What texts of a local model begin with, "first" or "none"; "" for others."""
        return getattr(self.place, "identity", {}).get("bos", "")


@dataclass(frozen=True)
class Finding:
    """What one method gave for one model.

    Attributes:
        statistic: what the score of a row is, or what ``measured`` is.
        scores: ``scores_of``; None where the method does not score rows or was not run.
        why_not: why it was not run, "" where it was.
        note: what a reader must know.
        measured: value, ci_low, ci_high and n of a method that does not score rows.
        counts: of ``status_counts``.
        details: what is behind it, row by row.
        tables: the paper's, by their names.
        levels: shares next to which the method is read, of ``level_row``.
    """

    statistic: str = ""
    scores: pd.DataFrame | None = None
    why_not: str = ""
    note: str = ""
    measured: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    details: pd.DataFrame = field(default_factory=pd.DataFrame)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    levels: Sequence[dict] = ()


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


def level_row(name: str, n: int, value: float, low: float, high: float) -> dict:
    """A row of ``audit_controls.csv``, but for model and method: a share and its interval."""
    return {"control": name, "n": n, "value": value, "ci_low": low, "ci_high": high}


def share_row(name: str, hits: Sequence[float]) -> dict:
    """The same of a share of hits; those without a usable answer are not among them."""
    n = len(hits)
    low, high = statistics.share_interval(round(sum(hits)), n)
    return level_row(name, n, float(np.mean(hits)) if n else math.nan, low, high)


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
