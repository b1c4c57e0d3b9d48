"""The study of inserted examples on a model of one's own: a random one reads a small corpus."""

import dataclasses
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from damage import flip, said_of
from hub_server import HubServer
from notebook_files import ROOT
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from contamination.cases import downstream, downstream_own, downstream_training
from contamination.cases.downstream_own import OwnStudy, own_study, plan_table
from contamination.cases.downstream_training import study_rows
from contamination.core import run, storage
from contamination.core.scores import MIN_K, NEIGHBOR
from contamination.lab.tokenizer import train_tokenizer
from contamination.models.local import load_causal_lm

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def texts(n, n_words, seed):
    rng = np.random.default_rng(seed)
    return [
        " ".join("".join(rng.choice(LETTERS, 4)) for _ in range(n_words)) + "." for _ in range(n)
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A random model of another architecture than the lab's, a corpus, and examples of two sets."""
    folder = tmp_path_factory.mktemp("own")
    corpus = texts(120, 20, 0)
    tokenizer = train_tokenizer(corpus, vocabulary=300, context=64)
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2}
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = GPTNeoXConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=1,
        max_position_embeddings=128,
        **shape,
        **special,
    )
    GPTNeoXForCausalLM(config).save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    for name, rows in (("corpus", corpus), ("a", texts(16, 8, 1)), ("b", texts(16, 8, 2))):
        pd.DataFrame({"text": rows}).to_json(folder / f"{name}.jsonl", orient="records", lines=True)
    return folder


def settings(files, **changed):
    values = {
        "model": {"names": [str(files / "base")]},
        "corpus": str(files / "corpus.jsonl"),
        "similar_corpus": str(files / "corpus.jsonl"),
        "insert": [str(files / f"{name}.jsonl") for name in "ab"],
        "n_inserted": 8,
        "share_pct": 40.0,
        "corpus_sizes": [1200, 2000],
        "similar_sizes": [1500, 3000],
        "n_similar": 8,
        "own_occurrence": 20.0,
        "own_learning_rate": 1.0e-2,
        "own_lower_rate": 1.0e-4,
        "block_tokens": 128,
        "own_batch_size": 1,
    }
    for name in ("dtype", "device_map"):
        if name in changed:
            values["model"][name] = changed.pop(name)
    return OwnStudy.read(values | changed)


def test_the_plan_says_what_would_be_read(files):
    study = own_study(settings(files))
    table = plan_table(study).set_index("setting")
    assert list(table.index) == [
        "inserted once",
        "learning rate",
        "Poisson occurrence",
        *["outliers"] * 2,
        *["like the corpus"] * 2,
        "all",
    ]
    once = table.loc["inserted once"]
    assert once["share_pct"] == pytest.approx(40, abs=2)
    assert table.loc["outliers", "n_tokens"].tolist() == pytest.approx([1200, 2000], abs=120)
    assert table.loc["like the corpus", "n_tokens"].tolist() == pytest.approx([1500, 3000], abs=120)
    parts = table.drop("all")
    for name in ("n_tokens", "n_steps", "hours"):
        assert table.loc["all", name] == pytest.approx(parts[name].sum())
    n_parameters = load_causal_lm(files / "base").n_parameters
    logits = 12 * 128 * load_causal_lm(files / "base").model.config.vocab_size
    assert once["memory_gib"] * 2**30 == pytest.approx(16 * n_parameters + logits)
    hours = 6 * n_parameters * 128 * once["n_steps"] / 150e12 / 3600
    assert once["hours"] == pytest.approx(hours)


def test_each_example_is_read_as_often_as_the_plan_says(files):
    """The inserted ones once each, the held-out ones never, and one epoch of the corpus."""
    study = own_study(settings(files))
    tokenizer = study.runs[0].texts.tokenizer
    read = {}
    for one in study.runs:
        stream = downstream_training.training_stream(one.recipe, one.texts)
        flat = np.concatenate([batch.input_ids.ravel() for batch in stream.batches])
        read[one.setting, one.n_tokens] = tokenizer.decode(flat)
    once = next(text for (name, _), text in read.items() if name == "inserted once")
    poisson = next(text for (name, _), text in read.items() if name == "Poisson occurrence")
    for row, times in zip(study.examples.itertuples(), study.occurrence, strict=True):
        assert once.count(row.text) == int(row.is_member)
        assert poisson.count(row.text) == times
    for (name, _), text in read.items():
        if name == "like the corpus":
            found = [text.count(each) for each in study.similar["text"]]
            assert found == study.similar["is_member"].astype(int).tolist()


def test_nothing_is_trained_on_a_dry_run(files, monkeypatch):
    monkeypatch.setattr(downstream_training, "fit", lambda *_: pytest.fail("trained"))
    monkeypatch.setattr(downstream_training, "load_causal_lm", lambda *_, **__: pytest.fail("read"))
    assert OwnStudy().dry_run
    assert study_rows(own_study(settings(files)), 20.0, 1, 5) is None


