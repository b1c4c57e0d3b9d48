"""Plain text of a wiki page from what the wiki rendered, and redirects from its source."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bs4 import BeautifulSoup

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
