"""The table of runs elsewhere: what is counted, and that the page shows the stored rows."""

import json

import pandas as pd
import pytest
from notebook_files import script

verified = script("verified")
VERDICTS = {"auc": ["0.5", "0.75"], "verdict": ["supported", "inconclusive"], "holds": ["yes", ""]}


@pytest.fixture
def folders(tmp_path):
    """A run and its reference, alike: one table with verdicts, one without, one of no run."""
    run, stored = tmp_path / "run", tmp_path / "stored"
    for folder in (run, stored):
        (folder / "tables").mkdir(parents=True)
        pd.DataFrame(VERDICTS).to_csv(folder / "tables/levels.csv", index=False)
        pd.DataFrame({"n": [1]}).to_csv(folder / "tables/counts.csv", index=False)
    (run / "manifests").mkdir()
    (run / "manifests/01_first.json").write_text(json.dumps({}))
    rows = [
        {
            "table": table,
            "notebook": notebook,
            "sha256": verified.reference.sha256_of(stored / "tables/levels.csv"),
            "is_stored": "yes",
        }
        for table, notebook in (("levels", "01_first"), ("counts", "01_first"), ("none", "02_next"))
    ]
    pd.DataFrame(rows).to_csv(stored / "tables.csv", index=False)
    return run, stored


def test_a_run_like_the_reference_has_the_same_tables_and_verdicts(folders):
    run, stored = folders
    row = verified.row_of(run, "again", "nothing", stored)
    assert (row["tables"], row["identical"]) == (2, 2)  # the notebook that was not run is left out
    assert (row["verdicts"], row["same_verdicts"]) == (3, 3)
    assert (row["where"], row["largest"]) == ("none", "none")


def test_a_number_and_a_verdict_that_differ_are_counted_and_named(folders):
    run, stored = folders
    changed = VERDICTS | {"auc": ["0.5", "0.85"], "verdict": ["supported", "supported"]}
    pd.DataFrame(changed).to_csv(run / "tables/levels.csv", index=False)
    row = verified.row_of(run, "other", "everything", stored)
    assert (row["identical"], row["same_verdicts"], row["where"]) == (1, 2, "levels (1)")

    changed["verdict"] = VERDICTS["verdict"]
    pd.DataFrame(changed).to_csv(run / "tables/levels.csv", index=False)
    row = verified.row_of(run, "other", "a number", stored)
    assert (row["same_verdicts"], row["largest"]) == (3, "0.1 (levels)")


def test_of_a_table_of_another_shape_no_verdict_is_the_same(folders):
    run, stored = folders
    pd.DataFrame(VERDICTS).head(1).to_csv(run / "tables/levels.csv", index=False)
    row = verified.row_of(run, "shorter", "rows", stored)
    assert (row["same_verdicts"], row["where"]) == (0, "levels (3)")


def test_a_row_replaces_the_one_of_its_name(tmp_path, folders):
    run, stored = folders
    path = tmp_path / "verified.csv"
    for differs in ("first", "second"):
        table = verified.store(verified.row_of(run, "one", differs, stored), path)
    assert table["differs"].tolist() == ["second"]


def test_the_page_shows_the_stored_rows():
    table = pd.read_csv(verified.STORED, dtype=str)
    assert len(table) and verified.as_markdown(table[list(verified.COLUMNS)]) in (
        verified.PAGE.read_text()
    )
