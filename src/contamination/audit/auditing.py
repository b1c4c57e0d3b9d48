"""An audit from its parameters to its tables: prepare, ask model by model, collect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit import listed_rows
from contamination.audit.comparison import by_text_alone, near_copies, refusal
from contamination.audit.completing import replication
from contamination.audit.evidence import not_run, panel
from contamination.audit.finding import Finding, Target
from contamination.audit.internals import dice, min_k, probed
from contamination.audit.lab_models import Lab
from contamination.audit.local_models import load_model
from contamination.audit.plan import probed_methods, skip_reasons
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
from contamination.core.families import correct_family
from contamination.core.storage import Outputs
from contamination.core.tables import listed
from contamination.core.verdicts import CONTROL_FAILS, FOUND, OPEN, RULED_OUT
from contamination.dcq.deployment import instances_of
from contamination.dcq.published_tables import reciprocal_row
from contamination.models.causal import CausalLM
from contamination.models.chat import Endpoint
from contamination.replication.instructions import GUIDED

COMPARISON = "comparison rows"
CONTROLS = ["control", "n", "value", "ci_low", "ci_high", "decides", "chance", "p_value", "holds"]
CONTROLS += ["n_pairs"]
KINDS_OF_CELL = {"holds": "boolean", "n_pairs": "Int64"}
COUNTS = ("n_valid", "n_refused", "n_error")


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
    clean_lm: CausalLM | None,
    references: Sequence[str],
    n_resamples: int,
    keep: Callable[[dict[str, Finding]], None] | None = None,
) -> dict[str, Finding]:
    """Every method for one model, in the order of ``METHODS``; ChatError if an endpoint stops.

    A method that the access or the rows do not allow has a row that says why, and so have
    all of them where the target has no place (a dry run). Where the text alone tells the
    comparison rows apart, a method that uses them asks nothing: "control fails".
    ``clean_lm`` is a small model that has read none of it, ``references`` are folders or hub
    ids of clean models for DICE. ``keep`` gets all that is there after each method.
    """

    def unasked(method: str, reason: str) -> Finding:
        about = target.name, " ".join(audit.names), target.truth
        row = not_run(*about, method, reason)
        return Finding(replace(row, verdict=CONTROL_FAILS) if reason == audit.refusal else row)

    def run(name: str, target: Target) -> Finding:
        if name == DCQ:
            return dcq(audit, target, clean_lm, n_resamples)
        if name == REPLICATION:
            return replication(audit, target)
        if name == RANKING:
            return ranking(audit, target, clean_lm)
        if name == MIN_K:
            return min_k(audit, target, clean_lm, n_resamples)
        return dice(audit, target, references)

    reasons, found = skip_reasons(audit), {}
    if isinstance(target.place, Endpoint) and (methods := probed_methods(audit)):
        target, none = probed(audit.asked, target)
        reasons |= dict.fromkeys(methods, none)
    for name in METHODS:
        reason = reasons[name]
        if target.place is None:
            reason = reason or "dry run: nothing was asked"
        try:
            found[name] = unasked(name, reason) if reason else run(name, target)
        except ValueError as error:  # what a method says it cannot work with
            found[name] = unasked(name, " ".join(str(error).split()))
        if keep:
            keep(found)
    return found


def audit_table(
    findings: Mapping[str, Mapping[str, Finding]], begins: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """``audit.csv``: the panel, with what its answers rest on.

    The methods that an audit puts to one model are a family: p_adjusted is Holm's over them, and a
    verdict that it does not leave is open. Two models are two audits.

    Columns of ``evidence.panel``, then p_adjusted, then n_valid, n_refused and n_error over all
    answers of an endpoint or a quiz, those of controls included (empty where nothing was answered),
    and bos, what texts of a local model begin with (``Target.begins`` by model).
    """
    found = [one for of_model in findings.values() for one in of_model.values()]
    of_models = panel([one.evidence for one in found]).groupby("model", sort=False)
    table = pd.concat([correct_family(rows) for _, rows in of_models], ignore_index=True)
    for name in COUNTS:
        table[name] = pd.array([one.counts.get(name) for one in found], dtype="Int64")
    return table.assign(bos=[(begins or {}).get(name, "") for name in table["model"]])


def controls_table(audit: Audit, findings: Mapping[str, Mapping[str, Finding]]) -> pd.DataFrame:
    """``audit_controls.csv``: every control of every method.

    The verdict takes those into account that decide; the others are there to be read. Rows
    that begin with "gap to" hold a difference of shares, -1 to 1. Method "comparison rows" is
    ``comparison.near_copies`` and ``comparison.by_text_alone``, with chance, p_value and holds
    (is the control as it must be?); if one decides, nothing was compared. n_pairs counts the
    pairs of rows that a classifier of the text compares.
    """
    rows = [
        {"model": model, "method": method} | row
        for model, of_model in findings.items()
        for method, controls in [
            (COMPARISON, (*audit.near_copies, *audit.text_alone)),
            *((method, found.controls) for method, found in of_model.items()),
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
    return pd.DataFrame([about | reciprocal_row(both)] if len(both) else [])


def write_tables(
    outputs: Outputs,
    audit: Audit,
    findings: Mapping[str, Mapping[str, Finding]],
    begins: Mapping[str, str],
) -> None:
    """The tables of what is there; an interrupted run keeps these."""
    outputs.write_table("audit", audit_table(findings, begins))
    outputs.write_table("audit_controls", controls_table(audit, findings))
    rows, lists = listed_rows.listed_rows(audit, findings)
    outputs.write_table("audit_rows", rows)
    outputs.write_table("audit_lists", lists)
    for name, table in paper_tables(findings).items():
        outputs.write_table(name, table)


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
    if len(passages := findings[MIN_K].details):
        table["min_k_score"] = passages["score"].head(n).to_numpy()
    return table


def summarize_audit(model: str, rows: pd.DataFrame) -> str:
    """What its rows of ``audit.csv`` allow to be said, and what to do with the model's score."""
    of = {word: listed(part["method"].tolist()) for word, part in rows.groupby("verdict")}
    dataset = rows["dataset"].iloc[0]
    open_ = rows.loc[rows["verdict"].eq(OPEN) & rows["value"].notna(), "method"].tolist()
    undecided = f"{_begun(listed(open_))}: open. " if open_ else ""
    not_clean = f"{undecided}This does not prove that the model is clean."
    refused = rows[rows["verdict"].eq(CONTROL_FAILS) & rows["value"].isna()]
    if found := rows.loc[rows["verdict"].isin(FOUND), "method"].tolist():
        text = (
            f"{listed(found)}: it is shown that the model was trained on {dataset}, and no control "
            "explains the result. Do not take the model's score on this dataset at face "
            "value. Score the model on rows that it cannot have seen."
        )
    elif len(refused):
        names = listed(refused["method"].tolist())
        text = f"we did not run {names}, because {refused['note'].iloc[0]}."
    elif CONTROL_FAILS in of:
        text = (
            f"{of[CONTROL_FAILS]}: the value on {dataset} lies above chance, but so does that of a "
            f"control. This is no reason to distrust the score. {not_clean}"
        )
    elif RULED_OUT in of:
        text = (
            f"{of[RULED_OUT]}: an effect as large as the smallest effect of interest is ruled "
            f"out for {dataset}. {not_clean}"
        )
    elif undecided:
        text = f"no method shows anything about {dataset}. {not_clean}"
    else:
        notes = "; ".join((rows["method"] + ": " + rows["note"])[rows["note"].ne("")])
        text = f"we can say nothing about {dataset}. {notes}."
    return f"{model}: {text}"


def _begun(names: str) -> str:
    """Names as a sentence begins with them."""
    return names[:1].upper() + names[1:]
