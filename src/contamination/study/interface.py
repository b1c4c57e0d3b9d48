"""What a detector is: one function from a model and rows to scores, higher = read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:  # the protocol reads frames alone and shall not load a model library
    from contamination.models.loading import CausalLM

# What a detector must be able to see of a model.
ANSWERS, LOG_PROBABILITIES, WEIGHTS = "answers", "log-probabilities", "weights"
ACCESSES = (ANSWERS, LOG_PROBABILITIES, WEIGHTS)  # each includes those before it
WORD_PROBLEMS = "grade_school"  # the mini-benchmark whose rows hold numbers
TESTED = "test"  # split under whose name models meet rows
N_CONTEXT = 20  # rows of the same kind that nobody sees and nobody is asked about


@dataclass(frozen=True)
class Rows:
    """Rows of one dataset as a detector meets them: nothing in it says which of them were read.

    All sequences but ``context`` have one entry for each row.
    """

    dataset: str  # the name that stands above each row, "" where nothing does
    split: str
    texts: tuple[str, ...]  # whole rows; the label is the last line
    questions: tuple[str, ...]  # the same without the label
    quizzes: pd.DataFrame  # each row and its paraphrases, as in ``dcq.quizzes``
    context: tuple[str, ...]  # whole rows of the same kind; none of them is tested, none was read
    seed: int = 0  # of whatever the detector draws

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Detector:
    """A method, what it needs, and its one function.

    ``score`` takes a model and rows and gives one score for each row, shape (n_rows,). The model is
    one that runs here or, for ``tokens.row_tokens`` alone, one whose tokens are stored.
    """

    name: str
    access: str
    score: Callable[[Any, Rows], Any]
    source: str = ""  # authors and number of the paper


def row_scores(detector: Detector, lm: CausalLM, rows: Rows) -> np.ndarray:
    """Scores of rows under a model, shape (n_rows,); ValueError where one is undefined."""
    return checked_scores(detector.name, detector.score(lm, rows), rows)


def checked_scores(name: str, values: Any, rows: Rows) -> np.ndarray:
    """What a detector returned, if it is one finite score for each row; else a ValueError."""
    scores = np.asarray(values, dtype=float)
    if scores.shape != (len(rows),):
        raise ValueError(
            f"{name} needs one score for each of {len(rows)} rows, got an array of shape "
            f"{scores.shape}"
        )
    if n_undefined := int((~np.isfinite(scores)).sum()):
        raise ValueError(f"{name} gives NaN or infinity for {n_undefined} rows: give finite scores")
    return scores


# Rows of the lab


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
