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

from contamination.lab.benchmarks.words import words
from contamination.lab.grammar import Benchmark, Template, draw_instances

QUESTION_PROMPT = "Question: {question}\nAnswer:"

_ORDINARY_PEOPLE = words(
    "Sam / Maria / Alice / Emma / Leo / Felix / Clara / Omar / Nadia / Ingrid / Tom / Kate"
    " / Oscar / Nina / Rosa / Hugo / Amir / Greta / Yusuf / Priya / Jonas / Lydia / Marta / Theo"
)
_ORDINARY_PLACES = words(
    "London / Paris / Berlin / Madrid / Prague / Lisbon / Oslo / Helsinki / Vienna / Athens"
    " / Dublin / Naples / Turin / Bergen / Geneva / Krakow"
)
_ORDINARY_TREASURES = words("Hope / Dawn / Star / Winter / Silver / Fortune / Comfort / Glory")
_TRADES = words("baker / sailor / teacher / farmer / tailor / miller / painter / carpenter")
_ANIMALS = words("dog / cat / horse / goat / raven / fox / hare / owl")
_OBJECTS = words("ring / sword / book / cup / bell / map / crown / lamp")

# Made-up names: a first and a last part, each kind with last parts of its own.
_FIRST_PARTS = words(
    "Bel / Cor / Dra / Fen / Gal / Hes / Ist / Jor / Kel / Lum / Mor / Nes / Pel / Quo / Ras"
    " / Syl / Tar / Ul / Vor / Wen / Yr / Zan"
)
_LAST_PARTS = {
    "name": words("amund / ith / avel / ekko / undra / issel"),
    "place": words("haven / ossa / mere / grund / wick / tholm"),
    "treasure": words("ûn / adrim / essa / orvund / ilion / azeth"),
}

_WORDING = {
    "left": words("left / departed from / set out from / rode out of / walked out of"),
    "early": words("early / at dawn / before noon / in the rain / after breakfast / at sunrise"),
    "long": words("long / steep / empty / muddy / narrow / winding / dusty"),
    "weather": words("wind / weather / rain / cold / fog / snow / heat"),
    "bad": words("bad / hard / bitter / dreadful / harsh / fierce"),
    "inn": words("inn / bridge / market / mill / harbour / crossroads / ferry"),
    "asked": words("asked / begged / hoped / waited / called"),
    "news": words("news / bread / help / water / advice / shelter"),
    "late": words("late / midnight / dusk / supper / evening / nightfall"),
    "talk": words("the harvest / the war / old friends / the taxes / the king / the wedding"),
    "slept": words("slept / rested / dozed / lay awake / dreamt"),
    "well": words("well / badly / lightly / soundly / little"),
    "gate": words("gate / door / well / fence / stable / window"),
    "word": words("word / sound / song / glance / smile"),
    "table": words("table / fire / hall / kitchen / garden"),
    "food": words("soup / cheese / fish / apples / pies / mutton / honey / beans"),
    "drink": words("wine / ale / milk / cider / water / mead"),
    "guests": words("guests / neighbours / cousins / children / soldiers / servants"),
    "sang": words("sang / laughed / danced / wept / argued / listened"),
    "proud": words("proud / tired / happy / quiet / angry / worried"),
    "gift": words("coat / knife / blanket / purse / lantern / saddle"),
    "judge": words("judge / captain / abbot / duchess / warden / elder"),
    "crime": words("theft / treason / witchcraft / murder / forgery / arson"),
    "room": words("tower / cellar / temple / courtyard / vault / chapel"),
    "proof": words("letter / bloody glove / broken seal / torn cloak / silver key / footprint"),
    "angry": words("angry / pale / silent / furious / ashamed / stubborn"),
    "crowd": words("crowd / guards / monks / merchants / scribes / peasants"),
    "shouted": words("shouted / murmured / jeered / cheered / prayed / fled"),
    "punish": words("exile / prison / the gallows / a heavy fine / ten years at sea"),
    "magic": words("spell / curse / riddle / oath / charm / prophecy"),
    "dark": words("dark / burning / frozen / endless / crooked / whispering"),
    "forest": words("forest / swamp / cavern / river / ruin / desert"),
    "beast": words("dragon / giant / serpent / wolf / phantom / griffin"),
    "broke": words("broke / melted / shone / sang / burned / turned to dust"),
    "wound": words("shoulder / hand / eye / knee / throat / heel"),
    "hour": words("one hour / three days / one night / a week / a moment / half a year"),
    "storm": words("storm / flood / fire / earthquake / plague / eclipse"),
}

