"""The ledger's parts as tasks of a Ray cluster: a leaf that ``scripts/ledger.py`` alone imports.

Placing a task, and starting it again elsewhere when its node dies, is Ray's part. The files of a
part are written when it is done, and what it trained is in the cache, so a task that is started
again loses little. The cache and the ledger's folder lie where all nodes see them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from tqdm import tqdm

from contamination.core import storage


def sweep(function: Callable[..., Any], jobs: Sequence[tuple]) -> None:
    """Call ``function(*job)`` for every job, each a task of one core, and of one GPU if any.

    The cluster is the one that RAY_ADDRESS names or that this machine belongs to, else one is
    started on this machine alone. Workers import ``function`` by name.

    Raises:
        ModuleNotFoundError, ConnectionError: if Ray is not installed, or no cluster is at the
            address.
        Exception: the first one that a job raises.
    """
    try:
        import ray.exceptions
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Ray is not installed: pip install -r requirements/extra.txt -c requirements.txt"
        ) from error
    if not ray.is_initialized():
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    slot = {"num_cpus": 1, "num_gpus": int("GPU" in ray.cluster_resources())}
    # A node that dies takes no task with it; what a job raises is raised at once.
    task = ray.remote(_on_node).options(max_retries=-1, **slot)
    cache = str(storage.cache_folder().absolute())
    calls = [task.remote(function, job, cache) for job in jobs]
    for _ in tqdm(jobs, unit=" parts"):
        (done,), calls = ray.wait(calls)
        try:
            ray.get(done)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None


def _on_node(function: Callable[..., Any], job: tuple, cache: str) -> None:
    torch.set_num_threads(1)
    os.environ[storage.CACHE_VARIABLE] = cache
    function(*job)
