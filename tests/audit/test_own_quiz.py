"""One's own model and partition in notebook 02: quizzes, levels, controls, a job, checks first."""

import json

import pandas as pd
import pytest
import yaml
from notebook_files import ROOT
from scripted_server import MODEL, ScriptedServer, good, question

from contamination.audit import asked as asking
from contamination.audit import options, plan, quizzing
from contamination.audit.settings import Quiz
from contamination.core import claims, run, storage
from contamination.core.verdicts import CONTROL_FAILS, SUPPORTED
from contamination.data import published
from contamination.dcq import contaminating
from contamination.dcq.respondents import Stated
from contamination.models.chat import ChatError

STATED = Stated((1, 1, 1, 1), 1.0, 0.5)
KEY = "key-that-nothing-may-show-0123456789"


def table_of(n):
    names = {"instance": "o", **{f"option_{k}": k for k in "abcd"}, "fifth": "f"}
    texts = {name: [f"{k}{i}\nlabel: {i % 2}" for i in range(n)] for name, k in names.items()}
    return pd.DataFrame({"index": range(n), **texts})


@pytest.fixture
def here(monkeypatch, tmp_path):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"text": f"original {i}", "label": i % 2}) for i in range(6)]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    return tmp_path


def announced(partition, asked, dry_run=False):
    asking.announce(plan.quiz_plan(partition, asked), asked, dry_run)


OWN = {"dataset": "own.jsonl", "names": ["Own", "test"], "label_names": ["0 (no)", "1 (yes)"]}
OWN |= {"n_instances": 4, "perturber_model": MODEL}
OWN |= {"key_variable": "SCRIPTED_KEY", "perturber_key_variable": "SCRIPTED_KEY"}
OWN |= {"prices": [1.0, 2.0], "price_date": "2026-01-31", "cost_cap": 1.0, "target_model": MODEL}


def mine_of(url="http://127.0.0.1:1/v1", **changes):
    return Quiz.read(OWN | {"base_url": url, "perturber_base_url": url} | changes)


def asked_of(url="http://127.0.0.1:1/v1", **changes):
    return asking.asked_of(mine_of(url, **changes), "dcq Own test")


def partition_of(**changes):
    return quizzing.own_quiz(mine_of(**changes), 0)


def own_script(body, n):
    """Perturbs, then answers B wherever an original stands there and E elsewhere."""
    asked = question(body)
    if "Input Text" in asked:
        number = asked.partition("text: original ")[2][0]
        lines = "\n".join(f"{k}) text: changed {k} {n} {number}\nlabel: 9" for k in "ABCD")
        return good(lines)
    return good("B" if "B) text: original" in asked else "E")


