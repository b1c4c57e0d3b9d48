"""The committed reference of the demo: executed notebooks, figures and tables; and a comparison.

    python scripts/reference.py copy outputs/demo       # make reference, after a complete run
    python scripts/reference.py verify outputs/demo     # make verify: are these our results?

``outputs/reference/demo/`` lets a reader see every result without running anything, and lets a run
elsewhere be compared with ours. Where only Markdown changed, ``copy`` puts the new text into the
stored notebook without a run. It runs the solutions of the exercises itself: they write nothing,
so no run has them.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))

import clean_notebook

from contamination.core.run import with_links

ROOT = Path(__file__).resolve().parents[1]
LARGEST_TABLE = 500_000  # bytes; of a larger one the hash alone is stored
TABLES, PARTS = "tables.csv", "ledger.csv"
SOLUTIONS = "notebooks/solutions"
PROFILE = "demo"  # in others, notebooks show texts that may not be shared
INJECTED = "injected-parameters"  # papermill's tag of the cell with a run's own values
CLOSE = 1e-9  # relative; a number that differs by less is the same number written by another CPU


def stored() -> Path:
    return ROOT / "outputs/reference" / PROFILE


def ledger_folder() -> Path:
    return ROOT / "src/contamination/study/ledger"


def notebooks() -> list[str]:
    """Names of the notebooks, in their order."""
    return [row["notebook"] for row in _rows(ROOT / "notebooks/contents.csv")]


def _rows(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def is_current(executed: dict[str, Any], written: dict[str, Any], profile_file: Path) -> bool:
    """Whether an executed notebook has the code cells and the parameters of today.

    Args:
        written: the notebook of ``notebooks/``.
        profile_file: its parameter file, whose values override the notebook's defaults.
    """
    code, today = _code_of(executed), _code_of(written)
    values = yaml.safe_load(profile_file.read_text(encoding="utf-8")) or {}
    return code == today and parameters_in(executed) == parameters_in(written) | values


def parameters_in(notebook: dict[str, Any]) -> dict[str, Any]:
    """What a notebook's parameters cell says, overridden by what its run was given."""
    values = {}
    for cell in notebook["cells"]:
        if {"parameters", INJECTED} & {*cell["metadata"].get("tags", [])}:
            for line in ast.parse(_source(cell)).body:
                target, _, value = ast.unparse(line).partition(" = ")
                values[target.split(":")[0]] = ast.literal_eval(value)
    return values


def _code_of(notebook: dict[str, Any]) -> list[str]:
    return [_source(cell) for cell in notebook["cells"] if _is_own_code(cell)]


def _is_own_code(cell: dict[str, Any]) -> bool:
    return cell["cell_type"] == "code" and INJECTED not in cell["metadata"].get("tags", [])


def stored_form(
    executed: dict[str, Any], written: dict[str, Any], folder: Path, home: str = "notebooks"
) -> dict[str, Any]:
    """An executed notebook as the reference keeps it: outputs of the run, everything else ours.

    Args:
        executed: notebook with outputs, whose code cells are those of ``written``.
        written: the notebook of ``home``, whose Markdown is taken.
        folder: where it will lie, which its links must fit.
    """
    results = enumerate([cell for cell in executed["cells"] if _is_own_code(cell)], 1)
    cells = []
    for cell in written["cells"]:
        cell = json.loads(json.dumps(cell))
        if cell["cell_type"] == "code":
            count, run = next(results)
            cell |= {"execution_count": count, "outputs": run["outputs"]}
            for output in cell["outputs"]:
                if "execution_count" in output:
                    output["execution_count"] = count
        else:
            cell["source"] = with_links(_source(cell), folder, ROOT / home, ROOT)
        cells.append(cell)
    return {
        "cells": cells,
        "metadata": clean_notebook.METADATA,
        "nbformat": written["nbformat"],
        "nbformat_minor": written["nbformat_minor"],
    }


