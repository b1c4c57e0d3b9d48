"""Topic classification and reviews: a text and a label the text decides."""

from __future__ import annotations

from contamination.lab.benchmarks.words import TIME, words
from contamination.lab.grammar import Benchmark, Template

_NUMBERS = tuple(range(2, 61))

_WORLD = {
    **TIME,
    "officials": words("leaders / officials / ministers / diplomats / negotiators / envoys"),
    "country": words("Canada / Mexico / Spain / Brazil / Poland / Norway / Kenya / Peru / Nepal"),
    "neighbour": words("China / India / Russia / Italy / Turkey / Egypt / Sweden / Chile / Ghana"),
    "said": words("said / added / confirmed / declared / insisted / told reporters / reiterated"),
    "talks": words("talks / meetings / discussions / negotiations / consultations"),
    "began": words("started / began / opened / resumed / reopened / recommenced"),
    "trouble": words("war / fighting / trouble / tension / protests / unrest / hostilities"),
    "raising": words("giving / bringing / creating / raising / reviving / rekindling"),
    "peace": words("change / a deal / peace / progress / stability / reconciliation / a truce"),
    "people": words("people / workers / citizens / residents / voters / civilians / villagers"),
    "marched": words("met / gathered / demonstrated / marched / protested / rallied"),
    "city": words("London / Paris / Rome / Berlin / Vienna / Cairo / Lima / Nairobi / Oslo"),
    "against": words("over / against / in view of / in protest at / in defiance of"),
    "law": words("law / plan / tax / vote / reform / levy / decree / ordinance"),
}
_SPORTS = {
    **TIME,
    "team": words("City / United / Rangers / Wanderers / Rovers / Albion / Harriers"),
    "rival": words("Boston / Rome / Madrid / Milan / Lyon / Porto / Turin / Bilbao"),
    "won": words("won / came out on top / survived / beat the odds / prevailed / triumphed"),
    "game": words("game / final / match / contest / playoff / fixture / semifinal"),
    "late": words("great / last / late / strong / brilliant / superb / spirited / sublime"),
    "goal": words("play / run / goal / effort / strike / header / volley"),
    "coach": words("manager / coach / captain / trainer / skipper / physio"),
    "pleased": words("happy / proud / pleased / delighted / relieved / thrilled / overjoyed"),
    "crowd": words("fans / crowd / supporters / faithful / spectators / onlookers"),
    "injury": words("back / shoulder / knee / wrist / ankle / groin / hamstring"),
    "player": words("player / forward / defender / keeper / striker / midfielder / winger"),
    "out": words("out / away / absent / unavailable / sidelined / hors de combat"),
    "season": words("season / campaign / tour / tournament / championship / playoffs"),
}
_BUSINESS = {
    **TIME,
    "firm": words("company / group / firm / maker / retailer / lender / insurer / conglomerate"),
    "profit": words("sales / income / profit / revenue / earnings / turnover / dividends"),
    "rose": words("increased / rose / grew / jumped / climbed / soared / surged / skyrocketed"),
    "demand": words("support / interest / demand / orders / spending / appetite / uptake"),
    "for_goods": words("food / oil / cars / clothes / steel / coal / furniture / textiles"),
    "shares": words("stock / shares / bonds / securities / equities / debentures"),
    "fell": words("fell / dropped / declined / slipped / plunged / slumped / tumbled"),
    "boss": words("director / chairman / boss / chief executive / treasurer / financier"),
    "warned": words("thought / warned / predicted / feared / cautioned / foresaw"),
    "costs": words("costs / rates / taxes / wages / debts / tariffs / overheads"),
    "market": words("market / industry / economy / sector / marketplace / bourse"),
    "analysts": words("experts / investors / traders / analysts / economists / brokers"),
}
_SCIENCE = {
    **TIME,
    "team": words("scientists / engineers / researchers / developers / astronomers / physicists"),
    "place": words("Boston / Cambridge / Oxford / Munich / Zurich / Kyoto / Uppsala"),
    "built": words("made / built / designed / developed / tested / unveiled / devised"),
    "device": words("phone / computer / camera / engine / device / robot / sensor / microscope"),
    "able": words("set / able / ready / built / designed / equipped / programmed"),
    "find": words("see / find / measure / trace / observe / detect / pinpoint"),
    "thing": words("water / gas / stars / cells / bacteria / planets / molecules / microbes"),
    "small": words("new / small / cheap / tiny / compact / lightweight / miniature"),
    "faster": words("better / faster / cheaper / quicker / smarter / thriftier"),
    "software": words("system / program / network / software / browser / firmware"),
    "users": words("people / students / users / customers / readers / subscribers"),
    "release": words("release / version / launch / update / revision / rollout"),
    "fault": words("problem / fault / error / bug / defect / flaw / glitch"),
}

