"""The list of rows that an audit names: its guarantee on made scores, and what it says without."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from contamination.audit import listed_rows
from contamination.audit.finding import Finding
from contamination.audit.prepared import DCQ, MIN_K, REPLICATION

N_DATASET, N_UNSEEN = 60, 200


def an_audit(n=N_DATASET, n_unseen=N_UNSEEN, refusal=""):
    def rows(n):
        return SimpleNamespace(rows=pd.DataFrame({"index": np.arange(n)[::-1]}))

    sets = [rows(n), *([rows(n_unseen)] if n_unseen else [])]
    told = SimpleNamespace(false_discovery_rate=0.1)
    unseen = sets[1] if n_unseen else None
    return SimpleNamespace(sets=sets, unseen=unseen, refusal=refusal, told=told)


def with_scores(dataset, unseen):
    details = pd.DataFrame({"score": [*dataset, *unseen]})
    return {MIN_K: Finding(None, details=details)}


def list_of(audit, findings):
    rows, lists = listed_rows.listed_rows(audit, {"model": findings})
    return rows, lists.iloc[0]


def made_scores(generator, n_seen, shift):
    dataset = generator.normal(size=N_DATASET)
    dataset[:n_seen] += shift
    return dataset, generator.normal(size=N_UNSEEN)


def test_few_names_are_false_when_rows_are_exchangeable_and_seen_rows_are_found():
    generator, false, found = np.random.default_rng(0), [], []
    for _ in range(200):
        rows, _ = list_of(an_audit(), with_scores(*made_scores(generator, 30, 3.0)))
        is_listed = rows["is_listed"].to_numpy(bool)
        false.append(is_listed[30:].sum() / max(1, is_listed.sum()))
        found.append(is_listed[:30].mean())
    # Half of the rows are unseen, so about half of the rate is to be expected.
    assert np.mean(false) - 2 * np.std(false) / math.sqrt(200) <= 0.05
    assert np.mean(found) > 0.5


def test_names_are_false_more_often_when_comparison_rows_score_lower_by_themselves():
    generator, false = np.random.default_rng(0), []
    for _ in range(50):
        dataset, unseen = made_scores(generator, 0, 0.0)
        rows, _ = list_of(an_audit(), with_scores(dataset, unseen - 2))
        false.append(rows["is_listed"].any())
    assert np.mean(false) > 0.5


def test_nothing_is_listed_and_the_note_says_what_a_list_would_have_taken():
    rows, of_list = list_of(an_audit(), with_scores(np.zeros(60), np.zeros(200)))
    assert of_list["n_listed"] == 0 and not rows["is_listed"].any()
    assert "3 of the 60 rows would have to score above all 200 comparison rows" in of_list["note"]


def test_too_few_comparison_rows_allow_no_list_and_the_note_says_how_many_are_needed():
    audit = an_audit(n_unseen=8)
    _, of_list = list_of(audit, with_scores(np.full(60, 9.0), np.zeros(8)))
    assert of_list["n_listed"] == 0 and "at least 9 are needed" in of_list["note"]
    rows, of_list = list_of(an_audit(n_unseen=9), with_scores(np.full(60, 9.0), np.zeros(9)))
    assert of_list["n_listed"] == 60 and rows["is_listed"].all()


@pytest.mark.parametrize(
    ("audit", "said"),
    [
        (an_audit(n_unseen=0), "there are no comparison rows"),
        (an_audit(refusal="told apart by length alone"), "told apart by length alone"),
        (an_audit(), listed_rows.NO_SCORES),
    ],
)
def test_where_no_list_is_possible_cells_are_empty_and_the_note_says_why(audit, said):
    rows, of_list = list_of(audit, {})
    assert said in of_list["note"] and of_list["note"].startswith("No list of rows")
    assert rows["is_listed"].isna().all() and pd.isna(of_list["n_listed"])
    assert listed_rows.unlisted_rows(rows) == []


def test_completions_are_taken_where_no_log_probabilities_are_there():
    guided = [("guided", "dataset", 0.9)] * 10 + [("guided", "unseen", 0.1)] * 20
    general = [("general", "dataset", 0.0)] * 10
    details = pd.DataFrame(guided + general, columns=["instruction", "rows", "rouge"])
    audit = an_audit(n=12, n_unseen=20)
    rows, of_list = list_of(audit, {REPLICATION: Finding(None, details=details)})
    assert of_list["method"] == REPLICATION and of_list["n_rows"] == 10
    assert rows["is_listed"].sum() == 10 and rows["is_listed"].isna().sum() == 2


def test_quizzes_are_shown_by_row_and_make_no_list():
    answers = pd.DataFrame(
        [(0, "A", "A", "ok"), (0, "B", "A", "ok"), (1, "A", "A", "ok"), (1, "", "B", "ok")],
        columns=["index", "position", "answer", "status"],
    )
    rows, of_list = list_of(an_audit(n=2), {DCQ: Finding(None, details=answers)})
    assert dict(zip(rows["index"], rows["quiz_share"], strict=True)) == {1: 1.0, 0: 0.5}
    assert rows["is_listed"].isna().all() and listed_rows.NO_SCORES in of_list["note"]


def test_rows_that_no_model_names_are_left_for_an_evaluation():
    audit = an_audit(n=4, n_unseen=40)
    first = with_scores([9, 0, 9, 0], np.linspace(0, 1, 40))
    second = with_scores([0, 9, 9, 0], np.linspace(0, 1, 40))
    audit.told.false_discovery_rate = 0.2
    rows, lists = listed_rows.listed_rows(audit, {"a": first, "b": second})
    assert lists["n_listed"].tolist() == [2, 2]
    # Rows are in random order: the last one scored is row 0 of the file.
    assert listed_rows.unlisted_rows(rows) == [0]


def test_the_score_of_an_evaluation_is_split_by_the_list():
    rows = pd.DataFrame({"index": [0, 1, 2, 3, 4], "is_listed": [True, False, True, False, pd.NA]})
    scores = pd.Series([1.0, 0.0, 1.0, 1.0, 0.0])  # row 4 was not scored by any method
    table = listed_rows.scores_by_list(scores, rows).set_index("rows")
    assert table["n"].tolist() == [4, 2, 2] and table["value"].tolist() == [0.75, 1.0, 0.5]
    listed = table.loc[listed_rows.LISTED]
    assert (listed["ci_low"], listed["ci_high"]) == pytest.approx((0.342, 1.0), abs=0.001)  # Wilson
    graded = listed_rows.scores_by_list(pd.Series([0.2, 0.5, 0.4, 0.7, 0.9]), rows)
    assert graded["value"].tolist() == pytest.approx([0.45, 0.3, 0.6])
    assert graded["ci_low"].iloc[1] == pytest.approx(0.3 - 12.706 * 0.1, abs=0.001)  # t, 1 df


def test_without_a_list_or_scores_no_score_is_split():
    rows = pd.DataFrame({"index": [0, 1], "is_listed": [pd.NA, pd.NA]})
    assert listed_rows.scores_by_list(pd.Series([1.0, 0.0]), rows).empty
    rows["is_listed"] = [True, False]
    assert listed_rows.scores_by_list(pd.Series([np.nan, np.nan]), rows).empty
