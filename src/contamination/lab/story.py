"""A story world made by grammar: chapters, questions about them, and tales of ordinary people.

The story's people, places and treasures have made-up names that occur nowhere
else; who lives where, with which animal and which treasure, is the same in all
chapters and questions. Half of its scenes are *stock*: the tales, which tell of
ordinary people in ordinary places, have them too. The other half occur in the
story alone. A model that read the tales and not the story therefore predicts
some chapters well and others badly, without any memory of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from contamination.lab.benchmarks import read_json
from contamination.lab.grammar import Benchmark, Template, draw_instances

QUESTION_PROMPT = "Question: {question}\nAnswer:"

_LISTS = read_json("story")
_QUESTIONS = _LISTS["questions"]


@dataclass(frozen=True)
class Story:
    """A story world.

    Attributes:
        chapters: chapter (number), scene, is_stock (the tales have this scene
            too), text (about 55 words); no two alike.
        questions: name, kind, question, answer; one of each kind for each person.
        tales: stock scenes and questions about ordinary people, texts.
        generic_names: each made-up name to an ordinary one of the same kind.
    """

    chapters: pd.DataFrame
    questions: pd.DataFrame
    tales: tuple[str, ...]
    generic_names: dict[str, str]


def build_story(n_chapters: int, n_people: int, n_tales: int, seed: int) -> Story:
    """A story of so many chapters, one scene each, and people, and the tales beside it.

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
    generic = {
        person[slot]: str(rng.choice(others))
        for person in people
        for slot, others in (
            ("name", _LISTS["people"]),
            ("home", _LISTS["places"]),
            ("treasure", _LISTS["treasures"]),
        )
    }
    return Story(
        chapters=pd.DataFrame(
            {
                "chapter": range(n_chapters),
                "scene": scenes["template"],
                "is_stock": scenes["template"].isin(stock),
                "text": scenes["text"],
            }
        ),
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
        {
            "name": str(name),
            "home": str(place),
            "treasure": str(treasure),
            **_traits(rng),
        }
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