def test_the_study_trains_and_makes_the_tables(files, monkeypatch):
    weights = []
    fit = downstream_training.fit
    monkeypatch.setattr(
        downstream_training,
        "fit",
        lambda model, batches, recipe: (
            weights.append((model.dtype, len(batches), recipe.schedule))
            or fit(model, batches, recipe)
        ),
    )
    study = own_study(settings(files, dry_run=False))
    rows = study_rows(study, 20.0, 2, 20)
    assert list(rows.columns) == [*downstream.COLUMNS, "p_adjusted"]
    assert weights == [(torch.float32, one.n_steps, "constant") for one in study.runs]
    average = rows[(rows["method"] == MIN_K) & rows["dataset"].isin([downstream.AVERAGE])]
    auc = average.groupby("setting")["auc"].max()
    assert auc["before insertion"] < 0.75 < auc["Poisson occurrence"]
    by_size = rows[(rows["setting"] == "like the corpus") & (rows["method"] == MIN_K)]
    assert by_size["difference"].notna().tolist() == [True, True]
    rates = average[average["setting"] == "learning rate"].set_index("learning_rate")
    assert rates["difference"].notna().tolist() == [False, True]
    assert rates.loc[1e-2, "auc"] == auc["inserted once"]
    assert set(rows["setting"]) >= {"no model", "Poisson occurrence", "outliers"}
    # A second run trains nothing, and one with another rate that alone.
    again = study_rows(study, 20.0, 2, 20)
    pd.testing.assert_frame_equal(again, rows)
    assert len(weights) == len(study.runs)
    changed = dataclasses.replace(study.settings, own_lower_rate=2.0e-4)
    study_rows(own_study(changed), 20.0, 2, 5)
    assert len(weights) == len(study.runs) + 1
    # Damaged scores are named, and what they are of is trained again.
    path = next(storage.cache_folder("downstream", "scores").glob("*.json"))
    flip(path)
    with pytest.warns(UserWarning, match=said_of(path)):
        again = study_rows(study, 20.0, 2, 20)
    pd.testing.assert_frame_equal(again, rows)


def test_neighbor_is_scored_before_and_after_each_training(files, monkeypatch):
    def last_word_replaced(passages, masked, n_neighbors, n_words):
        assert masked == str(files / "base") and n_words == 2 * n_neighbors == 4
        return [[f"{text.rpartition(' ')[0]} {word}." for word in "ab"] for text in passages]

    monkeypatch.setattr(downstream_training, "load_masked_lm", str)
    monkeypatch.setattr(downstream_training, "neighbors", last_word_replaced)
    few = {"corpus_sizes": [1200], "similar_sizes": [1500], "dry_run": False}
    mine = settings(files, neighbor_model=str(files / "base"), **few)
    rows = study_rows(own_study(mine), 20.0, 2, 5)
    n_rows = rows.groupby(["method", "setting"]).size()
    assert n_rows[NEIGHBOR].equals(n_rows[MIN_K]) and len(n_rows[NEIGHBOR]) == 6
    with pytest.raises(FileNotFoundError, match="no such model"):
        own_study(settings(files, neighbor_model=str(files / "no such model")))


def test_answers_are_those_of_the_trained_model(files, monkeypatch):
    """Not of the base, which has the same tokenizer and was asked before."""
    examples = pd.DataFrame({"text": texts(60, 8, 5)}).assign(dataset="d")
    examples["prompt"] = [text[:-5] for text in examples["text"]]
    examples["options"] = [[text[-5:], " zzzz."] for text in examples["text"]]
    examples["answer"] = 0
    monkeypatch.setattr(downstream_own, "released_examples", lambda: examples)
    asked = []
    answers_right = downstream.answers_right
    monkeypatch.setattr(
        downstream,
        "answers_right",
        lambda lm, some: asked.append(lm.identity["revision"]) or answers_right(lm, some),
    )
    mine = settings(files, insert=[], n_inserted=30, similar_corpus="", dry_run=False)
    rows = study_rows(own_study(mine), 20.0, 2, 20)
    rates = rows[rows["setting"] == "learning rate"]
    assert rates["accuracy_contaminants"].between(0, 1).all()
    assert (rates["chance_accuracy"] == 0.5).all()
    assert len(set(asked)) == len(asked) == 1 + 5


def asked_file(path, seed, columns=("prompt", "options", "answer"), **changed):
    """Examples of one's own: a text, and two options of which the first or second ends it."""
    ends = [text[-5:] for text in texts(16, 8, seed)]
    rows = pd.DataFrame({"prompt": [text[:-5] for text in texts(16, 8, seed)]})
    rows["answer"] = [n % 2 for n in range(16)]
    pairs = zip(ends, rows["answer"], strict=True)
    rows["options"] = [[end, " zzzz."][:: 1 - 2 * place] for end, place in pairs]
    rows = rows.assign(**changed)[list(columns)]
    if path.suffix == ".csv":
        rows["options"] = rows["options"].map(json.dumps)
        rows.to_csv(path, index=False)
    else:
        rows.to_json(path, orient="records", lines=True)
    return str(path)


