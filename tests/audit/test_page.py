"""The page of an audit and ``verdict.json``: what a reader sees first, escaped, in one file."""

import html
import json
import re

import numpy as np
import pandas as pd
from test_verdict import a_file

from contamination.audit import page
from contamination.audit.finding import Finding, Target, scores_of
from contamination.audit.logs import HARNESS, SCORES, Log
from contamination.audit.plan import DCQ, MIN_K, Audit
from contamination.audit.power import Power
from contamination.audit.rows import Rows
from contamination.audit.settings import Settings

NAME = "<b>m"


def rows_of(n, seed):
    made = a_file(n, seed)
    table = made.rows.assign(text=[f"<i>{text}" for text in made.passages])
    counts = {"n_rows": n + 17, "n_empty": 0, "n_repeated": 17, "n": n}
    return Rows(table, ("text",), (), counts)


def results(n_seen, n=60, n_comparison=60, **more):
    """An audit in which so many rows, the last ones of the file, score far above all others."""
    data = {"dataset": "rows.jsonl", "revision": "0" * 40, "task": "summary", "label_column": ""}
    told = Settings.read({"model": {"names": ["m"]}, "data": data})
    audit = Audit(told, rows_of(n, 0), rows_of(n_comparison, 1))
    generator = np.random.default_rng(0)
    values = generator.normal(size=n + n_comparison) + 5 * (np.arange(n + n_comparison) < n_seen)
    found = {
        DCQ: Finding(why_not="not asked for"),
        MIN_K: Finding("s", scores_of(audit.sets, values)),
    }
    return page.Results(audit, {NAME: found}, {NAME: Target(NAME, None)}, **more)


def test_the_page_has_the_share_its_confidence_and_the_counts_of_the_rows(tmp_path):
    text = page.write(results(30), tmp_path).read_text()
    sentence = re.search(r"At least (\d+) of 60 rows of rows test \((\d+) %\)", text)
    assert 20 <= int(sentence[1]) <= 30 and int(sentence[2]) == round(int(sentence[1]) / 0.6)
    assert "with 95 % confidence" in text
    assert "0" * 40 in text and ">repeated<" in text and ">17<" in text


def test_the_page_needs_no_other_file_and_no_text_of_a_row_is_markup(tmp_path):
    text = page.write(results(30), tmp_path).read_text()
    assert not re.search(r'(src|href)="(?!data:)', text) and "<script" not in text
    assert "&lt;b&gt;m" in text and NAME not in text
    assert "&lt;i&gt;" in text
    assert not re.search(r"<i>\w+ \w+ \w+", text.partition("<details>")[0].replace("<i>Rows", ""))


def test_verdict_json_has_verdict_list_files_and_models(tmp_path):
    found = json.loads(page.write(results(30), tmp_path).with_suffix(".json").read_text())
    assert found["verdicts"][0]["verdict"] == found["evidence"][1]["verdict"] == "shown"
    assert found["models"] == [{"name": NAME, "weights": None, "why_none": "no model was loaded"}]
    assert found["files"] == {} and found["versions"]["python"]
    listed = [row["index"] for row in found["listed_rows"]]
    assert {*range(30, 60)} <= {*listed} and len(listed) <= 36
    assert all(len(row["text"]) <= page.MOST_LETTERS for row in found["listed_rows"])


def test_a_long_list_is_cut_on_the_page_and_whole_in_the_table(tmp_path):
    shown = results(30)
    text = page.write(shown, tmp_path).read_text()
    n = len(shown.listed)
    assert f"(those that stand out most: {page.MOST_SHOWN} of {n})" in text
    rows = pd.read_csv(tmp_path / "tables/audit_rows.csv")
    assert rows["is_listed"].sum() == n


def test_an_open_verdict_says_what_would_have_been_noticed_and_reassures_nobody(tmp_path):
    text = html.unescape(page.write(results(0), tmp_path).read_text())
    assert '<span class="badge open">open</span>' in text and "no sign that it is clean" in text
    assert "Min-k% Prob, 60 rows and 60 comparison rows: seen sixteen times in" in text


def test_what_copies_showed_is_on_the_page_and_in_the_record(tmp_path):
    record = {"model": NAME, "passes": 4, "n_copies": 5, "n": 30, "n_seen": 10}
    record |= {"n_comparison": 30, "n_noticed": 3, "n_accused": 1}
    power = Power(NAME, [record])
    file = page.write(results(0, powers=[power]), tmp_path)
    text = html.unescape(file.read_text())
    assert "four times in 3 of 5" in text and "in 1 of 5 audits (95 % interval 4 to 62 %)" in text
    assert json.loads(file.with_suffix(".json").read_text())["power"] == [record]


def test_the_score_of_a_log_is_shown_with_and_without_the_listed_rows(tmp_path):
    table = pd.DataFrame({"doc_id": range(100, 160), "score": [1.0, 0.0] * 30})
    log = Log(HARNESS, "m", "task", "test", table, pd.DataFrame(columns=SCORES))
    page.write(results(30, log=log), tmp_path)
    split = json.loads((tmp_path / "verdict.json").read_text())["scores_by_list"]
    assert split[0]["value"] == 0.5 and split[1]["n"] + split[2]["n"] == 60
