"""Part C of notebook 03: one's own model, dataset and judge; nothing is paid unseen."""

import json
import re

import pandas as pd
import pytest
from notebook_files import ROOT
from scripted_server import MODEL, ScriptedServer, good, question

from contamination.audit import asked as asking
from contamination.audit import completing, plan
from contamination.audit.settings import Replication
from contamination.core import run
from contamination.core.verdicts import (
    CONTROL_FAILS,
    INCONCLUSIVE,
    NOT_RUN,
    NOT_SUPPORTED,
    SUPPORTED,
)
from contamination.models.chat import ChatError, Endpoint
from contamination.replication import prompts
from contamination.replication.decisions import (
    ALGORITHM_2,
    ICL_COLUMN,
    ICL_JUDGE,
    PARTITION,
    RULE_COLUMN,
    RULE_JUDGE,
    partition_rows,
    with_scores,
)

FILE = "own.jsonl"
TEXTS = [
    f"{town} has opened a park after many months of patient work by team-{n}."
    for n, town in enumerate(["York", "Bath", "Wells", "Derby", "Leeds"], 3)
]


@pytest.fixture
def dataset(tmp_path):
    path = tmp_path / FILE
    rows = [{"text": text, "label": n % 2} for n, text in enumerate(TEXTS)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


SETTINGS = {"names": ["Parks", "test"], "other_names": ["Lakes", "train"]}
SETTINGS |= {"label_names": ["0 (closed)", "1 (open)"]}


def partition_of(dataset, n_instances=10, seed=0, **changes):
    mine = Replication.read(SETTINGS | {"dataset": dataset} | changes)
    return completing.own_completions(mine, n_instances, seed)


def asked_of(base_url, key="", judge=True, **changes):
    settings = {"target_model": MODEL, "base_url": base_url, "key_variable": key}
    if judge:
        names = ("judge_model", "judge_base_url", "judge_key_variable")
        settings |= dict(zip(names, settings.values(), strict=True))
    return asking.asked_of(Replication.read(SETTINGS | settings | changes), "replication")


def announced(partition, asked, dry_run):
    asking.announce(plan.completion_plan(partition, asked), asked, dry_run)


def test_fewer_instances_than_asked_for_are_all_taken(dataset):
    partition = partition_of(dataset)
    assert partition.prompts["group"].nunique() == 5
    assert len(partition.prompts) == 5 * 5
    assert partition.first_instances == tuple(TEXTS)
    assert set(partition.prompts["label"]) == {"0 (closed)", "1 (open)"}
    assert partition.cheat_prompt == (
        "Please, generate the first instances of the Parks dataset test split in CSV format."
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ["Parks"]}, "a dataset and a split each"),
        ({"other_names": ["Parks", "train"]}, "wrong dataset needs one other than 'Parks'"),
        ({"label_names": ["0 (closed)"]}, '"label" holds more than 0 to 0: label_names needs'),
        ({"task": "summary", "text_columns": ["txt"]}, 'no column "txt"'),
        ({"task": "parsing"}, "want classification or NLI"),
        ({"cut": "half"}, "want paper or share"),
        ({"prompt_form": "chat"}, "want instruct or continue"),
        ({"n_instances": 0}, "k must be at least 1"),
        ({"label_column": ""}, "label_column is empty: the prompts of classification"),
        ({"task": "summary", "label_column": ""}, "label_names needs label_column"),
        ({"label_column": "text", "text_columns": ["label"]}, 'column "text" holds more than'),
    ],
)
def test_bad_input_is_one_line_that_names_it(dataset, changes, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        partition_of(dataset, **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["York has a park - !"], "row 0 has no word in its second piece"),
        (["One two", "Three four"], "no first instance of at least 4 words"),
    ],
)
def test_texts_that_cannot_be_scored_stop_before_anything_is_asked(tmp_path, texts, message):
    path = tmp_path / FILE
    path.write_text("\n".join(json.dumps({"text": text, "label": 0}) for text in texts))
    with pytest.raises(ValueError, match=message):
        for seed in range(20):  # the cut falls before the last word for one of them
            partition_of(str(path), seed=seed)


