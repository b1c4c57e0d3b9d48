"""An audit from its parameters to its tables: prepare, ask model by model, collect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit import rows as loading
from contamination.audit.lab_models import Lab
from contamination.audit.methods import Finding, Target, dice, min_k, replication
from contamination.audit.plan import (
    DCQ,
    DICE,
    METHODS,
    MIN_K,
    NO_COMPARISON,
    RANKING,
    REPLICATION,
    Audit,
    name_of,
    why_not,
)
from contamination.audit.quizzing import dcq, ranking
from contamination.audit.settings import (
    CONTAMINATED,
    LAB,
    Data,
    Model,
    asked_of,
    check_data,
    endpoints_of,
)
from contamination.evidence.panel import not_run, panel
from contamination.models import bos
from contamination.models.causal import CausalLM, load_causal_lm

COUNTS = ("n_valid", "n_refused", "n_error")


def prepare(
    model: Mapping[str, Any],
    data: Mapping[str, Any],
    comparison: str,
    n_instances: int,
    n_passages: int,
    seed: int,
) -> Audit:
    """Settings read, rows loaded and cleaned; nothing is asked and no model is loaded.

    Args:
        model, data: settings, see ``settings.Model`` and ``settings.Data``.
        comparison: file or hub id of rows that the model cannot have seen, "" for none.
        n_instances: rows for all methods but Min-k% Prob, which takes n_passages.
        seed: of samples, cuts and rule-made options.

    Raises:
        ParameterError, ValueError, FileNotFoundError: in one line.
    """
    who, what = Model.read(model, "model"), Data.read(data, "data")
    names = check_data(what)
    asked = asked_of(who, f"audit {' '.join(names)}")
    n = max(n_instances, n_passages)
    found = loading.load(what, what.dataset, what.split, n, seed, revision=what.revision)
    unseen = None
    if comparison:
        known = loading.texts_of(found)
        unseen = loading.load(what, comparison, what.comparison_split, n, seed, unlike=known)
    return Audit(who, what, asked, names, found, unseen, n_instances, seed)


def target_of(audit: Audit, name: str, lab: Lab) -> Target:
    """One audited model, loaded or trained where it is a local one."""
    for endpoint in endpoints_of(audit.model):
        if endpoint.model == name:
            return Target(name, endpoint)
    folder, truth = source_of(audit, name, lab), ""
    if name.startswith(LAB):
        truth = f"read {2 * lab.copies} times" if name == CONTAMINATED else "not read"
    lm = load_causal_lm(folder, dtype=audit.model.dtype, bos=bos.wanted(audit.model.bos))
    return Target(name_of(name), lm, truth, str(folder))


def source_of(audit: Audit, name: str, lab: Lab) -> str | Path:
    """Folder or hub id of a local model."""
    if not name.startswith(LAB):
        return name
    return lab.folder(name, audit.rows, audit.data, audit.names)


def findings_of(
    audit: Audit,
    target: Target,
    clean_lm: CausalLM | None,
    references: Sequence[str],
    n_resamples: int,
) -> dict[str, Finding]:
    """Every method for one model, in the order of ``plan.METHODS``.

    A method that the access or the rows do not allow has a row that says why.

    Args:
        audit, target: what is asked.
        clean_lm: a small model that has read none of it, as a control, or None.
        references: folders or hub ids of clean models, for DICE.
        n_resamples: bootstrap resamples of every interval.

    Raises:
        ChatError: if an endpoint stops answering or the cap is reached.
    """
    quizzes: list[pd.DataFrame] = []

    def run_dcq() -> Finding:
        found, made = dcq(audit, target, clean_lm, n_resamples)
        quizzes.append(made)
        return found

    def run_ranking() -> Finding:
        if not quizzes:
            raise ValueError("the quizzes have no options, see DCQ")
        return ranking(audit, target, clean_lm, quizzes[0])

    runs: dict[str, Callable[[], Finding]] = {
        DCQ: run_dcq,
        REPLICATION: lambda: replication(audit, target),
        RANKING: run_ranking,
        MIN_K: lambda: min_k(audit, target, clean_lm, n_resamples),
        DICE: lambda: dice(audit, target, references),
    }
    reasons, found = why_not(audit), {}
    for name in METHODS:
        reason = "" if reasons[name] == NO_COMPARISON else reasons[name]
        try:
            found[name] = runs[name]() if not reason else _not_run(audit, target, name, reason)
        except ValueError as error:  # what a method says it cannot work with
            found[name] = _not_run(audit, target, name, " ".join(str(error).split()))
    begins = target.place.identity["bos"] if isinstance(target.place, CausalLM) else ""
    return {name: replace(one, bos=begins) for name, one in found.items()}


def dry_findings(audit: Audit) -> dict[str, dict[str, Finding]]:
    """A row for each model and method, none of them run."""
    found = {}
    for name in audit.model.names:
        target = Target(name_of(name), None)
        reasons = why_not(audit)
        found[target.name] = {
            method: _not_run(audit, target, method, reasons[method] or "dry run: nothing was asked")
            for method in METHODS
        }
    return found


def _not_run(audit: Audit, target: Target, method: str, reason: str) -> Finding:
    dataset = " ".join(audit.names)
    return Finding(not_run(target.name, dataset, target.truth, method, reason))


def audit_table(findings: Mapping[str, Mapping[str, Finding]]) -> pd.DataFrame:
    """``audit.csv``: the panel, with what its answers rest on.

    Args:
        findings: model to method to finding.

    Returns:
        Columns of ``evidence.panel.panel``, then n_valid, n_refused and n_error over
        all answers of an endpoint or a quiz, those of controls included; empty
        where nothing was answered. Last, bos: whether texts of a local model begin
        with the beginning-of-sequence token, "first" or "none".
    """
    all_of = [found for of_model in findings.values() for found in of_model.values()]
    table = panel([found.evidence for found in all_of])
    for name in COUNTS:
        table[name] = pd.array([found.counts.get(name) for found in all_of], dtype="Int64")
    table["bos"] = [found.bos for found in all_of]
    return table


def controls_table(findings: Mapping[str, Mapping[str, Finding]]) -> pd.DataFrame:
    """``audit_controls.csv``: every control of every method.

    Returns:
        model, method, control, n, value, ci_low, ci_high, decides (whether the
        verdict takes it into account; the others are there to be read). Rows that
        begin with "gap to" hold a difference of shares, -1 to 1.
    """
    rows = [
        {"model": model, "method": method} | row
        for model, of_model in findings.items()
        for method, found in of_model.items()
        for row in found.controls
    ]
    columns = ["model", "method", "control", "n", "value", "ci_low", "ci_high", "decides"]
    return pd.DataFrame(rows, columns=columns)


def quiz_of(finding: Finding, index: int) -> str:
    """How one instance was answered, for display: "modified: E; original at B: B"."""
    answers = finding.details[finding.details["index"] == index]
    parts = [
        f"{'original at ' + row.position if row.position else row.quiz}: {row.answer or row.status}"
        for row in answers.itertuples()
    ]
    return "; ".join(parts)


def worked_instances(audit: Audit, findings: Mapping[str, Finding], n: int = 3) -> pd.DataFrame:
    """The first rows of the dataset and what each method that was run made of them.

    Returns:
        text, quiz (the answers), first_piece, second_piece, completion, judged,
        min_k_score; columns of methods that were not run are missing.
    """
    rows = audit.rows.rows.head(n)
    table = pd.DataFrame({"text": audit.rows.passages[:n]})
    if len(findings[DCQ].details):
        table["quiz"] = [quiz_of(findings[DCQ], index) for index in rows["index"]]
    if len(findings[REPLICATION].details):
        scored = findings[REPLICATION].details
        guided = scored[scored["instruction"].eq("guided") & scored["rows"].eq("dataset")].head(n)
        for name in ("first_piece", "second_piece", "completion", "verdict"):
            table[name] = guided[name].to_numpy()
    if len(findings[MIN_K].details):
        table["min_k_score"] = findings[MIN_K].details["score"].head(n).to_numpy()
    return table
