import asyncio
import json
import logging
import signal
import sqlite3
import threading
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import quote

import pytest
from chat_client import CONTEXT, LEASE_SECONDS, PRICE, Client, lapse
from scripted_server import MODEL, Reply, ScriptedServer, failure, good, question
from waiting import LIMIT_SECONDS, wait_until

from contamination.models import response_log
from contamination.models.asking import Batch
from contamination.models.chat import (
    ChatError,
    Endpoint,
    Limits,
    Request,
    answer_all,
    estimate,
)
from contamination.models.exchange import key_of
from contamination.models.log_layout import LogEntry
from contamination.models.response_log import ResponseLog
from contamination.models.retry import Secret

KEY = "key-that-nothing-may-show-0123456789"
QUICK = Limits(tries=4, total_seconds=LIMIT_SECONDS, first_wait_seconds=0.01)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)


def request(text, **fields):
    return Request(messages=[{"role": "user", "content": text}], **fields)


def endpoint_of(server, **fields):
    return Endpoint(server.base_url, **{"model": MODEL, "key_variable": "SCRIPTED_KEY", **fields})


def ask(server, log, *texts, **settings):
    settings = {"limits": QUICK, "progress": False, **settings}
    return answer_all(endpoint_of(server), [request(text) for text in texts], log=log, **settings)


def ask_once(log, script, **settings):
    """The answer to one question, and how often the server was asked it."""
    with ScriptedServer(script) as server:
        (answer,) = ask(server, log, "A or B?", **settings)
        return answer, server.counts["A or B?"]


def answered_and_asked_again(log, script):
    """The answer to one question, and the server's count after it is asked twice.

    The other question has a good answer, so that the endpoint counts as up.
    """
    both = lambda body, n: script(body, n) if question(body) == "A or B?" else good("B")  # noqa: E731
    with ScriptedServer(both) as server:
        answer, _ = ask(server, log, "A or B?", "up?", concurrency=1)
        again, _ = ask(server, log, "A or B?", "up?", concurrency=1)
        assert answer.status == again.status
        return answer, server.counts["A or B?"]


def test_answers_come_in_the_order_of_the_requests(log):
    last_is_asked = threading.Event()

    def script(body, n):
        if question(body) == "9":
            last_is_asked.set()
        after = last_is_asked if question(body) == "0" else None
        return replace(good(question(body)), after=after)

    with ScriptedServer(script) as server:
        answers = ask(server, log, *"0123456789", concurrency=4)
        assert [answer.text for answer in answers] == list("0123456789")
        assert {answer.status for answer in answers} == {"ok"}
        assert 1 < server.n_in_flight_most <= 4


def test_what_the_log_holds_is_not_asked_again(log):
    with ScriptedServer(lambda body, n: good("B")) as server:
        (first,) = ask(server, log, "A or B?")
        (second,) = ask(server, log, "A or B?")
        assert (first.from_log, second.from_log) == (False, True)
        assert replace(second, from_log=False) == first
        assert first.usage["prompt_tokens"] == 10 and first.model == MODEL
        # Nor is what a server is told by other means than the request.
        ask(server, log, "A or B?", concurrency=2, run="another run")
        assert server.counts["A or B?"] == 1


def test_equal_requests_are_asked_once_and_replicates_apart(log):
    with ScriptedServer(lambda body, n: good(str(n))) as server:
        requests = [request("A or B?"), request("A or B?"), request("A or B?", replicate=1)]
        answers = answer_all(endpoint_of(server), requests, log=log, concurrency=1, progress=False)
        assert [answer.text for answer in answers] == ["1", "1", "2"]


def test_options_of_the_request_win_over_those_of_the_endpoint(log):
    with ScriptedServer(lambda body, n: good("B")) as server:
        endpoint = endpoint_of(server, options={"temperature": 0, "seed": 1, "top_k": 5})
        answer_all(endpoint, [request("?", options={"seed": 2})], log=log, progress=False)
        (body,) = server.bodies
        assert (body["temperature"], body["seed"], body["top_k"]) == (0, 2, 5)
        assert "stream" not in body and "replicate" not in body


