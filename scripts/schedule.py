"""How long make reproduce takes on some number of cores, and how many notebooks run at a time.

    python scripts/schedule.py page              # write the table of docs/reproducing.md
    python scripts/schedule.py jobs              # how many notebooks this machine runs at a time
    python scripts/schedule.py processes         # how many processes each of them may use
    python scripts/schedule.py measured outputs/demo   # store what a run took in contents.csv

``notebooks/contents.csv`` holds what each notebook took: processor seconds in all, and those that
its independent models share, which several processes can divide. All but ``page`` needs the
standard library alone.
"""

from __future__ import annotations

import csv
import heapq
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CONTENTS, PAGE = ROOT / "notebooks/contents.csv", ROOT / "docs/reproducing.md"
NOTEBOOK_GB = 3  # memory of the largest notebook at its peak
PROCESS_GB = 1  # of a process that trains one of its models
CORES, MEMORY_GB = (2, 4, 8), 24  # for the table


class Notebook(NamedTuple):
    """What one notebook waits for, and takes."""

    name: str
    after: tuple[str, ...]
    cpu_seconds: float
    shared_seconds: float  # of these, what its processes can divide among them


def notebooks(path: Path = CONTENTS) -> list[Notebook]:
    """The notebooks of ``contents.csv``, in their order there."""
    with path.open(newline="") as stream:
        return [
            Notebook(
                row["notebook"],
                tuple(row["after"].split()),
                float(row["cpu_seconds"]),
                float(row["shared_seconds"]),
            )
            for row in csv.DictReader(stream)
        ]


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


def starting_order(listed: Sequence[Notebook]) -> list[str]:
    """Names of those that wait for none, then of all others, the longest first in both.

    Make goes through its list once before it comes back to a notebook that had to wait.
    """
    ordered = sorted(listed, key=lambda one: (one.after != (), -one.cpu_seconds))
    return [one.name for one in ordered]


def seconds(one: Notebook, n_processes: int) -> float:
    """How long one notebook takes, if every process of it has a core."""
    return one.cpu_seconds - one.shared_seconds + one.shared_seconds / n_processes


def makespan(
    listed: Sequence[Notebook], n_cores: int, n_jobs: int, n_processes: int
) -> tuple[float, float]:
    """When the last notebook is done, and the longest chain of notebooks, both in seconds.

    Make starts the first notebook of its list whose prerequisites are there, as soon as one of
    its jobs is free. No schedule ends before all cores together have done all work, so that is
    the least that is given.
    """
    taking = {one.name: seconds(one, n_processes) for one in listed}
    after = {one.name: set(one.after) for one in listed}
    chain: dict[str, float] = {}
    for one in listed:  # a notebook comes after those that it waits for
        chain[one.name] = taking[one.name] + max((chain[name] for name in one.after), default=0.0)
    waiting, running = starting_order(listed), list[tuple[float, str]]()
    done, now = set[str](), 0.0
    while waiting or running:
        ready = [name for name in waiting if after[name] <= done]
        for name in ready[: n_jobs - len(running)]:
            waiting.remove(name)
            heapq.heappush(running, (now + taking[name], name))
        now, name = heapq.heappop(running)
        done.add(name)
    least = sum(one.cpu_seconds for one in listed) / n_cores
    return max(now, least), max(chain.values())


def schedule(listed: Sequence[Notebook], memory_gb: float) -> list[Mapping[str, float]]:
    """One row for each number of cores in ``CORES``."""
    rows = []
    for n_cores in CORES:
        n_jobs, n_processes = jobs(n_cores, memory_gb), processes(n_cores, memory_gb)
        whole, chain = makespan(listed, n_cores, n_jobs, n_processes)
        rows.append(
            {"Cores": n_cores, "Notebooks at a time": n_jobs, "Processes each": n_processes}
            | {"Minutes": round(whole / 60, 1), "Longest chain, minutes": round(chain / 60, 1)}
        )
    return rows


def machine() -> tuple[int, float]:
    """Cores that this process may use, and the machine's memory in GiB."""
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    else:
        n_cores = os.cpu_count() or 1
    return n_cores, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def store_measured(run: Path, path: Path = CONTENTS) -> None:
    """Writes what the notebooks of a run took, from its manifests, into ``contents.csv``."""
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        said = json.loads((run / "manifests" / f"{row['notebook']}.json").read_text())
        row["cpu_seconds"] = str(round(said["cpu_seconds"]))
        row["shared_seconds"] = str(round(said["shared_seconds"]))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def as_markdown(rows: Sequence[Mapping[str, float]]) -> str:
    """Rows of :func:`schedule` as a table for readers."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(map(str, row.values())) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_page() -> None:
    """Renews the table of docs/reproducing.md."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import readme

    table = as_markdown(schedule(notebooks(), MEMORY_GB))
    page = readme.renewed(PAGE.read_text(), "schedule", table, "scripts/schedule.py")
    PAGE.write_text(page)


def main(arguments: Sequence[str]) -> None:
    (command,) = arguments[:1] or ("page",)
    if command == "jobs":
        print(jobs(*machine()))
    elif command == "processes":
        print(processes(*machine()))
    elif command == "measured":
        store_measured(Path(arguments[1]))
    else:
        write_page()


if __name__ == "__main__":
    main(sys.argv[1:])
