"""The ledger's files: one table of row scores, one of sets, and what made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from contamination import storage
from contamination.detectors.scoring import COLUMNS

PILOT = "pilot"


class Ledger(NamedTuple):
    """``scores`` and ``sets`` as in ``detectors.protocol``, and what made them.

    about has the settings, the recipe hash of every model, the environment, seconds for each
    detector, the SHA-256 of ``docs/protocol.md``, and that of each of the two tables' files.
    """

    scores: pd.DataFrame
    sets: pd.DataFrame
    about: dict[str, Any]


def read(name: str = PILOT, folder: Path | None = None) -> Ledger:
    """A ledger by its name, of the package or of a folder.

    FileNotFoundError for an unknown one; ValueError where a table is not as it was written.
    """
    folder = Path(__file__).parent if folder is None else folder
    scores = pd.read_parquet(folder / f"{name}_scores.parquet")
    for column in scores.select_dtypes("category"):
        scores[column] = scores[column].astype(object)
    about = json.loads((folder / f"{name}.json").read_text())
    for table, sha256 in about.get("sha256", {}).items():
        if storage.sha256_of_file(folder / table) != sha256:
            raise ValueError(f"{table} is not the file that was written: its SHA-256 differs")
    sets = pd.read_parquet(folder / f"{name}_sets.parquet")
    return Ledger(scores.astype({"score": float}), sets, about)


def write(folder: Path, name: str, ledger: Ledger) -> None:
    """Write a ledger's three files; scores are kept in single precision, words as categories."""
    words = ["detector", "benchmark", "model", "condition"]
    small = {"score": "float32", "row": "int16", "copies": "int16", "unit": "int16"}
    compact = ledger.scores[COLUMNS].astype(small | dict.fromkeys(words, "category"))
    tables = {f"{name}_scores.parquet": compact, f"{name}_sets.parquet": ledger.sets}
    paths = [storage.write_parquet(folder / file, table) for file, table in tables.items()]
    sha256 = {path.name: storage.sha256_of_file(path) for path in paths}
    storage.write_json(folder / f"{name}.json", ledger.about | {"sha256": sha256})