def test_a_busy_server_is_not_asked_before_its_time(log):
    times = []

    def script(body, n):
        times.append(time.monotonic())
        return failure(429, retry_after="0.5") if n == 1 else good("B")

    answer, n_calls = ask_once(log, script)
    assert (answer.text, n_calls) == ("B", 2)
    assert times[1] - times[0] >= 0.5


def test_a_server_that_asks_for_more_time_than_there_is_ends_the_call(log):
    answer, n_calls = ask_once(log, lambda body, n: failure(429, retry_after="3600"))
    assert (answer.status, n_calls) == ("error", 1)


@pytest.mark.parametrize(
    "trouble",
    [
        failure(500),
        failure(503),
        failure(408),
        failure(409),
        Reply(is_dropped=True),
    ],
    ids=["500", "503", "408", "409", "dropped"],
)
def test_what_passes_is_tried_again(log, trouble):
    answer, n_calls = ask_once(log, lambda body, n: trouble if n == 1 else good("B"))
    assert (answer.text, answer.status, n_calls) == ("B", "ok", 2)


def test_a_try_that_takes_too_long_is_given_up_and_made_again(log):
    never = threading.Event()
    # Where the machine is slow a good answer comes too late as well, and another try is made.
    limits = replace(QUICK, tries=1000, try_seconds=0.5)
    script = lambda body, n: replace(good("B"), after=never if n == 1 else None)  # noqa: E731
    answer, n_calls = ask_once(log, script, limits=limits)
    assert answer.text == "B" and n_calls >= 2


def test_a_call_that_fails_to_the_end_is_an_error_and_asked_anew_next_time(log):
    answer, n_calls = answered_and_asked_again(log, lambda body, n: failure(500))
    assert (answer.text, answer.status, n_calls) == ("", "error", 2 * QUICK.tries)
    assert answer.detail.startswith("HTTP 500, given up (at most 4 tries")


@pytest.mark.parametrize(
    ("reply", "status", "n_calls"),
    [
        (good("B", finish_reason="length"), "truncated", 1),
        (good(""), "unparsable", 1),
        (good(None), "unparsable", 1),
        (good([{"type": "text"}]), "unparsable", 1),
        (good(None, finish_reason="content_filter"), "refused", 2),
        (good(None, refusal="I will not."), "refused", 2),
        (failure(400, "content_filter"), "refused", 2),
        (Reply('{"choices": [{'), "error", 2),
        (Reply("<html>"), "error", 2),
        (Reply([1]), "error", 2),
        (Reply({"choices": []}), "error", 2),
        (Reply({"error": {"message": "upstream"}}), "error", 2),
        (Reply('data: {"choices": []}\n\n', headers={"x": "y"}), "error", 2),
    ],
)
def test_only_what_the_model_said_is_given_back_by_the_log(log, reply, status, n_calls):
    answer, n_asked = answered_and_asked_again(log, lambda body, n: reply)
    assert (answer.status, n_asked) == (status, n_calls)
    assert answer.detail


