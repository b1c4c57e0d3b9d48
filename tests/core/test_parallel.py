"""Computations in several processes: the same results in the same order, whatever their number."""

import os

import pytest
import torch

from contamination.core import parallel
from contamination.core.parallel import in_processes
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import TrainingTexts, recipe_for, train

TEXTS = ("the old river ran past a house", "nobody lived there", "a small stone by the river")


def where(number):
    return number, os.getpid()


def trained(recipe, texts):
    folder = train(recipe, texts)
    weights = (folder / "model.safetensors").read_bytes()
    return folder, weights, os.getpid(), torch.get_num_threads()


def test_one_process_is_this_one():
    assert [process for _, process in in_processes(where, [(1,), (2,)], 1)] == 2 * [os.getpid()]
    assert in_processes(where, [], 4) == []


def test_what_a_call_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        in_processes(divmod, [(1, 1), (1, 0)], 2)


def test_models_have_the_same_bytes_from_one_process_and_from_two_of_one_thread(
    tmp_path, monkeypatch
):
    texts = TrainingTexts(TEXTS, (), train_tokenizer(TEXTS, vocabulary=280))
    shape = {"n_layers": 1, "width": 16, "n_heads": 2}
    recipes = [
        recipe_for(texts, n_background_tokens=300, seed=seed, order_seed=seed, **shape)
        for seed in (0, 1)
    ]
    weights = {}
    for n in (1, 2):
        monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / str(n)))
        jobs = [(recipe, texts) for recipe in recipes]
        folders, weights[n], processes, threads = zip(*in_processes(trained, jobs, n), strict=True)
        assert all(folder.is_relative_to(tmp_path / str(n)) for folder in folders)
        assert (os.getpid() in processes) == (n == 1)
        assert n == 1 or set(threads) == {1}
    assert weights[1] == weights[2]  # in the order of the jobs, too
    assert weights[1][0] != weights[1][1]


def test_the_number_of_processes_is_stated_or_that_of_the_cores(monkeypatch):
    monkeypatch.setenv(parallel.PROCESSES_VARIABLE, "3")
    assert parallel.n_processes() == 3
    monkeypatch.delenv(parallel.PROCESSES_VARIABLE)
    assert parallel.n_processes() == parallel.n_cores() >= 1
