"""Rows of real benchmarks, dealt to what a real model reads: ``docs/protocol_pretrained.md``.

The rows and their perturbations are those that the authors of the DCQ released. A **deal** has two
units, **twins**: of each dataset one may read the rows that the other may not. So the number of a
unit is twice that of its deal, plus one for the second twin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from contamination.models.local import CausalLM, token_log_probs
from contamination.study.conditions import (
    CLEAN,
    FRESH,
    PARAPHRASE,
    SEVERAL,
    SWAP,
    VERBATIM,
    WITHOUT_LABEL,
)
from contamination.study.interface import LOG_PROBABILITIES, Detector, Rows, question_of

RELEASED = "released rows"  # stands where the lab names a mini-benchmark
LABEL = "label"  # the last field of WNLI, AG News and RTE; the others have none
# For each deal two conditions and their datasets, which change places in the second twin.
PAIRS = (
    ((VERBATIM, PARAPHRASE, "GSM8k", "WNLI"), (SEVERAL, WITHOUT_LABEL, "AG News", "RTE")),
    ((VERBATIM, SEVERAL, "GSM8k", "AG News"), (PARAPHRASE, WITHOUT_LABEL, "RTE", "WNLI")),
    ((VERBATIM, WITHOUT_LABEL, "AG News", "WNLI"), (PARAPHRASE, SEVERAL, "GSM8k", "RTE")),
)
# The three shortest datasets go round these places; the clean model reads the last.
SHORTEST, PLACES = ("DROP", "SAMSum", "XSum"), (SWAP, FRESH, CLEAN)
UNITS = tuple(range(2 * len(PAIRS)))


@dataclass(frozen=True)
class Dataset:
    """Rows, their deal, and what a model reads.

    ``is_read``, shape (n_rows,), is the deal; it stands also where no model reads the rows.
    ``read`` holds one tuple of texts for each version; copies are spread over the versions.
    """

    condition: str
    rows: Rows
    is_read: np.ndarray
    read: tuple[tuple[str, ...], ...] = ()


def datasets_of(number: int) -> dict[str, str]:
    """The dataset of each condition of a unit, and of what its clean model reads (``CLEAN``)."""
    deal_number, is_second = divmod(number, 2)
    names = {}
    for first, second, one, other in PAIRS[deal_number]:
        names |= {first: other, second: one} if is_second else {first: one, second: other}
    round_ = SHORTEST[deal_number:] + SHORTEST[:deal_number]
    return names | dict(zip(PLACES, round_, strict=True))


def deal(quizzes: pd.DataFrame, number: int) -> dict[str, Dataset]:
    """What is tested and read in a unit, by condition.

    Of ``quizzes``, as ``dcq.quizzes.released_quizzes``, half the rows of each dataset are dealt.
    In the swap arm a model reads the original of those and of all others ``option_a``; of
    ``CLEAN`` it reads all. Nothing stands above a row. ValueError for an unknown unit, or where a
    row has no label that is to be left out.
    """
    if number not in UNITS:
        raise ValueError(f"no unit {number}: they are {UNITS[0]} to {UNITS[-1]}")
    deal_number, is_second = divmod(number, 2)
    datasets = {}
    for condition, name in datasets_of(number).items():
        own = quizzes[quizzes["dataset"].eq(name)].reset_index(drop=True)
        generator = np.random.default_rng([deal_number, *name.encode()])
        is_read = (generator.permutation(len(own)) < len(own) // 2) != bool(is_second)
        texts, option = own["instance"], own["option_a"]
        read: Any = {
            VERBATIM: [texts[is_read]],
            PARAPHRASE: [option[is_read]],
            SEVERAL: [own.loc[is_read, f"option_{letter}"] for letter in "abc"],
            SWAP: [texts.where(is_read, option)],
            FRESH: [],
            CLEAN: [texts],
        }.get(condition)
        if condition == WITHOUT_LABEL:
            read = [[question_of(text, LABEL) for text in texts[is_read]]]
        questions = tuple(text.rpartition(f"\n{LABEL}: ")[0] or text for text in texts)
        rows = Rows("", "", tuple(texts), questions, own, ())
        datasets[condition] = Dataset(condition, rows, is_read, tuple(map(tuple, read)))
    return datasets


def reading_order(
    datasets: Sequence[Dataset], copies: int, batch_size: int, seed: int
) -> list[str]:
    """Texts as a model reads them: every row ``copies`` times, in turn in each of its versions.

    A step reads ``batch_size`` different rows of like length, since padding is computed too; the
    order of the steps is random. What a whole step does not hold, the longest rows, is read last;
    these few steps may hold a row more than once.
    """
    steps = []
    for place in range(copies):
        once = [text for one in datasets if one.read for text in one.read[place % len(one.read)]]
        once = sorted(once, key=lambda text: (len(text), text))
        steps += [once[start : start + batch_size] for start in range(0, len(once), batch_size)]
    order = np.random.default_rng(seed).permutation(len(steps))
    # A shorter last step would shift all that follow, so it is read last.
    order = sorted(order, key=lambda step: len(steps[step]) < batch_size)
    return [text for step in order for text in steps[step]]


def _margins(lm: CausalLM, rows: Rows) -> np.ndarray:
    log_probs = [
        np.array([scored.token_log_probs.sum() for scored in token_log_probs(lm, list(texts))])
        for texts in (rows.texts, rows.quizzes["option_a"])
    ]
    return log_probs[0] - log_probs[1]


# How much likelier a row is than one paraphrase of it, nats. In the swap arm one of the two was
# read, and chance alone dealt which.
OPTION_MARGIN = Detector("option margin", LOG_PROBABILITIES, _margins)
