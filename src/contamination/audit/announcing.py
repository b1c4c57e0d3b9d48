"""The plan of an audit in words, before anything is asked: calls, tokens, cost, time."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pandas as pd
import torch

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
from contamination.models.source import resolve_path

_LAB_PARAMETERS = 1_400_000
_GENERATED_IS_SLOWER = 20  # a token written against a token read, roughly
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
    speed = _flops_per_second() if local_models(audit) else 0.0
    for model in local_models(audit):
        tokens = [pair for name, pair in local_tokens(audit).items() if not reasons[name]]
        n_read, n_written = (sum(part) for part in zip((0, 0), *tokens, strict=True))
        lines.append(
            f"{name_of(model)}: no calls, no cost; about {n_read:,} tokens to read and "
            f"{n_written:,} to write here, {_seconds(model, n_read, n_written, speed)}"
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


def _flops_per_second() -> float:
    """What this machine multiplies in a tenth of a second."""
    one = torch.ones(512, 512)
    n_done, start = 0, time.perf_counter()
    while time.perf_counter() - start < 0.1:
        one @ one
        n_done += 1
    return n_done * 2 * 512**3 / (time.perf_counter() - start)


def _seconds(model: str, n_read: int, n_written: int, speed: float) -> str:
    n_parameters = _LAB_PARAMETERS if model.startswith(LAB) else 0
    if not n_parameters and (folder := Path(resolve_path(model))).is_dir():
        n_parameters = sum(path.stat().st_size for path in folder.glob("*.safetensors")) // 4
    if not n_parameters:
        return "how long is not known before it is loaded"
    seconds = 2 * n_parameters * (n_read + _GENERATED_IS_SLOWER * n_written) / speed
    rest = ", and 1 to 3 minutes the first time, to train it" if model.startswith(LAB) else ""
    return f"roughly {math.ceil(seconds / 10) * 10} s on this processor{rest}"
