"""Answers that are meant to do harm: each is one answer that cannot be read, soon and in little."""

from __future__ import annotations

import pandas as pd
import pytest
from scripted_server import MODEL, Reply, ScriptedServer, good

from contamination.core.keys import one_line, visible
from contamination.core.tables import marked_tokens, say, show
from contamination.models import chat
from contamination.models.chat import Endpoint, Limits, Price, Request, answer_all

QUICK = Limits(tries=2)
ACTS = "\x1b[2J\x07\r\u202eevil\u2066\u200b\x9b\ud800"


def ask(base_url, log, n=1):
    endpoint = Endpoint(base_url, MODEL, key_variable=None)
    requests = [Request(messages=[{"role": "user", "content": str(i)}]) for i in range(n)]
    return answer_all(endpoint, requests, log=log, limits=QUICK, progress=False, concurrency=1)


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
def test_json_that_is_nested_too_deep_is_an_error_like_others(log, status, left, right):
    deep = '{"choices": ' + left * 100_000 + "1" + right * 100_000 + "}"
    script = lambda body, n: Reply(deep, status) if n < 3 else good("B")  # noqa: E731
    with ScriptedServer(script) as server:
        if status == 400:
            with pytest.raises(chat.ChatError, match="rejected the request"):
                ask(server.base_url, log)
            return
        (answer,) = ask(server.base_url, log)
    assert answer.status == chat.ERROR
    assert status != 200 or "nested too deep" in answer.detail


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    ("n_bytes", "headers", "message"),
    [
        (1_000_001, {}, "larger than 1,000,000 bytes"),
        (10, {"content-encoding": "gzip"}, "came compressed"),
    ],
)
def test_an_answer_is_read_up_to_the_limit(log, monkeypatch, status, n_bytes, headers, message):
    monkeypatch.setattr(chat, "LARGEST_ANSWER", 1_000_000)
    with ScriptedServer(lambda body, n: Reply(" " * n_bytes, status, headers)) as server:
        (answer,) = ask(server.base_url, log)
    assert answer.status == chat.ERROR
    assert message in answer.detail
    assert server.counts == {"0": 1}  # the same would come again
    assert "accept-encoding: identity" in server.headers[0].lower()


def test_counts_that_would_refund_the_run_are_no_counts():
    price, body = Price(1.0, 1.0, "2024-01-31"), {"prompt": "x" * 300, "max_tokens": 50}
    most = chat.most_it_costs(body, price)
    assert most == pytest.approx((100 + 50) / 1e6)
    from contamination.models.exchange import cost_of

    for counts in ((-(10**9), 0), (1, -5), (10**4000, 1), (True, None)):
        usage = dict(zip(("prompt_tokens", "completion_tokens"), counts, strict=True))
        assert cost_of(body, {"usage": usage}, price) == most


def test_nothing_that_acts_reaches_terminal_or_page(log, capfd):
    body = good(ACTS, model=MODEL + ACTS).body
    wrong = Reply({"error": {"message": ACTS, "code": ACTS}})
    with ScriptedServer(lambda said, n: Reply(body)) as server:
        (answer,) = ask(server.base_url, log)
    with ScriptedServer(lambda said, n: wrong) as server:
        errors = ask(server.base_url, log, 2)
    table = pd.DataFrame({"answer": [answer.text], ACTS[:-1]: ["x"]})
    shown = [
        show(table, ACTS).data,
        say(answer.text).data,
        marked_tokens([answer.text], [-1.0], 20).data,
        answer.model,
        *(error.detail for error in errors),
        *capfd.readouterr(),
    ]
    for text in shown:
        assert visible(text) == text
    assert "evil" in shown[0]
    answer.text.encode()  # half a pair of surrogates is gone


def test_visible_keeps_what_people_write():
    for text in ("tab\tand\nline", "naïve — “quotes” 漢字 שלום 👍🏽 a\u200db", "x\u00a0y"):
        assert visible(text) == text
    assert visible("\r\x00\u202e") == "\\r\\x00\\u202e"
    assert one_line("a\nb\x1b" + "c" * 300) == ("a b\\x1b" + "c" * 300)[:200]
