"""The papers' scale in notebook 10: their tables, their parameter files, a job of Appendix E."""

import json
import re
from collections import Counter

import pandas as pd
import pytest
from scripted_server import MODEL, ScriptedServer, good, question
from test_audit import prepared, table_of, tiny_folder, unchecked  # noqa: F401 (a fixture)

from contamination.audit import auditing, options, plan, quizzing
from contamination.audit.auditing import prepare
from contamination.audit.plan import DCQ, METHODS, MIN_K, REPLICATION
from contamination.audit.settings import Settings
from contamination.core import storage
from contamination.core.verdicts import (
    CONTROL_FAILS,
    NOT_RUN,
)
from contamination.data import partitions
from contamination.dcq import contaminating
from contamination.models.chat import ChatError
from contamination.replication.decisions import ALGORITHM_2, RULE_JUDGE

TOWNS = ["York", "Bath", "Wells", "Derby", "Leeds", "Hull", "Ely", "Truro"]
TEXTS = [
    f"{town} has opened a park after many months of patient work by team-{n}."
    for n, town in enumerate(TOWNS, 3)
]
PARKS = {"names": ["Parks", "test"], "other_names": ["Lakes", "train"]}
PARKS |= {"label_names": ["0 (closed)", "1 (open)"]}


def knowing(n_unknown=0):
    """A perturber, a judge, and a model that knows the instances under their right names."""
    asked_before, unknown = Counter(), [f"team-{n}." for n in range(3, 3 + n_unknown)]

    def script(body, n):
        text = question(body)
        if "Input Text" in text:
            number = re.search(r"team-\d+", text)[0]
            asked_before[number] += 1
            lines = f"text: a changed sentence {asked_before[number]} for {number}\nlabel: 9"
            return good("\n".join(f"{k}) {lines.replace('changed', k * 3)}" for k in "ABCD"))
        if "five-choice quiz" in text:
            for letter, option in zip("ABCD", re.split(r"\n[A-E]\) ", text)[1:5], strict=True):
                if "has opened" in option and not any(one in option for one in unknown):
                    return good(letter)
            return good("E")
        if text.startswith("Please, generate"):
            return good("text,label\nSomething else,1 (open)")
        if text.startswith("Instruction: You are provided with a reference text"):
            pair = r"Example 5:\nReference Text: (.*)\nCandidate Text: (.*)\n"
            reference, candidate = re.search(pair, text).groups()
            return good("Yes (exact match)" if reference == candidate else "No (inexact match)")
        first = re.search(r"First Piece: (.*)\n", text)[1]
        full = next(one for one in TEXTS if one.startswith(first))
        return good(full if "test split of the Parks dataset" in text else "the town came.")

    return script