def test_one_letter_at_its_limit_of_one_token_is_complete(log):
    with ScriptedServer(lambda body, n: good("B", finish_reason="length")) as server:
        requests = [request("?", may_be_cut=True), request("?")]
        answers = answer_all(endpoint_of(server), requests, log=log, progress=False)
        assert [answer.status for answer in answers] == ["ok", "truncated"]
        assert server.counts["?"] == 1


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (failure(400, message="context too\nlong"), r"rejected the request \(400\): .*context too"),
        (failure(401, message=f"Incorrect key {KEY}"), r"refused the key in SCRIPTED_KEY \(401\)"),
        (failure(403), r"refused the key in SCRIPTED_KEY \(403\)"),
        (failure(404), r"no such model or address \(404\)"),
        (failure(429, "insufficient_quota"), r"quota of SCRIPTED_KEY is exhausted \(429\)"),
    ],
)
def test_what_would_fail_again_stops_the_run_at_once_with_one_line(log, reply, message):
    with ScriptedServer(lambda body, n: reply if question(body) == "2" else good("B")) as server:
        with pytest.raises(ChatError, match=message) as stopped:
            ask(server, log, *"012345", concurrency=1)
        assert "2 of 6 answers are in the response log" in str(stopped.value)
        assert "\n" not in str(stopped.value)
        assert server.counts == {"0": 1, "1": 1, "2": 1}


def test_a_server_that_is_down_stops_the_run_with_one_line(log):
    with ScriptedServer(lambda body, n: good("B")) as server:
        ask(server, log, "0")
    with pytest.raises(ChatError, match="does not answer: connection failed") as stopped:
        ask(server, log, *"0123456789", concurrency=4)
    assert "1 of 10 answers are in the response log" in str(stopped.value)
    assert "\n" not in str(stopped.value)


def test_ten_failures_in_a_row_stop_a_run(log):
    with ScriptedServer(lambda body, n: Reply("<html>")) as server:
        with pytest.raises(ChatError, match="does not answer: the response is not JSON"):
            ask(server, log, *map(str, range(30)), concurrency=1)
        assert sum(server.counts.values()) == 10


def test_a_missing_key_matters_only_where_something_must_be_asked(log, monkeypatch):
    with ScriptedServer(lambda body, n: good("B")) as server:
        ask(server, log, "0")
        monkeypatch.delenv("SCRIPTED_KEY")
        assert ask(server, log, "0")[0].text == "B"
        with pytest.raises(ChatError, match="SCRIPTED_KEY is not set"):
            ask(server, log, "1")
        keyless = endpoint_of(server, key_variable=None)
        assert answer_all(keyless, [request("2")], log=log, progress=False)[0].text == "B"


def test_offline_reads_the_log_and_names_what_is_missing(log):
    with ScriptedServer(lambda body, n: good("B")) as server:
        ask(server, log, "0")
        assert ask(server, log, "0", offline=True)[0].from_log
        with pytest.raises(ChatError, match=r"2 of 3 answers .* not in the response log"):
            ask(server, log, *"012", offline=True)
        assert server.counts == {"0": 1}


def limited(text):
    return request(text, options={"max_tokens": 2})


def test_the_cap_stops_the_run_and_counts_what_it_spent_before(log):
    # A call costs 1.9; "0" may cost (1 + 8) x 0.1 + 2 x 0.9 = 2.7.
    with ScriptedServer(lambda body, n: good("B")) as server:
        settings = {"log": log, "price": PRICE, "progress": False}
        requests = [limited(text) for text in "0123456789"]
        answer_all(endpoint_of(server), requests[:2], run="paid", **settings)
        assert log.spent("paid") == pytest.approx(3.8)
        with pytest.raises(ChatError, match=r"cap of 10 is reached: run 'paid' has spent 7.6"):
            answer_all(endpoint_of(server), requests, run="paid", cap=10, **settings)
        assert sum(server.counts.values()) == 4
        # Another run has its own purse.
        answer_all(endpoint_of(server), requests[:6], run="new", cap=10, **settings)
        assert log.spent("new") == pytest.approx(3.8)


def test_a_call_that_fits_under_the_cap_is_made_before_one_that_does_not_stops_the_run(log):
    with ScriptedServer(lambda body, n: good("B")) as server:
        batch = [limited("0"), request("1", options={"max_tokens": 10})]  # 2.7 and 9.9
        settings = {"log": log, "run": "paid", "cap": 3, "price": PRICE, "progress": False}
        with pytest.raises(ChatError, match=r"has spent 1\.9, the next call may cost 9\.9"):
            answer_all(endpoint_of(server), batch, **settings)
        assert server.counts == {"0": 1}


