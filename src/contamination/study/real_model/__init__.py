"""What a real model answered: the stored tables that notebook 12 shows where it asks no model.

``scripts/store_real_model.py`` copies them from a run of the profile ``pretrained``. They hold
numbers and names, and neither a text of a dataset nor an answer of the model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.core import storage

FOLDER = Path(__file__).parent
RECORD = "made_with.json"
NOTEBOOK = "12_real_model"
# What the model can be asked, and the tables of each part.
PARTS = {
    "quiz": (
        "pretrained_beside",
        "pretrained_readings",
        "pretrained_dcq",
        "pretrained_positions",
    ),
    "completions": ("pretrained_replication",),
    "judge": ("pretrained_judge",),
    "dates": ("pretrained_min_k",),
    "copies": ("pretrained_control",),
}
IN_WORDS = {
    "quiz": "the released quizzes",
    "completions": "completions of released instances",
    "judge": "the judge's prompt",
    "dates": "older and newer pages of WikiMIA",
    "copies": "copies that we add ourselves",
}
ALWAYS_NO = "always no match"  # a judge of pretrained_judge that reads nothing
BY_LETTER = "letters, chat template"  # respondent of pretrained_dcq that answers as GPT-4 did


def short_name(model: str) -> str:
    """A model's name within a sentence.

    >>> short_name("SmolLM2-135M-Instruct-Q4_1"), short_name("another-model")
    ('SmolLM2', 'another-model')
    """
    return "SmolLM2" if model.startswith("SmolLM2-") else model


def stored(folder: Path = FOLDER) -> dict[str, pd.DataFrame]:
    """The stored tables by name, without those of parts that nobody has stored yet.

    ValueError where a table is not the file that was stored.
    """
    tables = {}
    for part in read_record(folder).values():
        for name, sha256 in part["tables"].items():
            path = folder / f"{name}.csv"
            if storage.sha256_of_file(path) != sha256:
                raise ValueError(f"{path.name} is not the file that was stored: SHA-256 differs")
            tables[name] = storage.read_results(path)
    return tables


def model_name(folder: Path = FOLDER) -> str:
    """Name of the model whose answers are stored, as the tables have it; ValueError for two."""
    names = {part["model"]["model"] for part in read_record(folder).values()}
    if len(names) > 1:
        raise ValueError(f"the stored tables are of several models: {', '.join(sorted(names))}")
    return next(iter(names), "a real model")


def why_missing(part: str, is_asked: bool) -> str:
    """A sentence for the reader where the tables of a part are not there."""
    if is_asked:
        return f"Not asked in this run: the parameter only leaves out {IN_WORDS[part]}."
    return (
        f"Not stored yet: {IN_WORDS[part]}. You can ask the model yourself, with make pretrained, "
        f"make data and make {NOTEBOOK} PROFILE=pretrained."
    )


def store(outputs: Path, parameters: dict[str, Any], folder: Path = FOLDER) -> list[str]:
    """Copy the tables of one run into ``folder`` with their SHA-256; the parts that it asked.

    Args:
        outputs: folder of outputs of the run, which may have asked some of the parts alone.
        parameters: what the run must have been given, ``only`` aside.

    Raises:
        ValueError: if the run had other parameters, or a table is no longer what it wrote.
    """
    manifest = json.loads((outputs / "manifests" / f"{NOTEBOOK}.json").read_text())
    given = manifest["parameters"]
    differing = [name for name in parameters if name != "only" and given[name] != parameters[name]]
    if differing:
        raise ValueError(f"{outputs} was made with another {differing[0]}: {given[differing[0]]}")
    parts = given["only"] or [*PARTS]
    record = read_record(folder)
    for part in parts:
        sha256 = {name: manifest["outputs"][f"tables/{name}.csv"] for name in PARTS[part]}
        for name, expected in sha256.items():
            path = outputs / "tables" / f"{name}.csv"
            if storage.sha256_of_file(path) != expected:
                raise ValueError(f"{path} was changed after the run that wrote it")
            storage.write_bytes(folder / path.name, path.read_bytes())
        kept = {name: value for name, value in given.items() if name != "only"}
        # The notebook loads the model that it asks before any other.
        model = manifest["models"][0]
        record[part] = {"tables": sha256, "parameters": kept, "model": model}
    storage.write_json(folder / RECORD, record)
    return parts


def read_record(folder: Path = FOLDER) -> dict[str, Any]:
    """How each stored part was made: its tables' SHA-256, parameters and identity of the model."""
    path = folder / RECORD
    return json.loads(path.read_text()) if path.exists() else {}