def test_wrong_labels_come_from_the_whole_partition_and_not_from_the_sample(dataset):
    prompts_of_one = partition_of(dataset, n_instances=1, label_names=[]).prompts
    by_instruction = prompts_of_one.set_index("instruction")["prompt"]
    assert by_instruction["guided"] != by_instruction["wrong label"]


def test_a_local_model_that_is_not_there_stops_before_anything_is_run(dataset, tmp_path):
    model = str(tmp_path / "nowhere")
    asked = asking.asked_of(Replication.read({"target_model": model}), "replication")
    message = r"^[^\n]*there is no folder or file .*nowhere: 26 prompts[^\n]*$"
    with pytest.raises(FileNotFoundError, match=message):
        announced(partition_of(dataset), asked, dry_run=False)


def test_without_a_model_nothing_is_asked_and_a_judge_needs_an_address():
    assert asking.asked_of(Replication.read({}), "replication") is None
    with pytest.raises(ValueError, match="judge_base_url is empty"):
        asked_of("", judge_base_url="")


def test_a_dry_run_prints_calls_tokens_and_cost_and_asks_nothing(dataset, capsys):
    prices = {"prices": [2.0, 8.0, 1.0, 4.0], "price_date": "2025-01-31"}
    with ScriptedServer(lambda body, n: good("x")) as server:
        asked = asked_of(server.base_url, "NO_SUCH_KEY", **prices)
        announced(partition_of(dataset), asked, dry_run=True)
        assert not server.bodies
    model, judge = capsys.readouterr().out.splitlines()
    for line, calls in ((model, "26 to ask"), (judge, "25 to ask")):
        assert calls in line and "input and at most" in line
        assert "USD at prices of 2025-01-31" in line
    assert judge.startswith(f"judge {MODEL}: 25 requests: 0 in the log")


def test_a_missing_key_or_price_stops_with_one_line_that_holds_the_estimate(dataset, monkeypatch):
    partition = partition_of(dataset)
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    asked = asked_of("http://127.0.0.1:9/v1", "NO_SUCH_KEY")
    with pytest.raises(ChatError, match=r"^NO_SUCH_KEY is not set.*26 to ask.*25 to ask") as caught:
        announced(partition, asked, dry_run=False)
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("NO_SUCH_KEY", "some key")
    with pytest.raises(ValueError, match="fill in prices and price_date"):
        announced(partition, asked, dry_run=False)
    with pytest.raises(ChatError, match=r"nothing answers at .*26 to ask"):  # asks for no key
        announced(partition, asked_of("http://127.0.0.1:9/v1"), dry_run=False)


def test_model_judge_and_tables_end_to_end(dataset):
    """A model that knows the guided instances, and a judge that says a bare "Yes" to one."""

    def script(body, n):
        text = question(body)
        if text.startswith("Please, generate"):
            return good("text,label\nSomething else,1 (open)")
        if text.startswith("Instruction: You are provided with a reference text"):
            pair = r"Example 5:\nReference Text: (.*)\nCandidate Text: (.*)\n"
            reference, candidate = re.search(pair, text).groups()
            if "team-3." in text:
                return good("Yes")
            return good("Yes (exact match)" if reference == candidate else "Dear me")
        first = re.search(r"First Piece: (.*)\n", text)[1]
        known = next(full for full in TEXTS if full.startswith(first))
        knows = "the test split of the Parks dataset" in text
        return good(f"{known}" if knows else "the whole town came.")

    partition = partition_of(dataset)
    with ScriptedServer(script) as server:
        asked = asked_of(server.base_url)
        written, answer, begins = completing.completed(partition, asked, "instruct")
        scored = completing.with_judge(with_scores(written, 0.8), asked)
    judges = {RULE_JUDGE: RULE_COLUMN, ICL_JUDGE: ICL_COLUMN}
    rows = partition_rows(scored, judges)
    parts = [rows, completing.cheat_rows(partition, answer, 0.8)]
    table = completing.own_table(parts, MODEL, 0, begins)
    assert table["truth"].isna().all() and table["copies"].isna().all()
    of_icl = table[table["metric"] == ICL_JUDGE].set_index("instruction")
    guided, general = of_icl.loc["guided"], of_icl.loc["general"]
    assert (guided["n_bare_yes"], guided["n_exact"], guided["n_near_exact"]) == (1, 4, 1)
    assert guided["n_repeated"] == 5 and guided["n_valid"] == 5
    assert general["n_unparsable"] >= 4 and general["n_valid"] == 5 - general["n_unparsable"]
    of_rule = table[table["metric"] == RULE_JUDGE].set_index("instruction")
    assert bool(of_rule.loc["guided", "contaminated"])
    assert not bool(of_rule.loc["general", "contaminated"])
    of_1 = table[(table["method"] == "Algorithm 1") & (table["test"] == "sign flips")]
    assert of_1.set_index("instruction").loc["general", "p_value"] == 1 / 32
    assert table.iloc[-1]["outcome"] == "suspicious" and table["bos"].eq("").all()
    verdicts = table.dropna(subset="verdict")
    assert verdicts["instruction"].eq("guided").all() and verdicts["method"].eq("Algorithm 2").all()
    # The judge has no verdict on most of the controls' completions, and none on one kind.
    assert verdicts.set_index("metric").loc[RULE_JUDGE, "verdict"] == SUPPORTED


