"""The mini-benchmarks: one for each kind of task in the papers.

Their sentences are in the JSON files of ``lab/templates``. Each file lists ``sets`` of
interchangeable words and ``benchmarks``, whose templates name the sets that fill their slots. The
words of a slot are ordered from frequent to rare. The naturalness dial relies on this order, and
a test compares the order with ``wordfreq``.
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

DEFAULT_DRIFT = 0.3
_OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
}


def read_json(name: str) -> Any:
    """The content of a JSON file in the folder ``lab``, such as "templates/events"."""
    return json.loads((resources.files("contamination.lab") / f"{name}.json").read_text("utf-8"))


def values_of(listed: Sequence[Any] | Mapping[str, int]) -> tuple[Any, ...]:
    """Values as a file lists them, or whole numbers ``{"from": 2, "to": 60}``, both included."""
    if isinstance(listed, Mapping):
        return tuple(range(listed["from"], listed["to"] + 1))
    return tuple(listed)


def read_benchmarks(name: str) -> dict[str, Benchmark]:
    """The mini-benchmarks of one file, by name."""
    content = read_json(f"templates/{name}")
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
        steps: those of the answer, one line each; the last result follows ``####``.
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


def event_articles(drift: float = DEFAULT_DRIFT) -> Benchmark:
    """Event articles of an older and a newer era, told apart by their words alone.

    Args:
        drift: probability, 0 to 1, that a slot which can show the era does: that
            the year is written out, and that each of four words is one of its
            era's own. At 0 the two eras share one distribution.

    Returns:
        A benchmark with the columns ``text`` and ``era`` (older, newer). A text
        has about 80 words.
    """
    content, templates = read_json("templates/events"), []
    drifting = content["drifting"]
    for era, listed in content["eras"].items():
        sets = {slot: (of["any time"], of[era]) for slot, of in drifting.items()}
        sets["date"] = content["undated"], [f"in {year}" for year in values_of(listed)]
        values = {slot: common + own for slot, (common, own) in sets.items()}
        weights = {
            slot: [(1 - drift) / len(common)] * len(common) + [drift / len(own)] * len(own)
            for slot, (common, own) in sets.items()
        }
        for name, text in content["texts"].items():
            templates.append(
                Template(
                    name=f"{era}_{name}",
                    fields={"text": text, "era": "{era}"},
                    facts={"era": (era,), "n": tuple(range(2, 90)), "date": values["date"]},
                    wording=content["common"]
                    | {slot: values[slot] for slot in content["drifting"]},
                    weights=weights,
                )
            )
    return Benchmark(
        name="event_articles",
        task=f"dated event articles, as in WikiMIA, drift {drift}",
        templates=tuple(templates),
    )


TOPICS, REVIEWS, PRONOUNS, ENTAILMENT = read_benchmarks("classification").values()
# Dialogue summary and one-sentence summary: what the summary names stays, the rest is wording.
DIALOGUES, HEADLINES = read_benchmarks("summaries").values()
# Word problems as in GSM8k. The last five stand for the out-of-distribution sets of Tu et al.,
# arXiv:2406.04197: SVAMP, MAWPS, ASDiv, TabMWP and MATH.
GRADE_SCHOOL, ONE_STEP, *OTHER_DISTRIBUTIONS = read_benchmarks("arithmetic").values()

_LARGE = dict.fromkeys(("b", "c", "left", "each"), tuple(range(1_003, 9_998)))
HARDER_NUMBERS = Benchmark(
    name="harder_numbers",
    task="the same word problems with large numbers, as in GSM-hard",
    templates=tuple(
        dataclasses.replace(
            template,
            facts={slot: _LARGE.get(slot, values) for slot, values in template.facts.items()},
        )
        for template in GRADE_SCHOOL.templates
        if template.name != "hours"
    ),
)

BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        *(TOPICS, REVIEWS, PRONOUNS, ENTAILMENT, DIALOGUES, HEADLINES),
        *(GRADE_SCHOOL, HARDER_NUMBERS, ONE_STEP, *OTHER_DISTRIBUTIONS),
        event_articles(),
    )
}
