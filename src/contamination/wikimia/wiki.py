"""A MediaWiki, asked politely and never twice the same thing.

One request at a time, with a User-Agent by which the wiki's operators can reach
whoever runs it, ``maxlag``, and waits that grow while the wiki is busy. Every
answer is stored before it is used, under the request's own hash: a crawl that
was killed goes on with what is missing, and a second one asks nothing.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import mwclient
import requests
from mwclient.errors import APIError, MaximumRetriesExceeded, MwClientError
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from contamination.core import keys, storage
from contamination.core.keys import one_line

MAX_LAG_SECONDS = 5
TRIES = 6
# "name/version (how to reach me)", as the wikis of the Wikimedia Foundation ask for.
_REACHABLE = re.compile(r"^\S+/\S+ \(.*(@|https?://).*\)$")
# Codes of errors that concern one page and not the wiki.
_PAGE_TROUBLE = re.compile(r"nosuchrevid|permissiondenied|missingcontent|internal_api_error")


class WikiError(RuntimeError):
    """A crawl that cannot start or go on; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message, 500))


def _of_known_form(question: Callable) -> Callable:
    """A question whose answer, where it lacks what was asked for, is a WikiError."""

    @functools.wraps(question)
    def asked(self: Wiki, *given: Any, **named: Any) -> Any:
        try:
            return question(self, *given, **named)
        except (LookupError, TypeError, AttributeError) as error:
            raise WikiError(
                f"{self.address} gave an answer of another form than a MediaWiki's: check the "
                "address, and name another crawl to ask again"
            ) from error

    return asked


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value.encode("utf-8", "replace").decode()  # without halves of surrogate pairs


class Revision(NamedTuple):
    """One version of a page; the source is None where the wiki hides it. Times: ISO 8601, UTC."""

    revision_id: int
    timestamp: str
    wikitext: str | None


class History(NamedTuple):
    """When a page was first saved, and what it is on the day of the crawl."""

    created: str
    is_redirect: bool
    is_disambiguation: bool


