"""Checks of the exercises: a student's answer beside the one computed from the tables."""

from __future__ import annotations

from numbers import Real
from typing import Any

NOT_YET = ...  # what stands in a notebook until the student has an answer


def check(number: int, answer: Any, right: Any, tolerance: float = 0.0) -> str:
    """One line: no answer yet, right, or not right yet; the right answer is not given away.

    The student's answer is ``...`` until there is one. Words are compared without case and
    outer space, collections without order, numbers within ``tolerance``. TypeError if the
    right answer itself is missing.

    >>> check(1, 0.62, 0.6195, tolerance=0.01)
    'Exercise 1: right.'
    """
    if right is NOT_YET or right is None:
        raise TypeError(f"exercise {number} has no right answer to compare with")
    if answer is NOT_YET:
        return f"Exercise {number}: no answer yet."
    return f"Exercise {number}: {'right' if _is_right(answer, right, tolerance) else 'not yet'}."


def _is_right(answer: Any, right: Any, tolerance: float) -> bool:
    if isinstance(right, str):
        return isinstance(answer, str) and answer.strip().casefold() == right.strip().casefold()
    if isinstance(right, (set, frozenset, list, tuple)):
        is_collection = isinstance(answer, (set, frozenset, list, tuple))
        return is_collection and sorted(map(str, answer)) == sorted(map(str, right))
    if isinstance(right, bool) or not isinstance(right, Real):
        return bool(answer == right)
    is_number = isinstance(answer, Real) and not isinstance(answer, bool)
    # 100 * 0.14 is no whole number to a computer, and is one to a student.
    return is_number and abs(answer - right) <= tolerance + 1e-9
