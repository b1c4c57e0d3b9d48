import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pandas as pd
import pytest
import yaml
from damage import DAMAGES, said_of
from notebook_files import ROOT
from scripted_server import MODEL, ScriptedServer, failure, good

from contamination.core import blind, storage
from contamination.core.parameters import ParameterError, load_parameter_file
from contamination.models.chat import ChatError, Endpoint, Limits
from contamination.models.response_log import ResponseLog
from contamination.wikimia import building, pages, sets
from contamination.wikimia import pages as wiki_pages
from contamination.wikimia.pages import Settings, collect, outcome_counts
from contamination.wikimia.wiki import History, Revision, Wiki, WikiError

USER_AGENT = "tests/1 (tests@example.org)"
CATEGORIES = {"member_categories": ["Old"], "non_member_categories": ["New"]}
SHORT = Settings(**CATEGORIES, lengths=[4, 8], max_pages=0)


# Text


def test_headings_tables_boxes_and_references_are_no_words():
    html = (
        "<p>The <b>flo</b>od<sup class='reference'>[1]</sup> of&nbsp;2014<br>came.</p>"
        "<h2><span>Course</span></h2><table><tr><td>cell</td></tr></table><div>box</div>"
        "<style>.a{}</style><ul class='gallery'><li>picture</li></ul>"
        "<ul><li>one</li>\n<li>two</li></ul>"
        "<ol class='references'><li>source</li></ol><span class='noexcerpt'>not this</span>"
    )
    assert pages.from_html(html) == "The flood of 2014 came. one two"


def test_a_template_that_is_gone_leaves_no_words_and_a_page_that_is_missing_does():
    link = '<a href="?title={0}&redlink=1" class="new">{0}</a>'
    html = f"<p>It rose {link.format('Template:When')} at {link.format('Mission: Ald')}.</p>"
    assert pages.from_html(html, ["Template:When"]) == "It rose at Mission: Ald."


@pytest.mark.parametrize(
    ("source", "expected"),
    [("#REDIRECT [[A]]", True), (" #weiterleitung: [[A]]", True), ("# [[A]] is first", False)],
)
def test_redirects_are_known_in_any_language(source, expected):
    assert pages.is_redirect(source) is expected


@pytest.mark.parametrize(
    ("title", "outcome"),
    [
        ("List of storms", "list"),
        ("Lists of storms", "list"),
        ("Listing of the ship", None),
        ("Timeline of 2014", "timeline"),
        ("March (disambiguation)", "disambiguation"),
        ("The List of Adrian", None),
    ],
)
def test_titles_that_hold_no_article(title, outcome):
    assert wiki_pages.outcome_of_title(title, SHORT) == outcome


# Pages


class FakeWiki:
    """Pages by name of category and number; a page is its history and its revisions by time."""

    def __init__(self, pages):
        self.pages = pages

    def pages_in(self, categories, depth):
        return [
            {"page_id": number, "title": page.get("title", f"Page {number}"), "category": name}
            for number, page in self.pages.items()
            for name in categories
            if name in page["in"]
        ]

    def history(self, number):
        page = self.pages[number]
        if page.get("gone"):
            return None
        created = min(page["revisions"])
        return History(created, page.get("redirect", False), page.get("choice", False))

    def revision_before(self, number, moment):
        revisions = sorted(self.pages[number]["revisions"].items())
        place = sum(time <= moment for time, _ in revisions) - 1
        return Revision(number * 10 + place, *revisions[place])

    def html_of(self, revision_id):
        number, place = divmod(revision_id, 10)
        text = sorted(self.pages[number]["revisions"].items())[place][1]
        return f"<p>{text}<sup class='reference'>[1]</sup></p><h2>Head</h2>", []


def old(text, **more):
    return {"in": ["Old"], "revisions": {"2014-05-05T00:00:00Z": text}, **more}


def new(text, created="2023-05-05T00:00:00Z", **more):
    return {"in": ["New"], "revisions": {created: text}, **more}


def words(number, n_words=10):
    return " ".join(f"w{number}x{position}" for position in range(n_words))


