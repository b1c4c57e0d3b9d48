"""action.yml: its steps are run here as GitHub runs them, but for the installation."""

import os
import subprocess
import sys

import pytest
import yaml
from notebook_files import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step.get("id", step["name"]): step for step in ACTION["runs"]["steps"]}


@pytest.fixture
def run(tmp_path):
    """Runs a step with inputs; exit code, summary and outputs. A command stands in for ours."""
    commands = tmp_path / "bin"
    commands.mkdir()

    def step(name, stand_in, **inputs):
        script = commands / "contamination"
        script.write_text(f"#!{sys.executable}\nimport sys, pathlib\n{stand_in}\n")
        script.chmod(0o755)
        given = {key: one.get("default", "") for key, one in ACTION["inputs"].items()} | inputs
        env = dict(os.environ, PATH=f"{commands}:{os.environ['PATH']}")
        for variable, value in STEPS[name]["env"].items():
            env[variable] = given[value.removeprefix("${{ inputs.").removesuffix(" }}")]
        for file in ("SUMMARY", "OUTPUT"):
            (tmp_path / file).write_text("")
        env |= {"GITHUB_STEP_SUMMARY": str(tmp_path / "SUMMARY")}
        env |= {"GITHUB_OUTPUT": str(tmp_path / "OUTPUT")}
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]]
        done = subprocess.run(bash, env=env, cwd=tmp_path, capture_output=True, text=True)
        return done, *((tmp_path / file).read_text() for file in ("SUMMARY", "OUTPUT"))

    return step


WRITES = """
print(sys.argv[1:])
folder = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
folder.mkdir()
(folder / "verdict.md").write_text("**m: shown.** At least 9 of 60")
(folder / "verdict.json").write_text('{"verdicts": [{"verdict": "shown"}, {"verdict": "open"}]}')
sys.exit(1)
"""


def test_the_audit_gets_its_words_and_its_verdict_becomes_summary_output_and_code(run):
    words = "--model ./m --data 'my rows.jsonl' --unseen fresh.jsonl"
    done, summary, outputs = run("audit", WRITES, **{"arguments": words})
    expected = ["audit", "--model", "./m", "--data", "my rows.jsonl", "--unseen", "fresh.jsonl"]
    expected += ["--yes", "--output", "contamination-audit", "--fail-on", "shown"]
    assert done.stdout == f"{expected}\n"
    assert done.returncode == 1
    assert (
        summary.startswith("**m: shown.** At least 9 of 60") and outputs == "verdict=shown,open\n"
    )


@pytest.mark.parametrize(
    ("fail_on", "given"),
    [("", []), ("shown,control fails", ["--fail-on", "shown", "control fails"])],
)
def test_the_words_that_fail_the_job_are_handed_on(run, fail_on, given):
    done, *_ = run("audit", "print(sys.argv[1:])", arguments="--data a", **{"fail-on": fail_on})
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == f"{['audit', '--data', 'a', '--yes', '--output', 'contamination-audit', *given]}\n"
    )


def test_an_audit_that_is_refused_has_no_summary_and_its_own_code(run):
    done, summary, outputs = run("audit", "sys.exit(2)", arguments="--data none")
    assert (done.returncode, summary, outputs) == (2, "", "")


def test_no_input_of_a_workflow_is_pasted_into_a_script():
    """A pull request could put commands there: inputs go through the environment."""
    assert not [step for step in ACTION["runs"]["steps"] if "${{" in step.get("run", "")]
    assert all(step["shell"] == "bash" for step in ACTION["runs"]["steps"] if "run" in step)
