"""How many notebooks make reproduce runs at a time, and how many processes each of them uses.

    python scripts/schedule.py jobs         # notebooks at a time on this machine
    python scripts/schedule.py processes    # models that each of them trains at a time
    python scripts/schedule.py minutes outputs/demo/manifests    # what a run takes on other cores

The first two follow the cores and the memory, and change no result. The third computes the
minutes from the CPU seconds that a run took. Standard library alone.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

CONTENTS = Path(__file__).resolve().parents[1] / "notebooks/contents.csv"
NOTEBOOK_GB = 3  # memory of the largest notebook at its peak
PROCESS_GB = 1  # of a process that trains one of its models
GB_PER_CORE = 4  # of the machines whose minutes are computed


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


class Work(NamedTuple):
    """CPU seconds of one notebook: of its kernel, and of models that several processes train."""

    kernel: float
    shared: float


def work_of(manifests: Path) -> dict[str, Work]:
    """What each notebook of a run took, from the folder of its manifests."""
    found = {path.stem: json.loads(path.read_text()) for path in manifests.glob("*.json")}
    return {
        name: Work(one["cpu_seconds"] - one["shared_seconds"], one["shared_seconds"])
        for name, one in found.items()
    }


def minutes(
    listed: list[Notebook], work: dict[str, Work], n_cores: int, n_jobs: int, n_processes: int
) -> float:
    """Minutes of ``make reproduce`` on so many cores, if nothing else runs on them.

    A kernel uses one core, and then ``n_processes`` cores while it trains models. Where the
    running notebooks want more cores than there are, all slow down alike.
    """
    after = {one.name: set(one.after) & set(work) for one in listed}
    waiting = [name for name in starting_order(listed) if name in work]
    running: dict[str, list[float]] = {}
    done: set[str] = set()
    passed = 0.0
    while waiting or running:
        for name in [name for name in waiting if after[name] <= done]:
            if len(running) < n_jobs:
                waiting.remove(name)
                running[name] = list(work[name])
        wanted = {name: 1 if left[0] > 0 else n_processes for name, left in running.items()}
        speed = min(1.0, n_cores / sum(wanted.values()))
        # Until the next notebook ends one of its two parts.
        step = min((left[0] or left[1]) / (wanted[name] * speed) for name, left in running.items())
        passed += step
        for name, left in list(running.items()):
            part = 0 if left[0] > 0 else 1
            left[part] = max(0.0, left[part] - step * wanted[name] * speed)
            if sum(left) < 1e-6:
                del running[name]
                done.add(name)
    return passed / 60


def summarize_cores(work: dict[str, Work], n_cores: int) -> str:
    """What such a run takes on so many cores with 4 GB of memory each."""
    memory_gb = GB_PER_CORE * n_cores
    n_jobs, n_processes = jobs(n_cores, memory_gb), processes(n_cores, memory_gb)
    taken = minutes(notebooks(), work, n_cores, n_jobs, n_processes)
    return (
        f"{n_cores} cores: {n_jobs} notebooks at a time, {n_processes} processes each, "
        f"{taken:.1f} minutes"
    )


if __name__ == "__main__":
    if sys.argv[1] == "minutes":
        measured = work_of(Path(sys.argv[2]))
        print(*(summarize_cores(measured, n_cores) for n_cores in (2, 4, 8)), sep="\n")
    else:
        print({"jobs": jobs, "processes": processes}[sys.argv[1]](*machine()))