class Wiki:
    """One wiki at one time; ``n_asked`` requests went to it, ``n_stored`` the store answered.

    ``address`` is up to the folder of ``api.php``; another ``crawl`` asks everything anew; the wait
    after a failure grows by ``retry_seconds``. ValueError if address or user agent is unfit.
    """

    def __init__(self, address: str, user_agent: str, crawl: str, retry_seconds: int = 10) -> None:
        if keys.why_no_address(address):
            raise ValueError("wiki is not of the form https://host/folder-of-api.php/")
        parts = urlsplit(address)
        if not _REACHABLE.match(user_agent):
            raise ValueError(
                'user_agent must read "name/version (mail or address to reach you)": '
                "wikis turn away crawlers whose owner cannot be reached"
            )
        self.address = address if address.endswith("/") else address + "/"
        self.n_asked = self.n_stored = 0
        identity = storage.hash_of({"address": self.address, "crawl": crawl})
        self._store = storage.cache_folder("wiki", identity[:24])
        session = requests.Session()
        session.headers["User-Agent"] = f"{user_agent} mwclient/{mwclient.__version__}"
        # mwclient waits for a lagging or failing wiki, and raises where it is told to slow down.
        slow_down = Retry(total=TRIES, connect=0, read=0, status_forcelist=[429], backoff_factor=5)
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=slow_down))
        self._site = mwclient.Site(
            parts.netloc,
            path=self.address.removeprefix(f"{parts.scheme}://{parts.netloc}"),
            scheme=parts.scheme,
            pool=session,
            max_retries=TRIES,
            retry_timeout=retry_seconds,
            do_init=False,
        )

    def ask(self, action: str, **parameters: Any) -> dict[str, Any]:
        """The wiki's answer to one API call, from the store where it has it; else WikiError."""
        path = self._store / f"{storage.hash_of({'action': action, **parameters})}.json"
        if storage.is_whole(path):
            self.n_stored += 1
            return json.loads(path.read_text(encoding="utf-8"))["response"]
        polite = {"formatversion": 2, "maxlag": MAX_LAG_SECONDS}
        try:
            response = self._site.get(action, **parameters, **polite)
        except APIError as error:
            raise WikiError(f"{self.address} says {error.code}: {error.info}") from error
        except (MaximumRetriesExceeded, requests.ConnectionError, requests.Timeout) as error:
            raise WikiError(f"{self.address} does not answer: try again later") from error
        except (requests.RequestException, MwClientError, ValueError, RecursionError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise WikiError(f"{self.address} gave no usable answer: {reason}") from error
        self.n_asked += 1
        stored = {"action": action, "parameters": parameters, "response": response}
        storage.seal(storage.write_json(path, stored))
        return response

    @_of_known_form
    def about(self) -> dict[str, Any]:
        """What the wiki says of itself: keys ``general`` and ``rightsinfo``."""
        return self.ask("query", meta="siteinfo", siprop="general|rightsinfo")["query"]

    @_of_known_form
    def pages_in(self, categories: Sequence[str], depth: int) -> list[dict[str, Any]]:
        """Pages of categories and of their subcategories, each once, in the order of discovery.

        A category, with or without "Category:", is visited once: categories of a wiki form circles.
        Subcategories are followed ``depth`` levels down; the ``category`` of a page is the one it
        was found in. WikiError if a category is empty, or as :meth:`ask`.
        """
        queue = [(f"Category:{name.removeprefix('Category:')}", 0) for name in categories]
        visited = {name for name, _ in queue}
        pages: dict[int, dict[str, Any]] = {}
        for name, level in queue:  # the queue grows while it is read
            members = self._members(name)
            if level == 0 and not members:
                raise WikiError(f'"{name}" is empty on {self.address}: check the spelling')
            for member in members:
                if member["type"] == "subcat":
                    if level < depth and member["title"] not in visited:
                        visited.add(member["title"])
                        queue.append((member["title"], level + 1))
                elif member["ns"] == 0:
                    page = {"page_id": member["pageid"], "title": member["title"]}
                    pages.setdefault(page["page_id"], page | {"category": name})
        return list(pages.values())

    def _members(self, category: str) -> list[dict[str, Any]]:
        question = {"list": "categorymembers", "cmtitle": category, "cmlimit": "max"}
        question |= {"cmprop": "ids|title|type", "cmtype": "page|subcat"}
        members, more = [], {"continue": ""}
        while more:
            response = self.ask("query", **question, **more)
            members += response["query"]["categorymembers"]
            more = response.get("continue", {})
        return members

    @_of_known_form
    def history(self, page_id: int) -> History | None:
        """When a page was created (its first revision) and what it is today; None if it is gone."""
        question = {"prop": "info|pageprops|revisions", "ppprop": "disambiguation"}
        page = self._page(page_id, **question, rvprop="ids|timestamp", rvdir="newer", rvlimit=1)
        if page is None:
            return None
        return History(
            created=_text(page["revisions"][0]["timestamp"]),
            is_redirect=bool(page.get("redirect")),
            is_disambiguation="disambiguation" in page.get("pageprops", {}),
        )

    @_of_known_form
    def revision_before(self, page_id: int, moment: str) -> Revision | None:
        """The page as it stood at a moment, ISO 8601; None if it did not exist or is gone."""
        question = {"prop": "revisions", "rvprop": "ids|timestamp|content", "rvslots": "main"}
        page = self._page(page_id, **question, rvdir="older", rvstart=moment, rvlimit=1)
        if page is None:
            return None
        revision = page["revisions"][0]
        source = revision["slots"]["main"].get("content")
        source = None if source is None else _text(source)
        return Revision(int(revision["revid"]), _text(revision["timestamp"]), source)

    def _page(self, page_id: int, **question: Any) -> dict[str, Any] | None:
        page = self.ask("query", pageids=page_id, **question)["query"]["pages"][0]
        return page if page.get("revisions") else None

    @_of_known_form
    def html_of(self, revision_id: int) -> tuple[str, list[str]] | None:
        """HTML of any revision, and titles of its templates that are gone: links in their place.

        None if it cannot be rendered. Templates are those of the day of the crawl.
        """
        plain: dict[str, Any] = dict.fromkeys(
            ["disablelimitreport", "disableeditsection", "disabletoc"], 1
        )
        plain |= {"prop": "text|templates", "wrapoutputclass": ""}
        try:
            response = self.ask("parse", oldid=revision_id, **plain)
        except WikiError as error:
            # One page that the wiki cannot render must not end the crawl.
            if isinstance(error.__cause__, APIError) and _PAGE_TROUBLE.match(error.__cause__.code):
                return None
            raise
        rendered = response["parse"]
        gone = [each["title"] for each in rendered["templates"] if not each["exists"]]
        return _text(rendered["text"]), gone
