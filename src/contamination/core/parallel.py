"""Independent computations in several processes, such as the trainings of many models.

Which processes there are changes how long a computation takes, never its result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from joblib import Parallel, delayed, parallel_config
from tqdm import tqdm

PROCESSES_VARIABLE = "CONTAMINATION_PROCESSES"


def n_processes() -> int:
    """How many processes one notebook may use: CONTAMINATION_PROCESSES, else one for each core."""
    return int(os.environ.get(PROCESSES_VARIABLE) or n_cores())


def n_cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_processes(
    function: Callable[..., Any], jobs: Sequence[tuple], processes: int | None = None
) -> list[Any]:
    """Results of ``function(*job)`` for every job, in the order of the jobs.

    Args:
        function: one that keeps what is expensive in the cache, so that a run that was
            interrupted goes on where it stopped.
        jobs: arguments of each call.
        processes: how many calls run at a time, each in a process with one thread;
            :func:`n_processes` by default. With one, all calls run in this process.

    Raises:
        Exception: the first one that a call raises.
    """
    n = min(processes or n_processes(), len(jobs))
    # Only a terminal shows the bar: in a notebook its last state would be stored as a result.
    bar = {"total": len(jobs), "unit": " jobs", "leave": False, "disable": None}
    if n <= 1:
        return [function(*job) for job in tqdm(jobs, **bar)]
    with parallel_config(backend="loky", inner_max_num_threads=1):
        calls = (delayed(function)(*job) for job in jobs)
        coming = Parallel(n_jobs=n, return_as="generator")(calls)
        return list(tqdm(coming, **bar))
