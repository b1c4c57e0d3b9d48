"""The command ``contamination``, which is also ``python -m contamination``.

A subcommand is imported when it is called, so that help and version come at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from contamination import __version__

SUBCOMMANDS = {
    "audit": "contamination.audit.command_line",
    "settings": "contamination.papers.settings",
    "join": "contamination.papers.tables",
}

HELP = """usage: contamination SUBCOMMAND [options]

Was this language model trained on this benchmark?

  audit        was your model trained on your data? Cost first, then verdicts with their controls
  settings     one experiment of the papers, as a settings file for the audit
  join         finished experiments in the papers' tables, next to the printed values
  --version    print the version
  --help       print this; "contamination SUBCOMMAND --help" lists the options of a subcommand"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code of a subcommand; 2 where none has this name."""
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    first = given[0] if given else "--help"
    if first in ("-h", "--help"):
        print(HELP)
        return 0
    if first == "--version":
        print(f"contamination {__version__}")
        return 0
    if first not in SUBCOMMANDS:
        print("error: the subcommand is not known: contamination --help lists all", file=sys.stderr)
        return 2
    return import_module(SUBCOMMANDS[first]).main(given[1:])


if __name__ == "__main__":
    sys.exit(main())
