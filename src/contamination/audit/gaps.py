"""How far a model lies above what needs no memory, on the same kind of quizzes.

A rule that finds every original leaves no room above it, so its level cannot
be a bar. What can be asked is whether the model is right more often on the
dataset than on rows that it cannot have read, over all quizzes and over those
that the rule gets wrong. Without unseen rows the model is held, where a rule
is wrong, against the strongest other taker without memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from contamination.audit.evidence import verdict
from contamination.core.statistics import share_difference_interval
from contamination.core.verdicts import CLAIMS, CONTROL_FAILS, FOUND
from contamination.dcq.comparison import FEWEST_QUIZZES

GAP = "gap to"


@dataclass(frozen=True)
class QuizScores:
    """One set of quizzes: right answers, 0 to 1, shape (n_positions, n)."""

    right: np.ndarray  # of the model
    others: Mapping[str, np.ndarray]  # of takers without memory, by name


def gaps(dataset: QuizScores, unseen: QuizScores | None, unseen_name: str) -> list[dict]:
    """Rows of ``audit_controls.csv``, one for each gap of the model to what has no memory.

    Both sets are taken by the same takers. Returns control, n, value (difference of shares,
    -1 to 1) with its interval, decides (false where a taker is wrong too seldom) and other
    (the share it is held against).
    """
    found = []
    if unseen is not None:
        everywhere = np.ones_like(dataset.right)
        all_unseen = (unseen.right, np.ones_like(unseen.right))
        found.append(_gap(f"{GAP} {unseen_name}", dataset.right, everywhere, *all_unseen))
    for name, credit in dataset.others.items():
        wrong, where = 1 - credit, f'where the rule "{name}" is wrong'
        if unseen is not None:
            other = (unseen.right, 1 - unseen.others[name])
            found.append(_gap(f"{GAP} {unseen_name} {where}", dataset.right, wrong, *other))
            continue
        rest = {other: values for other, values in dataset.others.items() if other != name}
        if rest:
            strongest = max(rest, key=lambda other, wrong=wrong: (rest[other] * wrong).sum())
            other = (rest[strongest], wrong)
            found.append(_gap(f"{GAP} {strongest} {where}", dataset.right, wrong, *other))
    return found


def _gap(control: str, *pairs: np.ndarray) -> dict:
    """Right answers and weights of the model, then of what it is held against."""
    right, weights, other, other_weights = pairs
    # Numbers of quizzes are means over positions: instances are what an interval rests on.
    n, n_other = (values.sum() / len(values) for values in (weights, other_weights))
    n_right = (right * weights).sum() / len(right)
    n_other_right = (other * other_weights).sum() / len(other)
    low, high = share_difference_interval(n_right, n, n_other_right, n_other)
    other_share = n_other_right / n_other if n_other else math.nan
    row = {"control": control, "n": round(n), "ci_low": low, "ci_high": high}
    row |= {"value": n_right / n - other_share if n else math.nan, "other": other_share}
    is_all = (weights == 1).all()
    return row | {"decides": bool(is_all or min(n, n_other) >= FEWEST_QUIZZES)}


def verdict_of_gaps(ci_low: float, ci_high: float, chance: float, found: Sequence[dict]) -> str:
    """The strongest verdict that the interval of a level and its gaps allow.

    That of ``evidence.verdict`` with the gaps as its control: control fails where the level lies
    above chance and a deciding gap reaches down to 0, open where no gap decides.
    """
    deciding = [row["ci_low"] for row in found if row["decides"]]
    # What the level says by itself, if there is a gap that could overturn it.
    bar = -math.inf if deciding else math.nan
    of_level = verdict(ci_low, ci_high, chance, (bar, bar), claim=CLAIMS["audit"])
    return CONTROL_FAILS if of_level in FOUND and min(deciding) <= 0 else of_level
