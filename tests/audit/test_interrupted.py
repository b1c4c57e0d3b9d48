"""An audit that is interrupted: its page has what was found, and says which parts are missing."""

import json
import os
import signal
from types import SimpleNamespace

import pytest

from contamination.audit import auditing, command_line
from contamination.audit.finding import Finding, Target
from contamination.audit.plan import DCQ, METHODS, MIN_K, RANKING, REPLICATION
from contamination.models.chat import ChatError

WORDS = ["--model", "lab:contaminated", "lab:clean", "--data", "sample", "--rows", "8"]


@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        (KeyboardInterrupt(), 130, "(by hand)"),
        (ChatError("http://h/v1 <refused> the key"), 2, "(http://h/v1 &lt;refused&gt; the key)"),
    ],
)
def test_the_page_of_an_interrupted_audit_names_what_is_missing(
    tmp_path, monkeypatch, capsys, error, code, why
):
    def interrupted(audit, found, targets, *_):
        for name, methods in {"lab:contaminated": METHODS, "lab:clean": [DCQ]}.items():
            targets[name] = Target(name, None)
            found[name] = {method: Finding(why_not="x") for method in methods}
        raise error

    monkeypatch.setattr(auditing, "run", interrupted)
    assert command_line.main([*WORDS, "--output", str(tmp_path)]) == code
    assert "the page: " in capsys.readouterr().out
    text = (tmp_path / "verdict.html").read_text()
    assert why in text and f"lab:clean: {REPLICATION}, " in text
    assert "lab:contaminated: every" not in text
    found = json.loads((tmp_path / "verdict.json").read_text())
    assert found["missing"] == {"lab:clean": [name for name in METHODS if name != DCQ]}
    assert len(found["evidence"]) == len(METHODS) + 1


def test_a_signal_to_end_is_an_interruption_and_before_the_first_method_leaves_no_page(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(auditing, "run", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    assert command_line.main([*WORDS, "--output", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "error: interrupted; what was answered is kept\n"
    assert not (tmp_path / "verdict.html").exists()
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_was_found_before_a_method_failed_is_kept(monkeypatch):
    """The last method of a model fails for good: the quicker ones are there."""
    found = {}

    def run(name, *_):
        if name == REPLICATION:
            raise ChatError("the server is down")
        return Finding(why_not="x")

    monkeypatch.setattr(auditing, "_run", run)
    monkeypatch.setattr("contamination.audit.internals.probed", lambda told, target: (target, ""))
    audit = SimpleNamespace(told=None, reasons=dict.fromkeys(METHODS, ""))
    with pytest.raises(ChatError):
        auditing.findings_of(audit, Target("m", object()), found)
    assert list(found) == [MIN_K, RANKING, DCQ]
