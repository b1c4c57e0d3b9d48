"""The workers of a Ray cluster: a leaf that ``models.engine`` alone imports, when it is asked for.

A model of a cluster is loaded with ``engine.load(..., engine="ray")`` and goes
into the same functions as any other. They compose their batches from the whole
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
from typing import Any, ClassVar

import torch
from tqdm import tqdm
from transformers import AutoModelForCausalLM, GenerationConfig

from contamination.core import storage
from contamination.models.loading import Arrays, CausalLM, load_causal_lm

IN_FLIGHT = 2  # batches at a worker: one it computes, one that waits there
LOSSES = 3  # workers that may be lost over one batch, or while each of them starts
START_SECONDS = 1800  # for which no worker may be up
ROOM_SECONDS = 60  # for which others may hold the whole cluster


def sweep(function: Callable[..., Any], jobs: Sequence[tuple], ray_address: str) -> list[Any]:
    """As ``engine.sweep``, each job a task of the cluster."""
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


@dataclass(frozen=True)
class ClusterLM(CausalLM):
    """A model whose weights lie with workers; here are its tokenizer and configuration."""

    is_elsewhere: ClassVar[bool] = True
    workers: Workers
    device_type: str

    @property
    def device(self) -> torch.device:
        """The kind of device that the workers compute on."""
        return torch.device(self.device_type)

    def compute(self, work: Callable[..., Any], jobs: Mapping[int, tuple]) -> Iterator[Any]:
        """Results of ``work`` on numbered jobs, as the workers finish them."""
        yield from tqdm(self.workers.run(work, jobs), total=len(jobs), unit=" batches")


def load_on_cluster(ray_address: str, **settings: Any) -> ClusterLM:
    """A model loaded once by each worker of a Ray cluster.

    A worker is one GPU, or all of a node's with ``device_map``; on a cluster without any it
    has as many cores as this process has threads. ``ray_address`` and errors: as in
    ``engine.load``, whose arguments ``settings`` are; a folder must be visible to all nodes.
    """
    folder = Path(settings["name_or_path"])
    if folder.exists():
        settings |= {"name_or_path": str(folder.absolute())}
    workers = Workers(settings, ray_address)
    config, tokenizer, stop = workers.describe()
    may_run = settings.get("trust_remote_code", False)
    with torch.device("meta"):  # shapes alone
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=may_run)
    model.generation_config = GenerationConfig(eos_token_id=stop)
    storage.record("model", **workers.identity)
    return ClusterLM(model, tokenizer, workers.identity, workers, workers.device_type)


class _Worker:
    """A process of the cluster that holds the model."""

    def __init__(self, settings: dict[str, Any], n_threads: int) -> None:
        torch.set_num_threads(n_threads)
        # The manifest is written by the process that asks.
        os.environ.pop(storage.STAGING_VARIABLE, None)
        self.lm = load_causal_lm(**settings)

    def ready(self) -> tuple[dict[str, str], str]:
        return self.lm.identity, self.lm.device.type

    def describe(self) -> tuple[Any, Any, Any]:
        model = self.lm.model
        return model.config, self.lm.tokenizer, model.generation_config.eos_token_id

    def run(self, work: Callable[..., Arrays], arguments: tuple) -> Arrays:
        return dict(work(self.lm, *arguments))


class Workers:
    """Processes that hold one model; they end with this object."""

    def __init__(self, settings: dict[str, Any], ray_address: str) -> None:
        self._ray = _connect(ray_address)
        slot = _slot(self._ray, whole_node=settings.get("device_map") is not None)
        # Ray restarts no worker by itself: calls to one would wait until a node like the one that
        # is gone comes back. A lost worker is replaced, and its batches go to whoever is free.
        worker = self._ray.remote(_Worker).options(max_restarts=0, **slot)
        self._start = partial(worker.remote, settings, torch.get_num_threads())
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
        self, work: Callable[..., Arrays], jobs: Mapping[int, tuple]
    ) -> Iterator[tuple[int, Arrays]]:
        """Number and result of every job, as they come; at most ``IN_FLIGHT`` at a worker.

        RuntimeError if no worker is up, or workers keep dying; else what ``work`` raised.
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
            result = None
            try:
                result = _result(self._ray, done[0])
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
            if result is not None and number is None:
                self._check_same(result[0])
                up.append(actor)
            # Whoever has room, since what a lost worker had may come back when the rest is idle.
            for n_there, actor in product(range(IN_FLIGHT), up):
                if waiting and sum(other is actor for other, _ in calls.values()) == n_there:
                    given = waiting.popleft()
                    calls[actor.run.remote(work, jobs[given])] = actor, given
            if result is not None and number is not None:
                yield number, result

    def _check_same(self, identity: Mapping[str, str]) -> None:
        for name, value in identity.items():
            if value != self.identity[name]:
                raise RuntimeError(
                    f"workers differ in {name} ({self.identity[name]} and {value}), on which "
                    "scores depend: use nodes of one kind"
                )


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
        where: dict[str, Any] = {"address": ray_address} if ray_address else {"address": "local"}
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
