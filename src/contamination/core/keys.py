"""Keys and passwords: refused where they do not belong, and removed from what is written.

A key belongs in a variable of the environment, and a parameter holds that variable's name. The
two are easily confused, so we check a name before anything runs, and no message repeats what was
given. From what a run writes the values of these variables are removed, and so are the shapes of
known keys and passwords in addresses.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, unquote, urlsplit

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
