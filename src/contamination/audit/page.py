"""The page of an audit: its verdicts with their controls, for people and for programs."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit import auditing, verdict
from contamination.audit.log_values import Log
from contamination.audit.prepared import METHODS
from contamination.core import storage, verdicts
from contamination.core.keys import visible
from contamination.core.tables import show, with_interval

SCHEMA_VERSION = 2  # of verdict.json
UNLISTED = "unlisted_rows.json"  # rows that no list names, as lm_eval --samples reads them
MOST_SHOWN = 20  # listed rows of a model on the page; the table has all
MOST_LETTERS = 160  # of a row's text on the page
MEANINGS = {
    verdicts.SHOWN: "some of the rows were seen in training",
    verdicts.OPEN: "nothing is shown, and nothing is ruled out",
    verdicts.CONTROL_FAILS: "the two files differ without any model, so a score says nothing",
    verdicts.NOT_RUN: "the method was not run, and the note says why",
}
NOT_INFLATION = (
    "A difference between the two is not by itself what training on the rows gained: rows that a "
    "model finds familiar can also be easier. Notebook 07 measures that gain where it is known."
)
# Caption, table, names of its columns, HTML after it.
Section = tuple[str, pd.DataFrame, str, list[str]]
# A table that is wider than the window scrolls by itself.
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Audit</title><style>
body { font: 16px/1.5 sans-serif; max-width: 72rem; margin: 1rem auto; padding: 0 1rem }
p { overflow-wrap: anywhere } div { overflow-x: auto; margin: 1.5rem 0 }
h2 { font-size: 1.1rem } .verdict { font-size: 1.2rem } img { max-width: 100% }
table { min-width: 56rem } td, th { padding: .2rem .6rem .2rem 0; vertical-align: top }
</style>"""


@dataclass(frozen=True)
class Stopped:
    """An audit that was interrupted: why, its models, and the folder of its tables so far."""

    why: str
    names: Sequence[str]
    tables: Path


@dataclass(frozen=True)
class Found:
    """What an audit found, as its page and ``verdict.json`` show it.

    Attributes:
        verdicts: word and headline of each model.
        missing: the methods that an interrupted audit did not come to, for each model.
        noticed: what an audit of this size would have noticed, in sentences.
        methods, by_text: what each method gave, and the two files by their text alone.
        listed, lists: rows with their marks, and a note on each model's list.
        counts: what each file has and what was left out of it.
        scores, by_list: what the log of an evaluation states, and its score on the listed rows.
    """

    verdicts: pd.DataFrame
    missing: dict[str, list[str]]
    noticed: list[str]
    methods: pd.DataFrame
    by_text: pd.DataFrame
    listed: pd.DataFrame
    lists: pd.DataFrame
    counts: pd.DataFrame
    scores: pd.DataFrame
    by_list: pd.DataFrame


def write_verdict(
    outputs: Path,
    data: Mapping[str, Any],
    counts: pd.DataFrame,
    stopped: Stopped | None = None,
    log: Log | None = None,
    texts: Mapping[int, str] | None = None,
) -> Path:
    """``verdict.html`` and ``verdict.json`` from a run's tables and its ``data``; the page.

    If the audit was interrupted, the page shows what was found until then and says which parts are
    missing. If the dataset is the log of an evaluation, the page shows the scores that the log
    states, and compares the model's score on the listed rows with its score on the others.
    docs/verdict.schema.json describes ``verdict.json``; ``SCHEMA_VERSION`` grows when a field
    changes its meaning or goes away.

    Args:
        outputs: folder of the run, which holds tables/ and gets the page.
        data: parameter ``data`` of the run.
        counts: ``auditing.rows_table``, what each file has and what was left out of it.
        stopped: why the audit was interrupted, None for a finished one.
        log: the log of an evaluation, if that is the dataset.
        texts: the text of each dataset row by the row's number, to be shown for listed rows.
    """
    folder = stopped.tables if stopped else outputs / "tables"
    found = _found(folder, counts, stopped, log)
    if texts and len(found.listed):
        cut = found.listed["index"].map(texts).fillna("").str.slice(0, MOST_LETTERS)
        found = replace(found, listed=found.listed.assign(text=cut))
    about = " ".join(filter(None, (data["dataset"], data.get("split"), data.get("revision"))))
    about = f"{about} · {_tool()} · {_today()}"
    above = [_said_of_missing(found.missing, stopped)] if stopped else []
    figure = outputs / "figures/audit.png"
    text = _page(found, [*above, about], figure if figure.is_file() else None)
    page = outputs / "verdict.html"
    storage.write_text(page, text)
    if len(found.listed):
        called = data.get("names") or [Path(data["dataset"]).stem]
        numbers = _unlisted_numbers(found.listed, log)
        storage.write_text(outputs / UNLISTED, json.dumps({called[0]: numbers}) + "\n")
    record = _record(found, data)
    storage.write_text(outputs / "verdict.json", json.dumps(record, indent=2) + "\n")
    return page


