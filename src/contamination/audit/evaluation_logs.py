"""Logs of an evaluation, read as a dataset: lm-evaluation-harness and Inspect.

Whoever evaluated a model has the benchmark's rows at hand already, in the log that the evaluation
wrote for each sample. A log also says what the model answered and which score it got, so a verdict
can be read next to the score that it is about.

Logs are untrusted: a value of another shape than documented is left empty, and a damaged log gives
one line.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from contamination.audit import harness_logs, inspect_logs
from contamination.audit.log_values import HARNESS, Log
from contamination.core.visible import one_line, reason
from contamination.data import partitions

_MOST_SAID = 3  # scores that the line about a log names


def read(source: str) -> Log | None:
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
            log = _lines(path)
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
    """One line: which tool wrote a log, of what, and the scores that it states."""
    of_model = f" and model {one_line(log.model)}" if log.model else ""
    stated = log.scores.head(_MOST_SAID).itertuples()
    said = [f"{one_line(row.metric)} {row.value:.3f} (n = {row.n:,})" for row in stated]
    return (
        f"{source}: a log of {log.tool}, task {one_line(log.task)}{of_model}; "
        f"{', '.join(said) or 'it states no score'}"
    )


def _lines(path: Path) -> Log | None:
    with partitions.opened(path) as stream:
        first = next(filter(str.strip, stream), "")
    try:
        is_log = harness_logs.is_sample(partitions.parse_json(first, dict))
    except ValueError:
        return None
    return harness_logs.read(path) if is_log else None


def _one_object(path: Path) -> Log | None:
    """The log of a JSON file that holds one object; None where it is no log."""
    with partitions.opened(path) as stream:
        if not next(filter(str.strip, stream), "").lstrip().startswith("{"):
            return None
        stream.seek(0)
        text = stream.read()
    try:
        found = partitions.parse_json(text, dict)
    except ValueError:
        return None
    if isinstance(found.get("results"), dict) and isinstance(found.get("configs"), dict):
        raise ValueError(
            f"the results of {HARNESS} have no samples: run it with --log_samples, and name the "
            "file samples_... that it writes"
        )
    return inspect_logs.read(found) if inspect_logs.is_log(found) else None
