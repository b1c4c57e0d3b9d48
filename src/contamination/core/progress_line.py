"""The progress bars of a running notebook, shown as one line of the terminal."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from typing import Any, TextIO

from contamination.core.visible import visible


class ProgressLine:
    """A stream that takes a kernel's stderr and shows its progress bars on the terminal.

    A bar begins with a carriage return. Everything else, such as a warning, is ignored here and
    stays in the notebook.
    """

    def __init__(self, terminal: TextIO | None, scrub: Callable[[Any], Any]) -> None:
        self._terminal, self._scrub, self._n_shown = terminal, scrub, 0

    def write(self, text: str) -> None:
        """Show the last bar of the text, if it has one, in place of the bar before."""
        lines = re.findall(r"\r([^\r\n]*)", text)
        if self._terminal and lines:
            self._show(self._terminal, visible(self._scrub(lines[-1]).rstrip()))

    def flush(self) -> None:
        """Do nothing: each line is flushed when it is shown."""

    def close(self) -> None:
        """Clear the line."""
        if self._terminal and self._n_shown:
            self._show(self._terminal, "")
            self._show(self._terminal, "")

    def _show(self, terminal: TextIO, line: str) -> None:
        line = line[: shutil.get_terminal_size().columns - 1]
        terminal.write(f"\r{line:<{self._n_shown}}")  # over all of the line before
        terminal.flush()
        self._n_shown = len(line)
