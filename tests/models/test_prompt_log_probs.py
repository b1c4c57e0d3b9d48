"""Log-probabilities of prompts in each form, from scripted servers that answer as vLLM does."""

import re
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scripted_server import MODEL, Reply, ScriptedServer, failure, good

from contamination.models.chat import ChatError, Endpoint, Limits, Price, UnsupportedError, estimate
from contamination.models.prompt_log_probs import (
    COMPLETIONS,
    ECHO,
    FORMS,
    PROBE,
    check_spelling,
    known_form,
    probe,
    probe_requests,
    prompt_log_probs,
)
from contamination.models.response_log import ResponseLog

TEXTS = ["One heron waited by the river.", "Two more came at dusk, and none left."]
PRICE = Price(1.0, 1.0, "2024-01-31")
QUICK = Limits(tries=2)
TOKEN = re.compile(r"<[^>]*>|\n| ?\w+|[^\w\s]")


def endpoint_of(server):
    return Endpoint(server.base_url, MODEL, None)


def asked_form(body):
    return ECHO if "echo" in body else COMPLETIONS


def id_of(token):
    return sum(token.encode()) + 7 * len(token)


def value_of(token):
    """A value for each token, wherever it is: so a text's values are the same in every form."""
    return -0.25 * len(token) - 0.125


def entry_of(token):
    said = {"logprob": value_of(token), "rank": 3, "decoded_token": token}
    return {str(id_of(token)): said}


def answered(body, with_ids=True, likelier=False):
    """What vLLM answers to one request in one of the two forms, of one generated token."""
    tokens = TOKEN.findall(body["prompt"])
    usage = {"prompt_tokens": len(tokens), "completion_tokens": 1}
    response = {"model": MODEL, "usage": usage}
    if asked_form(body) == ECHO:
        values = [None, *map(value_of, tokens[1:]), -0.5]
        logprobs = {"tokens": [*tokens, "!"], "token_logprobs": values}
        text = body["prompt"] + "!"
        choice = {"text": text, "finish_reason": "length", "logprobs": logprobs}
        return response | {"choices": [choice]}
    entries = [None, *map(entry_of, tokens[1:])]
    if likelier:
        other = {"logprob": -0.01, "rank": 1, "decoded_token": " xyz"}
        entries = [entry and {"5": other} | entry for entry in entries]
    given = {"prompt_logprobs": entries}
    if with_ids:
        given["prompt_token_ids"] = [id_of(token) for token in tokens]
    return response | {"choices": [{"text": "!", "finish_reason": "length"} | given]}


def gives(*forms, **how):
    """A script of a server that has these forms and answers the others as if nothing were asked."""

    def script(body, n):
        if asked_form(body) in forms:
            return Reply(answered(body, **how))
        return Reply(plain())

    return script


def plain():
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    choice = {"text": "!", "finish_reason": "length"}
    return {"model": MODEL, "choices": [choice], "usage": usage}


def scored(script, texts=TEXTS, log=None, **settings):
    """What the texts score, and the bodies that the server got."""
    with ScriptedServer(script) as server:
        settings = {"progress": False, "limits": QUICK} | settings
        return prompt_log_probs(endpoint_of(server), texts, log=log, **settings), server.bodies


def refused(script, log, error=UnsupportedError, **settings):
    """The one line of an error, and the number of calls until then."""
    with ScriptedServer(script) as server:
        settings = {"progress": False, "limits": QUICK} | settings
        with pytest.raises(error) as caught:
            prompt_log_probs(endpoint_of(server), TEXTS, log=log, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value), len(server.bodies)


# Each form


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_numbers_of_the_texts_own_tokens(form, log):
    found, bodies = scored(gives(form), log=log)
    for text, values in zip(TEXTS, found, strict=True):
        assert np.array_equal(values, [value_of(token) for token in TOKEN.findall(text)[1:]])
    # The forms before it are tried once, then it, and the texts in it alone.
    assert [asked_form(body) for body in bodies] == [*FORMS[: FORMS.index(form) + 1], form, form]
    assert all(body["max_tokens"] == 1 for body in bodies)


def test_both_forms_give_the_same_numbers_for_the_same_text(tmp_path):
    found = []
    for number, form in enumerate(FORMS):
        with ResponseLog(tmp_path / f"{number}.sqlite") as log:
            found.append(scored(gives(form), log=log)[0])
    for one, other in zip(*found, strict=True):
        assert one.size and np.array_equal(one, other)