def _as_text(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


# Copying


def copy(run: Path) -> list[str]:
    """Takes a run's results into the reference; what has to be run again, as lines.

    A notebook whose code cells or parameters the run does not have is left as it is, with the
    Markdown of today if the reference has them.
    """
    reference, lines, copied = stored(), [], []
    folder = reference / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    for name in notebooks():
        written = _read(ROOT / f"notebooks/{name}.ipynb")
        parameters = ROOT / f"params/{PROFILE}/{name}.yaml"
        candidates = [run / "notebooks" / f"{name}.ipynb", folder / f"{name}.ipynb"]
        current = [
            path
            for path in candidates
            if path.exists() and is_current(_read(path), written, parameters)
        ]
        if not current:
            lines.append(f"{name} was changed and not run: make {name}")
            continue
        text = _as_text(stored_form(_read(current[0]), written, folder))
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
        if current[0] == candidates[0]:
            copied.append(name)
    _copy_results(run, reference, copied)
    _store_parts(reference)
    _store_solutions(folder / "solutions")
    return lines


def _solutions(folder: Path) -> Iterator[tuple[Path, dict[str, Any], dict[str, Any]]]:
    """Each solution's place in the reference, its notebook of today and its stored form."""
    for path in sorted(ROOT.glob(f"{SOLUTIONS}/*.ipynb")):
        place = folder / path.name
        yield place, _read(path), _read(place) if place.exists() else {"cells": []}


def _store_solutions(folder: Path) -> None:
    """Runs the solutions of the exercises whose code is not that of the stored ones."""
    for place, written, executed in _solutions(folder):
        if _code_of(executed) != _code_of(written):
            import papermill  # nothing else here needs a kernel

            place.parent.mkdir(parents=True, exist_ok=True)
            home = ROOT / SOLUTIONS
            papermill.execute_notebook(home / place.name, place, cwd=home, progress_bar=False)
            executed = _read(place)
        text = _as_text(stored_form(executed, written, folder, SOLUTIONS))
        place.write_text(text, encoding="utf-8")


def _store_parts(reference: Path) -> None:
    """The hash of each part's JSON file, which holds the hashes of the part's scores."""
    parts = [[path.stem, sha256_of(path)] for path in sorted(ledger_folder().glob("*.json"))]
    with (reference / PARTS).open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([["part", "sha256"], *parts])


def _copy_results(run: Path, reference: Path, names: Sequence[str]) -> None:
    """Tables and figures that these notebooks wrote, as the run's manifests list them.

    What they wrote once and write no longer goes; of figures, after a complete run.
    """
    known = {row["table"]: row for row in _rows(reference / TABLES) if row["notebook"] not in names}
    figures = set()
    for name in names:
        for output in _read(run / "manifests" / f"{name}.json")["outputs"]:
            path = run / output
            if path.suffix == ".png":
                _copy(path, reference / output)
                figures.add(path.name)
            if path.suffix != ".csv":
                continue
            data = path.read_bytes()
            is_stored = len(data) < LARGEST_TABLE
            if is_stored:
                _copy(path, reference / output)
            known[path.stem] = {
                "table": path.stem,
                "notebook": name,
                "sha256": hashlib.sha256(data).hexdigest(),
                "is_stored": "yes" if is_stored else "no",
            }
    for path in (reference / "tables").glob("*.csv"):
        if path.stem not in known:
            path.unlink()
    for path in (reference / "figures").glob("*.png") if [*names] == notebooks() else ():
        if path.name not in figures:
            path.unlink()
    with (reference / TABLES).open("w", newline="") as stream:
        columns = ["table", "notebook", "sha256", "is_stored"]
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(known[table] for table in sorted(known))


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _copy(path: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)


# Checking


def check() -> Iterator[str]:
    """Which notebooks of the reference have other cells or parameters than today, as lines."""
    folder = stored() / "notebooks"
    for name in notebooks():
        written, path = _read(ROOT / f"notebooks/{name}.ipynb"), folder / f"{name}.ipynb"
        executed = _read(path) if path.exists() else {"cells": []}
        if not is_current(executed, written, ROOT / f"params/{PROFILE}/{name}.yaml"):
            yield f"{name} was changed: make {name} && make reference"
        elif executed != stored_form(executed, written, folder):
            yield f"the text of {name} was changed: make reference"
    for place, written, executed in _solutions(folder / "solutions"):
        is_run = _code_of(executed) == _code_of(written)
        if not is_run or executed != stored_form(executed, written, place.parent, SOLUTIONS):
            yield f"the solutions {place.stem} were changed: make reference"


# Verifying


class Comparison(NamedTuple):
    """One table of a run next to the reference."""

    table: str
    says: str
    is_same: bool  # the same verdicts, so that the run carries the same claims


def is_verdict(column: str) -> bool:
    """Whether a column holds words that a reader acts on."""
    return column in ("verdict", "holds", "matches") or column.endswith("_verdict")


def _shown(cell: str) -> str:
    """A cell of a table for a line of text, a number with four digits."""
    try:
        return f"{float(cell):.4g}"
    except ValueError:
        return cell or "nothing"


def compare(name: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> Comparison:
    """A run's table, ``ours``, next to the reference's, row by row.

    Both hold texts, as they stand in the files. A word that differs in a verdict, or another
    shape, is no longer the same; of numbers that differ the largest difference is named.
    """
    if list(ours) != list(theirs) or len(ours) != len(theirs):
        said = f"{len(ours)} rows and {ours.shape[1]} columns"
        return Comparison(
            name, f"another shape: {said}, stored {len(theirs)} and other ones", False
        )
    places = [
        (row, column)
        for column in ours
        for row in (ours[column] != theirs[column]).to_numpy().nonzero()[0]
    ]
    largest, words, numbers, n_texts = 0.0, [], "", 0
    for row, column in places:
        yours, stored = ours[column].iloc[row], theirs[column].iloc[row]
        said = f"{column}, row {row + 1}: yours {_shown(yours)}, stored {_shown(stored)}"
        if is_verdict(column):
            words.append(said)
            continue
        try:
            difference = abs(float(yours) - float(stored))
        except ValueError:
            n_texts += 1
            continue
        if difference > largest and difference > CLOSE * abs(float(stored)):
            largest, numbers = difference, f"largest difference in {said}"
    if not (words or largest or n_texts):
        return Comparison(name, "identical", True)
    verdicts = f"verdicts that differ: {len(words)} ({words[0]})" if words else "same verdicts"
    texts = f"text cells that differ: {n_texts}" if n_texts else ""
    return Comparison(name, "; ".join(filter(None, [verdicts, numbers, texts])), not words)


def damaged() -> Iterator[str]:
    """Tables of the reference that are not as they were stored, and parts of the ledger.

    Parts that were added, such as those of a detector of one's own, are no concern of it.
    """
    for row in _rows(stored() / TABLES):
        path = stored() / "tables" / f"{row['table']}.csv"
        if row["is_stored"] == "no":
            continue
        if not path.exists():
            yield f"{row['table']}: missing in the reference"
        elif sha256_of(path) != row["sha256"]:
            yield f"{row['table']}: the reference's own file was altered after it was stored"
    for part in _rows(stored() / PARTS):
        path = ledger_folder() / f"{part['part']}.json"
        if not path.exists():
            yield f"ledger: the part {part['part']} is missing"
        elif sha256_of(path) != part["sha256"]:
            yield f"ledger: {path.name} is not that of the reference"
        else:
            for name, sha256 in _read(path)["sha256"].items():
                file = path.with_name(name)
                if not file.exists() or sha256_of(file) != sha256:
                    yield f"ledger: {name} was altered, or is missing"


def verify(run: Path) -> Iterator[Comparison]:
    """Every table of the reference next to a run's; one that is missing there is not the same."""
    for row in _rows(stored() / TABLES):
        name = row["table"]
        path, ours = run / f"tables/{name}.csv", stored() / f"tables/{name}.csv"
        if not path.exists():
            yield Comparison(name, f"missing: make {row['notebook']} writes it", False)
        elif sha256_of(path) == row["sha256"]:
            yield Comparison(name, "identical", True)
        elif row["is_stored"] == "no":
            yield Comparison(
                name, "not identical; of so large a table we store the hash alone", True
            )
        else:
            read = {"dtype": str, "keep_default_na": False}
            yield compare(name, pd.read_csv(path, **read), pd.read_csv(ours, **read))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("copy", "verify"))
    parser.add_argument("run", type=Path)
    options = parser.parse_args()
    if options.command == "copy":
        lines = copy(options.run)
        print("\n".join(lines) or f"copied to {stored().relative_to(ROOT)}")
        return bool(lines)
    if lines := list(damaged()):
        print("\n".join(lines))
        return 1
    found = list(verify(options.run))
    for one in found:
        if one.says != "identical":
            print(f"{one.table}: {one.says}")
    n_identical = sum(one.says == "identical" for one in found)
    others = [one.table for one in found if not one.is_same]
    n_alike = len(found) - n_identical - len(others)
    print(f"{len(found)} tables: {n_identical} identical, {n_alike} with the same verdicts")
    if not others:
        print("Your run carries every verdict of ours.")
        return 0
    print(f"{len(others)} with other verdicts, or missing: {', '.join(others)}")
    print("Another processor or other packages can do that. See docs/install.md.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