def test_a_cap_without_price_or_limit_of_tokens_is_refused(log):
    with ScriptedServer(lambda body, n: good("B")) as server:
        with pytest.raises(ValueError, match="a cap needs a price"):
            ask(server, log, "0", cap=1)
        with pytest.raises(ValueError, match="a cap needs max_tokens"):
            ask(server, log, "0", cap=1, price=PRICE)
        assert not server.counts


def test_the_estimate_tells_calls_tokens_and_price_before_anything_is_asked(log):
    with ScriptedServer(lambda body, n: good("B")) as server:
        endpoint, requests = endpoint_of(server), [limited(text) for text in "0123"]
        answer_all(endpoint, requests[:1], log=log, price=PRICE, run="paid", progress=False)
        expected = estimate(endpoint, requests, log=log, price=PRICE, run="paid", cap=20)
        assert (expected.n_requests, expected.n_in_log, expected.n_calls) == (4, 1, 3)
        assert (expected.input_tokens, expected.output_tokens) == (27, 6)
        assert expected.cost == pytest.approx(3 * 2.7)
        line = str(expected)
        assert "4 requests: 1 in the log, 3 to ask" in line
        assert "at most 8.1000 USD at prices of 2024-01-31, 1.9000 spent before, cap 20" in line
        assert sum(server.counts.values()) == 1


def test_a_running_event_loop_is_no_obstacle(log):
    async def notebook(server):
        return ask(server, log, "0")

    with ScriptedServer(lambda body, n: good("B")) as server:
        assert asyncio.run(notebook(server))[0].text == "B"


