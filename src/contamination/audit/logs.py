"""What other tools wrote, read as data: logs of evaluations, and files of log-probabilities.

Whoever evaluated a model has the benchmark's rows at hand already, in the log that
lm-evaluation-harness or Inspect wrote for each sample. A log also says which score the model got,
so a verdict can be read next to the score that it is about.

Logs are untrusted: a value of another shape than documented is left empty, and a damaged log gives
one line.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contamination.core.keys import one_line, reason
from contamination.data import partitions

HARNESS, INSPECT = "lm-evaluation-harness", "Inspect"
SCORES = ["tool", "model", "task", "metric", "value", "n"]
_WORDS = {"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
_MOST_SAID = 3  # scores that the line about a log names
_OF_SAMPLE = ("doc_id", "doc", "arguments", "resps")  # fields of every line of the harness
_STAMPED = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(\.gz)?")


@dataclass(frozen=True)
class Log:
    """One log of an evaluation; a name is "" where the log has none.

    Attributes:
        rows: one row for each question: ``target``, ``score`` (the first metric, NaN without one;
            of Inspect the mean over epochs), and of the harness the dataset's own columns and its
            ``doc_id``, of Inspect ``question`` (what the user says), ``choices``, ``metadata``.
        scores: ``SCORES``, one row for each metric: its mean over the rows, and their number.
    """

    tool: str
    model: str
    task: str
    split: str
    rows: pd.DataFrame
    scores: pd.DataFrame

    @property
    def names(self) -> list[str]:
        """Dataset and split, as prompts say them."""
        return [self.task, self.split or "test"]


def read_log(source: str) -> Log | None:
    """The log that a file is, by its contents; None for any other file, and where there is none.

    Raises:
        ValueError: in one line, if it is a log and cannot be read, or a file of an evaluation
            that has no samples.
    """
    path = partitions.find_file(source)
    if path is None:
        return None
    endings = "".join(path.suffixes).lower()
    if endings.endswith(".eval"):
        raise ValueError(
            f"{path.name}: Inspect's own format is not read: convert it by \"inspect log convert "
            f'{path.name} --to json --output-dir FOLDER"'
        )
    try:
        log = None
        if endings.endswith((".jsonl", ".jsonl.gz")):
            log = _read_harness(path)
        elif endings.endswith((".json", ".json.gz")):
            log = _one_object(path)
    except UnicodeDecodeError:
        return None  # as of every file of rows, ``load_rows`` says what is wrong
    except RecursionError:
        raise ValueError(f"{path.name}: nested too deep") from None
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path.name}: {reason(error)}") from error
    if log is not None:
        partitions.record_file(path)
    return log


def describe_log(source: str, log: Log) -> str:
    """One line: which tool wrote a log, of what, and the mean scores of its samples."""
    of_model = f" and model {one_line(log.model)}" if log.model else ""
    first = log.scores.head(_MOST_SAID).itertuples()
    said = [f"{one_line(row.metric)} {row.value:.3f} (n = {row.n:,})" for row in first]
    return (
        f"{source}: a log of {log.tool}, task {one_line(log.task)}{of_model}; "
        f"{', '.join(said) or 'it has no score'}"
    )


def _one_object(path: Path) -> Log | None:
    """The log of a JSON file that holds one object; None where it is not a log."""
    with partitions.opened(path) as stream:
        text = stream.read()
    try:
        found = partitions.parse_json(text, dict) if text.lstrip().startswith("{") else {}
    except ValueError:
        return None
    if isinstance(found.get("results"), dict) and isinstance(found.get("configs"), dict):
        raise ValueError(
            f"the results of {HARNESS} have no samples: run it with --log_samples, and name the "
            "file samples_... that it writes"
        )
    is_log = _object(found.get("eval")).get("task") and "status" in found
    return _read_inspect(found) if is_log else None


# Untrusted values


def _object(value: Any, *names: str) -> Mapping[str, Any]:
    """What an object holds under these names; an empty object in place of all else."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    """A text, or a number as text; of a list the lines of its texts; "" for all else."""
    if isinstance(value, list):
        return "\n".join(_text(one) for one in value if not isinstance(one, list))
    return str(value) if isinstance(value, str | int | float) else ""


def _name(value: Any) -> str:
    """The name of a model, and no path of the machine."""
    name = _text(value)
    return Path(name).name if Path(name).is_absolute() else name


def as_score(value: Any) -> float:
    """A score as a number, NaN for what is none.

    Correct is 1, incorrect and no answer are 0, and partially correct is 0.5.

    >>> as_score("C"), as_score("0.25"), as_score(True)
    (1.0, 0.25, 1.0)
    """
    if isinstance(value, str):
        value = _WORDS.get(value.strip().lower(), value)
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _scores_in(values: Mapping[Any, Any]) -> dict[str, float]:
    """The scores among some values, by name."""
    found = {str(name): as_score(value) for name, value in values.items()}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _scores_table(about: Sequence[str], scores: pd.DataFrame) -> pd.DataFrame:
    """``Log.scores`` from tool, model and task, and from the columns metric and value."""
    of_metrics = scores.groupby("metric", sort=False)["value"]
    rows = [(*about, name, values.mean(), len(values)) for name, values in of_metrics]
    return pd.DataFrame(rows, columns=SCORES)


# The per-sample log that lm-evaluation-harness writes with ``--log_samples``.
#
# ``samples_TASK_DATE.jsonl`` has one line for each sample and filter: doc_id, doc (the dataset's
# row), arguments (what the model was sent), resps (what it answered), target, filter, metrics, and
# one field for each metric. ``results_DATE.json`` next to it names the model and the split.


def _read_harness(path: Path) -> Log | None:
    """The log of one task, None where the first line is no sample; ValueError if a later one is."""
    if not (samples := _samples(path)):
        return None
    named = _STAMPED.fullmatch(path.name)
    task = named["task"] if named else path.name.split(".")[0]
    results = _results(path.with_name(f"results_{named['date']}.json")) if named else {}
    # A question comes once for each filter; text and answer are those of the first. Runs of two
    # parts of a task count their rows from 0 again, so the row itself tells them apart as well.
    unique: dict[str, Mapping[str, Any]] = {}
    for sample in samples:
        unique.setdefault(f"{sample['doc_id']} {json.dumps(sample['doc'])}", sample)
    firsts = list(unique.values())
    rows = pd.DataFrame([_object(sample["doc"]) for sample in firsts])
    rows["target"] = [_text(sample.get("target")) for sample in firsts]
    rows["score"] = [next(iter(_metrics(sample).values()), math.nan) for sample in firsts]
    rows["doc_id"] = [sample["doc_id"] for sample in firsts]
    config = _object(results, "configs", task)
    split = _text(config.get("test_split") or config.get("validation_split"))
    scores = [
        (f"{name},{_text(sample.get('filter')) or 'none'}", value)
        for sample in samples
        for name, value in _metrics(sample).items()
    ]
    about = (HARNESS, _name(results.get("model_name")), task)
    table = pd.DataFrame(scores, columns=["metric", "value"])
    return Log(*about, split, rows, _scores_table(about, table))


def _samples(path: Path) -> list[dict[str, Any]]:
    samples: list[dict[str, Any]] = []
    with partitions.opened(path) as stream:
        lines = [(number, line) for number, line in enumerate(stream, 1) if line.strip()]
    for number, line in lines:
        try:
            sample = partitions.parse_json(line, dict)
            if missing := [name for name in _OF_SAMPLE if name not in sample]:
                raise ValueError(f'no sample of {HARNESS}, it has no "{missing[0]}"')
        except ValueError as error:
            if not samples:
                return []
            raise ValueError(f"line {number}: {error}") from error
        samples.append(sample)
    return samples


def _results(path: Path) -> Mapping[str, Any]:
    """What is known of the same run; empty where the file is gone."""
    if not path.is_file():
        return {}
    try:
        return partitions.parse_json(path.read_text(encoding="utf-8"), dict)
    except ValueError as error:
        raise ValueError(f"its results, {path.name}: {reason(error)}") from error


def _metrics(sample: Mapping[str, Any]) -> dict[str, float]:
    """The scores of a sample by metric, in the order of the log."""
    names = _list(sample.get("metrics"))
    return _scores_in({str(name): sample.get(str(name)) for name in names})


# The log of a task that Inspect writes as JSON: ``inspect eval ... --log-format json``.
#
# One object: eval (the task, its dataset and the model), results (the aggregated scores), and
# samples with input, target, messages, output and scores, one for each epoch. Of an input, pictures
# alone are stored apart.


def _read_inspect(found: Mapping[str, Any]) -> Log:
    """The log of one task; ValueError, in one line, if it has no samples."""
    about, samples = _object(found["eval"]), _list(found.get("samples"))
    if not samples:
        status = one_line(_text(found.get("status"))) or "unknown"
        raise ValueError(
            f"the log of {INSPECT} has no samples (its status is {status}): run it to the end"
        )
    if not all("input" in _object(sample) for sample in samples):
        raise ValueError(f'a sample of the log of {INSPECT} has no "input": write the log again')
    keys = [str(sample.get("id", number)) for number, sample in enumerate(samples)]
    unique: dict[str, Mapping[str, Any]] = {}  # the first epoch of each question
    for key, sample in zip(keys, samples, strict=True):
        unique.setdefault(key, sample)
    firsts = list(unique.values())
    rows = pd.DataFrame({"question": [_asked(sample["input"]) for sample in firsts]})
    rows["choices"] = [_list(sample.get("choices")) for sample in firsts]
    rows["target"] = [_text(sample.get("target")) for sample in firsts]
    pairs = zip(keys, samples, strict=True)
    scored = [(key, *pair) for key, sample in pairs for pair in _scored(sample).items()]
    by = ["key", "metric"]
    means = pd.DataFrame(scored, columns=[*by, "value"]).groupby(by, sort=False, as_index=False)
    scores = means["value"].mean()
    first = scores.drop_duplicates("key").set_index("key")["value"]
    rows["score"] = first.reindex(list(unique)).to_numpy(float)
    rows["metadata"] = [_object(sample.get("metadata")) for sample in firsts]
    named = (INSPECT, _name(about.get("model")), _text(about["task"]).rsplit("/", 1)[-1])
    split = _text(_object(about, "dataset").get("split"))
    return Log(*named, split, rows, _scores_table(named, scores))


def _asked(asked: Any) -> str:
    """A question: its text, or what the user says in its chat, without pictures."""
    if not isinstance(asked, list):
        return _text(asked)
    said = [turn.get("content") for turn in map(_object, asked) if turn.get("role") == "user"]
    parts = [part for one in said for part in (_list(one) or [one])]
    return "\n".join(filter(None, (_text(_object(part).get("text", part)) for part in parts)))


def _scored(sample: Mapping[str, Any]) -> dict[str, float]:
    """The scores of a sample by scorer, or by the names that a scorer of several gives."""
    found: dict[str, Any] = {}
    for scorer, score in _object(sample, "scores").items():
        value = _object(score).get("value")
        found |= value if isinstance(value, dict) else {scorer: value}
    return _scores_in(found)


# Log-probabilities from anywhere: a file of them in place of a model.
#
# A line of the file is one row. vLLM and SGLang give such numbers (docs/audit.md shows how).
# Without texts, an id is the number of the row in its file, from 0.

TEXT, SUSPECTED = "text", "suspected"
# What such a file is as a dataset.
LOG_PROBS_DATA = {"text_columns": [TEXT], "member_column": SUSPECTED}
LOG_PROBS_DATA |= {"label_column": "", "task": "summary"}
_LEAST = -1e6  # a token that was cut out of the sampling has minus infinity, which is no score


class Line(BaseModel):
    """One row of the file: natural logarithms of the tokens' probabilities, in order."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)
    id: int | str
    suspected: bool  # False for a comparison row
    log_probs: list[Annotated[float, Field(le=0, ge=_LEAST)] | None]  # null for a first token
    text: str = ""


