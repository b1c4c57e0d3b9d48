"""The log of a task that Inspect writes as JSON: ``inspect eval ... --log-format json``.

One object: eval (the task, its dataset and the model), results (the aggregated scores), and samples
with input, target, messages, output and scores, one for each epoch. A long text of a message may
be stored apart, under ``attachments``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from contamination.audit.log_values import (
    INSPECT,
    Log,
    as_count,
    as_list,
    as_name,
    as_object,
    as_score,
    as_text,
    mean,
    scores_table,
)
from contamination.core.visible import one_line

_ATTACHED = "attachment://"


def is_log(found: Mapping[str, Any]) -> bool:
    """Whether the object of a JSON file is such a log."""
    return bool(as_object(found.get("eval")).get("task")) and "status" in found


def read(found: Mapping[str, Any]) -> Log:
    """The log of one task; ValueError, in one line, if it has no samples."""
    about, samples = as_object(found["eval"]), as_list(found.get("samples"))
    if not samples:
        status = one_line(as_text(found.get("status"))) or "unknown"
        raise ValueError(f"a log of {INSPECT} without samples (its status is {status})")
    if not all("input" in as_object(sample) for sample in samples):
        raise ValueError(f'a log of {INSPECT} with a sample that has no "input"')
    epochs: dict[str, list[Mapping[str, Any]]] = {}  # of each question
    for number, sample in enumerate(samples):
        epochs.setdefault(str(sample.get("id", number)), []).append(sample)
    firsts = [of_question[0] for of_question in epochs.values()]
    rows = pd.DataFrame({"question": [_asked(sample) for sample in firsts]})
    rows["shown"] = [_shown(sample) for sample in firsts]
    rows["choices"] = [as_list(sample.get("choices")) for sample in firsts]
    rows["target"] = [as_text(sample.get("target")) for sample in firsts]
    rows["output"] = [_output(sample) for sample in firsts]
    rows["score"] = [
        mean([value for one in of_question for value in list(_scores(one).values())[:1]])
        for of_question in epochs.values()
    ]
    rows["metadata"] = [as_object(sample.get("metadata")) for sample in firsts]
    task, model = as_text(about["task"]).rsplit("/", 1)[-1], as_name(about.get("model"))
    split = as_text(as_object(about.get("dataset")).get("split"))
    stated = _stated(as_object(found.get("results")), samples, len(rows))
    return Log(INSPECT, model, task, split, rows, scores_table((INSPECT, model, task), stated))


def _asked(sample: Mapping[str, Any]) -> str:
    """The question of a sample: its text, or what the user says in its chat."""
    asked = sample["input"]
    if isinstance(asked, list):
        turns = [as_object(turn) for turn in asked]
        asked = [turn.get("content") for turn in turns if turn.get("role") == "user"]
    return _said(asked, sample)


def _shown(sample: Mapping[str, Any]) -> str:
    """What the messages before the model's first answer say: a solver may add to the question."""
    before = []
    for turn in map(as_object, as_list(sample.get("messages"))):
        if turn.get("role") == "assistant":
            break
        before.append(turn.get("content"))
    return _said(before, sample) or _asked(sample)


def _output(sample: Mapping[str, Any]) -> str:
    output = as_object(sample.get("output"))
    first = as_object(next(iter(as_list(output.get("choices"))), {}))
    said = output.get("completion") or as_object(first.get("message")).get("content")
    return _said(said, sample)


def _said(content: Any, sample: Mapping[str, Any]) -> str:
    """The text of a message or of its parts."""
    if isinstance(content, list):
        return "\n".join(filter(None, [_said(part, sample) for part in content]))
    if isinstance(content, dict):
        return _said(content.get("text"), sample)
    text = content if isinstance(content, str) else ""
    if text.startswith(_ATTACHED):
        text = as_text(as_object(sample.get("attachments")).get(text.removeprefix(_ATTACHED)))
    return text


def _scores(sample: Mapping[str, Any]) -> dict[str, float]:
    """The scores of a sample by scorer, or by the names that a scorer of several gives."""
    found: dict[str, float] = {}
    for scorer, score in as_object(sample.get("scores")).items():
        value = as_object(score).get("value")
        several = value if isinstance(value, dict) else {scorer: value}
        found |= {str(name): as_score(one) for name, one in several.items()}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _stated(
    results: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], n_questions: int
) -> list[tuple[str, float, int, float]]:
    """For ``scores_table``, metrics as "match,accuracy"; the samples' own without results."""
    own: dict[str, list[float]] = {}
    for sample in samples:
        for name, value in _scores(sample).items():
            own.setdefault(name, []).append(value)
    stated = []
    for score in map(as_object, as_list(results.get("scores"))):
        name, n = as_text(score.get("name")), score.get("scored_samples")
        for metric, one in as_object(score.get("metrics")).items():
            value = as_score(as_object(one).get("value"))
            of_samples = mean(own.get(name, []))
            stated.append((f"{name},{metric}", value, as_count(n, n_questions), of_samples))
    return stated or [
        (f"{name},mean", mean(values), len(values), mean(values)) for name, values in own.items()
    ]
