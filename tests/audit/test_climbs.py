"""The way of an audited answer: how often it is handed to a higher floor of the package.

Floors are those of the rule for imports, highest first: a room imports only from lower floors.
Whatever a model says is made in ``models``; each caller on the way up that stands on a higher
floor than the function which it called is a climb.
"""

import sys
from functools import cache, wraps
from itertools import pairwise
from pathlib import Path

import pytest
from notebook_files import ROOT
from scripted_server import MODEL, Reply, ScriptedServer
from test_audit import endpoint, knowing_script, prepared, tiny_folder, unchecked  # noqa: F401
from transformers import LlamaModel

from contamination.audit import auditing
from contamination.models import chat

FLOORS = ["audit", "cases", "study", "dcq replication min_k dice wikimia", "lab", "models"]
FLOORS += ["data", "core"]
HEIGHT = {room: -n for n, rooms in enumerate(FLOORS) for room in rooms.split()}
PACKAGE = ROOT / "src/contamination"


@cache
def place(code):
    """Room and name of a function of the package, None for others."""
    file = Path(code.co_filename)
    if not file.is_relative_to(PACKAGE) or file.parent == PACKAGE:
        return None
    room, *_ = file.relative_to(PACKAGE).parts
    return room, f"{room}.{file.stem}.{code.co_qualname}"


@pytest.fixture
def ways(monkeypatch):
    """Every way from where a model answers, behind an address or here, up to the audit."""
    found = set()

    def noting(function):
        @wraps(function)
        def noted(*arguments, **settings):
            frame, way = sys._getframe(), []
            while frame:
                way += [at] if (at := place(frame.f_code)) else []
                frame = frame.f_back
            found.add(tuple(way))
            return function(*arguments, **settings)

        return noted

    for owner, name in ((chat._Batch, "ask"), (LlamaModel, "forward")):
        monkeypatch.setattr(owner, name, noting(getattr(owner, name)))
    return found


def climbs(way):
    return sum(HEIGHT[above] > HEIGHT[below] for (below, _), (above, _) in pairwise(way))


def method_of(way):
    """The audit's function for a method through which a way leads, "" for none."""
    methods = {"quizzing.dcq", "quizzing.ranking", "completing.replication"}
    methods |= {"internals.min_k", "internals.dice"}
    return next((name for _, name in way if name.removeprefix("audit.") in methods), "")


@pytest.mark.usefixtures("unchecked")
def test_an_answer_of_a_served_model_climbs_at_most_twice(ways):
    def script(body, n):
        if "echo" not in body:
            return knowing_script(known)(body, n)
        tokens = body["prompt"].split()
        logs = [None, *[-0.5 - 0.01 * place for place in range(len(tokens))]]
        choice = {"text": " x", "finish_reason": "length"}
        choice["logprobs"] = {"tokens": [*tokens, " x"], "token_logprobs": logs}
        usage = {"prompt_tokens": len(tokens), "completion_tokens": 1}
        return Reply({"model": MODEL, "choices": [choice], "usage": usage})

    with ScriptedServer(script) as server:
        audit = prepared(model=endpoint(server.base_url), n=4, n_passages=4)
        known = audit.rows.instances
        target = auditing.target_of(audit, MODEL)
        auditing.findings_of(audit, target)
    methods = {"quizzing.dcq", "completing.replication", "quizzing.ranking", "internals.min_k"}
    assert {method_of(way) for way in ways} >= {f"audit.{name}" for name in methods}
    quizzed = [way for way in ways if method_of(way) == "audit.quizzing.dcq"]
    assert {climbs(way) for way in quizzed} == {2}  # models, dcq, audit
    assert max(map(climbs, ways)) == 2


@pytest.mark.usefixtures("unchecked")
def test_an_answer_of_a_local_model_climbs_at_most_twice(
    tiny_folder,  # noqa: F811
    ways,
):
    model = {"names": [str(tiny_folder)]}
    blocks = {"dice": {"reference_models": [str(tiny_folder)] * 2}}
    blocks |= {"replication": {"completion_tokens": 2}}
    audit = prepared(model=model, n=4, n_passages=4, blocks=blocks)
    target = auditing.target_of(audit, str(tiny_folder))
    auditing.findings_of(audit, target)
    assert len({method_of(way) for way in ways} - {""}) == 5
    assert max(map(climbs, ways)) == 2


@pytest.mark.parametrize(
    ("rooms", "n"),
    [
        (["models", "dcq", "dcq", "audit", "audit"], 2),
        (["models", "audit"], 1),
        (["models", "dcq", "study", "audit"], 3),
        (["models", "audit", "dcq", "audit"], 2),  # a function that a lower floor calls
    ],
)
def test_a_climb_is_a_caller_on_a_higher_floor(rooms, n):
    assert climbs([(room, "") for room in rooms]) == n
