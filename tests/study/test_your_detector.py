"""A detector that is sent: ``DETECTOR=your_file.py pytest tests/study/test_your_detector.py``.

Without the variable it checks the template, and always that the check itself refuses what it must.
"""

import json
import os
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from detector_frames import dealt
from made_pretraining import made_scores
from notebook_files import ROOT
from tiny_models import saved, tiny_llama

from contamination.lab.tokenizer import train_tokenizer
from contamination.models.local import load_causal_lm
from contamination.study import pretraining, row_pools, store, tokens, yours
from contamination.study.interface import LOG_PROBABILITIES, WEIGHTS, Detector, Rows

TEMPLATE = ROOT / "docs/detector_template.py"
SENT = Path(os.environ.get("DETECTOR") or TEMPLATE)


@pytest.fixture(scope="module")
def rows():
    return dealt("topics", seed=5, n_read=10).rows


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


# Its place next to the others


def test_a_file_becomes_a_part_of_the_ledger(lm, rows, tmp_path, monkeypatch):
    pool = row_pools.Pool("topics", row_pools.ROWS, rows, "label")
    monkeypatch.setattr(row_pools, "pools", lambda: (pool,))
    monkeypatch.setattr(row_pools, "the_lab", lambda: None)
    monkeypatch.setattr(row_pools, "base_model", lambda lab, seed: f"model {seed}")
    monkeypatch.setattr(yours.store, "world_of", lambda lab: {})
    monkeypatch.setattr(yours.world, "describe", lambda folder: {"recipe_hash": folder})
    monkeypatch.setattr(yours.pretraining, "load_causal_lm", lambda folder: lm)
    yours.write_part(tmp_path, f"{yours.NAME}_mine_300", {"protocol_sha256": "p"}, 300, TEMPLATE)
    scores, (about,) = pretraining.read_parts(yours.NAME, tmp_path)
    assert list(scores) == [*pretraining.COLUMNS, "base_seed"]
    expected = yours.load(TEMPLATE).score(lm, rows)
    np.testing.assert_allclose(scores["score"], expected, rtol=1e-6)
    assert about["models"] == {"pretrained": {"recipe_hash": "model 300"}}
    assert about["detector"]["name"] == "least likely token"


def stored_models(lm, pool, seeds):
    """What the ledger would hold of a model's tokens, without rounding."""
    tokens_of = tokens.row_tokens(lm, pool.rows)
    columns = [*tokens.STEPS]
    values = [
        (one.log_probs, one.vocabulary_mean, one.vocabulary_std, one.lowercase_log_probs)
        for one in tokens_of
    ]
    table = pd.DataFrame(values, columns=columns)
    return [tokens.StoredModel(seed, {pool.benchmark: table}) for seed in seeds]


def test_the_template_scores_stored_tokens_as_it_scores_the_model(lm, rows, monkeypatch):
    pool = row_pools.Pool("topics", row_pools.ROWS, rows, "label")
    monkeypatch.setattr(row_pools, "pools", lambda: (pool,))
    monkeypatch.setattr(tokens, "_ids_of", lambda texts: [[0]] * len(texts))
    models = stored_models(lm, pool, (300, 301))
    detector = yours.load(TEMPLATE)
    found = yours.score_stored([detector], models)
    assert list(found) == [*pretraining.COLUMNS, "base_seed"] and len(found) == 2 * len(rows)
    np.testing.assert_allclose(found["score"].iloc[: len(rows)], detector.score(lm, rows))
    needs_weights = Detector("x", WEIGHTS, lambda model, rows: model.model.forward(rows))
    with pytest.raises(ValueError, match="it needs the models themselves, not their tokens"):
        yours.score_stored([needs_weights], models)
    other = replace(rows, texts=rows.texts[::-1])
    with pytest.raises(ValueError, match="holds no tokens of these rows"):
        tokens.row_tokens(models[0], other)


def test_a_stored_part_gives_min_k_of_the_ledger():
    """Recomputed by numpy from the whole numbers of a part, within what rounding leaves."""
    for path in sorted(store.FOLDER.glob(f"{tokens.NAME}_*.json"))[:2]:
        about = json.loads(path.read_text())
        assert about["min_k_off_by"] < 1e-5 and about["min_k_off_by_rounded"] < 1 / 128
        table = pd.read_parquet(path.with_name(f"{path.stem}_tokens.parquet"))
        scores = pd.read_parquet(store.FOLDER / f"pretraining_{about['base_seed']}_scores.parquet")
        key = scores["detector"].eq("Min-k% Prob") & scores["model"].eq("pretrained")
        known = scores[key & scores["pool"].eq("rows")].set_index(["benchmark", "row"])["score"]
        for line in table.iloc[::97].itertuples():
            steps = np.sort(line.log_prob)[: int(0.2 * len(line.log_prob))]
            expected = known[line.benchmark, line.row]
            assert steps.mean() / 64 == pytest.approx(expected, abs=1 / 128)


def test_a_detector_that_joins_stands_next_to_the_others(monkeypatch):
    made = made_scores(("PPL", "noise", "length"))
    monkeypatch.setattr(pretraining, "read_parts", lambda *name: (made, []))
    mine = made[made["detector"].eq("PPL") & made["model"].eq("pretrained")]
    frame = yours.next_to_others(mine[mine["pool"].eq("rows")].assign(detector="mine"))
    table = yours.compare(frame, ["mine", "PPL", "noise", "length"]).set_index("detector")
    same = table.drop(columns=["alarms", "alarms_maximum"])  # other re-deals
    assert same.loc["mine"].tolist() == same.loc["PPL"].tolist()
    assert table.loc["mine", ["auc_1", "auc_4", "auc_16"]].is_monotonic_increasing
    assert table.loc["length", "alarms_maximum"] == 1 and table.loc["noise", "alarms"] < 0.2
