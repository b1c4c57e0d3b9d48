"""Logs that lm-evaluation-harness and Inspect wrote themselves, read as data of an audit.

Both run in an environment of their own, without a network: the harness on an untrained model of
two blocks, Inspect on its mock model, and both on rows of the package's sample.
"""

import json
import os
import subprocess

import jsonschema
import pytest
import yaml
from notebook_files import ROOT
from tiny_models import saved, tiny_llama

from contamination.audit import command_line, logs
from contamination.lab.tokenizer import train_tokenizer

pytestmark = pytest.mark.servers

TOOLS = ROOT / ".venv-evaluations/bin"
N = 12
ROWS = [json.loads(line) for line in (ROOT / "params/audit/sample.jsonl").open()][:N]
TEXTS = [row["text"] for row in ROWS]

# Two tasks of the harness: one whose answers are generated and read by two filters, one whose
# options are ranked, with examples from other rows in the prompt.
COMMON = {
    "dataset_path": "json",
    "test_split": "test",
    "doc_to_text": "Text: {{text}}\nTopic:",
}
TASKS = {
    "written": {
        "output_type": "generate_until",
        "doc_to_target": "{{label}}",
        "generation_kwargs": {"until": ["\n"], "max_gen_toks": 4},
        "metric_list": [{"metric": "exact_match"}],
        "filter_list": [
            {
                "name": "strict",
                "filter": [
                    {"function": "regex", "regex_pattern": "(\\w+)"},
                    {"function": "take_first"},
                ],
            },
            {"name": "plain", "filter": [{"function": "take_first"}]},
        ],
    },
    "ranked": {
        "output_type": "multiple_choice",
        "fewshot_split": "test",
        "num_fewshot": 2,
        "doc_to_target": "gold",
        "doc_to_choice": "choices",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    },
}

# The mock model is right about even rows; it is told how many tokens it used, since counting them
# would download a vocabulary.
INSPECT = """
import json, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import choice, includes
from inspect_ai.solver import generate, multiple_choice, system_message

texts = json.load(open("texts.json"))

def answer(messages, tools, tool_choice, config):
    number = next(k for k, text in enumerate(texts) if text in messages[-1].text)
    said = f"ANSWER: {'A' if number % 2 == 0 else 'B'}"
    output = ModelOutput.from_content("mockllm", said)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output

def task(name, solver, scorer, **more):
    samples = [Sample(input=t, target="A", id=k, **more) for k, t in enumerate(texts)]
    return Task(dataset=MemoryDataset(samples), solver=solver, scorer=scorer, name=name)

written = task("written", [system_message("Be brief."), generate()], includes())
ranked = task("ranked", multiple_choice(), choice(), choices=["news", "sport"])
for one, epochs in ((written, 1), (ranked, 2)):
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    eval(one, model=model, epochs=epochs, log_format="json", log_dir="logs", display="none")
"""