def test_what_is_sent_is_what_each_form_asks_for(log):
    bodies = scored(gives(COMPLETIONS), log=log)[1]
    echo, completions, *_ = bodies
    assert (echo["echo"], echo["logprobs"], echo["prompt"]) == (True, 1, PROBE)
    assert echo["temperature"] == 0  # as in logs of before
    assert (completions["prompt_logprobs"], completions["prompt"]) == (0, PROBE)
    assert completions["return_token_ids"]


def test_the_prompts_own_token_is_told_by_its_id_from_a_likelier_one(log):
    found, _ = scored(gives(COMPLETIONS, likelier=True), log=log)
    assert np.array_equal(found[0], [value_of(token) for token in TOKEN.findall(TEXTS[0])[1:]])


def test_without_ids_several_tokens_for_a_place_are_refused(log):
    line, _ = refused(gives(COMPLETIONS, likelier=True, with_ids=False), log)
    assert f"{COMPLETIONS}: gave several tokens for a place of the prompt" in line


# The probe


def test_the_probe_is_asked_once_for_each_model_and_its_cost_counts(log):
    with ScriptedServer(gives(COMPLETIONS)) as server:
        endpoint = endpoint_of(server)
        assert known_form(endpoint, log) == ""
        form, said = probe(endpoint, log=log, run="r", price=PRICE)
        assert form == COMPLETIONS and len(server.bodies) == 2
        assert said == f"{MODEL}: the address gives log-probabilities of prompts by {COMPLETIONS}"
        # Both answers were paid for, that too which gave nothing.
        n_in = 9 + len(TOKEN.findall(server.bodies[-1]["prompt"]))
        assert log.spent("r") == pytest.approx((n_in + 2) / 1e6)
        assert probe(endpoint, log=log) == (form, said)
        assert known_form(endpoint, log) == COMPLETIONS
        assert probe(replace(endpoint, model=f"{MODEL}-b"), log=log)[0] == COMPLETIONS
        assert len(server.bodies) == 4


def test_a_server_without_any_form_says_why_for_each_and_is_asked_again_when_it_is_mended(log):
    with ScriptedServer(lambda body, n: script(body, n)) as server:
        script = gives()
        form, said = probe(endpoint_of(server), log=log)
        assert form == "" and len(server.bodies) == 2 and "\n" not in said
        assert said.startswith(f"{MODEL}: the address gives no log-probabilities of prompts (")
        assert all(f"{one}: gave no log-probabilities" in said for one in FORMS)
        script = gives(ECHO)
        assert probe(endpoint_of(server), log=log)[0] == ECHO


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_form_that_the_server_rejects_is_passed_over(status, log):
    def script(body, n):
        if asked_form(body) == COMPLETIONS:
            return Reply(answered(body))
        return failure(status, message="unknown option")

    found, bodies = scored(script, log=log)
    assert len(found) == 2 and len(bodies) == 4


def test_a_server_that_rejects_every_form_is_one_line(log):
    line, n_calls = refused(lambda body, n: failure(400, message="unknown option"), log)
    assert n_calls == 2
    assert line.count("rejected the request (400): ") == line.count("unknown option") == 2


def test_a_server_that_fails_on_a_form_is_passed_over_soon(log):
    def script(body, n):
        if asked_form(body) == ECHO:
            return failure(500)
        return Reply(answered(body))

    _, bodies = scored(script, log=log)
    assert [asked_form(body) for body in bodies] == [ECHO] * 2 + [COMPLETIONS] * 3


@pytest.mark.parametrize(
    ("status", "message"), [(401, "asks for a key"), (429, "quota of .* is exhausted")]
)
def test_what_no_other_form_would_mend_stops_the_probe(status, message, log):
    script = lambda body, n: failure(status, code="insufficient_quota")  # noqa: E731
    with ScriptedServer(script) as server:
        with pytest.raises(ChatError, match=message) as caught:
            probe(endpoint_of(server), log=log)
        assert not isinstance(caught.value, UnsupportedError)
        assert len(server.bodies) == (1 if status == 401 else QUICK.tries)


