"""The ledger's jobs on a Ray cluster of two nodes on this machine, one of which dies half-way."""

import os
import threading
import time

import pytest

from contamination.core import storage
from contamination.core.parallel import in_processes
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import Dose, TrainingTexts, recipe_for, train
from contamination.models.ray_cluster import sweep

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("one_thread")]

TEXTS = ["the old river ran past a stone house", "nobody lived there for many years"]
N_JOBS = 4


@pytest.fixture(scope="module")
def cluster():
    """A cluster of one node with one core, which this process has joined."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_raylet_start_wait_time_s"] = "180"  # noqa: SIM112 (busy machine)
    with pytest.MonkeyPatch.context() as patch:
        # Its dashboard asks which cloud it is on: refused like all else, and not held against us.
        patch.delenv("TESTS_OFFLINE_LOG")
        started = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", started.address)
        yield started
    ray.shutdown()
    started.shutdown()


@pytest.fixture
def jobs():
    texts = TrainingTexts((), (Dose(tuple(TEXTS)),), train_tokenizer(TEXTS, vocabulary=280))
    recipes = [recipe_for(texts, n_background_tokens=0, seed=n, width=32) for n in range(N_JOBS)]
    return [(recipe, texts) for recipe in recipes]


def weights(cache):
    return {path.parent.name: path.read_bytes() for path in cache.rglob("model.safetensors")}


def test_models_of_a_cluster_that_loses_a_node_are_those_of_one_process(
    cluster, jobs, tmp_path, monkeypatch
):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "process"))
    in_processes(train, jobs, 1)
    there = tmp_path / "cluster"
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(there))
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()

    def kill_half_way():
        deadline = time.monotonic() + 120
        while not weights(there) and time.monotonic() < deadline:
            time.sleep(0.05)
        cluster.remove_node(second, allow_graceful=False)

    killer = threading.Thread(target=kill_half_way)
    killer.start()
    sweep(train, jobs)
    killer.join()
    assert len(weights(there)) == N_JOBS
    assert weights(there) == weights(tmp_path / "process")


def test_what_a_job_raises_is_raised_here(cluster):
    with pytest.raises(FileNotFoundError, match="no such recipe"):
        sweep(os.stat, [("no such recipe",)])
