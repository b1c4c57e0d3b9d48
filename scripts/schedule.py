"""How many notebooks make reproduce runs at a time, and how many processes each of them uses.

    python scripts/schedule.py jobs         # notebooks at a time on this machine
    python scripts/schedule.py processes    # models that each of them trains at a time

Both follow the cores and the memory, and change no result. Standard library alone.
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from typing import NamedTuple

CONTENTS = Path(__file__).resolve().parents[1] / "notebooks/contents.csv"
NOTEBOOK_GB = 3  # memory of the largest notebook at its peak
PROCESS_GB = 1  # of a process that trains one of its models


class Notebook(NamedTuple):
    """What one notebook waits for, and the minutes that it may take on two cores (demo)."""

    name: str
    after: tuple[str, ...]
    minutes: int


def notebooks(path: Path = CONTENTS) -> list[Notebook]:
    """The notebooks of ``contents.csv``, in their order there."""
    with path.open(newline="") as stream:
        return [
            Notebook(row["notebook"], tuple(row["after"].split()), int(row["minutes"]))
            for row in csv.DictReader(stream)
        ]


def starting_order(listed: list[Notebook]) -> list[str]:
    """Names of those that wait for none, then of all others, the longest first in both.

    Make goes through its list once before it comes back to a notebook that had to wait.
    """
    ordered = sorted(listed, key=lambda one: (one.after != (), -one.minutes, one.name))
    return [one.name for one in ordered]


def jobs(n_cores: int, memory_gb: float) -> int:
    """Notebooks that run at a time: one more than half of the cores, as far as memory allows.

    The other cores train the models of the longest ones. Two fill the pauses of each other, so
    there are never fewer.
    """
    return max(2, min(n_cores // 2 + 1, int(memory_gb // NOTEBOOK_GB)))


def processes(n_cores: int, memory_gb: float) -> int:
    """Processes that each notebook may use.

    With up to three cores other notebooks keep every core busy, so one is enough. With more, half
    of the cores, if there is memory for as many in every notebook.
    """
    spare_gb = memory_gb / jobs(n_cores, memory_gb) - NOTEBOOK_GB
    return max(1, min(n_cores // 2, int(spare_gb // PROCESS_GB)) if n_cores > 3 else 1)


def machine() -> tuple[int, float]:
    """Cores that this process may use, and the machine's memory in GiB."""
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    else:
        n_cores = os.cpu_count() or 1
    return n_cores, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


if __name__ == "__main__":
    chosen = {"jobs": jobs, "processes": processes}[sys.argv[1]]
    print(chosen(*machine()))
