"""The instrument is checked before it is read: six servers, and only the right one passes."""

from itertools import pairwise

import numpy as np
import pytest
from scripted_server import MODEL, Reply, ScriptedServer, good
from test_audit import endpoint, prepared, table_of

from contamination.audit import auditing, instrument
from contamination.audit.plan import MIN_K
from contamination.core.verdicts import NOT_RUN


def reply(tokens, values):
    choice = {"text": " x", "finish_reason": "length"}
    choice["logprobs"] = {"tokens": [*tokens, " x"], "token_logprobs": [None, *values[1:], -0.5]}
    usage = {"prompt_tokens": len(tokens), "completion_tokens": 1}
    return Reply({"model": MODEL, "choices": [choice], "usage": usage})


def right(text):
    """Likelier in the order of a known text than in any other."""
    words = text.split()
    known = {pair for one in instrument.TEXTS for pair in pairwise(one.split())}
    pairs = zip(["", *words], words, strict=False)
    return reply(words, [-1.0 if pair in known else -4.0 for pair in pairs])


def null(text):
    return reply(text.split(), [None] * len(text.split()))


def equal(text):
    return reply(text.split(), [0.0] * len(text.split()))


def chance(text):
    generator = np.random.default_rng(len(text) + sum(map(ord, text[:9])))
    return reply(text.split(), (-9 * generator.random(len(text.split()))).tolist())


def short(text):
    return reply(text.split()[-4:], [-1.0] * 4)


def other_text(text):
    return reply([f"{word}s" for word in text.split()], [-1.0] * len(text.split()))


def answered(server, body):
    """By echo alone; other forms give no log-probabilities."""
    return server(body["prompt"]) if "echo" in body else good("x")


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (null, "without a log-probability"),
        (equal, "the same for every token"),
        (chance, "do not prefer known texts to the same words in other orders"),
        (short, "other tokens than those of the text"),
        (other_text, "other tokens than those of the text"),
        (right, ""),
    ],
)
def test_a_server_is_refused_unless_it_prefers_known_texts(server, why):
    with ScriptedServer(lambda body, n: answered(server, body)) as served:
        audit = prepared(
            model=endpoint(served.base_url), n=4, n_passages=4, blocks={"methods": ["min_k"]}
        )
        target = auditing.target_of(audit, MODEL)
        found = auditing.findings_of(audit, target)
    assert why in found[MIN_K].why_not and bool(found[MIN_K].why_not) == bool(why)
    row = table_of(audit, {MODEL: found}).loc[MIN_K]
    assert (row["verdict"] == NOT_RUN) == bool(why)


def test_one_row_that_a_server_refuses_is_left_out_named_and_counted():
    with ScriptedServer(lambda body, n: script(body, n)) as served:
        audit = prepared(
            model=endpoint(served.base_url), n=8, n_passages=8, blocks={"methods": ["min_k"]}
        )
        too_long = audit.rows.passages[2]

        def script(body, n):
            if body["prompt"] == too_long:
                return Reply({"error": {"message": "longer than the context"}}, status=400)
            return right(body["prompt"])

        target = auditing.target_of(audit, MODEL)
        found = auditing.findings_of(audit, target)
    row = table_of(audit, {MODEL: found}).loc[MIN_K]
    assert (row["n"], row["n_comparison"]) == (7, 8)
    index = audit.rows.rows["index"][2]
    assert f"1 of 16 rows were left out (row {index}): " in row["note"]
    assert "longer than the context" in row["note"]


def test_by_hand():
    """Orders at -6, -8, -10, three of each: mean -8, standard deviation 1.73."""
    others = [np.array([total / 2 + 1, total / 2 - 1]) for total in (-6.0, -8.0, -10.0) * 3]
    good, equal = np.array([-1.0, -3.0]), np.array([-4.0, -4.5])
    assert instrument.why_unsound([good, *others] * 2) == ""  # 2.3 deviations above
    assert "1.2 standard deviations" in instrument.why_unsound([good, *others, *[others[2]] * 10])
    assert "-0.3 standard deviations" in instrument.why_unsound([equal, *others] * 2)
    # Orders that all score the same say little of a text: being ahead counts as just enough.
    tied, ahead, behind = [np.array([-4.0, -5.0])] * 9, [good], [np.array([-9.0, -8.0])]
    assert instrument.why_unsound([*ahead, *tied] * 2) == ""
    assert instrument.why_unsound([*ahead, *tied, *behind, *tied]) != ""
    assert instrument.why_unsound([tied[0], *tied] * 2) != ""
    assert "no log-probabilities" in instrument.why_unsound([None] * 20)
    assert "not finite" in instrument.why_unsound([np.array([-1.0, -np.inf])] * 20)