@pytest.fixture
def parks(tmp_path, monkeypatch):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    path = tmp_path / "parks.jsonl"
    rows = [{"text": text, "label": n % 2} for n, text in enumerate(TEXTS)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def served(url, role=""):
    names = ("model", "base_url", "key_variable")
    return {f"{role}_{name}": value for name, value in zip(names, (MODEL, url, ""), strict=True)}


def audit_of(dataset, url, methods, blocks=None, names=(MODEL,), **data):
    model = {"names": list(names), "base_url": url, "key_variable": ""}
    model |= (blocks or {}).pop("model", {})
    told = {"methods": methods} | (blocks or {})
    return prepared(dataset, "", model, len(TEXTS), len(TEXTS), told, **PARKS | data)


def found_by(audit):
    return {
        target.name: auditing.findings_of(audit, target)
        for target in (auditing.target_of(audit, name) for name in audit.told.model.names)
    }


# DCQ


def test_the_quiz_of_the_paper_from_file_to_tables(parks, tmp_path):
    dcq = served("", "perturber") | {"second_perturbation": True}
    with ScriptedServer(knowing(n_unknown=2)) as server:
        dcq["perturber_base_url"] = server.base_url
        audit = audit_of(parks, server.base_url, ["dcq"], {"dcq": dcq})
        cost = plan.plan_table(audit).set_index("method")
        assert cost.loc[DCQ, "n_calls"] == 6 * 8  # as Figure 2 needs them
        assert cost.loc["options of the quizzes", "n_calls"] == 2 * 8
        assert cost.loc[cost["reason"].eq("not asked for")].index.tolist() == [*METHODS[1:]]
        found = found_by(audit)
        evidence = table_of(audit, found)
        assert evidence.loc[list(METHODS[1:]), "note"].eq("not asked for").all()
        assert evidence.loc[list(METHODS[1:]), "verdict"].eq(NOT_RUN).all()
        n_calls = len(server.bodies)
        tables = auditing.paper_tables(found)
        assert auditing.paper_tables(found_by(audit))["audit_dcq"].equals(tables["audit_dcq"])
        assert len(server.bodies) == n_calls
        # Two snapshots are two names, and the options that were written serve both.
        quizzes = tables["audit_dcq_quizzes"]
        storage.write_csv(tmp_path / "quizzes.csv", quizzes)
        later = {"text_columns": ["instance"], "label_column": "", "label_names": []}
        later |= {"task": "summary"}
        two = {"names": [MODEL, "another-2025-01-31"]}
        again = audit_of(str(tmp_path / "quizzes.csv"), server.base_url, ["dcq"], **two, **later)
        both = auditing.paper_tables(found_by(again))
    row = tables["audit_dcq"].iloc[0]
    assert (row["model"], row["dataset"], row["split"]) == (MODEL, "Parks", "test")
    assert (row["respondent"], row["bos"], row["max_pct"]) == ("chat", "", 75.0)
    assert row["n_asked"] == row["n_letters"] + row["n_none"] + row["n_unparsable"]
    assert quizzes["option_a"].str.contains(r"label: [01] \((?:closed|open)\)$").all()
    assert set(tables["audit_dcq_positions"]["quiz"]) == {
        *("modified", "standard", "second perturbation")
    }
    controls = tables["audit_dcq_controls"].set_index("control")
    assert controls["model_max_pct"].eq(75).all() and controls["n"].eq(8).all()
    assert len(tables["audit_dcq_answers"]) == row["n_asked"]
    assert both["audit_dcq"]["model"].tolist() == two["names"]
    assert both["audit_dcq"]["max_pct"].tolist() == [75.0, 75.0]
    same = ["instance", *partitions_options()]
    assert len(both["audit_dcq_quizzes"]) == len(quizzes)
    sort = both["audit_dcq_quizzes"].sort_values("instance")[same].to_numpy()
    assert (sort == quizzes.sort_values("instance")[same].to_numpy()).all()


def partitions_options():
    return [f"option_{letter}" for letter in "abcd"]


def test_options_that_look_like_formulas_come_back_as_they_were_written(tmp_path):
    table = pd.DataFrame(
        {"index": range(6), "instance": [f"text: Ship {n} came in." for n in "abcdef"]}
    )
    for k in "abcd":
        table[f"option_{k}"] = [f"- text: Boat {k}{n} came in." for n in range(6)]
    storage.write_csv(tmp_path / "options.csv", table)
    assert (tmp_path / "options.csv").read_text().count("'- ") == 24
    of_file = {"text_columns": ["instance"], "label_column": "", "task": "summary"}
    audit = prepared(str(tmp_path / "options.csv"), "", **of_file)
    quizzes, _ = options.quizzes_of(audit.rows, audit.told)
    assert set(quizzes["option_a"]) == set(table["option_a"])
    assert set(quizzes["instance"]) == set(table["instance"])


def test_a_job_needs_a_cap_and_reads_the_share_of_quizzed_instances_that_is_told(parks):
    def audit(url, told, **model):
        model = {"prices": [1.0, 2.0], "price_date": "2026-01-31", "cost_cap": 1.0} | model
        dcq = {"tuning_epochs": 1, "tuning_price": 1e6, "n_tuning_instances": 6} | told
        blocks = {"dcq": dcq, "model": model, "n_instances": 4}
        return audit_of(parks, url, ["dcq"], blocks)

    with ScriptedServer(knowing()) as server:
        with pytest.raises(ValueError, match="cost_cap"):
            quizzing.tuning_plan(audit(server.base_url, {}, cost_cap=0.0))
        for share, n_quizzed in ((0.0, 4), (50.0, 2)):
            told = audit(server.base_url, {"trained_share_pct": share})
            file, job = quizzing.tuning_plan(told)
            read = [json.loads(line)["messages"][1]["content"] for line in file.splitlines()]
            quizzed = told.quizzed[0].instances
            assert read[:n_quizzed] == quizzed[:n_quizzed] and job.n_examples == len(read) == 6
            assert set(read[n_quizzed:]).isdisjoint(quizzed) or share == 0
        with pytest.raises(ChatError, match="nothing was sent"):
            contaminating.start_training(
                told.told.endpoints[0], file, job, told.told.model.cost_cap
            )
        assert not server.bodies


def test_recall_and_precision_where_it_is_told_what_the_model_was_trained_on(parks):
    """The model knows six of eight instances; which four it was told to know chance decides."""
    dcq = served("", "perturber") | {"trained_share_pct": 50.0}
    with ScriptedServer(knowing(n_unknown=2)) as server:
        dcq["perturber_base_url"] = server.base_url
        audit = audit_of(parks, server.base_url, ["dcq"], {"dcq": dcq})
        row = auditing.paper_tables(found_by(audit))["audit_dcq"].iloc[0]
    trained = quizzing.trained_rows(audit).instances
    n_known = sum(not re.search(r"team-[34]\.", text) for text in trained)
    assert len(trained) == 4 and row["true_contamination_pct"] == 50
    assert row["recall_max_pct"] == 100 * n_known / 4
    assert row["precision_max_pct"] == pytest.approx(100 * n_known / 6)


# Replication


def test_completions_judge_and_first_instances_from_file_to_table(parks):
    told = served("", "judge") | {"first_instances": True}
    with ScriptedServer(knowing()) as server:
        told["judge_base_url"] = server.base_url
        audit = audit_of(parks, server.base_url, ["replication"], {"replication": told})
        cost = plan.plan_table(audit).set_index("method")
        assert cost.loc[REPLICATION, "n_calls"] == 5 * 8 + 1
        found = found_by(audit)
    table = auditing.paper_tables(found)["audit_replication"]
    of_2 = table[table["method"] == ALGORITHM_2].set_index(["metric", "instruction"])
    for judge in ("ICL judge", RULE_JUDGE):
        assert of_2.loc[(judge, "guided"), ["n_exact", "contaminated"]].tolist() == [8, True]
        assert not of_2.loc[(judge, "general"), "contaminated"]
    of_1 = table[(table["method"] == "Algorithm 1") & (table["test"] == "sign flips")]
    assert of_1.set_index("instruction").loc["general", "p_value"] == 1 / 256
    assert table.iloc[-1]["outcome"] == "suspicious" and table["bos"].eq("").all()
    assert table["truth"].isna().all() and table["copies"].isna().all()
    assert audit.rows.first == tuple(TEXTS)
    shown = auditing.paper_tables(found)["audit_completions"]
    assert (shown["rows"].eq("dataset") & shown["instruction"].eq("guided")).sum() == 8


def test_a_persons_labels_decide_next_to_the_judge(parks, tmp_path):
    """Two near-exact matches of eight: contaminated by the rule of Algorithm 2."""
    labels = pd.DataFrame({"index": range(8), "label": ["near-exact"] * 2 + ["inexact"] * 6})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    told = {"human_labels": str(tmp_path / "labels.csv")}
    with ScriptedServer(knowing()) as server:
        audit = audit_of(parks, server.base_url, ["replication"], {"replication": told})
        table = auditing.paper_tables(found_by(audit))["audit_replication"]
    of_2 = table[table["method"] == ALGORITHM_2].set_index(["metric", "instruction"])
    person = of_2.loc[("a person", "guided")]
    assert person["contaminated"] and person[["n_exact", "n_near_exact"]].tolist() == [0, 2]
    assert of_2.loc[("a person", "general"), "n_valid"] == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"index": 0, "mark": "exact"}], 'has no column "label"'),
        ([{"index": 0, "label": "yes"}], "write a number and one of"),
        ([{"index": 0, "label": "exact"}] * 2, "labels a row twice"),
    ],
)
def test_labels_that_do_not_fit_are_refused_before_anything_is_asked(parks, tmp_path, rows, said):
    pd.DataFrame(rows).to_csv(tmp_path / "labels.csv", index=False)
    told = {"human_labels": str(tmp_path / "labels.csv")}
    with ScriptedServer(knowing()) as server, pytest.raises(ValueError, match=said):
        audit_of(parks, server.base_url, ["replication"], {"replication": told})


