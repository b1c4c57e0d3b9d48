"""Anybody's log-probabilities, audited without a model; malformed files are one line."""

import json

import numpy as np
import pytest
from notebook_files import ROOT

from contamination.audit import auditing, command_line, logs
from contamination.audit.plan import METHODS, MIN_K
from contamination.audit.settings import SAMPLE, UNSEEN, Settings


def texts(name):
    return [json.loads(line)["text"] for line in (ROOT / name).read_text().splitlines()]


def rows(with_text, effect=3.0):
    """The sample, whose first half scores higher, and its comparison rows; 2 nats a token."""
    generator = np.random.default_rng(0)
    found = []
    for name, suspected in ((SAMPLE, True), (UNSEEN, False)):
        for number, text in enumerate(texts(name)):
            n = len(text.split())
            values = -2 - generator.random(n) * 4
            values += effect * (suspected and number < 30) * np.linspace(0, 1, n) / 2
            one = {
                "id": number,
                "suspected": suspected,
                "log_probs": [None, *np.minimum(values, 0)],
            }
            found.append(one | ({"text": text} if with_text else {}))
    return found


def written(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def audited(tmp_path, *words):
    code = command_line.main([*words, "--output", str(tmp_path / "out")])
    return code, json.loads((tmp_path / "out/verdict.json").read_text())


def test_a_file_with_texts_is_all_that_an_audit_needs(tmp_path):
    file = written(tmp_path / "vllm.jsonl", rows(with_text=True))
    code, found = audited(tmp_path, "--log-probs", file, "--fail-on", "shown")
    (row,) = [row for row in found["evidence"] if row["method"] == MIN_K]
    assert code == 1 and row["verdict"] == "shown" and (row["n"], row["n_comparison"]) == (60, 60)
    assert 0 < row["n_at_least"] <= 30
    assert "were not checked on known texts" in row["note"]
    others = [row for row in found["evidence"] if row["method"] != MIN_K]
    assert {row["verdict"] for row in others} == {"not run"} and len(others) == len(METHODS) - 1
    (model,) = found["models"]
    assert model["weights"] is None and "from a file" in model["why_none"]


def test_without_texts_the_ids_are_numbers_of_rows_and_the_result_is_the_same(tmp_path):
    audits = []
    for with_text, more in ((True, {}), (False, {"dataset": SAMPLE, "comparison": UNSEEN})):
        file = written(tmp_path / f"{with_text}.jsonl", rows(with_text))
        data = logs.LOG_PROBS_DATA | {"dataset": more.get("dataset", file)}
        data |= {"member_column": ""} if more else {}
        told = {"model": {"names": ["m"], "log_probs": file}, "data": data, "methods": ["min_k"]}
        audit = auditing.prepare(Settings.read(told | {"comparison": more.get("comparison", "")}))
        target = auditing.target_of(audit, "m")
        by_text = {text: list(values) for text, values in target.place.items()}
        audits.append(by_text)
        assert len(by_text) == 120
    assert audits[0] == audits[1]


def test_a_row_that_is_missing_or_cut_is_left_out_named_and_counted(tmp_path):
    lines = rows(with_text=True)
    lines[3]["log_probs"] = lines[3]["log_probs"][:3]
    lines[70]["log_probs"] = []
    file = written(tmp_path / "m.jsonl", lines)
    _, found = audited(tmp_path, "--log-probs", file)
    (row,) = [row for row in found["evidence"] if row["method"] == MIN_K]
    assert (row["n"], row["n_comparison"]) == (59, 59)
    assert "2 of 120 rows were left out" in row["note"] and "it was cut" in row["note"]


GOOD = {"id": 1, "suspected": True, "log_probs": [None, -1.0, -2.5], "text": "A harbour town."}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no JSON", "line 1: JSON: Invalid JSON"),
        ({"id": 1, "suspected": True}, "line 1: log_probs: Field required"),
        (GOOD | {"log_probs": [0.5]}, "line 1: log_probs.0: Input should be less than or equal"),
        (GOOD | {"log_probs": [-1.0, None]}, "null stands behind the first token"),
        (GOOD | {"log_probs": "x"}, "line 1: log_probs: Input should be a valid"),
        (GOOD | {"log_probs": [-1e300]}, "line 1: log_probs.0: Input should be greater than"),
        (GOOD | {"suspected": "perhaps"}, "line 1: suspected: Input should be a valid boolean"),
        (GOOD | {"log_probs": [-1.0, -1.0]}, "all log-probabilities are the same"),
        ([GOOD, GOOD], 'the id "1" stands twice'),
        ([GOOD, GOOD | {"id": 2, "text": ""}], "some lines have a text and some have none"),
    ],
)
def test_a_malformed_file_is_refused_in_one_line(tmp_path, line, said):
    lines = line if isinstance(line, list) else [line]
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    (tmp_path / "m.jsonl").write_text(text + "\n")
    with pytest.raises(ValueError) as caught:
        logs.read_log_probs(str(tmp_path / "m.jsonl"))
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_malformed_file_is_refused_before_anything_is_written(tmp_path, capsys):
    (tmp_path / "m.jsonl").write_text('{"id": 1}\n')
    words = ["--log-probs", str(tmp_path / "m.jsonl"), "--output", str(tmp_path / "out")]
    assert command_line.main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and "line 1: suspected" in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_file_without_texts_needs_the_rows(tmp_path, capsys):
    file = written(tmp_path / "m.jsonl", rows(with_text=False))
    assert command_line.main(["--log-probs", file, "--output", str(tmp_path / "out")]) == 2
    assert "name the rows by --data and --unseen" in capsys.readouterr().err
