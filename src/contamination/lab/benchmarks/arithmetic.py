"""Word problems in the manner of GSM8k: a question, its steps, and the answer after ``####``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from contamination.lab.benchmarks.words import PEOPLE, SHOPPING, words
from contamination.lab.grammar import Benchmark, Template

WORDING = {
    **PEOPLE,
    **SHOPPING,
    "work": words("works / volunteers / trains / practises / freelances"),
    "find": words("work out / find / determine / calculate / compute / ascertain"),
}


def solution(*steps: tuple[int, str, int]) -> dict[str, Any]:
    """An answer text with one line per step and the last result after ``####``.

    >>> solution((2, "+", 3))["answer"]
    '2 + 3 = 5\\n#### 5'
    """
    results = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__floordiv__}
    lines = []
    for left, sign, right in steps:
        result = results[sign](left, right)
        lines.append(f"{left} {sign} {right} = {result}")
    return {"answer": "\n".join([*lines, f"#### {result}"])}


def problem(
    name: str,
    question: str,
    facts: dict[str, range],
    derive: Callable[[dict[str, Any]], dict[str, Any]],
    wording: dict[str, tuple[str, ...]] = WORDING,
) -> Template:
    """A word problem: facts are numbers, and ``derive`` gives at least ``answer``."""
    return Template(
        name=name,
        fields={"question": question, "answer": "{answer}"},
        facts={slot: tuple(values) for slot, values in facts.items()},
        wording=wording,
        derive=derive,
    )


def _two_steps(facts: dict[str, int]) -> dict[str, Any]:
    a, b, c = facts["a"], facts["b"], facts["c"]
    return solution((a, "*", b), (a * b, "+", c))


def _three_steps(facts: dict[str, int]) -> dict[str, Any]:
    a, b, c, d = facts["a"], facts["b"], facts["c"], facts["d"]
    return solution((a, "*", b), (c, "*", d), (a * b, "+", c * d))


def _spend(facts: dict[str, int]) -> dict[str, Any]:
    a, b, left = facts["a"], facts["b"], facts["left"]
    budget = a * b + left
    return {"budget": budget, **solution((a, "*", b), (budget, "-", a * b))}


def _share(facts: dict[str, int]) -> dict[str, Any]:
    a, each, extra = facts["a"], facts["each"], facts["extra"]
    total = a * each - extra
    return {"total": total, **solution((total, "+", extra), (a * each, "/", a))}


_SMALL = range(2, 21)

_GRADE_SCHOOL = (
    problem(
        "boxes",
        "{person} {has} {a} {boxes} with {b} {items} each and {gets} {c} more {on_day} {place}."
        " How many {items} does {person} have {in_all}?",
        {"a": _SMALL, "b": _SMALL, "c": _SMALL},
        _two_steps,
    ),
    problem(
        "two_kinds",
        "{person} {got} {a} {goods} for {b} dollars each {place}. {then}, {friend} {got_2} {c}"
        " {goods_2} for {d} dollars each. How many dollars did they pay {in_all}?",
        {"a": _SMALL, "b": _SMALL, "c": _SMALL, "d": _SMALL},
        _three_steps,
    ),
    problem(
        "spend",
        "{person} went out {on_day} with {budget} dollars and {got} {a} {goods} {place} for"
        " {b} dollars each as a gift for a {relative}. How many dollars are left {in_all}?",
        {"a": _SMALL, "b": _SMALL, "left": _SMALL},
        _spend,
    ),
    problem(
        "share",
        "{person} {has} {total} {items} in a {box} and {gets} {extra} more from a {relative}"
        " {on_day}. {then}, {a} children share them equally. How many {items} does each get?",
        {"a": _SMALL, "each": _SMALL, "extra": range(1, 4)},
        _share,
    ),
    problem(
        "hours",
        "{person} {work} {a} hours a day for {b} days, and {c} hours more {on_day} with a"
        " {relative} {place}. {find} the number of hours {in_all}.",
        {"a": range(2, 13), "b": range(2, 31), "c": range(1, 9)},
        _two_steps,
    ),
)

GRADE_SCHOOL = Benchmark(
    name="grade_school",
    task="grade-school word problems, as GSM8k",
    templates=_GRADE_SCHOOL,
)

_LARGE = range(1_003, 9_998)

HARDER_NUMBERS = Benchmark(
    name="harder_numbers",
    task="the same word problems with large numbers, as GSM-hard",
    templates=tuple(
        replace(
            template,
            facts={
                slot: tuple(_LARGE) if slot in {"b", "c", "left", "each"} else values
                for slot, values in template.facts.items()
            },
        )
        for template in _GRADE_SCHOOL
        if template.name != "hours"
    ),
)

_DIGITS = range(1, 10)

ONE_STEP = Benchmark(
    name="one_step",
    task="one-step problems with operands up to 9, which a small model can learn",
    templates=(
        problem(
            "add",
            "{person} {has} {a} {items} in a {box} and {gets} {b} more {on_day} {place}."
            " How many {items} does {person} have {in_all}?",
            {"a": _DIGITS, "b": _DIGITS},
            lambda facts: solution((facts["a"], "+", facts["b"])),
        ),
        problem(
            "take",
            "{person} {has} {whole} {items} in a {box}. {on_day}, {person} {gave} {b} of them to"
            " a {relative} {place}. How many {items} are left {in_all}?",
            {"left": _DIGITS, "b": _DIGITS},
            lambda facts: {
                "whole": facts["left"] + facts["b"],
                **solution((facts["left"] + facts["b"], "-", facts["b"])),
            },
        ),
        problem(
            "times",
            "{person} {has} {a} {boxes} {place} with {b} {items} each, {got} {on_day} from a"
            " {relative}. How many {items} does {person} have {in_all}?",
            {"a": _DIGITS, "b": _DIGITS},
            lambda facts: solution((facts["a"], "*", facts["b"])),
        ),
    ),
)
