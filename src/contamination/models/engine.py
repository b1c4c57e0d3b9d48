"""Where work runs: on this machine, or on the workers of a Ray cluster.

Ray and its executor are imported here, for those alone who ask for them, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contamination.core.parallel import in_processes
from contamination.models.loading import CausalLM, load_causal_lm
from contamination.models.source import is_local, resolve_commit, resolve_path

ENGINES = ("local", "ray")


def check_engine(engine: str) -> None:
    """ValueError unless ``engine`` is one of ``ENGINES``."""
    if engine not in ENGINES:
        raise ValueError(f'engine must be "local" or "ray", got "{engine}"')


def load(
    name_or_path: str | Path,
    revision: str | None = None,
    *,
    engine: str = "local",
    ray_address: str = "",
    **settings: Any,
) -> CausalLM:
    """A causal language model that computes here or on a cluster.

    Args:
        name_or_path, revision, settings: as in ``loading.load_causal_lm``.
        engine: "local" computes in this process, "ray" on the workers of a cluster.
        ray_address: the cluster's address, "auto" for the one this machine belongs to, "" for
            this machine alone (or the cluster that the process has joined).

    Raises:
        FileNotFoundError, ValueError: as ``loading.load_causal_lm``.
        ModuleNotFoundError, ConnectionError, RuntimeError: if ray is not installed, no cluster
            is at the address, or no worker of it could load the model.
    """
    check_engine(engine)
    if engine == "local":
        return load_causal_lm(name_or_path, revision, **settings)
    from contamination.models import ray_cluster

    name = resolve_path(name_or_path)
    if not is_local(Path(name)):
        revision = resolve_commit(name, revision)  # once, so that all workers load the same
    return ray_cluster.load_on_cluster(
        ray_address, name_or_path=name, revision=revision, **settings
    )


def sweep(
    function: Callable[..., Any],
    jobs: Sequence[tuple],
    *,
    engine: str = "local",
    ray_address: str = "",
    processes: int = 1,
) -> list[Any]:
    """Results of ``function(*job)`` for every job, in order, such as the models of many recipes.

    Functions that keep what they make in the cache (``lab.training.train``,
    ``dice.fine_tuning.fine_tune``) leave it there as they finish, so a sweep that is started
    again goes on; on several machines the cache lies on a file system that all of them see.
    ``function`` is of a module, which workers import by name; what a job raises is raised.
    On this machine ``processes`` work at a time; more than one need memory for as many models.
    """
    check_engine(engine)
    if engine == "local":
        return in_processes(function, jobs, processes)
    from contamination.models import ray_cluster

    return ray_cluster.sweep(function, jobs, ray_address)
