"""A detector that is sent: ``DETECTOR=your_file.py pytest tests/study/test_your_detector.py``.

Without the variable it checks the template, and always that the check itself refuses what it must.
"""

import os
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from made_pretraining import made_scores
from notebook_files import ROOT
from tiny_models import saved, tiny_llama

from contamination.lab.tokenizer import train_tokenizer
from contamination.models.causal import load_causal_lm
from contamination.study import arms, pretraining, row_pools, yours
from contamination.study.interface import LOG_PROBABILITIES, Detector, Rows
from contamination.study.scores import arrange_scores

TEMPLATE = ROOT / "docs/detector_template.py"
SENT = Path(os.environ.get("DETECTOR") or TEMPLATE)


@pytest.fixture(scope="module")
def rows():
    return arms.deal("topics", seed=5, n_read=10).rows


@pytest.fixture(scope="module")
def lm(rows, tmp_path_factory):
    tokenizer = train_tokenizer((*rows.texts, rows.dataset), vocabulary=400, context=512)
    folder = tmp_path_factory.mktemp("model")
    lm = load_causal_lm(saved(folder, tiny_llama(tokenizer, context=512), tokenizer), device="cpu")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield lm
    torch.set_num_threads(before)


# What is sent


def test_the_detector_that_is_sent_keeps_to_the_rules(lm, rows):
    scores = yours.checked(yours.load(SENT), lm, rows)
    assert scores.shape == (len(rows),)


def test_nothing_tells_a_detector_which_rows_were_read():
    named = [field.name for field in fields(Rows)]
    assert sorted(named) == ["context", "dataset", "questions", "quizzes", "seed", "split", "texts"]


# What the check refuses


def add_to_a_weight(lm, rows):
    with torch.no_grad():
        next(lm.model.parameters()).add_(1e-3)
    return np.zeros(len(rows))


REFUSED = {
    "raises ZeroDivisionError: division by zero": lambda lm, rows: 1 / 0,
    r"one score for each of 20 rows, got an array of shape \(3,\)": lambda lm, rows: np.zeros(3),
    r"got an array of shape \(\)": lambda lm, rows: 0.5,
    "NaN or infinity for 1 rows": lambda lm, rows: [np.nan] + [0.0] * (len(rows) - 1),
    "raises ValueError: could not convert string": lambda lm, rows: ["high"] * len(rows),
    "other scores when it is called again": lambda lm, rows: np.random.random(len(rows)),  # noqa: NPY002
    "changes the model": add_to_a_weight,
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_broken_function_is_one_line(lm, rows, line):
    with pytest.raises(ValueError, match=line) as caught:
        yours.checked(Detector("my_detector", LOG_PROBABILITIES, REFUSED[line]), lm, rows)
    assert str(caught.value).startswith("my_detector ")
    assert "\n" not in str(caught.value)


def test_a_slow_function_is_refused(lm, rows, monkeypatch):
    detector = Detector("my_detector", LOG_PROBABILITIES, lambda lm, rows: np.zeros(len(rows)))
    assert yours.checked(detector, lm, rows).tolist() == [0.0] * len(rows)
    clock = iter([0.0, 11.0])
    monkeypatch.setattr(yours.time, "perf_counter", lambda: next(clock))
    with pytest.raises(ValueError, match="takes 11 s for 20 rows: at most 10 s"):
        yours.checked(detector, lm, rows)


FILES = {
    "cannot be imported: SyntaxError": "def score(",
    "defines no DETECTOR": "detector = 1",
    "defines no DETECTOR: start from": "DETECTOR = 'mine'",
    'another detector is called "Min-k% Prob"': (
        "name='least likely token'",
        "name='Min-k% Prob'",
    ),
    "access must be one of answers, log-probabilities, weights": (
        "=LOG_PROBABILITIES",
        "='all of it'",
    ),
}


@pytest.mark.parametrize("line", FILES)
def test_a_file_that_cannot_join_is_one_line(tmp_path, line):
    source = FILES[line]
    if isinstance(source, tuple):
        text = TEMPLATE.read_text().replace('"least likely token"', "'least likely token'")
        source = text.replace(*source)
        assert source != text
    path = tmp_path / "sent.py"
    path.write_text(source)
    with pytest.raises(ValueError, match=line) as caught:
        yours.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing.py", "notes.txt", "."])
def test_what_is_no_python_file_is_one_line(tmp_path, name):
    with pytest.raises(ValueError, match="is no Python file"):
        yours.load(tmp_path / name)


# Deals


def first(model, rows):
    return np.zeros(len(rows))


def test_deals_follow_from_the_function_alone():
    source = [yours.deal_seeds(first, 3) for _ in range(2)]
    assert source[0] == source[1] and len(set(source[0])) == 3
    assert yours.deal_seeds(first, 2) == source[0][:2]
    assert not set(source[0]) & set(yours.deal_seeds(add_to_a_weight, 3))
    assert not set(source[0]) & set(range(1_000))  # no base model's


@pytest.mark.parametrize("function", [len, partial(first)])
def test_a_function_without_source_is_one_line(function):
    with pytest.raises(ValueError, match="has no source: define it by def"):
        yours.deal_seeds(function, 3)


# Its place next to the others


def test_a_file_becomes_a_part_of_the_ledger(lm, rows, tmp_path, monkeypatch):
    pool = row_pools.Pool("topics", row_pools.ROWS, rows, "label")
    monkeypatch.setattr(row_pools, "pools", lambda: (pool,))
    monkeypatch.setattr(row_pools, "the_lab", lambda: None)
    monkeypatch.setattr(row_pools, "base_model", lambda lab, seed: f"model {seed}")
    monkeypatch.setattr(yours.spot_check, "world_of", lambda lab: {})
    monkeypatch.setattr(yours.world, "describe", lambda folder: {"recipe_hash": folder})
    monkeypatch.setattr(yours.pretraining, "load_causal_lm", lambda folder: lm)
    yours.write_part(tmp_path, f"{yours.NAME}_mine_300", {"protocol_sha256": "p"}, 300, TEMPLATE)
    scores, (about,) = pretraining.read_parts(yours.NAME, tmp_path)
    assert list(scores) == [*pretraining.COLUMNS, "base_seed"]
    expected = yours.load(TEMPLATE).score(lm, rows)
    np.testing.assert_allclose(scores["score"], expected, rtol=1e-6)
    assert about["models"] == {"pretrained": {"recipe_hash": "model 300"}}
    assert about["detector"]["name"] == "least likely token"


def test_a_detector_that_joins_stands_next_to_the_others():
    made = made_scores(("PPL", "noise"))
    mine = made[made["detector"].eq("PPL")].assign(detector="mine")
    both = pd.concat([made, mine], ignore_index=True)
    with pytest.raises(ValueError, match='no detector of the study is called "mine"'):
        arrange_scores(both)
    table = yours.aucs(arrange_scores(both, added=["mine"])).set_index("detector")
    assert table.index.unique().tolist() == ["PPL", "noise", "mine"]
    assert table.loc["mine"].to_numpy().tolist() == table.loc["PPL"].to_numpy().tolist()
    assert table.loc["mine", "copies"].tolist() == [1, 4, 16]
    assert table.loc["mine", "auc"].is_monotonic_increasing
