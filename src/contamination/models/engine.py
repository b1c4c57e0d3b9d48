"""Where work runs: in this process, or on the workers of a Ray cluster.

A model of a cluster is loaded with ``load_causal_lm(..., engine="ray")`` and goes
into the same functions as any other (``token_log_probs``, ``option_log_probs``,
``complete``, ``hidden_states``). They compose their batches from the whole
request before any is handed out, and every worker computes as one process does,
so a result depends on neither the number of workers nor on which of them had the
batch. Results come back to the process that asked, which alone writes them, as
they come: a killed run loses what was in flight.

Placing workers and noticing that one is gone, with its node or alone, is Ray's part.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm
from transformers import AutoModelForCausalLM, GenerationConfig

from contamination import storage
from contamination.models.batch_cache import BatchCache
from contamination.models.loading import CausalLM, load_causal_lm

ENGINES = ("local", "ray")
IN_FLIGHT = 2  # batches at a worker: one it computes, one that waits there
LOSSES = 3  # workers that may be lost over one batch, or while each of them starts
START_SECONDS = 1800  # for which no worker may be up
ROOM_SECONDS = 60  # for which others may hold the whole cluster

Arrays = dict[str, np.ndarray]


class Job(NamedTuple):
    """One batch: what enters it, as JSON values, and what its work is called with."""

    key: Any
    arguments: tuple


def check_engine(engine: str) -> None:
    """Raises ValueError unless ``engine`` is "local" or "ray"."""
    if engine not in ENGINES:
        raise ValueError(f'engine must be "local" or "ray", got "{engine}"')


def run_batches(
    lm: CausalLM,
    work: Callable[..., Mapping[str, np.ndarray]],
    jobs: Sequence[Job],
    names: Sequence[str],
    store: BatchCache | None,
) -> Iterator[tuple[int, Arrays]]:
    """What ``work(lm, *arguments)`` gives for every batch, from the disk where it lies there.

    Args:
        lm: the model; one from :func:`load_on_cluster` has the work done by its workers.
        work: a function of a module, which workers import by name.
        jobs: the batches.
        names: the arrays wanted of each.
        store: receives each result before it is handed out; None keeps nothing.

    Yields:
        Number of the batch and its arrays; every batch once, on a cluster in
        the order in which they are ready.
    """
    if not isinstance(lm, ClusterLM):
        for number, (key, arguments) in enumerate(jobs):

            def compute(arguments: tuple = arguments) -> Mapping[str, np.ndarray]:
                return work(lm, *arguments)

            yield number, store.arrays(key, compute, names) if store else compute()
        return
    missing = []
    with tqdm(total=len(jobs), unit=" batches") as bar:
        for number, job in enumerate(jobs):
            found = store.get(job.key, names) if store else None
            if found is None:
                missing.append(number)
            else:
                bar.update()
                yield number, found
        for number, found in lm.workers.run(work, {n: jobs[n].arguments for n in missing}):
            bar.update()
            yield number, store.put(jobs[number].key, found, names) if store else found


def sweep(
    function: Callable[..., Any],
    jobs: Sequence[tuple],
    *,
    engine: str = "local",
    ray_address: str = "",
) -> list[Any]:
    """Results of ``function(*job)`` for every job, in order, such as the models of many recipes.

    Functions that keep what they make in the cache (``lab.training.train``,
    ``dice.fine_tuning.fine_tune``) leave it there as they finish, so a sweep that
    is started again goes on; on several machines the cache lies on a file system
    that all of them see.

    Args:
        function: of a module, which workers import by name.
        jobs: its arguments.
        engine, ray_address: as in ``load_causal_lm``.

    Raises:
        Exception: what a job raised.
    """
    check_engine(engine)
    if engine == "local":
        return [function(*job) for job in tqdm(jobs, unit=" jobs")]
    ray = _connect(ray_address)
    slot = _slot(ray)
    task = ray.remote(_elsewhere).options(max_retries=-1, **slot)
    setting = {"n_threads": torch.get_num_threads(), "cache": str(storage.cache_folder())}
    waiting, running, results = deque(enumerate(jobs)), {}, {}
    most = 2 * _n_slots(ray, slot)
    with tqdm(total=len(jobs), unit=" jobs") as bar:
        while waiting or running:
            while waiting and len(running) < most:
                number, job = waiting.popleft()
                running[task.remote(function, job, **setting)] = number
            done, _ = ray.wait(list(running), num_returns=1)
            results[running.pop(done[0])] = _result(ray, done[0])
            bar.update()
    return [results[number] for number in range(len(jobs))]


def _elsewhere(function: Callable[..., Any], job: tuple, n_threads: int, cache: str) -> Any:
    torch.set_num_threads(n_threads)
    os.environ[storage.CACHE_VARIABLE] = cache
    os.environ.pop(storage.STAGING_VARIABLE, None)
    return function(*job)


# Models on a cluster


@dataclass(frozen=True)
class ClusterLM(CausalLM):
    """A model whose weights lie with workers; here are its tokenizer and configuration.

    Attributes:
        workers: who computes.
        device_type: where their weights lie, "cpu" or "cuda".
    """

    workers: Workers
    device_type: str

    @property
    def device(self) -> torch.device:
        return torch.device(self.device_type)


def load_on_cluster(ray_address: str, **how: Any) -> ClusterLM:
    """A model loaded once by each worker of a Ray cluster.

    A worker is one GPU, or all of a node's with ``device_map``; on a cluster
    without any it has as many cores as this process has threads.

    Args:
        ray_address: "" for this machine alone (or the cluster that the process
            has joined), "auto" for the cluster this machine belongs to, or an address.
        how: arguments of ``load_causal_lm``; a folder must be visible to all nodes.

    Raises:
        ModuleNotFoundError: if ray is not installed.
        ConnectionError: if there is no cluster at the address.
        RuntimeError: if no worker could load the model.
    """
    folder = Path(how["name_or_path"])
    workers = Workers(
        how | {"name_or_path": str(folder.absolute())} if folder.exists() else how, ray_address
    )
    config, tokenizer, stop = workers.describe()
    with torch.device("meta"):  # shapes alone
        model = AutoModelForCausalLM.from_config(config)
    model.generation_config = GenerationConfig(eos_token_id=stop)
    storage.record("model", **workers.identity)
    return ClusterLM(model, tokenizer, workers.identity, workers, workers.device_type)


class _Worker:
    """A process of the cluster that holds the model."""

    def __init__(self, how: dict[str, Any], n_threads: int):
        torch.set_num_threads(n_threads)
        # The manifest is written by the process that asks.
        os.environ.pop(storage.STAGING_VARIABLE, None)
        self.lm = load_causal_lm(**how)

    def ready(self) -> tuple[dict[str, str], str]:
        return self.lm.identity, self.lm.device.type

    def describe(self) -> tuple[Any, Any, Any]:
        model = self.lm.model
        return model.config, self.lm.tokenizer, model.generation_config.eos_token_id

    def run(self, work: Callable[..., Mapping[str, np.ndarray]], arguments: tuple) -> Arrays:
        return dict(work(self.lm, *arguments))


class Workers:
    """Processes that hold one model; they end with this object."""

    def __init__(self, how: dict[str, Any], ray_address: str):
        self._ray = _connect(ray_address)
        slot = _slot(self._ray, whole_node=how["device_map"] is not None)
        # Ray restarts no worker by itself: calls to one would wait until a node like the one that
        # is gone comes back. A lost worker is replaced, and its batches go to whoever is free.
        worker = self._ray.remote(_Worker).options(max_restarts=0, **slot)
        self._start = partial(worker.remote, how, torch.get_num_threads())
        self._actors = [self._start() for _ in range(_n_slots(self._ray, slot))]
        calls = [actor.ready.remote() for actor in self._actors]
        done, _ = self._ray.wait(calls, timeout=START_SECONDS)
        if not done:
            raise RuntimeError(_NONE_UP)
        self.identity, self.device_type = _result(self._ray, done[0])

    def __len__(self) -> int:
        return len(self._actors)

    def describe(self) -> tuple[Any, Any, Any]:
        """Configuration of the model, its tokenizer and its stop token."""
        calls = [actor.describe.remote() for actor in self._actors]
        return _result(self._ray, self._ray.wait(calls)[0][0])

    def run(
        self, work: Callable[..., Mapping[str, np.ndarray]], jobs: Mapping[int, tuple]
    ) -> Iterator[tuple[int, Arrays]]:
        """Number and result of every job, as they come; at most ``IN_FLIGHT`` at a worker.

        Raises:
            RuntimeError: if no worker is up, or workers keep dying.
            Exception: what ``work`` raised.
        """
        waiting, lost, up = deque(jobs), Counter(), []
        # Calls in flight and whose they are; None stands for a worker that starts.
        calls = {actor.ready.remote(): (actor, None) for actor in self._actors}
        while waiting or any(number is not None for _, number in calls.values()):
            patience = None if up else START_SECONDS
            done, _ = self._ray.wait(list(calls), num_returns=1, timeout=patience)
            if not done:
                raise RuntimeError(_NONE_UP)
            actor, number = calls.pop(done[0])
            found = None
            try:
                found = _result(self._ray, done[0])
            except self._ray.exceptions.RayActorError:
                lost[number] += 1
                if lost[number] == LOSSES * (len(self) if number is None else 1):
                    raise RuntimeError(
                        "workers are lost one after the other, as when memory runs out: pass a "
                        "smaller max_batch_tokens, or give a worker more of a node"
                    ) from None
                waiting.extendleft([] if number is None else [number])
                up = [other for other in up if other is not actor]
                if actor in self._actors:  # not yet replaced
                    other = self._start()
                    self._actors[self._actors.index(actor)] = other
                    calls[other.ready.remote()] = other, None
            if found is not None and number is None:
                self._check_same(found[0])
                up.append(actor)
            # Whoever has room, since what a lost worker had may come back when the rest is idle.
            for n_there, actor in product(range(IN_FLIGHT), up):
                if waiting and sum(other is actor for other, _ in calls.values()) == n_there:
                    given = waiting.popleft()
                    calls[actor.run.remote(work, jobs[given])] = actor, given
            if found is not None and number is not None:
                yield number, found

    def _check_same(self, identity: Mapping[str, str]) -> None:
        for name, value in identity.items():
            if value != self.identity[name]:
                raise RuntimeError(
                    f"workers differ in {name} ({self.identity[name]} and {value}), on which "
                    "scores depend: use nodes of one kind"
                )


# Ray


_NONE_UP = (
    f"no worker of the cluster is up after {START_SECONDS} s: "
    'see "ray status"; what was computed is kept, run again'
)


def _connect(ray_address: str) -> ModuleType:
    """Ray, connected to a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'engine "ray" needs the package ray: pip install -r requirements-extra.txt '
            "-c requirements.txt"
        ) from error
    if not ray.is_initialized():
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        where = {"address": ray_address} if ray_address else {"address": "local"}
        if not ray_address:
            where["include_dashboard"] = False
        try:
            ray.init(**where, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConnectionError(
                f'no Ray cluster at "{ray_address}": start one with "ray start --head", '
                "or leave ray_address empty for this machine alone"
            ) from error
    return ray


def _slot(ray: ModuleType, whole_node: bool = False) -> dict[str, float]:
    """What one worker takes of a node."""
    gpus = [node["Resources"].get("GPU", 0) for node in _nodes(ray)]
    if not any(gpus):
        return {"num_cpus": torch.get_num_threads()}
    return {"num_cpus": 1, "num_gpus": min(filter(None, gpus)) if whole_node else 1}


def _n_slots(ray: ModuleType, slot: Mapping[str, float]) -> int:
    """Workers that the cluster can hold; there is room for one of them now."""
    names = {"num_cpus": "CPU", "num_gpus": "GPU"}
    deadline = time.monotonic() + ROOM_SECONDS
    n_slots = sum(
        int(min(node["Resources"].get(names[name], 0) // n for name, n in slot.items()))
        for node in _nodes(ray)
    )
    if not n_slots:
        raise RuntimeError(
            f"no node of the cluster has {slot['num_cpus']} cores, as many as this process has "
            "threads: set OMP_NUM_THREADS to the cores of a node"
        )
    # A model that was just let go of needs a moment to leave.
    while any(ray.available_resources().get(names[name], 0) < n for name, n in slot.items()):
        if time.monotonic() > deadline:
            raise RuntimeError(
                "no room on the cluster for a worker: let go of the models loaded there (del lm), "
                "or wait for its other users"
            )
        time.sleep(0.5)
    return n_slots


def _nodes(ray: ModuleType) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _result(ray: ModuleType, call: Any) -> Any:
    """What a call gave; what it raised there is raised here, in one line."""
    try:
        return ray.get(call)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayActorError as error:
        if error.actor_init_failed:
            last = str(error).strip().splitlines()[-1]
            raise RuntimeError(f"a worker could not load the model: {last}") from None
        raise