def test_a_task_of_one_text_is_not_completed_from_several_columns(tmp_path):
    rows = [
        {"a": f"A large town {n}.", "b": "The children buy a small car.", "label": 0}
        for n in range(6)
    ]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    audit = prepared(str(tmp_path / "own.jsonl"), "", text_columns=["a", "b"])
    why = audit.reasons
    assert not why[DCQ] and audit.rows.instances[0].count("\n") == 2
    assert why[REPLICATION] == "prompts of classification hold one text, text_columns names 2"


def test_completed_instances_are_held_against_the_quiz_instance_by_instance(parks):
    """The model completes all eight and knows six of them in the quiz (Appendix C)."""
    dcq = served("", "perturber")
    with ScriptedServer(knowing(n_unknown=2)) as server:
        dcq["perturber_base_url"] = server.base_url
        audit = audit_of(parks, server.base_url, ["dcq", "replication"], {"dcq": dcq})
        row = auditing.paper_tables(found_by(audit))["audit_reciprocal"].iloc[0]
    assert (row["n"], row["n_replicas"], row["n_right_best_quiz"]) == (8, 8, 6)
    assert row["expected_if_independent"] == 6


# Min-k% Prob


def labelled(path, n=24):
    """Members and non-members, which the word "day" tells apart."""
    rows = [
        {"input": f"Harbour town {n} woke {'by day' if n % 2 else 'by night'} {n}.", "label": n % 2}
        for n in range(n)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return {"text_columns": ["input"], "label_column": "", "task": "summary"}


@pytest.mark.usefixtures("unchecked")
def test_a_labelled_file_gives_every_score_beside_the_words_alone(tiny_folder, tmp_path):  # noqa: F811
    folder = str(tiny_folder)
    data = labelled(tmp_path / "own.jsonl") | {"member_column": "label"}
    blocks = {"methods": ["min_k"]}
    blocks["min_k"] = {"all_methods": True, "reference_model": folder, "k_percent": 30.0}
    audit = prepared(str(tmp_path / "own.jsonl"), "", {"names": [folder]}, 8, 100, blocks, **data)
    assert (len(audit.rows.rows), len(audit.unseen.rows)) == (12, 12)
    assert audit.refusal and not audit.reasons[MIN_K]  # scored beside the words
    target = auditing.target_of(audit, folder)
    found = {target.name: auditing.findings_of(audit, target)}
    evidence = table_of(audit, found)
    tables = auditing.paper_tables(found)
    scores = tables["audit_min_k"].set_index("method")
    assert {"PPL", "Zlib", "Lowercase", "Smaller Ref", "Min-k% Prob"} <= set(scores.index)
    assert scores["n_members"].eq(12).all() and scores["bos"].eq("none").all()
    assert scores["benchmark"].eq("own.jsonl").all()
    assert scores.loc["Min-k% Prob", "k_percent"] == 30
    assert evidence.loc[MIN_K, "verdict"] == CONTROL_FAILS
    assert evidence.loc[MIN_K, "statistic"] == "AUC, k = 30 %"
    assert tables["audit_min_k_words"]["holds"].eq(False).any()


@pytest.mark.usefixtures("unchecked")
def test_splits_are_scored_one_by_one_and_the_first_is_the_audit_s(
    tiny_folder,  # noqa: F811
    tmp_path,
    monkeypatch,
):
    labelled(tmp_path / "short.jsonl"), labelled(tmp_path / "long.jsonl", 32)
    load = partitions.load_rows
    by_split = {split: load(str(tmp_path / f"{split}.jsonl")) for split in ("short", "long")}
    monkeypatch.setattr(partitions, "load_rows", lambda source, split, *_: by_split[split])
    data = {"splits": ["short", "long"], "member_column": "label"}
    data |= {"text_columns": ["input"], "label_column": "", "task": "summary"}
    blocks = {"methods": ["min_k"], "min_k": {"all_methods": True}}
    model = {"names": [str(tiny_folder)]}
    audit = prepared("owner/name", "", model, 8, 100, blocks, **data)
    found = found_by(audit)
    scores = auditing.paper_tables(found)["audit_min_k"].groupby("benchmark", sort=False)
    assert scores["n_members"].first().to_dict() == {
        "owner/name short": 12,
        "owner/name long": 16,
    }
    assert table_of(audit, found).loc[MIN_K, ["n", "n_comparison"]].tolist() == [12, 12]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": {"member_column": "lable"}}, 'no column "lable"'),
        ({"data": {"member_column": "input"}}, "write 1, true or"),
        ({"comparison": "other.jsonl"}, "marks the comparison rows"),
        ({"data": {"split": "a", "splits": ["b"]}}, "split names one split"),
        ({"methods": ["dqc"]}, "want dcq or replication or ranking or min_k"),
        ({"dcq": {"perturber_model": "p"}}, "perturber_base_url is empty"),
        ({"replication": {"judge_model": "j"}}, "judge_base_url is empty"),
        ({"replication": {"cut": "half"}}, "want paper or share"),
        ({"min_k": {"k_percent": 0.0}}, "want above 0 to 100"),
        ({"model": {"dtype": "int8"}}, "want float32 or bfloat16 or float16 or native"),
        ({"data": {"task": "NLI"}}, "NLI needs 2 text_columns"),
    ],
)
def test_what_does_not_fit_is_one_line_that_names_it(tmp_path, change, message):
    data = labelled(tmp_path / "own.jsonl") | {"dataset": str(tmp_path / "own.jsonl")}
    data |= {"member_column": "label"}
    values = {"model": {"names": ["lab:clean"]}, "data": data} | change
    for block in ("model", "data"):
        values[block] = {"model": {"names": ["lab:clean"]}, "data": data}[block] | values[block]
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        prepare(Settings.read(values))
    assert "\n" not in str(caught.value)


