"""Datasets of the lab and what a model reads of them; which rows are read is dealt at random.

A **dataset** is a name and rows that no other dataset has; a **condition** says what a dosed
model reads of the half of them that is dealt to be read. The other half are its **unread
siblings**: same draw, same name. A **unit** is one base model with weights, order and background
sample of its own, and one deal of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import numpy as np
import pandas as pd

from contamination.data.partitions import format_instance
from contamination.dcq.contaminating import training_texts, with_other_labels
from contamination.dcq.perturbation import quizzes_of_groups
from contamination.lab import world
from contamination.lab.benchmarks import BENCHMARKS
from contamination.lab.grammar import draw_groups, draw_instances
from contamination.lab.recipes import Dose
from contamination.study.conditions import (
    ALONE,
    BASE,
    CLEAN,
    DEALT,
    DOSED,
    ELSEWHERE,
    FEW,
    FRESH,
    FRESH_BESIDE,
    LATER,
    LONG,
    ORDERED,
    PARAPHRASE,
    PLACEBO,
    SEVERAL,
    SHUFFLED,
    TRAIN_SPLIT,
    VERBATIM,
    WITHOUT_LABEL,
    WRONG_LABEL,
)
from contamination.study.interface import Rows
from contamination.study.protocol import RANKED_CELL
from contamination.study.whole_sets import ordered_documents

TESTED, TRAIN = "test", "train"
N_READ = 50  # rows of a dataset that are dealt to be read; as many siblings are not
N_CONTEXT = 20  # rows of the same kind that nobody reads and nobody is asked about
N_SPREAD = 3  # paraphrases over which copies are spread; no quiz shows them
N_LARGE = 200  # rows of each part of the arm of whole sets
REFERENCE_SEED = 900  # of no unit
LARGE_PARTS = ("suspect", "validation", "second unread")


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

    kind: str  # one of ``conditions.MODELS``
    unit: int
    benchmark: str
    copies: int  # of all that is read; 0 for a base or clean model
    folder: Path
    datasets: tuple[Dataset, ...]


def deal(benchmark: str, seed: int, n_read: int = N_READ) -> list[Dataset]:
    """One dataset of 2 n_read rows for each of ``DEALT``, rows and names drawn by the seed."""
    columns = BENCHMARKS[benchmark].columns
    n_rows = 2 * n_read
    n_drawn = n_rows * len(DEALT) + N_CONTEXT
    groups = draw_groups(BENCHMARKS[benchmark], n_drawn, seed, TESTED, 5 + N_SPREAD)
    quizzes = quizzes_of_groups(groups[groups["option"] <= 5], columns)
    spread = [_printed(groups[groups["option"] == 6 + k], columns) for k in range(N_SPREAD)]
    train_rows = _printed(draw_instances(BENCHMARKS[benchmark], n_read, seed, TRAIN), columns)
    context = tuple(quizzes["instance"].iloc[-N_CONTEXT:])
    generator = np.random.default_rng([seed, 11])
    letters = generator.permutation(list(ascii_uppercase))
    datasets = []
    for place, condition in enumerate(DEALT):
        part = slice(place * n_rows, (place + 1) * n_rows)
        own = quizzes.iloc[part].reset_index(drop=True)
        is_read = generator.permutation(n_rows) < n_read
        texts, label = own["instance"].tolist(), columns[-1]
        questions = [question_of(text, label) for text in texts]
        versions = {
            VERBATIM: [texts],
            WITHOUT_LABEL: [questions],
            WRONG_LABEL: [with_other_labels(texts, questions, generator)],
            PARAPHRASE: [own["fifth"].tolist()],
            SEVERAL: [version[part] for version in spread],
        }.get(condition, [])
        name = f"{title(benchmark)} {letters[place]}"
        read = [[text for text, dealt in zip(v, is_read, strict=True) if dealt] for v in versions]
        split = TRAIN if condition == TRAIN_SPLIT else TESTED
        if condition == TRAIN_SPLIT:
            read = [train_rows]
        rows = rows_of(own, name, label, context, seed)
        read = tuple(training_texts(version, name, split) for version in read)
        datasets.append(Dataset(condition, rows, is_read, read))
    return datasets


def deal_large(benchmark: str, seed: int, n_rows: int = N_LARGE) -> dict[str, Rows]:
    """``LARGE_PARTS`` of one draw under one name, for detectors of whole sets."""
    columns = BENCHMARKS[benchmark].columns
    n_drawn = n_rows * len(LARGE_PARTS)
    groups = draw_groups(BENCHMARKS[benchmark], n_drawn, seed, "validation", 4)
    quizzes = quizzes_of_groups(groups, columns)
    parts = {}
    for place, part in enumerate(LARGE_PARTS):
        own = quizzes.iloc[place * n_rows : (place + 1) * n_rows].reset_index(drop=True)
        parts[part] = rows_of(own, f"{title(benchmark)} whole", columns[-1], (), seed)
    return parts


def rows_of(
    quizzes: pd.DataFrame, dataset: str, label: str, context: Sequence[str], seed: int
) -> Rows:
    """Rows as a detector meets them; ``quizzes`` as in ``dcq.perturbation``."""
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


def _printed(rows: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    return [format_instance(row, columns) for row in rows[list(columns)].to_dict("records")]


def title(benchmark: str) -> str:
    """How the names of a benchmark's datasets begin.

    >>> title("grade_school")
    'Grade school'
    """
    return benchmark.replace("_", " ").capitalize()


def doses(datasets: Sequence[Dataset], copies: int) -> list[Dose]:
    """What a model reads at ``copies`` copies of every row, spread over a dataset's versions.

    >>> rows = Rows("D", "test", (), (), None, ())
    >>> three = Dataset("several", rows, np.array([]), (("a",), ("b",), ("c",)))
    >>> [dose.copies for dose in doses([three], 4)]
    [2, 1, 1]
    """
    return [
        Dose(texts, n)
        for dataset in datasets
        for place, texts in enumerate(dataset.read)
        if (n := copies // len(dataset.read) + (place < copies % len(dataset.read)))
    ]


@dataclass(frozen=True)
class Unit:
    """One base model and one mini-benchmark whose rows are dealt; its models are trained on demand.

    ``n_tokens`` of background are read beside or after the doses, by kind of model (``CLEAN``,
    ``DOSED``, ``LATER``, ``LONG``); ``training`` are fields of the recipe. ``number`` seeds the
    deal of rows and the order of training.
    """

    lab: world.World
    base: Path
    number: int
    benchmark: str
    n_tokens: Mapping[str, int]
    training: Mapping[str, Any] = field(default_factory=dict)
    n_read: int = N_READ

    @cached_property
    def datasets(self) -> tuple[Dataset, ...]:
        """The conditions of this benchmark, each with rows that are read and rows that are not."""
        conditions = DEALT if self.benchmark == RANKED_CELL[0] else ELSEWHERE
        datasets = deal(self.benchmark, self.number, self.n_read)
        return tuple(dataset for dataset in datasets if dataset.condition in conditions)

    @property
    def few(self) -> tuple[Dataset, ...]:
        """The datasets of which every model is asked, the clean one too."""
        return tuple(dataset for dataset in self.datasets if dataset.condition in FEW)

    def continued(self, parent: Path, kind: str, read: Sequence[Dose] = ()) -> Path:
        """Folder of ``parent`` trained on, from the cache where it is there."""
        n_tokens = self.n_tokens[kind]
        return world.continued_model(self.lab, parent, read, n_tokens, self.number, **self.training)

    def model(self, kind: str, copies: int, folder: Path, datasets: Sequence[Dataset]) -> LabModel:
        """The record of a model of this unit: ``datasets`` are those that it is asked of."""
        return LabModel(kind, self.number, self.benchmark, copies, folder, tuple(datasets))

    def clean(self) -> LabModel:
        """Read background alone; asked of few datasets, since all are alike to it."""
        return self.model(CLEAN, 0, self.continued(self.base, CLEAN), self.few)

    def dosed(self, copies: int) -> LabModel:
        """Read every condition; at one copy, the least that can be read, few are asked."""
        folder = self.continued(self.base, DOSED, doses(self.datasets, copies))
        return self.model(DOSED, copies, folder, self.datasets if copies > 1 else self.few)


def models_of(unit: Unit, copies: Sequence[int]) -> Iterator[LabModel]:
    """A unit's models, doses rising; what follows on a dose follows on the largest.

    The longest training and the arm of verbatim rows alone stand in one mini-benchmark.
    """
    verbatim = unit.datasets[:1]
    yield unit.model(BASE, 0, unit.base, verbatim)
    yield unit.clean()
    for dose in copies:
        yield (dosed := unit.dosed(dose))
    later = unit.continued(dosed.folder, LATER)
    yield unit.model(LATER, dose, later, verbatim)
    rows = replace(verbatim[0].rows, dataset=f"{title(unit.benchmark)} Z0")
    yield unit.model(PLACEBO, dose, dosed.folder, [replace(verbatim[0], rows=rows)])
    benchmark, _, _, ranked = RANKED_CELL
    if unit.benchmark == benchmark:
        yield unit.model(LONG, dose, unit.continued(later, LONG), verbatim)
        alone = unit.continued(unit.base, DOSED, doses(verbatim, ranked))
        yield unit.model(ALONE, ranked, alone, verbatim)


def whole_set_models(unit: Unit, copies: int, n_rows: int = N_LARGE) -> Iterator[LabModel]:
    """Models that read a dataset as documents of consecutive rows, in published order or shuffled.

    Asked are the rows that were read and others of the same draw and name, which nobody read; the
    validation rows are the context of both.
    """
    parts = deal_large(unit.benchmark, unit.number, n_rows)
    suspect, validation, second = (parts[name] for name in LARGE_PARTS)
    suspect, second = (replace(rows, context=validation.texts) for rows in (suspect, second))
    order = np.random.default_rng([unit.number, 12]).permutation(n_rows)
    shuffled = tuple(suspect.texts[place] for place in order)
    read = ((ORDERED, suspect.texts, FRESH), (SHUFFLED, shuffled, FRESH_BESIDE))
    every = np.ones(n_rows, dtype=bool)
    clean = unit.continued(unit.base, CLEAN)
    asked = [Dataset(ORDERED, suspect, every), Dataset(FRESH, second, every)]
    yield unit.model(CLEAN, 0, clean, asked)
    for condition, texts, unread in read:
        documents = ordered_documents(texts, suspect.dataset, suspect.split)
        dosed = unit.continued(unit.base, DOSED, [Dose(documents, copies)])
        asked = [Dataset(condition, suspect, every), Dataset(unread, second, every)]
        yield unit.model(DOSED, copies, dosed, asked)


def reference_models(lab: world.World, n_tokens: int) -> list[Path]:
    """Eight base models outside the matrix that differ in ability, for ConStat.

    Two small sizes, each with an eighth, a quarter, half and all of ``n_tokens``.
    """
    return [
        world.base_model(lab, n_tokens // part, REFERENCE_SEED, size)
        for size in ("XS", "S")
        for part in (8, 4, 2, 1)
    ]
