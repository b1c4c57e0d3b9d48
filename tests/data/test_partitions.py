"""A partition arrives whole and unchanged, or with one line that says what is wrong."""

import json
from types import SimpleNamespace

import datasets
import huggingface_hub
import numpy as np
import pandas as pd
import pyarrow
import pytest
from huggingface_hub.errors import RepositoryNotFoundError
from pyarrow import parquet

from contamination.core import storage
from contamination.data import partitions

# Markup, Chinese, a quote, a line break, a separator that str.splitlines would cut at.
TEXTS = ["<b>one</b> & two", "模型读过这段话吗？", 'said "no",\nthen left', "a\u2028b", "None"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def one_line(caught) -> str:
    message = str(caught.value)
    assert "\n" not in message
    return message


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


def recorded(tmp_path):
    lines = (tmp_path / storage.RECORD_NAME).read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture
def staging(tmp_path, monkeypatch):
    monkeypatch.setenv(storage.STAGING_VARIABLE, str(tmp_path))


# Files


@pytest.mark.parametrize(
    "suffix", [".jsonl", ".json", ".csv", ".tsv", ".parquet", ".jsonl.gz", ".json.gz", ".csv.gz"]
)
def test_every_format_gives_the_same_texts(tmp_path, staging, suffix):
    table = pd.DataFrame({"text": TEXTS, "label": range(5)})
    path = tmp_path / f"rows{suffix}"
    if suffix.startswith(".json"):
        table.to_json(path, orient="records", lines=suffix.startswith(".jsonl"))
    elif suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    rows = partitions.load_rows(str(path))
    assert rows["text"].tolist() == TEXTS
    assert partitions.format_instances(rows, ["label"])[3] == "label: 3"
    digest = storage.sha256_of_file(path)
    assert recorded(tmp_path) == [{"kind": "input", "name": f"rows{suffix}", "sha256": digest}]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_whole_number_stays_one_where_other_rows_have_a_gap(tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    if suffix == ".jsonl":
        write(path, '\ufeff{"text": "a", "label": 1}\n\n{"text": "b"}\n')
    else:
        pd.DataFrame({"text": ["a", "b"], "label": pd.array([1, None], "Int64")}).to_parquet(path)
    rows = partitions.load_rows(str(path))
    assert partitions.format_instance(rows.iloc[0], ["text", "label"]) == "text: a\nlabel: 1"
    with pytest.raises(ValueError, match=r'"label" has no value in 1 of 2 rows.*row 1 \(from 0\)'):
        partitions.format_instances(rows, ["text", "label"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"text": "a"}\n\n{"text": \n', "a.jsonl: line 3: Expecting value"),
        ("a.jsonl", '{"text": "a"}\n["b"]\n', "a.jsonl: line 2: not an object in braces"),
        ("a.jsonl", '{"x": 1, "x": 2}\n', 'line 1: .*the name "x" occurs twice'),
        (
            "a.json",
            '{"x": 1}\n{"x": 2}\n',
            r"Extra data: line 2 column 1 .* \(\.jsonl holds one object",
        ),
        ("a.json", '{"x": 1}', "not a list of objects .*json one list"),
        ("a.json", '[{"x": 1}, 2]', "not a list of objects"),
        ("a.csv", "x,y,x\n1,2,3\n", 'the name "x" occurs twice'),
        ("a.csv", "x,y\n1,2\n1,2,3\n", "line 3: 3 values for 2 columns"),
        ("a.tsv", "x\ty\n1\n", "line 2: 1 values for 2 columns"),
        ("a.csv", 'x\n"never closed\n', "line 2: unexpected end of data"),
        ("a.parquet", "no parquet", "a.parquet: .*Parquet"),
        ("a.pkl", "text", r'format "\.pkl" is not read: convert it to \.jsonl'),
        (
            "a.csv",
            "1,1,no header\n2,3,at all\n",
            'name "1" occurs twice: .* if the file has no hea',
        ),
        ("a.csv", "a;b\n1;2\n1;2;3\n", "line 3: 3 values for 2 columns"),
        ("a.arrow", "no arrow", "a.arrow: "),
        ("a.jsonl.gz", "not zipped", "a.jsonl.gz: Not a gzipped file"),
        *((f"a{end}", "", "no rows") for end in (".jsonl", ".json", ".csv", ".tsv", ".txt")),
        ("a.json", "[]", "no rows"),
        ("a.csv", "x,y\n", "no rows"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        partitions.load_rows(write(tmp_path / name, content))
    assert one_line(caught).startswith(name)


@pytest.mark.parametrize("is_file", [True, False])
def test_arrow_is_read_as_a_file_and_as_the_stream_that_datasets_writes(tmp_path, is_file):
    table = pyarrow.table({"text": TEXTS, "parts": [{"n": [k]} for k in range(5)]})
    path = tmp_path / "a.arrow"
    new = pyarrow.ipc.new_file if is_file else pyarrow.ipc.new_stream
    with new(str(path), table.schema) as writer:
        writer.write_table(table)
    rows = partitions.load_rows(str(path))
    assert rows["text"].tolist() == TEXTS and rows["parts"][3] == {"n": [3]}
    saved = datasets.Dataset.from_dict({"text": TEXTS})
    saved.save_to_disk(tmp_path / "saved")
    found = partitions.load_rows(str(next((tmp_path / "saved").glob("*.arrow"))))
    assert found["text"].tolist() == TEXTS


def test_damaged_arrow_and_a_cut_gz_are_one_line(tmp_path):
    table = pyarrow.table({"text": TEXTS * 100})
    with pyarrow.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    pd.DataFrame({"text": TEXTS * 100}).to_json(
        tmp_path / "b.jsonl.gz", orient="records", lines=True
    )
    for path in (tmp_path / "a.arrow", tmp_path / "b.jsonl.gz"):
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(ValueError, match=path.name) as caught:
            partitions.load_rows(str(path))
        one_line(caught)


def test_a_text_file_is_a_row_a_line_and_an_empty_line_is_an_empty_row(tmp_path):
    rows = partitions.load_rows(write(tmp_path / "a.txt", "one, two\n\na\u2028b\n"))
    assert rows["text"].tolist() == ["one, two", "", "a\u2028b"]


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.csv", "text;label\n1,5 ships, two;a\n2,5 ships;b\n", ["text", "label"]),
        ("a.csv", "text;label\none;a\ntwo;b\n", ["text", "label"]),
        ("a.csv", "text\tlabel\none, two\ta\nthree\tb\n", ["text", "label"]),
        ("a.tsv", "text,label\none,a\ntwo,b\n", ["text", "label"]),
        ("a.csv", "text\none; two\nthree\n", ["text"]),  # one column, whatever its texts hold
        ("a.csv", 'text,label\n"a; b",1\nc,2\n', ["text", "label"]),
    ],
)
def test_what_parts_the_columns_is_found_out(tmp_path, name, content, columns):
    rows = partitions.load_rows(write(tmp_path / name, content))
    assert list(rows) == columns and len(rows) == 2


def test_names_of_columns_are_given_where_a_file_has_no_header(tmp_path):
    bare = write(tmp_path / "a.csv", "one,1\ntwo,2\n")
    rows = partitions.load_rows(bare, column_names=["text", "label"])
    assert rows["text"].tolist() == ["one", "two"]
    full = write(tmp_path / "b.csv", "text,label\none,1\n")  # a header that says the same
    assert len(partitions.load_rows(full, column_names=["text", "label"])) == 1
    with pytest.raises(ValueError, match="3 column names for 2 columns"):
        partitions.load_rows(bare, column_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="only a CSV or TSV without a header"):
        partitions.load_rows(write(tmp_path / "a.txt", "one\n"), column_names=["text"])


def test_a_repeated_parquet_column_and_text_that_is_not_utf8_are_refused(tmp_path):
    table = pyarrow.table([pyarrow.array([1]), pyarrow.array([2])], names=["x", "x"])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match='the name "x" occurs twice'):
        partitions.load_rows(str(tmp_path / "a.parquet"))
    (tmp_path / "a.csv").write_bytes("text\nmüde\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.csv: not UTF-8") as caught:
        partitions.load_rows(str(tmp_path / "a.csv"))
    one_line(caught)


def test_a_relative_path_may_start_at_the_projects_root(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "project_root", lambda: tmp_path)
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine" / "rows.csv", "text\na\n")
    assert partitions.load_rows("mine/rows.csv")["text"].tolist() == ["a"]
    with pytest.raises(ValueError, match='"mine" is a folder'):
        partitions.load_rows("mine")


@pytest.mark.parametrize("source", ["mine/rows.csv", "/mine/rows.txt", "a/b/c", "gsm8k", "a b/c"])
def test_what_is_neither_a_file_nor_a_hub_id_is_looked_for_nowhere_else(source, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "HfApi", None)
    with pytest.raises(FileNotFoundError, match=f'no file "{source}"') as caught:
        partitions.load_rows(source, split="test")
    one_line(caught)


def test_a_revision_belongs_to_the_hub_and_a_hub_id_needs_a_split(hub, tmp_path):
    with pytest.raises(ValueError, match="is a file and has no revision"):
        partitions.load_rows(write(tmp_path / "a.csv", "x\n1\n"), revision="main")
    with pytest.raises(ValueError, match='"" is a folder: name the file'):
        partitions.load_rows("")
    with pytest.raises(ValueError, match="name a split"):
        partitions.load_rows("owner/name")


# The hub


@pytest.fixture
def hub(monkeypatch):
    """A hub of one dataset, whose default branch is at COMMIT; notes each call."""
    calls = []

    def load_dataset(*arguments, **named):
        calls.append((arguments, named))
        dataset = datasets.Dataset.from_dict({"text": TEXTS, "label": [0, 1, None, 1, 0]})
        url = f"hf://datasets/owner/name@{COMMIT}/test.parquet"
        dataset.info.download_checksums = {url: {"num_bytes": 1, "checksum": None}}
        return dataset

    class HfApi:
        def dataset_info(self, name, revision):
            return SimpleNamespace(sha=COMMIT)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(huggingface_hub, "HfApi", HfApi)
    return calls


def test_a_floating_revision_warns_and_its_commit_is_loaded_and_recorded(hub, tmp_path, staging):
    with pytest.warns(
        UserWarning, match=f'its default branch is commit {COMMIT}.*revision="{COMMIT}"'
    ):
        rows = partitions.load_rows("owner/name", split="test")
    assert rows["text"].tolist() == TEXTS
    assert partitions.format_instances(rows.dropna(), ["label"])[0] == "label: 0"
    assert hub == [(("owner/name", None), {"split": "test", "revision": COMMIT})]
    assert recorded(tmp_path) == [
        {"kind": "input", "name": "hub:owner/name:test", "sha256": f"commit:{COMMIT}"}
    ]


def test_a_pinned_commit_is_passed_on_in_silence_with_its_configuration(hub, recwarn):
    partitions.load_rows("owner/name:main", split="test", revision=COMMIT)
    assert hub == [(("owner/name", "main"), {"split": "test", "revision": COMMIT})]
    assert not recwarn.list


def test_another_revision_from_the_local_cache_is_refused(hub):
    with pytest.raises(ValueError, match=f"cache holds another commit than {'f' * 40}") as caught:
        partitions.load_rows("owner/name", split="test", revision="f" * 40)
    one_line(caught)


def test_one_file_of_a_hub_dataset_is_read_without_its_loading_script(
    hub, tmp_path, staging, monkeypatch
):
    """As MIMIR's: one JSON text in each line."""
    path = write(tmp_path / "wiki_(en)_13_0.8.jsonl", '"A text."\n"Another, \\u2028 of two."\n')
    asked = []

    def download(name, filename, repo_type, revision):
        asked.append((name, filename, repo_type, revision))
        return path

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    with pytest.warns(UserWarning, match="floats"):
        rows = partitions.load_rows("owner/name/train/wiki_(en)_13_0.8.jsonl")
    assert rows["text"].tolist() == ["A text.", "Another, \u2028 of two."]
    assert asked == [("owner/name", "train/wiki_(en)_13_0.8.jsonl", "dataset", COMMIT)]
    assert recorded(tmp_path)[0]["name"] == "hub:owner/name/train/wiki_(en)_13_0.8.jsonl"


def test_a_hub_file_that_is_not_there_is_one_line(hub, monkeypatch):
    def download(*arguments, **named):
        raise OSError("404\nnot found")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    with pytest.raises(FileNotFoundError, match="check the path") as caught:
        partitions.load_rows("owner/name/rows.jsonl", revision=COMMIT)
    one_line(caught)


def test_without_network_the_message_says_so_in_one_line(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(
        FileNotFoundError, match=r"cannot be reached.*check the connection"
    ) as caught:
        partitions.load_rows("owner/name", split="test")
    one_line(caught)


def test_a_misspelt_hub_id_is_not_called_a_broken_connection(monkeypatch):
    class HfApi:
        def dataset_info(self, name, revision):
            raise RepositoryNotFoundError("404", response=SimpleNamespace(headers={}, request=None))

    monkeypatch.setattr(huggingface_hub, "HfApi", HfApi)
    with pytest.raises(FileNotFoundError, match=r"is not a file here.*no such dataset.*spelling"):
        partitions.load_rows("owner/nmae", split="test")


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError("Config name is missing.\nPick one of: ['main']"), ValueError),
        (ConnectionError("Couldn't reach"), FileNotFoundError),
        (datasets.exceptions.DatasetNotFoundError("gated"), FileNotFoundError),
    ],
)
def test_what_the_library_raises_becomes_one_line(monkeypatch, raised, expected):
    def load_dataset(*arguments, **named):
        raise raised

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(expected) as caught:
        partitions.load_rows("owner/name", split="test", revision=COMMIT)
    one_line(caught)
    assert caught.value.__cause__ is raised


