"""A model's name is checked before anything else, and a wrong one is a line with its cure."""

import pytest

from contamination.audit import command_line, names
from contamination.models.source import PACKAGED

SAMPLE = ["--data", "params/audit/sample.jsonl", "--label", "label"]


@pytest.mark.parametrize("name", ["lab:clean", "lab:clean:2", "lab:contaminated"])
def test_names_of_the_lab_pass(name):
    names.check_name(name)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("lab:dirty", ValueError, 'the lab has "lab:contaminated" and "lab:clean", not'),
        ("lab:contaminatd", ValueError, 'did you mean "lab:contaminated"?'),
        ("package:llm-smollm", ValueError, f'did you mean "{PACKAGED}"?'),
        ("./nowhere/model", FileNotFoundError, '"nowhere" is not there either'),
        ("nosuch/model", FileNotFoundError, "nor found on the Hugging Face hub"),
    ],
)
def test_a_name_that_no_model_has_is_one_line(name, kind, message):
    with pytest.raises(kind) as refused:
        names.check_name(name)
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_a_folder_that_is_not_there_comes_with_the_models_beside_it(tmp_path):
    (tmp_path / "small").mkdir()
    (tmp_path / "small/config.json").write_text("{}")
    (tmp_path / "large.gguf").write_bytes(b"GGUF")
    (tmp_path / "notes").mkdir()
    with pytest.raises(FileNotFoundError, match=r"holds large\.gguf, small$"):
        names.check_name(str(tmp_path / "smal"))
    with pytest.raises(FileNotFoundError, match=r"no folder with config\.json and no GGUF file"):
        names.check_name(str(tmp_path / "notes/model"))


@pytest.mark.parametrize("name", ["nosuch/model", "lab:dirty", "package:llm-smollm"])
def test_a_plan_refuses_it_too_and_writes_nothing(name, tmp_path, capsys):
    words = ["--model", name, *SAMPLE, "--plan", "--outputs", str(tmp_path / "out")]
    assert command_line.main(words) == 1
    error = capsys.readouterr().err
    assert name in error and len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_at_an_address_any_name_will_do(tmp_path, monkeypatch):
    monkeypatch.setattr(command_line.asked, "check_ready", lambda *_: None)
    words = ["--model", "gpt-that-nobody-knows", "--served-at", "http://127.0.0.1:9/v1", *SAMPLE]
    words += ["--prices", "1,1", "--price-date", "2026-01-31", "--cap", "1", "--rows", "8"]
    assert command_line.main([*words, "--plan", "--outputs", str(tmp_path / "out")]) == 0
