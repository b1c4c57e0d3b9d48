"""Dataset rows against comparison rows by the text alone, and what is refused because of it."""

import json

import numpy as np
import pytest
from scripted_server import MODEL, ScriptedServer, good

from contamination.audit import auditing, comparison, plan
from contamination.audit.plan import METHODS
from contamination.audit.settings import Settings
from contamination.core.verdicts import CONTROL_FAILS

HARBOURS = ["Lyon", "Oslo", "Bonn", "Cork", "Nice", "Bari", "Kiel", "Riga", "Graz", "Pisa"]
GOODS = ["salt", "wool", "corn", "iron", "coal", "rice"]
TEXT = "The ship of {} came with {} in {}; nobody in town had seen its like, they said."


def texts(year, start=0, n=12):
    """Sentences of one kind and length that name a year, `year` or the next four."""
    return [
        TEXT.format(HARBOURS[k % 10], GOODS[k % 6], year + k % 5) for k in range(start, start + n)
    ]


def with_marks(rows):
    """The same rows with other marks: as long, and of the same words."""
    return [text.replace(";", ":").replace(",", "/").replace(".", "!") for text in rows]


DATASET = texts(2011)
APART = {"date rule": texts(2021, 30), "bag of words": with_marks(texts(2011, 30))}


def drawn(seed, n=12):
    """Texts of one kind without a word in common but the years: two seeds are two random draws."""
    generator = np.random.default_rng(seed)
    letters = generator.choice(list("abcdefghij"), (n, 6, 4))
    years = generator.integers(2011, 2016, n)
    rows = [" ".join("".join(word) for word in row) for row in letters]
    return [f"{row} in {year}" for row, year in zip(rows, years, strict=True)]


def test_equal_sets_are_not_told_apart():
    dataset, others = drawn(2), drawn(3)
    found = comparison.by_text_alone(dataset, others)
    assert [row["control"] for row in found] == [
        f"{name}, no model"
        for name in ("length and word frequency", "date rule", "bag of words", "TF-IDF")
    ]
    assert not comparison.refusal(found)
    assert not any(row["decides"] for row in found)
    assert {row["n"] for row in found} == {24} and all(row["holds"] for row in found)
    line = comparison.describe_check(found, comparison.near_copies(dataset, others))
    assert "which the test takes into account" in line


def test_two_files_of_the_same_rows_are_said_to_share_them():
    """Near-copies are kept in one fold, so that no classifier is led astray by them."""
    others = texts(2011, 30)
    assert set(others) == set(DATASET)
    found = comparison.by_text_alone(DATASET, others)
    copies = comparison.near_copies(DATASET, others)
    assert not comparison.refusal(found)  # nothing here could be mistaken for memory
    line = comparison.describe_check(found, copies)
    assert "below chance" not in line
    assert "12 of 12 dataset rows have a near-copy among the comparison rows" in line


def test_near_copies_are_counted_by_runs_of_words_and_by_words_in_common():
    run = "one two three four five six seven eight nine ten eleven twelve thirteen"
    others = [f"x y z {run} a b c d e f g h i j k l m n o p", "The red cat sat on a mat."]
    rows = [
        f"{run} and much else that stands in no other text of the two files, as it should be",
        "the red cat sat on a log",  # 6 of 7 words: 0.86
        "the red dog lay on a log",  # 4 of 7 words: 0.57
    ]
    found = comparison.near_copies(rows, others)
    assert (found["n"], found["value"], found["holds"]) == (3, 2 / 3, False)
    none = comparison.near_copies(rows[2:], others)
    assert (none["value"], none["ci_low"], none["holds"]) == (0, 0, True)
    assert comparison.near_copies(["?!"], ["?!"])["holds"]  # no word, no copy


@pytest.mark.parametrize("by", APART)
def test_sets_that_differ_are_told_apart_by_what_differs(by):
    found = {row["control"]: row for row in comparison.by_text_alone(DATASET, APART[by])}
    row = found[f"{by}, no model"]
    assert row["decides"] and row["value"] > 0.9 and row["p_value"] <= 0.05 / 3
    assert "tells dataset and comparison rows apart" in comparison.refusal(found.values())
    # What is equal is not blamed.
    other = "date rule" if by == "bag of words" else "length and word frequency"
    assert found[f"{other}, no model"]["holds"]


