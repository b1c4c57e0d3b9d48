"""What an audit leaves: one page for people, ``verdict.json`` for programs, tables, a summary."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from contamination.audit import auditing, power, verdict
from contamination.audit.finding import Finding, Target
from contamination.audit.logs import Log
from contamination.audit.plan import METHODS, Audit
from contamination.audit.power import Power
from contamination.core import plots, storage, verdicts
from contamination.core.keys import visible
from contamination.core.run import versions
from contamination.core.tables import show, with_interval
from contamination.data import partitions

SCHEMA_VERSION = 3  # of verdict.json, as docs/verdict.schema.json describes it
MOST_SHOWN = 20  # listed rows of a model on the page; the table has all
MOST_LETTERS = 160  # of a row's text on the page
MEANINGS = {
    verdicts.SHOWN: "some of the rows were seen in training",
    verdicts.OPEN: "nothing is shown, and nothing is ruled out",
    verdicts.CONTROL_FAILS: "the two files differ without any model, so a score says nothing",
    verdicts.NOT_RUN: "the method was not run, and the note says why",
}
BADGES = {verdicts.SHOWN: "contamination shown"}
NEXT = {
    verdicts.SHOWN: "Report the model's score together with this verdict, and measure the skill on "
    "rows that are newer than the model. More comparison rows sharpen the share and the list.",
    verdicts.OPEN: "Bring more comparison rows (docs/audit.md says from where). With --power, a "
    "local model also shows what an audit of your rows would notice.",
    verdicts.CONTROL_FAILS: "Bring comparison rows of the same draw as the suspected ones "
    "(docs/audit.md says from where).",
}
NOT_INFLATION = (
    "A difference between the two is not by itself what training on the rows gained: rows that a "
    "model finds familiar can also be easier. Notebook 07 measures that gain where it is known."
)
REST = (
    "All rows with their scores are in tables/audit_rows.csv. Rows that no list names did not "
    "stand out, which does not show that they were not seen."
)
LABELS = {"control": "control", "p_value": "p", "p_adjusted": "p", "note": "note"}
LABELS |= {"value": "AUC or share", "share_at_least": "seen, at least", "index": "row"}


class Results:
    """What an audit found; of one that stopped, what was found until then, which is something.

    Attributes:
        tables: of ``auditing.tables_of``.
        words, says: the verdict and the headline of each model.
        noticed: what an audit of this size would have noticed, in sentences.
        listed: columns of ``audit_rows.csv`` and the text of the listed rows, those that stand out
            first.
        by_list: the log's score on the listed rows and on the others; empty without a log or list.
        models: name and weights of each model (``Target.weights``).
        missing: the methods that an interrupted audit did not come to, by model.
        interruption: which parts of an interrupted audit are missing, and how they are had.
    """

    def __init__(
        self,
        audit: Audit,
        found: Mapping[str, Mapping[str, Finding]],
        targets: Mapping[str, Target],
        log: Log | None = None,
        powers: Sequence[Power] = (),
        stopped: str = "",
    ) -> None:
        """``found`` and ``targets`` are those of ``auditing.run``, ``log`` is the dataset.

        ``stopped`` says why the audit was interrupted; it is "" for a finished one.
        """
        self.audit, self.found, self.powers = audit, found, powers
        self.tables = auditing.tables_of(audit, found, targets)
        methods, rows = self.tables["audit"], self.tables["audit_rows"]
        verdicts = self.tables["audit_verdicts"]
        self.words, self.says = verdicts["verdict"].tolist(), verdicts["says"].tolist()
        self.noticed = power.noticed_lines(methods)
        texts = dict(zip(audit.rows.rows["index"], audit.rows.passages, strict=True))
        named = rows[rows["is_listed"].eq(True).fillna(False)]
        cut = named["index"].map(texts).fillna("").astype(str).str.slice(0, MOST_LETTERS)
        self.listed = named.assign(text=cut).sort_values("p_value", kind="stable")
        self.by_list = verdict.scores_by_list(log.rows["score"], rows) if log else pd.DataFrame()
        self.scores = log.scores if log else pd.DataFrame()
        weights = [target.weights for target in targets.values()]
        self.models = pd.DataFrame(weights, columns=["name", "weights", "why_none"])
        done = set(zip(methods["model"], methods["method"], strict=True))
        names = map(audit.told.model.name_of, audit.told.model.names if stopped else ())
        missing = {one: [name for name in METHODS if (one, name) not in done] for one in names}
        self.missing = {name: methods for name, methods in missing.items() if methods}
        parts = [f"{name}: {', '.join(methods)}" for name, methods in self.missing.items()]
        self.interruption = bool(stopped) * (
            f"This audit was interrupted ({stopped}). This page lacks: "
            f"{'; '.join(parts) or 'no method'}. The verdict is corrected for the methods that "
            "were done, so the missing ones can change it. Give the same line again to complete "
            "it: what was computed or answered is kept, and nothing is asked twice."
        )


def write(results: Results, outputs: Path) -> Path:
    """``verdict.html``, ``verdict.json``, ``verdict.md``, tables and figure of an audit; the page.

    The page needs no other file. If the audit was interrupted, it says which parts are missing.
    """
    for path in [*(outputs / "tables").glob("audit*.csv"), outputs / "figures/audit.png"]:
        path.unlink(missing_ok=True)  # of the same audit, run before
    for name, table in (results.tables | auditing.paper_tables(results.found)).items():
        shown = storage.with_texts(table, visible)
        storage.write_csv(outputs / "tables" / f"{name}.csv", shown)
    figure = figure_of(results.tables["audit"], results.tables["audit_verdicts"])
    code = ""
    if figure is not None:
        picture = outputs / "figures/audit.png"
        storage.write_figure(picture, figure)
        code = base64.b64encode(picture.read_bytes()).decode()
    record = json.dumps(_record(results), indent=2)
    storage.write_text(outputs / "verdict.json", record + "\n")
    storage.write_text(outputs / "verdict.md", _summary(results))
    page = outputs / "verdict.html"
    storage.write_text(page, _page(results, code))
    return page


def figure_of(methods: pd.DataFrame, words: pd.DataFrame) -> Figure | None:
    """Each method's AUC next to that of length and word frequency; None where there is no AUC.

    ``methods`` is ``audit.csv``, ``words`` is ``audit_verdicts.csv``.
    """
    shown = methods[methods["value"].notna()].iloc[::-1]
    names = [name for name in words["model"] if shown["model"].eq(name).any()]
    if not names:
        return None
    figure, axes = plots.panels(len(names), 1, (5.5, 0.8 + 2.2 * len(names)), sharex=True)
    for axis, name in zip(axes[:, 0], names, strict=True):
        rows = shown[shown["model"] == name]
        ends = [(rows["value"] - rows["ci_low"]).clip(0), (rows["ci_high"] - rows["value"]).clip(0)]
        label = "model, 95 % interval"
        style = {"fmt": "o", "color": plots.MEMBER, "capsize": 3, "label": label}
        axis.errorbar(rows["value"], rows["method"], xerr=ends, **style)
        text = {"marker": "D", "facecolor": "none", "edgecolor": plots.CONTROL, "zorder": 3}
        axis.scatter(rows["text_auc"], rows["method"], label="the text alone, no model", **text)
        axis.axvline(0.5, color=plots.CONTROL, linestyle=":")
        axis.margins(y=0.2)
        axis.set(xlim=(-0.05, 1.05), xlabel="AUC, suspected against comparison rows")
        word = words.loc[words["model"].eq(name), "verdict"].item()
        axis.set_title(f"{name}: {word}", loc="left", fontsize=11)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _page(results: Results, picture: str) -> str:
    """The page: verdict, how often wrong, what is noticed, figure, list; the rest folded."""
    template = resources.files("contamination.audit") / "page.html"
    known = jinja2.Environment(autoescape=True, finalize=_visible).from_string(template.read_text())
    data, listed = results.audit.told.data, results.listed
    about = [_today(), " ".join(filter(None, (data.dataset, data.first_split, data.revision)))]
    said = [{"title": "What would have been noticed", "lines": results.noticed}]
    said += [
        {"title": f"What copies of {one.model} showed", "lines": one.lines}
        for one in results.powers
    ]
    first = listed.groupby("model", sort=False).head(MOST_SHOWN)
    caption = "Rows that are listed as seen, by their number in the file, from 0"
    if len(first) < len(listed):
        caption += f" (those that stand out most: {len(first)} of {len(listed)})"
    model = "model " if len(results.found) > 1 else ""  # one model's name stands above
    split = "The log's score on the rows that are listed as seen, and on the others"
    return known.render(
        title=", ".join(f"{name} on {results.audit.names[0]}" for name in results.found),
        about=" · ".join([*about, _tool()]),
        verdicts=[
            {
                "model": row["model"],
                "verdict": (word := row["verdict"]),
                "badge": BADGES.get(word, word),
                "says": row["says"].removeprefix(f"{row['model']}: {word}. "),
                "next": NEXT.get(word),
            }
            for row in results.tables["audit_verdicts"].to_dict("records")
        ],
        missing=results.interruption,
        wrong=[power.WRONG, *_fragile(results.tables)],
        noticed=[one for one in said if one["lines"]],
        figure=picture,
        shown=[
            *_part(first, caption, f"{model}index text p_value", REST),
            *_part(results.by_list, split, "rows n value interval", NOT_INFLATION),
        ],
        folded=_folded(results),
    )


def _fragile(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """What would explain *shown* without memory, by the method that the verdict rests on."""
    basis = tables["audit_lists"][["model", "method"]]  # no method where nothing is shown
    found = tables["audit"].merge(basis, on=["model", "method"])
    return [f"By {row.method}, {row.note}." for row in found.itertuples()]


def _visible(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _part(table: pd.DataFrame, caption: str, columns: str, *lines: str) -> list[dict[str, Any]]:
    """A table with the lines below it, as the template takes them; none of an empty table."""
    if table.empty:
        return []
    rows = with_interval(table) if "ci_low" in table else table
    shown = show(rows, caption, columns, LABELS, {"p_value": 3})
    return [{"table": Markup(shown.data), "lines": lines}]  # noqa: S704 (``show`` has escaped it)


def _folded(results: Results) -> list[dict[str, Any]]:
    methods, counts = results.tables["audit"], auditing.rows_table(results.audit)
    there = {*methods["verdict"]}
    meanings = [
        f"{word.capitalize()}: {means}." for word, means in MEANINGS.items() if word in there
    ]
    columns = "model method verdict n n_comparison value interval p_adjusted share_at_least "
    counted = [name for name in counts if name == "file" or counts[name].notna().any()]
    checks = auditing.checks_table(results.audit)
    of_checks = "Dataset against comparison rows, by their text alone"
    of_counts = "Rows in each file, rows left out and why (the first reason), and in the sample"
    of_scores = "The mean score of the samples in the log"
    return [
        *_part(methods, "Methods", columns + "text_auc note", " ".join(meanings)),
        *_part(checks, of_checks, "control n value interval p_value holds"),
        *_part(counts, of_counts, " ".join(counted)),
        *_part(results.scores, of_scores, "task model metric value n"),
        *_part(results.models, "Models", "name weights why_none"),
    ]


def _record(results: Results) -> dict[str, Any]:
    """What ``verdict.json`` holds."""
    told = results.audit.told
    tables = {
        "models": results.models,
        "verdicts": results.tables["audit_verdicts"],
        "evidence": results.tables["audit"],
        "text_alone": auditing.checks_table(results.audit),
        "rows": auditing.rows_table(results.audit),
        "lists": results.tables["audit_lists"],
        "listed_rows": results.listed,
        "evaluation": results.scores,
        "scores_by_list": results.by_list,
        "power": pd.DataFrame([row for one in results.powers for row in one.records]),
    }
    names = ("dataset", "split", "revision", "names", "text_columns", "label_column")
    sources = filter(None, [told.data.dataset, told.comparison, told.model.log_probs])
    files = {source: partitions.find_file(source) for source in sources}
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": _tool(),
        "date": _today(),
        "missing": results.missing,
        "data": {name: getattr(told.data, name) for name in names},
        "files": {name: storage.sha256_of_file(path) for name, path in files.items() if path},
        "versions": versions(),
        "noticed": results.noticed,
    } | {name: json.loads(rows.to_json(orient="records")) for name, rows in tables.items()}


def _summary(results: Results) -> str:
    """The verdict in Markdown, as the summary of a GitHub job shows it."""
    lines = [f"* {line}" for line in results.noticed[1:]]
    lines += [f"* {line}" for one in results.powers for line in one.lines]
    said = [f"**{one.partition('. ')[0]}.** {one.partition('. ')[2]}" for one in results.says]
    parts = ["## Was this model trained on this data?", *said, results.interruption]
    parts += [power.WRONG, *results.noticed[:1], "\n".join(lines)]
    return "\n\n".join(visible(part).replace("<", "&lt;") for part in parts if part) + "\n"


def _tool() -> str:
    return f"contamination {metadata.version('contamination')}"


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
