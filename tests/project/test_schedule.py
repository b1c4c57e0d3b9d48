"""The schedule of make reproduce: how many notebooks at a time, in which order, and how long."""

import json
import shutil
import subprocess

import pytest
from notebook_files import ROOT, script

schedule = script("schedule")
NOTEBOOK = schedule.Notebook


def chain(n_chain=2, n_free=2):
    """Notebooks of 100 s: some that wait for one another, and some that wait for none."""
    waiting = [
        NOTEBOOK(f"chain {place}", (f"chain {place - 1}",) if place else (), 100, 50)
        for place in range(n_chain)
    ]
    return waiting + [NOTEBOOK(f"free {place}", (), 100, 0) for place in range(n_free)]


@pytest.mark.parametrize(
    ("n_cores", "n_jobs", "minutes"), [(1, 2, 400), (2, 2, 200), (4, 4, 200), (2, 1, 400)]
)
def test_the_last_notebook_ends_with_the_chain_or_when_the_cores_have_done_all(
    n_cores, n_jobs, minutes
):
    assert schedule.makespan(chain(), n_cores, n_jobs, 1) == (minutes, 200)


def test_processes_shorten_what_they_share():
    whole, longest = schedule.makespan(chain(), 4, 4, 2)
    assert (whole, longest) == (150, 150)
    assert schedule.seconds(NOTEBOOK("one", (), 100, 80), 4) == 40


def test_a_notebook_waits_for_those_it_comes_after():
    waits = ("short",)
    listed = [NOTEBOOK("long", waits, 100, 0), NOTEBOOK("longer", waits, 110, 0)]
    listed.insert(0, NOTEBOOK("short", (), 10, 0))
    assert schedule.starting_order(listed) == ["short", "longer", "long"]
    assert schedule.makespan(listed, 2, 2, 1)[0] == 120


def test_make_starts_notebooks_in_the_order_of_the_schedule():
    command = ["make", "--no-print-directory", "-f", "-", "order"]
    rule = "include Makefile\norder:\n\t@echo $(notdir $(basename $(TARGETS)))\n"
    done = subprocess.run(command, cwd=ROOT, input=rule, capture_output=True, text=True, check=True)
    assert done.stdout.split() == schedule.starting_order(schedule.notebooks())


@pytest.mark.parametrize(
    ("n_cores", "memory_gb", "n_jobs", "n_processes"),
    [(1, 8, 2, 1), (2, 24, 2, 1), (4, 16, 3, 2), (8, 32, 5, 3), (8, 8, 2, 1), (64, 24, 8, 1)],
)
def test_jobs_and_processes_follow_cores_and_memory(n_cores, memory_gb, n_jobs, n_processes):
    assert schedule.jobs(n_cores, memory_gb) == n_jobs
    assert schedule.processes(n_cores, memory_gb) == n_processes
    assert n_jobs == 2 or n_jobs * schedule.NOTEBOOK_GB <= memory_gb


def test_what_a_run_took_is_stored(tmp_path):
    contents = tmp_path / "contents.csv"
    shutil.copy(ROOT / "notebooks/contents.csv", contents)
    (tmp_path / "manifests").mkdir()
    listed = schedule.notebooks(contents)
    for place, one in enumerate(listed):
        said = {"cpu_seconds": 100.4 + place, "shared_seconds": 2.6}
        (tmp_path / f"manifests/{one.name}.json").write_text(json.dumps(said))
    schedule.store_measured(tmp_path, contents)
    after = schedule.notebooks(contents)
    assert [one.name for one in after] == [one.name for one in listed]
    assert [one.after for one in after] == [one.after for one in listed]
    assert [one.cpu_seconds for one in after] == [100 + place for place in range(len(after))]
    assert {one.shared_seconds for one in after} == {3}


def test_the_stored_times_fit_the_notebooks():
    listed = schedule.notebooks()
    names = {one.name for one in listed}
    assert all(0 <= one.shared_seconds <= one.cpu_seconds for one in listed)
    assert all(one.cpu_seconds > 0 and set(one.after) <= names for one in listed)


def test_the_page_has_the_schedule_of_the_stored_times():
    table = schedule.as_markdown(schedule.schedule(schedule.notebooks(), schedule.MEMORY_GB))
    assert table in schedule.PAGE.read_text()
    assert len(table.splitlines()) == 2 + len(schedule.CORES)
