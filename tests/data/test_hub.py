"""The hub's own clients against a hub on this machine: named benchmarks, and a model's size."""

import io
import json
import os
import subprocess
import sys

import pyarrow
import pytest
import yaml
from hub_server import COMMIT, HubServer
from notebook_files import ROOT
from pyarrow import parquet

from contamination.audit import BENCHMARKS

CHOICES = ["one ship", "two ships", "no ship", "a train"]
ASKED = "How many ships came to harbour {} on that day?"
# Columns of each as its card names them, and values of a made-up row.
ROWS = {
    "GSM8K": {"question": ASKED, "answer": "Two and two are 4. #### 4"},
    "MMLU": {"question": ASKED, "subject": "seas", "choices": CHOICES, "answer": 2},
    "HumanEval": {
        "task_id": "HumanEval/{}",
        "prompt": "def ships_{}(n):\n    '''Ships that come in n days.'''\n",
        "canonical_solution": "    return n",
        "test": "def check(candidate): pass",
        "entry_point": "ships_{}",
    },
    "ARC": {
        "id": "Sea_{}",
        "question": ASKED,
        "choices": {"text": CHOICES, "label": list("ABCD")},
        "answerKey": "B",
    },
    "TruthfulQA": {
        "type": "Adversarial",
        "category": "Seas",
        "question": ASKED,
        "best_answer": "Two",
        "correct_answers": CHOICES,
        "incorrect_answers": CHOICES,
        "source": "-",
    },
    "HellaSwag": {
        "ind": 4,
        "activity_label": "Sailing",
        "ctx_a": "A man stands at harbour {}.",
        "ctx_b": "he",
        "ctx": "A man stands at harbour {}. he",
        "endings": CHOICES,
        "source_id": "x",
        "split": "val",
        "split_type": "indomain",
        "label": "3",
    },
}
FOLDERS = {"GSM8K": "main", "MMLU": "all", "HumanEval": "openai_humaneval"}
FOLDERS |= {"ARC": "ARC-Challenge", "TruthfulQA": "generation", "HellaSwag": "data"}
HUGE = {"safetensors": {"parameters": {"BF16": 10**12}, "total": 10**12}}
BARE = {"siblings": [{"rfilename": "config.json", "size": 100}]}  # no weights, so no size
OWNED = ("huge", "bare", "nosuch")  # models; the hub does not have the last


def repository(name: str) -> dict[str, bytes]:
    """Files of a benchmark in the form of its own: a card with its data files, one parquet."""
    (source, split, _), row = BENCHMARKS[name], ROWS[name]
    numbered = [
        {key: value.format(n) if isinstance(value, str) else value for key, value in row.items()}
        for n in range(6)
    ]
    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(numbered), stream)
    configuration = source.partition(":")[2] or (
        "default" if name == "HellaSwag" else FOLDERS[name]
    )
    files = [{"split": split, "path": f"{FOLDERS[name]}/{split}-*"}]
    configs = [{"config_name": configuration, "data_files": files}]
    if name in ("GSM8K", "MMLU", "ARC"):  # others beside it, so that the name is needed
        other = [{"split": split, "path": "other/*"}]
        configs.append({"config_name": "other", "data_files": other})
    card = "---\n" + yaml.safe_dump({"configs": configs}) + "---\n"
    found = {"README.md": card.encode()}
    found[f"{FOLDERS[name]}/{split}-00000-of-00001.parquet"] = stream.getvalue()
    return found | {"other/0.parquet": stream.getvalue()}


RUN = """
import json, sys
from contamination.audit import command_line as audit
for words in json.loads(sys.argv[1]):
    print(audit.main(words), flush=True)
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """Each benchmark by its name, planned for a model of the lab, and a model too large."""
    folder = tmp_path_factory.mktemp("hub")
    datasets = {BENCHMARKS[name][0].partition(":")[0]: repository(name) for name in BENCHMARKS}
    runs = [["--model", "lab:clean", "--data", name] for name in BENCHMARKS]
    sample = ["--data", "params/audit/sample.jsonl", "--label", "label"]
    runs += [["--model", f"owner/{name}", *sample] for name in OWNED]
    runs = [[*run, "--plan", "--output", str(folder / str(n))] for n, run in enumerate(runs)]
    models = {"owner/huge": HUGE, "owner/bare": BARE}
    with HubServer(datasets, models) as server:
        own = {"HF_ENDPOINT": server.endpoint, "HF_HOME": str(folder / "home")}
        done = subprocess.run(
            [sys.executable, "-c", RUN, json.dumps(runs)],
            env=os.environ | own,
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    return folder, done, server.asked


def test_each_named_benchmark_is_loaded_by_the_clients_and_its_commit_written_down(hub):
    folder, done, _ = hub
    codes = [line for line in done.stdout.splitlines() if line in ("0", "2")]
    assert codes == ["0"] * 6 + ["2", "0", "2"], done.stderr
    for n, (name, (source, split, column)) in enumerate(BENCHMARKS.items()):
        data = yaml.safe_load((folder / str(n) / "audit.yaml").read_text())["data"]
        assert (data["dataset"], data["revision"]) == (source, COMMIT)
        assert (data["split"], data["text_columns"]) == (split, [column])
        assert set(data["text_columns"]) <= set(ROWS[name])


def test_the_file_of_the_configuration_and_split_is_read_and_no_other(hub):
    got = [line for line in hub[2] if "/resolve/" in line and ".parquet" in line]
    for name, (source, split, _) in BENCHMARKS.items():
        path = f"{source.partition(':')[0]}/resolve/{COMMIT}/{FOLDERS[name]}/{split}-"
        assert any(path in line for line in got)
    assert not any("/other/" in line for line in got)


def test_weights_on_the_hub_that_are_too_large_are_one_line_and_no_download(hub):
    said = [line for line in hub[1].stderr.splitlines() if line.startswith("error: the weights")]
    assert len(said) == 1
    assert 'of "owner/huge" take 4000.0 GB' in said[0]  # 10 ** 12 parameters of four bytes
    assert 'whether "owner/bare" fits into memory is not known' in hub[1].stdout
    # Its configuration, then how large its files are.
    asked = {line.split()[1] for line in hub[2] if "owner/huge" in line}
    assert asked == {"/owner/huge/resolve/main/config.json", "/api/models/owner/huge"}


def test_a_model_that_the_hub_does_not_know_is_refused(hub):
    refused = [line for line in hub[1].stderr.splitlines() if "owner/nosuch" in line]
    assert len(refused) == 1
    assert refused[0].startswith('error: model "owner/nosuch": owner/nosuch is not a local folder')
