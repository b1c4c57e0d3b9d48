"""What CI runs, and that tests which could run are not skipped in silence."""

import os
import shutil
import subprocess
import sys

import pytest
from notebook_files import ROOT


def run_ci(tmp_path, shared):
    """Exit code of ``.ci/run``, and each call of make with the mirror that it was given."""
    checkout, commands = tmp_path / "a checkout", tmp_path / "bin"
    for folder in (checkout / ".ci", commands, *(tmp_path / name for name in shared)):
        folder.mkdir(parents=True)
    for name in (".ci/run", "Makefile"):
        shutil.copy(ROOT / name, checkout / name)
    make = f'echo "$* [${{CONTAMINATION_MIRROR-}}]" >> {tmp_path}/calls; [ "$1" != "$FAILS" ]'
    for name, script in {"make": make, "dpkg-query": "exit 0"}.items():
        (commands / name).write_text(f"#!/bin/bash\n{script}\n")
        (commands / name).chmod(0o755)
    environment = {name: os.environ[name] for name in os.environ if name != "CONTAMINATION_MIRROR"}

    def run(fails):
        settings = {"PATH": f"{commands}:{os.environ['PATH']}", "FAILS": fails}
        done = subprocess.run(["bash", str(checkout / ".ci/run")], env=environment | settings)
        calls = (tmp_path / "calls").read_text().splitlines()
        (tmp_path / "calls").unlink()
        return done.returncode, calls

    return run


def test_ci_lints_tests_and_asks_real_servers_and_stops_at_what_fails(tmp_path):
    run = run_ci(tmp_path, [])
    assert run(fails="") == (0, ["lint test []", "test-servers []"])
    assert run(fails="lint") == (1, ["lint test []"])


@pytest.mark.parametrize("shared", ["shared", "shared/data"])
def test_beside_shared_files_ci_does_without_none_of_them(tmp_path, shared):
    mirror = f"[{tmp_path}/shared/data]"
    run = run_ci(tmp_path, [shared])
    assert run(fails="")[1] == [f"lint test {mirror}", f"test-servers {mirror}"]


def session(tmp_path, mirror, *options):
    """Pytest with the suite's own hooks, on one test that skips itself though it needs no more."""
    (tmp_path / "test_x.py").write_text(
        "import pytest\n\n\n@pytest.mark.mirror\ndef test_x():\n    pytest.skip('not today')\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider"]
    command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), str(tmp_path), *options]
    folders = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src"), os.environ["PYTHONPATH"]])
    settings = {"PYTHONPATH": folders, "CONTAMINATION_MIRROR": str(mirror)}
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("PYTEST_", "TESTS_"))}
    return subprocess.run(
        command, env=environment | settings, cwd=ROOT, capture_output=True, text=True
    )


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["one process", "workers"])
def test_a_test_that_is_skipped_though_the_files_are_there_fails_the_session(tmp_path, options):
    (tmp_path / "mirror").mkdir()
    done = session(tmp_path, tmp_path / "mirror", *options)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "skipped although present: mirror" in done.stdout


def test_a_mirror_that_is_not_there_is_one_line_and_no_test_runs(tmp_path):
    done = session(tmp_path, tmp_path / "nowhere")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stdout == ""
    assert done.stderr.strip().startswith("ERROR: CONTAMINATION_MIRROR names a folder that does")
    assert len(done.stderr.strip().splitlines()) == 1
