"""Templates of the papers' experiments: each line of the tables is planned as it would be run."""

import io
import json
import os
import re
import subprocess
import sys

import pandas as pd
import pytest
import yaml
from hub_server import HubServer
from notebook_files import ROOT
from scripted_server import ScriptedServer, good

from contamination import __main__ as command
from contamination.audit.settings import Settings
from contamination.core import run
from contamination.data import published
from contamination.papers.settings import filled_in
from contamination.replication.instructions import LABELLED_TASKS

FULL = ROOT / "params/full"
DATASETS, MODELS = (
    pd.read_csv(FULL / f"{name}.csv", dtype=str, keep_default_na=False)
    for name in ("datasets", "models")
)
NOTEBOOK_10 = ("dcq", "dcq_contaminated", "dcq_replication", "replication", "min_k")


def experiments(table, template):
    return [
        line for line, said in table[["line", "templates"]].to_numpy() if template in said.split()
    ]


EXPERIMENTS = [
    (template, line) for template in NOTEBOOK_10 for line in experiments(DATASETS, template)
]


def settings(template, *lines):
    return yaml.safe_load(filled_in(FULL / f"{template}.yaml", lines))


# The tables


def test_the_papers_partitions_and_models_are_all_there():
    released = published.released_instances("DCQ")[["dataset", "split"]].drop_duplicates()
    known = {tuple(row) for row in released.itertuples(index=False)}

    def partitions(template):
        names = DATASETS[DATASETS["line"].isin(experiments(DATASETS, template))]
        return {tuple(row) for row in names[["dataset_name", "split_name"]].to_numpy()}

    # Figure 2 and Appendix A, of which nothing is released, on top.
    assert partitions("dcq") == known | {("AG News", "train"), ("WNLI", "train"), ("IMDB", "train")}
    assert partitions("dcq_replication") == known
    assert partitions("dcq_contaminated") == {
        ("MeetingBank", "train"),
        ("AuTexTification", "train"),
    }
    cells = published.printed_cells().query("paper == 'Time Travel' and table == 'Table 2'")
    printed = cells[["dataset", "split"]].drop_duplicates()
    assert partitions("replication") == {tuple(row) for row in printed.to_numpy()}
    cells = published.printed_cells().query("paper == 'Min-k% Prob' and table == 'Table 1'")
    assert {*cells["model"]} - {"average"} <= {*MODELS["printed_as"]}
    assert DATASETS["line"].is_unique and MODELS["line"].is_unique


def test_what_is_not_of_every_dataset_is_that_of_the_released_scripts():
    values = {
        line: settings("dcq_replication", line) for line in experiments(DATASETS, "dcq_replication")
    }
    assert values["humaneval_test"]["n_instances"] == 164
    assert {of["data"]["task"] for of in values.values()} == {
        *("classification", "NLI", "summary", "one-sentence summary", "code", "question")
    }
    words = {line: values[line]["data"]["task"] for line in ("humaneval_test", "drop_validation")}
    assert words == {"humaneval_test": "code", "drop_validation": "question"}
    assert settings("replication", "rte_train")["data"]["label_names"] == [
        *("1 (entailment)", "0 (not entailment)")
    ]
    for line in experiments(DATASETS, "min_k"):
        data = settings("min_k", line, "pythia-2.8b")
        seen, unseen = data["data"]["dataset"], data["comparison"]
        is_mimir = line.startswith("mimir")
        assert unseen == (seen.replace("/train/", "/test/") if is_mimir else "")
        assert data["data"]["member_column"] == ("" if is_mimir else "label")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dcq.yaml", "imbd_test"], 'no line "imbd_test" for dcq.yaml: choose from imdb_train'),
        (["dcq.yaml", "yelp_train"], 'no line "yelp_train" for dcq.yaml'),
        (["min_k.yaml", "wikimia"], "min_k.yaml needs a line of models.csv too"),
        (["min_k.yaml", "opt-66b"], "min_k.yaml needs a line of datasets.csv too"),
        (["nosuch.yaml", "imdb_test"], "no line"),
    ],
)
def test_a_line_that_is_not_there_is_refused_with_those_that_are(capsys, words, said):
    assert command.main(["settings", str(FULL / words[0]), *words[1:]]) == 2
    printed = capsys.readouterr().err
    assert said in printed and printed.count("\n") == 1