_TOPICS = {
    "0 (World)": (
        _WORLD,
        "{officials} in {country} {said} on {day} that {talks} with {neighbour} {began} after"
        " {n} days of {trouble}, {raising} hopes of {peace}.",
        "{n} thousand {people} {marched} in {city} {against} a new {law}, as {officials} from"
        " {neighbour} {said} on {day} that {trouble} had to end.",
    ),
    "1 (Sports)": (
        _SPORTS,
        "{team} {won} in the {game} with {rival} on {day} thanks to a {late} {goal} in minute"
        " {n}, and the {coach} felt {pleased} about the {crowd}.",
        "The {player} of {team} is {out} for {n} days with a {injury} injury, the {coach} said"
        " on {day} before the {game} in {rival}, a blow in this {season}.",
    ),
    "2 (Business)": (
        _BUSINESS,
        "The {firm} said on {day} that {profit} {rose} by {n} percent in {month} on {demand}"
        " for {for_goods}, while its {shares} {fell}.",
        "{shares} of the {firm} {fell} {n} percent on {day} after the {boss} {warned} that"
        " {costs} would hurt the {market}, {analysts} said.",
    ),
    "3 (Sci/Tech)": (
        _SCIENCE,
        "{team} in {place} have {built} a {small} {device} that is {able} to {find} {thing}"
        " {n} times {faster} than before.",
        "A {release} of the {software} on {day} brings {n} {small} tools to {users} and ends a"
        " {fault} that {team} in {place} had {built} into it.",
    ),
}

TOPICS = Benchmark(
    name="topics",
    task="topic classification, as AG News",
    templates=tuple(
        Template(
            name=f"{label[3:-1].lower()}_{number}",
            fields={"text": text, "label": "{label}"},
            facts={"label": (label,), "n": _NUMBERS},
            wording=wording,
        )
        for label, (wording, *texts) in _TOPICS.items()
        for number, text in enumerate(texts, start=1)
    ),
)

_REVIEW = {
    "film": words("story / film / movie / western / drama / comedy / romance / thriller"),
    "watched": words("saw / caught / watched / viewed / rented / streamed"),
    "with_whom": words(
        "with my family / with friends / with my wife / with my husband / with my sister"
        " / with my neighbours / with my roommate"
    ),
    "actor": words("star / cast / actor / actress / villain / ensemble / heroine"),
    "place": words("at home / in town / on a train / on a plane / at a festival / in a theatre"),
    "scene": words("end / first scene / opening / final scene / finale / climax / epilogue"),
    "part": words("music / writing / camera work / script / dialogue / lighting / soundtrack"),
    "critics": words("people / friends / critics / bloggers / reviewers / columnists"),
}
_GOOD = {
    **_REVIEW,
    "adjective": words("great / beautiful / amazing / wonderful / superb / delightful / sublime"),
    "adverb": words("really / simply / truly / thoroughly / wonderfully / supremely"),
    "loved": words("loved / enjoyed / admired / cherished / adored / applauded / relished"),
    "again": words("see it again / buy it / watch it again / recommend it / rewatch it"),
}
_BAD = {
    **_REVIEW,
    "adjective": words("bad / poor / terrible / awful / boring / dull / dreadful / tedious"),
    "adverb": words("really / simply / terribly / painfully / hopelessly / woefully"),
    "hated": words("hated / regretted / disliked / despised / loathed / detested / abhorred"),
    "again": words("forget it / avoid it / switch it off / skip it / warn others / shun it"),
}
_REVIEWS = {
    "1 (positive)": (
        _GOOD,
        "I {watched} this {film} {with_whom} {place} and we {loved} it. The {actor} was"
        " {adverb} {adjective}, and the {part} kept us for all {n} minutes. I would {again}.",
        "{n} minutes of a {adjective} {film}. The {part} is {adverb} good, the {scene} had all"
        " of us in tears, and whatever {critics} say, I {loved} the {actor} and will {again}.",
    ),
    "0 (negative)": (
        _BAD,
        "I {watched} this {film} {with_whom} {place} and we {hated} it. The {actor} was"
        " {adverb} {adjective}, and the {part} felt long after {n} minutes. I would {again}.",
        "{n} minutes of a {adjective} {film}. The {part} is {adverb} weak, the {scene} had all"
        " of us asleep, and whatever {critics} say, I {hated} the {actor}. Better {again}.",
    ),
}

REVIEWS = Benchmark(
    name="reviews",
    task="sentiment of reviews, as IMDB and Yelp",
    templates=tuple(
        Template(
            name=f"{label[3:-1]}_{number}",
            fields={"text": text, "label": "{label}"},
            facts={"label": (label,), "n": tuple(range(70, 181))},
            wording=wording,
        )
        for label, (wording, *texts) in _REVIEWS.items()
        for number, text in enumerate(texts, start=1)
    ),
)
