"""Set-up: which build of torch is installed."""

import os
import re
import subprocess

import pytest
from notebook_files import ROOT

TORCH = ("requirements/torch-cpu.txt", "requirements/torch-cuda.txt")
# A python that notes what pip is asked for, refuses one lock, and has one torch or none.
PYTHON = """#!/bin/bash
shift 2
case "$1" in
  show) echo "Version: {torch}" ;;
  install) echo "${{@: -1}}" >> asked; [[ ${{@: -1}} != {refused} ]] ;;
esac
"""


@pytest.mark.parametrize(
    ("there", "refused", "chosen", "installed", "code"),
    [
        ("none", "nothing", "", ["cpu"], 0),
        ("none", "requirements/torch-cpu.txt", "", ["cpu", "cuda"], 0),
        ("none", "requirements/torch-cpu.txt", "cpu", ["cpu"], 1),
        ("none", "nothing", "cuda", ["cuda"], 0),
        ("{locked}", "nothing", "", [], 0),
        ("{locked}", "nothing", "cuda", ["cuda"], 0),
        ("1.0", "nothing", "", ["cpu"], 0),
    ],
)
def test_cuda_is_installed_only_where_it_is_asked_for_or_nothing_else_is_served(
    tmp_path, there, refused, chosen, installed, code
):
    (tmp_path / "requirements").mkdir()
    for name in ("requirements.txt", *TORCH):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    locked = re.search(r"^torch==(\S+)", (ROOT / TORCH[1]).read_text(), re.M)[1]
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON.format(torch=there.format(locked=locked), refused=refused))
    python.chmod(0o755)
    command = ["bash", str(ROOT / "scripts/install.sh"), "venv", "requirements.txt"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"TORCH": chosen}, capture_output=True, text=True
    )
    assert done.returncode == code
    asked = (tmp_path / "asked").read_text().split()
    assert asked[0] == "venv/setuptools.txt"
    assert (asked[-1] == "requirements.txt") == (code == 0)
    assert [name for name in asked if name in TORCH] == [
        f"requirements/torch-{build}.txt" for build in installed
    ]
    assert ("several GB" in done.stdout) == (installed == ["cpu", "cuda"])


def test_another_build_of_torch_is_refused_in_one_line(tmp_path):
    command = ["bash", str(ROOT / "scripts/install.sh"), "venv", "requirements.txt"]
    settings = os.environ | {"TORCH": "rocm"}
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert done.returncode == 1 and not list(tmp_path.iterdir())
    assert done.stderr == "error: TORCH is cpu or cuda, not rocm\n"