def outcomes(pages, settings=SHORT):
    table = collect(FakeWiki(pages), settings, progress=False)
    return table.set_index("page_id")["outcome"].to_dict()


def test_each_page_ends_under_one_outcome():
    ends = [
        (old(words(1)), "kept"),
        (old(words(2), gone=True), "gone"),
        (old(words(3), redirect=True), "redirect"),
        (old(words(4), choice=True), "disambiguation"),
        (old(None), "hidden text"),
        (old("too short text"), "short"),
        (old(words(7) + " {{Storm-stub}}"), "stub"),
        (old(words(8), title="List of storms"), "list"),
        (old(words(9)) | {"in": ["Old", "New"]}, "both kinds"),
        (old(words(10)) | {"revisions": {"2017-01-01T00:00:00Z": words(10)}}, "creation date"),
        (new(words(11)), "kept"),
        (new(words(12), created="2022-12-31T23:59:59Z"), "creation date"),
        (new(words(13), created="2023-01-01T00:00:00Z"), "kept"),
        (new(words(1)), "duplicate"),
        (new(words(15), created="2026-01-01T00:00:00Z"), "creation date"),
    ]
    pages = {number: page for number, (page, _) in enumerate(ends, 1)}
    assert outcomes(pages) == {number: outcome for number, (_, outcome) in enumerate(ends, 1)}
    table = collect(FakeWiki(pages), SHORT, progress=False)
    counts = outcome_counts(table).set_index(["kind", "outcome"])["n_pages"]
    for kind, n_found, n_asked in (("member", 10, 8), ("non-member", 6, 5)):
        assert (counts[kind, "found"], counts[kind, "asked"]) == (n_found, n_asked)
        assert counts[kind].drop(["found", "asked"]).sum() == n_found


@pytest.mark.parametrize(
    ("kind", "moments"),
    [
        ("member", ("2014-05-05T00:00:00Z", "2016-12-31T23:59:59Z", "2017-01-01T00:00:00Z")),
        ("non-member", ("2023-05-05T00:00:00Z", "2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z")),
    ],
)
def test_a_page_is_read_as_it_stood_in_the_last_second_before_the_cut_off(kind, moments):
    """A member before its cut-off, a non-member before the snapshot."""
    this, other = (old, new) if kind == "member" else (new, old)
    page = this("") | {"revisions": {moment: words(n) for n, moment in enumerate(moments, 1)}}
    table = collect(FakeWiki({1: page, 2: other(words(4))}), SHORT, progress=False)
    kept = table[table["kind"] == kind].iloc[0]
    assert (kept["text"], kept["revision_id"]) == (words(2), 11)
    assert kept["revision_timestamp"] == moments[1]
    # The member's later revision is older than the non-member cut-off.
    assert pd.isna(kept["later_text"])


def test_every_text_is_the_html_of_the_revision_that_is_named(monkeypatch):
    """Both kinds and both sides of a pair: the page's own source is no second way."""
    pages = {number: (old if number < 4 else new)(words(number)) for number in range(8)}
    pages[2]["revisions"]["2024-01-01T00:00:00Z"] = words(9)
    rendered = []

    def html_of(self, revision_id):
        rendered.append(revision_id)
        return f"<p>rendered as {revision_id} rendered</p>", []

    monkeypatch.setattr(FakeWiki, "html_of", html_of)
    table = collect(FakeWiki(pages), SHORT, progress=False)
    assert (table["outcome"] == "kept").all() and len(set(rendered)) == len(rendered) == 9
    for row in table.itertuples():
        assert row.text == f"rendered as {row.revision_id} rendered"
    changed = table[table["later_text"].notna()]
    assert changed["later_text"].tolist() == ["rendered as 21 rendered"]


def test_a_page_that_cannot_be_rendered_is_dropped(monkeypatch):
    monkeypatch.setattr(FakeWiki, "html_of", lambda *_: None)
    assert outcomes({1: old(words(1)), 2: new(words(2))}) == {1: "hidden text", 2: "hidden text"}


