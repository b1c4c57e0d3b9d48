"""An audit inside an evaluation: exit codes, logs as data, verdict.json."""

import json
import re
import shlex
from dataclasses import replace

import jsonschema
import pytest
import yaml
from made_logs import ASKED, harness_log, inspect_log
from notebook_files import ROOT
from tiny_models import saved, tiny_llama

from contamination.audit import auditing, command_line, page, plan
from contamination.audit.finding import Finding, Target
from contamination.audit.settings import Data
from contamination.core import verdicts
from contamination.lab.tokenizer import train_tokenizer

SCHEMA = json.loads((ROOT / "docs/verdict.schema.json").read_text())
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def line(tmp_path, *words):
    return command_line.main([*words, "--output", str(tmp_path / "out")])


@pytest.fixture
def ends_in(monkeypatch):
    """An audit whose methods end in verdicts that are given beforehand."""
    decide_all = auditing.decide_all

    def given(*words):
        def run(audit, found, targets, *_):
            print("progress")
            targets["lab:clean"] = Target("lab:clean", None)
            found["lab:clean"] = {name: Finding(why_not="x") for name in plan.METHODS}
            return []

        def decided(*arguments):
            (one,) = decide_all(*arguments).values()
            every = [*words, *["not run"] * 4][:4]
            word = next(one for one in verdicts.OF_AUDIT if one in words)
            known = {"word": word, "says": f"lab:clean: {word}."}
            return {"lab:clean": replace(one, methods=one.methods.assign(verdict=every), **known)}

        monkeypatch.setattr(auditing, "run", run)
        monkeypatch.setattr(auditing, "decide_all", decided)

    return given


WORDS = ["--model", "lab:clean", "--rows", "6"]


@pytest.mark.parametrize(
    ("fail_on", "found", "code"),
    [
        ([], ["shown"], 0),
        (["shown"], ["open", "shown"], 1),
        (["open"], ["open", "shown"], 0),  # one verdict, the one of the headline
        (["shown"], ["open", "control fails", "not run"], 0),
        (["shown", "control fails"], ["not run", "control fails"], 1),
    ],
)
def test_the_exit_code_says_whether_a_verdict_is_one_of_the_words(
    tmp_path, ends_in, fail_on, found, code
):
    ends_in(*found)
    words = ["--fail-on", *fail_on] if fail_on else []
    assert line(tmp_path, *WORDS, "--data", "sample", *words) == code
    assert (tmp_path / "out/verdict.html").exists()


