"""Waiting for what other threads and processes do, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_SECONDS = 600  # only something that hangs takes as long


def wait_until(happened: Callable[[], object], goes_on: Callable[[], object] = lambda: True):
    """Return when something has happened; AssertionError if nothing goes on that could do it."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not happened():
        assert goes_on(), "it ended before it got there"
        assert time.monotonic() < deadline, "it hangs"
        time.sleep(0.01)