def test_nothing_is_sent_before_the_cap_is_checked(log):
    line, n_calls = refused(gives(ECHO), log, ChatError, price=PRICE, cap=1e-9)
    assert "the cap of 1e-09 is reached" in line and n_calls == 0
    # The probe fits under this one, the texts do not.
    cap = estimate(Endpoint("http://127.0.0.1:9/v1", MODEL), probe_requests()[:1], price=PRICE).cost
    line, n_calls = refused(gives(ECHO), log, ChatError, price=PRICE, cap=cap)
    assert "is reached" in line and n_calls == 1


# Answers that are refused


def changed(change):
    """A script that gives log-probabilities, each response of which ``change`` has altered."""

    def script(body, n):
        if asked_form(body) != COMPLETIONS:
            return Reply(plain())
        response = answered(body)
        change(response, response["choices"][0])
        return Reply(response)

    return script


def one_too_few(response, place):
    place["prompt_logprobs"].pop()


def one_id_too_few(response, place):
    place["prompt_token_ids"].pop()


def uncounted(response, place):
    response["usage"] = None


def other_token(response, place):
    place["prompt_logprobs"][3] = {"1": {"logprob": -1.0, "decoded_token": "?"}}


def null_inside(response, place):
    place["prompt_logprobs"][3] = None


def shifted(response, place):
    place["prompt_logprobs"][0] = place["prompt_logprobs"][1]


def above_zero(response, place):
    place["prompt_logprobs"][3] = {
        key: one | {"logprob": 0.5} for key, one in place["prompt_logprobs"][3].items()
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (one_too_few, r"gave \d+ log-probabilities and \d+ ids for \d+ tokens of prompt"),
        (one_id_too_few, r"gave \d+ log-probabilities and \d+ ids for \d+ tokens of prompt"),
        (uncounted, "counted no tokens"),
        (other_token, "left tokens of the prompt without a log-probability"),
        (null_inside, "left tokens of the prompt without a log-probability"),
        (shifted, "may be one place off"),
        (above_zero, "left tokens of the prompt without a log-probability"),
    ],
)
def test_an_answer_of_another_number_of_tokens_or_of_other_tokens_is_refused(change, message, log):
    line, n_calls = refused(changed(change), log)
    assert re.search(f"{COMPLETIONS}: [^;]*{message}", line)
    # Each form was tried, and no text was asked for.
    assert n_calls == 2


def test_a_wrong_answer_after_a_good_probe_stops_the_run(log):
    def script(body, n):
        response = answered(body)
        if body.get("prompt") == TEXTS[0]:
            response["choices"][0]["logprobs"]["token_logprobs"].pop()
        return Reply(response)

    line, n_calls = refused(script, log, concurrency=1)
    assert re.search(r"gave \d+ log-probabilities for \d+ tokens of prompt", line)
    assert n_calls == 2


def echoed(tokens, values, n_prompt, text="one two three!"):
    logprobs = {"tokens": tokens, "token_logprobs": values}
    choice = {"text": text, "finish_reason": "length", "logprobs": logprobs}
    usage = {"prompt_tokens": n_prompt, "completion_tokens": 1}
    return Reply({"model": MODEL, "choices": [choice], "usage": usage})


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (good("!"), "gave no log-probabilities"),
        (echoed(["!"], [-0.1], 3, "!"), "gave 1 log-probabilities for 3 tokens of prompt"),
        (echoed(["a", "b", "c", "!"], [None, -1, None, -1], 3), "left tokens of the prompt"),
        (echoed(["a", "!"], [None, -1], 1), "a text of one token"),
    ],
)
def test_an_echo_that_does_not_score_its_prompt_is_refused(log, reply, message):
    line, _ = refused(lambda body, n: reply, log)
    assert f"echo: {message}" in line or f"echo: was asked for {message}" in line


# A completion's tokens by their text


@pytest.mark.parametrize(
    ("tokens", "n_before", "is_refused"),
    [
        (["<s>", "The", " slow", " river", "."], 0, False),
        (["The", "Ġslow", "Ġriver", "."], 0, False),
        ([" slow", " river", "."], 32, False),  # without the first token, which has no context
        ([" slow", " river", "."], 0, True),
        ([" slow", " river", ".", " the"], 32, True),
        (["The", " slow"], 32, True),  # cut at its end
        (["", "", ""], 0, False),  # no texts of tokens: they cannot be compared
    ],
)
def test_tokens_are_compared_with_the_text_that_was_sent(tokens, n_before, is_refused):
    with pytest.raises(ValueError, match="other tokens") if is_refused else nullcontext():
        check_spelling(tokens, "The slow river.", n_before)
