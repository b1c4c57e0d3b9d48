"""Make runs what is out of date, all of it and nothing else.

The real Makefile works on a small tree whose "python" writes the target and
notes that it ran.
"""

import os
import shutil
import subprocess

import pytest
from notebook_files import NOTEBOOKS, ROOT

STUB = """#!/bin/bash
# Called as: python -m contamination.run NOTEBOOK PARAMETERS OUTPUTS
name=$(basename "$3" .ipynb)
echo "$name" >> runs.txt
[ -e fail ] && exit 1
mkdir -p "$5/notebooks" && echo done > "$5/notebooks/$name.ipynb"
"""


@pytest.fixture
def tree(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    sources = [p.relative_to(ROOT) for p in (ROOT / "src").rglob("*.py")]
    files = [*sources, "requirements.txt", "pyproject.toml"]
    for path in NOTEBOOKS:
        files += [f"notebooks/{path.name}", f"params/demo/{path.stem}.yaml"]
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(STUB)
    python.chmod(0o755)
    (tmp_path / ".venv/.installed").touch()
    return tmp_path


def make(tree, *arguments):
    """Run make; return its exit code, what it printed and which notebooks ran."""
    (tree / "runs.txt").write_text("")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", *arguments], cwd=tree, env=environment, capture_output=True, text=True
    )
    ran = (tree / "runs.txt").read_text().split()
    return done.returncode, done.stdout + done.stderr, ran


def touch(path):
    later = max(p.stat().st_mtime for p in path.parents[2].rglob("*") if p.is_file()) + 5
    os.utime(path, (later, later))


def test_everything_runs_once_in_the_order_of_dependence(tree):
    code, _, ran = make(tree, "reproduce")
    assert code == 0
    assert sorted(ran) == [path.stem for path in NOTEBOOKS]
    assert ran.index("09_results") > ran.index("02_dcq")
    # The base model is trained once, before those that continue it.
    assert ran.index("01_data_prep") < ran.index("02_dcq")
    assert make(tree, "reproduce")[2] == []


def test_a_parameter_file_reruns_its_notebook_and_what_reads_its_tables(tree):
    make(tree, "reproduce")
    touch(tree / "params/demo/02_dcq.yaml")
    assert make(tree, "reproduce")[2] == ["02_dcq", "09_results"]


def test_a_room_reruns_the_notebooks_that_use_it(tree):
    make(tree, "reproduce")
    touch(tree / "src/contamination/replication/algorithm1.py")
    ran = make(tree, "reproduce")[2]
    assert "03_replication_icl_judge" in ran
    assert "02_dcq" not in ran


def test_a_missing_parameter_file_is_an_error(tree):
    make(tree, "reproduce")
    (tree / "params/demo/02_dcq.yaml").unlink()
    code, printed, ran = make(tree, "reproduce")
    assert code != 0
    assert "params/demo/02_dcq.yaml" in printed
    assert ran == []


def test_an_unknown_profile_is_an_error(tree):
    code, printed, ran = make(tree, "reproduce", "PROFILE=dmeo")
    assert code != 0
    assert "params/dmeo/" in printed
    assert ran == []


def test_a_failed_notebook_is_run_again(tree):
    (tree / "fail").touch()
    assert make(tree, "01_data_prep")[0] != 0
    (tree / "fail").unlink()
    assert make(tree, "01_data_prep")[2] == ["01_data_prep"]


def test_help_lists_targets_with_needs(tree):
    code, printed, _ = make(tree)
    assert code == 0
    for target in ("reproduce", "test", "data", "02_dcq"):
        assert f"\n  {target} " in printed
