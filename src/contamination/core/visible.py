"""Untrusted text made safe to look at: what could act on a terminal or a page is written out."""

from __future__ import annotations

import re

# Control characters but tab and line feed, marks without width or that turn the direction of
# writing, line and paragraph separators, halves of surrogate pairs, tags.
_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
# What a spreadsheet takes for a formula (the wide signs in some languages), and the numbers among
# it. Apostrophes before it count, so that taking one away gives back exactly what was written.
_SIGN = "[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]"
_FORMULA = re.compile(f"'*{_SIGN}")
# Where semicolons part the cells of a table, one begins inside this text, too.
_AFTER_SEMICOLON = re.compile(f";(?='*{_SIGN})")
_GUARDED = re.compile(f";'(?='*{_SIGN})")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def visible(text: str) -> str:
    """Text in which control characters and marks of direction are written as escapes.

    >>> visible("a\\x1b[2J and \\u202eb")
    'a\\\\x1b[2J and \\\\u202eb'
    """
    return _ACTS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str, n_characters: int = 200) -> str:
    """The beginning of a text as one visible line."""
    return visible(" ".join(text[: 2 * n_characters].split()))[:n_characters]


def reason(error: Exception) -> str:
    """What an error says, in one line."""
    return one_line(str(error), 300) or type(error).__name__


def guarded(text: str) -> str:
    """A text of a table as it stands in a CSV file.

    >>> guarded("=1+1"), guarded("-0.5"), guarded("a;=1+1")
    ("'=1+1", '-0.5', "a;'=1+1")
    """
    text = _AFTER_SEMICOLON.sub(";'", text)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """The text that :func:`guarded` was given."""
    text = text[1:] if text.startswith("'") and _FORMULA.match(text) else text
    return _GUARDED.sub(";", text)
