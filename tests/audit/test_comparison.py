"""Dataset rows against comparison rows by the text alone, and what is refused because of it."""

import json

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from scripted_server import MODEL, ScriptedServer, good

from contamination.audit import announcing, auditing, comparison, plan
from contamination.audit.prepared import COMPARING, DICE, prepare
from contamination.audit.settings import Settings
from contamination.core.verdicts import CONTROL_FAILS, NOT_RUN

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


def drawn(seed, n=12):
    """Texts of one kind without a word in common but the years: two seeds are two random draws."""
    generator = np.random.default_rng(seed)
    letters = generator.choice(list("abcdefghij"), (n, 6, 4))
    years = generator.integers(2011, 2016, n)
    rows = [" ".join("".join(word) for word in row) for row in letters]
    return [f"{row} in {year}" for row, year in zip(rows, years, strict=True)]


def test_equal_sets_are_not_told_apart_and_what_would_not_show_is_said():
    dataset, others = drawn(2), drawn(3)
    found = comparison.by_text_alone(dataset, others)
    assert [row["control"] for row in found] == [
        f"{name}, no model" for name in ("date rule", "length", "bag of words", "TF-IDF")
    ]
    assert not comparison.refusal(found)
    assert not any(row["decides"] for row in found)
    assert {row["n"] for row in found} == {24} and all(row["holds"] for row in found)
    # Date and length compare all pairs, classifiers of words those of one fold.
    assert [row["n_pairs"] for row in found[:2]] == [144, 144]
    assert all(0 < row["n_pairs"] < 144 for row in found[2:])
    line = comparison.describe_check(found, comparison.near_copies(dataset, others))
    assert "n = 24" in line and "±" in line
    assert "a difference within these margins would not show" in line


def test_two_files_of_the_same_rows_are_said_to_share_them():
    """Near-copies are kept in one fold, so that no classifier is led astray by them."""
    others = texts(2011, 30)
    assert set(others) == set(DATASET)
    found = comparison.by_text_alone(DATASET, others)
    copies = comparison.near_copies(DATASET, others)
    assert not comparison.refusal(found)  # nothing here could be mistaken for memory
    line = comparison.describe_check(found, copies)
    assert "below chance" not in line
    assert line.endswith("12 of 12 dataset rows have a near-copy among the comparison rows")


def by_words(low, high, decides=False):
    row = {"control": "bag of words, no model", "n": 120, "value": (low + high) / 2}
    row |= {"ci_low": low, "ci_high": high, "p_value": 0.04, "decides": decides}
    return row | {"holds": low <= 0.5 <= high, "n_pairs": 420}


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ((0.40, 0.60), "are not told apart by their text alone"),
        (
            (0.21, 0.39),
            "0.30 [0.21, 0.39] (420 pairs), chance 0.50; below chance, as where",
        ),
        ((0.51, 0.70), "[0.51, 0.70] (420 pairs), chance 0.50; above chance, though not after"),
    ],
)
def test_an_interval_without_one_half_is_never_called_not_told_apart(ends, says):
    copies = {"value": 2 / 60, "n": 60}
    line = comparison.describe_check([by_words(*ends)], copies)
    assert says in line and line.endswith(
        "2 of 60 dataset rows have a near-copy among the comparison rows"
    )
    assert ("not told apart" in line) == (ends[0] <= 0.5 <= ends[1])
    assert ("not two random draws of one kind" in line) != ("not told apart" in line)


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
    line = comparison.describe_check(
        found, comparison.near_copies(texts(2011, n=4), texts(2011, 30, 4))
    )
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
        told = {"model": model, "data": data, "comparison": files[1]}
        told |= {"n_instances": 12, "n_passages": 12}
        audit = auditing.add_text_controls(prepare(Settings.read(told)))
        said, cost = announcing.announce_audit(audit), plan.plan_table(audit)
        target = auditing.target_of(audit, MODEL, lab=None)
        found = {MODEL: auditing.findings_of(audit, target, None, [], 50)}
        assert not server.bodies
    assert "are told apart by" in said and not cost["is_run"].any()
    table = auditing.audit_table(found)
    verdicts = table.set_index("method")["verdict"]
    assert verdicts[list(COMPARING)].eq(CONTROL_FAILS).all()
    assert verdicts[DICE] == NOT_RUN
    controls = auditing.controls_table(audit, found)
    counted = controls.set_index("control").loc[comparison.NEAR_COPIES]
    assert counted["method"] == auditing.COMPARISON and counted["n"] == 12
    controls = controls.query("method == @auditing.COMPARISON and decides")
    assert controls["holds"].eq(False).all()
    row = controls.set_index("control").loc[f"{by}, no model"]
    assert (row["n"], row["chance"]) == (24, 0.5)
    assert row["ci_low"] > 0.5 and row["p_value"] <= 0.0125
    sentence = auditing.summarize_audit(MODEL, table)
    assert "we did not run" in sentence
    assert "because dataset and comparison rows are told apart" in sentence


def test_paraphrases_of_the_rows_are_counted_and_are_never_not_told_apart():
    """Each comparison row is a dataset row with one word changed, on a topic of its own."""
    generator = np.random.default_rng(0)
    words = ["".join(generator.choice(list("abcdefgh"), 6)) for _ in range(400)]
    dataset = [" ".join(words[10 * k : 10 * k + 10]) + f" in {2011 + k % 5}" for k in range(40)]
    others = [text.replace(words[10 * k], "changed", 1) for k, text in enumerate(dataset)]
    others = others[::-1]
    copies = comparison.near_copies(dataset, others)
    found = comparison.by_text_alone(dataset, others)
    line = comparison.describe_check(found, copies)
    assert (copies["n"], copies["value"], copies["holds"]) == (40, 1, False)
    assert line.endswith("40 of 40 dataset rows have a near-copy among the comparison rows")
    far_below = [row for row in found if row["ci_high"] < 0.4]
    assert not (far_below and "not told apart" in line)


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
        audit = prepare(Settings.read(told | {"min_k": {"form": form}}))
        found[form] = audit.scored_texts(audit.rows), auditing.add_text_controls(audit)
    assert set(found["text"][0]) == set(drawn(2)) and not found["text"][1].refusal
    texts, audit = found["instance"]
    assert set(texts) == {f"text: {text}\nlabel: yes" for text in drawn(2)}
    assert "told apart by bag of words" in audit.refusal