def test_a_difference_in_length_alone_is_left_to_the_test():
    """All dataset rows are longer: nothing but length differs, and no verdict can be shown."""
    generator = np.random.default_rng(0)
    words = ["".join(generator.choice(list("abcdefgh"), 4)) for _ in range(30)]
    rows = [" ".join(generator.choice(words, n)) for n in [*range(20, 32), *range(8, 20)]]
    found = comparison.by_text_alone(rows[:12], rows[12:])
    assert found[0]["value"] > 0.85 and not found[0]["holds"]
    assert not comparison.refusal(found)
    line = comparison.describe_check(found, comparison.near_copies(rows[:12], rows[12:]))
    assert "no verdict can be above open" in line


def test_texts_without_a_word_have_their_length_alone():
    found = comparison.by_text_alone([f"{k} + 1 =" for k in range(8)], ["猫"] * 8)
    assert found[0]["control"] == "length and word frequency, no model"


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
        told = {"model": model, "data": data, "comparison": files[1]}
        told |= {"n_instances": 12, "n_passages": 12}
        audit = auditing.prepare(Settings.read(told))
        said, cost = plan.announce_audit(audit), plan.plan_table(audit)
        target = auditing.target_of(audit, MODEL)
        found = {MODEL: auditing.findings_of(audit, target)}
        assert not server.bodies
    assert "tells dataset and comparison rows apart" in said and not cost["is_run"].any()
    (decided,) = auditing.decide_all(audit, found, {}).values()
    verdicts = decided.methods.set_index("method")["verdict"]
    assert verdicts[list(METHODS)].eq(CONTROL_FAILS).all()
    controls = auditing.checks_table(audit)
    assert controls.set_index("control").loc[comparison.NEAR_COPIES, "n"] == 12
    controls = controls.query("decides")
    assert controls["holds"].eq(False).all()
    assert controls.set_index("control").loc[f"{by}, no model", "n"] == 24
    assert decided.says.startswith(f"{MODEL}: control fails. Without any model, ")


def test_paraphrases_of_the_rows_are_counted():
    """Each comparison row is a dataset row with one word changed, on a topic of its own."""
    generator = np.random.default_rng(0)
    words = ["".join(generator.choice(list("abcdefgh"), 6)) for _ in range(400)]
    dataset = [" ".join(words[10 * k : 10 * k + 10]) + f" in {2011 + k % 5}" for k in range(40)]
    others = [text.replace(words[10 * k], "changed", 1) for k, text in enumerate(dataset)]
    others = others[::-1]
    copies = comparison.near_copies(dataset, others)
    line = comparison.describe_check(comparison.by_text_alone(dataset, others), copies)
    assert (copies["n"], copies["value"], copies["holds"]) == (40, 1, False)
    assert "40 of 40 dataset rows have a near-copy among the comparison rows" in line


def test_near_copies_are_counted_where_the_rows_are_told_apart_too():
    dataset = texts(2011)
    others = [*dataset[:3], *texts(2021, 30)]
    found = comparison.by_text_alone(dataset, others)
    assert comparison.refusal(found)
    line = comparison.describe_check(found, comparison.near_copies(dataset, others))
    assert line.startswith(comparison.refusal(found))
    assert "of 12 dataset rows have a near-copy" in line


def test_rows_scored_with_their_label_are_checked_with_their_label(tmp_path):
    files = []
    for name, (rows, label) in {"own": (drawn(2), "yes"), "other": (drawn(3), "nay")}.items():
        files.append(tmp_path / f"{name}.jsonl")
        lines = [json.dumps({"text": text, "label": label}) + "\n" for text in rows]
        files[-1].write_text("".join(lines))
    data = {"dataset": str(files[0]), "label_column": "label"}
    told = {"model": {"names": ["lab:clean"]}, "data": data, "comparison": str(files[1])}
    found = {}
    for form in ("text", "instance"):
        audit = auditing.prepare(Settings.read(told | {"min_k": {"form": form}}))
        found[form] = audit.scored_texts(audit.rows), audit
    assert set(found["text"][0]) == set(drawn(2)) and not found["text"][1].refusal
    texts, audit = found["instance"]
    assert set(texts) == {f"text: {text}\nlabel: yes" for text in drawn(2)}
    assert "bag of words tells dataset and comparison rows apart" in audit.refusal
