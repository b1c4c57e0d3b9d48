import asyncio
import json
import logging
import signal
import sqlite3
import threading
import time
import traceback
import warnings
from dataclasses import replace
from urllib.parse import quote

import pytest
from chat_client import PRICE, Client
from scripted_server import MODEL, Reply, ScriptedServer, failure, good, question
from waiting import wait_until

from contamination.models.chat import (
    ChatError,
    Endpoint,
    Limits,
    Price,
    Request,
    Secret,
    answer_all,
    estimate,
)

KEY = "key-that-nothing-may-show-0123456789"
QUICK = Limits(tries=4)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)


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


@pytest.mark.parametrize("trouble", [failure(500), Reply(is_dropped=True)], ids=["500", "dropped"])
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
    assert answer.detail.startswith("HTTP 500: ")


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
        # The client tries an exhausted quota as often as any other 429, which costs nothing.
        n_tries = QUICK.tries if "quota" in message else 1
        assert server.counts == {"0": 1, "1": 1, "2": n_tries}


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
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    replies = {
        "0": good(f"your key is {KEY}"),
        "1": Reply(f"<html>{KEY}"),
        "2": failure(400, message=f"{KEY} wrong"),
        "3": Reply(json.dumps(good(KEY).body).replace(KEY, escaped)),
    }
    seen = []
    with ScriptedServer(lambda body, n: replies[question(body)]) as server:
        seen.append(repr(ask(server, log, "0", "1", "3", progress=True, concurrency=1)))
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


@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-01", "yesterday", ""])
def test_a_price_list_has_a_day_that_there_is(day):
    with pytest.raises(ValueError, match=f'^"{day}" is no day: write the day of the price list'):
        Price(1.0, 2.0, date=day)


def test_a_request_holds_messages_or_a_prompt():
    for fields in ({}, {"messages": [], "prompt": ""}, {"messages": [{}], "prompt": "a"}):
        with pytest.raises(ValueError, match="either messages or a prompt"):
            Request(**fields)


# Killed runs, and several at once


class Held:
    """A script that answers so many calls, and those that come later once it is ``let_go``."""

    def __init__(self, n):
        self.n, self.let_go = n, threading.Event()

    def __call__(self, body, n):
        self.n -= 1
        return replace(good(question(body)), delay=0.02, after=None if self.n >= 0 else self.let_go)


def test_a_second_process_on_one_log_is_told_so_and_nothing_is_paid_twice(log):
    script = Held(20)
    with ScriptedServer(script) as server:
        first = Client(log.path, server.base_url, 100, 8)
        wait_until(lambda: len(server.answered) == 20, first.process.is_alive)
        second = Client(log.path, server.base_url, 100, 8)
        assert second.end() == 0
        assert "log.sqlite is in use by another run" in second.stopped
        script.let_go.set()
        assert first.end() == 0
        assert set(server.counts.values()) == {1} and len(server.counts) == 100
        again = Client(log.path, server.base_url, 100, 8)
        assert again.end() == 0 and again.n_from_log == 100


def test_after_kill_9_only_the_calls_in_flight_are_made_again(log):
    script = Held(120)
    with ScriptedServer(script) as server:
        first = Client(log.path, server.base_url, 300, 20)
        wait_until(lambda: len(server.counts) == 140, first.process.is_alive)
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
        with sqlite3.connect(log.path) as connection:
            rows = connection.execute("SELECT request FROM calls WHERE is_replayed").fetchall()
        kept = {question(json.loads(row)) for (row,) in rows}
        asked = set(server.counts)
        # As many were under way as may be at a time.
        assert kept <= asked and len(kept) == 120
        script.let_go.set()
        again = Client(log.path, server.base_url, 300, 20)
        assert again.end() == 0 and again.n_from_log == len(kept)
        repeated = {text for text, n_calls in server.counts.items() if n_calls > 1}
        assert set(server.counts) == {str(number) for number in range(300)}
        assert repeated == asked - kept and max(server.counts.values()) <= 2


def test_killed_processes_do_not_take_a_run_beyond_its_cap(log):
    """Calls of 1.9 that may cost 2.7: what was in flight at the kill counts as 2.7 each."""
    with ScriptedServer(Held(0)) as server:
        for n_killed, prefix in enumerate("abc"):
            killed = Client(log.path, server.base_url, 9, 3, prefix=prefix, cap=30)
            n_asked = 3 * (n_killed + 1)
            wait_until(lambda n=n_asked: len(server.counts) == n, killed.process.is_alive)
            assert killed.end(signal.SIGKILL) == -signal.SIGKILL
    assert log.spent("default") == pytest.approx(9 * 2.7)
    with ScriptedServer(lambda body, n: good(question(body))) as server:
        last = Client(log.path, server.base_url, 9, 3, prefix="d", cap=30)
        assert last.end() == 0
        assert last.stopped.startswith("the cap of 30 is reached: run 'default' has spent 28.1, ")
        assert len(server.counts) == 2
    assert log.spent("default") == pytest.approx(9 * 2.7 + 2 * 1.9)


def test_calls_in_flight_count_against_the_cap_while_they_last(log):
    """Of ten calls of 2.7 at most only three fit under 10 at a time, and five in all."""
    with ScriptedServer(lambda body, n: replace(good("B"), delay=0.1)) as server:
        requests = [limited(text) for text in "0123456789"]
        settings = {"log": log, "price": PRICE, "cap": 10, "progress": False}
        with pytest.raises(ChatError, match=r"cap of 10 is reached: run 'default' has spent 7\.6"):
            answer_all(endpoint_of(server), requests, **settings)
        assert len(server.counts) == 4 and server.n_in_flight_most <= 3
    assert log.spent("default") == pytest.approx(4 * 1.9)


def test_a_call_without_an_answer_has_cost_the_most_that_it_may(log):
    """Nobody knows whether the server did the work: a cap must count it."""
    never = threading.Event()
    limits = Limits(tries=1, try_seconds=0.2)
    script = lambda body, n: replace(good("B"), after=never)  # noqa: E731
    settings = {"log": log, "price": PRICE, "limits": limits, "progress": False}
    with ScriptedServer(script) as server:
        with pytest.raises(ChatError, match="does not answer: no answer in time"):
            answer_all(endpoint_of(server), [limited("0")], **settings)
        never.set()
    assert log.spent("default") == pytest.approx(2.7)


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
