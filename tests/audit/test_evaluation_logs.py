"""Logs of lm-evaluation-harness and Inspect as a dataset: what is read, and what is refused."""

import gzip
import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_logs import (
    ASKED,
    DATE,
    harness_log,
    harness_sample,
    inspect_log,
    inspect_sample,
)

from contamination.audit import logs, rows
from contamination.audit.logs import HARNESS, INSPECT, as_score
from contamination.audit.settings import Data


@pytest.mark.parametrize("write", [harness_log, inspect_log])
def test_a_log_is_known_by_its_contents_and_read_as_rows_with_its_score(tmp_path, write):
    source = write(tmp_path)
    log = logs.read_log(source)
    assert log.rows["question"].tolist() == ASKED
    assert log.rows["target"].tolist() == [f"{k} ships" for k in range(6)]
    assert log.rows["score"].tolist() == [1, 1, 0, 0, 0, 0]
    assert (log.model, log.task) == ("some/model", "harbour")
    (score,) = log.scores.to_dict("records")
    assert score["value"] == pytest.approx(1 / 3)
    assert score["n"] == 6
    assert rows.text_column(log.rows, source) == "question"
    line = logs.describe_log(source, log)
    assert f"a log of {log.tool}, task harbour and model some/model; " in line
    assert line.endswith(" 0.333 (n = 6)") and "\n" not in line
    # The notebook, which knows the file alone, loads the same rows.
    pd.testing.assert_frame_equal(rows.load(Data(dataset=source), source), log.rows)


def test_the_two_tools_are_told_apart_and_other_files_are_none(tmp_path):
    assert logs.read_log(harness_log(tmp_path)).tool == HARNESS
    assert logs.read_log(inspect_log(tmp_path)).tool == INSPECT
    for name, text in {
        "a.jsonl": '{"question": "Who?"}\n',
        "b.jsonl": "not JSON\n",
        "c.jsonl": "",
        "a.json": '[{"question": "Who?"}]',
        "b.json": '{"question": "Who?"}',
        "c.json": '{"eval": ',
        "a.csv": "doc_id,doc,arguments,resps\n",
        "d.json": "\n",
    }.items():
        (tmp_path / name).write_text(text)
        assert logs.read_log(str(tmp_path / name)) is None
    (tmp_path / "e.jsonl").write_bytes(b"\xff\xfe")
    assert logs.read_log(str(tmp_path / "e.jsonl")) is None
    assert logs.read_log("owner/name") is None


