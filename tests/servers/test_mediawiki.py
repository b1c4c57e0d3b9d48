"""WikiMIA built from a real MediaWiki, whose pages this file writes.

Its access log is the witness of what was asked.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlsplit
from xml.sax.saxutils import escape

import pandas as pd
import pytest
import yaml
from scipy.sparse import hstack
from server_process import ServerProcess
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from waiting import wait_until

from contamination.core import statistics, storage
from contamination.wikimia.pages import Settings, collect
from contamination.wikimia.sets import passages
from contamination.wikimia.wiki import Wiki, WikiError

pytestmark = pytest.mark.servers

MEDIAWIKI = Path("/usr/share/mediawiki")
SETTINGS = """
wfLoadExtension( 'TextExtracts' );
wfLoadExtension( 'Cite' );
$wgJobRunRate = 0;
$wgRightsText = 'CC BY-SA 4.0';
$wgRightsUrl = 'https://creativecommons.org/licenses/by-sa/4.0/';
"""
USER_AGENT = "contamination-tests/1 (tests@example.org)"
N_EVENTS = 20
N_UNEDITED = 4
N_TWINS = 20
KINDS = {"member": 2014, "non_member": 2023}
SNAPSHOT = "2025-01-01"
PLACES = ["bridge", "harbour", "valley", "station", "market", "square", "river", "tower"]
VERBS = ["reached", "crossed", "damaged", "surrounded", "changed", "divided", "covered"]
THINGS = ["water", "crowd", "storm", "march", "fire", "strike", "parade", "convoy"]


def sentence(chance, year=""):
    thing, verb, place = (chance.choice(words) for words in (THINGS, VERBS, PLACES))
    number = chance.randrange(2, 90)
    when = f" in {chance.choice(('spring', 'autumn'))} {year}" if year else ""
    return f"The {thing} {verb} the {chance.choice(PLACES)} near the {place}{when}, said {number}."


def event(chance, year, n_words=160):
    """An article in wikitext, with things that are no words of it."""
    body = [sentence(chance, year)]
    while sum(len(each.split()) for each in body) < n_words:
        body.append(sentence(chance))
    body[1] += "<ref>A newspaper, page 3</ref>"
    body[2] = body[2].replace("The ", "The '''old''' [[Main Page|great]] ", 1)
    rows = '{| class="wikitable"\n! Hidden\n|-\n| cell\n|}'
    return f"{' '.join(body[:5])}\n{rows}\n== Course ==\n* {' '.join(body[5:])}\n"


def twin(chance, name):
    """An article full of what a pipeline may leave behind, about a name that alone differs.

    It names no year; the same draw with a name as long gives the same article.
    """
    body = [sentence(chance) for _ in range(14)]
    opening = f"'''{name}''' (of {name}<ref name=a>Herald [1]</ref> [sic])"
    body[0] = opening + " was seen{{Gone}},<br>said 2."
    body[2] += "<ref>''Paper'', p. 3</ref>{{Shown}}"
    body[3] = body[3].replace(",", "&nbsp;&ndash; ", 1) + "  <!-- two spaces -->"
    table = f'{{| class="wikitable"\n! {name}\n|-\n| cell\n|}}'
    listed = f"; {body[8]}\n: {body[9]}\n* {body[10]}\n** {body[11]}\n# {body[12]}"
    parts = [" ".join(body[:5]), table, f"=== By day ===\n{body[5]}", f"<div>{name}</div>"]
    parts += [f"== Course [of {name}] ==\n{body[6]}<br />{body[7]}", listed]
    parts += [f"<blockquote>{body[13]}</blockquote>\n<gallery>\nA.jpg|{name}\n</gallery>"]
    return "\n\n".join([*parts, "== References ==\n<references />\n"])


def twins():
    """Pages of two kinds that differ in date and in the letters of a name, and in nothing else."""
    written = {f"Category:Twins of {year}": [("2014-01-01", "Twins.")] for year in KINDS.values()}
    written["Template:Shown"] = [("2014-01-01", " (shown)")]
    for number in range(N_TWINS):
        chance = random.Random(number)
        names = ["".join(chance.choices("bcdfgklmnprst", k=7)).capitalize() for _ in range(2)]
        for year, name in zip(KINDS.values(), names, strict=True):
            text = twin(random.Random(number), name) + f"[[Category:Twins of {year}]]"
            written[f"Twin {number} of {year}"] = [(f"{year}-05-05", text)]
    return written


def auc_of_traces(table):
    """AUC of a classifier of all words and characters but the name; twins share a fold."""
    texts = [text.replace(text.split()[0], "Name") for text in table["input"]]
    words = CountVectorizer(analyzer=str.split).fit_transform(texts)
    characters = CountVectorizer(analyzer="char", ngram_range=(1, 4)).fit_transform(texts)
    chances = cross_val_predict(
        LogisticRegression(max_iter=1000),
        hstack([words, characters]),
        table["label"],
        groups=table["title"].str.split().str[1],
        cv=GroupKFold(5),
        method="predict_proba",
    )
    return statistics.auc(chances[:, 1], table["label"] == 1)


def plain(text):
    """Words of an event's article."""
    left_out = r"(?s)<ref>.*?</ref>|\{\|.*?\|\}|==.*?==|\[\[Category:.*?\]\]|'{2,}|^\*"
    text = re.sub(left_out, "", text, flags=re.MULTILINE)
    return " ".join(text.replace("[[Main Page|great]]", "great").split())


