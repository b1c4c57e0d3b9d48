"""An audit that is interrupted: its page has what was found, and says which parts are missing."""

import json

import pandas as pd
import pytest

from contamination.audit import auditing, command_line, page
from contamination.audit.finding import Target
from contamination.audit.prepared import DCQ, METHODS, MIN_K, REPLICATION, prepare
from contamination.audit.settings import Settings
from contamination.core.run import RunError, failed_tables
from contamination.core.storage import Outputs

SAMPLE = "params/audit/sample.jsonl"
WORDS = ["--model", "lab:contaminated", "lab:clean", "--data", SAMPLE, "--label", "label"]


def prepared():
    told = {"model": {"names": ["lab:contaminated", "lab:clean"]}, "data": {"dataset": SAMPLE}}
    return prepare(Settings.read(told | {"n_instances": 8, "n_passages": 8}))


def write_so_far(folder, by_model):
    """Tables of an audit in which some methods of some models were done, none of them run."""
    audit = prepared()
    outputs = Outputs()
    outputs._target = folder
    found = {}
    for name, methods in by_model.items():
        every = auditing.findings_of(audit, Target(name, None), (), 10)
        found[name] = {method: every[method] for method in methods}
    auditing.write_tables(outputs, audit, found, {})


def test_after_each_method_all_that_is_there_is_handed_on():
    kept = []
    keep = lambda so_far: kept.append(list(so_far))  # noqa: E731
    auditing.findings_of(prepared(), Target("lab:clean", None), (), 10, keep)
    assert kept == [list(METHODS[:n]) for n in range(1, len(METHODS) + 1)]


def test_missing_are_methods_without_a_row_of_every_model():
    evidence = pd.DataFrame({"model": ["a", "a"], "method": [DCQ, MIN_K]})
    missing = auditing.missing(["a", "b"], evidence)
    assert missing == {"a": [m for m in METHODS if m not in (DCQ, MIN_K)], "b": list(METHODS)}
    whole = pd.DataFrame({"model": "a", "method": METHODS})
    assert auditing.missing(["a"], whole) == {}


@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        (KeyboardInterrupt(), 130, "(by hand)"),
        (
            RunError("10_audit: stopped: <kernel> died"),
            2,
            "(10_audit: stopped: &lt;kernel&gt; died",
        ),
    ],
)
def test_the_page_of_an_interrupted_audit_names_what_is_missing(
    tmp_path, monkeypatch, capsys, error, code, why
):
    def interrupted(_, __, outputs, ___):
        folder = tmp_path / "staged"
        write_so_far(folder, {"lab:contaminated": METHODS, "lab:clean": [DCQ, REPLICATION]})
        target = failed_tables(outputs, "10_audit")
        target.parent.mkdir()
        (folder / "tables").rename(target)
        raise error

    monkeypatch.setattr(command_line, "run_notebook", interrupted)
    out = tmp_path / "out"
    assert command_line.main([*WORDS, "--rows", "8", "--output", str(out)]) == code
    assert f"what was found so far: {out / 'verdict.html'}" in capsys.readouterr().out
    text, said = (out / "verdict.html").read_text(), json.loads((out / "verdict.json").read_text())
    lacks = ", ".join(METHODS[2:])
    assert f"{why}" in text and f"This page lacks these parts: lab:clean: {lacks}." in text
    assert said["missing"] == {"lab:clean": list(METHODS[2:])}
    assert [row["model"] for row in said["verdicts"]] == ["lab:contaminated", "lab:clean"]


def test_where_nothing_was_found_the_page_says_so(tmp_path):
    stopped = page.Stopped("by hand", ["m"], tmp_path / "nowhere")
    counts = auditing.rows_table(prepared())
    file = page.write_verdict(tmp_path, {"dataset": "d"}, counts, stopped)
    assert "This page lacks these parts: m: every method." in file.read_text()


def test_the_page_of_a_whole_audit_speaks_of_no_missing_part(tmp_path):
    write_so_far(tmp_path, {"lab:clean": METHODS})
    file = page.write_verdict(tmp_path, {"dataset": "d"}, auditing.rows_table(prepared()))
    assert "interrupted" not in file.read_text()
    assert json.loads(file.with_suffix(".json").read_text())["missing"] == {}
