import sqlite3

import pytest
from chat_client import CONTEXT

from contamination.models.exchange import Endpoint, Request, key_of
from contamination.models.response_log import InUseError, ResponseLog

BODY = {"model": "m", "messages": [{"role": "user", "content": "A or B?"}], "temperature": 0}
NAME = "http://host/v1 m"


def put(log, key="k", response=None, *, run="run", name=NAME, **what):
    """A call that was answered."""
    number = log.begin(key, run, name, BODY, 2.0)
    what = {"is_replayed": True, "cost": 0.25, "seconds": 2.0} | what
    log.end(number, response or {"choices": [1]}, **what)


def test_everything_that_can_change_an_answer_changes_the_key():
    host = Endpoint("http://host/v1", "m", None)
    asked = Request(messages=BODY["messages"])
    keys = [
        key_of(host, asked),
        key_of(Endpoint("http://other/v1", "m", None), asked),
        key_of(Endpoint("http://host/v1", "n", None), asked),
        key_of(Endpoint("http://host/v1", "m", None, {"seed": 1}), asked),
        key_of(host, Request(messages=BODY["messages"], replicate=1)),
        key_of(host, Request(messages=BODY["messages"], options={"temperature": 1})),
        key_of(host, Request(messages=BODY["messages"] * 2)),
        key_of(host, Request(prompt="A or B?")),
    ]
    assert len({*keys}) == len(keys)
    # How an answer is read changes nothing that is sent.
    assert key_of(host, Request(messages=BODY["messages"], may_be_cut=True)) == keys[0]


def test_a_committed_answer_is_found_by_another_connection(log):
    put(log)
    with ResponseLog(log.path) as other:
        assert other.get("k") == {"choices": [1]}
        assert "k" in other and "another" not in other
        assert other.get("another") is None


def test_refusals_and_errors_stand_in_the_log_but_never_answer(log):
    put(log, response={"error": {"message": "busy"}}, is_replayed=False)
    assert log.get("k") is None and "k" not in log
    rows = sqlite3.connect(log.path).execute("SELECT response FROM calls").fetchall()
    assert rows == [('{"error": {"message": "busy"}}',)]


def test_the_first_of_two_answers_to_one_request_stays_the_answer(log):
    put(log)
    put(log, response={"choices": [2]})
    assert log.get("k") == {"choices": [1]}


def test_spending_is_summed_per_run(log):
    put(log)
    put(log, "l", seconds=4.0, cost=0.5)
    put(log, name="http://other/v1 m", cost=1.0)
    put(log, run="another run", cost=8.0, seconds=6.0)
    assert log.spent("run") == 1.75
    assert log.spent("never started") == 0.0


def test_a_call_that_was_never_answered_has_cost_the_most_that_it_may(log):
    log.begin("k", "run", NAME, BODY, 2.0)
    with ResponseLog(log.path) as later:
        assert later.spent("run") == 2.0 and "k" not in later
        put(later)
        assert later.spent("run") == 2.25


def test_half_a_surrogate_pair_from_a_server_survives(log):
    put(log, response={"choices": ["\ud83d"]})
    assert log.get("k") == {"choices": ["\ud83d"]}


# One run at a time


def _hold(path, is_held, let_go):
    with ResponseLog(path) as log, log.in_use():
        is_held.set()
        let_go.wait()


def test_a_second_run_is_told_so_in_one_line_and_goes_on_when_the_first_was_killed(log):
    is_held, let_go = CONTEXT.Event(), CONTEXT.Event()
    other = CONTEXT.Process(target=_hold, args=(log.path, is_held, let_go))
    other.start()
    is_held.wait()
    put(log)  # a lock is no obstacle to what is under way
    in_use = pytest.raises(InUseError, match=r"log.sqlite is in use by another run: wait")
    with in_use as told, log.in_use():
        pass
    assert "\n" not in str(told.value)
    other.kill()
    other.join()
    with log.in_use():
        pass


def _open(path, together):
    together.wait()
    with ResponseLog(path) as log:
        put(log)


def test_processes_that_begin_a_log_at_once_all_find_it_whole(tmp_path):
    path, together = tmp_path / "log.sqlite", CONTEXT.Barrier(4)
    clients = [CONTEXT.Process(target=_open, args=(path, together)) for _ in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert [client.exitcode for client in clients] == [0] * 4
    with ResponseLog(path) as log:
        assert log.spent("run") == 1.0


# Other files


def test_another_file_in_the_place_of_the_log_is_refused_in_one_line(tmp_path):
    path = tmp_path / "log.sqlite"
    path.write_text("not a database, but long enough to look at" * 100)
    with pytest.raises(ValueError, match=r"log.sqlite cannot be used .*move it away"):
        ResponseLog(path)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_somebody_else_s_database_is_refused_and_left_as_it_is(tmp_path, version):
    path = tmp_path / "log.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE photographs (name TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"not a response log of version 4 .*move it away"):
        ResponseLog(path)
    assert path.read_bytes() == before


# Damage


@pytest.fixture
def many(tmp_path):
    """The file of a log of 200 answers, on many pages, and what they say."""
    path = tmp_path / "my logs" / "log.sqlite"
    path.parent.mkdir()
    with ResponseLog(path) as log:
        for number in range(200):
            put(log, f"k{number}", {"choices": [f"answer {number:03}"]})
    return path


def assert_says_what_mends_it(error, path):
    line = str(error.value)
    assert "\n" not in line and line.startswith(f"{path} cannot be used (")
    assert "how sqlite3 recovers what is whole" in line


def test_an_answer_with_another_letter_is_named_and_never_given(many):
    many.write_bytes(many.read_bytes().replace(b"answer 007", b"answer 008"))
    with ResponseLog(many) as log:
        assert log.get("k6") == {"choices": ["answer 006"]}
        with pytest.raises(ValueError, match="checksum of call 8 differs") as error:
            log.get("k7")
        assert_says_what_mends_it(error, many)
        with pytest.raises(ValueError, match="checksum of call 8 differs"):
            log.spent("run")  # what cannot be read may have cost more


def test_flipped_bytes_are_refused_in_one_line_or_change_nothing(many):
    whole, size = many.read_bytes(), many.stat().st_size
    n_refused = 0
    for place in range(100, size, size // 150):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        many.write_bytes(damaged)
        for end in ("-wal", "-shm"):
            many.with_name(many.name + end).unlink(missing_ok=True)
        try:
            with ResponseLog(many) as log:
                found = [log.get(f"k{number}") for number in range(200)]
                assert log.spent("run") == 50.0
            assert found == [{"choices": [f"answer {n:03}"]} for n in range(200)]
        except ValueError as error:
            n_refused += 1
            assert "\n" not in str(error) and str(many) in str(error)
    assert n_refused > 50


@pytest.mark.parametrize("n_kept", [0.3, 0.9])
def test_a_file_that_was_cut_is_one_line_when_the_log_is_opened(many, n_kept):
    data = many.read_bytes()
    many.write_bytes(data[: int(n_kept * len(data))])
    with pytest.raises(ValueError, match="cannot be used") as error:
        ResponseLog(many)
    assert_says_what_mends_it(error, many)


def test_a_full_disk_is_one_line_that_names_the_file(log):
    (pages,) = log._file.execute("PRAGMA page_count").fetchone()
    log._file.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(
        ValueError, match=r"log.sqlite cannot be used \(database or disk is full\)"
    ) as error:
        put(log, response={"choices": ["x" * 100_000]})
    assert "\n" not in str(error.value)
    assert log.get("k") is None
