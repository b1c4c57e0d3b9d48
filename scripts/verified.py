"""Runs elsewhere next to the reference: the rows of docs/verified.csv, and the table in docs.

    python scripts/verified.py "Python 3.13" outputs/demo --what "another Python"

adds a complete or partial run (or replaces the row of that name) and writes the table of
docs/reproducing.md anew. Tables of notebooks that the run does not have are not counted.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

import readme
import reference

ROOT = Path(__file__).resolve().parents[1]
STORED, PAGE = ROOT / "docs/verified.csv", ROOT / "docs/reproducing.md"
COLUMNS = {
    "run": "Run",
    "differs": "What differs from ours",
    "tables": "Tables compared",
    "identical": "Identical",
    "verdicts": "Verdicts compared",
    "same_verdicts": "The same",
    "where": "Tables with different verdicts",
    "largest": "Largest numerical difference",
}


def row_of(run: Path, name: str, differs: str, against: Path | None = None) -> dict[str, object]:
    """One row of ``docs/verified.csv``: what of a run is as in the reference.

    Args:
        run: folder of a run, such as outputs/demo.
        name: what the row is called.
        differs: what differs from the environment of the reference.
        against: folder of the reference; that of the run's profile by default.
    """
    stored = against or reference.reference_of(run.name)
    n_tables = n_identical = n_verdicts = n_same = 0
    largest, place, where = 0.0, "", []
    for row in reference.listed_tables(stored):
        path, ours = run / f"tables/{row['table']}.csv", stored / f"tables/{row['table']}.csv"
        if not (run / f"manifests/{row['notebook']}.json").exists():
            continue
        n_tables += 1
        if not path.exists() or row["is_stored"] == "no":
            n_identical += path.exists() and reference.sha256_of(path) == row["sha256"]
            continue
        read = {"dtype": str, "keep_default_na": False}
        found, expected = pd.read_csv(path, **read), pd.read_csv(ours, **read)
        said = reference.compare(row["table"], found, expected)
        n_identical += said.says == "identical"
        words = [column for column in expected if reference.is_verdict(column)]
        n_here = n_alike = expected[words].ne("").to_numpy().sum()
        if list(found) != list(expected) or len(found) != len(expected):
            n_alike = 0
        else:
            alike = found[words].eq(expected[words]) & expected[words].ne("")
            n_alike = alike.to_numpy().sum()
        n_verdicts, n_same = n_verdicts + n_here, n_same + n_alike
        if n_here > n_alike:
            where.append(f"{row['table']} ({n_here - n_alike})")
        if said.largest > largest:
            largest, place = said.largest, row["table"]
    return {
        "run": name,
        "differs": differs,
        "tables": n_tables,
        "identical": int(n_identical),
        "verdicts": int(n_verdicts),
        "same_verdicts": int(n_same),
        "where": ", ".join(where) or "none",
        "largest": f"{largest:.2g} ({place})" if largest else "none",
    }


def store(row: dict[str, object], path: Path = STORED) -> pd.DataFrame:
    """The stored rows with this one, which replaces an older one of its name."""
    rows = pd.read_csv(path, dtype=str).to_dict("records") if path.exists() else []
    rows = [old for old in rows if old["run"] != row["run"]] + [row]
    table = pd.DataFrame(rows)[list(COLUMNS)].astype(str)
    table.to_csv(path, index=False)
    return table


def as_markdown(table: pd.DataFrame) -> str:
    """The rows as a table for readers."""
    lines = [
        "| " + " | ".join(COLUMNS.values()) + " |",
        "| " + " | ".join("---" for _ in COLUMNS) + " |",
    ]
    lines += ["| " + " | ".join(row) + " |" for row in table.to_numpy(str).tolist()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="of the row")
    parser.add_argument("run", type=Path, help="folder of the run, such as outputs/demo")
    parser.add_argument("--what", default="", help="what differs from the reference's environment")
    options = parser.parse_args()
    row = row_of(options.run, options.name, options.what)
    print(json.dumps(row, indent=1))
    page = PAGE.read_text(encoding="utf-8")
    page = readme.renewed(page, "runs", as_markdown(store(row)), "scripts/verified.py")
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