def test_a_word_that_is_no_verdict_is_refused_and_an_error_is_told_from_a_verdict(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        line(tmp_path, *WORDS, "--data", "sample", "--fail-on", "suported")
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and all(word in said for word in verdicts.OF_AUDIT)
    assert line(tmp_path, *WORDS, "--data", "none.jsonl", "--fail-on", "shown") == 2


def test_a_log_of_an_evaluation_is_planned_under_the_name_of_its_task(tmp_path, capsys):
    source = harness_log(tmp_path)
    assert line(tmp_path, *WORDS, "--data", source, "--plan") == 0
    first, second, third = capsys.readouterr().out.splitlines()[:3]
    assert first.startswith(f"{source}: a log of lm-evaluation-harness, task harbour and model ")
    assert second == 'the text is the column "question": --text names another one'
    assert third == f"{source}: 6 rows, none left out, 6 used"
    data = yaml.safe_load((tmp_path / "out/audit.yaml").read_text())["data"]
    assert data["names"] == ["harbour", "validation"] and data["text_columns"] == ["question"]
    words = ["--data", source, "--text", "question,target"]  # other columns of the dataset or log
    assert line(tmp_path, *WORDS, *words, "--plan") == 0


def test_placebos_name_no_split_of_the_log(tmp_path):
    source = harness_log(tmp_path)
    results = next(tmp_path.glob("results_*.json"))
    results.write_text(results.read_text().replace('"validation"', '"train"'))
    assert line(tmp_path, *WORDS, "--data", source, "--plan") == 0
    data = yaml.safe_load((tmp_path / "out/audit.yaml").read_text())["data"]
    assert data["names"] == ["harbour", "train"]
    assert Data.read(data, "data").wrongly_called[1] != "train"


def test_an_audit_of_a_log_shows_the_score_that_the_log_states(tmp_path, ends_in):
    ends_in("shown")
    assert line(tmp_path, *WORDS, "--data", inspect_log(tmp_path)) == 0
    text = (tmp_path / "out/verdict.html").read_text()
    assert "The mean score of the samples in the log" in text
    assert ">match<" in text and ">0.33<" in text and ">6<" in text
    found = json.loads((tmp_path / "out/verdict.json").read_text())
    CHECK.validate(found)
    (score,) = found["evaluation"]
    assert (score["tool"], score["n"], score["model"]) == ("Inspect", 6, "some/model")
    assert found["evidence"][0]["dataset"] == "harbour test"


# verdict.json


@pytest.mark.usefixtures("one_thread")
def test_what_a_real_audit_writes_fits_the_schema(tmp_path):
    """An untrained model of two blocks."""
    tokenizer = train_tokenizer(ASKED, vocabulary=300)
    (tmp_path / "tiny").mkdir()
    saved(tmp_path / "tiny", tiny_llama(tokenizer, context=1024), tokenizer)
    others = [{"question": f"Which train left station {k} at noon today?"} for k in range(6)]
    (tmp_path / "others.jsonl").write_text("".join(json.dumps(row) + "\n" for row in others))
    values = {"model": {"names": [str(tmp_path / "tiny")]}}
    values |= {"replication": {"completion_tokens": 8}}
    values |= {"data": {"dataset": harness_log(tmp_path), "task": "summary", "label_column": ""}}
    values |= {"comparison": str(tmp_path / "others.jsonl"), "n_instances": 6, "n_passages": 6}
    values |= {"n_resamples": 50}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    assert line(tmp_path, "--settings", str(tmp_path / "mine.yaml")) == 0
    found = json.loads((tmp_path / "out/verdict.json").read_text())
    CHECK.validate(found)
    assert (
        found["schema_version"]
        == page.SCHEMA_VERSION
        == SCHEMA["properties"]["schema_version"]["const"]
    )
    assert {row["method"] for row in found["evidence"]} == {*plan.METHODS}
    assert found["text_alone"] and found["evaluation"]
    ((model,), (name, inputs)) = found["models"], next(iter(found["files"].items()))
    assert model["weights"].startswith("sha256:") and model["why_none"] == ""
    assert len(inputs) == 64 and name.endswith(".jsonl")
    has_list = found["lists"][0]["n_listed"] is not None
    assert len(found["scores_by_list"]) == 3 * has_list


def test_the_schema_describes_every_field_of_every_table_and_refuses_other_words(tmp_path, ends_in):
    CHECK.check_schema(SCHEMA)
    ends_in("shown")
    line(tmp_path, *WORDS, "--data", "sample")
    found = json.loads((tmp_path / "out/verdict.json").read_text())
    assert {*found} == {*SCHEMA["properties"]} == {*SCHEMA["required"]}
    assert SCHEMA["$defs"]["method"]["enum"] == list(plan.METHODS)
    row = SCHEMA["properties"]["evidence"]["items"]["properties"]
    assert row["verdict"]["enum"] == list(verdicts.OF_AUDIT)
    found["evidence"][0]["verdict"] = "seen"
    assert not CHECK.is_valid(found)


# The page about it

PAGE = (ROOT / "docs/audit.md").read_text().partition("\n## An audit in your evaluation\n")[2]


def test_the_workflow_of_the_page_is_yaml_whose_line_the_audit_takes():
    (block,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
    steps = yaml.safe_load(block)["jobs"]["evaluate"]["steps"]
    (given,) = [step["with"] for step in steps if step.get("uses") == "./contamination"]
    assert {*given} <= {*yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]}
    told = command_line.parse_options(
        shlex.split(given["arguments"].replace("${{ ", "").replace(" }}", ""))
    )
    assert told.model and told.data and told.unseen and given["fail-on"] in verdicts.OF_AUDIT


def test_the_page_names_fields_and_codes_as_they_are(tmp_path, ends_in, monkeypatch):
    known = {*command_line.parser()._option_string_actions}
    elsewhere = {"--log_samples", "--log-format", "--model_args", "--tasks", "--output_path"}
    assert {*re.findall(r"--[a-z][a-z_-]+", PAGE)} <= known | elsewhere
    table = PAGE.split("## How to read verdict.json")[1].split("\n\n```python")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named | {"schema_version"} == {*SCHEMA["properties"]}
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.M)]
    assert codes == [0, command_line.FOUND, command_line.ERROR, command_line.INTERRUPTED]
    # The lines of Python that the page shows.
    ends_in("shown")
    monkeypatch.chdir(tmp_path)
    words = ["--data", inspect_log(tmp_path), "--output", "contamination-audit"]
    assert command_line.main([*WORDS, *words]) == 0
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    names = {"json": json}
    exec(block, names)  # noqa: S102
    assert names["verdicts"] == {"lab:clean": "shown"}
    assert names["scores"] == {("harbour", "match"): (pytest.approx(1 / 3), 6)}
