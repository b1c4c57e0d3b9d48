"""An audit from its parameters to its tables: prepare, ask model by model, collect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit import noticed
from contamination.audit.comparison import by_text_alone, near_copies, refusal
from contamination.audit.completing import replication
from contamination.audit.finding import Finding, Target
from contamination.audit.internals import dice, min_k, probed
from contamination.audit.lab_models import Lab
from contamination.audit.local_models import load_model
from contamination.audit.plan import skip_reasons
from contamination.audit.prepared import (
    DCQ,
    METHODS,
    MIN_K,
    RANKING,
    REPLICATION,
    Audit,
    name_of,
)
from contamination.audit.quizzing import dcq, ranking
from contamination.audit.settings import CONTAMINATED, LAB
from contamination.audit.verdict import COUNTS, Decided, decide
from contamination.core.storage import Outputs
from contamination.dcq.published_tables import reciprocal_row
from contamination.dcq.quizzes import instances_of
from contamination.models.chat import UnsupportedError
from contamination.replication.instructions import GUIDED

COMPARISON = "comparison rows"
CONTROLS = ["control", "n", "value", "ci_low", "ci_high", "p_value", "decides", "holds"]
KINDS_OF_CELL = {"decides": "boolean", "holds": "boolean"}


def add_text_controls(audit: Audit) -> Audit:
    """The audit with what classifiers that see no model make of its two files."""
    if audit.unseen is None:
        return audit
    sets = [audit.scored_texts(rows) for rows in audit.sets]
    text_alone = by_text_alone(*sets, audit.told.seed)
    found: dict[str, Any] = {"text_alone": text_alone, "near_copies": (near_copies(*sets),)}
    return replace(audit, **found, refusal=refusal(text_alone))


def rows_table(audit: Audit) -> pd.DataFrame:
    """What was loaded and what was left out: rows, and the counts of ``rows.Rows``."""
    sets = zip(("dataset", "comparison"), audit.sets, strict=False)
    return pd.DataFrame([{"file": name, **(rows.counts or {})} for name, rows in sets])


def checks_table(audit: Audit) -> pd.DataFrame:
    """The dataset against the comparison rows without any model, ``CONTROLS``; no row without."""
    table = pd.DataFrame([*audit.near_copies, *audit.text_alone], columns=CONTROLS)
    return table.astype(KINDS_OF_CELL)


def target_of(audit: Audit, name: str, lab: Lab | None) -> Target:
    """One audited model, loaded or trained where it is a local one."""
    for endpoint in audit.asked.endpoints:
        if endpoint.model == name:
            return Target(name, endpoint)
    folder, truth = source_of(audit, name, lab), ""
    if lab is not None and name.startswith(LAB):
        truth = (
            f"saw the rows {2 * lab.copies} times" if name == CONTAMINATED else "never saw the rows"
        )
    return Target(name_of(name), load_model(audit.model, str(folder)), truth, str(folder))


def source_of(audit: Audit, name: str, lab: Lab | None) -> str | Path:
    """Folder or hub id of a local model."""
    is_of_lab = lab is not None and name.startswith(LAB)
    return lab.folder(name, audit.rows, audit.data) if is_of_lab else name


def findings_of(
    audit: Audit,
    target: Target,
    references: Sequence[str],
    n_resamples: int,
    keep: Callable[[dict[str, Finding]], None] | None = None,
) -> dict[str, Finding]:
    """Every method for one model, in the order of ``METHODS``; ChatError if an endpoint stops.

    A method that the access or the rows do not allow says why, and so do all of them where the
    target has no place (a dry run). Where the text alone tells the comparison rows apart, a method
    that uses them asks nothing. ``references`` are folders or hub ids of clean models for DICE.
    ``keep`` gets all that is there after each method.
    """

    def run(name: str, target: Target) -> Finding:
        if name == DCQ:
            return dcq(audit, target, n_resamples)
        if name == REPLICATION:
            return replication(audit, target)
        if name == RANKING:
            return ranking(audit, target)
        if name == MIN_K:
            return min_k(audit, target, n_resamples)
        return dice(audit, target, references)

    reasons, found = skip_reasons(audit), {}
    reading = [name for name in (RANKING, MIN_K) if not reasons[name]]
    if target.place is not None and reading:
        target, why = probed(audit.asked, target)
        reasons |= dict.fromkeys(reading, why)
    for name in METHODS:
        reason = reasons[name]
        if target.place is None:
            reason = reason or "dry run: nothing was asked"
        try:
            found[name] = Finding(why_not=reason) if reason else run(name, target)
        except (UnsupportedError, ValueError) as error:  # what a method cannot work with
            found[name] = Finding(why_not=" ".join(str(error).split()))
        if keep:
            keep(found)
    return found


def decide_all(
    audit: Audit, findings: Mapping[str, Mapping[str, Finding]], truths: Mapping[str, str]
) -> dict[str, Decided]:
    """The verdict on each model; two models are two audits."""
    return {
        model: decide(audit, model, truths.get(model, ""), of_model)
        for model, of_model in findings.items()
    }


def tables_of(
    audit: Audit,
    findings: Mapping[str, Mapping[str, Finding]],
    decided: Mapping[str, Decided],
    begins: Mapping[str, str] | None = None,
) -> dict[str, pd.DataFrame]:
    """``audit``, ``audit_verdicts``, ``audit_rows``, ``audit_lists``, ``audit_controls``.

    ``audit`` has the methods of every model (``verdict.decide``) with bos, what texts of a local
    model begin with (``Target.begins`` by model); ``audit_verdicts`` the verdict and the headline.
    """
    methods = pd.concat([one.methods for one in decided.values()], ignore_index=True)
    methods["bos"] = [(begins or {}).get(name, "") for name in methods["model"]]
    verdicts = [{"model": m, "verdict": one.word, "says": one.says} for m, one in decided.items()]
    lists = pd.DataFrame([one.of_list for one in decided.values()]).astype({"n_listed": "Int64"})
    return {
        "audit": methods.astype(dict.fromkeys(COUNTS, "Int64")),
        "audit_verdicts": pd.DataFrame(verdicts),
        "audit_rows": pd.concat([one.rows for one in decided.values()], ignore_index=True),
        "audit_lists": lists,
        "audit_controls": controls_table(audit, findings),
    }


def noticed_lines(methods: pd.DataFrame) -> list[str]:
    """What an audit of this size would have noticed: what it is, and a line for each method."""
    table = noticed.load()
    found = methods[methods["n_comparison"].gt(0)].drop_duplicates("method")
    if found.empty:
        return []
    return [noticed.INTRODUCTION] + [
        noticed.describe(table, row.method, row.n, row.n_comparison) for row in found.itertuples()
    ]


def controls_table(audit: Audit, findings: Mapping[str, Mapping[str, Finding]]) -> pd.DataFrame:
    """``audit_controls.csv``: the two files by their text alone, and levels next to each method.

    Method "comparison rows" is ``comparison.near_copies`` and ``comparison.by_text_alone``, with
    p_value, decides (are the files told apart by it?) and holds (did it come out as it should?).
    """
    rows = [
        {"model": model, "method": method} | row
        for model, of_model in findings.items()
        for method, controls in [
            (COMPARISON, (*audit.near_copies, *audit.text_alone)),
            *((method, found.levels) for method, found in of_model.items()),
        ]
        for row in controls
    ]
    table = pd.DataFrame(rows, columns=["model", "method", *CONTROLS])
    return table.astype(KINDS_OF_CELL)


def paper_tables(findings: Mapping[str, Mapping[str, Finding]]) -> dict[str, pd.DataFrame]:
    """The papers' own tables of every method that was run, ``audit_dcq`` and so on, by their names.

    Every row has its model; quizzes are the same for all.
    """
    parts: dict[str, list[pd.DataFrame]] = {}
    for of_model in findings.values():
        for name, table in [
            *(pair for found in of_model.values() for pair in found.tables.items()),
            ("audit_reciprocal", _reciprocal(of_model)),
        ]:
            parts.setdefault(name, []).append(table)
    tables = {name: pd.concat(of_name, ignore_index=True) for name, of_name in parts.items()}
    return {
        name: table if "model" in table else table.drop_duplicates(ignore_index=True)
        for name, table in tables.items()
        if len(table)
    }


def _reciprocal(of_model: Mapping[str, Finding]) -> pd.DataFrame:
    """Were completed instances also answered right (Appendix C of DCQ)? No row without both."""
    quiz, completed = (of_model.get(name) for name in (DCQ, REPLICATION))
    if quiz is None or completed is None or quiz.details.empty or completed.details.empty:
        return pd.DataFrame()
    scored = completed.details
    scored = scored[scored["rows"].eq("dataset") & scored["instruction"].eq(GUIDED)]
    labels = scored[["index", "verdict"]].dropna().rename(columns={"verdict": "judge"})
    both = instances_of(quiz.details).merge(labels, on="index")
    about = quiz.tables["audit_dcq"][["model", "dataset", "split"]].iloc[0].to_dict()
    if both.empty:
        return both
    return pd.DataFrame([about | reciprocal_row(both)]).drop(columns="verdict")


def write_tables(
    outputs: Outputs,
    audit: Audit,
    findings: Mapping[str, Mapping[str, Finding]],
    targets: Mapping[str, Target],
) -> dict[str, pd.DataFrame]:
    """The tables of what is there, by their names; an interrupted run keeps these."""
    decided = decide_all(audit, findings, {name: one.truth for name, one in targets.items()})
    begins = {name: one.begins for name, one in targets.items()}
    tables = tables_of(audit, findings, decided, begins)
    for name, table in (tables | paper_tables(findings)).items():
        outputs.write_table(name, table)
    return tables


def missing(names: Sequence[str], evidence: pd.DataFrame) -> dict[str, list[str]]:
    """Methods that have no row in ``audit.csv``, by model; a model with all of them is left out."""
    found = set(zip(evidence["model"], evidence["method"], strict=True))
    by_model = {
        name: [method for method in METHODS if (name, method) not in found] for name in names
    }
    return {name: methods for name, methods in by_model.items() if methods}


def worked_instances(audit: Audit, findings: Mapping[str, Finding], n: int = 2) -> pd.DataFrame:
    """The first rows of the dataset and what each method that was run made of them.

    Returns:
        text, quiz (the answers), first_piece, second_piece, completion, label (the judge's),
        min_k_score; columns of methods that were not run are missing.
    """
    table = pd.DataFrame({"text": audit.rows.passages[:n]})
    if len(answers := findings[DCQ].details):
        place = answers["position"]
        at = ("original at " + place + ": ").where(place.ne(""), "modified: ")
        said = at + answers["answer"].where(answers["answer"].ne(""), answers["status"])
        by_row = said.groupby(answers["index"]).agg("; ".join)
        table["quiz"] = by_row.reindex(audit.rows.rows["index"].head(n)).to_numpy()
    if len(scored := findings[REPLICATION].details):
        guided = scored[scored["instruction"].eq("guided") & scored["rows"].eq("dataset")].head(n)
        for name in ("first_piece", "second_piece", "completion"):
            table[name] = guided[name].to_numpy()
        table["label"] = guided["verdict"].to_numpy()
    if (scores := findings[MIN_K].scores) is not None:
        table["min_k_score"] = scores["score"].head(n).to_numpy()
    return table
