"""Which pages of a wiki become members and non-members, and their text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
from bs4 import BeautifulSoup
from tqdm import tqdm

from contamination.core.overlap import normalised
from contamination.core.parameters import OwnSettings, setting
from contamination.core.words import units
from contamination.wikimia.wiki import Wiki

# The default of MediaWiki's own extension for plain text ($wgExtractsRemoveClasses).
_LEFT_OUT = (
    "table, div, script, input, style, ul.gallery, .mw-editsection, sup.reference, ol.references, "
    ".error, .nomobile, .noprint, .noexcerpt, .sortkey"
)
_REDIRECT = re.compile(r"^\s*#\w+\s*:?\s*\[\[")


def from_html(html: str, gone: Sequence[str] = ()) -> str:
    """Words of a page from its HTML, single spaces between them.

    Headings, tables, boxes, references and galleries are left out, as in the
    wiki's own extracts; so are links in place of templates that are ``gone``.

    >>> from_html('A <b>flood</b><sup class="reference">[1]</sup> came.<h2>Course</h2>It fell.')
    'A flood came. It fell.'
    """
    soup = BeautifulSoup(html, "html.parser")
    for element in soup.select(_LEFT_OUT):
        element.decompose()
    for element in soup.select("a.new"):
        if element.get_text() in gone:
            element.decompose()
    for element in soup.select("br, h1, h2, h3, h4, h5, h6"):
        element.replace_with("\n")
    return " ".join(soup.get_text().split())


def is_redirect(wikitext: str) -> bool:
    """Whether a page's source leads to another page, in whatever language the wiki says so."""
    return bool(_REDIRECT.match(wikitext))


MEMBER, NON_MEMBER = "member", "non-member"
KEPT, NOT_NEEDED = "kept", "not needed"
# Why a page is dropped, in the order in which it is looked at; the first three
# that apply to titles cost no request.
LIST, TIMELINE, DISAMBIGUATION = "list", "timeline", "disambiguation"
BOTH_KINDS, GONE, REDIRECT, DATE = "both kinds", "gone", "redirect", "creation date"
HIDDEN, STUB, SHORT, DUPLICATE = "hidden text", "stub", "short", "duplicate"
FILTERS = (LIST, TIMELINE, DISAMBIGUATION, BOTH_KINDS, GONE, REDIRECT, DATE)
FILTERS += (HIDDEN, STUB, SHORT, DUPLICATE)
_UNASKED = (LIST, TIMELINE, BOTH_KINDS, NOT_NEEDED)


class Settings(OwnSettings):
    """What to build; ``params/full/wikimia.yaml`` explains each line."""

    wiki: str = setting("https://en.wikipedia.org/w/", "[address]")
    user_agent: str = setting("")
    crawl: str = setting("1")
    member_categories: list[str] = setting([], "[1 to 1000 values]")
    non_member_categories: list[str] = setting([], "[1 to 1000 values]")
    depth: int = setting(2, "[0 or more]")
    member_cutoff: str = setting("2017-01-01", "[a day YYYY-MM-DD]")
    non_member_cutoff: str = setting("2023-01-01", "[a day YYYY-MM-DD]")
    snapshot: str = setting("2026-01-01", "[a day YYYY-MM-DD]")
    max_pages: int = setting(394, "[0 or more]")
    lengths: list[int] = setting([32, 64, 128, 256], "[1 or more]")
    list_pattern: str = setting(r"^Lists? of\b")
    timeline_pattern: str = setting(r"^Timeline of\b")
    disambiguation_pattern: str = setting(r"\(disambiguation\)$")
    stub_pattern: str = setting(r"\{\{[^{}|]*\bstub\s*[|}]")
    seed: int = setting(0)
    n_permutations: int = setting(100)
    paraphrase_base_url: str = setting("", "[address]")
    paraphrase_model: str = setting("")
    paraphrase_key_variable: str = setting("OPENAI_API_KEY", "[variable]")
    input_price_per_million: float = setting(0.0)
    output_price_per_million: float = setting(0.0)
    price_date: str = setting("", "[a day YYYY-MM-DD]")
    cost_cap: float = setting(0.0)
    output_folder: str = setting("outputs/wikimia")

    def check(self) -> None:
        """ValueError, in one line, if settings do not fit each other."""
        days = self.member_cutoff, self.non_member_cutoff, self.snapshot
        old, new, last = map(date.fromisoformat, days)
        if old > new:
            raise ValueError("member_cutoff lies after non_member_cutoff: exchange them")
        if last <= new:
            raise ValueError("snapshot must lie after non_member_cutoff: non-members are read then")
        if last > datetime.now(UTC).date():
            raise ValueError("snapshot lies in the future: name a day that is over")
        for name in ("list_pattern", "timeline_pattern", "disambiguation_pattern", "stub_pattern"):
            try:
                re.compile(getattr(self, name))
            except re.error as error:
                raise ValueError(f"{name} is not a regular expression: {error}") from error
        if self.paraphrase_model and not (self.price_date and self.cost_cap > 0):
            raise ValueError("a paraphrase model needs price_date, prices and a cost_cap above 0")

    def span(self, kind: str) -> tuple[str, str]:
        """First and last second in which a page of a kind is created; it is read at the last."""
        if kind == MEMBER:
            return "", _last_second_before(self.member_cutoff)
        return f"{self.non_member_cutoff}T00:00:00Z", _last_second_before(self.snapshot)


def _last_second_before(day: str) -> str:
    return f"{(datetime.fromisoformat(day) - timedelta(seconds=1)).isoformat()}Z"