def test_no_more_pages_are_looked_at_than_needed():
    pages = {number: old(words(number)) for number in range(1, 6)} | {9: new(words(9))}
    settings = Settings(**CATEGORIES, lengths=[4], max_pages=2)
    fates = outcomes(pages, settings)
    assert sorted(fates.values()) == ["kept"] * 3 + ["not needed"] * 3
    assert outcomes(pages, settings) == fates


# Sets


def collected(*rows):
    """Pages as collect returns them: kind, text, later text."""
    table = pd.DataFrame(rows, columns=["kind", "text", "later_text"])
    moments = {"revision_timestamp": "2016", "created": "2014", "later_timestamp": "2024"}
    fixed = {"outcome": "kept", "title": "T", "category": "C", **moments}
    ids = {"page_id": table.index, "revision_id": table.index, "later_revision_id": table.index}
    texts = {"text": table["text"].astype("str"), "later_text": table["later_text"].astype("str")}
    return table.assign(**fixed, **ids, **texts)


def test_a_text_is_in_every_length_it_reaches():
    pages = collected(("member", words(1, 8), None), ("non-member", words(2, 7), None))
    assert sets.passages(pages, 4)["input"].tolist() == [words(1, 4), words(2, 4)]
    assert sets.passages(pages, 4)["label"].tolist() == [1, 0]
    assert sets.passages(pages, 8)["n_words"].tolist() == [8]
    assert sets.passages(pages, 9).empty
    table, fates = sets.revision_pairs(pages, 9)
    assert table.empty and fates["kept"] == 0


def test_two_revisions_are_matched_in_length_and_differ():
    pages = collected(
        ("member", "a b c d e", "a B' c d e"),  # kept
        ("member", "a b c d", "a b"),  # the later one is too short
        ("member", "a b c d e", "a b c d changed"),  # the same in its first four words
        ("member", "a b c d", None),
        ("non-member", "a b c d", "x y z w"),
    )
    table, fates = sets.revision_pairs(pages, 4)
    assert table["input"].tolist() == ["a b c d", "a B' c d"]
    assert table["label"].tolist() == [1, 0]
    assert table["revision_timestamp"].tolist() == ["2016", "2024"]
    assert fates == {"no later revision": 1, "short": 1, "unchanged": 1, "kept": 1}


def test_pairs_that_hold_no_difference_are_at_chance_and_not_below(monkeypatch):
    """In ordinary folds a classifier sees one version with the other's label."""
    texts = [f"page{number} name{number} town" for number in range(20) for _ in range(2)]
    is_member = [True, False] * 20
    pages = np.repeat(np.arange(20), 2)
    settings = {"baselines": ["bag of words"], "n_folds": 5, "n_permutations": 3}
    settings |= {"n_resamples": 50}
    held = blind.blind_table(texts, is_member, groups=pages, **settings)
    assert held["auc"].item() == held["permutation_null"].item() == 0.5
    by_words = blind.blind_table(texts, is_member, **settings)
    assert by_words["auc"].item() == 0.5  # versions share two words of four
    monkeypatch.setattr(blind.NearCopies, "exist", False)
    loose = blind.blind_table(texts, is_member, **settings, seed=1)
    assert loose["auc"].item() < 0.4


def test_groups_of_one_kind_are_refused():
    with pytest.raises(ValueError, match="each group needs both kinds"):
        blind.blind_table(["a", "b", "c", "d"], [1, 1, 0, 0], groups=[1, 1, 2, 2], n_folds=2)


def test_the_blind_baselines_name_the_set_and_skip_one_that_is_too_small():
    chance = np.random.default_rng(0)
    rows = [
        {"input": f"in {year} {chance.integers(9)}", "label": label, "page_id": page}
        for page, (year, label) in enumerate([(2014, 1), (2023, 0)] * 10)
    ]
    table = pd.DataFrame(rows)
    pairs = table.assign(page_id=np.repeat(np.arange(10), 2))
    names = [(sets.WIKIMIA, 3), (sets.TWO_REVISIONS, 3), (sets.WIKIMIA, 9)]
    tables = dict(zip(names, (table, pairs, table[:3]), strict=True))
    result = sets.blind_baselines(tables, n_permutations=2)
    counts = result.groupby(["benchmark", "length"]).size().to_dict()
    assert counts == dict.fromkeys(names[:2], 3)
    assert (result["auc"] == 1).all()


