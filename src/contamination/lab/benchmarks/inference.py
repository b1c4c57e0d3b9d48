"""Pronoun inference and entailment: two sentences and a label."""

from __future__ import annotations

from contamination.lab.benchmarks.words import TIME, words
from contamination.lab.grammar import Benchmark, Template

_OBJECTS = {
    **TIME,
    "person": words("Maria / Alice / Emma / Julia / Clara / Nadia / Ingrid"),
    "friend": words("Mary / Kate / Nina / Rosa / Wanda / Greta / Priya"),
    "thing": words("book / phone / ball / clock / globe / trophy / helmet / violin / vase"),
    "container": words("case / box / bag / basket / drawer / backpack / suitcase / cupboard"),
    "big": words("long / big / large / huge / wide / oversized / bulky"),
    "fit": words("go / stay / fit / slide / slot / squeeze"),
    "noticed": words("said / found / thought / discovered / noticed / realized / remarked"),
    "room": words("house / office / room / kitchen / garage / attic / cellar / pantry"),
    "thanked": words("called / praised / thanked / hugged / congratulated / complimented"),
    "help": words("help / support / advice / patience / kindness / hospitality / generosity"),
    "with": words("work / school / dinner / homework / gardening / bookkeeping / carpentry"),
    "strong": words("hard / heavy / solid / thick / sturdy / unyielding"),
    "broke": words("hit / broke / cracked / smashed / shattered / splintered"),
    "surface": words("table / counter / desk / bench / shelf / workbench"),
    "weak": words("old / cheap / weak / thin / fragile / brittle / flimsy"),
}
# sentence 1, what the pronoun stands for, what it does not stand for
_SCHEMAS = {
    "size": (
        "On {day}, {person} {noticed} that the {thing} did not {fit} into the {container} in the"
        " {room} because it was too {big}.",
        "The {thing} was too {big}.",
        "The {container} was too {big}.",
    ),
    "thanks": (
        "{person} {thanked} {friend} in the {room} on {day} for all the {help} with the {with}"
        " that she had given over the years.",
        "{friend} had given {help}.",
        "{person} had given {help}.",
    ),
    "force": (
        "On {day}, {person} dropped the {strong} {thing} on the {surface} in the {room} and it"
        " {broke} the wood, for it was {weak}.",
        "The wood of the {surface} was {weak}.",
        "The {thing} was {weak}.",
    ),
}

PRONOUNS = Benchmark(
    name="pronouns",
    task="pronoun inference, as WNLI",
    templates=tuple(
        Template(
            name=f"{name}_{label[3:-1]}",
            fields={"sentence1": premise, "sentence2": hypothesis, "label": "{label}"},
            facts={"label": (label,)},
            wording=_OBJECTS,
        )
        for name, (premise, stands_for, does_not) in _SCHEMAS.items()
        for label, hypothesis in (("1 (entailment)", stands_for), ("0 (not_entailment)", does_not))
    ),
)

_NEWS = {
    **TIME,
    "buyer": words("Sterling / Horizon / Orion / Meridian / Vertex / Zenith / Altair"),
    "bought": words("Summit / Harbor / Beacon / Keystone / Evergreen / Tamarack"),
    "said": words("said / announced / confirmed / revealed / declared / disclosed"),
    "buy": words("get / take over / buy / acquire / swallow / absorb"),
    "trade": words("food / oil / paper / shipping / clothing / textile / forestry"),
    "firm": words("company / group / business / firm / maker / supplier / wholesaler"),
    "based": words("London / Paris / Boston / Toronto / Geneva / Antwerp / Stavanger"),
    "scientist": words("doctor / engineer / scientist / chemist / geologist / botanist"),
    "won": words("won / received / accepted / collected / earned / garnered"),
    "prize": words("award / prize / medal / honour / fellowship / accolade"),
    "for_work": words("work / research / studies / papers / monographs / fieldwork"),
    "subject": words("water / energy / climate / soil / coral / volcanoes / glaciers"),
    "museum": words("school / library / museum / theatre / gallery / aquarium / planetarium"),
    "opened": words("moved / opened / closed its old hall / reopened / relocated"),
    "visitors": words("people / visitors / guests / tourists / holidaymakers / sightseers"),
    "came": words("came / turned up / arrived / flocked in / queued / thronged in"),
}
_ENTAILMENT = {
    "merger": (
        "{buyer}, a {trade} {firm} from {based}, {said} on {day} that it would {buy} {bought}"
        " for {n} million dollars.",
        "{buyer} wants to own {bought}.",
        "{bought} wants to own {buyer}.",
    ),
    "prize": (
        "A {scientist} from {based} {won} the {prize} on {day} for {n} years of {for_work} on"
        " {subject}, the {museum} {said}.",
        "A {scientist} from {based} has a {prize}.",
        "A {scientist} lost a {prize} in {based}.",
    ),
    "visitors": (
        "When the {museum} in {based} {opened} on {day}, {n} thousand {visitors} {came}, its"
        " director {said} in {month}.",
        "{visitors} {came} at the {museum} in {based}.",
        "The {museum} in {based} was empty on {day}.",
    ),
}

ENTAILMENT = Benchmark(
    name="entailment",
    task="textual entailment, as RTE",
    templates=tuple(
        Template(
            name=f"{name}_{label[3:-1]}",
            fields={"sentence1": premise, "sentence2": hypothesis, "label": "{label}"},
            facts={"label": (label,), "n": tuple(range(2, 100))},
            wording=_NEWS,
        )
        for name, (premise, follows, does_not) in _ENTAILMENT.items()
        for label, hypothesis in (("0 (entailment)", follows), ("1 (not_entailment)", does_not))
    ),
)
