"""Mini-benchmarks from the package's JSON files: sentences with slots, and the words of each slot.

A file holds ``sets`` of interchangeable words, each slot's from frequent to rare,
and ``benchmarks`` whose templates name the sets that they draw from. The order of
words is what the naturalness dial goes by; a test compares it with ``wordfreq``.
"""

from __future__ import annotations

import dataclasses
import json
import operator
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import resources
from typing import Any

from contamination.lab.grammar import Benchmark, Template

_OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
}


def read_json(name: str) -> Any:
    """A JSON file beside the lab's modules, such as "benchmarks/events"."""
    return json.loads((resources.files("contamination.lab") / f"{name}.json").read_text("utf-8"))


def values_of(listed: Sequence[Any] | Mapping[str, int]) -> tuple[Any, ...]:
    """Values as a file lists them, or whole numbers ``{"from": 2, "to": 60}``, both included."""
    if isinstance(listed, Mapping):
        return tuple(range(listed["from"], listed["to"] + 1))
    return tuple(listed)


def read_benchmarks(name: str) -> dict[str, Benchmark]:
    """The mini-benchmarks of one file, by name."""
    content = read_json(f"benchmarks/{name}")
    benchmarks = {}
    for row in content["benchmarks"]:
        templates = []
        for template in row["templates"]:
            wording: dict[str, Sequence[str]] = {}
            for words in template.get("sets", row["sets"]):
                wording |= content["sets"][words]
            made = Template(
                name=template["name"],
                fields=template["fields"],
                facts={slot: values_of(listed) for slot, listed in template["facts"].items()},
                wording=wording | template.get("wording", {}),
            )
            if "steps" in template:
                derive = partial(work_out, template.get("given", ()), template["steps"])
                made = dataclasses.replace(made, derive=derive)
            templates.append(made)
        benchmarks[row["name"]] = Benchmark(row["name"], row["task"], tuple(templates))
    return benchmarks


def work_out(
    given: Sequence[str], steps: Sequence[str], facts: Mapping[str, int]
) -> dict[str, Any]:
    """Numbers that a word problem gives, and its answer in the manner of GSM8k.

    Args:
        given: calculations such as "whole = left + b", whose results the question may name.
        steps: those of the answer, one line each; the last result stands after ``####``.
        facts: the numbers drawn.

    >>> work_out([], ["x = a * b", "y = x + c"], {"a": 2, "b": 3, "c": 4})["answer"]
    '2 * 3 = 6\\n6 + 4 = 10\\n#### 10'
    """
    numbers, lines = dict(facts), []
    for step in (*given, *steps):
        name, _, left, sign, right = step.split()
        numbers[name] = _OPERATIONS[sign](numbers[left], numbers[right])
        lines.append(f"{numbers[left]} {sign} {numbers[right]} = {numbers[name]}")
    answer = "\n".join([*lines[len(given) :], f"#### {numbers[name]}"])
    return {step.split()[0]: numbers[step.split()[0]] for step in given} | {"answer": answer}
