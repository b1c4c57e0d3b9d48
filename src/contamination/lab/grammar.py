"""Mini-benchmarks by grammar, one for each kind of task in the papers, and a story world."""

from __future__ import annotations

import dataclasses
import json
import operator
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from math import prod
from typing import Any

import numpy as np
import pandas as pd

PARTS = ("train", "validation", "test", "background", "tokenizer")
EDIT_SHARE = 0.4
_MAX_ROUNDS = 1_000
_ARTICLE = re.compile(r"\b([Aa])n? (?=([a-z]+))")
_VOWEL = re.compile(r"[aeiou](?!ni[^nm]|s[ei])")
_SENTENCE_START = re.compile(r"(?:^|[.!?:] |\n)[a-z]")


@dataclass(frozen=True)
class Template:
    """One pattern of an instance.

    A wording slot named ``buy_2`` without an entry of its own uses that of ``buy``.
    """

    name: str
    fields: Mapping[str, str]  # column name to text with ``{slot}`` names, in the order of printing
    facts: Mapping[str, Sequence[Any]]  # slot name to its possible values; the same over a group
    wording: Mapping[str, Sequence[str]]  # slot name to words, from frequent to rare
    derive: Callable[[dict[str, Any]], dict[str, Any]] = lambda facts: {}  # such as the answer
    weights: Mapping[str, Sequence[float]] = field(default_factory=dict)  # where not equally likely

    def wording_slots(self) -> dict[str, Sequence[str]]:
        """The wording slots that occur in the fields, with their words, in order of use."""
        slots: dict[str, Sequence[str]] = {}
        for text in self.fields.values():
            for _, name, _, _ in string.Formatter().parse(text):
                base = (name or "").rstrip("0123456789").rstrip("_")
                words = self.wording.get(name or "", self.wording.get(base))
                if name and words is not None:
                    slots[name] = words
        return slots


@dataclass(frozen=True)
class Benchmark:
    """One mini-benchmark."""

    name: str
    task: str  # of the papers, in whose place it is
    templates: tuple[Template, ...]

    @property
    def columns(self) -> list[str]:
        """Names of an instance's fields, in the order in which it is written out."""
        return list(self.templates[0].fields)


def count_instances(benchmark: Benchmark) -> int:
    """Number of distinct instances the grammar can produce, all parts together."""
    return sum(
        prod(len(values) for values in template.facts.values())
        * prod(len(words) for words in template.wording_slots().values())
        for template in benchmark.templates
    )


def draw_instances(benchmark: Benchmark, n: int, seed: int, part: str) -> pd.DataFrame:
    """Distinct instances of one part of a mini-benchmark: template and the benchmark's columns.

    Parts never overlap, whatever the seed: a hash of the instance decides. ValueError as in
    :func:`draw_groups`.
    """
    groups = draw_groups(benchmark, n, seed, part, n_paraphrases=0)
    return groups.drop(columns=["group", "option"])


def draw_groups(
    benchmark: Benchmark,
    n: int,
    seed: int,
    part: str,
    n_paraphrases: int = 4,
    naturalness: float = 0.0,
) -> pd.DataFrame:
    """Instances, each with distinct word-level paraphrases of its own.

    No text occurs twice. Paraphrases that repeat a text are drawn again; since every wording is
    equally likely, that leaves all texts of a group exchangeable at naturalness 0. The originals
    depend on the benchmark, n, seed and part alone.

    Args:
        n: number of groups.
        part: one of :data:`PARTS`.
        naturalness: 0, interchangeable, to 1, edits of the original with rarer words; the
            probability that a slot of a paraphrase is an edit and no fresh draw.

    Returns:
        Columns group, option (0 the original, then its paraphrases), template and the
        benchmark's own; sorted by group and option. ValueError for more texts than the part has.
    """
    key = [PARTS.index(part), *benchmark.name.encode()]
    chooser = np.random.default_rng([seed, 0, *key])
    choices = chooser.integers(len(benchmark.templates), size=n)
    rows: list[dict[str, Any]] = []
    for index, template in enumerate(benchmark.templates):
        groups = np.flatnonzero(choices == index).tolist()
        drawer = _Drawer(template, PARTS.index(part), index)
        originals = drawer.originals(len(groups), np.random.default_rng([seed, 1, index, *key]))
        paraphraser = np.random.default_rng([seed, 2, index, *key])
        options = [originals]
        for _ in range(n_paraphrases):
            options.append(drawer.paraphrases(originals, paraphraser, naturalness))
        for option, draws in enumerate(options):
            rows += [
                {"group": group, "option": option, "template": template.name} | drawer.render(draw)
                for group, draw in zip(groups, draws, strict=True)
            ]
    rows.sort(key=lambda row: (row["group"], row["option"]))
    return pd.DataFrame(rows, columns=["group", "option", "template", *benchmark.columns])


