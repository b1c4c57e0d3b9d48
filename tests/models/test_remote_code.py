"""Code that comes with a model: it never runs, and nobody is asked at a terminal."""

import ast
import json
import os
import pty
import subprocess
import sys

import pytest
from notebook_files import PACKAGE, ROOT

from contamination.models.loading import (
    load_causal_lm,
    load_masked_lm,
    load_sentence_encoder,
)

# What importing it does; a library that asks, and is told yes, imports it.
CODE = """
from pathlib import Path
from transformers import PretrainedConfig
Path({written!r}).write_text("the code ran")
class OwnConfig(PretrainedConfig):
    model_type = "own_kind"
"""
LOADERS = """
import json, sys
from pathlib import Path
from contamination.models import source
name, written = sys.argv[1:]
said = []
for load in (source.check_model, source.load_config, source.load_tokenizer):
    try:
        load(name)
    except ValueError as error:
        said.append(str(error))
Path(written + ".json").write_text(json.dumps(said))
"""


def model_with_code(folder, code):
    folder.mkdir()
    of_config = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    of_config |= {"AutoModelForMaskedLM": "own.OwnModel", "AutoModel": "own.OwnModel"}
    config = {"model_type": "own_kind", "auto_map": of_config}
    of_tokenizer = {"AutoTokenizer": ["own.OwnTokenizer", None]}
    tokenizer = {"tokenizer_class": "OwnTokenizer", "auto_map": of_tokenizer}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    (folder / "own.py").write_text(code)
    return folder


def at_a_terminal(tmp_path, *command):
    """What a Python process shows at a terminal where every question is answered with yes."""
    ours, its = pty.openpty()
    os.write(ours, b"y\n" * 30)
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ["PYTHONPATH"]])}
    process = subprocess.Popen(
        [sys.executable, "-c", *command],
        env=os.environ | paths | {"HF_HOME": str(tmp_path / "hub")},
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    shown = b""
    try:
        while data := os.read(ours, 4096):
            shown += data
    except OSError:  # the last to hold the other end is gone
        pass
    os.close(ours)
    assert process.wait() == 0, shown.decode()
    return shown.decode()


def test_nobody_is_asked_at_a_terminal_and_unasked_code_does_not_run(tmp_path):
    written = tmp_path / "written"
    folder = model_with_code(tmp_path / "model", CODE.format(written=str(written)))
    shown = at_a_terminal(tmp_path, LOADERS, str(folder), str(written))
    assert "[y/N]" not in shown
    said = json.loads((tmp_path / "written.json").read_text())
    assert not written.exists() and len(said) == 3
    for line in said:
        assert_refused(line, folder)


@pytest.mark.parametrize("load", [load_causal_lm, load_masked_lm, load_sentence_encoder])
def test_a_model_with_code_of_its_own_is_refused_in_one_line(tmp_path, load):
    folder = model_with_code(tmp_path / "model", "raise SystemExit")
    with pytest.raises(ValueError) as refused:
        load(folder)
    assert_refused(str(refused.value), folder)


def assert_refused(line, folder):
    assert "\n" not in line
    assert line.startswith(f'model "{folder}" brings code of its own, which is never run')


def test_every_loader_is_told_whether_code_may_run():
    """What it is not told, transformers asks at a terminal."""
    untold = []
    for file in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            name = getattr(getattr(call, "func", None), "attr", None)
            of = getattr(getattr(getattr(call, "func", None), "value", None), "id", None)
            if name in ("from_pretrained", "from_config") and of != "AutoHfQuantizer":
                told = {keyword.arg for keyword in call.keywords}
                if not told & {"trust_remote_code", None}:  # None: all settings are handed on
                    untold.append(f"{file.name}:{call.lineno}")
    assert untold == []
