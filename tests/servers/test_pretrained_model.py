"""A real instruct model end to end: served by another library, and audited by chat."""

import json
import os
import subprocess
import sys

import pytest
from notebook_files import ROOT
from server_process import ServerProcess

from contamination.models import pretrained

pytestmark = pytest.mark.servers
ROWS = 4


@pytest.fixture(scope="module")
def folder():
    """Where make test-servers has put it: in the user's cache, since tests reach no network."""
    if not pretrained.is_whole(pretrained.packaged_folder()):
        pytest.fail('the pretrained model is not here: run "make test-servers"')
    return pretrained.packaged_folder()


@pytest.fixture(scope="module")
def audited(folder, tmp_path_factory):
    """Folder of what the audit of the served model wrote, and what it printed."""
    outputs = tmp_path_factory.mktemp("audit")
    served = [str(ROOT / ".venv-servers/bin/transformers"), "serve", folder.name]
    served += ["--device", "cpu", "--host", "127.0.0.1", "--port", "{port}"]
    # Beside each other, threads that wait would only starve the others.
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    cache = {"CONTAMINATION_CACHE": str(tmp_path_factory.mktemp("cache"))}
    log = tmp_path_factory.mktemp("log") / "serve.log"
    with ServerProcess(served, "/health", log, cwd=folder.parent, env=environment) as server:
        line = ["--model", folder.name, "--served-at", f"{server.url}/v1", "--label", "label"]
        line += ["--data", "params/audit/sample.jsonl", "--unseen", "params/audit/unseen.jsonl"]
        line += ["--rows", str(ROWS), "--completion-tokens", "8"]
        line += ["--output", str(outputs), "--yes"]
        done = subprocess.run(
            [sys.executable, "-m", "contamination", "audit", *line],
            cwd=ROOT,
            env=environment | cache,
            capture_output=True,
            text=True,
        )
    return outputs, done


def test_a_served_model_is_audited_in_one_line(audited, folder):
    outputs, done = audited
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((outputs / "verdict.json").read_text())
    by_method = {row["method"]: row for row in found["evidence"]}
    for method in ("DCQ", "replication"):
        row = by_method[method]
        assert row["n"] == ROWS
        assert 0 <= row["value"] <= 1
        # So few comparison rows can show nothing.
        assert row["verdict"] == "open"
        assert row["n_error"] == 0
    for method in ("option ranking", "Min-k% Prob"):
        assert by_method[method]["verdict"] == "not run"
    (says,) = [row["says"] for row in found["verdicts"]]
    assert says in done.stdout
    assert says.partition(". ")[2] in (outputs / "verdict.html").read_text()
    assert folder.name in says
