"""The ledger's files: for each part a table of row scores, one of sets, and what made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from contamination.core import storage
from contamination.study.scoring import COLUMNS

STUDY = "study"
FOLDER = Path(__file__).parent / "ledger"
WORDS = ["detector", "benchmark", "model", "condition"]


class Ledger(NamedTuple):
    """``scores`` and ``sets`` as in ``study.protocol``, and what made them.

    ``sets`` holds those of detectors of rows too, whose p values take long to deal again.

    about has the settings, the recipe hash of every model, the environment, seconds for each
    detector, the SHA-256 of ``docs/protocol.md``, and that of each of the two tables' files.
    """

    scores: pd.DataFrame
    sets: pd.DataFrame
    about: dict[str, Any]


def has(name: str) -> bool:
    """Whether the package holds a part of a ledger."""
    return any(FOLDER.glob(f"{name}*.json"))


def parts(name: str = STUDY, folder: Path | None = None) -> list[Ledger]:
    """The parts of a ledger of the package or of a folder.

    FileNotFoundError for an unknown one; ValueError where a table is not as it was written.
    """
    folder = FOLDER if folder is None else folder
    if not (paths := sorted(folder.glob(f"{name}*.json"))):
        raise FileNotFoundError(f'no ledger is called "{name}"')
    ledgers = []
    for path in paths:
        about = json.loads(path.read_text())
        for table, sha256 in about.get("sha256", {}).items():
            if storage.sha256_of_file(folder / table) != sha256:
                raise ValueError(f"{table} is not the file that was written: its SHA-256 differs")
        scores, sets = (
            pd.read_parquet(path.with_name(f"{path.stem}_{table}.parquet"))
            for table in ("scores", "sets")
        )
        scores = scores.astype({"score": float} | dict.fromkeys(WORDS, object))
        ledgers.append(Ledger(scores, sets, about))
    return ledgers


def read(name: str = STUDY, folder: Path | None = None) -> Ledger:
    """All parts of a ledger as one; ``about`` has the units, doses, models and seconds of all."""
    ledgers = parts(name, folder)
    about = dict(ledgers[0].about)
    for other in ledgers[1:]:
        about["models"] = about["models"] | other.about["models"]
        about["seconds"] = about["seconds"] + other.about["seconds"]
        about["sha256"] = about["sha256"] | other.about["sha256"]
    scores, sets = (pd.concat([part[n] for part in ledgers], ignore_index=True) for n in (0, 1))
    about["units"] = sorted({*scores["unit"], *sets["unit"]})
    about["copies"] = sorted({*scores["copies"], *sets["copies"]} - {0})
    return Ledger(scores, sets, about)


def write(folder: Path, name: str, ledger: Ledger) -> None:
    """Write a part's three files; scores are kept in single precision, words as categories."""
    small = {"score": "float32", "row": "int16", "copies": "int16", "unit": "int16"}
    compact = ledger.scores[COLUMNS].astype(small | dict.fromkeys(WORDS, "category"))
    sets = ledger.sets.astype(dict.fromkeys(["value", "p", "own_p"], float))
    tables = {f"{name}_scores.parquet": compact, f"{name}_sets.parquet": sets}
    paths = [storage.write_parquet(folder / file, table) for file, table in tables.items()]
    sha256 = {path.name: storage.sha256_of_file(path) for path in paths}
    # The last file: a part without it is not there.
    storage.write_json(folder / f"{name}.json", ledger.about | {"sha256": sha256})