# Instances


def test_a_printed_instance_has_one_line_per_column():
    row = {"text": "It rained.", "label": "0 (World)", "template": "x"}
    assert (
        partitions.format_instance(row, ["text", "label"]) == "text: It rained.\nlabel: 0 (World)"
    )
    with pytest.raises(
        ValueError, match=r'no column "lable" \(did you mean "label"\?\); the columns'
    ):
        partitions.format_instance(row, ["text", "lable"])
    rows = pd.DataFrame({"label": [1, 0], "share": [0.5, 1.5]})
    printed = ["label: 1\nshare: 0.5", "label: 0\nshare: 1.5"]
    assert partitions.format_instances(rows, ["label", "share"]) == printed


def test_instances_of_lists_are_told_apart():
    rows = pd.DataFrame({"answers": [["a"], ["b"], ["a"]]})
    first, second, third = partitions.format_instances(rows, ["answers"])
    assert first == third != second


def test_the_row_of_a_partition_counts_and_hashes_what_is_printed():
    rows = pd.DataFrame({"text": ["a", "b", "a"], "id": [1, 2, 3]})
    row = partitions.partition_row("News test", "topic classification", "grammar", rows, ["text"])
    assert row == {
        "partition": "News test",
        "task": "topic classification",
        "source": "grammar",
        "n_rows": 3,
        "n_unique": 2,
        "sha256": storage.hash_of(["text: a", "text: b", "text: a"]),
    }
    with pytest.raises(ValueError, match="no columns named"):
        partitions.partition_row("p", "t", "s", rows, [])