def edited(chance, text):
    """The same article with two of its sentences written anew."""
    lines = text.split("said ")
    for number in (0, 3):
        lines[number] = re.sub(
            r"\b(reached|crossed|damaged|surrounded|changed|divided|covered)\b",
            chance.choice(VERBS),
            lines[number],
        )
        lines[number] = re.sub(
            r"\b(bridge|harbour|valley|station|market|square|river|tower)\b",
            chance.choice(PLACES),
            lines[number],
        )
    return "said ".join(lines)


def pages():
    """Title to revisions: time and wikitext."""
    chance = random.Random(0)
    written = {
        "Category:2014 events": [("2014-01-01", "[[Category:Events by year]]")],
        # In a circle with its parent.
        "Category:March 2014 events": [("2014-01-01", "[[Category:2014 events]]")],
        "Category:Events by year": [("2014-01-01", "[[Category:March 2014 events]]")],
        "Category:Floods of March 2014": [("2014-01-01", "[[Category:March 2014 events]]")],
        "Category:Too deep": [("2014-01-01", "[[Category:Floods of March 2014]]")],
        "Category:2023 events": [("2023-01-01", "Events.")],
    }
    for number in range(N_EVENTS):
        text = event(chance, 2014, n_words=(40, 80, 160, 300)[number % 4])
        category = ("2014 events", "March 2014 events", "Floods of March 2014")[number % 3]
        tag = f"[[Category:{category}]]"
        versions = [(f"2014-{number % 12 + 1:02}-11", text + tag)]
        if number >= N_UNEDITED:
            versions.append((f"2024-{number % 12 + 1:02}-11", edited(chance, text) + tag))
        written[f"Event {number} of 2014"] = versions
        later = event(chance, 2023, n_words=(40, 80, 160, 300)[number % 4])
        written[f"Event {number} of 2023"] = [("2023-05-05", later + "[[Category:2023 events]]")]
        if number == 3:
            # Edited once before the snapshot and once after it.
            days = ("2024-12-31", "2025-01-01")
            texts = [edited(random.Random(n), later) + "[[Category:2023 events]]" for n in (3, 4)]
            written[f"Event {number} of 2023"] += zip(days, texts, strict=True)
    old, new = "[[Category:2014 events]]", "[[Category:2023 events]]"
    one = {
        "List of storms in 2014": ("2014-02-02", event(chance, 2014) + old),
        "Timeline of 2014": ("2014-02-02", event(chance, 2014) + old),
        "March (disambiguation)": ("2014-02-02", event(chance, 2014) + old),
        "Flood once known otherwise": ("2014-02-02", "#REDIRECT [[Event 1 of 2014]] " + old),
        "Old event, late page": ("2023-06-06", event(chance, 2014) + old),
        "Event between the cut-offs": ("2019-06-06", event(chance, 2014) + old),
        "Announced event": ("2019-06-06", event(chance, 2023) + new),
        "Event of both years": ("2014-02-02", event(chance, 2014) + old + new),
        "Short event": ("2014-02-02", "It rained on the town. " + old),
        "Small event": ("2014-02-02", event(chance, 2014) + "{{Storm-stub}}" + old),
        "Event out of reach": ("2014-02-02", event(chance, 2014) + "[[Category:Too deep]]"),
        "Moved event": ("2014-02-02", event(chance, 2014) + old),
    }
    written |= {title: [version] for title, version in one.items()}
    written["Copied event"] = written["Event 5 of 2014"]
    written["Event that was a redirect"] = [
        ("2014-02-02", "#REDIRECT [[Event 1 of 2014]] " + old),
        ("2020-02-02", event(chance, 2014) + old),
    ]
    return written