def test_accuracies_of_own_files_that_have_answers(files, tmp_path):
    """One file as JSON lines, one as CSV; the inserted text ends with the right option."""
    insert = [asked_file(tmp_path / name, seed) for seed, name in ((1, "a.jsonl"), (2, "b.csv"))]
    mine = settings(files, insert=insert, similar_corpus="", dry_run=False)
    study = own_study(mine)
    assert set(study.examples["text"]) == {*texts(16, 8, 1), *texts(16, 8, 2)}
    rows = study_rows(study, 20.0, 2, 20)
    rates = rows[rows["setting"] == "learning rate"]
    assert set(rates["dataset"]) == {"a.jsonl", "b.csv", downstream.AVERAGE}
    assert rates[["accuracy_contaminants", "accuracy_others"]].notna().all(axis=None)
    # A model that has learned the inserted texts by heart answers these, and only these.
    learned = dataclasses.replace(mine, own_learning_rate=3.0e-2, share_pct=99.0)
    rows = study_rows(own_study(learned), 20.0, 2, 20)
    (average,) = rows[
        (rows["learning_rate"] == 3.0e-2)
        & (rows["setting"] == "learning rate")
        & (rows["dataset"] == downstream.AVERAGE)
        & (rows["method"] == MIN_K)
    ].to_dict("records")
    assert average["chance_accuracy"] == 0.5
    assert average["accuracy_contaminants"] > average["accuracy_others"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": 2}, "a.jsonl, row 0: want a prompt, a list of two options or more"),
        ({"answer": "b"}, "0 to 1; got 'b'"),
        ({"prompt": None}, "row 0: want a prompt"),
        ({"columns": ["prompt", "answer"]}, 'no column "text"'),
    ],
)
def test_answers_that_do_not_fit_are_one_line(files, tmp_path, change, message):
    file = asked_file(tmp_path / "a.jsonl", 1, **change)
    with pytest.raises(ValueError, match=message) as error:
        own_study(settings(files, insert=[file]))
    assert "\n" not in str(error.value)


def test_some_files_with_answers_are_refused(files, tmp_path):
    insert = [asked_file(tmp_path / "a.jsonl", 1), str(files / "b.jsonl")]
    with pytest.raises(ValueError, match="in every file of insert, or in none"):
        own_study(settings(files, insert=insert))


def test_the_papers_corpora_are_taken_from_the_hub(files, tmp_path):
    """One file of a dataset, and a dataset whose texts have a name of their own."""
    told = downstream_parameters()
    owner, name, file = told["corpus"].split("/")
    column = told["similar_column"]
    news = [{column: text, "date_publish": "2023-08-01"} for text in texts(120, 20, 7)]
    datasets = {
        f"{owner}/{name}": {file: (files / "corpus.jsonl").read_bytes()},
        told["similar_corpus"]: {"train.jsonl": "\n".join(map(json.dumps, news)).encode()},
    }
    values = {name: told[name] for name in ("corpus", "similar_corpus", "similar_column")}
    small = dataclasses.asdict(settings(files)) | values
    del small["model"]
    code = f"""
import json
from contamination.cases.downstream_own import OwnStudy, own_study, plan_table
told = json.loads({json.dumps(json.dumps(small))!s})
study = own_study(OwnStudy.read(told | {{"model": {{"names": [{str(files / "base")!r}]}}}}))
print(plan_table(study)["setting"].tolist(), list(study.similar["text"])[:1])
"""
    with HubServer(datasets, {}) as server:
        environment = os.environ | {"HF_ENDPOINT": server.endpoint, "HF_HUB_OFFLINE": "0"}
        environment |= {"HF_HOME": str(tmp_path / "hub"), "HF_DATASETS_OFFLINE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("like the corpus") == 2
    assert any(row[column] in done.stdout for row in news)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"datasets": ["m"]}, "not both"),
        ({"model": {}}, "corpus needs model, names"),
        ({"corpus_sizes": []}, "want 1 to 1000 values"),
        ({"corpus_sizes": [10**6]}, "1000000 are needed"),
        ({"share_pct": 0.0}, "want above 0 to 99"),
        ({"own_learning_rate": -1.0}, "want above 0 to 1"),
        ({"block_tokens": 4096}, "but the model reads 128"),
        ({"dtype": "float16"}, "dtype must be one of"),
        ({"device_map": "auto"}, "on one device"),
        ({"corpus_column": "body"}, 'no column "body"'),
        ({"text_column": "body"}, 'no column "body"'),
        ({"n_inserted": 0}, "want 1 or more"),
    ],
)
def test_what_does_not_serve_is_one_line(files, changed, message):
    with pytest.raises(ValueError, match=message) as error:
        own_study(settings(files, **changed))
    assert "\n" not in str(error.value)


def test_no_base_no_study():
    assert own_study(OwnStudy()) is None


def downstream_parameters():
    path = ROOT / "params/full/downstream_study.yaml"
    return run.check(ROOT / "notebooks/07_case_downstream.ipynb", path)["own_settings"]