# Labelled passages


@pytest.mark.parametrize(
    "labels",
    [
        [1, 0, 1],
        [True, False, True],
        [1.0, 0.0, 1.0],
        ["1", "0", "1"],
        ["True", "False", "True"],
        ["member", "non-member", "Member"],
    ],
)
def test_every_way_to_write_a_label_means_the_same(labels):
    rows = pd.DataFrame({"text": TEXTS[:3], "label": labels})
    texts, is_member = partitions.labelled_passages(rows, "text", "label")
    assert texts == TEXTS[:3]
    assert is_member.dtype == bool
    assert is_member.tolist() == [True, False, True]


@pytest.mark.parametrize("label", [np.nan, None, 2, -1, 0.5, "yes", "", "nonmember"])
def test_any_other_label_is_named_with_its_row(label):
    rows = pd.DataFrame({"text": ["a", "b", "c"], "label": pd.Series([1, 0, label], dtype=object)})
    with pytest.raises(
        ValueError, match=r'"label" holds .* at row 2 \(from 0\): write 1'
    ) as caught:
        partitions.labelled_passages(rows, "text", "label")
    one_line(caught)


@pytest.mark.parametrize("text", ["", " \n", None, np.nan, 3])
def test_an_empty_passage_is_named_with_its_row(text):
    rows = pd.DataFrame({"text": pd.Series(["a", text], dtype=object), "label": [0, 1]})
    with pytest.raises(ValueError, match=r'"text" holds no text at row 1 \(from 0\)') as caught:
        partitions.labelled_passages(rows, "text", "label")
    one_line(caught)


