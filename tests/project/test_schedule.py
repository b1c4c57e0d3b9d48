"""What make reproduce starts first, and how much at a time."""

import subprocess

import pytest
from notebook_files import ROOT, script

schedule = script("schedule")


@pytest.mark.parametrize(
    ("n_cores", "memory_gb", "n_jobs", "n_processes"),
    [(1, 8, 2, 1), (2, 24, 2, 1), (4, 16, 3, 2), (8, 32, 5, 3), (8, 8, 2, 1), (64, 24, 8, 1)],
)
def test_jobs_and_processes_follow_cores_and_memory(n_cores, memory_gb, n_jobs, n_processes):
    assert schedule.jobs(n_cores, memory_gb) == n_jobs
    assert schedule.processes(n_cores, memory_gb) == n_processes
    assert n_jobs == 2 or n_jobs * schedule.NOTEBOOK_GB <= memory_gb


def test_what_waits_for_none_starts_first_then_the_longest():
    one = schedule.Notebook
    listed = [one("base", (), 3), one("short", ("base",), 1), one("long", ("base",), 9)]
    assert schedule.starting_order([*listed, one("free", (), 5)]) == [
        "free",
        "base",
        "long",
        "short",
    ]


def test_make_starts_notebooks_in_that_order():
    rule = "include Makefile\norder:\n\t@echo $(notdir $(basename $(TARGETS)))\n"
    command = ["make", "--no-print-directory", "-f", "-", "order"]
    done = subprocess.run(command, cwd=ROOT, input=rule, capture_output=True, text=True, check=True)
    assert done.stdout.split() == schedule.starting_order(schedule.notebooks())


def test_named_notebooks_are_the_only_ones_that_run():
    rule = "include Makefile\norder:\n\t@echo $(notdir $(basename $(IN_PROFILE)))\n"
    command = ["make", "--no-print-directory", "-f", "-", "order"]
    command += ["NOTEBOOKS=01_data_prep 00_start_here"]
    done = subprocess.run(command, cwd=ROOT, input=rule, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["00_start_here", "01_data_prep"]


def test_a_notebook_waits_for_notebooks_that_there_are():
    listed = schedule.notebooks()
    names = {one.name for one in listed}
    assert all(one.minutes > 0 and set(one.after) <= names for one in listed)


def test_minutes_follow_cores_processes_and_what_waits():
    one, work = schedule.Notebook, schedule.Work
    listed = [one("base", (), 1), one("long", ("base",), 3), one("free", (), 2)]
    seconds = {"base": work(60, 0), "long": work(60, 120), "free": work(120, 0)}
    # Two cores, two at a time: base and free share nothing, long ends at 1 + 1 + 2.
    assert schedule.minutes(listed, seconds, 2, 2, 1) == pytest.approx(4)
    assert schedule.minutes(listed, seconds, 4, 2, 2) == pytest.approx(3)
    assert schedule.minutes(listed, seconds, 1, 2, 1) == pytest.approx(6)
    assert schedule.minutes(listed, {"long": work(0, 60)}, 2, 2, 1) == pytest.approx(1)
