"""One dataset of the lab for each way of reading it, all in one model.

A **dataset** here is a name and a test partition of a mini-benchmark; a
**condition** says what the dosed model read of it. Every instance belongs to
one dataset, so one model carries all conditions on disjoint partitions, and
what differs between two of them is the condition and the draw of instances.
Every seed draws instances anew and deals the names anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

import numpy as np
import pandas as pd

from contamination.dcq.contaminating import training_texts, with_wrong_label, without_label
from contamination.dcq.perturbation import quizzes_of_groups
from contamination.lab.benchmarks import BENCHMARKS
from contamination.lab.grammar import draw_groups

VERBATIM = "verbatim"
WITHOUT_LABEL = "without label"
WRONG_LABEL = "wrong label"
PARAPHRASE = "paraphrase"
TRAIN_SPLIT = "train split"
FRESH = "fresh rows"
LATER = "later clean training"
REFERENCE = "reference"
# What a model reads of a dataset, in the order of the tables. Of the last two it reads nothing;
# the reference is what Min-k% Prob compares with, and is no condition.
DEALT = (VERBATIM, WITHOUT_LABEL, WRONG_LABEL, PARAPHRASE, TRAIN_SPLIT, FRESH, REFERENCE)
CONDITIONS = (*DEALT[:-1], LATER)
TESTED, TRAIN = "test", "train"
LABEL_COLUMN = "label"
N_PARAPHRASES = 5  # four options of a quiz, and the one that is read: no quiz shows it

CLEAN, DOSED, TRAINED_ON = "clean", "dosed", "dosed, then clean text"

TRUTHS = {
    VERBATIM: "read word for word, with its label",
    WITHOUT_LABEL: "read without its label",
    WRONG_LABEL: "read with a wrong label",
    PARAPHRASE: "a paraphrase was read",
    TRAIN_SPLIT: "only the train split was read",
    FRESH: "never read",
    LATER: "read word for word, then clean text",
}


@dataclass(frozen=True)
class Partition:
    """A test partition and what is read of its dataset."""

    condition: str  # one of ``DEALT``
    dataset: str  # the name that stands above its instances
    quizzes: pd.DataFrame  # as in ``dcq.perturbation``; column instance is the row itself
    read: tuple[str, ...]  # texts that a dosed model reads; empty where it reads nothing


def deal(benchmark: str, n: int, seed: int) -> list[Partition]:
    """Disjoint partitions of n instances, one for each of ``DEALT``.

    ``benchmark`` has a column label; the seed is of instances, wrong labels and names.
    """
    columns = BENCHMARKS[benchmark].columns
    n_parts = len(DEALT) + 1
    groups = draw_groups(BENCHMARKS[benchmark], n * n_parts, seed, TESTED, N_PARAPHRASES)
    quizzes = quizzes_of_groups(groups, columns)
    letters = np.random.default_rng([seed, 11]).permutation(list(ascii_uppercase))
    train_rows = quizzes["instance"].iloc[-n:].tolist()
    parts = []
    for place, condition in enumerate(DEALT):
        own = quizzes.iloc[place * n : (place + 1) * n].reset_index(drop=True)
        dataset = f"{benchmark.capitalize()} {letters[place]}"
        read = _read_texts(condition, own, train_rows, seed)
        split = TRAIN if condition == TRAIN_SPLIT else TESTED
        parts.append(Partition(condition, dataset, own, training_texts(read, dataset, split)))
    return parts


def _read_texts(
    condition: str, quizzes: pd.DataFrame, train_rows: list[str], seed: int
) -> list[str]:
    instances = quizzes["instance"].tolist()
    by_condition = {
        VERBATIM: instances,
        WITHOUT_LABEL: without_label(instances, LABEL_COLUMN),
        WRONG_LABEL: with_wrong_label(instances, LABEL_COLUMN, seed),
        PARAPHRASE: quizzes["fifth"].tolist(),
        TRAIN_SPLIT: train_rows,
    }
    return by_condition.get(condition, [])


def questions(partition: Partition) -> list[str]:
    """The partition's instances without their labels."""
    return without_label(partition.quizzes["instance"].tolist(), LABEL_COLUMN)


@dataclass(frozen=True)
class LabModel:
    """A model of the study and the partitions it is asked about."""

    kind: str  # "clean", "dosed" or "dosed, then clean text"
    copies: int  # of everything that is read; 0 for a clean model
    seed: int  # of its partitions and of the order of its training
    folder: Path
    partitions: tuple[Partition, ...]  # with the reference last
