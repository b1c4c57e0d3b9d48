"""The ledger's files: for each part its tables, and a JSON file that says what made them."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.core import storage
from contamination.lab import training, world
from contamination.models.loading import default_device

FOLDER = Path(__file__).parent / "ledger"


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


def read_all(
    name: str, table: str, folder: Path | None = None
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """One table of all parts, and what made each part; errors as in the functions above.

    The table has a column base_seed where each part is of a base model.
    """
    tables, made_by = [], []
    for part_name in names(name, folder):
        part, about = read_tables(part_name, folder)
        seed = {"base_seed": about["base_seed"]} if "base_seed" in about else {}
        tables.append(part[table].assign(**seed))
        made_by.append(about)
    return pd.concat(tables, ignore_index=True), made_by


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


# What made a part


def environment() -> dict[str, str]:
    """``training.environment`` and the processor's name: its maker decides on kernels too."""
    info = Path("/proc/cpuinfo")
    found = re.findall(r"model name\s*: (.*)", info.read_text() if info.exists() else "")
    processor = found[0] if found else platform.processor()
    return training.environment(default_device()) | {"processor_name": processor}


def world_of(lab: world.World) -> dict[str, dict[str, str]]:
    """Hashes of the lab's texts and tokenizer, and the versions of what they are made with."""
    hashes = {k: v for k, v in lab.texts().hashes().items() if k in ("background", "tokenizer")}
    packages = lab.docstrings.groupby("package")["package_version"].first().to_dict()
    packages["tokenizers"] = training.environment("cpu")["tokenizers"]
    return {"hashes": hashes, "packages": packages}


def seconds_by_detector(seconds: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds of each detector, summed, in the order in which detectors come.

    >>> spent = [{"detector": "PPL", "seconds": 1.5}, {"detector": "PPL", "seconds": 2.0}]
    >>> seconds_by_detector(spent)
    {'PPL': 3.5}
    """
    sums = pd.DataFrame(seconds).groupby("detector", sort=False)["seconds"].sum()
    return sums.round(1).to_dict()
