"""What an audit may say, built from its tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from contamination.audit.options import GIVEN, RULE, source_of
from contamination.audit.plan import Audit, why_not
from contamination.evidence.panel import (
    CANNOT_TELL,
    CONTROL_FORBIDS,
    NOT_RECOGNISED,
    NOT_RUN,
    RECOGNISED,
)

LEFT_OUT = {
    "n_empty": "empty",
    "n_short": "too short",
    "n_unlabelled": "without a label",
    "n_repeated": "repeated",
    "n_shared": "also in the dataset",
}


def rows_sentence(audit: Audit) -> str:
    """What was loaded and what was left out, of the dataset and of the comparison."""
    parts = [f"dataset {_counted(audit.rows.counts)}"]
    if audit.unseen is not None:
        parts.append(f"comparison {_counted(audit.unseen.counts)}")
    text = f"Rows: {'; '.join(parts)}. "
    text += f"Quizzed and completed: at most {audit.n_quizzed} of each. "
    source = source_of(audit.rows, audit.asked)
    text += f"The quiz's options are {source}."
    if source == RULE:
        text += " The rule knows English words alone and leaves out rows that hold too few of them."
    return text


def _counted(counts: Mapping[str, int]) -> str:
    out = [f"{counts[name]:,} {what}" for name, what in LEFT_OUT.items() if counts[name]]
    text = f"{counts['n']:,} of {counts['n_rows']:,} rows"
    return text + (f" (left out: {', '.join(out)})" if out else "")


def access_sentence(audit: Audit) -> str:
    """Which methods the access allows, and why not the others."""
    reasons = why_not(audit)
    text = f"To be run: {', '.join(name for name, why in reasons.items() if not why)}."
    lacking = [f"{name} ({why})" for name, why in reasons.items() if why]
    return text + (f" Without a verdict: {'; '.join(lacking)}." if lacking else "")


def advice(table: pd.DataFrame) -> str:
    """One passage: for each model what its rows allow to be decided, and what to do next.

    Args:
        table: ``audit.csv``.
    """
    return " ".join(_advice_of(model, rows) for model, rows in table.groupby("model", sort=False))


def _advice_of(model: str, rows: pd.DataFrame) -> str:
    of = {name: rows.loc[rows["verdict"] == name, "method"].tolist() for name in rows["verdict"]}
    dataset, n_yes = rows["dataset"].iloc[0], len(of.get(RECOGNISED, []))
    decided = n_yes + len(of.get(NOT_RECOGNISED, [])) + len(of.get(CONTROL_FORBIDS, []))
    if n_yes:
        return (
            f"{model}: do not take its score on {dataset} at face value; {n_yes} of {decided} "
            f"methods with a verdict ({', '.join(of[RECOGNISED])}) recognise rows beyond every "
            "control. Score it on rows that it cannot have seen."
        )
    if CONTROL_FORBIDS in of:
        return (
            f"{model}: no sign beyond the controls that it read {dataset}. Above chance, as is a "
            f"control: {', '.join(of[CONTROL_FORBIDS])}. That is no ground to distrust the score, "
            "and no proof of a clean model; more rows or closer comparison rows could decide."
        )
    if NOT_RECOGNISED in of:
        return (
            f"{model}: no sign that it read {dataset}, by {', '.join(of[NOT_RECOGNISED])}. A small "
            "share of rows read, rows read once, and rewritten rows can escape all of them, so "
            "this is no proof."
        )
    why = rows.loc[rows["verdict"].isin([CANNOT_TELL, NOT_RUN]), ["method", "note"]]
    cures = "; ".join(f"{row.method}: {row.note}" for row in why.itertuples() if row.note)
    return f"{model}: nothing can be said about {dataset}. {cures}."


def option_sentence(audit: Audit) -> str:
    """How far options of this origin carry the quiz."""
    if source_of(audit.rows, audit.asked) == GIVEN:
        return ""
    return (
        "The originals are the only texts that nobody rewrote, so a model that writes well may "
        "prefer them without having read them: the quiz on unseen rows shows how often."
    )
