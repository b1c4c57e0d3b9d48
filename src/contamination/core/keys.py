"""What must not be written or shown as it is: keys and passwords, and characters that act."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, unquote, urlsplit

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


REMOVED = "***"
SHORTEST = 8  # characters; placeholders such as "none" are words, not secrets
# How providers begin their keys: OpenAI, Anthropic, xAI and others; Hugging Face, Groq, GitHub and
# others; GitHub's newer ones; AWS; Google; signed tokens. Before one stands no letter or digit,
# unless it ends a line end as repr writes it, or the mark of a colour.
_KEY = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=[0-9\[]m))(?:"
    r"sk[-_][A-Za-z0-9_-]{16,}"
    r"|(?:pk|rk|xai|pplx|nvapi|glpat|csk|xox[a-z])-[A-Za-z0-9_-]{16,}"
    r"|(?:hf|gsk|gh[opsur]|pk|rk|r8|fw|npm|jina|tgp_v1)_[A-Za-z0-9]{16,}"
    r"|github_pat_[A-Za-z0-9_]{16,}"
    r"|A[KS]IA[A-Z0-9]{12,}"
    r"|AIza[A-Za-z0-9_-]{30,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)
# Of no known provider, such as hexadecimal ones. Hashes of commits and files are none.
_LONG = re.compile(
    r"(?<![A-Za-z0-9])(?!(?:[0-9a-f]{40}|[0-9a-f]{64})(?![A-Za-z0-9]))[A-Za-z0-9]{32,}"
)
_PASSWORD = re.compile(r"(?<=[A-Za-z0-9]://)([^\s/?#\"'<>\\`]+)@")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAYS_KEY = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?(_|\d|$)", re.IGNORECASE)
_FIELD = "key_variable"  # how the names of settings end that hold a variable's name


def is_like(text: str) -> bool:
    """Whether a text holds what looks like a key, even where it could be a name.

    >>> is_like("OPENAI_API_KEY"), is_like("AKIAIOSFODNN7EXAMPLE")
    (False, True)
    """
    return bool(_KEY.search(text) or _LONG.search(text))


def is_plain_name(name: str) -> bool:
    """Whether a name can be shown: the variable exists, or its name says that it holds a key."""
    is_name = _NAME.fullmatch(name) and not is_like(name)
    return bool(is_name and (name in os.environ or _SAYS_KEY.search(name)))


def why_no_variable(name: str) -> str:
    """Why a text is not the name of a variable with a key, without repeating it; "" if it is one.

    >>> why_no_variable("OPENAI_API_KEY")
    ''
    """
    if is_plain_name(name):
        return ""
    if is_like(name):
        what = "looks like a key"
    elif _NAME.fullmatch(name):  # a password, perhaps
        what = "is not set and does not say that it holds a key"
    else:
        what = "is not a name of letters, digits and _"
    return (
        f"must be the NAME of an environment variable, such as OPENAI_API_KEY, but {what}: export "
        "the key in a variable and give that variable's name"
    )


def why_no_address(url: str) -> str:
    """Why a text is no address of a server, without repeating it; "" if it is one.

    >>> why_no_address("http://127.0.0.1:8000/v1")
    ''
    """
    if "@" in url or "?" in url or "#" in url or _KEY.search(url):
        return (
            "must hold no password, no key and no query: export the key in a variable and give "
            "that variable's name"
        )
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # its words would repeat a part of the address
        is_address = False
    if is_address and not re.search(r"\s", url):
        return ""
    return "must begin with http:// or https:// and name a host, such as https://host/v1"


def secrets(parameters: Any = None) -> list[str]:
    """What no file of a run may hold, each in all forms that a text may show, longest first.

    The values of variables that the parameters name, whose name says that they hold a key, or that
    look like one, and passwords in addresses.
    """
    given = [*_texts(parameters)]
    named = {text for name, text in given if name.endswith(_FIELD)}
    values = {
        value
        for name, value in os.environ.items()
        if name in named or _SAYS_KEY.search(name) or _LONG.fullmatch(value)
    }
    for text in (*os.environ.values(), *(text for _, text in given)):
        for user in _PASSWORD.findall(text):
            password = user.partition(":")[2] or user
            values |= {password, unquote(password)}
    forms = {form for value in values for form in forms_of(value)}
    return sorted((form for form in forms if len(form) >= SHORTEST), key=len, reverse=True)


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """All texts in parameters, with the name each stands under."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, str(key))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, name)


def forms_of(value: str) -> set[str]:
    """A value as it stands, as JSON and Python write it, in HTML and in an address."""
    json_forms = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    return {
        value,
        *json_forms,
        repr(value)[1:-1],
        html.escape(value),
        quote(value, safe="", errors="replace"),
    }


def mask_likely_keys(message: str) -> str:
    """A message of one line without what looks like a key, though it may be something else.

    >>> mask_likely_keys("unknown option --kye 0123456789abcdef0123456789abcdef")
    'unknown option --kye ***'
    """
    return _LONG.sub(REMOVED, remove_keys(message))


def remove_values(text: str, values: Iterable[str]) -> str:
    """A text without these values, of which a longer one goes before a shorter one.

    >>> remove_values("a long-word and a word", ["word", "long-word"])
    'a *** and a ***'
    """
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, REMOVED)
    return text


def remove_keys(text: str, values: Iterable[str] = ()) -> str:
    """A text without these values, without known shapes of keys and passwords in addresses.

    >>> remove_keys("http://me:word@host/v1 with gsk_0123456789abcdef")
    'http://***@host/v1 with ***'
    """
    return _KEY.sub(REMOVED, _PASSWORD.sub(f"{REMOVED}@", remove_values(text, values)))
