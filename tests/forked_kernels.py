"""Kernels for the suite, forked from one process that has imported the libraries.

A fresh kernel spends 6 s of a core on imports alone; ``make reproduce`` and JupyterLab, which
``make test-servers`` starts, use fresh ones.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

IMPORTED = ["ipykernel.kernelapp", "contamination.audit.auditing", "contamination.lab.world"]
IMPORTED += ["contamination.core.plots", "sklearn.linear_model"]
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(IMPORTED)


class ForkedKernel:
    """In place of the ``Popen`` that ``jupyter_client.launcher.launch_kernel`` returns."""

    stdin = stdout = stderr = None

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], **_: Any) -> None:
        assert command[0] == sys.executable
        has_session = FORKING.Event()
        told = (command[command.index("-f") :], dict(env), os.getcwd(), has_session)
        self._process = FORKING.Process(target=_be_a_kernel, args=told)
        self._process.start()
        has_session.wait()  # jupyter_client ends a kernel by its process group
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


def _be_a_kernel(arguments: list[str], env: dict[str, str], cwd: str, has_session: Any) -> None:
    os.setsid()
    has_session.set()
    threading.Thread(target=_end_with_the_tests, daemon=True).start()
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(argv=arguments)


def _end_with_the_tests() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
