"""The one retry loop, and what each failure of an endpoint means.

Worth another try: no connection, no answer in time, 408, 409, 429 and 500 or
above. Everything else stops the run at once, since it would fail again: a bad
request, a refused key, an unknown model, an exhausted quota.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import tenacity

from contamination.core import keys
from contamination.core.visible import one_line

if TYPE_CHECKING:
    import openai

_WORTH_ANOTHER_TRY = (408, 409, 429)


class ChatError(RuntimeError):
    """A run that cannot start or go on; the message is one line."""


class UnsupportedError(ChatError):
    """The server does not do what a request asks for; another form of it may work.

    ``reason`` is the message without what is said about the rest of the run.
    """

    def __init__(self, reason: str, rest: str = "") -> None:
        super().__init__(reason + rest)
        self.reason = reason


class TransientError(Exception):
    """A try that failed and may succeed later, after the wait that the server asked for."""

    def __init__(
        self, detail: str, wait_seconds: float | None = None, is_answered: bool = False
    ) -> None:
        super().__init__(detail)
        self.wait_seconds = wait_seconds
        self.is_answered = is_answered


class ContentFilterError(Exception):
    """The server's filter refused the request."""


@dataclass(frozen=True)
class Limits:
    """How long to insist; waits are drawn, so that callers do not return together."""

    tries: int = 6  # of one call, the first included
    total_seconds: float = 300.0  # after which no further try begins, waiting included
    try_seconds: float = 120.0  # of one try, from sending to the last byte
    first_wait_seconds: float = 1.0  # longest; doubles with each failure, up to a minute


class Secret:
    """A key from the environment, which no message and no file may show."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str | None) -> None:
        self.name = name
        self._value = os.environ.get(name, "").strip() if name else "none"
        shown = name if keys.is_plain_name(name or "") else "the variable that key_variable names"
        if not self._value:
            raise ChatError(f"{shown} is not set: export the key and run again")
        if not (self._value.isascii() and self._value.isprintable()):
            raise ChatError(f"{shown} contains characters that no key has: export it again")

    def __repr__(self) -> str:
        return f"Secret({self.name})"

    def reveal(self) -> str:
        """The key itself, for the header of a request alone."""
        return self._value

    def removed_from(self, text: str) -> str:
        """A server's text without the key, should the server repeat it."""
        if len(self._value) < keys.SHORTEST:
            return text
        return keys.remove_values(text, keys.forms_of(self._value))


def problem_of(error: Exception, base_url: str, secret: Secret) -> Exception:
    """What a failed try means: ``TransientError``, ``ContentFilterError`` or ``ChatError``.

    The caller raises it outside its ``except`` block, so that no traceback
    leads back to the request and its headers.
    """
    import openai  # importing it takes a second, and most notebooks call no API

    if isinstance(error, openai.APIStatusError):
        return _problem_of_status(error, base_url, secret)
    if isinstance(error, (openai.APITimeoutError, TimeoutError)):
        return TransientError("no answer in time")
    cause = error.__cause__
    return TransientError(f"connection failed ({type(cause or error).__name__})")


def _problem_of_status(error: openai.APIStatusError, base_url: str, secret: Secret) -> Exception:
    status = error.status_code
    codes = {error.code, error.type}
    if status == 429 and "insufficient_quota" in codes:
        return ChatError(f"{base_url}: the quota of {secret.name} is exhausted (429)")
    if status in _WORTH_ANOTHER_TRY or status >= 500:
        return TransientError(f"HTTP {status}", retry_after(error.response.headers), True)
    if status in (401, 403):
        if not secret.name:
            return ChatError(f"{base_url} asks for a key ({status}): name the variable that has it")
        # Servers quote parts of a key here.
        return ChatError(f"{base_url} refused the key in {secret.name} ({status}): check it")
    # FastAPI servers, transformers serve among them, write "detail" where OpenAI's has "error".
    detail = error.body.get("detail") if isinstance(error.body, Mapping) else None
    said = one_line(secret.removed_from(str(detail or error.message)))
    if "content_filter" in codes:
        return ContentFilterError(said)
    if status == 404:
        return UnsupportedError(f"{base_url} knows no such model or address (404): {said}")
    return UnsupportedError(f"{base_url} rejected the request ({status}): {said}")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asks to wait (``Retry-After``, seconds or a date), or None.

    >>> retry_after({"retry-after": "3"})
    3.0
    """
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def retrying(
    limits: Limits, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> tenacity.AsyncRetrying:
    """Tries of one call; the last ``TransientError`` is raised when they are used up."""

    def wait(state: tenacity.RetryCallState) -> float:
        longest = min(60.0, limits.first_wait_seconds * 2 ** (state.attempt_number - 1))
        jitter = random.uniform(0, longest)
        # Never sooner than the server asks, and spread out after that moment.
        error = state.outcome.exception() if state.outcome else None
        asked = error.wait_seconds if isinstance(error, TransientError) else None
        return jitter + (asked or 0.0)

    return tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type(TransientError),
        stop=tenacity.stop_after_attempt(limits.tries)
        | tenacity.stop_before_delay(limits.total_seconds),
        wait=wait,
        sleep=sleep,
        reraise=True,
    )
