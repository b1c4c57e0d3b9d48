"""The runner: each test is a way in which a plain papermill run goes wrong."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest
from notebook_files import build
from waiting import LIMIT_SECONDS, wait_until

from contamination.core import run, storage
from contamination.core.parameters import ParameterError

PARAMETERS = "n: int = 3  # how many"
TABLE = (
    "import pandas as pd\n"
    "from contamination.core.storage import Outputs\n"
    "Outputs().write_table('t', pd.DataFrame({'n': [n]}))"
)


@pytest.fixture(autouse=True)
def kernels(request):
    """Forked ones, but for the test whose manifest has the memory of a child of this process."""
    if request.function is not test_a_run_leaves_table_manifest_and_notebook:
        request.getfixturevalue("forked_kernels")


@pytest.fixture
def parameter_file(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("n: 4\n")
    return path


def run_cells(tmp_path, parameter_file, *cells):
    notebook = build(tmp_path / "01_x.ipynb", PARAMETERS, *cells)
    return run.run_notebook(notebook, parameter_file, tmp_path / "out")


def failure_of(tmp_path, parameter_file, *cells):
    with pytest.raises(run.RunError) as caught:
        run_cells(tmp_path, parameter_file, *cells)
    message = str(caught.value)
    assert "\n" not in message
    assert not (tmp_path / "out" / "notebooks").exists(), "a failed run left its target"
    assert not (tmp_path / "out" / "tables").exists(), "a failed run left a table"
    return message


def test_a_run_leaves_table_manifest_and_notebook(tmp_path, parameter_file, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    cells = [
        "import os\nassert os.listdir().count('01_x.ipynb') == 1",  # in the notebook's folder
        "from contamination.core.storage import record",
        "record('input', name='a.csv', sha256='0' * 64)",
        "for _ in range(2):\n    record('model', name='lab', dtype='float32')",
        "for hits in (1, 3):\n    record('cache', name='scores', hits=hits, misses=1)",
    ]
    target = run_cells(tmp_path, parameter_file, TABLE, *cells)
    assert (tmp_path / "out/tables/t.csv").read_text() == "n\n4\n"
    manifest = json.loads((tmp_path / "out/manifests/01_x.json").read_text())
    assert manifest["inputs"] == {"a.csv": "0" * 64}
    assert manifest["models"] == [{"name": "lab", "dtype": "float32"}]
    assert manifest["cache"] == {"scores": {"hits": 4, "misses": 2}}
    assert manifest["parameters"] == {"n": 4}
    assert list(manifest["outputs"]) == ["tables/t.csv"]
    assert len(manifest["notebook_sha256"]) == 64
    # The notebook named another kernel; it ran in this environment's.
    assert nbformat.read(target, 4).metadata.kernelspec.name == "python3"


def test_a_kernel_of_the_same_name_in_another_environment_is_not_taken(
    tmp_path, parameter_file, monkeypatch
):
    other = tmp_path / "jupyter/kernels/python3/kernel.json"
    other.parent.mkdir(parents=True)
    other.write_text(json.dumps({"argv": ["false"], "display_name": "x", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    run_cells(tmp_path, parameter_file, f"import sys\nassert sys.executable == {sys.executable!r}")


def test_a_failed_run_keeps_its_tables_apart_until_a_run_succeeds(tmp_path, parameter_file):
    failure_of(tmp_path, parameter_file, TABLE, "raise ValueError('k is 0')")
    kept = tmp_path / "out/failed/01_x/t.csv"
    assert kept.read_text() == "n\n4\n"
    failure_of(tmp_path, parameter_file, "raise ValueError('k is 0')")
    assert not kept.exists(), "the table is that of an earlier run"
    failure_of(tmp_path, parameter_file, TABLE, "raise ValueError('k is 0')")
    run_cells(tmp_path, parameter_file, TABLE)
    assert not kept.parent.exists()


def test_an_interrupted_run_keeps_its_tables_too(tmp_path, parameter_file, monkeypatch):
    def interrupted(*_, **__):
        storage.Outputs().write_table("t", pd.DataFrame({"n": [1]}))
        raise KeyboardInterrupt

    monkeypatch.setattr(papermill, "execute_notebook", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_cells(tmp_path, parameter_file, TABLE)
    assert (tmp_path / "out/failed/01_x/t.csv").exists()
    assert not (tmp_path / "out/tables").exists()


def test_failure_names_cell_heading_and_parameter_file(tmp_path, parameter_file):
    message = failure_of(tmp_path, parameter_file, TABLE, "## Scores", "raise ValueError('k is 0')")
    assert 'cell 4, under "Scores"' in message
    assert "ValueError: k is 0" in message
    assert str(parameter_file) in message
    assert (tmp_path / "out/failed/01_x.ipynb").exists()


@pytest.mark.parametrize(
    ("cell", "cause"),
    [
        ("import sys; sys.exit(0)", "cell 2 ended the notebook early"),
        ("import os; os._exit(1)", "failed: deadkernelerror: kernel died"),
    ],
)
def test_a_kernel_that_ends_is_no_success(tmp_path, parameter_file, cell, cause):
    assert cause in failure_of(tmp_path, parameter_file, cell, TABLE).lower()


def test_a_failed_run_keeps_the_earlier_result_and_a_dropped_table_goes(tmp_path, parameter_file):
    target = run_cells(tmp_path, parameter_file, TABLE)
    before = target.read_bytes()
    with pytest.raises(run.RunError):
        run_cells(tmp_path, parameter_file, TABLE.replace("[n]", "[n + 1]"), "1 / 0")
    assert target.read_bytes() == before
    assert (tmp_path / "out/tables/t.csv").read_text() == "n\n4\n"
    run_cells(tmp_path, parameter_file, "x = 1")
    assert not (tmp_path / "out/tables/t.csv").exists()


def test_keys_and_paths_stay_out_of_every_file(tmp_path, parameter_file, monkeypatch):
    key = "sk-" + "a1B2" * 8
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("OTHER_TOKEN", "correct-horse-battery")
    run_cells(
        tmp_path,
        parameter_file,
        TABLE,
        "import os, sys\nprint(os.environ['OPENAI_API_KEY'], os.environ['OTHER_TOKEN'])",
        "print(os.getcwd(), sys.prefix, os.path.expanduser('~/x'))",
    )
    with pytest.raises(run.RunError) as caught:
        run_cells(
            tmp_path, parameter_file, "raise ValueError(__import__('os').environ['OPENAI_API_KEY'])"
        )
    assert key not in str(caught.value)
    texts = [path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert any("***" in text for text in texts)
    for text in texts:
        for secret in (key, "correct-horse-battery", str(tmp_path), sys.prefix):
            assert secret not in text


@pytest.mark.parametrize(
    ("shown", "scrubbed"),
    [
        ("/home/me", "~"),
        ("in /home/me.", "in ~."),
        ("'/home/me/x', /var/spare/y", "'~/x', $TMPDIR/y"),
        ("PATH=/home/me/bin:/var/spare", "PATH=~/bin:$TMPDIR"),
        ("file:///home/me/x", "file://~/x"),
        ("\x1b[32m/home/me/x", "\x1b[32m~/x"),  # as tracebacks colour it
        ("'one\\n/home/me/x'", "'one\\n~/x'"),  # as repr writes a line end
        ("<td>/home/me</td>", "<td>~</td>"),
        *((other, other) for other in ("/home/meg/x", "/home/me-too", "/home/me.old/x")),
        *(
            (other, other)
            for other in (
                "/a/var/spare",
                "/var/sparefoo",
                "./var/spare",
                "{folder}/var/spare",
                "</var/spare>",
            )
        ),
        ("http://var/spare/v1", "http://var/spare/v1"),
    ],
)
def test_a_folder_is_scrubbed_where_it_is_one_and_not_inside_another(shown, scrubbed, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(run.tempfile, "gettempdir", lambda: "/var/spare")
    clean = run.scrubber({})
    assert clean(shown) == scrubbed
    assert clean({shown: [shown, 1, None]}) == {scrubbed: [scrubbed, 1, None]}


def test_a_folder_is_scrubbed_under_the_name_that_its_link_leads_to(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path / "link"))
    for name in ("link", "real"):
        assert run.scrubber({})(f"{tmp_path}/{name}/x") == "$CONTAMINATION_CACHE/x"


def test_links_work_from_where_the_executed_notebook_lies(tmp_path):
    for name in ("docs/page.md", "notebooks/exercises/01.ipynb", "notebooks/02.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    links = "[a](../docs/page.md#part) [b](exercises/01.ipynb) [c](02.ipynb) [d](https://x.org/y)"
    places = tmp_path / "outputs/demo/notebooks", tmp_path / "notebooks"
    assert run.with_links(links, *places, root=tmp_path) == (
        "[a](../../../docs/page.md#part) [b](../../../notebooks/exercises/01.ipynb) "
        "[c](02.ipynb) [d](https://x.org/y)"
    )


def test_the_manifest_names_neither_keys_nor_folders_of_this_machine(
    tmp_path, parameter_file, monkeypatch
):
    monkeypatch.setenv("OTHER_TOKEN", "correct-horse-battery")
    names = ["correct-horse-battery", f"{sys.prefix}/model", f"{Path.home()}/texts.jsonl"]
    names.append(str(tmp_path / "out" / "of.jsonl"))
    parameter_file.write_text(f"names: {json.dumps(names)}\n")
    cell = "from contamination.core.storage import record"
    cell += "\nfor name in names:\n    record('input', name=name, sha256='0')"
    cell += "\n    record('model', name=name)\n    record('cache', name=name, hits=0, misses=1)"
    notebook = build(tmp_path / "01_x.ipynb", "names: list[str] = []  # what is read", cell)
    run.run_notebook(notebook, parameter_file, tmp_path / "out")
    text = (tmp_path / "out/manifests/01_x.json").read_text()
    shown = json.loads(text)["parameters"]["names"]
    assert shown == ["***", "$VENV/model", "~/texts.jsonl", "outputs/of.jsonl"]
    assert not [name for name in (*names, str(tmp_path), sys.prefix) if name in text]


def test_the_executed_notebook_comes_last(tmp_path, parameter_file):
    """Make takes it as proof of all the rest, and a folder stands where the table should be."""
    (tmp_path / "out/tables/t.csv").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        run_cells(tmp_path, parameter_file, TABLE)
    assert not (tmp_path / "out/notebooks").exists()


def killed_in_the_middle(tmp_path, notebook, parameter_file):
    """Kill -9 after the first table; what is there of the staged run."""
    command = [sys.executable, "-m", "contamination.core.run", str(notebook), str(parameter_file)]
    process = subprocess.Popen([*command, str(tmp_path / "out")], start_new_session=True)
    staged = tmp_path / "out/.staging/01_x"
    wait_until((staged / "tables/t.csv").exists, lambda: process.poll() is None)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return staged


WAIT = f"import time; time.sleep({LIMIT_SECONDS})"


def test_kill_leaves_no_target_and_the_next_run_succeeds(tmp_path, parameter_file):
    notebook = build(tmp_path / "01_x.ipynb", PARAMETERS, TABLE, WAIT)
    staged = killed_in_the_middle(tmp_path, notebook, parameter_file)
    assert not list(staged.rglob("*.ipynb")), "a notebook that was not searched for keys"
    assert not (tmp_path / "out/notebooks").exists()
    assert not (tmp_path / "out/tables").exists()
    build(notebook, PARAMETERS, TABLE)
    run.run_notebook(notebook, parameter_file, tmp_path / "out")
    assert (tmp_path / "out/tables/t.csv").exists()


def test_two_runs_of_one_notebook_do_not_mix(tmp_path, parameter_file):
    import fcntl

    (tmp_path / "out/.staging").mkdir(parents=True)
    with (tmp_path / "out/.staging/01_x.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        message = failure_of(tmp_path, parameter_file, TABLE)
    assert "another run" in message


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, parameter_file, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(papermill, "execute_notebook", full)
    notebook = build(tmp_path / "01_x.ipynb", PARAMETERS, TABLE)
    assert run.main([str(notebook), str(parameter_file), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == "error: [Errno 28] No space left on device\n"
    assert not [
        path for path in (tmp_path / "out").rglob("*") if path.suffix != ".lock" and path.is_file()
    ]


def test_command_line_prints_one_line_and_fails(tmp_path, parameter_file, capsys):
    notebook = build(tmp_path / "01_x.ipynb", PARAMETERS, "x = 1")
    parameter_file.write_text("m: 4\n")
    code = run.main([str(notebook), str(parameter_file), str(tmp_path / "out")])
    printed = capsys.readouterr().err
    assert code == 1
    assert printed.count("\n") == 1
    assert 'unknown name "m"' in printed
    missing = run.main([str(tmp_path / "no.ipynb"), str(parameter_file), str(tmp_path / "out")])
    assert missing == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_parameters_are_checked_before_anything_is_written(tmp_path, parameter_file):
    parameter_file.write_text("n: four\n")
    with pytest.raises(ParameterError, match="want int"):
        run_cells(tmp_path, parameter_file, TABLE)
    assert not (tmp_path / "out").exists()
