"""The page of an audit: its verdicts with their controls, for people and for programs."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit import auditing, detected_copies, listed_rows
from contamination.audit.log_values import Log
from contamination.audit.prepared import METHODS
from contamination.core import storage
from contamination.core.tables import show, with_interval
from contamination.core.visible import visible
from contamination.study.panel import Evidence

SCHEMA_VERSION = 1  # of verdict.json
UNLISTED = "unlisted_rows.json"  # rows that no list names, as lm_eval --samples reads them
MOST_SHOWN = 20  # listed rows of a model on the page; the table has all
NOT_INFLATION = (
    "A difference between the two is not by itself what training on the rows gained: rows that a "
    "model finds familiar can also be easier. Notebook 07 measures that gain where it is known."
)
# A table that is wider than the window scrolls by itself.
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Audit</title><style>
body { font: 16px/1.5 sans-serif; max-width: 72rem; margin: 1rem auto; padding: 0 1rem }
p { overflow-wrap: anywhere } div { overflow-x: auto; margin: 1.5rem 0 }
table { min-width: 56rem } td, th { padding: .2rem .6rem .2rem 0; vertical-align: top }
</style>"""


@dataclass(frozen=True)
class Stopped:
    """An audit that was interrupted: why, its models, and the folder of its tables so far."""

    why: str
    names: Sequence[str]
    tables: Path


def write_verdict(
    outputs: Path,
    data: Mapping[str, Any],
    counts: pd.DataFrame,
    stopped: Stopped | None = None,
    log: Log | None = None,
) -> Path:
    """``verdict.html`` and ``verdict.json`` from a run's tables and its ``data``; the page.

    ``counts`` is ``auditing.rows_table``: what each file has, and what was left out of it. Of an
    interrupted audit the page has what was found until then, and says which parts are missing.
    If the dataset is the ``log`` of an evaluation, the page shows the scores that the log states,
    and compares the model's score on the listed rows with its score on the others. The form of
    ``verdict.json`` is docs/verdict.schema.json; ``SCHEMA_VERSION`` grows when a field changes its
    meaning or goes away.
    """
    scores = log.scores if log else pd.DataFrame()
    folder = stopped.tables if stopped else outputs / "tables"
    evidence, controls = (_read(folder, name) for name in ("audit", "audit_controls"))
    words = ["truth", "note"]
    evidence[words] = evidence[words].astype(object).fillna("")
    missing = auditing.missing(stopped.names, evidence) if stopped else {}
    lines = {
        m: auditing.summarize_audit(m, rows) for m, rows in evidence.groupby("model", sort=False)
    }
    deciding = controls[controls["decides"].eq(True)]
    listed, lists = (_read_if(folder, name) for name in ("audit_rows", "audit_lists"))
    notes = [f"{row.model}: {row.note}" for row in lists.itertuples()]
    by_text = controls[controls["method"].eq(auditing.COMPARISON)].drop_duplicates("control")
    model = "model " if len(lines) > 1 else ""  # one model's name stands in the line above
    tables = {
        "Verdicts": (evidence, f"{model}method verdict n value interval control note"),
        "The controls that decide": (deciding, f"{model}method control n value interval"),
        "Dataset against comparison rows, by their text alone; chance and p where it was needed": (
            by_text,
            "control n value interval chance p_value holds",
        ),
    }
    counted = [name for name in counts if name == "file" or counts[name].notna().any()]
    tables["Rows in each file, rows left out and why (the first reason), and in the sample"] = (
        counts,
        " ".join(counted),
    )
    tables["The score that the log of the evaluation states"] = (
        scores,
        "task model metric value n mean_of_samples",
    )
    about = " ".join(filter(None, (data["dataset"], data.get("split"), data.get("revision"))))
    by_list = listed_rows.scores_by_list(log.rows["score"], listed) if log else pd.DataFrame()
    tables["Its score on the rows that are listed as seen, and on the others"] = (
        by_list,
        "rows n value interval",
    )
    above = [_said_of_missing(missing, stopped)] if stopped else []
    said = [*above, *lines.values(), about]
    parts = [f"<p>{html.escape(visible(line))}</p>" for line in said]
    labels = {"control": "control", "p_value": "p", "note": "note"}
    decimals = {"p_value": 3}
    missed = detected_copies.describe_detection_limits(
        evidence, detected_copies.load_detection_table()
    )
    for name, (rows, columns) in tables.items():
        if len(rows):
            shown = show(_with_interval(rows), name, columns, labels, decimals)
            parts.append(f"<div>{shown.data}</div>")
        if rows is by_list and len(rows):
            parts.append(f"<p>{html.escape(NOT_INFLATION)}</p>")
        if rows is evidence and notes:
            parts.append("<h2>Which rows?</h2>")
            parts += [f"<p>{html.escape(visible(line))}</p>" for line in notes]
            parts += _of_rows(listed)
        if rows is evidence and missed:
            parts.append("<h2>What a negative result may have missed</h2>")
            parts += [f"<p>{html.escape(visible(line))}</p>" for line in missed]
    page = outputs / "verdict.html"
    storage.write_text(page, f"{HEAD}\n<h1>Audit</h1>\n" + "\n".join(parts) + "\n")
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "says": lines,
        "missing": missing,
        "data": dict(data),
    }
    found["could_have_missed"] = missed
    if len(listed):
        called = data.get("names") or [Path(data["dataset"]).stem]
        numbers = listed_rows.unlisted_rows(listed)
        if log and "doc_id" in log.rows:  # a run on a part of a task counts as the whole task does
            names = log.rows["doc_id"].tolist()
            numbers = [names[n] if isinstance(names[n], int) else n for n in numbers]
        storage.write_text(outputs / UNLISTED, json.dumps({called[0]: numbers}) + "\n")
    of = {"evidence": evidence, "controls": deciding, "text_alone": by_text, "rows": counts}
    of |= {"lists": lists, "listed_rows": listed[_is_listed(listed)]}
    of |= {"evaluation": scores, "scores_by_list": by_list}
    for name, rows in of.items():
        found[name] = json.loads(rows.to_json(orient="records"))
    storage.write_text(outputs / "verdict.json", json.dumps(found, indent=2) + "\n")
    return page