class _Drawer:
    """Draws one template's instances as rows of value indices, no row twice."""

    def __init__(self, template: Template, part: int, index: int) -> None:
        self.template = template
        self.part = part
        self.words = template.wording_slots()
        self.slots = {**template.facts, **self.words}
        self.n_facts = len(template.facts)
        drawn = np.random.default_rng([20, index]).integers(
            0, 2**63, size=len(self.slots), dtype=np.uint64
        )
        self.multipliers = drawn * np.uint64(2) + np.uint64(1)  # odd ones
        self.seen: set[int] = set()

    def originals(self, n: int, generator: np.random.Generator) -> np.ndarray:
        """Shape (n, n_slots): indices into the values of each slot, facts first."""
        return self._accept(n, lambda missing: self._draw(len(missing), generator))

    def paraphrases(
        self, originals: np.ndarray, generator: np.random.Generator, naturalness: float
    ) -> np.ndarray:
        """One more text for each original, shape as the originals."""

        def propose(missing: np.ndarray) -> np.ndarray:
            of = originals[missing]
            fresh = self._draw(len(of), generator)
            sizes = np.array([len(values) for values in self.slots.values()])
            # A rarer word stands further back in its set; the rarest gives way to any other.
            uniform = generator.random(of.shape)
            rarer = of + 1 + np.floor(uniform * (sizes - of - 1)).astype(int)
            other = np.floor(uniform * (sizes - 1)).astype(int)
            is_edited = generator.random(of.shape) < EDIT_SHARE
            edit = np.where(is_edited, np.where(of < sizes - 1, rarer, other), of)
            proposal = np.where(generator.random(of.shape) < naturalness, edit, fresh)
            proposal[:, : self.n_facts] = of[:, : self.n_facts]
            return proposal

        return self._accept(len(originals), propose)

    def render(self, draw: np.ndarray) -> dict[str, str]:
        """The field texts of one row of indices."""
        values = {
            name: options[index]
            for (name, options), index in zip(self.slots.items(), draw.tolist(), strict=True)
        }
        values |= self.template.derive({name: values[name] for name in self.template.facts})
        return {
            column: tidy(text.format_map(values)) for column, text in self.template.fields.items()
        }

    def _draw(self, n: int, generator: np.random.Generator) -> np.ndarray:
        weights = self.template.weights
        columns = [
            generator.choice(len(values), size=n, p=weights[name])
            if name in weights
            else generator.integers(len(values), size=n)
            for name, values in self.slots.items()
        ]
        return np.stack(columns, axis=1)

    def _accept(self, n: int, propose: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        accepted = np.empty((n, len(self.slots)), dtype=np.int64)
        missing = np.arange(n)
        for _ in range(_MAX_ROUNDS):
            if not len(missing):
                return accepted
            proposal = propose(missing)
            keys = self._keys(proposal)
            kept = np.zeros(len(missing), dtype=bool)
            for row in np.flatnonzero(keys % np.uint64(len(PARTS)) == self.part):
                key = int(keys[row])
                if key not in self.seen:
                    self.seen.add(key)
                    kept[row] = True
            accepted[missing[kept]] = proposal[kept]
            missing = missing[~kept]
        raise ValueError(
            f"template {self.template.name!r} cannot give {n} more distinct texts: ask for fewer"
        )

    def _keys(self, draws: np.ndarray) -> np.ndarray:
        # Two rounds of multiply and shift: every bit of every slot reaches the part.
        mixed = (draws.astype(np.uint64) + np.uint64(1)) * self.multipliers
        keys = np.bitwise_xor.reduce(mixed ^ (mixed >> np.uint64(29)), axis=1)
        keys = (keys ^ (keys >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        return keys ^ (keys >> np.uint64(29))


def tidy(text: str) -> str:
    """Sentences begin with a capital and articles fit the word they stand before.

    A text of a single word, such as a label, stays as it is.

    >>> tidy("it was a apple. we left")
    'It was an apple. We left'
    """
    if " " not in text:
        return text
    text = _ARTICLE.sub(lambda match: match[1] + ("n " if _VOWEL.match(match[2]) else " "), text)
    return _SENTENCE_START.sub(lambda match: match[0].upper(), text)


DEFAULT_DRIFT = 0.3
_OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}


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
    """Articles of about 80 words, columns text and era (older, newer, by words alone).

    ``drift`` is the probability, 0 to 1, that a slot which can show the era does: that the year is
    written out, and that each of four words is one of its era's own.
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

# Their order is that of the background, so part of every model's name.
BENCHMARKS = read_benchmarks("classification") | read_benchmarks("summaries")
BENCHMARKS |= {
    one.name: one
    for one in (GRADE_SCHOOL, HARDER_NUMBERS, ONE_STEP, *OTHER_DISTRIBUTIONS, event_articles())
}


QUESTION_PROMPT = "Question: {question}\nAnswer:"

_LISTS = read_json("story")
_QUESTIONS = _LISTS["questions"]


@dataclass(frozen=True)
class Story:
    """A story world."""

    chapters: (
        pd.DataFrame
    )  # chapter (number), scene, is_stock (of the tales too), text; no two alike
    questions: pd.DataFrame  # name, kind, question, answer; one of each kind for each person
    tales: tuple[str, ...]  # stock scenes and questions about ordinary people
    generic_names: dict[str, str]  # each made-up name to an ordinary one of the same kind


def build_story(n_chapters: int, n_people: int, n_tales: int, seed: int) -> Story:
    """A story of so many chapters, one scene each, and people, and tales of other people.

    As many ordinary questions come with the tales. The seed is of names, facts and wording.
    There are 2 to 132 people: each has a friend among them and a name of their own.
    """
    rng = np.random.default_rng([seed, 31])
    people = _made_up_people(n_people, rng)
    ordinary = _ordinary_people(max(n_tales, 1), rng)
    stock, own = _LISTS["stock_scenes"], _LISTS["own_scenes"]
    scenes = draw_instances(_scenes("story", people, stock | own), n_chapters, seed, "train")
    tales = draw_instances(_scenes("tales", ordinary, stock), n_tales, seed, "background")
    questions = [_question(person, kind) for person in people for kind in _QUESTIONS]
    kinds = rng.choice(list(_QUESTIONS), size=n_tales)
    ordinary_questions = [
        _question(person, kind) for person, kind in zip(ordinary, kinds, strict=True)
    ]
    kinds_of_names = {"name": "people", "home": "places", "treasure": "treasures"}
    generic = {
        person[slot]: str(rng.choice(_LISTS[others]))
        for person in people
        for slot, others in kinds_of_names.items()
    }
    chapters = scenes[["text"]].assign(scene=scenes["template"], chapter=range(n_chapters))
    chapters["is_stock"] = chapters["scene"].isin(stock)
    return Story(
        chapters=chapters[["chapter", "scene", "is_stock", "text"]],
        questions=pd.DataFrame(questions),
        tales=(*tales["text"], *question_texts(pd.DataFrame(ordinary_questions))),
        generic_names=generic,
    )


def question_texts(questions: pd.DataFrame) -> tuple[str, ...]:
    """Questions with their answers, as a model reads them."""
    return tuple(
        f"{QUESTION_PROMPT.format(question=row.question)} {row.answer}"
        for row in questions.itertuples()
    )


def _made_up_people(n: int, rng: np.random.Generator) -> list[dict[str, str]]:
    names = {
        kind: rng.permutation([first + last for first in _LISTS["first_parts"] for last in parts])[
            :n
        ]
        for kind, parts in _LISTS["last_parts"].items()
    }
    people = [
        {"name": str(name), "home": str(place), "treasure": str(treasure), **_traits(rng)}
        for name, place, treasure in zip(*names.values(), strict=True)
    ]
    # A circle in random order: nobody is their own friend.
    circle = rng.permutation(n)
    for one, other in zip(circle, np.roll(circle, 1), strict=True):
        people[one] |= {"friend": people[other]["name"], "place": people[other]["home"]}
    return people


def _ordinary_people(n: int, rng: np.random.Generator) -> list[dict[str, str]]:
    """Fleeting people: a name says nothing about the rest, so there is nothing to remember."""
    drawn = []
    for _ in range(n):
        name, friend = rng.choice(_LISTS["people"], size=2, replace=False)
        home, place = rng.choice(_LISTS["places"], size=2, replace=False)
        drawn.append(
            {"name": str(name), "friend": str(friend), "home": str(home), "place": str(place)}
            | {"treasure": str(rng.choice(_LISTS["treasures"])), **_traits(rng)}
        )
    return drawn


def _traits(rng: np.random.Generator) -> dict[str, str]:
    return {kind: str(rng.choice(_LISTS[f"{kind}s"])) for kind in ("trade", "animal", "object")}


def _scenes(name: str, people: Sequence[dict[str, str]], scenes: dict[str, str]) -> Benchmark:
    templates = tuple(
        Template(
            name=scene,
            fields={"text": text},
            facts={"person": tuple(range(len(people))), "n": tuple(range(2, 90))},
            wording=_LISTS["wording"],
            derive=lambda facts: people[facts["person"]],
        )
        for scene, text in scenes.items()
    )
    return Benchmark(name=name, task="chapters of a story, as books", templates=templates)


def _question(person: dict[str, str], kind: str) -> dict[str, str]:
    texts = {name: text.format_map(person) for name, text in _QUESTIONS[kind].items()}
    return {"name": person["name"], "kind": kind, **texts}
