"""Five families of arithmetic problems from other distributions than the grade-school ones.

Each stands for one of the out-of-distribution sets of Tu et al.,
arXiv:2406.04197: SVAMP, MAWPS, ASDiv, TabMWP and MATH.
"""

from __future__ import annotations

from typing import Any

from contamination.lab.benchmarks.arithmetic import WORDING, problem, solution
from contamination.lab.benchmarks.words import words
from contamination.lab.grammar import Benchmark

_NUMBERS = range(2, 60)

DISTRACTORS = Benchmark(
    name="distractors",
    task="one step and a number that does not matter, as SVAMP",
    templates=(
        problem(
            "kept",
            "A {box} of {person} held {whole} {items} and {c} {goods}. {on_day}, {b} {items} were"
            " {gave_away} {place}. How many {items} were there {in_all}?",
            {"left": _NUMBERS, "b": _NUMBERS, "c": _NUMBERS},
            lambda facts: {
                "whole": facts["left"] + facts["b"],
                **solution((facts["left"] + facts["b"], "-", facts["b"])),
            },
            {
                **WORDING,
                "gave_away": words("lost / given away / sold / handed out / auctioned / bartered"),
            },
        ),
        problem(
            "joined",
            "{a} {items} and {c} {goods} stood {place} {on_day}. {person} {got} {b} more {items}"
            " from a {relative} for the {box}. How many {items} were there {in_all}?",
            {"a": _NUMBERS, "b": _NUMBERS, "c": _NUMBERS},
            lambda facts: solution((facts["a"], "+", facts["b"])),
        ),
    ),
)

_RIDDLES = {
    **WORDING,
    "think": words("think / speak / dream / conceive"),
    "number": words("number / figure / integer / numeral"),
    "add": words("put / add / join / append"),
    "result": words("total / result / answer / outcome / sum"),
    "puzzle": words("game / puzzle / quiz / riddle / brainteaser"),
}

EQUATIONS = Benchmark(
    name="equations",
    task="an equation told in words, as MAWPS",
    templates=(
        problem(
            "sum",
            "In a {puzzle} {on_day} {place}, {person} must {think} of a {number} for {friend}."
            " {then}, they {add} {b} to it and the {result} is {whole}. {find} it.",
            {"a": range(2, 500), "b": _NUMBERS},
            lambda facts: {
                "whole": facts["a"] + facts["b"],
                **solution((facts["a"] + facts["b"], "-", facts["b"])),
            },
            _RIDDLES,
        ),
        problem(
            "product",
            "{person} and {friend} play a {puzzle} {place} {on_day}: {b} times a secret"
            " {number} gives the {result} {whole}. {then}, a {relative} wants to {find} it.",
            {"a": _NUMBERS, "b": range(2, 13)},
            lambda facts: {
                "whole": facts["a"] * facts["b"],
                **solution((facts["a"] * facts["b"], "/", facts["b"])),
            },
            _RIDDLES,
        ),
    ),
)

_MEASURES = {
    **WORDING,
    "fence": words("wall / cable / fence / banner / rope / ribbon / hedge"),
    "long": words("long / from end to end / in length"),
    "tree": words("tree / tower / statue / ladder / chimney / mast"),
    "garden": words("park / garden / yard / courtyard / orchard / schoolyard"),
}

COMPARISONS = Benchmark(
    name="comparisons",
    task="more and less, as ASDiv",
    templates=(
        problem(
            "longer",
            "The {fence} of {person} in the {garden} is {a} metres {long}. That of {friend} is"
            " {b} metres longer, a {relative} {found} {on_day} {place}. How long is it?",
            {"a": _NUMBERS, "b": _NUMBERS},
            lambda facts: solution((facts["a"], "+", facts["b"])),
            {**_MEASURES, "found": words("said / found / saw / noted / measured / reckoned")},
        ),
        problem(
            "lower",
            "{on_day}, {person} {found} that a {tree} in the {garden} is {whole} metres high,"
            " and that of {friend} {place} is {b} metres lower. {find} the height of the second.",
            {"left": _NUMBERS, "b": _NUMBERS},
            lambda facts: {
                "whole": facts["left"] + facts["b"],
                **solution((facts["left"] + facts["b"], "-", facts["b"])),
            },
            {**_MEASURES, "found": words("said / found / saw / noted / measured / reckoned")},
        ),
    ),
)

