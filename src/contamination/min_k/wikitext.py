"""Plain text of a wiki page, from what the wiki rendered or from its source."""

from __future__ import annotations

import re
from html import unescape

from bs4 import BeautifulSoup

# What TextExtracts leaves out by default ($wgExtractsRemoveClasses).
_LEFT_OUT = (
    "table, div, script, input, style, ul.gallery, .mw-editsection, sup.reference, ol.references, "
    ".error, .nomobile, .noprint, .noexcerpt, .sortkey"
)
_HEADING = re.compile(r"^(=+).*\1\s*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_REFERENCE = re.compile(r"<ref\b[^>]*?/>|<ref\b.*?</ref\s*>", re.DOTALL | re.IGNORECASE)
# Innermost first, so that nested ones go from the inside out.
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}|\{\|(?:(?!\{\||\|\}).)*\|\}", re.DOTALL)
_PLAIN_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_NAMESPACE = re.compile(r"^\s*(?:file|image|category|media)\s*:", re.IGNORECASE)
_OUTER_LINK = re.compile(r"\[(?:https?:)?//\S+\s*([^\]]*)\]")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_QUOTES = re.compile(r"'{2,5}")
_SWITCH = re.compile(r"__[A-Z]+__")
_LIST_MARK = re.compile(r"^[*#:;]+\s*", re.MULTILINE)
_REDIRECT = re.compile(r"^\s*#\w+\s*:?\s*\[\[")


def from_extract(extract: str) -> str:
    """Words of a page from its extract, without headings, single spaces between them."""
    return " ".join(_HEADING.sub("", extract).split())


def from_html(html: str) -> str:
    """Words of a page from its HTML, by TextExtracts' rules.

    TextExtracts knows today's revision alone; its rules (which parts of the
    HTML are left out) serve an old one as well.
    """
    soup = BeautifulSoup(html, "html.parser")
    for element in soup.select(_LEFT_OUT):
        element.decompose()
    for element in soup.select("br, h1, h2, h3, h4, h5, h6"):
        element.replace_with("\n")
    return " ".join(soup.get_text().split())


def from_wikitext(wikitext: str) -> str:
    """Words of a page from its source, for a wiki without TextExtracts.

    Templates cannot be expanded here: they are left out, with comments,
    references, tables, files, categories and headings. Of a link its text stays.

    >>> from_wikitext("'''A flood''' of [[the town|Aldmere]]{{when}}<ref>b</ref>. [[Category:X]]")
    'A flood of Aldmere.'
    """
    text = _REFERENCE.sub("", _COMMENT.sub("", wikitext))
    text = _until_stable(_TEMPLATE, "", text)
    text = _until_stable(_PLAIN_LINK, _text_of_link, text)
    text = _OUTER_LINK.sub(r"\1", text)
    text = _HEADING.sub("", _TAG.sub("", _SWITCH.sub("", text)))
    text = _LIST_MARK.sub("", _QUOTES.sub("", text))
    return " ".join(unescape(text).split())


def is_redirect(wikitext: str) -> bool:
    """Whether a page's source leads to another page, in whatever language the wiki says so."""
    return bool(_REDIRECT.match(wikitext))


def _text_of_link(match: re.Match[str]) -> str:
    target, _, text = match[1].partition("|")
    return "" if _NAMESPACE.match(target) else (text or target.lstrip(":"))


def _until_stable(pattern: re.Pattern[str], replacement, text: str) -> str:
    n_found = 1
    while n_found:
        text, n_found = pattern.subn(replacement, text)
    return text