def _found(folder: Path, counts: pd.DataFrame, stopped: Stopped | None, log: Log | None) -> Found:
    """What the tables in a folder hold."""
    methods = _read(folder, "audit", ["model", "method", "verdict", "n", "n_comparison", "note"])
    words = [name for name in ("truth", "statistic", "note") if name in methods]
    methods[words] = methods[words].astype(object).fillna("")
    controls = _read(folder, "audit_controls", ["model", "method", *auditing.CONTROLS])
    listed = _read(folder, "audit_rows", ["model", "index", "is_listed"])
    lists = _read(folder, "audit_lists", ["model", "n_listed", "note"])
    return Found(
        verdicts=_read(folder, "audit_verdicts", ["model", "verdict", "says"]),
        missing=auditing.missing(stopped.names, methods) if stopped else {},
        noticed=auditing.noticed_lines(methods),
        methods=methods,
        by_text=controls[controls["method"].eq(auditing.COMPARISON)].drop_duplicates("control"),
        listed=listed,
        lists=lists,
        counts=counts,
        scores=log.scores if log else pd.DataFrame(),
        by_list=verdict.scores_by_list(log.rows["score"], listed) if log else pd.DataFrame(),
    )


def _sections(found: Found) -> list[Section]:
    """Caption, table, its columns, and the HTML after it; in the order of the page."""
    model = "model " if len(found.verdicts) > 1 else ""  # one model's name stands in the line above
    counts = found.counts
    counted = [name for name in counts if name == "file" or counts[name].notna().any()]
    words = [word for word in MEANINGS if found.methods["verdict"].eq(word).any()]
    meanings = [". ".join(f"{word.capitalize()}: {MEANINGS[word]}" for word in words) + "."]
    columns = "method verdict n n_comparison value interval p_adjusted share_at_least text_auc note"
    return [
        ("Methods", found.methods, model + columns, _paragraphs(meanings * bool(words))),
        (
            "Dataset against comparison rows, by their text alone",
            found.by_text,
            "control n value interval p_value holds",
            [],
        ),
        (
            "Rows in each file, rows left out and why (the first reason), and in the sample",
            counts,
            " ".join(counted),
            [],
        ),
        (
            "The score that the log of the evaluation states",
            found.scores,
            "task model metric value n mean_of_samples",
            [],
        ),
        (
            "Its score on the rows that are listed as seen, and on the others",
            found.by_list,
            "rows n value interval",
            _paragraphs([NOT_INFLATION] * bool(len(found.by_list))),
        ),
    ]


