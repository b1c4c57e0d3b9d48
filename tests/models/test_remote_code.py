"""Code that comes with a model: it runs where it is allowed, and nobody is asked at a terminal."""

import ast
import json
import os
import pty
import subprocess
import sys

import pytest
from notebook_files import PACKAGE, ROOT

from contamination.models import source
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
refused = not Path(written).exists()
kind = type(source.load_config(name, trust_remote_code=True)).__name__
Path(written + ".json").write_text(json.dumps([said, refused, kind, Path(written).exists()]))
"""


def model_with_code(folder, code, module="own"):
    folder.mkdir()
    of_config = {"AutoConfig": f"{module}.OwnConfig", "AutoModelForCausalLM": f"{module}.OwnModel"}
    of_config |= {"AutoModelForMaskedLM": f"{module}.OwnModel", "AutoModel": f"{module}.OwnModel"}
    config = {"model_type": "own_kind", "auto_map": of_config}
    of_tokenizer = {"AutoTokenizer": [f"{module}.OwnTokenizer", None]}
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
    said, refused, kind, has_run = json.loads((tmp_path / "written.json").read_text())
    assert refused and len(said) == 3
    for line in said:
        assert_says_how(line, folder)
    # Where it is allowed it is the folder's code that runs.
    assert (kind, has_run) == ("OwnConfig", True)


@pytest.mark.parametrize("load", [load_causal_lm, load_masked_lm, load_sentence_encoder])
def test_a_model_with_code_of_its_own_is_one_line_that_says_how_to_allow_it(tmp_path, load):
    folder = model_with_code(tmp_path / "model", "raise SystemExit")
    with pytest.raises(source.OwnCodeError) as refused:
        load(folder)
    assert_says_how(str(refused.value), folder)


def assert_says_how(line, folder):
    assert "\n" not in line and line.startswith(f'model "{folder}" brings code of its own')
    assert line.endswith(f'load_causal_lm("{folder}", trust_remote_code=True)')


@pytest.mark.parametrize("load", [source.load_config, source.load_tokenizer, load_causal_lm])
def test_code_of_another_repository_is_pinned_by_no_commit(tmp_path, load):
    folder = model_with_code(tmp_path / "model", "", module="someone/else--own")
    with pytest.raises(ValueError, match=r'that of "someone/else", and no commit pins it.*$'):
        load(folder, trust_remote_code=True)


@pytest.mark.parametrize("load", [source.load_config, source.load_tokenizer])
@pytest.mark.parametrize("revision", [None, "main"])
def test_code_from_the_hub_runs_only_from_a_pinned_commit(load, revision):
    with pytest.raises(ValueError, match="runs only from a pinned commit"):
        load("someone/tiny", revision, trust_remote_code=True)


def test_every_loader_is_told_whether_code_may_run():
    """What it is not told, transformers asks at a terminal."""
    untold = []
    for file in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            name = getattr(getattr(call, "func", None), "attr", None)
            if name in ("from_pretrained", "from_config"):
                told = {keyword.arg for keyword in call.keywords}
                if not told & {"trust_remote_code", None}:  # None: all settings are handed on
                    untold.append(f"{file.name}:{call.lineno}")
    assert untold == []
