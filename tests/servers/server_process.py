"""A server that nobody here wrote, as a process of its own, with all that it prints in a file."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from waiting import LIMIT_SECONDS


class ServerProcess:
    """A context manager: the server answers when the block begins and is gone when it ends.

    Args:
        command: the command; ``{port}`` in it stands for a free port.
        health: address below the server's own that answers 200 when it is ready.
        log_path: receives what the server prints, its access log among it.
        settings: further arguments of ``subprocess.Popen``.
    """

    def __init__(self, command: Sequence[str], health: str, log_path: Path, **settings: Any):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log_path = log_path
        self._command = [part.format(port=port) for part in command]
        self._health, self._settings = health, settings

    def __enter__(self) -> ServerProcess:
        with self.log_path.open("w") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, **self._settings
            )
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"{self._command[0]} did not start:\n{self.log()[-2000:]}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.url + self._health, timeout=30) as response:  # noqa: S310
                return response.status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        return self.log_path.read_text()
