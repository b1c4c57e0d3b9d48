"""The plan of an audit in words, before anything is asked: calls, tokens and cost."""

from __future__ import annotations

import pandas as pd

from contamination.audit import comparison
from contamination.audit.options import RULE, WRITTEN, source_of
from contamination.audit.plan import (
    batches_of,
    local_models,
    local_tokens,
    plan_table,
    probed_methods,
    quizzed_instances,
    skip_reasons,
)
from contamination.audit.prepared import DCQ, RANKING, Audit, name_of
from contamination.audit.settings import LAB
from contamination.models.chat import estimate
from contamination.models.prompt_log_probs import known_form

IF_GIVEN = "if the address gives log-probabilities of prompts, which will be probed"


def announce_audit(audit: Audit) -> str:
    """What is still to be asked, one line each, the most that it may cost, and the cap."""
    asked, reasons = audit.asked, skip_reasons(audit)
    lines = [
        f"{purpose}, {who.model}: {estimate(who, batch, **asked.paying(role))}"
        for endpoint in asked.endpoints
        for purpose, who, batch, role in batches_of(audit, endpoint, known_form(endpoint))
    ]
    if methods := probed_methods(audit):
        lines.append(f"{' and '.join(methods)}: will be run {IF_GIVEN}")
    for model in local_models(audit):
        tokens = [pair for name, pair in local_tokens(audit).items() if not reasons[name]]
        n_read, n_written = (sum(part) for part in zip((0, 0), *tokens, strict=True))
        lines.append(
            f"{name_of(model)}: no calls, no cost; about {n_read:,} tokens to read and "
            f"{n_written:,} to write here{_of_lab(model)}"
        )
    source = source_of(audit.rows, asked)
    if source == WRITTEN:
        lines.append(f"options of the quizzes: {source}")
    elif source == RULE and not (reasons[DCQ] and reasons[RANKING]):
        n_can = sum(map(len, quizzed_instances(audit)))
        n_rows = sum(len(rows.rows) for rows in audit.quizzed)
        lines.append(f"options of the quizzes: {source}, which {n_can} of {n_rows} rows allow")
    if audit.unseen is not None:
        lines.append(comparison.describe_check(audit.text_alone, *audit.near_copies))
    if asked.endpoints and not audit.refusal:
        whole = plan_table(audit)["cost"].sum(min_count=1)
        cost = "unknown without prices" if pd.isna(whole) else f"at most {whole:.2f}"
        cap = "no cap is set" if asked.cap is None else f"cap {asked.cap:.2f}"
        lines.append(f"all of it, nothing being in the log: {cost} ({cap})")
    return "\n".join(lines)


def _of_lab(model: str) -> str:
    return ", and 1 to 3 minutes the first time, to train it" if model.startswith(LAB) else ""