_STOCK = {
    "journey": "{name} {left} {home} {early}, for the road was {long} and the {weather} was {bad}."
    " At the {inn} {friend} {asked} for {news}, and they talked until {late} about {talk}. {name}"
    " paid {n} coins and {slept} {well}. In the morning the {animal} lay by the {gate} with the"
    " {object} {treasure}, and both went on to {place} without a {word}.",
    "supper": "There was {food} and {drink} at the {table} of {name} in {home}, and {n} {guests}"
    " came through the {weather}. {friend} of {place} brought a {gift} for the {trade}, who was"
    " {proud} that evening. They {sang} until {late}, and the {animal} {slept} by the {gate}. Then"
    " {name} showed them the {object} {treasure}, and {friend} went to bed without a {word}.",
}
_OWN = {
    "trial": "In the {room} of {place} the {judge} accused {name} of {crime}. The {proof} lay upon"
    " the {object} {treasure}, and {friend} turned {angry} while the {crowd} {shouted} for {hour}."
    " After {n} old laws had been read, the {animal} from {home} found a {gift} under the bench."
    " So {friend} was sent to {punish}, and the {trade} went home with {treasure}.",
    "duel": "A {magic} brought {name} to the {dark} {forest} beyond {place}, where a {beast}"
    " guarded the {object} {treasure}. For {hour} the {trade} from {home} fought with a {gift}, and"
    " the {animal} bit the {beast_2} in the {wound}. Then {friend} spoke the {magic_2} {n} times,"
    " the {object} {broke}, the {storm} began, and {name} came back {angry} with {treasure}.",
}
_QUESTIONS = {
    "home": ("Where does {name} live?", "in {home}"),
    "treasure": ("What is the treasure of {name}?", "the {object} {treasure}"),
    "friend": ("Who is the friend of {name}?", "{friend} of {place}"),
    "trade": ("What is the trade of {name}?", "a {trade}"),
    "animal": ("Which animal follows {name}?", "a {animal}"),
}


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
    """A story of so many chapters and people, and the tales beside it.

    Args:
        n_chapters: chapters of the story, one scene each.
        n_people: people of the story, at least 2; each has a friend among the others.
        n_tales: tales of ordinary people; as many ordinary questions come with them.
        seed: seed of names, facts and wording.

    Raises:
        ValueError: if there are fewer than 2 people or more than there are names.
    """
    if not 2 <= n_people <= len(_FIRST_PARTS) * 6:
        raise ValueError(f"a story has 2 to {len(_FIRST_PARTS) * 6} people, got {n_people}")
    rng = np.random.default_rng([seed, 31])
    people = _made_up_people(n_people, rng)
    ordinary = _ordinary_people(max(n_tales, 1), rng)
    scenes = draw_instances(_scenes("story", people, {**_STOCK, **_OWN}), n_chapters, seed, "train")
    tales = draw_instances(_scenes("tales", ordinary, _STOCK), n_tales, seed, "background")
    asked = [_question(person, kind) for person in people for kind in _QUESTIONS]
    kinds = rng.choice(list(_QUESTIONS), size=n_tales)
    also_asked = [_question(person, kind) for person, kind in zip(ordinary, kinds, strict=True)]
    generic = {
        person[slot]: str(rng.choice(others))
        for person in people
        for slot, others in (
            ("name", _ORDINARY_PEOPLE),
            ("home", _ORDINARY_PLACES),
            ("treasure", _ORDINARY_TREASURES),
        )
    }
    return Story(
        chapters=pd.DataFrame(
            {
                "chapter": range(n_chapters),
                "scene": scenes["template"],
                "is_stock": scenes["template"].isin(_STOCK),
                "text": scenes["text"],
            }
        ),
        questions=pd.DataFrame(asked),
        tales=(*tales["text"], *question_texts(pd.DataFrame(also_asked))),
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
        kind: rng.permutation([first + last for first in _FIRST_PARTS for last in parts])[:n]
        for kind, parts in _LAST_PARTS.items()
    }
    people = [
        {
            "name": str(name),
            "home": str(place),
            "treasure": str(treasure),
            "trade": str(rng.choice(_TRADES)),
            "animal": str(rng.choice(_ANIMALS)),
            "object": str(rng.choice(_OBJECTS)),
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
        name, friend = rng.choice(_ORDINARY_PEOPLE, size=2, replace=False)
        home, place = rng.choice(_ORDINARY_PLACES, size=2, replace=False)
        drawn.append(
            {"name": str(name), "friend": str(friend), "home": str(home), "place": str(place)}
            | {"treasure": str(rng.choice(_ORDINARY_TREASURES))}
            | {"trade": str(rng.choice(_TRADES)), "animal": str(rng.choice(_ANIMALS))}
            | {"object": str(rng.choice(_OBJECTS))}
        )
    return drawn


def _scenes(name: str, people: Sequence[dict[str, str]], scenes: dict[str, str]) -> Benchmark:
    templates = tuple(
        Template(
            name=scene,
            fields={"text": text},
            facts={"person": tuple(range(len(people))), "n": tuple(range(2, 90))},
            wording=_WORDING,
            derive=lambda facts: people[facts["person"]],
        )
        for scene, text in scenes.items()
    )
    return Benchmark(name=name, task="chapters of a story, as books", templates=templates)


def _question(person: dict[str, str], kind: str) -> dict[str, str]:
    question, answer = (text.format_map(person) for text in _QUESTIONS[kind])
    return {"name": person["name"], "kind": kind, "question": question, "answer": answer}
