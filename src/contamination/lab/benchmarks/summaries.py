"""Dialogue summary and one-sentence summary: what the summary names stays, the rest is wording."""

from __future__ import annotations

from contamination.lab.benchmarks.words import words
from contamination.lab.grammar import Benchmark, Template

_SPEAKERS = words("Ben / Dan / Ann / Jon / Eva / Finn / Hal / Gail / Ida / Cara")
_OTHERS = words("Paul / Lee / Kim / Stan / Rita / Ned / Vera / Mona / Olga / Tess")
_HOURS = tuple(range(1, 13))
_DAYS = words("Friday / Sunday / Saturday / Monday / Tuesday / Thursday / Wednesday")

_CHAT = {
    "hello": words("morning / hey / hi / hello / greetings / hiya / howdy"),
    "thanks": words("thank you / thanks / perfect / lovely / cheers / much obliged"),
    "busy": words("home / around / free / available / busy / unoccupied"),
    "sure": words("sure / yes / of course / okay / certainly / absolutely / gladly"),
    "bring": words("get / take / buy / bring / carry / fetch"),
    "snack": words("food / fruit / cheese / cake / bread / salad / biscuits / lemonade"),
    "great": words("good / great / nice / wonderful / fantastic / splendid / marvellous"),
    "wait": words("be there / look out / wait / stand by / hang around / linger"),
    "place": words("school / the office / the station / the library / the fountain / the bakery"),
    "late": words("late / behind / slow / delayed / tardy / unpunctual"),
    "traffic": words("train / weather / traffic / bus / tram / roadworks"),
    "bye": words("see you / later / take care / bye / goodbye / cheerio"),
}
_PLANS = words("market / beach / museum / concert / theatre / cinema / zoo / picnic")
_LOANS = words("camera / bike / guitar / drill / tent / ladder / atlas / kettle")

DIALOGUES = Benchmark(
    name="dialogues",
    task="dialogue summary, as SAMSum",
    templates=(
        Template(
            name="plan",
            fields={
                "dialogue": "{a}: {hello}, are you {busy} on {day}? The {plan} opens at {hour}.\n"
                "{b}: {sure}, that sounds {great}. I will {bring} some {snack}.\n"
                "{a}: {great_2}! I will {wait} at {place}.\n{b}: {thanks}, {bye}!",
                "summary": "{a} and {b} will meet on {day} at {hour} for the {plan}.",
            },
            facts={
                "a": _SPEAKERS,
                "b": _OTHERS,
                "day": _DAYS,
                "hour": _HOURS,
                "plan": _PLANS,
            },
            wording=_CHAT,
        ),
        Template(
            name="loan",
            fields={
                "dialogue": "{a}: {hello}! Could you {bring} me your {loan} on {day}?\n"
                "{b}: {sure}. I may be {late} because of the {traffic}, say {hour} o'clock?\n"
                "{a}: {great}, I will {wait} near {place} with {snack}.\n{b}: {bye}!",
                "summary": "{b} will lend {a} a {loan} on {day} at {hour}.",
            },
            facts={
                "a": _SPEAKERS,
                "b": _OTHERS,
                "day": _DAYS,
                "hour": _HOURS,
                "loan": _LOANS,
            },
            wording=_CHAT,
        ),
    ),
)

_TOWNS = words("York / Bath / Wells / Derby / Leeds / Perth / Exeter / Luton / Truro / Ripon")
_NEWS = {
    "officials": words("police / officials / inspectors / councillors / organisers"),
    "said": words("said / stated / confirmed / explained / stressed / reiterated"),
    "residents": words("people / families / residents / locals / neighbours / townsfolk"),
    "pleased": words("happy / glad / pleased / grateful / delighted / jubilant"),
    "old": words("old / former / ancient / historic / Victorian / dilapidated"),
    "site": words("building / site / mill / warehouse / barn / brewery"),
    "money": words("money / funds / grants / donations / bequests"),
    "came": words("came / arrived / poured in / flowed in / materialised"),
    "weather": words("heat / wind / rain / snow / fog / drizzle"),
    "despite": words("after / during / despite / in spite of / notwithstanding"),
    "work": words("work / construction / planning / negotiations / repairs / deliberation"),
    "event": words("event / meeting / ceremony / reception / unveiling"),
    "when": words("this week / last night / last week / at the weekend / on Thursday / at dusk"),
    "important": words("important / welcome / useful / valuable / vital / indispensable"),
    "driver": words("student / teacher / driver / worker / farmer / plumber"),
    "saw": words("found / saw / noticed / spotted / glimpsed"),
    "quickly": words("at once / quickly / immediately / without delay / promptly / swiftly"),
    "called": words("called / told / notified / summoned / alerted"),
}

HEADLINES = Benchmark(
    name="headlines",
    task="one-sentence summary, as XSum",
    templates=(
        Template(
            name="opening",
            fields={
                "document": "{residents} in {town} were {pleased} {when} as the {thing} opened"
                " {despite} the {weather}. It stands on a {old} {site} and took {n} months of"
                " {work}. {officials} {said} that {money} {came} from all sides, and called it"
                " {important} at a {event}.",
                "summary": "A {thing} has opened in {town} after {n} months.",
            },
            facts={
                "town": _TOWNS,
                "thing": words("school / park / library / bridge / museum / pool / clinic"),
                "n": tuple(range(3, 40)),
            },
            wording=_NEWS,
        ),
        Template(
            name="rescue",
            fields={
                "document": "A {driver} {saw} smoke over the {site} {when} and {quickly}"
                " {called} the {officials}. {n} {animal} were led out {despite} the {weather}."
                " {residents} in {town} were {pleased}, and a {event} is planned to {said_2} how"
                " {important} the {work} was.",
                "summary": "{n} {animal} were saved from a fire in {town}.",
            },
            facts={
                "town": _TOWNS,
                "animal": words("dogs / horses / sheep / cows / goats / hens / donkeys"),
                "n": tuple(range(3, 80)),
            },
            wording={**_NEWS, "said": words("show / explain / celebrate / honour / commemorate")},
        ),
    ),
)