def test_a_compressed_log_is_read_too(tmp_path):
    plain = Path(harness_log(tmp_path))
    packed = plain.with_name(plain.name + ".gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert logs.read_log(str(packed)).model == "some/model"


# lm-evaluation-harness


def test_the_rows_of_the_harness_have_the_columns_of_the_dataset(tmp_path):
    docs = [{"passage": f"Town {k} lies at the sea.", "q": ASKED[k]} for k in range(6)]
    samples = [harness_sample(k, 1.0, doc=docs[k]) for k in range(6)]
    source = harness_log(tmp_path, samples)
    log = logs.read_log(source)
    assert log.names == ["harbour", "validation"]
    joined = rows.texts_at(log.rows, "passage,q", source)
    assert joined[2].split("\n") == [docs[2]["passage"], ASKED[2]]
    with pytest.raises(ValueError, match=r"name one of passage, q, .* by --text"):
        rows.text_column(log.rows, source)


def test_a_question_with_several_filters_is_one_row_and_each_filter_has_its_score(tmp_path):
    samples = [
        harness_sample(k, float(k < n), filter=name)
        for name, n in (("strict", 1), ("loose", 3))
        for k in range(6)
    ]
    log = logs.read_log(harness_log(tmp_path, samples))
    assert len(log.rows) == 6 and log.rows["score"].sum() == 1
    assert log.scores["metric"].tolist() == ["exact_match,strict", "exact_match,loose"]
    assert log.scores["value"].tolist() == pytest.approx([1 / 6, 0.5])


def test_without_the_results_the_score_is_the_mean_of_the_samples(tmp_path):
    log = logs.read_log(harness_log(tmp_path, has_results=False))
    (score,) = log.scores.to_dict("records")
    assert (score["metric"], score["n"]) == ("exact_match,none", 6)
    assert score["value"] == pytest.approx(1 / 3)
    assert (log.model, log.task, log.names) == ("", "harbour", ["harbour", "test"])


# Inspect


def test_epochs_of_a_question_are_one_row_with_their_mean(tmp_path):
    samples = [
        inspect_sample(k, "C" if epoch == 1 else "I", epoch) for epoch in (1, 2) for k in range(6)
    ]
    log = logs.read_log(inspect_log(tmp_path, samples))
    assert len(log.rows) == 6 and log.rows["score"].tolist() == [0.5] * 6
    assert log.scores[["value", "n"]].to_numpy().tolist() == [[0.5, 6]]  # questions, not samples


def test_a_question_in_a_chat_is_read(tmp_path):
    chat = [{"role": "system", "content": "Be brief."}]
    chat.append(
        {"role": "user", "content": [{"type": "text", "text": ASKED[1]}, {"type": "image"}]}
    )
    samples = [inspect_sample(0, "C", choices=["two", "three"])]
    log = logs.read_log(inspect_log(tmp_path, [*samples, inspect_sample(1, "I", input=chat)]))
    assert log.rows["question"].tolist() == ASKED[:2]
    assert rows.texts_at(log.rows, "question,choices", "x")[0] == f"{ASKED[0]}\ntwo\nthree"


def test_a_scorer_of_several_values_has_each_by_its_name(tmp_path):
    samples = [inspect_sample(k, {"brief": 1, "right": k / 5}, scorer="judge") for k in range(6)]
    log = logs.read_log(inspect_log(tmp_path, samples))
    assert log.scores["metric"].tolist() == ["brief", "right"]
    assert log.scores["value"].tolist() == pytest.approx([1, 0.5])
    assert log.scores["n"].tolist() == [6, 6]


@pytest.mark.parametrize(
    ("value", "number"),
    [("C", 1), ("I", 0), ("P", 0.5), ("N", 0), (True, 1), ("0.25", 0.25), ("yes", 1), (3, 3)],
)
def test_a_score_in_words_is_a_number(value, number):
    assert as_score(value) == number


@pytest.mark.parametrize("value", ["good", None, [], {}, math.nan, math.inf, "inf", 10**400])
def test_what_is_no_score_has_no_number(value):
    assert math.isnan(as_score(value))


# What is refused, in one line


def refused(source):
    with pytest.raises(ValueError, match=f"^{re.escape(Path(source).name)}") as caught:
        logs.read_log(str(source))
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_a_file_of_an_evaluation_without_samples_says_how_to_get_them(tmp_path):
    harness_log(tmp_path)
    assert "--log_samples" in refused(tmp_path / f"results_{DATE}.json")
    said = refused(inspect_log(tmp_path, samples=[], status="error\x1b[2J"))
    assert said.endswith(r"has no samples (its status is error\x1b[2J): run it to the end")
    (tmp_path / "task.eval").write_bytes(b"PK")
    assert "inspect log convert task.eval --to json" in refused(tmp_path / "task.eval")


def test_a_damaged_log_names_its_line(tmp_path):
    source = Path(harness_log(tmp_path))
    whole = source.read_text()
    source.write_text(whole + '{"doc_id": 7')
    assert "line 7: " in refused(source)
    source.write_text(whole + '{"doc_id": 7, "doc": {}, "resps": []}\n')
    assert refused(source).endswith(
        'line 7: no sample of lm-evaluation-harness, it has no "arguments"'
    )
    source.write_text(whole + "[" * 100_000)
    assert "line 7: nested too deep" in refused(source)
    source.write_text(whole)
    (tmp_path / f"results_{DATE}.json").write_text('{"results": ')
    assert f"its results, results_{DATE}.json: " in refused(source)
    packed = tmp_path / "cut.jsonl.gz"
    packed.write_bytes(gzip.compress(whole.encode() * 50)[:-200])
    assert refused(packed)
    deep = inspect_sample(0, "C", input=json.loads("[" * 800 + "]" * 800))
    source = inspect_log(tmp_path, [deep])
    with pytest.raises(ValueError, match="0 usable rows of 1") as caught:
        rows.load_with_comparison(
            Data(dataset=source, text_columns=["question"], label_column=""), "", 5, 0
        )
    assert "\n" not in str(caught.value)
    assert "no " in refused(inspect_log(tmp_path, [inspect_sample(0, "C"), {"id": 1}]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
SURPRISES = st.dictionaries(
    st.sampled_from(
        [*harness_sample(0, 1.0), "input", "messages", "output", "scores", "choices", "metadata"]
    ),
    JSON,
    max_size=4,
)


@given(surprises=SURPRISES, other=JSON)
def test_values_of_another_shape_give_a_log_or_one_line(tmp_path_factory, surprises, other):
    folder = tmp_path_factory.mktemp("logs")
    harness = harness_log(folder, [harness_sample(0, 1.0), harness_sample(1, 0.0) | surprises])
    samples = [inspect_sample(0, "C"), inspect_sample(1, "I") | surprises]
    for source in (harness, inspect_log(folder, samples)):
        try:
            log = logs.read_log(source)
        except ValueError as error:
            assert "\n" not in str(error)
            continue
        assert "\n" not in logs.describe_log(source, log)
        assert log.rows["target"].map(type).eq(str).all()
        assert log.scores["value"].map(math.isfinite).all()
        json.loads(log.scores.to_json(orient="records"))


def test_rows_of_one_number_and_other_contents_are_both_kept(tmp_path):
    """Two runs of halves of a task, joined: each counts its rows from 0."""
    other = {"question": "How many trains left town?", "answer": "2"}
    sent = {"gen_args_0": {"arg_0": "Question: How many trains left town?", "arg_1": {}}}
    samples = [harness_sample(k, 1.0) for k in range(6)]
    samples += [harness_sample(0, 0.0, doc=other, arguments=sent), harness_sample(1, 1.0)]
    found = logs.read_log(harness_log(tmp_path, samples, has_results=False))
    assert len(found.rows) == 7 and found.rows["doc_id"].tolist() == [0, 1, 2, 3, 4, 5, 0]
