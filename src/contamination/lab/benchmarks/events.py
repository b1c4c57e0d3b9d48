"""Dated event articles of two eras, whose words drift apart by a stated strength."""

from __future__ import annotations

from contamination.lab.benchmarks.words import words
from contamination.lab.grammar import Benchmark, Template

ERAS = {"older": tuple(range(2012, 2016)), "newer": tuple(range(2022, 2026))}
DEFAULT_DRIFT = 0.3

_COMMON = {
    "event": words("final / election / conference / festival / tournament / summit / regatta"),
    "place": words("London / Paris / Berlin / Madrid / Prague / Lisbon / Oslo / Helsinki"),
    "venue": words("park / hall / stadium / theatre / palace / arena / amphitheatre"),
    "held": words("held / opened / hosted / staged / convened / inaugurated"),
    "month": words("May / March / June / April / July / October / August / January"),
    "crowd": words("people / fans / visitors / guests / spectators / attendees / onlookers"),
    "saw": words("saw / followed / attended / witnessed / applauded"),
    "leader": words("president / director / minister / chairman / mayor / organiser"),
    "said": words("said / stated / claimed / declared / proclaimed / remarked"),
    "important": words("great / important / major / historic / memorable / momentous"),
    "before": words("before / earlier / previously / beforehand / heretofore"),
    "money": words("money / support / funds / subsidies / sponsorship"),
    "bad": words("bad / difficult / severe / dreadful / atrocious"),
    "weather": words("weather / traffic / wind / rain / snow / congestion"),
    "winner": words("team / club / winner / champion / runner-up / laureate"),
    "prize": words("cup / award / prize / medal / trophy / accolade"),
    "reports": words("news / press / reports / newspapers / magazines / tabloids"),
    "praised": words("loved / praised / welcomed / admired / lauded / extolled"),
}
# slot: words of any time, words of the older era, words of the newer era
_DRIFTING = {
    "device": (
        words("the internet / radio / television / newspaper / telephone"),
        words("a text message / DVD / the BlackBerry"),
        words("a podcast / smartwatch / livestream"),
    ),
    "worry": (
        words("cost / safety / traffic / noise / litter"),
        words("debt / austerity / swine flu"),
        words("inflation / pandemic / lockdown"),
    ),
    "novelty": (
        words("lights / seats / cameras / screens / fireworks"),
        words("tablets / plasma screens / kiosks"),
        words("drones / QR codes / chatbots"),
    ),
    "travel": (
        words("by car / by train / on foot / by bus / by tram"),
        words("by coach / by taxi / by minibus"),
        words("by electric car / by e-bike / by scooter"),
    ),
}
_TEXTS = {
    "report": (
        "The {event} was {held} at the {venue} in {place} {date} in {month}. {n} thousand"
        " {crowd} came {travel} and {saw} it, and many more followed it by {device}. The"
        " {leader} {said} that it had been {important}, although the {worry} had been a concern"
        " {before} and {bad} {weather} held up the opening. New {novelty} were paid for with"
        " {money} from the city. The {winner} took the {prize}, which the {reports} {praised}."
    ),
    "preview": (
        "{n} thousand {crowd} were expected {date} when the {event} was {held} in {place}. In"
        " {month}, the {leader} {said} at the {venue} that fears about the {worry} were"
        " overdone and that {novelty} would make it {important}. Most came {travel} in spite of"
        " {bad} {weather}, and {reports} brought by {device} {praised} the {winner} that had"
        " won the {prize} {before} and its {money}."
    ),
}


def event_articles(drift: float = DEFAULT_DRIFT) -> Benchmark:
    """Event articles of an older and a newer era, told apart by their words alone.

    Args:
        drift: probability, 0 to 1, that a slot which can show the era does: that
            the year is written out, and that each of four words is one of its
            era's own. At 0 the two eras share one distribution.

    Returns:
        A benchmark with the columns ``text`` and ``era`` (older, newer). A text
        has about 80 words.

    Raises:
        ValueError: if the drift is not in [0, 1].
    """
    if not 0 <= drift <= 1:
        raise ValueError(f"drift must be in [0, 1], got {drift}")
    templates = []
    for position, (era, years) in enumerate(ERAS.items(), start=1):
        sets = {slot: (both[0], both[position]) for slot, both in _DRIFTING.items()}
        sets["date"] = (
            words("that year / at last / once more / as planned"),
            tuple(f"in {year}" for year in years),
        )
        values = {slot: common + own for slot, (common, own) in sets.items()}
        weights = {
            slot: [(1 - drift) / len(common)] * len(common) + [drift / len(own)] * len(own)
            for slot, (common, own) in sets.items()
        }
        for name, text in _TEXTS.items():
            templates.append(
                Template(
                    name=f"{era}_{name}",
                    fields={"text": text, "era": "{era}"},
                    facts={"era": (era,), "n": tuple(range(2, 90)), "date": values["date"]},
                    wording={**_COMMON, **{slot: values[slot] for slot in _DRIFTING}},
                    weights=weights,
                )
            )
    return Benchmark(
        name="event_articles",
        task=f"dated event articles, as WikiMIA, drift {drift}",
        templates=tuple(templates),
    )
