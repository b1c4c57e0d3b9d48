"""The ledger's files: for each part a table of row scores, one of sets, and what made them."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    detector, the SHA-256 of the protocol's page, and that of each of the two tables' files.
    """

    scores: pd.DataFrame
    sets: pd.DataFrame
    about: dict[str, Any]


def has(name: str) -> bool:
    """Whether the package holds a part of a ledger."""
    return any(FOLDER.glob(f"{name}*.json"))


def names(name: str, folder: Path | None = None) -> list[str]:
    """Names of the parts of a ledger of the package or of a folder; FileNotFoundError for none."""
    if not (paths := sorted((folder or FOLDER).glob(f"{name}*.json"))):
        raise FileNotFoundError(f'there is no ledger "{name}": make it by make ledger')
    return [path.stem for path in paths]


def read_tables(name: str, folder: Path | None = None) -> tuple[dict[str, pd.DataFrame], dict]:
    """The tables of one part, by the last word of their files' names, and what made them.

    ValueError where a table is not as it was written.
    """
    folder = folder or FOLDER
    about = json.loads((folder / f"{name}.json").read_text())
    tables = {}
    for file, sha256 in about["sha256"].items():
        if storage.sha256_of_file(folder / file) != sha256:
            raise ValueError(
                f"{file} was changed (its SHA-256 differs): restore it, or run make ledger"
            )
        table = pd.read_parquet(folder / file)
        words = table.select_dtypes("category").columns
        singles = table.select_dtypes("float32").columns
        kinds = dict.fromkeys(words, object) | dict.fromkeys(singles, float)
        tables[file.removeprefix(f"{name}_").removesuffix(".parquet")] = table.astype(kinds)
    return tables, about


def write_tables(
    folder: Path, name: str, tables: Mapping[str, pd.DataFrame], about: Mapping[str, Any]
) -> None:
    """Write a part: a Parquet file for each table, then a JSON file with ``about``.

    The JSON file is last: a part without it is not there.
    """
    sha256 = {}
    for table, content in tables.items():
        path = storage.write_parquet(folder / f"{name}_{table}.parquet", content)
        sha256[path.name] = storage.sha256_of_file(path)
    storage.write_json(folder / f"{name}.json", {**about, "sha256": sha256})


def parts(name: str = STUDY, folder: Path | None = None) -> list[Ledger]:
    """The parts of a ledger with row scores and sets, of the package or of a folder.

    FileNotFoundError for an unknown one; ValueError where a table is not as it was written.
    """
    read = [read_tables(part, folder) for part in names(name, folder)]
    return [Ledger(tables["scores"], tables["sets"], about) for tables, about in read]


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


def read_all(
    name: str, table: str, folder: Path | None = None
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """One table of all parts that are of a base model each, and what made each part.

    Returns:
        the table with a column base_seed, parts in the order of ``names``; and ``about`` of each.
        FileNotFoundError and ValueError as in ``names`` and ``read_tables``.
    """
    tables, made_by = [], []
    for part_name in names(name, folder):
        part, about = read_tables(part_name, folder)
        tables.append(part[table].assign(base_seed=about["base_seed"]))
        made_by.append(about)
    return pd.concat(tables, ignore_index=True), made_by


def write(folder: Path, name: str, ledger: Ledger) -> None:
    """Write a part's three files; scores are kept in single precision, words as categories."""
    small = {"score": "float32", "row": "int16", "copies": "int16", "unit": "int16"}
    compact = ledger.scores[COLUMNS].astype(small | dict.fromkeys(WORDS, "category"))
    sets = ledger.sets.astype(dict.fromkeys(["value", "p", "own_p"], float))
    write_tables(folder, name, {"scores": compact, "sets": sets}, ledger.about)