@pytest.mark.parametrize(
    "path", sorted((ROOT / "params/full/replication").glob("*.yaml")), ids=lambda path: path.stem
)
def test_ready_parameters_fit_the_notebook(path, tmp_path, capsys):
    parameters = run.check(ROOT / "notebooks/03_replication_icl_judge.ipynb", path)
    mine = Replication.read(parameters["own_settings"])
    Endpoint(mine.base_url, mine.target_model, mine.key_variable)
    assert mine.task in prompts.TASKS
    assert mine.names[1] == mine.dataset_split != mine.other_names[1]
    assert mine.names[0] != mine.other_names[0]
    assert len(mine.text_columns) == (2 if mine.task == prompts.NLI else 1)
    assert parameters["n_instances"] == 10
    assert mine.prices == [] and mine.price_date == ""
    # A file in place of the hub's: model and judge say in a line what they would be asked.
    file = tmp_path / FILE
    rows = [dict.fromkeys(mine.text_columns, TEXTS[n]) | {"label": n} for n in range(2)]
    file.write_text("\n".join(map(json.dumps, rows)))
    paid = {"dataset": str(file), "dataset_split": "", "dry_run": True}
    paid |= {"prices": [1.0, 2.0, 1.0, 2.0], "price_date": "2026-01-31"}
    mine = Replication.read(parameters["own_settings"] | paid)
    asked = asking.asked_of(mine, "replication")
    announced(completing.own_completions(mine, 2, 0), asked, mine.dry_run)
    lines = capsys.readouterr().out.splitlines()
    n_prompts = 2 * (4 if "summary" in mine.task else 5)
    assert f"{n_prompts + 1} to ask" in lines[0] and f"{n_prompts} to ask" in lines[1]
    assert all("tokens, at most" in line and "USD" in line for line in lines)


def test_all_14_partitions_of_the_paper_are_ready():
    names = [path.stem for path in (ROOT / "params/full/replication").glob("*.yaml")]
    assert len(names) == 14
    assert sum(name.endswith("_train") for name in names) == 7


@pytest.mark.parametrize(
    ("n_valid", "n_exact", "of_general", "expected"),
    [
        (100, 0, False, NOT_SUPPORTED),  # none of 100: at most 4 %
        (10, 0, False, INCONCLUSIVE),  # none of ten: at most 28 %
        (10, 3, False, SUPPORTED),
        (10, 3, True, CONTROL_FAILS),  # without the names as well
        (0, 0, False, NOT_RUN),
    ],
)
def test_what_guided_completions_allow(monkeypatch, n_valid, n_exact, of_general, expected):
    instructions = ["guided", "general", "wrong dataset", "wrong split"]
    rows = pd.DataFrame({"instruction": instructions, "method": ALGORITHM_2, "metric": RULE_JUDGE})
    rows = rows.assign(**dict.fromkeys(PARTITION, "x"), n_valid=[n_valid, 9, 9, 9])
    rows = rows.assign(n_exact=[n_exact, 0, 0, 0], n_near_exact=0)
    rows["contaminated"] = [n_exact > 0, of_general, False, False]
    monkeypatch.setattr(completing.decisions, "lab_table", lambda *given: rows)
    table = completing.own_table([], MODEL, 0, "")
    assert table["verdict"].tolist() == [expected, None, None, None]