# The layout of prompts


@pytest.mark.parametrize("method", [DCQ, REPLICATION])
def test_the_layout_changes_what_is_asked_and_nothing_else(method, tmp_path):
    data = labelled(tmp_path / "own.jsonl") | {"dataset": str(tmp_path / "own.jsonl")}
    values = {"model": {"names": ["m"], "base_url": "http://127.0.0.1:9/v1", "key_variable": ""}}
    values |= {"data": data | {"label_column": ""}, "n_instances": 4}
    values["data"]["task"] = "summary"
    helper = {"perturber_model": "p", "perturber_base_url": "http://127.0.0.1:9/v1"}
    helper |= {"perturber_key_variable": ""}
    judge = {name.replace("perturber", "judge"): value for name, value in helper.items()}
    asked = []
    for layout in ("paper", "released"):
        blocks = {"dcq": helper | {"layout": layout}, "replication": judge | {"layout": layout}}
        audit = prepare(Settings.read(values | blocks))
        batches = plan.batches_of(audit, audit.told.endpoints[0])
        purposes = {DCQ: (DCQ, "options of the quizzes"), REPLICATION: (REPLICATION, "ICL judge")}
        asked.append([r for name, _, rs, _ in batches if name in purposes[method] for r in rs])
    paper, released = ([one.messages[0]["content"] for one in texts] for texts in asked)
    assert len(paper) == len(released) and not set(paper) & set(released)
    assert all("---\n" in text or text.startswith("INSTRUCTION:\n") for text in released)
