"""A log of an evaluation as rows and scores, and the untrusted values that it is made of."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

HARNESS, INSPECT = "lm-evaluation-harness", "Inspect"
SCORES = ["tool", "model", "task", "metric", "value", "n", "mean_of_samples"]
_WORDS = {"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
_MOST_SAMPLES = 10**12
_NO_SCORE = re.compile(r"(^|_|,)(stderr|std|var)(,|$)")  # how precise a score is


@dataclass(frozen=True)
class Log:
    """One log of an evaluation.

    Attributes:
        tool: ``HARNESS`` or ``INSPECT``.
        model, task, split: as the log names them; "" where it does not.
        rows: one row for each question: ``question`` (the text of the dataset that the model was
            shown; missing where nothing is known but a prompt that may hold examples), ``shown``
            (the whole prompt), ``target``, ``score`` (the first metric, NaN without one; of Inspect
            the mean over epochs), and the dataset's own fields in ``doc`` (the harness, with its
            ``doc_id``) or ``metadata`` (Inspect).
        scores: ``SCORES``, one row for each metric that the log states: its value, the number of
            samples, and the mean over the samples of the file (NaN where they have no such
            score).
    """

    tool: str
    model: str
    task: str
    split: str
    rows: pd.DataFrame
    scores: pd.DataFrame

    @property
    def names(self) -> list[str]:
        """Dataset and split, as prompts say them."""
        return [self.task, self.split or "test"]


def scores_table(
    about: Sequence[str], stated: Sequence[tuple[str, float, int, float]]
) -> pd.DataFrame:
    """``Log.scores`` from tool, model and task, and from metric, value, n and mean of samples.

    Standard errors, and metrics without a value, are left out.
    """
    rows = [
        (*about, *one) for one in stated if not (_NO_SCORE.search(one[0]) or math.isnan(one[1]))
    ]
    return pd.DataFrame(rows, columns=SCORES)


def mean(values: Sequence[float]) -> float:
    """The mean of some scores; NaN of none."""
    return sum(values) / len(values) if values else math.nan


def as_count(value: Any, other: int) -> int:
    """A number of samples; ``other`` in place of what is none."""
    number = as_score(value)
    return int(number) if 0 < number < _MOST_SAMPLES else other


def as_object(value: Any) -> Mapping[str, Any]:
    """An object; an empty one in place of all else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """A list; an empty one in place of all else."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """A text, or a number as text; of a list the lines of its texts; "" for all else."""
    if isinstance(value, list):
        return "\n".join(as_text(one) for one in value if not isinstance(one, list))
    return str(value) if isinstance(value, str | int | float) else ""


def as_name(value: Any) -> str:
    """The name of a model, and no path of the machine."""
    name = as_text(value)
    return Path(name).name if Path(name).is_absolute() else name


def as_score(value: Any) -> float:
    """A score as a number, NaN for what is none.

    Correct is 1, incorrect and no answer are 0, and partially correct is 0.5.

    >>> as_score("C"), as_score("0.25"), as_score(True)
    (1.0, 0.25, 1.0)
    """
    if isinstance(value, str):
        value = _WORDS.get(value.strip().lower(), value)
    if not isinstance(value, str | int | float):
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan
