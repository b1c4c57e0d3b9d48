import multiprocessing
import sqlite3
from dataclasses import replace

import pytest

from contamination.models import response_log
from contamination.models.response_log import LogEntry, ResponseLog, response_key

BODY = {"model": "m", "messages": [{"role": "user", "content": "A or B?"}], "temperature": 0}
ENTRY = LogEntry("k", True, "run", "http://host/v1 m", BODY, {"choices": [1]}, 2.0, 0.25)


@pytest.fixture
def log(tmp_path):
    with ResponseLog(tmp_path / "log.sqlite") as log:
        yield log


def test_everything_that_can_change_an_answer_changes_the_key():
    key = response_key("http://host/v1", BODY, 0)
    others = [
        response_key("http://other/v1", BODY, 0),
        response_key("http://host/v1", BODY, 1),
        response_key("http://host/v1", {**BODY, "model": "n"}, 0),
        response_key("http://host/v1", {**BODY, "temperature": 1}, 0),
        response_key("http://host/v1", {**BODY, "seed": 1}, 0),
        response_key("http://host/v1", {**BODY, "messages": BODY["messages"] * 2}, 0),
    ]
    assert len({key, *others}) == 7
    assert key == response_key("http://host/v1", dict(reversed(BODY.items())), 0)


def test_a_committed_answer_is_found_by_another_connection(log):
    log.put([ENTRY])
    with ResponseLog(log.path) as other:
        assert other.get("k") == {"choices": [1]}
        assert "k" in other and "another" not in other
        assert other.get("another") is None


def test_refusals_and_errors_stand_in_the_log_but_never_answer(log):
    log.put([replace(ENTRY, is_replayed=False, response={"error": {"message": "busy"}})])
    assert log.get("k") is None and "k" not in log
    rows = sqlite3.connect(log.path).execute("SELECT response FROM answers").fetchall()
    assert rows == [('{"error": {"message": "busy"}}',)]


def test_the_first_of_two_answers_to_one_request_stays_the_answer(log):
    log.put([ENTRY])
    log.put([replace(ENTRY, response={"choices": [2]})])
    assert log.get("k") == {"choices": [1]}


def test_spending_is_summed_per_run_and_pace_per_endpoint(log):
    log.put([ENTRY, replace(ENTRY, key="l", seconds=4.0, cost=0.5)])
    log.put([replace(ENTRY, endpoint="http://other/v1 m", run="run", cost=1.0)])
    log.put([replace(ENTRY, run="another run", cost=8.0, seconds=6.0)])
    assert log.spent("run") == 1.75
    assert log.spent("never started") == 0.0
    assert log.seconds_per_call("http://host/v1 m") == 4.0
    assert log.seconds_per_call("http://unknown/v1 m") is None


def test_a_batch_that_cannot_be_written_leaves_nothing_behind(log):
    with pytest.raises(TypeError):
        log.put([ENTRY, replace(ENTRY, key="l", response={"choices": {1, 2}})])
    with pytest.raises(sqlite3.IntegrityError):
        log.put([ENTRY, replace(ENTRY, key=None)])
    assert log.get("k") is None and log.spent("run") == 0.0


def test_half_a_surrogate_pair_from_a_server_survives(log):
    log.put([replace(ENTRY, response={"choices": ["\ud83d"]})])
    assert log.get("k") == {"choices": ["\ud83d"]}


def test_a_log_of_the_first_layout_keeps_its_answers(tmp_path):
    path = tmp_path / "log.sqlite"
    with ResponseLog(path) as log:
        log.put([ENTRY, replace(ENTRY, key="l"), replace(ENTRY, key="m", is_replayed=False)])
    connection = sqlite3.connect(path)
    connection.executescript(
        "DROP INDEX replayed_slots; ALTER TABLE answers DROP COLUMN slot;"
        "CREATE INDEX replayed ON answers (key) WHERE is_replayed; PRAGMA user_version = 1;"
    )
    connection.close()
    for number in range(2):
        with ResponseLog(path) as log:
            assert log.get("k") == log.get("l") == {"choices": [1]}
            assert "m" not in log and log.spent("run") == 0.75 + 0.25 * number
            log.put([replace(ENTRY, key="n")])
            assert "n" in log
    names = sqlite3.connect(path).execute("SELECT name FROM sqlite_master WHERE type = 'index'")
    assert ("replayed",) not in names.fetchall()


def test_keys_that_share_a_slot_are_told_apart(log, monkeypatch):
    monkeypatch.setattr(response_log, "_slot", lambda key: 7)
    log.put([ENTRY, replace(ENTRY, key="l", response={"choices": [2]})])
    assert (log.get("k"), log.get("l"), log.get("m")) == ({"choices": [1]}, {"choices": [2]}, None)
    assert "l" in log and "m" not in log


def _write(path, name, n):
    with ResponseLog(path) as log:
        for number in range(n):
            log.put([replace(ENTRY, key=f"{name} {number}", cost=1.0)])


def test_processes_share_the_log_and_lose_nothing(log):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(log.path, name, 50)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert log.spent("run") == 100.0
    assert all(f"{name} {number}" in log for name in "ab" for number in range(50))


def test_another_file_in_the_place_of_the_log_is_refused_in_one_line(tmp_path):
    path = tmp_path / "log.sqlite"
    path.write_text("not a database, but long enough to look at" * 100)
    with pytest.raises(ValueError, match=r"log.sqlite is not a response log .*move it away"):
        ResponseLog(path)


def test_a_log_of_a_later_version_is_refused(log):
    with sqlite3.connect(log.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ValueError, match="version 99"):
        ResponseLog(log.path)