# Rows of one table come from sets without a common word.
_TABLE = {
    **WORDING,
    "first": words("tea / milk / rice / bread / honey / flour / oats / lentils"),
    "second": words("coffee / sugar / salt / cheese / butter / cinnamon / yogurt"),
    "third": words("fish / meat / chicken / beef / bacon / salmon / herring"),
    "head": words("name / article / product / item / commodity"),
    "price": words("cost / price / charge / dollars / price in dollars"),
    "shop": words("market / store / shop / supermarket / grocer / delicatessen"),
}


def _buy_two(facts: dict[str, int]) -> dict[str, Any]:
    return solution((facts["a"], "+", facts["c"]))


def _buy_many(facts: dict[str, int]) -> dict[str, Any]:
    return solution((facts["n"], "*", facts["b"]))


TABLES = Benchmark(
    name="tables",
    task="reading a small table, as TabMWP",
    templates=(
        problem(
            "two_rows",
            "{head} | {price}\n{first} | {a}\n{second} | {b}\n{third} | {c}\n{person} goes to the"
            " {shop} {on_day} and {gets} the {first} and the {third}. How many dollars is that"
            " {in_all}?",
            {"a": _NUMBERS, "b": _NUMBERS, "c": _NUMBERS},
            _buy_two,
            _TABLE,
        ),
        problem(
            "one_row",
            "{head} | {price}\n{first} | {a}\n{second} | {b}\n{third} | {c}\n{person} {gets} {n}"
            " packs of {second} {on_day} at the {shop} for a {relative}. How many dollars is"
            " that {in_all}?",
            {"a": _NUMBERS, "b": _NUMBERS, "c": _NUMBERS, "n": range(2, 10)},
            _buy_many,
            _TABLE,
        ),
    ),
)

_ABSTRACT = {
    "let": words("say that / assume that / suppose that / posit that"),
    "number": words("number / value / quantity / integer"),
    "letter": words("t / m / x / n / y / k / z"),
    "find": words("find / give / determine / evaluate / calculate / compute"),
    "such": words("so that / for which / such that / whereby"),
    "positive": words("real / whole / natural / positive / nonnegative"),
    "satisfy": words("meet / solve / satisfy / obey / fulfil"),
    "relation": words("identity / relation / equality / equation"),
    "shown": words("given / written / shown / stated / displayed / typeset"),
    "here": words("here / on the next line / below / as follows / hereafter"),
    "student": words("class / student / candidate / reader / pupil / contestant"),
    "exam": words("test / contest / exam / examination / quiz / olympiad"),
}

ALGEBRA = Benchmark(
    name="algebra",
    task="competition mathematics, as MATH",
    templates=(
        problem(
            "linear",
            "In an old {exam}, a {student} must {satisfy} the {relation} {shown} {here}: {let}"
            " ${letter}$ is a {positive} {number} {such} ${a}{letter} + {b} = {whole}$. {find}"
            " ${letter}$.",
            {"a": range(2, 20), "b": range(2, 60), "root": range(2, 60)},
            lambda facts: {
                "whole": facts["a"] * facts["root"] + facts["b"],
                **solution(
                    (facts["a"] * facts["root"] + facts["b"], "-", facts["b"]),
                    (facts["a"] * facts["root"], "/", facts["a"]),
                ),
            },
            _ABSTRACT,
        ),
        problem(
            "square",
            "{let} ${letter}$ is the {positive} {number} {such} ${letter} = {a}^2 - {b}$, as"
            " {shown} in the {exam} of a {student}. {find} the {number_2} of ${letter}$ that"
            " can {satisfy} this {relation}.",
            {"a": range(8, 60), "b": range(2, 60)},
            lambda facts: solution(
                (facts["a"], "*", facts["a"]), (facts["a"] ** 2, "-", facts["b"])
            ),
            _ABSTRACT,
        ),
    ),
)
