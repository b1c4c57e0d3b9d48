"""Make runs what is out of date, all of it and nothing else.

The real Makefile works on a small tree whose "python" writes the target and
notes that it ran.
"""

import os
import shutil
import subprocess

import pytest
from notebook_files import CONTENTS, NOTEBOOKS, ROOT

STUB = """#!/bin/bash
# Called as: python -m contamination.core.run NOTEBOOK PARAMETERS OUTPUTS, or to count cores.
[ "$1" = -c ] && echo 2 1 && exit
name=$(basename "$3" .ipynb)
echo "$name" >> runs.txt
[ -e fail ] && exit 1
mkdir -p "$5/notebooks" && echo done > "$5/notebooks/$name.ipynb"
"""


@pytest.fixture
def tree(tmp_path):
    for name in ("lab/world.py", "data/printed.csv", "lab/__pycache__/world.cpython-311.pyc"):
        (tmp_path / "src/contamination" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src/contamination" / name).touch()
    for name in ("Makefile", "notebooks/contents.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for path in NOTEBOOKS:
        shutil.copy(path, tmp_path / "notebooks")
        (tmp_path / f"params/demo/{path.stem}.yaml").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"params/demo/{path.stem}.yaml").touch()
    (tmp_path / "requirements").mkdir()
    for path in [*ROOT.glob("requirements/*"), ROOT / "requirements.txt", ROOT / "pyproject.toml"]:
        (tmp_path / path.relative_to(ROOT)).touch()
    executable(tmp_path / ".venv/bin/python", STUB)
    (tmp_path / ".venv/.installed").touch()
    return tmp_path


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def make(tree, *arguments, **variables):
    """Run make; return its exit code, what it printed and which notebooks ran."""
    (tree / "runs.txt").write_text("")
    outer = ("MAKE", "MFLAGS", "VENV", "VIRTUAL_ENV", "CONDA_PREFIX", "PROFILE", "PYTHON")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(outer)} | variables
    done = subprocess.run(
        ["make", *arguments], cwd=tree, env=environment, capture_output=True, text=True
    )
    ran = (tree / "runs.txt").read_text().split()
    return done.returncode, done.stdout + done.stderr, ran


def touch(tree, name):
    later = max(path.stat().st_mtime for path in tree.rglob("*") if path.is_file()) + 5
    os.utime(tree / name, (later, later))


def test_every_notebook_is_in_the_one_list_of_them():
    assert sorted(ROOT.glob("notebooks/*.ipynb")) == sorted(NOTEBOOKS)
    names = [row["notebook"] for row in CONTENTS]
    for row in CONTENTS:
        earlier = names[: names.index(row["notebook"])]
        assert set(row["after"].split()) <= set(earlier)


def test_everything_runs_once_in_the_order_of_dependence(tree):
    code, printed, ran = make(tree, "reproduce")
    assert code == 0
    assert f"{len(NOTEBOOKS)} notebooks are to be run, 2 at a time" in printed
    assert "still to do: nothing" in printed.splitlines()[-2]
    assert printed.splitlines()[-1].startswith("all done: ")
    assert sorted(ran) == [path.stem for path in NOTEBOOKS]
    assert ran.index("09_results") > ran.index("02_dcq")
    # The base model is trained once, before those that continue it.
    assert ran.index("01_data_prep") < ran.index("02_dcq")
    code, printed, ran = make(tree, "reproduce")
    assert code == 0 and ran == []
    assert printed == "nothing is to be run: outputs/demo is newer than all that it is made of\n"


def test_named_notebooks_are_the_only_ones_that_run(tree):
    chosen = "NOTEBOOKS=01_data_prep 00_start_here"
    code, printed, ran = make(tree, "reproduce", chosen)
    assert code == 0 and sorted(ran) == ["00_start_here", "01_data_prep"]
    assert printed.startswith("2 notebooks are to be run")


def test_a_parameter_file_reruns_its_notebook_and_what_reads_its_tables(tree):
    make(tree, "reproduce")
    touch(tree, "params/demo/02_dcq.yaml")
    assert make(tree, "reproduce")[2] == ["02_dcq", "09_results"]


def test_a_newer_file_of_the_package_reruns_the_notebooks(tree):
    make(tree, "reproduce")
    for name in ("lab/world.py", "data/printed.csv"):
        touch(tree, f"src/contamination/{name}")
        assert sorted(make(tree, "reproduce")[2]) == [path.stem for path in NOTEBOOKS]


def test_a_missing_parameter_file_is_an_error(tree):
    make(tree, "reproduce")
    (tree / "params/demo/02_dcq.yaml").unlink()
    code, printed, ran = make(tree, "reproduce")
    assert code != 0
    assert "params/demo/02_dcq.yaml" in printed
    assert ran == []


def test_an_unknown_profile_is_one_line_that_names_those_there_are(tree):
    code, printed, ran = make(tree, "reproduce", "PROFILE=dmeo")
    assert code != 0
    assert "params/dmeo/" in printed and "PROFILE is one of demo" in printed
    assert len(printed.splitlines()) == 1
    assert ran == []


@pytest.mark.parametrize("goal", ["reproduce", "02_dcq"])
def test_a_full_run_is_one_line_that_says_how_its_files_run(tree, goal):
    shutil.copytree(ROOT / "params/full", tree / "params/full")
    code, printed, ran = make(tree, goal, "PROFILE=full")
    assert code != 0 and ran == []
    assert "-m contamination.core.run NOTEBOOK PARAMETERS OUTPUTS" in printed
    assert len(printed.splitlines()) == 1


def test_the_newest_python_that_runs_is_taken(tree):
    """A name on the path may be a shim that leads nowhere."""
    executable(tree / "bin/python3.13", "#!/bin/bash\necho no such version >&2; exit 127\n")
    for name in ("python3.12", "python3.11", "python3"):
        executable(tree / "bin" / name, "#!/bin/bash\nexit 0\n")
    path = f"{tree / 'bin'}:{os.environ['PATH']}"
    (tree / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/install.sh", tree / "scripts")
    assert 'PYTHON="python3.12"' in make(tree, "-n", "setup", "VENV=new", PATH=path)[1]
    for name in ("python3.12", "python3.11", "python3"):
        executable(tree / "bin" / name, "#!/bin/bash\nexit 1\n")
    code, printed, _ = make(tree, "setup", "VENV=new", PATH=path)
    assert code != 0 and "no Python from 3.11.5 to 3.13 is found" in printed


def test_a_failed_notebook_is_run_again(tree):
    (tree / "fail").touch()
    assert make(tree, "01_data_prep")[0] != 0
    (tree / "fail").unlink()
    assert make(tree, "01_data_prep")[2] == ["01_data_prep"]


@pytest.mark.parametrize("given", ["a  b", "/data/a b"])
def test_a_mirror_is_one_absolute_path_whatever_its_name(tree, given):
    executable(tree / ".venv/bin/python", '#!/bin/bash\necho "[$CONTAMINATION_MIRROR]"\n')
    shown = f"[{tree / given}]"
    assert shown in make(tree, "data", CONTAMINATION_MIRROR=given)[1].splitlines()
    assert shown in make(tree, "data", f"CONTAMINATION_MIRROR={given}")[1].splitlines()


def test_data_without_a_model_is_one_line_and_audits_nothing(tree):
    code, printed, ran = make(tree, "audit", "DATA=mine.jsonl")
    assert code != 0 and "error: DATA needs MODEL=..." in printed and not ran
    assert "error" not in make(tree, "-n", "audit", "MODEL=m", "DATA=mine.jsonl")[1]