def _read(folder: Path, name: str) -> pd.DataFrame:
    """A table of a run; an empty one where the run was interrupted before it."""
    path = folder / f"{name}.csv"
    if not path.exists():
        columns = [field.name for field in fields(Evidence)]
        return pd.DataFrame(columns=columns if name == "audit" else ["method", *auditing.CONTROLS])
    return storage.read_csv(path, keep_default_na=False, na_values=[""])


def _read_if(folder: Path, name: str) -> pd.DataFrame:
    """A table of a run that older or interrupted ones lack; then one without rows."""
    path = folder / f"{name}.csv"
    if not path.exists():
        return pd.DataFrame(columns=["model", "index", "is_listed", "note"])
    return storage.read_csv(path)


def _is_listed(rows: pd.DataFrame) -> pd.Series:
    return rows["is_listed"].astype(str).eq("True")


def _of_rows(rows: pd.DataFrame) -> list[str]:
    """The first listed rows of each model, and where to find all of them."""
    chosen = rows[_is_listed(rows)].sort_values("p_value", kind="stable")
    if chosen.empty:
        return []
    shown = chosen.groupby("model", sort=False).head(MOST_SHOWN)
    columns = "model index min_k_score completion_rouge quiz_share p_value"
    table = show(
        shown, "Rows that are listed as seen, by their number in the file, from 0", columns
    )
    return [
        f"<div>{table.data}</div>",
        f"<p>All rows with their scores are in tables/audit_rows.csv. {UNLISTED} has "
        "the numbers of the rows that no list names, in the form that lm_eval --samples reads. "
        "They are rows that did not stand out, which does not show that they were not seen.</p>",
    ]


def _said_of_missing(missing: Mapping[str, Sequence[str]], stopped: Stopped) -> str:
    """Which parts of an interrupted audit are missing, and how they are had."""
    parts = [
        f"{name}: {', '.join(methods) if len(methods) < len(METHODS) else 'every method'}"
        for name, methods in missing.items()
    ]
    what = (
        f"This page lacks these parts: {'; '.join(parts)}. The verdicts are corrected for the "
        "methods that were done, so the missing ones can change them."
        if parts
        else "No method is missing."
    )
    return (
        f"This audit was interrupted ({stopped.why}). {what} Give the same line again to complete "
        "it: what was computed or answered is kept, and nothing is asked twice."
    )


def _with_interval(rows: pd.DataFrame) -> pd.DataFrame:
    return with_interval(rows) if "ci_low" in rows else rows