def test_a_model_of_ones_own_from_file_to_level(here, capsys):
    with ScriptedServer(own_script) as server:
        asked = asked_of(server.base_url)
        partition = partition_of()
        announced(partition, asked)
        plan = capsys.readouterr().out
        assert "8 requests: 0 in the log, 8 to ask" in plan
        assert "24 requests: 0 in the log, 24 to ask" in plan
        assert not server.bodies
        quizzes, counts = quizzing.quizzes_and_counts(partition, asked)
        assert quizzes["option_a"].str.contains(r"label: [01] \((?:no|yes)\)$").all()
        assert counts["is_complete"].all()
        how = "chat", STATED, 20
        answers, levels = quizzing.taken_quizzes(partition, asked, quizzes, *how)
        row = levels.iloc[0]
        assert (row["model"], row["max_pct"], row["n_letters"]) == (MODEL, 100.0, 4)
        assert row["bos"] == ""
        positions = quizzing.answered_positions(answers, partition)
        assert set(positions["quiz"]) == {"modified", "standard", "second perturbation"}
        rules = quizzing.rules_beside(quizzes, levels).set_index("control")
        assert rules["model_max_pct"].eq(100).all() and rules["n"].eq(4).all()
        # "original 3" has two words of "changed a 3 0"; it is the shorter one, never chosen.
        assert rules.loc["length", "max_pct"] == 0
        assert rules.loc["length", "holds"] and "verdict" not in rules
        # Four of four are at least 0.51, none of four at most 0.49.
        length = rules.loc[["length"]].reset_index()
        assert quizzing.with_verdict(levels, length)["verdict"].tolist() == [SUPPORTED]
        lower = levels.assign(max_pct=50.0, ci_low_pct=10.0)
        assert quizzing.with_verdict(lower, length)["verdict"].tolist() != [SUPPORTED]
        lucky = length.assign(control="lucky", ci_low_pct=50.0, ci_high_pct=100.0)
        lucky = pd.concat([length, lucky])
        judged = quizzing.with_verdict(levels, lucky).iloc[0]
        assert (judged["strongest_rule"], judged["verdict"]) == ("lucky", CONTROL_FAILS)
        claims.check_table(quizzing.with_verdict(levels, lucky), "dcq_own")
        n_calls = len(server.bodies)
        again = quizzing.quizzes_and_counts(partition, asked)[0]
        quizzing.taken_quizzes(partition, asked, again, *how)
        assert len(server.bodies) == n_calls
        # The options serve another model, and no perturber is asked again.
        storage.write_csv(here / "options.csv", quizzes)
        later = {"options_file": "options.csv", "perturber_model": ""}
        again = partition_of(**later)
        later = asked_of(server.base_url, target_model="another-2025-01-31", **later)
        announced(again, later)
        given, _ = quizzing.quizzes_and_counts(again, later)
        assert given["instance"].tolist() == quizzes["instance"].tolist()


def test_a_job_needs_a_cap_and_reads_the_quizzed_instances_first(here):
    with ScriptedServer(own_script) as server:
        partition = partition_of()
        with pytest.raises(ValueError, match="cost_cap"):
            quizzing.plan_tuning(partition, asked_of(server.base_url, cost_cap=0.0), mine_of(), 0)
        asked = asked_of(server.base_url)
        mine = mine_of(n_tuning_instances=5, tuning_epochs=1, tuning_price=1e6)
        file, job = quizzing.plan_tuning(partition, asked, mine, 0)
        read = [json.loads(line)["messages"][1]["content"] for line in file.splitlines()]
        assert job.n_examples == 5 and read[:4] == partition.rows.instances
        with pytest.raises(ChatError, match="nothing was sent"):
            contaminating.start_training(asked.endpoints[0], file, job, asked.cap)
        assert not server.bodies


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"respondent": "oracle"}, "want chat or instruct or base"),
        ({"respondent": "base"}, "a local model .* has none"),
        ({"perturber_base_url": ""}, "perturber_base_url is empty"),
        ({"prices": [1.0]}, "2 or 4 numbers"),
        ({"price_date": ""}, "with price_date"),
        ({"prices": [-1.0, 2.0]}, "want 0 or more"),
        ({"cost_cap": -1.0}, "want 0 or more"),
        ({"answer_tokens": 0}, "want 1 to 100000"),
        ({"limit_option": "max_length"}, "want max_tokens or max_completion_tokens"),
        ({"second_model": MODEL}, "second_model is target_model"),
    ],
)
def test_who_is_asked_is_checked_first(changes, message):
    with pytest.raises(ValueError, match=message):
        asked_of(**changes)


def test_no_model_is_no_question():
    assert asked_of(target_model="") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ["Own"]}, "names holds the dataset and the split"),
        ({"label_names": ["0 (no)"]}, "holds more than 0 to 0"),
        ({"label_columns": ["topic"], "label_names": []}, "label_columns not among columns: topic"),
        ({"n_instances": 0}, "want 1 to 100000"),
        ({"columns": ["label"]}, "nothing but labels"),
        ({"columns": ["txt"], "label_columns": [], "label_names": []}, "did you mean"),
    ],
)
def test_what_is_asked_is_checked_first(here, changes, message):
    with pytest.raises(ValueError, match=message):
        partition_of(**changes)
    with pytest.raises(ValueError, match="dataset and options_file are empty"):
        partition_of(dataset="")


