"""Clients of the chat in processes of their own, which a test may kill."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

from contamination.models.chat import Endpoint, Request, answer_all
from contamination.models.response_log import ResponseLog

# A server that has imported the chat forks them: it is imported once, and they start together.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["contamination.models.chat"])
MODEL = "scripted-2024-01-31"


def _ask(path, base_url, n, concurrency, together, n_from_log):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    endpoint = Endpoint(base_url, MODEL, key_variable=None)
    requests = [Request(messages=[{"role": "user", "content": str(i)}]) for i in range(n)]
    if together:
        together.wait(60)
    with ResponseLog(path, lease_seconds=2) as log:
        answers = answer_all(endpoint, requests, log=log, concurrency=concurrency, progress=False)
    assert [answer.text for answer in answers] == [str(i) for i in range(n)]
    n_from_log.value = sum(answer.from_log for answer in answers)


class Client:
    """A started process that asks 0 to n - 1; ``n_from_log`` when it has finished."""

    def __init__(self, path: Path, base_url: str, n: int, concurrency: int, together=None):
        self._n_from_log = CONTEXT.Value("i", -1)
        self._together = together  # gone here, it would be gone there
        arguments = path, base_url, n, concurrency, together, self._n_from_log
        self.process = CONTEXT.Process(target=_ask, args=arguments)
        self.process.start()

    def end(self, number: int | None = None) -> int:
        """Wait for it, or end it by a signal; its exit code."""
        if number is not None:
            os.kill(self.process.pid, number)
        self.process.join(timeout=120)
        return self.process.exitcode

    @property
    def n_from_log(self) -> int:
        return self._n_from_log.value