@lru_cache(maxsize=1)
def read_log_probs(path: str) -> pd.DataFrame:
    """Columns id, suspected, log_probs (arrays) and text ("" in every row, or in none).

    Raises:
        ValueError, FileNotFoundError: in one line that names the first wrong line of the file.
    """
    file = partitions.find_file(path)
    if file is None:
        raise FileNotFoundError(f'no file "{path}" of log-probabilities: check the path')
    lines = Path(file).read_text(encoding="utf-8").split("\n")
    found = [_parsed(path, n, line) for n, line in enumerate(lines, 1) if line.strip()]
    table = pd.DataFrame(found, columns=["id", SUSPECTED, "log_probs", TEXT])
    if table.duplicated(["id", SUSPECTED]).any():
        twice = table.loc[table.duplicated(["id", SUSPECTED]), "id"].iloc[0]
        raise ValueError(f'{path}: the id "{twice}" stands twice: give each row one line')
    if table[TEXT].eq("").any() and table[TEXT].ne("").any():
        raise ValueError(f"{path}: some lines have a text and some have none: give all or none")
    values = [values for values in table["log_probs"] if len(values)]
    if not values or len(np.unique(np.concatenate(values))) == 1:
        raise ValueError(f"{path}: all log-probabilities are the same, so no model gave them")
    return table


