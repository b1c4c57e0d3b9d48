"""How much of an answer is read: a server that does not stop is stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

LARGEST_ANSWER = 32_000_000  # bytes; log-probabilities of a long prompt take a tenth of it


class TooLargeError(Exception):
    """An answer of more than ``LARGEST_ANSWER`` bytes, or one whose size cannot be told."""


class _Counted(httpx2.AsyncByteStream):
    """A body that ends with TooLargeError when it goes on for too long."""

    def __init__(self, body: Any) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        n_read = 0
        async for part in self._body:
            n_read += len(part)
            if n_read > LARGEST_ANSWER:
                raise TooLargeError(f"the answer is larger than {LARGEST_ANSWER:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


def limited_client() -> httpx2.AsyncClient:
    """The SDK's own client, which reads no body beyond the limit, an error's body included.

    It asks for no compression and refuses it: a few bytes of it can stand for gigabytes.
    """

    async def limit(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise TooLargeError("the answer came compressed, which was not asked for")
        response.stream = _Counted(response.stream)

    import openai  # importing it takes a second, and most notebooks call no API

    return openai.DefaultAsyncHttpxClient(
        headers={"Accept-Encoding": "identity"}, event_hooks={"response": [limit]}
    )


def is_deeper(value: Any, n_levels: int) -> bool:
    """Whether lists and objects stand in each other more than so many levels deep.

    >>> is_deeper({"a": [1]}, 2), is_deeper({"a": [[1]]}, 2)
    (False, True)
    """
    level = [value]
    for _ in range(n_levels):
        inside = (one.values() if isinstance(one, dict) else one for one in level)
        level = [child for part in inside for child in part if isinstance(child, (dict, list))]
        if not level:
            return False
    return True
