"""An endpoint on 127.0.0.1 that answers by a script and keeps its own count."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MODEL = "scripted-2024-01-31"


@dataclass
class Reply:
    """What goes back: a status, a body (JSON value or text), headers, after a delay.

    And not before ``after`` is set, so that a test need not guess how long something takes.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    after: threading.Event | None = None
    is_dropped: bool = False


def good(text: Any, model: str = MODEL, finish_reason: str = "stop", **message: Any) -> Reply:
    """A chat completion of 10 input tokens and 1 output token."""
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": text, **message},
    }
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    return Reply({"object": "chat.completion", "model": model, "choices": [choice], "usage": usage})


def failure(status: int, code: str | None = None, message: str = "no", **headers: str) -> Reply:
    body = {"error": {"message": message, "code": code, "type": code}}
    return Reply(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


def question(body: dict[str, Any]) -> str:
    """The last words of what was asked."""
    return body["messages"][-1]["content"] if "messages" in body else body["prompt"]


class ScriptedServer:
    """A context manager; ``script(body, n)`` answers the n-th call (from 1) of a question.

    ``bodies`` and ``headers`` hold every call in the order of arrival,
    ``counts`` the calls of each question, ``n_in_flight_most`` the largest
    number of calls that were open together.
    """

    def __init__(self, script: Callable[[dict[str, Any], int], Reply]):
        self.script = script
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.counts: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.n_in_flight = self.n_in_flight_most = 0

    def __enter__(self) -> ScriptedServer:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)))
        self._thread.start()
        started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self._handlers: set[asyncio.Task] = set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        started.set()
        await self._end.wait()
        server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._handlers.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        method, path, _ = head.split(maxsplit=2)
        raw = await reader.readexactly(int(fields.get("content-length", 0)))
        if path.endswith("completions"):
            body = json.loads(raw)
        else:  # files and fine-tuning jobs: the question is the address
            body = {"prompt": f"{method} {path.partition('?')[0]}", "raw": raw}
        asked = question(body)
        self.bodies.append(body)
        self.headers.append(head)
        self.counts[asked] += 1
        reply = self.script(body, self.counts[asked])
        self.n_in_flight += 1
        self.n_in_flight_most = max(self.n_in_flight, self.n_in_flight_most)
        try:
            await asyncio.sleep(reply.delay)
            while reply.after and not reply.after.is_set():
                await asyncio.sleep(0.005)
        finally:
            self.n_in_flight -= 1
        if reply.is_dropped:
            return False
        content = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
        data = content.encode()
        headers = {"content-type": "application/json", **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} Scripted", f"content-length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        await writer.drain()
        self.answered[asked] += 1
        return True
