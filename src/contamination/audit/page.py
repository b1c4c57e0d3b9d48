"""The page of an audit: its verdicts with their controls, for people and for programs."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit import auditing
from contamination.core import storage
from contamination.core.tables import show, with_interval
from contamination.core.visible import visible

# A table that is wider than the window scrolls by itself.
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Audit</title><style>
body { font: 16px/1.5 sans-serif; max-width: 72rem; margin: 1rem auto; padding: 0 1rem }
p { overflow-wrap: anywhere } div { overflow-x: auto; margin: 1.5rem 0 }
table { min-width: 56rem } td, th { padding: .2rem .6rem .2rem 0; vertical-align: top }
</style>"""


def write_verdict(outputs: Path, data: Mapping[str, Any], counts: pd.DataFrame) -> Path:
    """``verdict.html`` and ``verdict.json`` from a run's tables and its ``data``; the page.

    ``counts`` is ``auditing.rows_table``: what each file has, and what was left out of it.
    """
    evidence, controls = (
        storage.read_csv(outputs / "tables" / f"{name}.csv", keep_default_na=False, na_values=[""])
        for name in ("audit", "audit_controls")
    )
    words = ["truth", "note"]
    evidence[words] = evidence[words].astype(object).fillna("")
    lines = {m: auditing.headline(m, rows) for m, rows in evidence.groupby("model", sort=False)}
    deciding = controls[controls["decides"].eq(True)]
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
    tables["Rows of each file, left out and why (the first reason), and in the sample"] = (
        counts,
        " ".join(counted),
    )
    about = " ".join(filter(None, (data["dataset"], data.get("split"), data.get("revision"))))
    parts = [f"<p>{html.escape(visible(line))}</p>" for line in [*lines.values(), about]]
    labels = {"control": "control", "p_value": "p", "note": "note"}
    decimals = {"p_value": 3}
    parts += [
        f"<div>{show(_with_interval(rows), name, columns, labels, decimals).to_html()}</div>"
        for name, (rows, columns) in tables.items()
        if len(rows)
    ]
    page = outputs / "verdict.html"
    storage.write_text(page, f"{HEAD}\n<h1>Audit</h1>\n" + "\n".join(parts) + "\n")
    found: dict[str, Any] = {"says": lines, "data": dict(data)}
    of = {"evidence": evidence, "controls": deciding, "text_alone": by_text, "rows": counts}
    for name, rows in of.items():
        found[name] = json.loads(rows.to_json(orient="records"))
    storage.write_text(outputs / "verdict.json", json.dumps(found, indent=2) + "\n")
    return page


def _with_interval(rows: pd.DataFrame) -> pd.DataFrame:
    return with_interval(rows) if "ci_low" in rows else rows
