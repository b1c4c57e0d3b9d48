"""Dataset rows against comparison rows by the text alone, and what is refused because of it."""

import json

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from scripted_server import MODEL, ScriptedServer, good

from contamination.audit import auditing, comparison, finding, plan
from contamination.study.panel import CONTROL_FORBIDS, NOT_RUN

HARBOURS = ["Lyon", "Oslo", "Bonn", "Cork", "Nice", "Bari", "Kiel", "Riga", "Graz", "Pisa"]
GOODS = ["salt", "wool", "corn", "iron", "coal", "rice"]
TEXT = "The ship of {} came with {} in {}; nobody in town had seen its like, they said."


def texts(year, start=0, n=12):
    """Sentences of one kind and length that name a year, `year` or the next four."""
    return [
        TEXT.format(HARBOURS[k % 10], GOODS[k % 6], year + k % 5) for k in range(start, start + n)
    ]


def plain(text):
    return text.lower().replace(",", "").replace(";", "").replace(".", "")


DATASET = texts(2011)
APART = {
    "date rule": texts(2021, 30),
    "length": [
        text[:-11] + "as they told us when they came home again." for text in texts(2011, 30)
    ],
    "bag of words": [plain(text) + "..." for text in texts(2011, 30)],
}


def test_equal_sets_are_not_told_apart_and_what_would_not_show_is_said():
    found = comparison.by_text_alone(DATASET, texts(2011, 30))
    assert [row["control"] for row in found] == [
        f"{name}, no model" for name in ("date rule", "length", "bag of words", "TF-IDF")
    ]
    assert not comparison.refusal(found)
    assert not any(row["decides"] for row in found)
    assert {row["n"] for row in found} == {24}
    line = comparison.said(found)
    assert "n = 24" in line and "±" in line and "a smaller difference would not show" in line


@pytest.mark.parametrize("by", APART)
def test_sets_that_differ_are_told_apart_by_what_differs(by):
    found = {row["control"]: row for row in comparison.by_text_alone(DATASET, APART[by])}
    row = found[f"{by}, no model"]
    assert row["decides"] and row["ci_low"] > 0.5 and row["p_value"] <= 0.0125
    assert "are told apart by" in comparison.refusal(found.values())
    # What is equal is not blamed.
    others = {"date rule": "length", "length": "date rule", "bag of words": "date rule"}
    assert not found[f"{others[by]}, no model"]["decides"]


def test_length_by_hand_in_either_direction():
    short, long = ["ab " * k for k in range(10, 18)], ["ab " * k for k in range(20, 28)]
    for sets in ((short, long), (long, short)):
        row = next(row for row in comparison.by_text_alone(*sets) if "length" in row["control"])
        # Every long text is longer: AUC 1; 2 of the 12,870 deals of 16 are as extreme.
        assert (row["value"], row["ci_low"], row["ci_high"]) == (1, 1, 1)
        assert row["p_value"] == pytest.approx(2 / 12_870)


def test_a_small_p_alone_tells_nothing_apart():
    """Of 11 texts 8 are longer than all of 300 others, and 3 shorter: they spread, not lie apart.

    Mann-Whitney's p takes both for equally spread. The AUC is 8 / 11; one resample in twenty
    holds at most 5 of the long ones, so the interval reaches down to 5 / 11.
    """
    dataset = ["x" * k for k in (1, 2, 3, *range(400, 408))]
    found = comparison.by_text_alone(dataset, ["x" * k for k in range(50, 350)])
    row = next(row for row in found if "length" in row["control"])
    lengths = np.array([*map(len, dataset)])
    assert mannwhitneyu(lengths, np.arange(50, 350)).pvalue <= 0.0125
    assert row["value"] == pytest.approx(8 / 11) and row["ci_low"] == pytest.approx(5 / 11)
    assert not row["decides"]


def test_four_rows_of_either_are_one_line_with_how_little_they_show():
    found = comparison.by_text_alone(texts(2011, n=4), texts(2011, 30, 4))
    line = comparison.said(found)
    assert "\n" not in line and "n = 8" in line
    widths = [(row["ci_high"] - row["ci_low"]) / 2 for row in found]
    assert max(widths) > 0.2
    # Four against four texts reach p = 2/70 at best, above 0.05 / 4.
    apart = comparison.by_text_alone(texts(2011, n=4), texts(2021, 30, 4))
    assert not comparison.refusal(apart)


def test_texts_without_a_word_have_their_length_alone():
    found = comparison.by_text_alone([f"{k} + 1 =" for k in range(8)], ["猫"] * 8)
    assert "length, no model" in [row["control"] for row in found]


@pytest.mark.parametrize("by", APART)
def test_nothing_is_asked_where_the_rows_are_told_apart(by, tmp_path):
    files = []
    for name, rows in (("own", DATASET), ("other", APART[by])):
        files.append(str(tmp_path / f"{name}.jsonl"))
        lines = [json.dumps({"text": text}) + "\n" for text in rows]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    data = {"dataset": files[0], "label_column": "", "task": "summary"}
    with ScriptedServer(lambda body, n: good("A")) as server:
        model = {"names": [MODEL], "base_url": server.base_url, "key_variable": ""}
        model |= {"gives_log_probs": True}
        audit = auditing.prepare(model, data, files[1], 12, 12, 0)
        said, cost = plan.announce_audit(audit), plan.plan_table(audit)
        target = auditing.target_of(audit, MODEL, lab=None)
        found = {MODEL: auditing.findings_of(audit, target, None, [], 50)}
        assert not server.bodies
    assert "are told apart by" in said and not cost["is_run"].any()
    table = auditing.audit_table(found)
    verdicts = table.set_index("method")["verdict"]
    assert verdicts[list(finding.COMPARING)].eq(CONTROL_FORBIDS).all()
    assert verdicts[finding.DICE] == NOT_RUN
    controls = auditing.controls_table(audit, found).query(
        "method == @auditing.COMPARISON and decides"
    )
    row = controls.set_index("control").loc[f"{by}, no model"]
    assert (row["n"], row["chance"]) == (24, 0.5)
    assert row["ci_low"] > 0.5 and row["p_value"] <= 0.0125
    assert "not asked, dataset and comparison rows are told apart" in auditing.headline(
        MODEL, table
    )
