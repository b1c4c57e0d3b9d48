"""What an audit asks about, and what a method found: its row of the panel beside its controls.

A verdict compares the method's 95 % interval with chance and with the intervals of its
controls (``study.panel.verdict``); that of a quiz asks for gaps above 0 (``audit.gaps``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from contamination.audit import comparison
from contamination.audit.asked import Asked
from contamination.audit.rows import Rows
from contamination.audit.settings import Data, Model
from contamination.core import statistics
from contamination.core.claims import CLAIMS
from contamination.core.verdicts import FEWEST_MODELS, strongest
from contamination.models.causal import CausalLM
from contamination.models.chat import ERROR, OK, REFUSED, Endpoint
from contamination.study.panel import Evidence, verdict

DCQ, REPLICATION, RANKING = "DCQ", "replication", "option ranking"
MIN_K, DICE = "Min-k% Prob", "DICE"
METHODS = (DCQ, REPLICATION, RANKING, MIN_K, DICE)
COMPARING = METHODS[:4]  # hold the dataset against comparison rows where there are some
UNSEEN, CLEAN_LM = "unseen rows", "clean model of the lab"
NO_COMPARISON = "no comparison rows: name a file of rows that the model cannot have seen"


@dataclass(frozen=True)
class Audit:
    """Everything that is asked about, before the first question.

    Attributes:
        model, data, asked: settings, and who is asked.
        rows: the dataset: as many rows as Min-k% Prob scores, the first of them quizzed.
        unseen: rows that the model cannot have seen, or None.
        n_quizzed: rows of either that the other methods take.
        text_alone: dataset against unseen rows, ``comparison.by_text_alone``.
        near_copies: rows that the two have nearly in common, ``comparison.near_copies``.
    """

    model: Model
    data: Data
    asked: Asked
    rows: Rows
    unseen: Rows | None
    n_quizzed: int
    seed: int
    text_alone: tuple[dict, ...] = ()
    near_copies: tuple[dict, ...] = ()

    @property
    def names(self) -> tuple[str, str]:
        """Dataset and split as the prompts say them."""
        return self.data.called

    @property
    def refusal(self) -> str:
        """Why no method may hold the dataset against the unseen rows; "" if each may."""
        return comparison.refusal(self.text_alone)

    @property
    def sets(self) -> list[Rows]:
        """The dataset, and unseen rows where there are some."""
        return [rows for rows in (self.rows, self.unseen) if rows is not None]

    @property
    def quizzed(self) -> list[Rows]:
        """Of each set the rows that all methods but Min-k% Prob take."""
        return [rows.head(self.n_quizzed) for rows in self.sets]


@dataclass(frozen=True)
class Target:
    """A model that is audited."""

    name: str  # in tables
    place: Endpoint | CausalLM | None  # None where it is not asked
    truth: str = ""  # what it is known to have read
    source: str = ""  # folder or hub id of a local model
    form: str = ""  # in which an address gives log-probabilities of prompts, "" for none

    @property
    def begins(self) -> str:
        """What texts of a local model begin with, "first" or "none"; "" for others."""
        return getattr(self.place, "identity", {}).get("bos", "")


@dataclass(frozen=True)
class Finding:
    """What one method gave for one model."""

    evidence: Evidence
    controls: tuple[dict, ...] = ()  # of control_row
    counts: dict[str, int] = field(default_factory=dict)  # of status_counts
    details: pd.DataFrame = field(default_factory=pd.DataFrame)  # what is behind it, row by row


def control_row(
    name: str, n: int, value: float, low: float, high: float, decides: bool = False
) -> dict:
    """A row of ``audit_controls.csv``, but for model and method; or a method's own value."""
    shown = {"control": name, "n": n, "value": value, "ci_low": low, "ci_high": high}
    return shown | {"decides": decides}


def share_row(name: str, hits: Sequence[float], decides: bool = False) -> dict:
    """The same of a share of hits, with its interval."""
    n = len(hits)
    low, high = statistics.share_interval(round(sum(hits)), n)
    return control_row(name, n, float(np.mean(hits)) if n else math.nan, low, high, decides)


def judged(
    audit: Audit,
    target: Target,
    method: str,
    statistic: str,
    own: dict,
    chance: float,
    controls: Sequence[dict],
    note: str = "",
    n_models: int | None = None,
) -> Evidence:
    """The row of the panel; the strongest control is that with the highest upper end.

    ``own`` holds the method's own value, as :func:`control_row` gives it; ``n_models`` is the
    number of models where its interval is one over models.
    """
    deciding = [row for row in controls if row["decides"] and not math.isnan(row["ci_high"])]
    shown = max(deciding, key=lambda row: row["ci_high"], default=None)
    ends = [(row["ci_low"], row["ci_high"]) for row in deciding]
    against = strongest(ends, own["ci_low"]) or (math.nan, math.nan)
    return Evidence(
        model=target.name,
        dataset=" ".join(audit.names),
        truth=target.truth,
        method=method,
        statistic=statistic,
        control=f"{shown['control']}, at most {shown['ci_high']:.2f}" if shown else "none",
        control_value=shown["value"] if shown else math.nan,
        verdict=verdict(own["ci_low"], own["ci_high"], chance, against, n_models, CLAIMS["audit"]),
        note=note,
        p=_own_p(own, chance, n_models),
        **{name: own[name] for name in ("value", "ci_low", "ci_high", "n")},
    )


def _own_p(own: dict, chance: float, n_models: int | None) -> float:
    """p of chance of a method's own value, as :func:`control_row` gives it; NaN where none is."""
    if n_models is not None and n_models < FEWEST_MODELS:
        return math.nan
    df = math.inf if n_models is None else n_models - 1
    return statistics.end_p(own["value"], own["ci_low"], own["ci_high"], chance, df)


def status_counts(status: pd.Series) -> dict[str, int]:
    """How many answers were usable, refused, or failed."""
    kinds = {"n_valid": OK, "n_refused": REFUSED, "n_error": ERROR}
    return {name: int(status.eq(kind).sum()) for name, kind in kinds.items()}


def unusable(status: pd.Series) -> str:
    """What became of the other answers; "" where there are none."""
    others = status[status.ne(OK)]
    kinds = ", ".join(f"{kind} {count}" for kind, count in others.value_counts().items())
    return f"{len(others)} of {len(status)} answers unusable ({kinds})" if len(others) else ""
