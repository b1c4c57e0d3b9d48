"""Faults of an audit's line: what is refused before any cost, and what an ended audit leaves."""

import pytest
import yaml
from notebook_files import ROOT

from contamination.audit import command_line, page, session
from contamination.audit.settings import Settings
from contamination.core import verdicts

CLEAN = ["--model", "lab:clean", "--data", "sample", "--rows", "8"]
SERVED = ["--model", "m", "--served-at", "http://127.0.0.1:9/v1", "--data", "sample"]


def audit(tmp_path, *words):
    return command_line.main([*words, "--output", str(tmp_path / "out")])


def test_the_folder_of_another_audit_is_left_alone(tmp_path, capsys):
    assert audit(tmp_path, *CLEAN, "--plan") == 0
    written = (tmp_path / "out/audit.yaml").read_bytes()
    others = ["--model", "lab:contaminated", "--data", "sample", "--rows", "8", "--plan"]
    assert audit(tmp_path, *others) == 2
    said = f'error: "{tmp_path}/out" holds an audit of lab:clean on params/audit/sample.jsonl: '
    assert capsys.readouterr().err == f"{said}name another folder with --output\n"
    assert (tmp_path / "out/audit.yaml").read_bytes() == written
    assert audit(tmp_path, *CLEAN, "--plan", "--methods", "dcq") == 0  # the same with less


@pytest.mark.parametrize("name", ["out", "out/results"])
def test_a_file_in_the_place_of_the_folder_is_named(tmp_path, name):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ValueError, match=r'out" is a file: name a folder .* with --output'):
        session.check_folder(tmp_path / name, Settings())


def test_another_split_is_another_audit(tmp_path):
    values = {"model": {"names": ["m"]}, "data": {"dataset": "owner/name", "split": "test"}}
    (tmp_path / "audit.yaml").write_text(yaml.safe_dump(values))
    session.check_folder(tmp_path, Settings.read(values))
    values["data"]["split"] = "train"
    with pytest.raises(ValueError, match="holds an audit of m on owner/name test"):
        session.check_folder(tmp_path, Settings.read(values))


@pytest.mark.parametrize("cap", ["0", "-1", "nan"])
def test_a_cap_of_nothing_is_refused(cap, capsys):
    with pytest.raises(SystemExit):
        command_line.main([*SERVED, "--cap", cap])
    assert "leave it out for no cap, or add --plan to pay nothing" in capsys.readouterr().err


def test_without_a_cap_none_is_set(tmp_path):
    assert audit(tmp_path, *SERVED, "--rows", "8", "--plan") == 0
    values = yaml.safe_load((tmp_path / "out/audit.yaml").read_text())
    assert "cost_cap" not in values["model"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*SERVED, "--key", "UNSET_API_KEY"], "error: UNSET_API_KEY is not set: export the key"),
        ([*CLEAN, "--prices", "1,2"], "model: prices would not be used, since nobody is paid"),
        ([*SERVED, "--prices", "1,2"], "with their price_date; got 2 and ''"),
        (["--model", "a/m", "b/m", "--data", "sample"], 'would both be called "m" in the tables'),
    ],
)
def test_keys_prices_and_names_are_checked_before_anything_is_written(
    tmp_path, capsys, words, said
):
    for folder in ("a", "b"):
        (tmp_path / folder / "m").mkdir(parents=True)
        (tmp_path / folder / "m/config.json").write_text("{}")
    words = [str(tmp_path / word) if word in ("a/m", "b/m") else word for word in words]
    assert audit(tmp_path, *words) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_prompts_call_the_data_as_it_was_named(tmp_path, capsys):
    assert audit(tmp_path, *CLEAN, "--plan", "--names", "Harbour News, train") == 0
    assert 'prompts call the data "Harbour News", split "train": ' in capsys.readouterr().out
    values = yaml.safe_load((tmp_path / "out/audit.yaml").read_text())
    assert values["data"]["names"] == ["Harbour News", "train"]
    assert audit(tmp_path, *CLEAN, "--plan", "--names", "Harbour News") == 2
    assert "must each list a dataset and a split" in capsys.readouterr().err


def test_a_plan_says_that_no_audit_was_run(tmp_path, capsys):
    assert audit(tmp_path, *CLEAN, "--plan") == 0
    assert capsys.readouterr().out.endswith("this was the plan; no audit was run\n")
    values = yaml.safe_load((tmp_path / "out/audit.yaml").read_text())
    (tmp_path / "dry.yaml").write_text(yaml.safe_dump(values | {"dry_run": True}))
    assert audit(tmp_path, "--settings", str(tmp_path / "dry.yaml")) == 0
    said = "no audit was run, because the settings say dry_run: true\n"
    assert capsys.readouterr().out.endswith(said)


def test_the_page_explains_each_verdict_that_it_has():
    assert {*page.MEANINGS} == {*verdicts.OF_AUDIT}
    help_ = (ROOT / "docs/verdicts.md").read_text()
    assert all(f"**{word}**" in help_ for word in page.MEANINGS)