def test_one_class_or_a_misspelt_column_is_refused():
    rows = pd.DataFrame({"passage": ["a", "b"], "label": [1, 1]})
    with pytest.raises(ValueError, match="marks 2 members and 0 non-members"):
        partitions.labelled_passages(rows, "passage", "label")
    with pytest.raises(ValueError, match=r'"pasage" \(did you mean "passage"\?\).*passage, label'):
        partitions.labelled_passages(rows, "pasage", "label")
    with pytest.raises(ValueError, match="marks 0 members and 0 non-members"):
        partitions.labelled_passages(rows.iloc[:0], "passage", "label")


def test_a_file_of_20_000_rows_is_read_whole(tmp_path):
    n = 20_000
    table = pd.DataFrame(
        {"text": [f"passage {i // 2}" for i in range(n)], "label": np.arange(n) % 2}
    )
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    rows = partitions.load_rows(str(tmp_path / "a.jsonl"))
    printed = partitions.format_instances(rows, ["text"])
    assert (len(printed), len({*printed})) == (n, n // 2)
    texts, is_member = partitions.labelled_passages(rows, "text", "label")
    assert len(texts) == n and is_member.sum() == n // 2


def test_a_value_that_is_too_long_is_named_with_its_row(tmp_path, monkeypatch):
    monkeypatch.setattr(partitions, "LONGEST_VALUE", 10)
    path = tmp_path / "rows.txt"
    path.write_text("short\n" + "long " * 5)
    with pytest.raises(
        ValueError, match=r'column "text" has 25 characters in row 1 .*more than 10'
    ):
        partitions.load_rows(str(path))
