"""Clients of the chat in processes of their own, which a test may kill."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

from waiting import LIMIT_SECONDS

from contamination.core import storage
from contamination.models.chat import ChatError, Endpoint, Price, Request, answer_all
from contamination.models.response_log import ResponseLog

# A server that has imported the chat forks them: it is imported once, and they start together.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["contamination.models.chat"])
MODEL = "scripted-2024-01-31"
PRICE = Price(100_000.0, 900_000.0, date="2024-01-31")  # 10 + 1 tokens: 1.0 + 0.9


def _ask(path, base_url, texts, concurrency, cap, together, n_from_log, stopped):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop(storage.STAGING_VARIABLE, None)  # of the test in which the server was started
    endpoint = Endpoint(base_url, MODEL, key_variable=None)
    requests = [
        Request(messages=[{"role": "user", "content": text}], options={"max_tokens": 2})
        for text in texts
    ]
    settings = {"concurrency": concurrency, "price": PRICE, "cap": cap, "progress": False}
    if together:
        together.wait(LIMIT_SECONDS)
    with ResponseLog(path) as log:
        try:
            answers = answer_all(endpoint, requests, log=log, **settings)
        except ChatError as error:
            stopped.value = str(error).encode()
            return
    assert [answer.text for answer in answers] == texts
    n_from_log.value = sum(answer.from_log for answer in answers)


class Client:
    """A started process that asks 0 to n - 1, each after the prefix.

    When it has finished, ``n_from_log``; when a ChatError ended it, the line that it
    ``stopped`` with.
    """

    def __init__(
        self,
        path: Path,
        base_url: str,
        n: int,
        concurrency: int,
        together=None,
        prefix: str = "",
        cap: float | None = None,
    ):
        self._n_from_log, self._stopped = CONTEXT.Value("i", -1), CONTEXT.Array("c", 500)
        self._together = together  # gone here, it would be gone there
        texts = [f"{prefix}{i}" for i in range(n)]
        arguments = path, base_url, texts, concurrency, cap
        arguments += together, self._n_from_log, self._stopped
        self.process = CONTEXT.Process(target=_ask, args=arguments)
        self.process.start()

    def end(self, number: int | None = None) -> int:
        """Wait for it, or end it by a signal; its exit code."""
        if number is not None:
            os.kill(self.process.pid, number)
        self.process.join(LIMIT_SECONDS)
        return self.process.exitcode

    @property
    def n_from_log(self) -> int:
        return self._n_from_log.value

    @property
    def stopped(self) -> str:
        return self._stopped.value.decode()