def test_two_revisions_of_one_page_are_never_on_both_sides_of_a_fold():
    """Two of eight words stay: from them a classifier of one revision has the other's label."""
    new = iter(range(1000))
    texts = [
        " ".join([f"page{number}", f"name{number}", *(f"word{next(new)}" for _ in range(6))])
        for number in range(20)
        for _ in range(2)
    ]
    pairs = pd.DataFrame({"input": texts, "label": [1, 0] * 20})
    pairs["page_id"] = np.repeat(np.arange(20), 2)
    tables = {(name, 3): pairs for name in (sets.TWO_REVISIONS, sets.WIKIMIA)}
    found = sets.blind_baselines(tables, n_permutations=0).set_index(["benchmark", "baseline"])
    auc = found.xs("bag of words", level="baseline")["auc"]
    assert auc[sets.TWO_REVISIONS] == 0.5 and auc[sets.WIKIMIA] < 0.4


def test_paraphrases_that_failed_are_counted_and_left_out(tmp_path):
    def script(body, n):
        asked = body["messages"][0]["content"]
        if words(2, 4) in asked:
            return good("", finish_reason="content_filter")
        return failure(500) if words(3, 4) in asked else good(" in  other\nwords ")

    pages = collected(*(("member", words(number, 4), None) for number in range(4)))
    with ScriptedServer(script) as server, ResponseLog(tmp_path / "log.sqlite") as log:
        table, statuses = sets.paraphrased(
            sets.passages(pages, 4),
            4,
            Endpoint(server.base_url, MODEL, key_variable=None),
            log=log,
            limits=Limits(tries=1),
            progress=False,
        )
    assert statuses == {"error": 1, "ok": 2, "refused": 1}
    assert table["input"].tolist() == ["in other words"] * 2
    assert table["original"].tolist() == [words(0, 4), words(1, 4)]


def test_the_builder_writes_each_set_with_its_counts_and_baselines(tmp_path, monkeypatch):
    class Told(FakeWiki):
        address = "http://wiki/w/"

        def about(self):
            general = {"server": "//wiki", "script": "/w/index.php", "sitename": "A | B"}
            return {"general": general | {"generator": "MediaWiki"}, "rightsinfo": {"text": "BY"}}

    def script(body, n):
        return good("" if words(1, 4) in body["messages"][0]["content"] else "in other words")

    pages = {number: (old if number < 4 else new)(words(number)) for number in range(8)}
    pages[2]["revisions"]["2024-01-01T00:00:00Z"] = words(9)
    monkeypatch.setenv("SCRIPTED_KEY", "a key for the scripted server")
    with ScriptedServer(script) as server:
        settings = Settings.read(
            CATEGORIES
            | {"lengths": [4, 500], "n_permutations": 1, "output_folder": str(tmp_path / "out")}
            | {"paraphrase_base_url": server.base_url, "paraphrase_model": MODEL}
            | {"paraphrase_key_variable": "SCRIPTED_KEY", "price_date": "2024-01-31"}
            | {"cost_cap": 1.0},
            "",
        )
        results = building.build(Told(pages), settings, progress=False)
    assert results["sizes"].query("length == 500")["n_members"].tolist() == [0, 0, 0]
    sizes = results["sizes"].query("length == 4").set_index("benchmark")
    assert sizes.loc["WikiMIA", ["n_members", "n_non_members"]].tolist() == [4, 4]
    assert sizes.loc["two revisions", ["n_members", "n_non_members"]].tolist() == [1, 1]
    columns = ["n_members", "n_non_members", "n_valid", "n_refused", "n_error"]
    assert sizes.loc["WikiMIA paraphrased", columns].tolist() == [3, 4, 7, 0, 1]
    # One pair is too little for a fold.
    assert set(results["blind_baselines"]["benchmark"]) == {"WikiMIA", "WikiMIA paraphrased"}
    written = pd.read_parquet(tmp_path / "out" / "two_revisions_length4.parquet")
    address = "http://wiki/w/index.php?oldid="
    assert written["url"].tolist() == [f"{address}20", f"{address}21"]
    assert set(written["licence"]) == {"BY"}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "WikiMIA paraphrased | 4 |" in card and "templates of the day of the crawl" in card
    assert "snapshot of 2026-01-01" in card