def test_options_that_hold_the_original_or_an_empty_text_are_refused(here):
    table = table_of(3)
    wild = table.assign(option_d=table["instance"])
    table.loc[1, "option_b"] = None
    for bad, message in ((wild, "there is no modified quiz"), (table, "1 of 3 rows lack a text")):
        storage.write_csv(here / "options.csv", bad)
        with pytest.raises(ValueError, match=message):
            partition_of(options_file="options.csv")


def test_options_that_look_like_formulas_come_back_as_they_were_written(here):
    table = table_of(3)
    table["option_a"] = "- " + table["option_a"]
    storage.write_csv(here / "options.csv", table)
    assert (here / "options.csv").read_text().count("'- ") == 3
    assert options.read_options("options.csv")["option_a"].tolist() == table["option_a"].tolist()


def test_a_missing_key_price_or_perturber_stops_at_once(here, monkeypatch):
    partition = partition_of()
    asked = asked_of(prices=[], price_date="", cost_cap=0.0)
    announced(partition, asked, dry_run=True)
    with pytest.raises(ValueError, match=r"no price for .* requests") as raised:
        announced(partition, asked)
    assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match="perturber_model is empty"):
        partition_of(perturber_model="")
    monkeypatch.delenv("SCRIPTED_KEY")
    with pytest.raises(ChatError, match="SCRIPTED_KEY is not set"):
        announced(partition, asked_of())


@pytest.mark.parametrize(
    "path", sorted((ROOT / "params/full/dcq").glob("*.yaml")), ids=lambda path: path.stem
)
def test_the_papers_partitions_are_ready(path, here, capsys):
    values = run.check(ROOT / "notebooks/02_dcq.ipynb", path)["own_settings"]
    mine = Quiz.read(values)
    assert set(mine.label_columns) <= set(mine.columns)
    released = published.released_instances("DCQ")
    known = released[released["dataset"] == mine.names[0]]
    assert known["split"].unique().tolist() == [mine.names[1]]
    assert mine.prices == [] and mine.price_date == ""
    # A file in place of the hub's: two instances, and two lines that say what would be asked.
    texts = set(mine.columns) - set(mine.label_columns)
    rows = [dict.fromkeys(texts, f"some words {n}") | {"label": n} for n in range(2)]
    (here / "hub.jsonl").write_text("\n".join(map(json.dumps, rows)))
    paid = {"dataset": "hub.jsonl", "dataset_split": "", "dry_run": True}
    paid |= {"prices": [1.0, 2.0], "price_date": "2026-01-31"}
    mine = Quiz.read(values | paid)
    asked = asking.asked_of(mine, "dcq")
    announced(quizzing.own_quiz(mine, 0), asked, mine.dry_run)
    writer, model = capsys.readouterr().out.splitlines()
    assert "4 to ask" in writer and "12 to ask" in model
    assert all("tokens, at most" in line and "USD" in line for line in (writer, model))


def test_all_ten_partitions_are_there():
    found = {
        yaml.safe_load(path.read_text())["own_settings"]["names"][0]
        for path in (ROOT / "params/full/dcq").glob("*.yaml")
    }
    assert found == set(published.DCQ_DATASETS)


@pytest.mark.parametrize("share, interval", [(0, (0, 0.49)), (100, (0.51, 1))])
def test_answers_that_are_all_alike_have_an_interval_with_a_width(share, interval):
    level = {"max_pct": share, "ci_low_pct": share, "ci_high_pct": share, "n": 4}
    assert quizzing.shares_of(level) == pytest.approx((share / 100, *interval), abs=0.005)
    assert quizzing.shares_of(level | {"ci_low_pct": 20, "ci_high_pct": 60})[1:] == (0.2, 0.6)