def _parsed(path: str, number: int, line: str) -> tuple[int | str, bool, np.ndarray, str]:
    try:
        row = Line.model_validate_json(line)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"])) or "JSON"
        raise ValueError(f"{path}: line {number}: {place}: {fault['msg']}") from None
    if None in row.log_probs[1:]:
        raise ValueError(f"{path}: line {number}: log_probs: null stands behind the first token")
    values = np.array([one for one in row.log_probs if one is not None], dtype=float)
    return row.id, row.suspected, values, row.text


def by_text(table: pd.DataFrame, rows: Any, unseen: Any) -> dict[str, np.ndarray | str]:
    """The log-probabilities of each text of two files (``rows.Rows``), or why there are none.

    ``table`` is that of :func:`read_log_probs`. A text with half as many values as words was cut.
    """
    has_texts = bool(table[TEXT].ne("").any())
    keys = zip(table[SUSPECTED], table["id"].astype(str), strict=True)
    named = table[TEXT].str.strip() if has_texts else keys
    known = dict(zip(named, table["log_probs"], strict=True))
    found: dict[str, np.ndarray | str] = {}
    for of_file in filter(None, (rows, unseen)):
        for number, text in zip(of_file.rows["index"], of_file.passages, strict=True):
            values = known.get(text if has_texts else (of_file is rows, str(number)), ())
            if not len(values):
                found[text] = "the file has no log-probabilities of it"
            elif 2 * len(values) < (n_words := len(text.split())):
                found[text] = f"{len(values)} log-probabilities of {n_words} words: it was cut"
            else:
                found[text] = values
    return found
