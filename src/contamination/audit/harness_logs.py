"""The per-sample log that lm-evaluation-harness writes with ``--log_samples``.

``samples_TASK_DATE.jsonl`` has one line for each sample and filter: doc_id, doc (the dataset's
row), arguments (what the model was sent), resps (what it answered), target, filter, metrics, and
one field for each metric. ``results_DATE.json`` next to it has the aggregated scores. Older
versions write requests as lists instead of objects, and no list of metrics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit.log_values import (
    HARNESS,
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
from contamination.core.visible import reason
from contamination.data import partitions

_OF_SAMPLE = ("doc_id", "doc", "arguments", "resps")  # fields of every line
_STAMPED = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(\.gz)?")
_FEWEST_LETTERS = 16  # a shorter field is in a prompt by chance


def is_sample(line: Mapping[str, Any]) -> bool:
    """Whether an object is a line of such a log."""
    return all(name in line for name in _OF_SAMPLE)


def read(path: Path) -> Log:
    """The log of one task; ValueError, in one line, if a line is malformed."""
    samples = _samples(path)
    named = _STAMPED.fullmatch(path.name)
    task = named["task"] if named else path.name.split(".")[0]
    results = _results(path.with_name(f"results_{named['date']}.json")) if named else {}
    # A question comes once for each filter; text and answer are those of the first.
    unique: dict[str, Mapping[str, Any]] = {}
    for sample in samples:
        unique.setdefault(str(sample["doc_id"]), sample)
    firsts = list(unique.values())
    rows = pd.DataFrame({"shown": [_prompt(sample["arguments"]) for sample in firsts]})
    asked = _questions([as_object(sample["doc"]) for sample in firsts], list(rows["shown"]))
    if not asked and as_object(results.get("n-shot")).get(task) == 0:
        asked = list(rows["shown"])
    if asked:
        rows.insert(0, "question", asked)
    rows["target"], rows["output"] = zip(*map(_answers, firsts), strict=True)
    rows["score"] = [next(iter(_metrics(sample).values()), math.nan) for sample in firsts]
    rows["doc"] = [sample["doc"] for sample in firsts]
    config = as_object(as_object(results.get("configs")).get(task))
    split = as_text(config.get("test_split") or config.get("validation_split"))
    model = as_name(results.get("model_name"))
    stated = _stated(results, task, samples)
    return Log(HARNESS, model, task, split, rows, scores_table((HARNESS, model, task), stated))


def _samples(path: Path) -> list[dict[str, Any]]:
    samples = []
    with partitions.opened(path) as stream:
        lines = stream.read().split("\n")  # not splitlines: it cuts inside JSON texts
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            sample = partitions.parse_json(line, dict)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        if missing := [name for name in _OF_SAMPLE if name not in sample]:
            raise ValueError(f'line {number}: no sample of {HARNESS}, it has no "{missing[0]}"')
        samples.append(sample)
    return samples


def _results(path: Path) -> Mapping[str, Any]:
    """The aggregated results of the same run; empty where the file is gone."""
    if not path.is_file():
        return {}
    try:
        return partitions.parse_json(path.read_text(encoding="utf-8"), dict)
    except ValueError as error:
        raise ValueError(f"{path.name} next to it: {reason(error)}") from error


# What the model was asked


def _requests(arguments: Any) -> list[list[Any]]:
    """The requests of a sample: for each the context, and what is scored or how it is sampled."""
    requests = arguments.values() if isinstance(arguments, dict) else as_list(arguments)
    return [list(one.values()) if isinstance(one, dict) else as_list(one) for one in requests]


def _prompt(arguments: Any) -> str:
    """The context of the first request; of a chat what all its messages say."""
    context = next((request[0] for request in _requests(arguments) if request), "")
    text = as_text(context)  # a list of one text where the model is behind an address
    if text.startswith("[{"):
        try:
            turns = partitions.parse_json(text, list)
        except ValueError:
            return text
        return "\n".join(as_text(as_object(turn).get("content")) for turn in turns)
    return text


def _questions(docs: Sequence[Mapping[str, Any]], prompts: Sequence[str]) -> list[str]:
    """The texts of the dataset that the prompts show verbatim; none where nothing is shown.

    A prompt surrounds them with words of the task, and with examples that are other rows. The
    fields that every prompt shows are joined in their order there. A field that is part of
    another one, or too short to be recognised, is left out.
    """
    texts: dict[str, list[str]] = {}
    for name in docs[0]:
        values = [as_text(doc.get(name)).strip() for doc in docs]
        is_long = sum(map(len, values)) >= _FEWEST_LETTERS * len(values)
        if is_long and all(text in prompt for text, prompt in zip(values, prompts, strict=True)):
            texts[name] = values
    kept: list[str] = []
    for name in sorted(texts, key=lambda name: -sum(map(len, texts[name]))):
        longer = [zip(texts[name], texts[other], strict=True) for other in kept]
        if not any(all(text in other for text, other in pairs) for pairs in longer):
            kept.append(name)
    kept.sort(key=lambda name: prompts[0].rfind(texts[name][0]))
    in_rows = zip(*(texts[name] for name in kept), strict=True)
    return ["\n".join(filter(None, row)) for row in in_rows]


# What it answered, and its score


def _answers(sample: Mapping[str, Any]) -> tuple[str, str]:
    """The target and the model's answer; of options ranked by likelihood, the texts of both."""
    target = as_text(sample.get("target"))
    firsts = [one[0] if isinstance(one, list) and one else one for one in as_list(sample["resps"])]
    if firsts and isinstance(firsts[0], str):
        return target, firsts[0]
    requests = _requests(sample["arguments"])
    options = [as_text(request[-1]).strip() if request else "" for request in requests]
    log_probs = [as_score(one[0]) if as_list(one) else math.nan for one in firsts]
    if not options or len(options) != len(log_probs) or any(map(math.isnan, log_probs)):
        return target, ""
    if re.fullmatch("[0-9]{1,4}", target) and int(target) < len(options):
        target = options[int(target)]
    return target, options[log_probs.index(max(log_probs))]


def _metrics(sample: Mapping[str, Any]) -> dict[str, float]:
    """The scores of a sample by metric, in the order of the log."""
    names = as_list(sample.get("metrics")) or [
        name
        for name, value in sample.items()
        if name not in _OF_SAMPLE and name != "target" and isinstance(value, bool | int | float)
    ]
    found = {str(name): as_score(sample.get(str(name))) for name in names}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _stated(
    results: Mapping[str, Any], task: str, samples: Sequence[Mapping[str, Any]]
) -> list[tuple[str, float, int, float]]:
    """For ``scores_table``, metrics as "exact_match,strict"; the samples' own without results."""
    own: dict[str, list[float]] = {}
    for sample in samples:
        for name, value in _metrics(sample).items():
            own.setdefault(f"{name},{as_text(sample.get('filter')) or 'none'}", []).append(value)
    found = as_object(as_object(results.get("results")).get(task))
    told = {name: as_score(value) for name, value in found.items() if "," in name}
    if not told:
        return [(name, mean(values), len(values), mean(values)) for name, values in own.items()]
    n = as_object(as_object(results.get("n-samples")).get(task)).get("effective")
    n = as_count(n, len({str(sample["doc_id"]) for sample in samples}))
    return [(name, value, n, mean(own.get(name, []))) for name, value in told.items()]