def test_a_missing_key_shows_before_the_crawl(monkeypatch):
    monkeypatch.delenv("SCRIPTED_KEY", raising=False)
    paid = {"paraphrase_model": "m", "price_date": "2024-01-31", "cost_cap": 1.0}
    paid |= {"paraphrase_key_variable": "SCRIPTED_KEY", "paraphrase_base_url": "https://host/v1"}
    with pytest.raises(ChatError, match="SCRIPTED_KEY is not set"):
        building.build(None, Settings(**CATEGORIES, **paid), progress=False)


def test_no_page_of_a_kind_is_one_line_that_says_where_to_look(tmp_path):
    pages = {1: old(words(1)), 2: new("short")}
    settings = Settings(**CATEGORIES, output_folder=str(tmp_path))
    with pytest.raises(WikiError, match=r"no member page is kept: .*filters\.csv says why"):
        building.build(FakeWiki(pages), settings, progress=False)
    assert "short" in (tmp_path / "filters.csv").read_text()


# Parameters


def test_the_ready_parameter_file_holds_the_defaults():
    values = load_parameter_file(ROOT / "params/full/wikimia.yaml")
    defaults = Settings(**{name: values[name] for name in CATEGORIES})
    # An address tells where a model would be asked; none is named.
    assert Settings.read(values | {"paraphrase_base_url": ""}, "") == defaults
    assert values["paraphrase_model"] == ""


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"member_cuttoff": "2017-01-01"}, 'unknown name "member_cuttoff"'),
        ({"member_cutoff": "January 2017"}, "want a day YYYY-MM-DD"),
        ({"member_cutoff": "2024-01-01"}, "lies after"),
        ({"snapshot": "2023-01-01"}, "snapshot must lie after non_member_cutoff"),
        ({"snapshot": "2999-01-01"}, "snapshot lies in the future"),
        ({"member_categories": []}, "want 1 to 1000 values"),
        ({"depth": "2"}, "\"depth\" is '2', want int"),
        ({"depth": -1}, "want 0 or more"),
        ({"stub_pattern": "("}, "stub_pattern is not a regular expression"),
        ({"paraphrase_model": "m"}, "needs price_date"),
    ],
)
def test_a_wrong_value_is_one_line(changed, message):
    with pytest.raises(ParameterError, match=message):
        Settings.read(CATEGORIES | changed, "file.yaml")


def test_nobody_crawls_without_saying_who(tmp_path, capsys):
    path = tmp_path / "wikimia.yaml"
    path.write_text(yaml.safe_dump(CATEGORIES))
    assert building.main([str(path)]) == 1
    assert capsys.readouterr().err.startswith('error: user_agent must read "name/version')


@pytest.mark.parametrize("address", ["en.wikipedia.org", "https://me:a-password@host/w/"])
def test_an_address_without_a_scheme_or_with_a_password_is_refused_and_not_repeated(address):
    with pytest.raises(ValueError, match="not of the form") as refused:
        Wiki(address, USER_AGENT, "1")
    assert address not in str(refused.value)


# The client


class ScriptedWiki:
    """``script(parameters, n)`` gives status, headers and body of the n-th request."""

    def __init__(self, script):
        self.asked = asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                parameters = dict(parse_qsl(urlsplit(self.path).query))
                asked.append((parameters, self.headers["User-Agent"]))
                status, headers, body = script(parameters, len(asked))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write((body if isinstance(body, str) else json.dumps(body)).encode())

            def log_message(self, *_):
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/w/"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def test_a_request_says_who_asks_and_how_much_lag_it_bears():
    with ScriptedWiki(lambda *_: (200, {}, {"query": {}})) as server:
        Wiki(server.address, USER_AGENT, "1").about()
        ((parameters, user_agent),) = server.asked
    assert user_agent.startswith(USER_AGENT)
    assert (parameters["maxlag"], parameters["formatversion"]) == ("5", "2")