def _page(found: Found, lines: Sequence[str], figure: Path | None) -> str:
    """The page as HTML: verdict, what would have been noticed, figure, list; the rest folded."""
    labels = {"control": "control", "p_value": "p", "p_adjusted": "p", "note": "note"}
    labels |= {"value": "AUC or share", "share_at_least": "seen, at least"}
    parts = [f'<p class="verdict">{_escaped(line)}</p>' for line in found.verdicts["says"]]
    parts += _paragraphs(lines)
    if found.noticed:
        parts += ["<h2>What would have been noticed</h2>", *_paragraphs(found.noticed)]
    if figure is not None:
        data = base64.b64encode(figure.read_bytes()).decode()
        parts.append(f'<img alt="each method and its control" src="data:image/png;base64,{data}">')
    parts += _of_rows(found.listed)
    parts.append("<details><summary>All tables</summary>")
    for caption, rows, columns, after in _sections(found):
        if len(rows):
            shown = show(_with_interval(rows), caption, columns, labels, {"p_value": 3})
            parts.append(f"<div>{shown.data}</div>")
        parts += after
    return f"{HEAD}\n<h1>Audit</h1>\n" + "\n".join(parts) + "\n</details>\n"


def _record(found: Found, data: Mapping[str, Any]) -> dict[str, Any]:
    """What ``verdict.json`` holds, as docs/verdict.schema.json describes it."""
    tables = {
        "verdicts": found.verdicts,
        "evidence": found.methods,
        "text_alone": found.by_text.drop(columns=["model", "method"]),
        "rows": found.counts,
        "lists": found.lists,
        "listed_rows": found.listed[_is_listed(found.listed)],
        "evaluation": found.scores,
        "scores_by_list": found.by_list,
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": _tool(),
        "date": _today(),
        "missing": found.missing,
        "data": dict(data),
        "noticed": found.noticed,
    } | {name: json.loads(rows.to_json(orient="records")) for name, rows in tables.items()}


def _unlisted_numbers(listed: pd.DataFrame, log: Log | None) -> list[int]:
    """Numbers of the rows that no list names; of a part of a task, as the whole task counts."""
    numbers = verdict.unlisted_rows(listed)
    if log and "doc_id" in log.rows:
        names = log.rows["doc_id"].tolist()
        numbers = [names[n] if isinstance(names[n], int) else n for n in numbers]
    return numbers


def _tool() -> str:
    return f"contamination {metadata.version('contamination')}"


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _escaped(line: str) -> str:
    return html.escape(visible(line))


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [f"<p>{_escaped(line)}</p>" for line in lines]


def _read(folder: Path, name: str, columns: Sequence[str]) -> pd.DataFrame:
    """A table of a run; an empty one with these columns where the run was interrupted before it."""
    path = folder / f"{name}.csv"
    if not path.exists():
        return pd.DataFrame(columns=list(columns))
    return storage.read_csv(path, keep_default_na=False, na_values=[""])


def _is_listed(rows: pd.DataFrame) -> pd.Series:
    return rows["is_listed"].astype(str).eq("True")


def _of_rows(rows: pd.DataFrame) -> list[str]:
    """The first listed rows of each model, and where to find all of them."""
    if rows.empty or not _is_listed(rows).any():
        return []
    chosen = rows[_is_listed(rows)].sort_values("p_value", kind="stable")
    shown = chosen.groupby("model", sort=False).head(MOST_SHOWN)
    columns = "model index min_k_score completion_score quiz_score p_value"
    columns += " text" * ("text" in shown)
    caption = "Rows that are listed as seen, by their number in the file, from 0"
    if len(shown) < len(chosen):
        caption += f" (those that stand out most: {len(shown)} of {len(chosen)})"
    table = show(shown, caption, columns)
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
        f"This page lacks these parts: {'; '.join(parts)}. The verdict is corrected for the "
        "methods that were done, so the missing ones can change it."
        if parts
        else "No method is missing."
    )
    return (
        f"This audit was interrupted ({stopped.why}). {what} Give the same line again to complete "
        "it: what was computed or answered is kept, and nothing is asked twice."
    )


def _with_interval(rows: pd.DataFrame) -> pd.DataFrame:
    return with_interval(rows) if "ci_low" in rows else rows