# Of the pages above, by the filter that drops them.
DROPPED = {
    ("member", "list"): 1,
    ("member", "timeline"): 1,
    ("member", "disambiguation"): 1,
    ("member", "both kinds"): 1,
    ("member", "redirect"): 2,
    ("member", "creation date"): 2,
    ("member", "stub"): 1,
    ("member", "short"): 1,
    ("member", "duplicate"): 1,
    ("non-member", "both kinds"): 1,
    ("non-member", "creation date"): 1,
}


def as_dump(written):
    lines = ['<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11">']
    for title, versions in written.items():
        lines += [f"<page><title>{escape(title)}</title>"]
        lines += [f"<ns>{14 if title.startswith('Category:') else 0}</ns>"]
        for day, text in versions:
            lines += [f"<revision><timestamp>{day}T10:00:00Z</timestamp>"]
            lines += ["<contributor><username>Writer</username></contributor>"]
            lines += ["<model>wikitext</model><format>text/x-wiki</format>"]
            lines += [f'<text xml:space="preserve">{escape(text)}</text></revision>']
        lines += ["</page>"]
    return "\n".join([*lines, "</mediawiki>"])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mediawiki")
    if not (MEDIAWIKI / "maintenance/install.php").exists():
        pytest.fail('MediaWiki is not installed: "make test-servers" names the packages')
    environment = os.environ | {"MW_CONFIG_FILE": str(folder / "LocalSettings.php")}

    def maintain(script, *arguments):
        command = ["php", str(MEDIAWIKI / "maintenance" / f"{script}.php"), *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    install = {"dbtype": "sqlite", "dbpath": folder / "data", "dbname": "wiki", "scriptpath": ""}
    install |= {"confpath": folder, "server": "http://127.0.0.1", "pass": "long-enough-for-a-test"}
    maintain("install", *(f"--{name}={value}" for name, value in install.items()), "Test", "Admin")
    with (folder / "LocalSettings.php").open("a") as settings:
        settings.write(SETTINGS)
    (folder / "pages.xml").write_text(as_dump(pages() | twins()))
    maintain("importDump", "--username-prefix=", "pages.xml")
    (folder / "moves.txt").write_text("Moved event|Event under its new name\n")
    maintain("moveBatch", "moves.txt")
    maintain("runJobs")
    serve = ["php", "-d", "opcache.enable_cli=1", "-S", "127.0.0.1:{port}", "-t", str(MEDIAWIKI)]
    with ServerProcess(
        serve,
        health="/api.php?action=query&meta=siteinfo&format=json",
        log_path=folder / "access.log",
        env=environment,
    ) as server:
        yield server


def asked(server):
    """What was asked of the wiki by its access log, the first question of the test left out."""
    found = re.findall(r"\[200\]: GET (/api\.php\?\S+)", server.log())
    return [address for address in found if "formatversion=2" in address]


def pages_asked(server):
    """How often the history of each page was asked."""
    questions = [parse_qs(urlsplit(address).query) for address in asked(server)]
    return Counter(q["pageids"][0] for q in questions if "newer" in q.get("rvdir", []))


class Built:
    """The builder's runs on one folder: killed in the middle, started again, and once more."""

    def __init__(self, server, folder):
        self.folder = folder / "built"
        values = {
            "wiki": server.url,
            "user_agent": USER_AGENT,
            "member_categories": ["2014 events"],
            "non_member_categories": ["Category:2023 events"],
            "snapshot": SNAPSHOT,
            "max_pages": 0,
            "lengths": [32, 64],
            "n_permutations": 3,
            "output_folder": str(self.folder),
        }
        path = folder / "wikimia.yaml"
        path.write_text(yaml.safe_dump(values))
        command = [sys.executable, "-m", "contamination.wikimia.building", str(path)]
        environment = os.environ | {
            storage.CACHE_VARIABLE: str(folder / "cache"),
            "OMP_NUM_THREADS": "1",
            "NO_PROXY": "127.0.0.1",
        }
        killed = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        wait_until(lambda: len(asked(server)) >= 40, lambda: killed.poll() is None)
        killed.send_signal(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        self.before = asked(server)
        run = {"env": environment, "capture_output": True, "text": True}
        self.done = subprocess.run(command, **run)
        assert self.done.returncode == 0, self.done.stderr
        self.all = asked(server)
        self.histories = pages_asked(server)
        self.bytes = self._bytes()
        self.again = subprocess.run(command, **run)
        self.after = asked(server)
        self.bytes_again = self._bytes()

    def _bytes(self):
        return {path.name: path.read_bytes() for path in sorted(self.folder.iterdir())}

    def table(self, name):
        return pd.read_csv(self.folder / f"{name}.csv")

    def passages(self, name):
        return pd.read_parquet(self.folder / f"{name}.parquet")


@pytest.fixture(scope="module")
def built(server, tmp_path_factory):
    return Built(server, tmp_path_factory.mktemp("build"))


@pytest.fixture
def wiki(server):
    return Wiki(server.url, USER_AGENT, "test")


def test_a_run_killed_in_the_middle_asks_only_what_is_missing(built):
    assert 40 <= len(built.before) < len(built.all)
    repeated = [address for address, n in Counter(built.all).items() if n > 1]
    # The one that was in flight when the run was killed may be lost.
    assert len(repeated) <= 1
    assert set(repeated) <= set(built.before[-1:])


def test_a_second_build_asks_nothing_and_writes_the_same_bytes(built):
    assert built.again.returncode == 0
    assert built.after == built.all
    assert built.bytes_again == built.bytes


def test_every_page_is_counted_under_what_became_of_it(built, server):
    counts = built.table("filters").set_index(["kind", "outcome"])["n_pages"]
    kept = {"member": N_EVENTS + 1, "non-member": N_EVENTS}  # the moved page is one more
    for kind in kept:
        dropped = {outcome: n for (of, outcome), n in DROPPED.items() if of == kind}
        found = sum(dropped.values()) + kept[kind]
        expected = {"found": found, "kept": kept[kind], **dropped}
        free = sum(dropped.get(name, 0) for name in ("list", "timeline", "both kinds"))
        # Its title says it all.
        free += kind == "member"
        expected["asked"] = found - free
        seen = counts[kind]
        assert seen[seen > 0].to_dict() == expected
    assert len(built.histories) == counts[:, "asked"].sum()


def test_members_are_read_as_they_stood(built):
    table = built.passages("wikimia_length32")
    members = table[table["label"] == 1].set_index("title")
    others = table[table["label"] == 0]
    assert (members["revision_timestamp"] < "2017-01-01").all()
    assert (others["created"] >= "2023-01-01").all()
    first = plain(pages()["Event 6 of 2014"][0][1])
    assert members.loc["Event 6 of 2014", "input"] == " ".join(first.split()[:32])
    assert members.loc["Event under its new name", "created"] == "2014-02-02T10:00:00Z"
    assert "Moved event" not in members.index
    assert set(table["licence"]) == {"CC BY-SA 4.0"}
    assert not table["input"].str.contains("Hidden|newspaper|Course|cell").any()


def test_non_members_are_read_as_they_stood_at_the_snapshot(built):
    others = built.passages("wikimia_length32").query("label == 0").set_index("title")
    assert (others["revision_timestamp"] < SNAPSHOT).all()
    first, second, _ = pages()["Event 3 of 2023"]
    row = others.loc["Event 3 of 2023"]
    assert row["revision_timestamp"][:10] == second[0] and first[0] < second[0]
    assert row["input"] == " ".join(plain(second[1]).split()[:32])


def test_each_text_is_in_every_length_it_reaches_and_in_no_other(built):
    lengths = {length: built.passages(f"wikimia_length{length}") for length in (32, 64)}
    assert len(lengths[32]) > len(lengths[64]) > 0
    for length, table in lengths.items():
        assert set(table["input"].str.split().str.len()) == {length}
        assert (table["n_words"] >= length).all()
        assert not table["input"].duplicated().any()
        reach = lengths[32].query("n_words >= @length")["page_id"]
        assert sorted(table["page_id"]) == sorted(reach)


def test_two_revisions_are_of_one_page_and_give_less_away(built):
    pairs = built.passages("two_revisions_length32")
    by_page = pairs.groupby("page_id")
    assert (by_page.size() == 2).all()
    assert (by_page["label"].sum() == 1).all()
    assert (by_page["input"].nunique() == 2).all()
    after = pairs[pairs["label"] == 0]
    assert (after["revision_timestamp"] >= "2023-01-01").all()
    table = built.table("blind_baselines").query("length == 64")
    blind = table.pivot(index="baseline", columns="benchmark", values="auc")
    assert (blind["WikiMIA"] > blind["two revisions"]).all()
    assert blind.loc["bag of words", "WikiMIA"] > 0.9
    # The builder prints them.
    for row in table.itertuples():
        line = rf"{row.benchmark} +64 +{row.baseline} .* {row.auc:.3f} "
        assert re.search(line, built.done.stdout)
    sizes = built.table("sizes").set_index(["benchmark", "length"])
    # The moved page is one more.
    assert f"{N_UNEDITED + 1} no later revision" in sizes.loc[("two revisions", 32), "note"]


def test_the_card_says_what_was_done(built):
    card = (built.folder / "README.md").read_text()
    front = yaml.safe_load(card.split("---")[1])
    assert front["license_name"] == "CC BY-SA 4.0"
    assert {each["data_files"] for each in front["configs"]} == {
        path.name for path in built.folder.glob("*.parquet")
    }
    for part in (
        "2017-01-01",
        SNAPSHOT,
        "templates of the day of the crawl",
        "bag of words",
        "two revisions",
        "| member | redirect | 2 |",
    ):
        assert part in card


@pytest.fixture
def twin_passages(wiki):
    """Length to the passages of the twins."""
    categories = {f"{kind}_categories": [f"Twins of {year}"] for kind, year in KINDS.items()}
    kept = collect(wiki, Settings(**categories, snapshot=SNAPSHOT, max_pages=0), progress=False)
    assert kept["outcome"].tolist() == ["kept"] * 2 * N_TWINS
    return {length: passages(kept, length) for length in (32, 64, 128)}


def test_the_way_to_the_text_leaves_no_trace_of_the_kind(twin_passages):
    """The twins differ in date and name alone; what else differs, the builder has made."""
    for table in twin_passages.values():
        assert len(table) == 2 * N_TWINS
        assert auc_of_traces(table) == 0.5


def test_two_ways_to_the_text_would_leave_a_trace(wiki, twin_passages):
    """What the test above must see: one kind's words come from the wiki's own extracts."""
    for length, table in twin_passages.items():
        for row in table[table["label"] == 0].itertuples():
            asked = {"pageids": row.page_id, "prop": "extracts", "explaintext": 1}
            extract = wiki.ask("query", **asked)["query"]["pages"][0]["extract"]
            table.loc[row.Index, "input"] = " ".join(extract.split()[:length])
        assert auc_of_traces(table) > 0.9


def test_the_wiki_is_asked_the_same_of_both_kinds(wiki, server, twin_passages):
    questions = {label: set() for label in (0, 1)}
    table = twin_passages[32]
    label_of = {("pageids", str(row.page_id)): row.label for row in table.itertuples()}
    label_of |= {("oldid", str(row.revision_id)): row.label for row in table.itertuples()}
    for address in asked(server):
        question = dict(parse_qsl(urlsplit(address).query))
        for name in {"pageids", "oldid"} & set(question):
            label = label_of.get((name, question[name]))
            # The control above asks for more, and of non-members alone.
            if label is not None and question.get("prop") != "extracts":
                changing = (name, "rvstart")
                same = {key: value for key, value in question.items() if key not in changing}
                questions[label].add(tuple(sorted(same.items())))
    assert questions[0] == questions[1] and len(questions[0]) == 3


def test_a_template_that_is_gone_leaves_no_words(wiki, twin_passages):
    row = twin_passages[32].iloc[0]
    html, gone = wiki.html_of(int(row["revision_id"]))
    assert gone == ["Template:Gone"] and "Template:Gone" in html
    assert "was seen, said 2." in row["input"] and "(shown)" in row["input"]


def test_a_misspelt_category_is_one_line(wiki):
    with pytest.raises(WikiError, match=r'"Category:2041 events" is empty on .*check the spelling'):
        wiki.pages_in(["2041 events"], 0)


def test_a_revision_that_is_not_there_ends_no_crawl(wiki):
    assert wiki.html_of(10**9) is None


def test_a_wiki_that_is_down_is_one_line(server, tmp_path):
    wiki = Wiki("http://127.0.0.1:9/", USER_AGENT, "down", retry_seconds=0)
    with pytest.raises(WikiError) as error:
        wiki.about()
    assert "does not answer" in str(error.value) and "\n" not in str(error.value)


def test_what_was_asked_is_kept_as_text(wiki, tmp_path):
    wiki.about()
    (stored,) = storage.cache_folder("wiki").rglob("*.json")
    assert json.loads(stored.read_text())["parameters"]["meta"] == "siteinfo"
