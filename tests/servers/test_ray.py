"""Scoring on a Ray cluster of two nodes on this machine, one of which dies half-way."""

import json
import os
import random

import numpy as np
import pytest
import torch

from contamination.core import storage
from contamination.lab.recipes import Dose, TrainingTexts, recipe_for
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import build_model, train
from contamination.models import ray_cluster
from contamination.models.causal import (
    complete,
    hidden_states,
    layer_batches,
    load_causal_lm,
    token_log_probs,
)
from contamination.models.engine import load, sweep

# One thread, as a worker on a node of one core computes.
pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("one_thread")]

N_TEXTS = 2000
SMALL_BATCHES = {"max_batch_tokens": 256}  # so that there are many to lose
WORDS = ["the", "old", "river", "ran", "past", "a", "stone", "house", "for", "many", "years"]


@pytest.fixture(scope="module")
def texts():
    draw = random.Random(0)
    made = [" ".join(draw.choices(WORDS, k=draw.randint(4, 20))) for _ in range(N_TEXTS - 1)]
    return [*made, made[0]]  # one of them twice


@pytest.fixture(scope="module")
def folder(texts, tmp_path_factory):
    """The lab's architecture with random weights."""
    lab_texts = TrainingTexts(tuple(texts[:50]), (), train_tokenizer(texts, vocabulary=300))
    recipe = recipe_for(lab_texts, n_background_tokens=1)
    path = tmp_path_factory.mktemp("model") / "random"
    build_model(recipe, lab_texts.tokenizer).save_pretrained(path)
    lab_texts.tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def cluster():
    """A cluster of one node with one core, to which a test may add another."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_raylet_start_wait_time_s"] = "180"  # noqa: SIM112 (busy machine)
    import ray
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        # Its dashboard asks which cloud it is on: refused like all else, and not held against us.
        patch.delenv("TESTS_OFFLINE_LOG")
        started = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
    yield started
    ray.shutdown()
    started.shutdown()


@pytest.fixture
def committed(tmp_path, monkeypatch):
    """How often a batch was computed and kept, and how often it lay on the disk."""
    staging = tmp_path / "staging"
    staging.mkdir()
    monkeypatch.setenv(storage.STAGING_VARIABLE, str(staging))

    def count():
        path = staging / storage.RECORD_NAME
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.unlink()
        caches = [line for line in lines if line["kind"] == "cache"]
        return sum(c["misses"] for c in caches), sum(c["hits"] for c in caches)

    return count


def own_cache(monkeypatch, path):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(path))


def files_of(cache):
    return {path.name: path.read_bytes() for path in cache.rglob("*.safetensors")}


def score(lm, texts):
    return [scored.token_log_probs for scored in token_log_probs(lm, texts, **SMALL_BATCHES)]


def assert_same(found, expected):
    assert len(found) == len(expected) == N_TEXTS
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_one_process_one_node_two_nodes_and_a_node_that_dies_give_the_same_scores(
    folder, texts, cluster, committed, tmp_path, monkeypatch
):
    own_cache(monkeypatch, tmp_path / "process")
    expected = score(load_causal_lm(folder), texts)
    n_batches = committed()[0]
    assert n_batches == len(files_of(tmp_path / "process")) > 60

    on_cluster = {"engine": "ray", "ray_address": cluster.address}
    own_cache(monkeypatch, tmp_path / "one")
    lm = load(folder, **on_cluster)
    assert len(lm.workers) == 1
    assert_same(score(lm, texts), expected)
    assert committed() == (n_batches, 0)
    del lm

    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    own_cache(monkeypatch, tmp_path / "two")
    lm = load(folder, **on_cluster)
    assert len(lm.workers) == 2
    assert_same(score(lm, texts), expected)
    assert committed() == (n_batches, 0)

    own_cache(monkeypatch, tmp_path / "killed")
    put = storage.write_safetensors
    written = []

    def write_and_kill_half_way(path, *arrays, **how):
        written.append(path.name)
        if len(written) == n_batches // 2:
            cluster.remove_node(second, allow_graceful=False)
        return put(path, *arrays, **how)

    monkeypatch.setattr(storage, "write_safetensors", write_and_kill_half_way)
    assert_same(score(lm, texts), expected)
    assert committed() == (n_batches, 0)
    assert len(written) == len(set(written)) == n_batches
    for name in ("one", "two", "killed"):
        assert files_of(tmp_path / name) == files_of(tmp_path / "process")

    # What is kept needs no worker: a second run computes nothing.
    assert_same(score(lm, texts), expected)
    assert committed() == (0, n_batches)


def test_states_completions_sweeps_and_what_goes_wrong(
    folder, texts, cluster, tmp_path, monkeypatch
):
    own_cache(monkeypatch, tmp_path / "process")
    local, prompts = load_causal_lm(folder), texts[:40]
    expected = hidden_states(local, prompts, [0, 2, -1]), complete(local, prompts, 5)
    lab_texts = TrainingTexts((), (Dose(tuple(prompts)),), train_tokenizer(texts, vocabulary=300))
    jobs = [
        (recipe_for(lab_texts, n_background_tokens=0, seed=seed, width=32), lab_texts)
        for seed in range(3)
    ]
    models = [path.name for path in sweep(train, jobs)]

    own_cache(monkeypatch, tmp_path / "cluster")
    on_cluster = {"engine": "ray", "ray_address": cluster.address}
    lm = load(folder, **on_cluster)
    assert lm.identity == local.identity
    assert lm.n_parameters == local.n_parameters
    np.testing.assert_allclose(hidden_states(lm, prompts, [0, 2, -1]), expected[0], atol=1e-6)
    assert complete(lm, prompts, 5) == expected[1]
    with pytest.raises(ValueError, match='load it with "local"'):
        next(layer_batches(lm, prompts))

    # The model holds the only core.
    monkeypatch.setattr(ray_cluster, "ROOM_SECONDS", 0)
    with pytest.raises(RuntimeError, match="no room on the cluster") as caught:
        sweep(train, jobs, **on_cluster)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    own_cache(monkeypatch, tmp_path / "cluster")
    del lm
    found = sweep(train, jobs, **on_cluster)
    assert [path.name for path in found] == models
    for name in models:
        there, here = (
            tmp_path / place / "lab" / "models" / name / "model.safetensors"
            for place in ("cluster", "process")
        )
        assert there.read_bytes() == here.read_bytes()
    with pytest.raises(FileNotFoundError, match="no such recipe"):
        sweep(os.stat, [("no such recipe",)], **on_cluster)

    torch.set_num_threads(2)
    with pytest.raises(RuntimeError, match="no node of the cluster has 2 cores"):
        load(folder, **on_cluster)
    torch.set_num_threads(1)