def test_undated_names_and_other_models_warn(log):
    with ScriptedServer(lambda body, n: good("B", model="other-2024-01-31")) as server:
        with pytest.warns(UserWarning, match=f"asked for '{MODEL}', answered by 'other-"):
            (answer,) = ask(server, log, "0")
        assert answer.model == "other-2024-01-31"
    with ScriptedServer(lambda body, n: good("B", model="m-2024-01-31")) as server:
        with pytest.warns(UserWarning, match="'m' names no dated snapshot"):
            answer_all(endpoint_of(server, model="m"), [request("0")], log=log, progress=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dated = endpoint_of(server, model="m-2024-01-31")
            answer_all(dated, [request("0")], log=log, progress=False)


def test_the_key_stands_nowhere_even_if_the_server_repeats_it(log, tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    replies = {
        "0": good(f"your key is {KEY}"),
        "1": Reply(f"<html>{KEY}"),
        "2": failure(400, message=f"{KEY} wrong"),
    }
    seen = []
    with ScriptedServer(lambda body, n: replies[question(body)]) as server:
        seen.append(repr(ask(server, log, "0", "1", progress=True, concurrency=1)))
        try:
            ask(server, log, "2")
        except ChatError as error:
            seen += [str(error), repr(error)]
            # This test's own frame holds the key, the frames below it must not.
            below = error.__traceback__.tb_next
            report = traceback.TracebackException(type(error), error, below, capture_locals=True)
            seen.append("".join(report.format()))
        seen.append(repr(endpoint_of(server)))
        assert any(f"Bearer {KEY}" in head for head in server.headers)
    assert "your key is ***" in seen[0] and "*** wrong" in seen[1]
    seen += [*capfd.readouterr(), caplog.text]
    assert not [text for text in seen if KEY in text]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_key_is_removed_as_json_writes_it(monkeypatch):
    key = 'a"quote-and-a\\-0123456789'
    monkeypatch.setenv("SCRIPTED_KEY", key)
    said = json.dumps({"message": f"{key} is wrong"})
    assert key not in said
    assert Secret("SCRIPTED_KEY").removed_from(said) == '{"message": "*** is wrong"}'
    in_an_address = f"/v1?key={quote(key, safe='')}"
    assert Secret("SCRIPTED_KEY").removed_from(in_an_address) == "/v1?key=***"


@pytest.mark.parametrize(
    "fields",
    [
        {"key_variable": "sk-" + "a" * 24},
        {"base_url": "https://me:secret@host/v1"},
        {"base_url": "https://host/v1?key=secret"},
        {"base_url": "host/v1"},
        {"options": {"stream": True}},
        {"options": {"n": 4}},
        {"options": {"stop": {"a", "b"}}},
    ],
)
def test_an_endpoint_refuses_what_would_leak_or_break(fields):
    with pytest.raises(ValueError, match=f"^{next(iter(fields))} must ") as refused:
        Endpoint(**{"base_url": "https://host/v1", "model": MODEL, **fields})
    assert "secret" not in str(refused.value) and "sk-" not in str(refused.value)


def test_a_request_holds_messages_or_a_prompt():
    for fields in ({}, {"messages": [], "prompt": ""}, {"messages": [{}], "prompt": "a"}):
        with pytest.raises(ValueError, match="either messages or a prompt"):
            Request(**fields)


# Killed runs, and several at once


def several_at_once(server, log, n, prefixes, **cap):
    """Clients that begin together, one for each prefix of questions; 16 calls at a time each."""
    together = CONTEXT.Barrier(len(prefixes))
    return [Client(log.path, server.base_url, n, 16, together, p, **cap) for p in prefixes]


def slow(seconds):
    return lambda body, n: replace(good(question(body)), delay=seconds)


class Held:
    """A script that answers so many calls, and those that come later once it is ``let_go``."""

    def __init__(self, n):
        self.n, self.let_go = n, threading.Event()

    def __call__(self, body, n):
        self.n -= 1
        return replace(good(question(body)), delay=0.02, after=None if self.n >= 0 else self.let_go)


def test_two_processes_on_one_log_pay_once(log):
    with ScriptedServer(slow(0.02)) as server:
        clients = several_at_once(server, log, 400, ["", ""])
        assert [client.end() for client in clients] == [0, 0]
        assert sum(server.counts.values()) == len(server.counts) == 400
        # What one asked the other had from the log.
        assert sum(client.n_from_log for client in clients) == 400


def test_when_one_of_two_processes_is_killed_the_other_finishes(log):
    script = Held(200)
    with ScriptedServer(script) as server:
        killed, other = several_at_once(server, log, 400, ["", ""])
        wait_until(lambda: len(server.answered) == 200, killed.process.is_alive)
        assert killed.end(signal.SIGKILL) == -signal.SIGKILL
        lapse(log.path)
        script.let_go.set()
        assert other.end() == 0
        assert len(server.counts) == 400
        assert sum(server.counts.values()) <= 400 + 16


LEASE = 0.4  # seconds of the test's own clock; the machine's renews a claim every 0.1


class Clock:
    """What the log takes for the time; it stands still unless a test moves it by leases."""

    def __init__(self, path):
        self.now, self.path = 1e9, path

    def move(self, leases):
        self.now += leases * LEASE

    def wait_for_renewal(self, key):
        """Until the key's claim holds for a lease from now."""
        query = "SELECT 1 FROM claims WHERE key = ? AND expires_at = ?"
        with sqlite3.connect(self.path) as log:
            given = key, self.now + LEASE
            wait_until(lambda: log.execute(query, given).fetchone())
        log.close()


@pytest.fixture
def clock(tmp_path, monkeypatch):
    clock = Clock(tmp_path / "log.sqlite")
    monkeypatch.setattr(response_log.time, "time", lambda: clock.now)
    return clock


def test_a_claim_is_held_while_its_call_takes_longer_than_the_lease(clock):
    script = Held(0)
    with (
        ScriptedServer(script) as server,
        ResponseLog(clock.path, LEASE) as log,
        ThreadPoolExecutor(1) as thread,
    ):
        asked = thread.submit(ask, server, log, "A or B?")
        try:
            wait_until(lambda: server.counts)
            key = key_of(endpoint_of(server), request("A or B?"))
            for _ in range(3):
                clock.move(0.9)
                clock.wait_for_renewal(key)
                assert log.claim([key], "another owner") == set()
        finally:
            script.let_go.set()
        assert asked.result()[0].status == "ok"
        assert server.counts == {"A or B?": 1}


def test_a_call_whose_claim_lapsed_before_it_began_is_left_to_who_took_it(clock):
    script = Held(0)
    with (
        ScriptedServer(script) as server,
        ResponseLog(clock.path, LEASE) as log,
        ThreadPoolExecutor(1) as thread,
    ):
        first, second = (key_of(endpoint_of(server), request(text)) for text in "01")
        asked = thread.submit(ask, server, log, "0", "1", concurrency=1)  # "1" is claimed ahead
        try:
            wait_until(lambda: server.counts)
            wait_until(lambda: clock.move(2) or log.claim([second], "another owner"))
            for _ in range(2):  # with the second, what the first found out has been taken in
                clock.move(0.1)
                clock.wait_for_renewal(first)
            log.put([LogEntry(second, True, "", "", {}, good("C").body, 0.1, 0.0)])
        finally:
            script.let_go.set()
        assert [answer.text for answer in asked.result()] == ["0", "C"]
        assert server.counts == {"0": 1}


def test_an_answer_that_another_run_paid_for_meanwhile_needs_no_room_under_the_cap(log):
    def script(body, n):
        assert question(body) == "0"
        key, name = key_of(endpoint, limited("1")), "another process"
        with ResponseLog(log.path) as other:
            other.put([LogEntry(key, True, "paid", name, {}, good("C").body, 0.1, 2.8)])
        return good("B")

    with ScriptedServer(script) as server:
        endpoint = endpoint_of(server)
        batch = [limited(text) for text in "01"]
        settings = {"log": log, "price": PRICE, "run": "paid", "concurrency": 1, "progress": False}
        # 1.9 + 2.8: nothing is left for a call that may cost 2.7.
        answers = answer_all(endpoint, batch, cap=4.7, **settings)
        assert [(answer.text, answer.from_log) for answer in answers] == [("B", False), ("C", True)]


def test_processes_of_one_run_stay_under_its_cap_together(log):
    # 240 calls of 1.9 would cost 456; one may cost 2.8.
    with ScriptedServer(slow(0.02)) as server:
        clients = several_at_once(server, log, 40, [f"{n} " for n in range(6)], cap=100)
        assert [client.end() for client in clients] == [0] * 6
    assert 100 - 2.8 < log.spent("default") <= 100
    assert log.spent("default") == pytest.approx(1.9 * sum(server.counts.values()))
    lines = [client.stopped for client in clients if client.n_from_log < 0]
    assert len(lines) >= 5  # the calls of two would not fit
    for line in lines:
        assert line.startswith("the cap of 100 is reached: run 'default' has spent 98.8, the next ")
        assert "of 40 answers are in the response log" in line and "\n" not in line


@pytest.fixture
def lasting(log):
    """The log, in which no claim expires before its test is over."""
    with ResponseLog(log.path, LEASE_SECONDS) as lasting:
        yield lasting


@pytest.fixture
def waits(monkeypatch):
    """Set when a batch waits for what other processes do."""
    waits, pause = threading.Event(), Batch._pause

    async def noted(batch, seconds):
        waits.set()
        await pause(batch, seconds)

    monkeypatch.setattr(Batch, "_pause", noted)
    return waits


def test_what_another_process_has_in_flight_is_waited_for_and_not_spent(lasting, waits):
    settings = {"log": lasting, "run": "paid", "price": PRICE, "cap": 10, "progress": False}
    with ScriptedServer(lambda body, n: good("B")) as server, ThreadPoolExecutor(1) as thread:
        lasting.claim(["k"], "another process", run="paid", most={"k": 8.0}, cap=10)
        asked = thread.submit(answer_all, endpoint_of(server), [limited("0")], **settings)
        wait_until(waits.is_set, lambda: not asked.done())
        assert not server.counts  # 8 + 2.7
        lasting.put([LogEntry("k", True, "paid", "another process", {}, good("C").body, 1, 7.3)])
        assert asked.result()[0].text == "B"  # 7.3 + 2.7
    assert lasting.spent("paid") == pytest.approx(7.3 + 1.9)


def test_no_run_stops_at_its_cap_over_a_call_that_another_process_makes(lasting, waits):
    settings = {"log": lasting, "run": "paid", "price": PRICE, "cap": 10, "progress": False}
    with ScriptedServer(lambda body, n: good("B")) as server, ThreadPoolExecutor(1) as thread:
        endpoint = endpoint_of(server)
        key = key_of(endpoint, limited("0"))
        lasting.put([LogEntry("k", True, "paid", "before", {}, good("A").body, 1, 9.0)])
        lasting.claim([key], "another process", run="another run")
        asked = thread.submit(answer_all, endpoint, [limited("0")], **settings)
        wait_until(waits.is_set, lambda: not asked.done())
        lasting.put([LogEntry(key, True, "another run", "there", {}, good("C").body, 1, 1.9)])
        assert asked.result()[0].text == "C" and not server.counts


def test_what_a_killed_process_had_in_flight_is_free_for_others_after_the_lease(lasting):
    script = Held(0)
    with ScriptedServer(script) as server:
        killed = Client(lasting.path, server.base_url, 9, 9, prefix="a", cap=10)
        wait_until(lambda: len(server.counts) == 3, killed.process.is_alive)  # 3 x 2.7 < 10
        assert killed.end(signal.SIGKILL) == -signal.SIGKILL
        more = {"run": "default", "most": {"k": 2.7}, "cap": 10}
        assert lasting.claim(["k"], "others", **more) == set()
        lapse(lasting.path)
        assert lasting.claim(["k"], "others", **more) == {"k"}
        lasting.release("others")
        script.let_go.set()
        again = Client(lasting.path, server.base_url, 3, 3, prefix="b", cap=10)
        assert again.end() == 0 and again.n_from_log == 0
    assert lasting.spent("default") == pytest.approx(3 * 1.9)


def test_after_kill_9_only_the_calls_in_flight_are_made_again(log):
    script = Held(120)
    with ScriptedServer(script) as server:
        first = Client(log.path, server.base_url, 300, 20)
        wait_until(lambda: len(server.counts) == 140, first.process.is_alive)
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
        with sqlite3.connect(log.path) as connection:
            rows = connection.execute("SELECT request FROM answers").fetchall()
        kept = {question(json.loads(row)) for (row,) in rows}
        asked = set(server.counts)
        # As many were under way as may be at a time.
        assert kept <= asked and len(kept) == 120
        lapse(log.path)
        script.let_go.set()
        again = Client(log.path, server.base_url, 300, 20)
        assert again.end() == 0 and again.n_from_log == len(kept)
        repeated = {text for text, n_calls in server.counts.items() if n_calls > 1}
        assert set(server.counts) == {str(number) for number in range(300)}
        assert repeated == asked - kept and max(server.counts.values()) <= 2


def test_an_interrupt_ends_the_run_and_keeps_what_was_answered(log):
    script = Held(100)
    with ScriptedServer(script) as server:
        first = Client(log.path, server.base_url, 300, 20)
        wait_until(lambda: len(server.answered) == 100, first.process.is_alive)
        assert first.end(signal.SIGINT) == 1
        assert len(server.counts) < 300
        script.let_go.set()
        assert Client(log.path, server.base_url, 300, 20).end() == 0
        assert sum(server.counts.values()) <= 300 + 20
