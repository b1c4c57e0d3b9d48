"""Finished runs in the papers' tables: three made-up runs, and the cells by hand."""

import pandas as pd
import pytest

from contamination import __main__ as command
from contamination.papers.tables import PAPER_MODELS, joined

IMDB = {"model": "mine", "dataset": "IMDB"}
GUIDED_ONLY = [
    {"method": "Algorithm 2", "instruction": "guided", "metric": judge, "contaminated": True}
    | {"n": 100, "n_exact": n_exact, "n_near_exact": 2, "test": "1 exact or 2 near-exact"}
    for judge, n_exact in (("rule judge", 50), ("ICL judge", 1))
]
ALGORITHMS = [
    ("Algorithm 1", "general", "ROUGE-L", "paired bootstrap", True),
    ("Algorithm 1", "general", "ROUGE-L", "sign flips", False),
    ("Algorithm 1", "general", "BLEURT", "paired bootstrap", False),
    ("Algorithm 1", "wrong dataset", "BLEURT", "paired bootstrap", True),
    ("Algorithm 2", "guided", "ICL judge", "", True),
    ("Algorithm 2", "general", "ICL judge", "", False),
    ("Algorithm 2", "guided", "a person", "", True),
]


def written(folder, **tables):
    (folder / "tables").mkdir(parents=True)
    for name, rows in tables.items():
        pd.DataFrame(rows).to_csv(folder / "tables" / f"{name}.csv", index=False)
    return folder


@pytest.fixture
def runs(tmp_path):
    quiz = IMDB | {"split": "test", "n": 100, "min_pct": 80.0, "max_pct": 90.0}
    replicas = [IMDB | {"split": "test"} | row for row in GUIDED_ONLY]
    names = ["method", "instruction", "metric", "test", "contaminated"]
    decisions = [
        IMDB | {"split": "train"} | dict(zip(names, row, strict=True)) for row in ALGORITHMS
    ]
    counted = {"n": 10, "n_exact": 1, "n_near_exact": 0}
    scores = [
        {"model": f"owner/{model}", "benchmark": f"swj0419/WikiMIA WikiMIA_length{length}"}
        | {"method": method, "auc": auc, "n_members": 139, "n_non_members": 111}
        for model in PAPER_MODELS
        for length, auc in (("128", 0.7), ("128_paraphrased", 0.5), ("64", 0.9))
        for method in ("PPL", "Zlib")
        if (model, length, method) != ("opt-66b", "128", "Zlib")
    ]
    return [
        written(tmp_path / "quiz", audit_dcq=[quiz], audit_replication=replicas),
        written(tmp_path / "cut", audit_replication=[row | counted for row in decisions]),
        written(tmp_path / "scores", audit_min_k=scores),
    ]


def values(cells, *names):
    return [tuple(row) for row in cells[[*names]].round(2).itertuples(index=False)]


def test_three_runs_give_the_tables_by_hand(runs):
    found = joined(runs)
    quiz = found.query("paper == 'DCQ'")
    assert set(quiz["table"]) == {"Table 3"}
    assert values(quiz, "paper_model", "metric", "value", "printed", "difference") == [
        ("GPT-4", "rplc_pct", 3.0, "0.00", 3.0),
        ("GPT-4", "dcq_min_pct", 80.0, "81.82", -1.82),
        ("GPT-4", "dcq_max_pct", 90.0, "82.00", 8.0),
        ("GPT-3.5", "rplc_pct", 3.0, "0.00", 3.0),
        ("GPT-3.5", "dcq_min_pct", 80.0, "46.43", 33.57),
        ("GPT-3.5", "dcq_max_pct", 90.0, "55.00", 35.0),
    ]
    agreement = found.query("paper == 'Time Travel' and paper_model == 'GPT-4'")
    rows = agreement["row"].str.replace("Algorithm ", "")
    assert values(agreement.assign(row=rows), "row", "value", "printed", "difference")[1::2] == [
        ("1: BLEURT", 0.0, "78.57", -78.57),
        ("1: ROUGE-L", 100.0, "92.86", 7.14),
        ("2: GPT-4 ICL", 100.0, "100.00", 0.0),
    ]
    assert agreement.query("metric == 'success_rate'")["value"].tolist() == ["0/1", "1/1", "1/1"]
    assert set(agreement["n"]) == {1}
    scores = found.query("paper == 'Min-k% Prob'")
    # Printed for PPL: 0.61 and 0.61 under Pythia, 0.67 on average; Zlib lacks a cell for its own.
    of_pythia = scores.query("paper_model == 'Pythia-2.8B' and row.str.endswith('PPL')")
    assert values(of_pythia, "model", "value", "printed", "difference") == [
        ("owner/pythia-2.8b", 0.7, "0.61", 0.09),
        ("owner/pythia-2.8b", 0.5, "0.61", -0.11),
    ]
    average = scores.query("paper_model == 'average'")
    assert values(average, "row", "n", "value", "printed") == [("all, PPL", 10, 0.6, "0.67")]
    assert len(scores) == 10 + 9 + 1


def test_a_contaminated_model_stands_in_table_1_by_its_share(tmp_path):
    about = {"model": "mine", "dataset": "MeetingBank", "split": "train"}
    quiz = about | {"n": 100, "min_pct": 45.0, "max_pct": 50.0, "true_contamination_pct": 50.0}
    quiz |= {"recall_min_pct": 80.0, "recall_max_pct": 90.0}
    quiz |= {"precision_min_pct": 88.0, "precision_max_pct": 90.0}
    replicas = [about | row for row in GUIDED_ONLY]
    found = joined([written(tmp_path / "run", audit_dcq=[quiz], audit_replication=replicas)])
    assert set(found["table"]) == {"Table 1"} and set(found["row"]) == {"50% cont."}
    assert values(found, "metric", "value", "printed") == [
        ("rplc_pct", 3.0, "0.00"),
        ("dcq_min_pct", 45.0, "47.00"),
        ("dcq_max_pct", 50.0, "49.00"),
        ("recall_min_pct", 80.0, "82.00"),
        ("recall_max_pct", 90.0, "88.00"),
        ("precision_min_pct", 88.0, "87.23"),
        ("precision_max_pct", 90.0, "89.80"),
    ]


def test_the_command_prints_and_writes_the_cells(runs, tmp_path, capsys):
    file = tmp_path / "joined.csv"
    words = [*map(str, runs), "--output", str(file)]
    assert command.main(["join", *words]) == 0
    assert "DCQ, Table 3\n" in capsys.readouterr().out
    assert len(pd.read_csv(file)) == len(joined(runs))


def test_runs_that_do_not_fit_are_one_line(runs, tmp_path, capsys):
    for folders, said in (
        ([runs[0], runs[0]], "two runs give one cell (IMDB, test, Our DCQ, mine)"),
        ([runs[1], runs[1]], "two runs decide on one partition (mine, IMDB, train)"),
        ([tmp_path / "nothing"], "holds no tables of notebook 10"),
    ):
        assert command.main(["join", *map(str, folders)]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1
