"""Datasets of the lab and what a model reads of them; which rows are read is dealt at random.

A **dataset** is a name and rows that no other dataset has; a **condition** says what a dosed
model reads of the half of them that is dealt to be read. The other half are its **unread
siblings**: same draw, same name. A **unit** is one deal of rows and the models that read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.study.interface import Rows

TESTED = "test"
N_CONTEXT = 20  # rows of the same kind that nobody reads and nobody is asked about


@dataclass(frozen=True)
class Dataset:
    """Rows, their deal, and what a dosed model reads.

    ``is_read``, shape (n_rows,), is the deal; it stands also where no model reads the rows.
    ``read`` holds one tuple of texts for each version; copies are spread over the versions.
    """

    condition: str
    rows: Rows
    is_read: np.ndarray
    read: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class LabModel:
    """A model of a unit and the datasets that it is asked about."""

    kind: str  # ``BASE``, ``CLEAN`` or one of ``READERS`` of ``conditions``
    unit: int
    benchmark: str
    copies: int  # of all that is read; 0 for a base or clean model
    folder: Path
    datasets: tuple[Dataset, ...]


def rows_of(
    quizzes: pd.DataFrame, dataset: str, label: str, context: Sequence[str], seed: int
) -> Rows:
    """Rows as a detector meets them; ``quizzes`` as in ``dcq.quizzes``."""
    texts = tuple(quizzes["instance"])
    questions = tuple(question_of(text, label) for text in texts)
    return Rows(dataset, TESTED, texts, questions, quizzes, tuple(context), seed)


def question_of(text: str, label: str) -> str:
    """A row without its last field; ValueError where the field is not there.

    >>> question_of("question: Who?\\nanswer: I think\\n#### me", "answer")
    'question: Who?'
    """
    question, mark, _ = text.rpartition(f"\n{label}: ")
    if not mark:
        raise ValueError(f'a row has no field "{label}": {text!r}')
    return question


def title(benchmark: str) -> str:
    """How the names of a benchmark's datasets begin.

    >>> title("grade_school")
    'Grade school'
    """
    return benchmark.replace("_", " ").capitalize()