def test_the_command_prints_what_the_audit_reads(capsys):
    assert command.main(["settings", str(FULL / "dcq.yaml"), "wnli_validation"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# The quiz on WNLI validation (Time Travel Table 2; DCQ Table 3).")
    data = yaml.safe_load(printed)["data"]
    assert (data["dataset"], data["split"]) == ("nyu-mll/glue:wnli", "validation")
    assert data["text_columns"] == ["sentence1", "sentence2"]


# Every line, planned by the hub's own clients and an endpoint on this machine


def rows_of(row, first=0):
    """Sixteen made-up rows with the columns of a line of datasets.csv, numbered from ``first``."""
    columns = row["text_columns"].split(", ")
    labels = row["label_names"].count(",") + 1
    rows = []
    for number in range(first, first + 16):
        made = {c: f"Town {number} has opened a large park ({c}) after months." for c in columns}
        label = row["label_column"] or row["member_column"]
        rows.append(made | ({label: number % max(2, labels)} if label else {}))
    return rows


def parquet(rows):
    stream = io.BytesIO()
    pd.DataFrame(rows).to_parquet(stream, index=False)
    return stream.getvalue()


def lines_of(rows):
    return "\n".join(map(json.dumps, rows)).encode()


def repositories():
    """What the hub has to have for every line: data files by split, or the files named."""
    found, configs = {}, {}
    for row in DATASETS.to_dict("records"):
        if row["dataset"].startswith("outputs/"):
            continue
        owner, name, *path = row["dataset"].partition(":")[0].split("/")
        files = found.setdefault(f"{owner}/{name}", {})
        for first, at in ((0, path), (100, row["comparison"].split("/")[2:])):
            if at:
                write = parquet if at[-1].endswith("parquet") else lines_of
                files["/".join(at)] = write(rows_of(row, first))
        if not path:
            folder = row["dataset"].partition(":")[2] or "default"
            of_config = configs.setdefault(f"{owner}/{name}", {}).setdefault(folder, [])
            for split in row["splits"].split(", "):
                at = f"{folder}/{split}-00000.parquet"
                files[at] = parquet(rows_of(row))
                of_config.append({"split": split, "path": at})
    for name, of_name in configs.items():
        card = {"configs": [{"config_name": c, "data_files": f} for c, f in of_name.items()]}
        found[name]["README.md"] = f"---\n{yaml.safe_dump(card)}---\n".encode()
    return found


RUN = """
import json, sys
from contamination.audit import command_line
for settings, folder in json.loads(sys.argv[1]):
    words = ["--settings", settings, "--plan", "--output", folder]
    print("exit", command_line.main(words), flush=True)
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """Output of ``contamination audit --settings FILE --plan`` for every line of datasets.csv."""
    folder = tmp_path_factory.mktemp("planned")
    own = folder / "outputs/wikimia/wikimia_paraphrased_length64.parquet"
    own.parent.mkdir(parents=True)
    (row,) = DATASETS[DATASETS["dataset"].str.startswith("outputs/")].to_dict("records")
    own.write_bytes(parquet(rows_of(row)))
    runs = []
    with ScriptedServer(lambda body, n: good("A")) as endpoint:
        for template, line in EXPERIMENTS:
            model = ["pythia-2.8b"] if template == "min_k" else []
            text = filled_in(FULL / f"{template}.yaml", [line, *model])
            # What a user fills in, and fewer rows.
            text = text.replace("names: []  # fill in", "names: [some-model]  #")
            text = text.replace('_model: ""  # fill in', "_model: some-model")
            text = text.replace("https://api.openai.com/v1", endpoint.base_url)
            text = re.sub('key_variable: ".+"', 'key_variable: ""', text)
            text = text.replace("prices: []", "prices: [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]")
            text = text.replace('price_date: ""', 'price_date: "2026-01-31"')
            text = re.sub(r"n_instances: \d+", "n_instances: 4", text)
            text = text.replace("EleutherAI/pythia-2.8b", "lab:clean")
            text = re.sub('(reference|neighbor)_model: ".+"', r'\1_model: ""', text)
            path = folder / f"{template}-{line}.yaml"
            path.write_text(text)
            runs.append((str(path), str(folder / path.stem)))
        with HubServer(repositories(), {}) as hub:
            where = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder / "home")}
            done = subprocess.run(
                [sys.executable, "-c", RUN, json.dumps(runs)],
                env=os.environ | where | {"HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0"},
                cwd=folder,
                capture_output=True,
                text=True,
            )
        assert not endpoint.bodies  # a plan asks nothing
    return done


def test_every_line_is_planned(planned):
    """Four rows: what is run, and how much is asked."""
    parts = re.split(r"^exit (\d)$", planned.stdout, flags=re.MULTILINE)
    codes = dict(zip(EXPERIMENTS, parts[1::2], strict=True))
    assert [one for one, code in codes.items() if code != "0"] == [], planned.stderr
    named = {"dcq": "DCQ", "dcq_contaminated": "DCQ, replication", "min_k": "Min-k% Prob"}
    for (template, line), text in zip(EXPERIMENTS, parts[::2], strict=False):
        assert f"{named.get(template, 'replication')}: will be run" in text, (template, line)
        asked = dict(re.findall(r"^(.+), some-model: (\d+) requests", text, re.MULTILINE))
        task = DATASETS.set_index("line").loc[line, "task"]
        # Guided, general, a wrong dataset and a wrong split, and a wrong label where there is one.
        prompts = 5 if task in LABELLED_TASKS else 4
        n = {
            "dcq": {"DCQ": 6 * 4},  # modified twice, and the original at each of four positions
            "dcq_contaminated": {"DCQ": 5 * 4, "replication": 4},
            "dcq_replication": {"replication": 4},
            "replication": {"replication": 4 * prompts + 1},  # and the first instances
            "min_k": {},
        }[template]
        assert {name: int(asked[name]) for name in n} == n, (template, line)
        assert not n or "at most" in text


@pytest.mark.parametrize("template", NOTEBOOK_10[:-1])
def test_what_a_user_has_to_fill_in_is_asked_for(template, tmp_path):
    """Hosted models retire, so none is a default."""
    path = tmp_path / "mine.yaml"
    text = filled_in(FULL / f"{template}.yaml", experiments(DATASETS, template)[:1])
    path.write_text(text)
    with pytest.raises(ValueError, match="names nothing to audit: fill in model, names"):
        run.check(ROOT / "notebooks/10_audit.ipynb", path)
    path.write_text(text.replace("names: []  # fill in", "names: [some-model]  #"))
    values = run.check(ROOT / "notebooks/10_audit.ipynb", path)
    assert values["model"]["prices"] == []
    with pytest.raises(ValueError, match="_model is empty: fill in the model"):
        Settings.read(values)
