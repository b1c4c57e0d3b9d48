"""The audit in one line: what it makes of its words, what it refuses, what it asks first."""

import json
import subprocess
import sys

import pytest
import torch
import yaml
from notebook_files import ROOT

from contamination.audit import auditing, plan, session
from contamination.audit import command_line as audit
from contamination.audit.local_models import load_model
from contamination.audit.settings import SAMPLE as SAMPLE_FILE
from contamination.audit.settings import UNSEEN, Data, Model, Settings, check_name
from contamination.models import local
from contamination.models.source import loaded_bytes

SAMPLE = ["--data", "params/audit/sample.jsonl", "--label", "label"]


def line(tmp_path, *words):
    return audit.main([*words, "--output", str(tmp_path / "out")])


def values_of(tmp_path):
    return yaml.safe_load((tmp_path / "out" / "audit.yaml").read_text())


def test_a_plan_asks_nothing_and_is_written_down(tmp_path, capsys):
    assert line(tmp_path, "--model", "lab:clean", *SAMPLE, "--plan", "--rows", "8") == 0
    said = capsys.readouterr().out
    assert (
        "Min-k% Prob: not run, " in said and "DCQ, replication, option ranking: will be run" in said
    )
    assert "no calls, no cost" in said
    given = Settings.read(values_of(tmp_path))
    assert (given.model.names, given.n_instances) == (["lab:clean"], 8)


def test_files_are_those_of_the_folder_where_the_line_was_given(tmp_path, monkeypatch):
    sample, unseen = (ROOT / f"params/audit/{name}.jsonl" for name in ("sample", "unseen"))
    (tmp_path / "mine.jsonl").write_bytes(sample.read_bytes())
    (tmp_path / "later.jsonl").write_bytes(unseen.read_bytes())
    monkeypatch.chdir(tmp_path)
    words = ["--model", "lab:clean", "--label", "label", "--plan", "--rows", "8"]
    assert line(tmp_path, *words, "--data", "mine.jsonl", "--unseen", "later.jsonl") == 0
    values = values_of(tmp_path)
    assert (values["data"]["dataset"], values["comparison"]) == ("mine.jsonl", "later.jsonl")
    assert values["model"]["names"] == ["lab:clean"]
    assert line(tmp_path, "--settings", "out/audit.yaml", "--plan") == 0


def test_methods_that_are_not_named_are_not_asked_for(tmp_path, capsys):
    words = ["--model", "lab:clean", "--data", "sample", "--plan", "--rows", "8"]
    assert line(tmp_path, *words, "--methods", "dcq, min_k") == 0
    said = capsys.readouterr().out
    assert "DCQ, Min-k% Prob: will be run" in said
    assert "replication, option ranking: not run, not asked for" in said
    assert values_of(tmp_path)["methods"] == ["dcq", "min_k"]
    assert line(tmp_path, *words, "--methods", "dqc") == 2
    assert "want dcq or replication or ranking or min_k" in capsys.readouterr().err


def test_a_labelled_file_is_planned_with_a_line_for_each_of_its_kinds(tmp_path, capsys):
    rows = [{"text": f"Harbour town {n} woke early.", "seen": n % 2} for n in range(20)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"dataset": str(tmp_path / "mine.jsonl"), "label_column": "", "task": "summary"}
    values = {"model": {"names": ["lab:clean"]}, "data": data | {"member_column": "seen"}}
    values |= {"comparison": "", "methods": ["min_k"], "n_instances": 8}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    assert line(tmp_path, "--settings", str(tmp_path / "mine.yaml"), "--plan") == 0
    said = capsys.readouterr().out
    assert said.count("mine.jsonl: 10 rows, none left out, 10 used") == 2
    assert "Min-k% Prob: will be run" in said


def test_the_sample_comes_with_its_label_and_its_comparison_rows(tmp_path):
    assert line(tmp_path, "--model", "lab:clean", "--data", "sample", "--plan", "--rows", "8") == 0
    values = values_of(tmp_path)
    assert (values["data"]["dataset"], values["comparison"]) == (SAMPLE_FILE, UNSEEN)
    assert values["data"]["label_column"] == "label"


def test_what_an_audit_has_written_is_read_the_next_time(tmp_path, capsys):
    assert line(tmp_path, "--model", "lab:clean", "--data", "sample", "--plan", "--rows", "8") == 0
    first = capsys.readouterr().out
    written = values_of(tmp_path)
    assert line(tmp_path, "--settings", str(tmp_path / "out/audit.yaml"), "--plan") == 0
    assert capsys.readouterr().out == first
    assert values_of(tmp_path) == written


