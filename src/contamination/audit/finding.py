"""What a method found about a model: its row of the panel beside its controls.

A verdict compares the method's 95 % interval with chance and with the intervals of its
controls (``evidence.verdict``); that of a quiz asks for gaps above 0 (``audit.gaps``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from contamination.audit.evidence import Evidence, verdict
from contamination.audit.prepared import Audit
from contamination.core import statistics
from contamination.core.verdicts import CLAIMS, FEWEST_MODELS, strongest
from contamination.models.causal import CausalLM
from contamination.models.chat import ERROR, OK, REFUSED, Endpoint

CLEAN_LM = "clean model of the lab"


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
    """What one method gave for one model."""

    evidence: Evidence
    controls: tuple[dict, ...] = ()  # of control_row
    counts: dict[str, int] = field(default_factory=dict)  # of status_counts
    details: pd.DataFrame = field(default_factory=pd.DataFrame)  # what is behind it, row by row
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)  # the paper's, by their names


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


def build_finding(
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


def describe_unusable(status: pd.Series) -> str:
    """What became of the other answers; "" where there are none."""
    others = status[status.ne(OK)]
    kinds = ", ".join(f"{kind} {count}" for kind, count in others.value_counts().items())
    return f"{len(others)} of {len(status)} answers unusable ({kinds})" if len(others) else ""