def run_tool(folder, name, *words):
    if not (TOOLS / name).exists():
        pytest.fail('the evaluation tools are not installed: run "make test-servers"')
    own = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "home")}
    own |= {"OMP_NUM_THREADS": "1", "INSPECT_LOG_LEVEL": "warning"}
    done = subprocess.run(
        [TOOLS / name, *words], cwd=folder, env=os.environ | own, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    """The folder in which the harness left its results and its samples."""
    folder = tmp_path_factory.mktemp("harness")
    (folder / "tasks").mkdir()
    (folder / "model").mkdir()
    tokenizer = train_tokenizer(TEXTS, vocabulary=300)
    saved(folder / "model", tiny_llama(tokenizer, context=2048), tokenizer)
    with (folder / "tasks/rows.jsonl").open("w") as file:
        for k, row in enumerate(ROWS):
            row = {"text": row["text"], "label": row["label"]}
            file.write(json.dumps(row | {"choices": ["news", "sport"], "gold": k % 2}) + "\n")
    for name, task in TASKS.items():
        files = {"dataset_kwargs": {"data_files": {"test": "tasks/rows.jsonl"}}}
        whole = {"task": name} | COMMON | files | task
        (folder / f"tasks/{name}.yaml").write_text(yaml.safe_dump(whole))
    words = ["--model", "hf", "--model_args", "pretrained=model", "--device", "cpu"]
    words += ["--tasks", ",".join(TASKS), "--include_path", "tasks", "--batch_size", "1"]
    run_tool(folder, "lm_eval", *words, "--output_path", "out", "--log_samples")
    return folder / "out/model"


@pytest.fixture(scope="module")
def inspected(tmp_path_factory):
    """The folder of the logs of Inspect."""
    folder = tmp_path_factory.mktemp("inspect")
    (folder / "texts.json").write_text(json.dumps(TEXTS))
    (folder / "evaluate.py").write_text(INSPECT)
    run_tool(folder, "python", "evaluate.py")
    return folder / "logs"


def one_file(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


@pytest.mark.parametrize("task", TASKS)
def test_samples_of_the_harness_are_its_rows_and_its_score(harness, task):
    log = logs.read_log(str(one_file(harness, f"samples_{task}_*.jsonl")))
    assert log.rows["text"].tolist() == TEXTS
    assert (log.model, log.names) == ("model", [task, "test"])
    results = json.loads(one_file(harness, "results_*.json").read_text())["results"][task]
    assert len(log.scores) == 2
    for score in log.scores.to_dict("records"):
        assert score["value"] == pytest.approx(results[score["metric"]])
        assert score["n"] == N
    if task == "ranked":
        assert log.rows["target"].tolist() == ["0", "1"] * (N // 2)
        assert log.rows["score"].isin([0, 1]).all()
    else:
        assert log.rows["target"].tolist() == [row["label"] for row in ROWS]


@pytest.mark.parametrize(("task", "metric"), [("written", "includes"), ("ranked", "choice")])
def test_a_log_of_inspect_is_its_rows_and_its_score(inspected, task, metric):
    log = logs.read_log(str(one_file(inspected, f"*_{task}_*.json")))
    assert log.rows["question"].tolist() == TEXTS
    assert (log.model, log.names) == ("mockllm/model", [task, "test"])
    (score,) = log.scores.to_dict("records")
    assert score["metric"] == metric and score["n"] == N
    if task == "ranked":
        assert score["value"] == 0.5
        assert log.rows["score"].tolist() == [1.0, 0.0] * (N // 2)
        assert log.rows["choices"].tolist() == [["news", "sport"]] * N


def test_the_results_of_the_harness_alone_are_refused_with_the_cure(harness, tmp_path, capsys):
    source = str(one_file(harness, "results_*.json"))
    words = ["--model", "lab:clean", "--data", source, "--output", str(tmp_path / "out")]
    assert command_line.main(words) == 2
    said = capsys.readouterr().err
    assert "--log_samples" in said and said.count("\n") == 1


def test_either_log_is_planned_in_one_line(harness, inspected, tmp_path, capsys):
    logs = {
        one_file(
            harness, "samples_ranked_*"
        ): "lm-evaluation-harness, task ranked and model model; acc,none ",
        one_file(
            inspected, "*_written_*"
        ): "Inspect, task written and model mockllm/model; includes ",
    }
    for log, about in logs.items():
        words = ["--model", "lab:clean", "--data", str(log), "--rows", "8", "--plan"]
        assert command_line.main([*words, "--output", str(tmp_path / log.stem)]) == 0
        said = capsys.readouterr().out
        assert f"a log of {about}" in said
        assert f": {N} rows, none left out, " in said


def test_the_model_that_was_evaluated_is_audited_on_what_it_was_asked(harness, tmp_path, capsys):
    """With the harness's own log and model, from the line to the verdicts."""
    source = one_file(harness, "samples_written_*")
    values = {"model": {"names": [str(harness.parents[1] / "model")]}}
    values |= {"replication": {"completion_tokens": 8}}
    values |= {"data": {"dataset": str(source), "task": "summary", "label_column": ""}}
    values |= {
        "n_instances": 8,
        "n_passages": 8,
        "n_resamples": 50,
        "comparison": "",
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    words = ["--settings", str(tmp_path / "mine.yaml"), "--output", str(tmp_path / "out")]
    code = command_line.main([*words, "--fail-on", "shown"])
    found = json.loads((tmp_path / "out/verdict.json").read_text())
    jsonschema.validate(found, json.loads((ROOT / "docs/verdict.schema.json").read_text()))
    assert code == int("shown" in [row["verdict"] for row in found["evidence"]])
    metrics = [(score["metric"], score["n"]) for score in found["evaluation"]]
    assert metrics == [("exact_match,strict", N), ("exact_match,plain", N)]
    assert {row["dataset"] for row in found["evidence"]} == {"written test"}