def test_files_in_settings_are_those_of_the_folder_where_the_line_was_given(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "mine.jsonl").write_bytes((ROOT / SAMPLE_FILE).read_bytes())
    values = {"model": {"names": ["lab:clean"]}, "data": {"dataset": "mine.jsonl"}}
    values |= {"comparison": "", "n_instances": 8, "dry_run": True}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(auditing, "run", lambda *_: pytest.fail("was run"))
    assert line(tmp_path, "--settings", "mine.yaml") == 0
    written = values_of(tmp_path)
    assert written["data"]["dataset"] == "mine.jsonl"
    assert written["data"]["text_columns"] == ["text"]
    assert "mine.jsonl: 60 rows" in capsys.readouterr().out
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values | {"n_instancse": 8}))
    assert line(tmp_path, "--settings", "mine.yaml") == 2
    said = 'error: mine.yaml: unknown name "n_instancse" (did you mean "n_instances"?)\n'
    assert capsys.readouterr().err == said


def test_a_served_model_has_its_cost_and_is_not_asked_without_a_yes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(plan, "check_ready", lambda *_: None)
    monkeypatch.setattr(auditing, "run", lambda *_: pytest.fail("was run"))
    served = ["--model", "gpt-2024-01-31", "--served-at", "http://127.0.0.1:9/v1"]
    prices = ["--prices", "2.5,10", "--price-date", "2026-01-31", "--cap", "1"]
    assert line(tmp_path, *served, *SAMPLE, *prices, "--rows", "8") == 2
    shown = capsys.readouterr()
    assert "cap 1.00" in shown.out and "DCQ" in shown.out
    assert shown.err == "error: nothing was asked: add --yes to pay what the plan says\n"
    assert values_of(tmp_path)["model"]["prices"] == [2.5, 10.0]


def test_at_an_address_any_name_will_do(tmp_path):
    words = ["--model", "gpt-that-nobody-knows", "--served-at", "http://127.0.0.1:9/v1", *SAMPLE]
    words += ["--prices", "1,1", "--price-date", "2026-01-31", "--cap", "1", "--rows", "8"]
    assert line(tmp_path, *words, "--plan") == 0


@pytest.mark.parametrize("name", ["lab:clean", "lab:clean:2", "lab:contaminated"])
def test_names_of_the_lab_pass(name):
    assert check_name(name) == ""


@pytest.mark.parametrize("name", ["lab:clean:", "lab:clean:x", "lab:contaminated:2"])
def test_names_that_the_lab_does_not_have_are_refused(name):
    with pytest.raises(ValueError, match=f'no model is called "{name}": did you mean "lab:c'):
        check_name(name)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "lab:clean", "--data", "none.jsonl"], 'no file "none.jsonl"'),
        (["--model", "lab:clean", "lab:clean", *SAMPLE], "want distinct"),
        (["--model", "lab:clean", *SAMPLE, "--rows", "2"], '"n_instances" is 2, want 4 to 10000'),
        (["--model", "lab:clean", *SAMPLE, "--served-at", "http://h/v1"], "leave base_url empty"),
        (
            ["--model", "m", *SAMPLE, "--served-at", "http://h/v1", "--device", "cpu"],
            "model: device",
        ),
        (["--model", "lab:clean", *SAMPLE, "--device", "tpu"], "want empty or cuda or mps or cpu"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, capsys, words, message):
    assert line(tmp_path, *words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("here", "wanted", "found"),
    [
        (("cuda", "mps"), "", "cuda"),
        (("mps",), "", "mps"),
        ((), "", "cpu"),
        (("cuda", "mps"), "mps", "mps"),
        (("cuda",), "cpu", "cpu"),
    ],
)
def test_a_local_model_is_loaded_on_the_fastest_device_or_the_named_one(
    monkeypatch, here, wanted, found
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in here)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in here)
    monkeypatch.setattr(local, "load_causal_lm", lambda name, _, device, **__: (name, device))
    loaded = load_model(Model(names=["some/model"], device=wanted))
    assert loaded == ("some/model", found)