def test_what_was_asked_once_is_not_asked_again():
    with ScriptedWiki(lambda parameters, n: (200, {}, {"query": {"n": n}})) as server:
        first = Wiki(server.address, USER_AGENT, "1").ask("query", titles="A")
        again = Wiki(server.address, "other/2 (tests@example.org)", "1")
        assert again.ask("query", titles="A") == first
        assert (again.n_asked, again.n_stored) == (0, 1)
        assert again.ask("query", titles="B")["query"]["n"] == 2
        assert Wiki(server.address, USER_AGENT, "2").ask("query", titles="A")["query"]["n"] == 3


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_answer_is_named_and_asked_again(damage):
    with ScriptedWiki(lambda *_: (200, {}, {"query": {"title": "A"}})) as server:
        wiki = Wiki(server.address, USER_AGENT, "1")
        first = wiki.ask("query", titles="A")
        (path,) = storage.cache_folder("wiki").rglob("*.json")
        damage(path)
        with pytest.warns(UserWarning, match=said_of(path)):
            assert wiki.ask("query", titles="A") == first
        assert wiki.ask("query", titles="A") == first
        assert (wiki.n_asked, wiki.n_stored) == (2, 1)


@pytest.mark.parametrize(
    "busy",
    [
        (200, {"X-Database-Lag": "7", "Retry-After": "1"}, {"error": {"code": "maxlag"}}),
        (429, {"Retry-After": "1"}, {}),
    ],
)
def test_a_busy_wiki_is_left_alone_for_as_long_as_it_asks(busy):
    with ScriptedWiki(lambda _, n: busy if n == 1 else (200, {}, {"query": {}})) as server:
        wiki = Wiki(server.address, USER_AGENT, "1", retry_seconds=0)
        started = time.monotonic()
        wiki.ask("query", titles="A")
        assert time.monotonic() - started >= 1
        assert len(server.asked) == 2


def test_an_error_of_the_wiki_is_one_line_and_is_not_stored():
    error = {"error": {"code": "badvalue", "info": "Unrecognized value."}}
    script = lambda _, n: (200, {}, error if n == 1 else {"query": {}})  # noqa: E731
    with ScriptedWiki(script) as server:
        wiki = Wiki(server.address, USER_AGENT, "1")
        with pytest.raises(WikiError, match="says badvalue: Unrecognized value"):
            wiki.ask("query", titles="A")
        assert wiki.ask("query", titles="A") == {"query": {}}


def test_a_page_that_is_no_wiki_is_one_line():
    with (
        ScriptedWiki(lambda *_: (200, {}, "<html>")) as server,
        pytest.raises(WikiError, match="gave no usable answer"),
    ):
        Wiki(server.address, USER_AGENT, "1").ask("query", titles="A")


def test_a_long_category_is_read_to_its_end_and_a_circle_once():
    def member(number, title, kind="page"):
        return {"pageid": number, "title": title, "type": kind, "ns": 14 if kind != "page" else 0}

    def script(parameters, n):
        if parameters["cmtitle"] == "Category:Sub":
            members = [member(9, "Category:Top", "subcat"), member(1, "A"), member(3, "C")]
            return 200, {}, {"query": {"categorymembers": members}}
        if "cmcontinue" in parameters:
            members = [member(2, "B"), member(8, "Category:Sub", "subcat")]
            return 200, {}, {"query": {"categorymembers": members}}
        more = {"cmcontinue": "page|42", "continue": "-||"}
        return 200, {}, {"continue": more, "query": {"categorymembers": [member(1, "A")]}}

    with ScriptedWiki(script) as server:
        pages = Wiki(server.address, USER_AGENT, "1").pages_in(["Top"], depth=5)
        assert [page["title"] for page in pages] == ["A", "B", "C"]
        assert [page["category"][9:] for page in pages] == ["Top", "Top", "Sub"]
        assert len(server.asked) == 3
        flat = Wiki(server.address, USER_AGENT, "1").pages_in(["Top"], depth=0)
        assert [page["title"] for page in flat] == ["A", "B"]
