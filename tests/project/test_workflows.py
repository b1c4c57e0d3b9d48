"""GitHub's workflows: pinned actions, and rights to write for one job alone."""

import re

import yaml
from notebook_files import ROOT

WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
PARSED = {path.stem: yaml.safe_load(path.read_text()) for path in WORKFLOWS}
JOBS = {
    f"{name} {job}": content for name in PARSED for job, content in PARSED[name]["jobs"].items()
}


def test_an_action_is_one_commit_and_says_which_release_that_is():
    for path in WORKFLOWS:
        for used in re.findall(r"uses: (.+)", path.read_text()):
            assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used), used


def test_only_the_job_that_publishes_may_write():
    assert {str(workflow["permissions"]) for workflow in PARSED.values()} == {
        str({"contents": "read"})
    }
    granted = {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job}
    writing = {name for name, rights in granted.items() if "write" in rights.values()}
    assert writing == {"site deploy"}
    # What runs there is GitHub's action alone.
    assert not [step for step in JOBS["site deploy"]["steps"] if "run" in step]