def test_a_device_that_is_not_here_is_refused_before_anything_is_written(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    words = ["--model", "lab:clean", *SAMPLE, "--plan", "--rows", "8", "--device"]
    assert line(tmp_path, *words, "cuda") == 2
    said = capsys.readouterr().err
    assert said == 'error: there is no device "cuda": this machine and its torch have mps, cpu\n'
    assert not (tmp_path / "out").exists()
    assert line(tmp_path, *words, "mps") == 0
    assert values_of(tmp_path)["model"] == {"names": ["lab:clean"], "device": "mps"}


def test_weights_larger_than_free_memory_are_refused(tmp_path):
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(10**13)  # a hole: it takes no room on the disk
    with pytest.raises(ValueError, match=r"take 10000\.0 GB and .* are free"):
        session.check_memory(str(tmp_path))


def test_weights_are_counted_once_and_as_they_are_loaded(tmp_path):
    for name in ("model.safetensors", "pytorch_model.bin"):  # the same weights in both formats
        (tmp_path / name).write_bytes(b"0" * 100)
    assert loaded_bytes(tmp_path) == 100
    (tmp_path / "config.json").write_text('{"torch_dtype": "bfloat16"}')
    assert loaded_bytes(tmp_path) == 200
    (tmp_path / "model.safetensors").unlink()
    assert loaded_bytes(tmp_path) == 200


@pytest.mark.parametrize("name", [*audit.BENCHMARKS, "gsm8k"])
def test_a_benchmark_by_its_name_fits_the_notebook(name):
    data = Data.read(session.data_of(name))
    assert data.called[0].lower() == name.lower()


BAD = """
import sys, time
start = time.perf_counter()
from contamination.audit import command_line
assert command_line.main(sys.argv[1:]) == 2
slow = {"torch", "transformers", "datasets"} & set(sys.modules)
print("imported:", sorted(slow))
"""


def test_a_bad_name_is_refused_before_torch_is_imported():
    words = ["--model", "lab:dirty", "--data", "none.jsonl", "--plan"]
    done = subprocess.run(
        [sys.executable, "-c", BAD, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout == "imported: []\n"
    assert done.stderr.startswith("error: ") and '"lab:dirty"' in done.stderr


@pytest.mark.parametrize("name", ["lab:dirty", "package:llm-smollm", "./none"])
def test_a_plan_for_a_bad_name_writes_nothing(tmp_path, capsys, name):
    assert line(tmp_path, "--model", name, *SAMPLE, "--plan") == 2
    assert name in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_plan_says_which_name_it_could_not_check_and_a_run_is_refused_at_once(
    tmp_path, capsys, monkeypatch, hub_offline
):
    words = ["--model", "nosuch/model", *SAMPLE, "--rows", "8"]
    assert line(tmp_path, *words, "--plan") == 0
    unchecked = 'whether there is a model "nosuch/model" could not be checked'
    assert capsys.readouterr().out.startswith(unchecked)
    monkeypatch.setattr(auditing, "run", lambda *_: pytest.fail("was run"))
    assert line(tmp_path, *words) == 2
    assert capsys.readouterr().err.startswith(f"error: {unchecked}")


def test_a_plan_counts_rows_and_near_copies_before_anything_else(tmp_path, capsys):
    sample = [*(ROOT / "params/audit/sample.jsonl").open()]
    texts = [json.loads(row)["text"] for row in sample]
    (tmp_path / "mine.jsonl").write_text("".join([*sample, *sample[:2], json.dumps({"text": ""})]))
    (tmp_path / "others.txt").write_text("\n".join(f"{text} So it was." for text in texts) + "\n")
    files = [str(tmp_path / name) for name in ("mine.jsonl", "others.txt")]
    words = ["--model", "lab:clean", "--data", files[0], "--unseen", files[1]]
    assert line(tmp_path, *words, "--plan", "--rows", "8") == 0
    said = capsys.readouterr().out.splitlines()
    n = len(sample)
    assert said[:3] == [
        'the text is the column "text": --text names another one',
        f"{files[0]}: {n + 3} rows, 1 without a text, 2 repeated left out, {n} used",
        f"{files[1]}: {n} rows, none left out, {n} used",
    ]
    near = f"{n} of {n} dataset rows have a near-copy among the comparison rows: a model that"
    assert sum(near in line for line in said) == 1


@pytest.mark.parametrize(
    ("name", "content", "words", "text"),
    [
        ("a.csv", "problem;label\n{};1\n", [], "problem"),
        ("a.csv", "{},1\n", ["--columns", "prompt,label"], "prompt"),
        ("a.txt", "{}\n", [], "text"),
        ("a.jsonl", '{{"info": {{"q": "{}"}}, "n": 1}}\n', ["--text", "info.q"], "info.q"),
        ("a.jsonl", '{{"q": "{}", "n": 1}}\n', ["--text", "q,n"], "q,n"),
    ],
)
def test_files_of_many_kinds_are_planned_and_what_was_found_is_written(
    tmp_path, name, content, words, text
):
    head, _, row = content.rpartition("\n")[0].rpartition("\n")
    head += "\n" * bool(head)
    rows = [row.format(f"How many ships came to harbour {k}?") + "\n" for k in range(8)]
    (tmp_path / name).write_text(head + "".join(rows))
    words = ["--model", "lab:clean", "--data", str(tmp_path / name), *words]
    assert line(tmp_path, *words, "--plan", "--rows", "8") == 0
    data = values_of(tmp_path)["data"]
    assert data["text_columns"] == [text]
    assert data.get("column_names", ["prompt", "label"]) == ["prompt", "label"]
    Settings.read(values_of(tmp_path))
