"""The installed command: its help and its errors."""

import subprocess
import sys
import tomllib
from importlib import import_module

import pytest
from notebook_files import ROOT

import contamination
from contamination import __main__ as command
from contamination.core import run, storage

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def printed(capsys, *words, code=0):
    """What the command prints of one kind (out or err) where it prints nothing of the other."""
    try:
        ended = command.main(words)
    except SystemExit as stopped:
        ended = stopped.code or 0
    assert ended == code
    out, err = capsys.readouterr()
    assert not (out and err)
    return out or err


def test_the_entry_point_is_the_command():
    module, name = PROJECT["scripts"]["contamination"].split(":")
    assert getattr(import_module(module), name) is command.main


def test_its_version_is_the_package_s_and_its_help_lists_the_subcommands(capsys):
    assert printed(capsys, "--version") == f"contamination {PROJECT['version']}\n"
    assert contamination.__version__ == PROJECT["version"]
    assert "\n  audit " in printed(capsys, "--help")
    assert printed(capsys) == printed(capsys, "-h")


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["adit"], "contamination --help lists all"),
        (["audit"], "--model and --data are needed, or --log-probs, or --settings"),
        (["audit", "--model", "lab:clean"], "--model and --data are needed, or --log-probs, or"),
        (["audit", "--modle", "lab:clean"], "contamination audit --help lists the options"),
        (["audit", "--settings", "a.yaml", "--rows", "3"], "write --rows there"),
    ],
)
def test_a_line_that_does_not_fit_is_one_line_with_its_cure(capsys, words, cure):
    said = printed(capsys, *words, code=2)
    assert said.startswith("error: ") and cure in said
    assert said.count("\n") == 1


def test_help_of_the_audit_comes_before_anything_slow_is_imported():
    code = "import sys, atexit; from contamination import __main__ as m; atexit.register(lambda: "
    code += "print(*({'numpy', 'pandas', 'torch', 'pydantic', 'yaml'} & set(sys.modules))));"
    code += "m.main(['audit', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("such as shown\n\n")


def test_without_a_checkout_the_project_s_files_are_those_of_the_package(tmp_path, monkeypatch):
    assert storage.project_root() == storage.checkout() == ROOT
    installed = tmp_path / "lib/site-packages/contamination/core/storage.py"
    monkeypatch.setattr(storage, "__file__", str(installed))
    monkeypatch.chdir(tmp_path)
    assert storage.checkout() is None
    assert storage.project_root() == tmp_path
    carried = installed.parents[1] / "project_files"
    carried.mkdir(parents=True)
    monkeypatch.setattr(storage, "CARRIED", carried)
    assert storage.project_root() == carried
    monkeypatch.delenv(storage.OUTPUTS_VARIABLE)
    assert storage.Outputs().folder == tmp_path / "outputs/interactive"
    # A repository around an installed package is somebody else's.
    subprocess.run(["git", "init", "-q"], check=True)
    assert run._git_state() == {"commit": None, "dirty": None}
