"""Checks of the exercises: a student's function on stored cases, or an answer beside the right one.

The standard library alone, with the cases as JSON in the file of the same name, so that
notebooks and pages in a browser can use the same two files. A case holds ``arguments`` and what
is ``expected``; under ``slips``, what functions that go wrong in a known way return.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import cache
from itertools import product
from numbers import Real
from pathlib import Path
from typing import Any

NOT_YET = ...  # what stands in a notebook until the student has an answer
TOLERANCE = 1e-6  # of a number, relative where it is above 1
N_SHOWN = 3  # failing cases that a report describes
N_DEALS = 20  # that are made of each list of modules, with a seed each
LETTERS = "ABCD"  # positions of a quiz
SHORT = reprlib.Repr()  # how a report shows arguments and answers
SHORT.maxlist = 12
# Slips that any number may show, tried after those of an exercise.
GENERAL_SLIPS: dict[str, tuple[Callable[[float], float], str]] = {
    "direction": (lambda x: -x, "the sign is reversed."),
    "direction, complement": (lambda x: 1 - x, "this is one minus the answer."),
    "direction, complement in percent": (lambda x: 100 - x, "this is 100 minus the answer."),
    "unit, percent": (lambda x: 100 * x, "a percentage, where a share is asked for."),
    "unit, share": (lambda x: x / 100, "a share, where a percentage is asked for."),
    "unit, exponential": (lambda x: math.exp(min(x, 700)), "this is the answer's exponential."),
}


@cache
def stored() -> dict[str, dict]:
    """By name, each exercise's ``cases``, and its ``slips`` with what is said about them."""
    return json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def grade(name: str, function: Callable) -> str:
    """How many cases of an exercise a function passes, which fail, and what they look like.

    Numbers may be of any type, collections a list, tuple, set, array or generator, letters a
    string. The slip named is the one that explains most answers. KeyError for an unknown name.

    >>> print(grade("kappa", lambda right, chosen, n: (right - chosen) / n))
    kappa: 2 of 7 cases pass.
      by hand: kappa(60, 10, 100) gave 0.5, expected 0.5555555556
      below habit: kappa(5, 15, 100) gave -0.1, expected -0.1176470588
      all right: kappa(50, 10, 50) gave 0.8, expected 1.0
    Looks like: denominator: habit's answers leave no room for memory, so divide by n - chosen.
    """
    exercise = stored()[name]
    cases = exercise["cases"]
    answers = [_answer(case, function) for case in cases]
    if all(answer is None for answer in answers):
        return f"{name}: not written yet (it gives None; is there a return?)."
    is_right = [_agrees(a, case["expected"]) for a, case in zip(answers, cases, strict=True)]
    if all(is_right):
        return f"{name}: all {len(cases)} cases pass."
    lines = [f"{name}: {sum(is_right)} of {len(cases)} cases pass."]
    failing = [n for n, right in enumerate(is_right) if not right]
    lines += [_failure(name, cases[n], answers[n]) for n in failing[:N_SHOWN]]
    return "\n".join(lines + _slip(exercise, answers, sum(is_right)))


def _answer(case: Mapping, function: Callable) -> Any:
    """What a function gives for a case, or the exception; of a measured case, the measure."""
    try:
        if "rounds" in case:
            letters = [_letter(function(deepcopy(options))) for options in case["rounds"]]
            pairs = zip(letters, case["right"], strict=True)
            return None if None in letters else sum(letter in right for letter, right in pairs)
        if "modules" in case:
            return _flaw(case["modules"], function)
        answer = _plain(function(*deepcopy(case["arguments"])))
        return _auc(answer, case["is_member"]) if "is_member" in case else answer
    except Exception as error:  # whatever a student's function may raise is reported
        return error


def _flaw(modules: list[str], deal: Callable) -> str | None:
    """The first flaw of a student's deals of rows to two sides; "fair" if none is found."""
    deals = [_plain(deal([*modules], seed)) for seed in (*range(N_DEALS), 0)]
    if deals[0] is None:
        return None
    sides = {module: [] for module in modules}  # of each module, the side of its row in every deal
    for dealt in deals:
        if len(dealt) != len(modules) or not {*dealt} <= {"seen", "unseen", None}:
            raise TypeError(f'"seen", "unseen" or None for each of {len(modules)} rows, please')
        for module in sides:
            own = [side for side, its in zip(dealt, modules, strict=True) if its == module and side]
            if len({*own}) > 1:
                return "a module is on both sides"
            if len(own) > 1:
                return "several rows of a module take part, on one side"
            if not own:
                return "no row of a module takes part"
            sides[module] += own
    if deals[0] != deals[-1]:
        return "the same seed gives another deal"
    if any(len({*dealt}) == 1 for dealt in sides.values()):
        return "a module is on the same side for every seed"
    return "fair"


