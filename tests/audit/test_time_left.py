"""The time that an audit still takes: measured on the first rows, corrected by every batch."""

import pytest
from test_audit import prepared, tiny_folder  # noqa: F401 (a fixture)

from contamination.audit import auditing, time_left
from contamination.audit.prepared import DCQ, METHODS, MIN_K, RANKING, REPLICATION
from contamination.audit.time_left import TimeLeft
from contamination.core import storage
from contamination.models.forward import Row
from contamination.models.watched import batch_size

PLANNED = {DCQ: (1_000, 0), REPLICATION: (300, 200), MIN_K: (500, 0)}


def test_the_first_rows_give_an_estimate_and_without_them_there_is_none():
    left = TimeLeft(PLANNED)
    assert left.seconds is None
    left.measure(False, 100, 1.0)  # 0.01 s a token that is read
    assert left.seconds is None, "replication writes, and that was not measured"
    left.measure(True, 10, 2.0)
    assert left.seconds == pytest.approx(0.01 * 1_500 + 0.2 * 200)


def test_batches_correct_what_the_first_rows_said():
    left = TimeLeft(PLANNED)
    left.measure(False, 100, 1.0)
    left.measure(True, 10, 2.0)
    left.begin(DCQ)
    left.batch(False, 400, 0.8, 0)  # five times as fast as measured
    assert left.seconds == pytest.approx(0.002 * (600 + 500) + 0.2 * 200)
    left.batch(False, 100, 0.2, 2_000)  # more waits than was planned
    assert left.seconds == pytest.approx(0.002 * (2_000 + 500) + 0.2 * 200)
    left.end(DCQ)
    left.begin(REPLICATION)
    left.batch(True, 100, 10.0, 50)  # half as fast, and fewer tokens than planned
    assert left.seconds == pytest.approx(0.002 * 500 + 0.1 * 50)


def test_a_method_that_is_done_takes_no_more_time_whatever_was_planned():
    left = TimeLeft(PLANNED)
    left.measure(False, 100, 1.0)
    for method in (DCQ, REPLICATION, RANKING):  # from the disk; ranking was not planned
        left.begin(method)
        left.end(method)
    assert left.seconds == pytest.approx(5.0)
    left.end(MIN_K)
    assert left.seconds == 0


def watched_findings(audit, folder, monkeypatch, capsys, is_watched=True):
    """Findings of a tiny model, and the lines that a terminal would show one over the other."""
    monkeypatch.setattr(time_left, "is_watched", lambda: is_watched)
    target = auditing.target_of(audit, str(folder), lab=None)
    found = auditing.findings_of(audit, target, None, (), 50)
    return found, [line.strip() for line in capsys.readouterr().err.split("\r") if line.strip()]


def test_a_line_says_for_each_method_what_is_left_and_no_number_moves(
    tiny_folder,  # noqa: F811
    monkeypatch,
    capsys,
    tmp_path,
):
    audit = prepared(model={"names": [str(tiny_folder)]}, n=6, n_passages=6)
    tables = []
    for is_watched in (True, False):
        monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / str(is_watched)))
        found, said = watched_findings(audit, tiny_folder, monkeypatch, capsys, is_watched)
        assert bool(said) == is_watched
        if is_watched:
            methods = [line.partition(":")[0] for line in said]
            assert list(dict.fromkeys(methods)) == [f"tiny-model, {m}" for m in METHODS]
            assert all(line.endswith(" left") for line in said)
        tables.append(auditing.audit_table({"tiny-model": found}))
    assert tables[0].equals(tables[1])


def test_rows_that_cannot_be_measured_leave_the_time_to_the_batches(
    tiny_folder,  # noqa: F811
    monkeypatch,
    capsys,
):
    def refuse(*_, **__):
        raise ValueError("the model reads no such text")

    monkeypatch.setattr(time_left, "token_log_probs", refuse)
    monkeypatch.setattr(time_left, "_BETWEEN", 0.0)
    audit = prepared(model={"names": [str(tiny_folder)]}, n=6, n_passages=6)
    _, said = watched_findings(audit, tiny_folder, monkeypatch, capsys)
    assert said[0] == "tiny-model, DCQ: time left not known yet"
    assert said[-1].endswith("less than 10 s left")


def test_a_batch_counts_what_it_reads_or_what_it_may_write():
    row = Row((1, 2, 3), (0, 1), (2, 3))
    assert batch_size(([row, row], False)) == (False, 6)
    assert batch_size(([[1, 2], [3]], 50, 0.0, 1, 0)) == (True, 100)
