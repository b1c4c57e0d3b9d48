"""The engine without a cluster: what is refused, and how lost workers are replaced.

``StubRay`` stands for Ray: its calls end, fail or never end as a test says.
What Ray itself does is tested in tests/servers/test_ray.py.
"""

import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from contamination.lab.recipes import TrainingTexts, recipe_for
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import build_model
from contamination.min_k import detect
from contamination.models import ray_cluster
from contamination.models.batch_cache import BatchCache, Job, run_batches
from contamination.models.causal import CausalLM
from contamination.models.engine import load, sweep
from contamination.models.ray_cluster import Workers

TEXTS = ("the old river ran past a house", "nobody lived there", "a small stone by the river")


@pytest.fixture(scope="module")
def lm():
    texts = TrainingTexts(TEXTS, (), train_tokenizer(TEXTS, vocabulary=280))
    recipe = recipe_for(texts, n_background_tokens=1, n_layers=1, width=16, n_heads=2)
    model = build_model(recipe, texts.tokenizer).eval()
    return CausalLM(model, texts.tokenizer, {"model": "random", "bos": "first"})


def double(lm, value):
    return {"twice": np.array([2 * value])}


def test_local_batches_come_in_order_and_from_the_disk_the_second_time(lm):
    jobs = [Job([number], (number,)) for number in range(3)]
    asked = []

    def work(lm, value):
        asked.append(value)
        return double(lm, value)

    for _ in range(2):
        store = BatchCache("test", {"model": "none"}, {})
        found = [
            (number, arrays["twice"].tolist())
            for number, arrays in run_batches(lm, work, jobs, ["twice"], store)
        ]
        assert found == [(0, [0]), (1, [2]), (2, [4])]
    assert asked == [0, 1, 2]


def test_a_local_score_imports_neither_ray_nor_its_executor():
    code = "import sys; from contamination.models import causal, engine, loading; "
    code += "engine.sweep(pow, [(2, 3)]); "
    code += "print([n for n in sys.modules if n.split('.')[-1].startswith('ray')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_local_sweep_gives_results_in_order():
    assert sweep(pow, [(2, 3), (3, 2)]) == [8, 9]


@pytest.mark.parametrize("call", [load, lambda engine: sweep(pow, [], engine=engine)])
def test_an_unknown_engine_is_refused(call):
    arguments = ("model",) if call is load else ()
    with pytest.raises(ValueError, match=r'^engine must be "local" or "ray", got "dask"$'):
        call(*arguments, engine="dask")


def test_a_missing_ray_is_one_line_with_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"requirements-extra\.txt") as caught:
        sweep(pow, [(2, 3)], engine="ray")
    assert "\n" not in str(caught.value)


def test_passages_detected_in_parts_keep_their_numbers_and_neighbours(lm, monkeypatch):
    around = [[f"{text} {number}"] for number, text in enumerate(TEXTS)]
    whole = detect.detect(TEXTS, lm, neighbors=around)
    monkeypatch.setattr(detect, "STREAM_TEXTS", 2)
    parts = detect.detect(TEXTS, lm, neighbors=around)
    pd.testing.assert_frame_equal(parts, whole, rtol=1e-4)
    assert parts["passage"].unique().tolist() == [0, 1, 2]


# A Ray of our own


class ActorLost(Exception):
    actor_init_failed = False


class TaskFailed(Exception):
    def __init__(self, cause):
        self.cause = cause


class Method:
    def __init__(self, actor, name):
        self.actor, self.name = actor, name

    def remote(self, *arguments):
        return self.actor.ray.call(self.actor, self.name, arguments)


class Actor:
    def __init__(self, ray, number):
        self.ray, self.number, self.is_dead = ray, number, False
        self.ready, self.run = Method(self, "ready"), Method(self, "run")


class StubRay:
    """Calls end in the order in which they were made; ``dies_at`` kills the worker of a batch."""

    class exceptions:
        RayActorError, RayTaskError = ActorLost, TaskFailed

    def __init__(self, dies_at=None, identities=None):
        self.dies_at, self.identities = dies_at or Counter(), identities or {}
        self.calls, self.most_at_a_worker, self.started = {}, Counter(), 0
        self.computed = Counter()

    def start(self):
        self.started += 1
        return Actor(self, self.started)

    def call(self, actor, name, arguments):
        reference = object()
        self.calls[reference] = actor, name, arguments
        at_it = sum(a is actor and n == "run" for a, n, _ in self.calls.values())
        self.most_at_a_worker[actor.number] = max(self.most_at_a_worker[actor.number], at_it)
        return reference

    def wait(self, references, num_returns=1, timeout=None):
        return references[:1], references[1:]

    def get(self, reference):
        actor, name, arguments = self.calls.pop(reference)
        if actor.is_dead:
            raise ActorLost
        if name == "ready":
            return self.identities.get(actor.number, {"device": "cpu"}), "cpu"
        work, (value,) = arguments
        if self.dies_at[value]:
            self.dies_at[value] -= 1
            actor.is_dead = True
            raise ActorLost
        self.computed[value] += 1
        try:
            return work(None, value)
        except ValueError as error:
            raise TaskFailed(error) from None


def workers_of(ray, n_workers=2):
    workers = object.__new__(Workers)
    workers._ray, workers._start = ray, ray.start
    workers._actors = [ray.start() for _ in range(n_workers)]
    workers.identity = {"device": "cpu"}
    return workers


def results(workers, work=double, n=10):
    return {
        number: int(found["twice"][0])
        for number, found in workers.run(work, {number: (number,) for number in range(n)})
    }


def test_every_batch_comes_once_and_no_worker_has_more_than_two():
    ray = StubRay()
    assert results(workers_of(ray)) == {number: 2 * number for number in range(10)}
    assert set(ray.computed.values()) == {1}
    assert max(ray.most_at_a_worker.values()) == ray_cluster.IN_FLIGHT


def test_batches_of_a_lost_worker_go_to_others_and_it_is_replaced():
    ray = StubRay(dies_at=Counter({4: 1}))
    found = list(workers_of(ray).run(double, {number: (number,) for number in range(10)}))
    assert sorted(number for number, _ in found) == list(range(10))
    assert set(ray.computed.values()) == {1}
    assert ray.started == 3


def test_a_batch_that_kills_every_worker_ends_the_run():
    ray = StubRay(dies_at=Counter({4: 99}))
    with pytest.raises(RuntimeError, match="workers are lost one after the other"):
        results(workers_of(ray))
    assert ray.dies_at[4] == 99 - ray_cluster.LOSSES


def test_what_the_work_raises_is_raised_here():
    def refuses(lm, value):
        raise ValueError("undefined values")

    with pytest.raises(ValueError, match=r"^undefined values$"):
        results(workers_of(StubRay()), refuses)


def test_a_worker_of_another_kind_stops_the_run():
    ray = StubRay(identities={2: {"device": "another GPU"}})
    with pytest.raises(RuntimeError, match=r"differ in device \(cpu and another GPU\)"):
        results(workers_of(ray))


def test_a_cluster_without_a_worker_is_said(monkeypatch):
    ray = StubRay()
    monkeypatch.setattr(ray, "wait", lambda calls, **how: ([], calls))
    with pytest.raises(RuntimeError, match='see "ray status"'):
        results(workers_of(ray))
