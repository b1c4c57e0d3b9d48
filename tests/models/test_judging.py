"""The ICL judge: every kind of answer, counted; nothing guessed."""

import hashlib

import pytest
from scripted_server import MODEL, ScriptedServer, failure, good, question

from contamination.models.chat import Endpoint, Limits
from contamination.models.judging import ask_judge, judge_requests, parse_label, rule_label
from contamination.models.response_log import ResponseLog
from contamination.replication.instructions import JUDGE_OPTIONS, JUDGE_PROMPT

ANSWERS = {
    "Yes (exact match)": ("exact", False),
    " yes (EXACT match). ": ("exact", False),
    "Yes (near-exact match)": ("near-exact", False),
    "No": ("inexact", False),
    "No.": ("inexact", False),
    "No (inexact match)": ("inexact", False),
    "Yes": ("near-exact", True),
    "Yes.": ("near-exact", True),
    "Yes (near exact match)": (None, False),
    "Answer: Yes (exact match)": (None, False),
    "Yes (exact match) because": (None, False),
    "No, the candidate differs": (None, False),
    "Maybe": (None, False),
    "": (None, False),
}


@pytest.mark.parametrize(("text", "expected"), ANSWERS.items(), ids=ANSWERS)
def test_parsing_is_strict(text, expected):
    assert parse_label(text) == expected


def script(body, n):
    said = question(body).rsplit("Candidate Text: ", 1)[1].removesuffix("\nAnswer:")
    if said == "refused":
        return good("", refusal="I would rather not.")
    if said == "broken":
        return failure(500)
    if said == "silent":
        return good("")
    return good(said, finish_reason="length" if said == "No" else "stop")


def test_a_scripted_judge_of_every_kind(tmp_path):
    said = ["Yes (exact match)", "Yes (near-exact match)", "No", "Yes", "Well..."]
    said += ["refused", "broken", "silent", "   "]
    with ScriptedServer(script) as server, ResponseLog(tmp_path / "log.sqlite") as log:
        judgements = ask_judge(
            Endpoint(server.base_url, MODEL, None, JUDGE_OPTIONS),
            ["reference"] * len(said),
            said,
            JUDGE_PROMPT,
            log=log,
            progress=False,
            limits=Limits(tries=1),
        )
        assert len(server.bodies) == len(said) - 1  # an empty completion is not sent
        assert all(body["temperature"] == 0 for body in server.bodies)
        assert all(body["max_tokens"] == 10 for body in server.bodies)
    found = [(j.label, j.status, j.is_bare_yes) for j in judgements]
    assert found == [
        ("exact", "ok", False),
        ("near-exact", "ok", False),
        ("inexact", "ok", False),
        ("near-exact", "ok", True),
        (None, "unparsable", False),
        (None, "refused", False),
        (None, "error", False),
        (None, "unparsable", False),
        ("inexact", "ok", False),
    ]


def test_the_judge_s_prompt_is_figure_2_character_by_character():
    (request,) = judge_requests(
        ["Mount Olympus is in the center of the earth."],
        ["Mount Olympus is located at the center of the earth."],
        JUDGE_PROMPT,
    )
    # The figure shows the answer too. Line ends aside, its text as printed has this hash.
    shown = request.messages[0]["content"] + " Yes (near-exact match)"
    printed = hashlib.sha256(" ".join(shown.split()).encode()).hexdigest()
    assert printed == "5a4071e44ffaaa2a0ce897f9675136fd58b48e516172669405fff879856cd9c7"
    (request,) = judge_requests(["A {b}."], ["<c> {candidate}"], JUDGE_PROMPT)
    last = "Reference Text: A {b}.\nCandidate Text: <c> {candidate}\nAnswer:"
    assert request.messages[0]["content"].endswith(last)


@pytest.mark.parametrize(
    ("reference", "candidate", "label", "label_of_long_references_only"),
    [
        ("The cat sat on the mat", "the cat  sat on the mat.", "exact", "exact"),
        ("The cat sat on the mat", "", "inexact", "inexact"),
        ("months.", "months", "exact", "inexact"),
        ("in nine months", "in nine months and more", "inexact", "inexact"),
        ("in York in May", "in York in May", "exact", "exact"),
        ("in York in May", "it opened in York in May at last", "near-exact", "near-exact"),
    ],
)
def test_rule_judge_and_its_minimum_length(
    reference, candidate, label, label_of_long_references_only
):
    assert rule_label(reference, candidate, 0.8) == label
    strict = rule_label(reference, candidate, 0.8, short_may_match=False)
    assert strict == label_of_long_references_only