def collect(wiki: Wiki, settings: Settings, progress: bool = True) -> pd.DataFrame:
    """Every page of the categories, with its fate, and the text of those that are kept.

    Pages of each kind are looked at in random order until ``max_pages`` are kept, members first.
    outcome is "kept", "not needed" or one of ``FILTERS``; of members there is also the revision at
    the snapshot (``later_``), where it was saved after the non-member cut-off. WikiError if the
    wiki does not answer or a category is empty.
    """
    categories = {MEMBER: settings.member_categories, NON_MEMBER: settings.non_member_categories}
    pages_of = {kind: wiki.pages_in(names, settings.depth) for kind, names in categories.items()}
    members, others = ({page["page_id"] for page in pages} for pages in pages_of.values())
    generator = np.random.default_rng(settings.seed)
    openings: set[str] = set()
    rows = []
    for kind, pages in pages_of.items():
        ordered, n_kept = sorted(pages, key=lambda page: page["page_id"]), 0
        order = generator.permutation(len(ordered))
        for number in tqdm(order, desc=kind, unit=" pages", disable=not progress):
            page = ordered[number]
            if settings.max_pages and n_kept == settings.max_pages:
                fate = {"outcome": NOT_NEEDED}
            elif page["page_id"] in members & others:
                fate = {"outcome": BOTH_KINDS}
            else:
                fate = _look_at(wiki, settings, page, kind, openings)
            n_kept += fate["outcome"] == KEPT
            rows.append({**page, "kind": kind, **fate})
    columns = ["page_id", "title", "kind", "category", "outcome", "created", "revision_id"]
    columns += ["revision_timestamp", "text", "later_revision_id", "later_timestamp", "later_text"]
    table = pd.DataFrame(rows).reindex(columns=columns)
    texts = dict.fromkeys(["text", "later_text"], "str")
    return table.astype({"revision_id": "Int64", "later_revision_id": "Int64", **texts})


def outcome_of_title(title: str, settings: Settings) -> str | None:
    """The filter that drops a page for its title alone, or None."""
    patterns = {
        LIST: settings.list_pattern,
        TIMELINE: settings.timeline_pattern,
        DISAMBIGUATION: settings.disambiguation_pattern,
    }
    return next((name for name, each in patterns.items() if re.search(each, title)), None)


def _look_at(
    wiki: Wiki, settings: Settings, page: Mapping[str, Any], kind: str, openings: set[str]
) -> dict[str, Any]:
    """What becomes of one page; ``openings`` are those of the pages kept so far."""
    outcome = outcome_of_title(page["title"], settings)
    if outcome:
        return {"outcome": outcome}
    history = wiki.history(page["page_id"])
    if history is None:
        return {"outcome": GONE}
    fate: dict[str, Any] = {"created": history.created}
    if history.is_redirect:
        return fate | {"outcome": REDIRECT}
    if history.is_disambiguation:
        return fate | {"outcome": DISAMBIGUATION}
    first, last = settings.span(kind)
    if not first <= history.created <= last:
        return fate | {"outcome": DATE}
    revision = wiki.revision_before(page["page_id"], last)
    if revision is None:
        return fate | {"outcome": GONE}
    fate |= {"revision_id": revision.revision_id, "revision_timestamp": revision.timestamp}
    if revision.wikitext is None:
        return fate | {"outcome": HIDDEN}
    if is_redirect(revision.wikitext):
        return fate | {"outcome": REDIRECT}
    if re.search(settings.stub_pattern, revision.wikitext):
        return fate | {"outcome": STUB}
    text = _text_of(wiki, revision.revision_id)
    if text is None:
        return fate | {"outcome": HIDDEN}
    words = units(text)
    opening = normalised("".join(words[: min(settings.lengths)]))
    if len(words) < min(settings.lengths):
        return fate | {"outcome": SHORT}
    if opening in openings:
        return fate | {"outcome": DUPLICATE}
    openings.add(opening)
    fate |= {"outcome": KEPT, "text": text}
    if kind == MEMBER:
        fate |= _later(wiki, settings, page["page_id"])
    return fate


def _text_of(wiki: Wiki, revision_id: int) -> str | None:
    """Words of a revision, whatever its kind: a second way would give the label away."""
    rendered = wiki.html_of(revision_id)
    return None if rendered is None else from_html(*rendered)


def _later(wiki: Wiki, settings: Settings, page_id: int) -> dict[str, Any]:
    """A member's revision at the snapshot, if it is newer than the non-member cut-off."""
    first, last = settings.span(NON_MEMBER)
    later = wiki.revision_before(page_id, last)
    if later is None or later.wikitext is None or later.timestamp < first:
        return {}
    fate = {"later_revision_id": later.revision_id, "later_timestamp": later.timestamp}
    return fate | {"later_text": _text_of(wiki, later.revision_id)}


def outcome_counts(pages: pd.DataFrame) -> pd.DataFrame:
    """How many pages of each kind were found, asked about, dropped by each filter, and kept.

    "asked" are pages that cost at least one request.
    """
    rows = []
    for kind in (MEMBER, NON_MEMBER):
        outcomes = pages.loc[pages["kind"] == kind, "outcome"]
        by_title = (outcomes == DISAMBIGUATION) & pages["created"][outcomes.index].isna()
        n_asked = int((~outcomes.isin(_UNASKED) & ~by_title).sum())
        counts = outcomes.value_counts()
        rows += [(kind, "found", len(outcomes)), (kind, "asked", n_asked)]
        rows += [(kind, each, int(counts.get(each, 0))) for each in (*FILTERS, NOT_NEEDED, KEPT)]
    return pd.DataFrame(rows, columns=["kind", "outcome", "n_pages"])
