"""Log-probabilities from anywhere: a file of them in place of a model.

A line of the file is one row: ``id``, ``suspected`` (true for a row of the dataset, false for a
comparison row), ``log_probs`` (natural logarithms of the tokens' probabilities, in order; null
for a first token without one) and perhaps ``text``. Without texts, an id is the number of the row
in its file, from 0. vLLM and SGLang give such numbers (docs/audit.md shows how).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contamination.audit.rows import Rows
from contamination.data import partitions

TEXT, SUSPECTED = "text", "suspected"
# What such a file is as a dataset.
DATA = {"text_columns": [TEXT], "member_column": SUSPECTED, "label_column": "", "task": "summary"}
UNCHECKED = "the log-probabilities come from a file and were not checked on known texts"
_LEAST = -1e6  # a token that was cut out of the sampling has minus infinity, which is no score

Value = Annotated[float, Field(le=0, ge=_LEAST)]


class Line(BaseModel):
    """One row of the file."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)
    id: int | str
    suspected: bool
    log_probs: list[Value | None]
    text: str = ""


@lru_cache(maxsize=1)
def read(path: str) -> pd.DataFrame:
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


def by_text(table: pd.DataFrame, rows: Rows, unseen: Rows | None) -> dict[str, np.ndarray | str]:
    """The log-probabilities of each text of two files, or why there are none.

    ``table`` is that of :func:`read`. A text with half as many values as words was cut.
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
