"""Where work runs: in this process, or on the workers of a Ray cluster."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from tqdm import tqdm

ENGINES = ("local", "ray")


def check_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise ValueError(f'engine must be "local" or "ray", got "{engine}"')


def ray_cluster() -> ModuleType:
    """The Ray executor, imported for those alone who ask for it."""
    return importlib.import_module("contamination.models.ray_cluster")


def sweep(
    function: Callable[..., Any],
    jobs: Sequence[tuple],
    *,
    engine: str = "local",
    ray_address: str = "",
) -> list[Any]:
    """Results of ``function(*job)`` for every job, in order, such as the models of many recipes.

    Functions that keep what they make in the cache (``lab.training.train``,
    ``dice.fine_tuning.fine_tune``) leave it there as they finish, so a sweep that is started
    again goes on; on several machines the cache lies on a file system that all of them see.
    ``function`` is of a module, which workers import by name; what a job raises is raised.
    """
    check_engine(engine)
    if engine == "ray":
        return ray_cluster().sweep(function, jobs, ray_address)
    return [function(*job) for job in tqdm(jobs, unit=" jobs")]
