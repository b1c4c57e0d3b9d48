import sqlite3
import threading
import time
from dataclasses import replace

import pytest
from chat_client import CONTEXT

from contamination.core import storage
from contamination.models import log_repair, response_log
from contamination.models.log_layout import LogEntry, response_key
from contamination.models.response_log import ResponseLog

BODY = {"model": "m", "messages": [{"role": "user", "content": "A or B?"}], "temperature": 0}
ENTRY = LogEntry("k", True, "run", "http://host/v1 m", BODY, {"choices": [1]}, 2.0, 0.25)


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


def test_keys_that_share_a_slot_are_told_apart(log, monkeypatch):
    monkeypatch.setattr(response_log, "_slot", lambda key: 7)
    log.put([ENTRY, replace(ENTRY, key="l", response={"choices": [2]})])
    assert (log.get("k"), log.get("l"), log.get("m")) == ({"choices": [1]}, {"choices": [2]}, None)
    assert "l" in log and "m" not in log


# Claims


def test_a_claimed_request_is_nobody_else_s_until_it_is_given_up(log):
    with ResponseLog(log.path) as other:
        assert log.claim(["k", "l"], "a") == {"k", "l"}
        assert other.claim(["k", "l", "m"], "b") == {"m"}
        assert log.claim(["k"], "a") == {"k"}  # still
        log.release("a")
        assert other.claim(["k"], "b") == {"k"}
        assert other.claim(["m"], "b") == {"m"}


def test_an_answer_ends_its_claim_and_is_not_claimed_again(log):
    log.claim(["k", "l"], "a")
    log.put([ENTRY, replace(ENTRY, key="l", is_replayed=False)])
    assert log.claim(["k", "l"], "b") == {"l"}  # what failed may be asked again


def test_a_claim_expires_unless_it_is_renewed(log, monkeypatch):
    now = 1e9
    monkeypatch.setattr(response_log.time, "time", lambda: now)
    log.claim(["k", "l"], "a")
    now += 0.9 * log.lease_seconds
    log.claim(["k"], "a")
    now += 0.2 * log.lease_seconds
    assert log.claim(["k", "l"], "b") == {"l"}
    now -= 1e6  # the clock is set back
    assert log.claim(["k"], "b") == {"k"}


def test_expired_claims_do_not_stay_in_the_file(log, monkeypatch):
    now = 1e9
    monkeypatch.setattr(response_log.time, "time", lambda: now)
    log.claim(["k"], "killed")
    now += 2 * log.lease_seconds
    log.claim(["l"], "b")
    log.release("c")
    rows = sqlite3.connect(log.path).execute("SELECT key FROM claims").fetchall()
    assert rows == [("l",)]


MOST = dict.fromkeys("klmn", 2.0)


def test_what_a_run_spends_and_reserves_stays_under_its_cap(log):
    under_7 = {"run": "run", "most": MOST, "cap": 7}
    log.put([replace(ENTRY, key="paid", cost=1.0)])
    with ResponseLog(log.path) as other:
        assert log.claim("klm", "a", **under_7) == {"k", "l", "m"}  # 1 + 3 x 2
        assert other.claim("n", "b", **under_7) == set()
        assert other.claim("n", "b", **under_7 | {"run": "another run"}) == {"n"}
        other.release("b")
        # Renewed, it is not reserved twice.
        assert log.claim("klm", "a", **under_7) == {"k", "l", "m"}
        log.put([ENTRY])  # 0.25 where 2 were reserved: 1.25 + 2 x 2
        assert other.claim("n", "b", **under_7) == set()
        log.put([replace(ENTRY, key="l")])  # 1.5 + 2
        assert other.claim("n", "b", **under_7) == {"n"}
        log.release("a")
        assert other.claim("m", "b", **under_7) == {"m"}


def test_calls_are_claimed_in_their_order_up_to_the_first_without_room(log):
    most = {"k": 1.0, "l": 8.0, "m": 1.0}
    assert log.claim("klm", "a", run="run", most=most, cap=5) == {"k"}