def _plain(value: Any) -> Any:
    """Arrays, tuples, sets and generators as lists; numbers of any kind as they compare."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        return [_plain(item) for item in value]
    return value


def _letter(answer: Any) -> str | None:
    answer = _plain(answer)
    if answer is None:
        return None
    if isinstance(answer, int) and 0 <= answer < len(LETTERS):
        return LETTERS[answer]
    letter = str(answer).strip().upper()
    if letter not in [*LETTERS]:
        raise TypeError(f"a letter from A to D is asked for, not {answer!r}")
    return letter


def _auc(scores: Any, is_member: list[bool]) -> float | None:
    if scores is None:
        return None
    if len(scores) != len(is_member) or not all(map(_is_finite, scores)):
        raise TypeError(f"one number for each of {len(is_member)} texts is asked for")
    members, others = (
        [score for score, kind in zip(scores, is_member, strict=True) if kind is wanted]
        for wanted in (True, False)
    )
    pairs = list(product(members, others))
    return sum((one > other) + 0.5 * (one == other) for one, other in pairs) / len(pairs)


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _agrees(answer: Any, expected: Any) -> bool:
    """Whether an answer is the expected one: a value, an error, a range, or any order of items."""
    if isinstance(expected, Mapping):
        if "error" in expected:
            return isinstance(answer, ValueError)
        if "any_order" in expected:
            items = expected["any_order"]
            return isinstance(answer, (list, str)) and _ordered(answer) == _ordered(items)
        low, high = expected["between"]
        return _is_finite(answer) and low <= answer <= high
    if isinstance(expected, list):
        return (
            isinstance(answer, list)
            and len(answer) == len(expected)
            and all(map(_agrees, answer, expected))
        )
    if isinstance(expected, bool) or not isinstance(expected, Real):
        return not isinstance(answer, Exception) and answer == expected
    within = TOLERANCE * max(1.0, abs(float(expected)))
    return _is_finite(answer) and abs(answer - expected) <= within


def _ordered(items: Any) -> list:
    return sorted((_ordered(i) if isinstance(i, list) else i for i in items), key=repr)


def _failure(name: str, case: Mapping, answer: Any) -> str:
    expected = _in_words(case["expected"])
    if isinstance(answer, Exception):
        found = f"stopped with {answer!r}"
    elif "rounds" in case and answer is not None:
        found = f"{answer} of {len(case['rounds'])} right"
    elif "is_member" in case and answer is not None:
        found = f"AUC {answer:.3g}"
    elif "modules" in case and answer is not None:
        found = f"of {len(case['modules'])} rows: {answer}"
    else:
        given = case.get("arguments") or [case.get("modules") or case["rounds"][0]]
        call = ", ".join(map(SHORT.repr, given))
        found = f"{name}({call}) gave {SHORT.repr(answer)}"
    return f"  {case['case']}: {found}, expected {expected}"


def _in_words(expected: Any) -> str:
    if isinstance(expected, Mapping) and "between" in expected:
        low, high = expected["between"]
        return f"{low}" if low == high else f"{low} to {high}"
    if isinstance(expected, Mapping) and "error" in expected:
        return f"a {expected['error']}"
    return SHORT.repr(expected["any_order"] if isinstance(expected, Mapping) else expected)


def _slip(exercise: Mapping, answers: list, n_right: int) -> list[str]:
    """A line that names the slip whose answers these are, if one explains more than none does."""
    cases, best, line = exercise["cases"], n_right, []
    expected = [case["expected"] for case in cases]
    # A list, since an exercise may have a slip of the same name as a general one.
    given = [
        (slip, [case.get("slips", {}).get(slip, case["expected"]) for case in cases], text)
        for slip, text in exercise["slips"].items()
    ]
    for slip, (turned, text) in GENERAL_SLIPS.items():
        given.append((slip, [turned(e) if _is_finite(e) else e for e in expected], text))
    for slip, values, text in given:
        if (n_same := sum(map(_agrees, answers, values))) > best:
            best, line = n_same, [f"Looks like: {slip}: {text}"]
    if not line and any(isinstance(a, TypeError) and "list" in str(a) for a in answers):
        line = ["Arguments are lists: np.asarray(values) makes an array, which takes a mask."]
    return line


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
    # 100 * 0.14 is not a whole number to a computer, and is one to a student.
    return is_number and abs(float(answer - right)) <= tolerance + 1e-9
