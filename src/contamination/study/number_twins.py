"""Number twins: the same problem with other numbers, which no model can have seen.

A model that has seen a problem prefers its numbers to others that fit as well. The idea is that of
contamcheck 0.1.0 (a package); the code is our own. Twins have as many digits at each place as the
problem, so that they have as many tokens where digits are tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from contamination.core.storage import hash_of
from contamination.dcq.contaminating import training_texts
from contamination.models.loading import CausalLM
from contamination.models.local import token_log_probs
from contamination.study.interface import LOG_PROBABILITIES, Detector, Rows

N_TWINS = 8
MAX_DRAWS = 5_000
NUMBER = re.compile(r"\d+")
STEP = re.compile(r"(\d+) ([-+*/]) (\d+) = (\d+)")
SWAPPED, SOLVED = "numbers of other rows", "numbers with their answer"
FORMS = (SWAPPED, SOLVED)
NAMES = {form: f"number twins ({form})" for form in FORMS}  # of the detectors


def with_numbers(text: str, numbers: dict[str, str]) -> str:
    """A text with each number replaced by the one that stands for it.

    >>> with_numbers("2 + 12 = 14", {"2": "3", "12": "11", "14": "14"})
    '3 + 11 = 14'
    """
    return NUMBER.sub(lambda found: numbers[found[0]], text)


def swapped_twin(text: str, pool: Sequence[str], generator: np.random.Generator) -> str | None:
    """The text with each of its numbers swapped for another one of as many digits; None if none.

    Equal numbers stay equal. ``pool`` holds numbers of other rows. Nothing is computed anew, so
    the answer does not follow from the question any more.
    """
    numbers = {}
    for number in dict.fromkeys(NUMBER.findall(text)):
        others = [n for n in pool if len(n) == len(number) and n != number]
        if not others:
            return None
        numbers[number] = others[generator.integers(len(others))]
    return with_numbers(text, numbers)


def solved_twin(text: str, generator: np.random.Generator) -> str | None:
    """The text with other numbers in the question, and every step of the answer computed anew.

    Each number keeps how many digits it has, in question and answer. None if no step of the form
    "a + b = c" is found, a step does not follow from what stands before it, or no other numbers
    fit in 5,000 draws.
    """
    steps = [(a, sign, b, c) for a, sign, b, c in STEP.findall(text)]
    results = {c for *_, c in steps}
    given = [n for n in dict.fromkeys(NUMBER.findall(text)) if n not in results]
    if not steps or not given:
        return None
    for _ in range(MAX_DRAWS):
        drawn = {n: str(generator.integers(10 ** (len(n) - 1), 10 ** len(n))) for n in given}
        numbers = _computed(drawn, steps)
        if numbers and set(NUMBER.findall(text)) <= set(numbers):
            return with_numbers(text, numbers)
    return None


def _computed(drawn: dict[str, str], steps: Sequence[tuple]) -> dict[str, str] | None:
    """The drawn numbers and each step's result, if all are whole and as long as they were."""
    numbers = dict(drawn)
    for first, sign, second, result in steps:
        if first not in numbers or second not in numbers:
            return None
        a, b = int(numbers[first]), int(numbers[second])
        if sign == "/" and (b == 0 or a % b):
            return None
        value = {"+": a + b, "-": a - b, "*": a * b, "/": a // max(b, 1)}[sign]
        if value < 0 or len(str(value)) != len(result):
            return None
        if numbers.setdefault(result, str(value)) != str(value):
            return None  # the row has one number where the twin would need two
    return numbers


def twins(texts: Sequence[str], form: str, seed: int = 0) -> list[list[str]]:
    """Eight twins of each text in one form, seeded by the text itself; fewer where none fit.

    Raises:
        ValueError: for an unknown form, or a text without a number.
    """
    if form not in FORMS:
        raise ValueError(f'unknown form "{form}": choose one of {", ".join(FORMS)}')
    if without := [text for text in texts if not NUMBER.search(text)]:
        raise ValueError(f"a row has no number to swap: {without[0][:80]!r}")
    pools = [NUMBER.findall(text) for text in texts]
    every = sorted({number for pool in pools for number in pool})
    found = []
    for text in texts:
        generator = np.random.default_rng(int(hash_of([seed, form, text])[:15], 16))
        one: Callable[[], str | None] = partial(solved_twin, text, generator)
        if form == SWAPPED:
            one = partial(swapped_twin, text, every, generator)
        own = (one() for _ in range(N_TWINS))
        found.append([twin for twin in own if twin and twin != text])
    return found


def preference(lm: CausalLM, rows: Rows, form: str) -> np.ndarray:
    """Share of a row's twins that are less likely than the row, shape (n_rows,), ties one half.

    The model reads all of them under the header of the rows. 0.5 for a row without twins: nothing
    is known of it. Errors as :func:`twins`.
    """
    own = twins(rows.texts, form, rows.seed)
    every = [
        text for first, others in zip(rows.texts, own, strict=True) for text in (first, *others)
    ]
    scored = token_log_probs(lm, training_texts(every, rows.dataset, rows.split))
    means = iter(float(one.token_log_probs.mean()) for one in scored)
    shares = []
    for others in own:
        value = next(means)
        of_twins = np.array([next(means) for _ in others])
        shares.append(np.mean((value > of_twins) + (value == of_twins) / 2) if others else 0.5)
    return np.array(shares)


def number_twins(reference: CausalLM, form: str) -> Detector:
    """How much more a model prefers a row to its twins than a reference model does, -1 to 1."""

    def score(lm: CausalLM, rows: Rows) -> np.ndarray:
        return preference(lm, rows, form) - preference(reference, rows, form)

    return Detector(NAMES[form], LOG_PROBABILITIES, score, source="after contamcheck 0.1.0")
