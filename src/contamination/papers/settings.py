"""Settings of one experiment of the papers: a template, and what it says of a dataset and a model.

    contamination settings params/full/dcq.yaml imdb_test > mine.yaml
    contamination settings params/full/min_k.yaml wikimia llama-30b > mine.yaml

Next to the template lie ``datasets.csv`` and ``models.csv``. Each line named on the command line
fills the placeholders of the template that are called like its columns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template

import pandas as pd

TABLES = ("datasets.csv", "models.csv")


def filled_in(template: Path, names: Sequence[str]) -> str:
    """The template with the named lines of the tables beside it.

    FileNotFoundError without these files; ValueError if a line is not there or not for this
    template, or if a placeholder stays empty.
    """
    values: dict[str, str] = {}
    tables = {name: _read(template.parent / name) for name in TABLES}
    lines = pd.concat(tables.values(), keys=tables)
    fitting = lines[[template.stem in said.split() for said in lines["templates"]]]
    for name in names:
        found = fitting[fitting["line"].eq(name)]
        if found.empty:
            raise ValueError(
                f'no line "{name}" for {template.name}: choose from {", ".join(fitting["line"])}'
            )
        values |= found.iloc[0].dropna().to_dict()
    try:
        return Template(template.read_text(encoding="utf-8")).substitute(values)
    except KeyError as missing:
        (table,) = (name for name in TABLES if missing.args[0] in tables[name])
        raise ValueError(f"{template.name} needs a line of {table} too, by its name") from missing


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 after the settings were printed, 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="contamination settings",
        description="Print the settings of one experiment of the papers, for contamination audit "
        "--settings. Fill in what it leaves empty.",
    )
    parser.add_argument("template", type=Path, help="such as params/full/dcq.yaml")
    parser.add_argument("line", nargs="+", help="its line of datasets.csv or models.csv, or both")
    given = parser.parse_args(arguments)
    try:
        print(filled_in(given.template, given.line), end="")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
