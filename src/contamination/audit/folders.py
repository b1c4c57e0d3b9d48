"""Where the results of an audit go, and whether the folder is free for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from contamination.audit.arguments import benchmark
from contamination.core.parameters import load_parameter_file

SETTINGS = "audit.yaml"  # what an audit was told, in the folder of its results


def folders_of(outputs: Path, names: Sequence[str]) -> list[Path]:
    """The folder of each dataset's results: of one the named folder, of several one each in it.

    >>> [str(folder) for folder in folders_of(Path("out"), ["gsm8k", "a/rows.jsonl", "b/rows.csv"])]
    ['out/GSM8K', 'out/rows', 'out/rows-2']
    """
    if len(names) == 1:
        return [outputs]
    folders: dict[str, Path] = {}
    for name in names:
        stem = benchmark(name) or Path(name.removesuffix(".gz")).stem
        stem = re.sub(r"[^\w.-]+", "-", stem).strip(".-") or "dataset"
        alike = [stem, *(f"{stem}-{k}" for k in range(2, len(names) + 1))]
        free = next(one for one in alike if one.lower() not in folders)
        folders[free.lower()] = outputs / free
    return [*folders.values()]


def check_folder(folder: Path, values: Mapping[str, Any]) -> None:
    """ValueError if the results of ``values``, parameters of notebook 10, cannot go there.

    The same audit may be run again, and its results are replaced. Results of another model or
    dataset would be lost, so the folder is refused.
    """
    in_the_way = next((one for one in (folder, *folder.parents) if one.is_file()), None)
    if in_the_way:
        raise ValueError(f'"{in_the_way}" is a file: name a folder for the results with --output')
    file = folder / SETTINGS
    if file.exists() and (held := _about(load_parameter_file(file))) != _about(values):
        raise ValueError(
            f'"{folder}" holds an audit of {_described(held)}: name another folder with --output'
        )


def _about(values: Mapping[str, Any]) -> tuple[list[str], str]:
    """The models and the dataset of an audit."""
    data = values.get("data", {})
    split = data.get("splits") or [data.get("split")]
    names = [*values.get("model", {}).get("names", [])]
    return names, " ".join(filter(None, [data.get("dataset"), *split]))


def _described(about: tuple[list[str], str]) -> str:
    return f"{', '.join(about[0])} on {about[1]}"
