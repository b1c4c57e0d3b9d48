"""Where the texts of a file are, which rows are left out, and how each is said."""

import json

import numpy as np
import pandas as pd
import pytest

from contamination.audit import rows
from contamination.audit.settings import Data

CHAT = [{"role": "user", "content": "How many ships?"}, {"role": "assistant", "content": "Two."}]
FOUND = pd.DataFrame(
    {
        "question": ["How many ships came in?", None, "  Who came?  "],
        "answer": ["Two ships.", "None.", ""],
        "n": [1, 2, 3],
        "meta": [{"dataset_info": {"question": f"Nested {k}", "tags": ["a", "b"]}} for k in "abc"],
        "messages": [CHAT, None, CHAT[:1]],
        "shares": [[{"from": "human", "value": "Ask"}, {"from": "gpt", "value": "Say"}]] * 3,
        "choices": [["one", "two"], [], ["three"]],
        "arc": [{"text": ["yes", "no"], "label": ["A", "B"]}] * 3,
        "a.b": [{"c": "pointed"}] * 3,
    }
)


@pytest.mark.parametrize(
    ("place", "texts"),
    {
        "question": ["How many ships came in?", "", "Who came?"],
        "question,answer": ["How many ships came in?\nTwo ships.", "None.", "Who came?"],
        "question, n": ["How many ships came in?\n1", "2", "Who came?\n3"],
        "meta.dataset_info.question": ["Nested a", "Nested b", "Nested c"],
        "meta.dataset_info.tags": ["a\nb"] * 3,
        "meta.dataset_info.tags.1": ["b"] * 3,
        "messages": ["How many ships?\nTwo.", "", "How many ships?"],
        "messages.1.content": ["Two.", "", ""],
        "shares": ["Ask\nSay"] * 3,
        "choices": ["one\ntwo", "", "three"],
        "question,choices": ["How many ships came in?\none\ntwo", "", "Who came?\nthree"],
        "arc.text": ["yes\nno"] * 3,
        "a.b.c": ["pointed"] * 3,
    }.items(),
)
def test_a_place_is_a_column_a_field_of_one_or_several_joined(place, texts):
    assert rows.texts_at(FOUND, place, "x.jsonl").tolist() == texts


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("qestion", r'no column "qestion" \(did you mean "question"\?\) in "x.jsonl"'),
        ("meta.nothing", r"name one of question, "),
        ("meta", "is an object and no text: name one of meta.dataset_info"),
        ("question,none", 'no column "none"'),
    ],
)
def test_a_place_without_texts_is_one_line_with_those_that_have_some(place, message):
    with pytest.raises(ValueError, match=message) as caught:
        rows.texts_at(FOUND, place, "x.jsonl")
    assert "\n" not in str(caught.value)


def test_one_obvious_column_is_taken_and_of_several_or_none_all_are_proposed():
    assert rows.text_column(FOUND, "x.jsonl") == "question"
    assert rows.text_column(FOUND.rename(columns={"question": "Problem"}), "x.jsonl") == "Problem"
    two = FOUND.assign(prompt="Say it.")
    with pytest.raises(ValueError, match=r"name one of question, prompt by --text, or join them"):
        rows.text_column(two, "x.jsonl")
    with pytest.raises(ValueError, match=r"name one of .*, or a field of one, by --text"):
        rows.text_column(FOUND.drop(columns="question"), "x.jsonl")


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def test_rows_left_out_are_counted_and_said(tmp_path):
    texts = [f"The ship number {k} came in at noon." for k in range(6)]
    given = [*texts, texts[0], None, "", "short", *texts[:2]]
    file = written(tmp_path / "a.jsonl", [{"text": text} for text in given])
    other = written(tmp_path / "b.jsonl", [{"text": text} for text in [*texts[:1], *"xyz"]])
    data = Data(dataset=file, label_column="", task="summary")
    found, none = rows.load_with_comparison(data, "", 100, 0)
    assert none is None
    assert rows.describe_rows("a.jsonl", found) == (
        "a.jsonl: 12 rows, 2 without a text, 1 of fewer than 16 characters, 3 repeated left out, "
        "6 used"
    )
    with pytest.raises(ValueError, match=r"0 usable rows of 4 \(.*short 3.*shared 1\)"):
        rows.load_with_comparison(data, other, 100, 0)
    whole = written(tmp_path / "c.jsonl", [{"text": text} for text in texts])
    found, _ = rows.load_with_comparison(
        Data(dataset=whole, label_column="", task="summary"), "", 5, 0
    )
    assert rows.describe_rows("c.jsonl", found) == "c.jsonl: 6 rows, none left out, 5 used"


def test_a_nested_text_is_printed_under_its_own_name_in_both_files(tmp_path):
    def records(start):
        asked = [f"How many ships came to harbour {k}?" for k in range(start, start + 5)]
        return [{"info": {"question": q, "answer": "Two of them."}, "mark": 1} for q in asked]

    files = [written(tmp_path / f"{n}.jsonl", records(n)) for n in (0, 20)]
    data = Data(dataset=files[0], label_column="mark", text_columns=["info.question"])
    found, unseen = rows.load_with_comparison(data, files[1], 100, 0)
    assert found.columns == unseen.columns == ("question", "mark")
    assert found.instances[0].startswith("question: How many") and "\nmark: 1" in found.instances[0]
    joined = data.model_copy(update={"text_columns": ["info.question,info.answer"]})
    found, _ = rows.load_with_comparison(joined, "", 100, 0)
    assert (
        found.instances[0].startswith("text: How many") and "?\nTwo of them." in found.passages[0]
    )


def test_the_one_column_of_comparison_rows_is_their_text(tmp_path):
    asked = [{"question": f"How many ships came to harbour {k}?"} for k in range(5)]
    file = written(tmp_path / "a.jsonl", asked)
    (tmp_path / "b.txt").write_text("".join(f"How many trains left {k}?\n" for k in range(5)))
    data = Data(dataset=file, label_column="", task="summary", text_columns=["question"])
    _, unseen = rows.load_with_comparison(data, str(tmp_path / "b.txt"), 100, 0)
    assert unseen.columns == ("question",)
    assert np.all([text.startswith("How many trains") for text in unseen.passages])


def test_bytes_of_a_column_are_read_as_text_or_refused(tmp_path):
    texts = [f"Ship number {n} left the harbour für immer." for n in range(5)]
    pd.DataFrame({"text": [text.encode() for text in texts]}).to_parquet(tmp_path / "a.parquet")
    data = Data(dataset=str(tmp_path / "a.parquet"), label_column="", task="summary")
    found, _ = rows.load_with_comparison(data, "", 10, 0)
    assert {*found.passages} == {*texts}
    broken = pd.DataFrame({"text": [text.encode("latin-1") for text in texts]})
    broken.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match='"text" holds bytes that are no UTF-8'):
        rows.load_with_comparison(data, "", 10, 0)
