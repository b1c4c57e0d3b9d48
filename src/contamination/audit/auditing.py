"""An audit from its settings to its tables: the command and notebook 10 both call this.

What loads models is imported where it is used, since torch takes seconds: an audit that is
refused, or whose files are told apart without a model, needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit import comparison, logs
from contamination.audit import rows as read
from contamination.audit.finding import Finding, Target
from contamination.audit.plan import DCQ, MIN_K, RANKING, REPLICATION, Audit
from contamination.audit.rows import Rows
from contamination.audit.settings import CONTAMINATED, LAB, Settings
from contamination.audit.verdict import COUNTS, Decided, decide
from contamination.dcq.published_tables import reciprocal_row
from contamination.dcq.quizzes import instances_of
from contamination.models.chat import UnsupportedError
from contamination.replication.instructions import GUIDED

CONTROLS = ["control", "n", "value", "ci_low", "ci_high", "p_value", "decides", "holds"]
QUICKEST_FIRST = (MIN_K, RANKING, DCQ, REPLICATION)  # so that an interrupted audit has most
DRY = "dry run: nothing was asked"
Found = Mapping[str, Mapping[str, Finding]]  # by model and method


def prepare(told: Settings, loaded: tuple[Rows, Rows | None] | None = None) -> Audit:
    """Rows loaded, cleaned and compared by their text alone; no model is loaded or asked.

    ``loaded`` are the rows of dataset and comparison, if they have been read before.

    Raises:
        ValueError, FileNotFoundError: in one line.
    """
    if told.replication.human_labels:
        read.read_labels(told.replication.human_labels)
    if told.model.log_probs:
        logs.read_log_probs(told.model.log_probs)
    n = max(told.n_instances, told.n_passages)
    audit = Audit(
        told, *(loaded or read.load_with_comparison(told.data, told.comparison, n, told.seed))
    )
    if audit.unseen is None:
        return audit
    sets = [audit.scored_texts(of_file) for of_file in audit.sets]
    text_alone = comparison.by_text_alone(*sets, told.seed)
    copies = (comparison.near_copies(*sets),)
    refusal = comparison.refusal(text_alone)
    return replace(audit, text_alone=text_alone, near_copies=copies, refusal=refusal)


def rows_table(audit: Audit) -> pd.DataFrame:
    """What was loaded and what was left out: rows, and the counts of ``rows.Rows``."""
    sets = zip(("dataset", "comparison"), audit.sets, strict=False)
    return pd.DataFrame([{"file": name, **(rows.counts or {})} for name, rows in sets])


def checks_table(audit: Audit) -> pd.DataFrame:
    """``audit_controls.csv``: the dataset against the comparison rows without any model.

    A row each for ``comparison.near_copies`` and ``comparison.by_text_alone``; none without
    comparison rows.
    """
    table = pd.DataFrame([*audit.near_copies, *audit.text_alone], columns=CONTROLS)
    return table.astype({"decides": "boolean", "holds": "boolean"})


def target_of(audit: Audit, name: str) -> Target:
    """One audited model, loaded or trained where it is a local one."""
    model = audit.told.model
    for endpoint in audit.told.endpoints:
        if endpoint.model == name:
            return Target(name, endpoint)
    if model.log_probs:
        values = logs.read_log_probs(model.log_probs)
        return Target(name, logs.by_text(values, audit.rows, audit.unseen))
    from contamination.audit.local_models import load_model

    truth = ""
    if name.startswith(LAB):
        n_read = 2 * audit.told.copies
        truth = f"saw the rows {n_read} times" if name == CONTAMINATED else "never saw the rows"
    lm = load_model(model, str(source_of(audit, name)))
    return Target(model.name_of(name), lm, truth, identity=lm.identity)


def source_of(audit: Audit, name: str) -> str | Path:
    """Folder or hub id of a local model; one of the lab is trained if it is not in the cache."""
    if not name.startswith(LAB):
        return name
    from contamination.audit.local_models import lab_folder

    return lab_folder(audit.told, name, audit.rows)


def run(
    audit: Audit,
    found: dict[str, dict[str, Finding]],
    targets: dict[str, Target],
    measure: Callable[[Audit, Target], Any] | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> list[Any]:
    """Every method for every model, written into ``found`` and ``targets`` as it is done.

    So what was found is there if the audit is interrupted. A model is loaded only if some method
    will read it, and one at a time: two large ones do not fit. ``measure`` (``power.measure``) is
    called while a model is loaded, and what it gave is returned. ``announce`` is told which method
    comes next.
    """
    powers = []
    for name in audit.told.model.names:
        is_asked = not audit.told.dry_run and not all(audit.reasons.values())
        called = audit.told.model.name_of(name)
        target = target_of(audit, name) if is_asked else Target(called, None)
        targets[target.name], found[target.name] = target, {}
        findings_of(audit, target, found[target.name], announce)
        if measure and is_asked:
            powers.append(measure(audit, target))
        if target.identity:
            targets[target.name] = replace(target, place=None)
    return powers


def findings_of(
    audit: Audit,
    target: Target,
    found: dict[str, Finding] | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> dict[str, Finding]:
    """Every method for one model, the quickest first; ChatError if an endpoint stops.

    A method that the access or the rows do not allow says why, and so do all of them where the
    target has no place (a dry run). ``found`` gets each finding as it is there.
    """
    reasons, found = dict(audit.reasons), {} if found is None else found
    reading = [name for name in (RANKING, MIN_K) if not reasons[name]]
    if target.place is not None and reading:
        from contamination.audit.internals import probed

        target, why = probed(audit.told, target)
        reasons |= dict.fromkeys(reading, why)
    for name in QUICKEST_FIRST:
        reason = reasons[name] or DRY * (target.place is None)
        if not reason:
            announce(f"{target.name}: {name} ...")
        try:
            found[name] = Finding(why_not=reason) if reason else _run(name, audit, target)
        except (UnsupportedError, ValueError) as error:  # what a method cannot work with
            found[name] = Finding(why_not=" ".join(str(error).split()))
    return found


def _run(name: str, audit: Audit, target: Target) -> Finding:
    from contamination.audit import completing, internals, quizzing

    methods = {DCQ: quizzing.dcq, REPLICATION: completing.replication}
    methods |= {RANKING: quizzing.ranking, MIN_K: internals.min_k}
    return methods[name](audit, target)


def decide_all(audit: Audit, findings: Found, targets: Mapping[str, Target]) -> dict[str, Decided]:
    """The verdict on each model; two models are two audits."""
    truths = {name: one.truth for name, one in targets.items()}
    return {
        model: decide(audit, model, truths.get(model, ""), of_model)
        for model, of_model in findings.items()
    }


def tables_of(
    audit: Audit, findings: Found, targets: Mapping[str, Target]
) -> dict[str, pd.DataFrame]:
    """``audit``, ``audit_verdicts``, ``audit_rows``, ``audit_lists``, ``audit_controls``.

    ``audit`` has the methods of every model (``verdict.decide``) with bos, what texts of a local
    model begin with (``Target.begins``); ``audit_verdicts`` the verdict and the headline.
    """
    decided = decide_all(audit, findings, targets)
    methods = pd.concat([one.methods for one in decided.values()], ignore_index=True)
    begins = {name: one.begins for name, one in targets.items()}
    methods["bos"] = [begins.get(name, "") for name in methods["model"]]
    verdicts = [{"model": m, "verdict": one.word, "says": one.says} for m, one in decided.items()]
    lists = pd.DataFrame([one.of_list for one in decided.values()]).astype({"n_listed": "Int64"})
    return {
        "audit": methods.astype(dict.fromkeys(COUNTS, "Int64")),
        "audit_verdicts": pd.DataFrame(verdicts),
        "audit_rows": pd.concat([one.rows for one in decided.values()], ignore_index=True),
        "audit_lists": lists,
        "audit_controls": checks_table(audit),
    }


def paper_tables(findings: Found) -> dict[str, pd.DataFrame]:
    """The papers' own tables of every method that was run, ``audit_dcq`` and so on, by their names.

    Every row has its model; quizzes are the same for all.
    """
    parts: dict[str, list[pd.DataFrame]] = {}
    for of_model in findings.values():
        pairs = [pair for found in of_model.values() for pair in found.tables.items()]
        for name, table in [*pairs, ("audit_reciprocal", _reciprocal(of_model))]:
            parts.setdefault(name, []).append(table)
    tables = {name: pd.concat(of_name, ignore_index=True) for name, of_name in parts.items()}
    return {
        name: table if "model" in table else table.drop_duplicates(ignore_index=True)
        for name, table in tables.items()
        if len(table)
    }


def _reciprocal(of_model: Mapping[str, Finding]) -> pd.DataFrame:
    """Were completed instances also answered right (Appendix C of DCQ)? No row without both."""
    quiz, completed = (of_model.get(name, Finding()) for name in (DCQ, REPLICATION))
    if quiz.details.empty or completed.details.empty:
        return pd.DataFrame()
    scored = completed.details
    scored = scored[scored["rows"].eq("dataset") & scored["instruction"].eq(GUIDED)]
    labels = scored[["index", "verdict"]].dropna().rename(columns={"verdict": "judge"})
    both = instances_of(quiz.details).merge(labels, on="index")
    about = quiz.tables["audit_dcq"][["model", "dataset", "split"]].iloc[0].to_dict()
    if both.empty:
        return both
    return pd.DataFrame([about | reciprocal_row(both)]).drop(columns="verdict")