def test_what_a_process_reserved_is_free_again_when_its_claim_expires(log, monkeypatch):
    now = 1e9
    monkeypatch.setattr(response_log.time, "time", lambda: now)
    under_3 = {"run": "run", "most": MOST, "cap": 3}
    assert log.claim("k", "killed", **under_3) == {"k"}
    now += 0.9 * log.lease_seconds
    assert log.claim("l", "b", **under_3) == set()
    now += 0.2 * log.lease_seconds
    assert log.claim("l", "b", **under_3) == {"l"}


# Several processes


def _write(path, name, n):
    with ResponseLog(path) as log:
        for number in range(n):
            log.put([replace(ENTRY, key=f"{name} {number}", cost=1.0)])


def test_processes_share_the_log_and_lose_nothing(log):
    writers = [CONTEXT.Process(target=_write, args=(log.path, name, 50)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert log.spent("run") == 100.0
    assert all(f"{name} {number}" in log for name in "ab" for number in range(50))


def _open_together(folder, together, n_rounds, failures):
    for number in range(n_rounds):
        together.wait()
        time.sleep(0.1 - time.monotonic() % 0.1)  # a barrier lets them go one after the other
        try:
            with ResponseLog(folder / f"{number}.sqlite") as log:
                log.put([ENTRY])
                assert log.get("k") == {"choices": [1]}
        except Exception as error:
            failures.put(f"{number}: {error!r}")


def open_together(folder, n_rounds, n_processes=8):
    """What went wrong when processes open one log after the other, each at the same moment."""
    together, failures = CONTEXT.Barrier(n_processes), CONTEXT.SimpleQueue()
    arguments = folder, together, n_rounds, failures
    processes = [CONTEXT.Process(target=_open_together, args=arguments) for _ in range(n_processes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * n_processes
    found = []
    while not failures.empty():
        found.append(failures.get())
    return found


def test_processes_that_open_a_new_log_at_once_wait_for_each_other(tmp_path):
    assert open_together(tmp_path, n_rounds=5) == []
    with ResponseLog(tmp_path / "0.sqlite") as log:
        assert log.spent("run") == 8 * ENTRY.cost


def test_opening_waits_for_a_process_that_writes_to_a_new_log(tmp_path):
    path = tmp_path / "log.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    done = threading.Timer(0.3, other.execute, ["COMMIT"])
    done.start()
    with ResponseLog(path) as log:
        assert log.get("k") is None
    done.join()


def test_a_busy_file_is_never_to_be_moved_away(tmp_path, monkeypatch):
    path = tmp_path / "log.sqlite"
    monkeypatch.setattr(response_log, "BUSY_SECONDS", 0.1)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(TimeoutError, match=r"is in use .* answers are safe") as busy:
        ResponseLog(path)
    assert "move" not in str(busy.value) and "\n" not in str(busy.value)
    holder.execute("COMMIT")
    with ResponseLog(path) as log:
        log.put([ENTRY])


# Other files


def test_another_file_in_the_place_of_the_log_is_refused_in_one_line(tmp_path):
    path = tmp_path / "log.sqlite"
    path.write_text("not a database, but long enough to look at" * 100)
    with pytest.raises(ValueError, match=r"log.sqlite is not a response log .*move it away"):
        ResponseLog(path)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_somebody_else_s_database_is_refused_and_left_as_it_is(tmp_path, version):
    path = tmp_path / "log.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE photographs (name TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"not a response log .*photographs.*move it away"):
        ResponseLog(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [1, 2, 99])
def test_a_log_of_another_version_is_refused_and_not_to_be_moved_away(log, version):
    with sqlite3.connect(log.path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(ValueError, match=rf"version {version} .*the code that wrote it") as refused:
        ResponseLog(log.path)
    assert "move" not in str(refused.value)


# Damage


PAGE = 4096


@pytest.fixture
def many(tmp_path, monkeypatch):
    """The file of a log of 200 answers, on many pages; no structure was looked through yet."""
    path = tmp_path / "my logs" / "log.sqlite"
    path.parent.mkdir()
    with ResponseLog(path) as log:
        for number in range(200):
            response = {"choices": [f"answer {number:03}"]}
            log.put([replace(ENTRY, key=f"k{number}", response=response)])
    monkeypatch.setattr(response_log, "_LOOKED_THROUGH", set())
    return path


def found_in(path):
    with ResponseLog(path) as log:
        found = {number: log.get(f"k{number}") for number in range(200)}
        return {number: said["choices"] for number, said in found.items() if said}


def assert_says_what_mends_it(error, path):
    line = str(error.value)
    assert "\n" not in line and line.startswith(f"{path} is damaged (")
    assert f"python -m contamination.models.log_repair '{path}' keeps every answer" in line


def test_an_answer_with_another_letter_is_named_and_never_given(many):
    many.write_bytes(many.read_bytes().replace(b"answer 007", b"answer 008"))
    with ResponseLog(many) as log:
        assert log.get("k6") == {"choices": ["answer 006"]}
        with pytest.raises(ValueError, match="checksum of answer 8 differs") as error:
            log.get("k7")
    assert_says_what_mends_it(error, many)


def test_an_answer_whose_key_is_damaged_is_not_paid_again(many):
    data = many.read_bytes()
    many.write_bytes(data.replace(b"k199", b"k99\xff"))
    with ResponseLog(many) as log, pytest.raises(ValueError, match="checksum of answer") as error:
        log.get("k199")
    assert_says_what_mends_it(error, many)


def test_a_damaged_page_is_one_line_when_the_log_is_opened(many):
    data = bytearray(many.read_bytes())
    data[5 * PAGE : 5 * PAGE + 64] = b"\xff" * 64
    many.write_bytes(data)
    with pytest.raises(ValueError, match="is damaged") as error:
        ResponseLog(many)
    assert_says_what_mends_it(error, many)


def test_a_structure_is_looked_through_once_a_process(many):
    asked = []
    with ResponseLog(many) as log:
        log._reader.set_trace_callback(asked.append)
        log._look_through()
        assert asked == []
        response_log._LOOKED_THROUGH.clear()
        log._look_through()
        assert asked == ["PRAGMA integrity_check(1)"]


def test_a_repair_keeps_what_is_whole_and_what_was_spent(many, capsys):
    before = found_in(many)
    assert len(before) == 200
    response_log._LOOKED_THROUGH.clear()
    data = bytearray(many.read_bytes())
    # The page that answer 100 stands on.
    page = data.index(b"answer 100") // PAGE
    data[page * PAGE : page * PAGE + 64] = b"\xff" * 64
    many.write_bytes(data)
    assert log_repair.main([str(many)]) == 0
    after = found_in(many)
    assert 100 not in after and 180 < len(after) < 200
    assert after == {number: before[number] for number in after}
    with ResponseLog(many) as log:
        assert log.spent("run") == 200 * ENTRY.cost
    assert f"{len(after)} answers are whole and kept" in capsys.readouterr().out
    aside = many.with_name("log.sqlite.damaged")
    assert aside.read_bytes() == data
    assert sorted(path.name for path in many.parent.iterdir()) == [many.name, aside.name]


def test_a_log_in_use_without_an_answer_or_repaired_before_stays(many, capsys):
    with ResponseLog(many):
        assert log_repair.main([str(many)]) == 1
    assert "another process uses" in capsys.readouterr().err
    many.write_bytes(many.read_bytes()[:PAGE])
    assert log_repair.main([str(many)]) == 1
    assert capsys.readouterr().err == (
        f"no answer in {many} is whole, so nothing can be saved: move it away\n"
    )
    many.with_name("log.sqlite.damaged").touch()
    assert log_repair.main([str(many)]) == 1
    assert "is there from before" in capsys.readouterr().err
    assert log_repair.main([str(many.parent / "none")]) == 1
    assert len(list(many.parent.iterdir())) == 2


def test_a_full_disk_is_one_line_that_names_the_folder(log):
    (pages,) = log._writer.execute("PRAGMA page_count").fetchone()
    log._writer.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(storage.DiskFullError, match=f"make room in {log.path.parent}") as error:
        log.put([replace(ENTRY, response={"choices": ["x" * 10_000]})])
    assert "\n" not in str(error.value)
    assert log.get("k") is None
