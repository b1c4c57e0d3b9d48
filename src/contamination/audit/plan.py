"""What a run would ask, said before anything is asked: calls, tokens, cost, time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch

from contamination.audit import comparison, completing, quizzing
from contamination.audit.asked import JUDGE, MODEL, PERTURBER, Asked, name_of
from contamination.audit.completing import OwnCompletions
from contamination.audit.finding import (
    COMPARING,
    DCQ,
    DICE,
    METHODS,
    MIN_K,
    NO_COMPARISON,
    RANKING,
    REPLICATION,
    Audit,
)
from contamination.audit.options import GIVEN, WRITTEN, source_of
from contamination.audit.quizzing import OwnQuiz
from contamination.audit.settings import LAB
from contamination.models.chat import Endpoint, Request, estimate
from contamination.models.exchange import body_of, input_tokens, output_limit
from contamination.models.prompt_log_probs import CHAT, known_form, probe_requests, score_requests
from contamination.models.source import located
from contamination.replication.instructions import LABELLED_TASKS

_LAB_PARAMETERS = 1_400_000
_GENERATED_IS_SLOWER = 20  # a token written against a token read, roughly
PROBE = "probe for log-probabilities"
IF_GIVEN = "if the address gives log-probabilities of prompts, which will be probed"
# Purpose, who is asked, everything at most, and whose price it has.
Batch = tuple[str, Endpoint, list[Request], str]


def _line(asked: Asked, name: str, who: Endpoint, requests: list[Request], role: str) -> str:
    """What is still to be asked, and what it costs at most."""
    return f"{name}: {estimate(who, requests, **asked.paying(role))}"


# Notebooks 02 and 03


def quiz_plan(own: OwnQuiz, asked: Asked) -> list[str]:
    """Calls, tokens, cost and time of the quizzes at most, one line each; no call is made.

    Perturbations that have to be asked for again come on top.
    """
    lines, n_quizzes = [], quizzing.N_QUIZZES + 1  # with the second perturbation
    if PERTURBER in asked.helpers and own.given is None:
        who = asked.helpers[PERTURBER]
        requests = quizzing.option_requests([own.rows], 2)
        lines.append(_line(asked, f"perturber {who.model}", who, requests, PERTURBER))
    texts = own.rows.instances
    n_letters = sum(len(text.encode()) for text in texts)
    n_tokens = 4 * n_quizzes * n_letters // completing.LETTERS_PER_TOKEN
    here = f"at most {n_quizzes * len(texts):,} quizzes, about {n_tokens:,} tokens here, no cost"
    for model in asked.models:
        line = f"{name_of(model)}: {here}"
        if isinstance(model, Endpoint):
            requests = quizzing.quiz_requests(asked, own.names, [own.rows], n_quizzes)
            line = _line(asked, name_of(model), model, requests, MODEL)
        lines.append(line)
    return lines


def completion_plan(own: OwnCompletions, asked: Asked) -> list[str]:
    """What a run of notebook 03 will ask of each model, one line each; no call is made."""
    prompts, model = [*own.prompts["prompt"], own.cheat_prompt], asked.models[0]
    lines = [f"{name_of(model)}: {len(prompts):,} prompts here, no cost"]
    if isinstance(model, Endpoint):
        requests = completing.completion_requests(prompts, asked)
        lines = [_line(asked, name_of(model), model, requests, MODEL)]
    if JUDGE in asked.helpers:
        who = asked.helpers[JUDGE]
        requests = completing.longest_judgements(own.prompts["second_piece"], asked)
        lines.append(_line(asked, f"judge {who.model}", who, requests, JUDGE))
    return lines


# An audit


def why_not(audit: Audit) -> dict[str, str]:
    """For each method "" if it will be run, else why not."""
    model, data = audit.model, audit.data
    local = not model.base_url
    reasons = dict.fromkeys(METHODS, "")
    if data.task in LABELLED_TASKS and not data.label_column:
        reasons[REPLICATION] = f"prompts of {data.task} show the label, and label_column is empty"
    else:
        try:
            for rows in audit.quizzed:
                completing.cut_pieces(audit, rows)
        except ValueError as error:
            reasons[REPLICATION] = str(error)
    if audit.unseen is None:
        reasons[MIN_K] = NO_COMPARISON
    if not local:
        reasons[DICE] = "DICE reads hidden states, which an address does not give"
    elif len(model.reference_models) < 2:
        reasons[DICE] = "reference_models names fewer than two clean models of the same base"
    if audit.refusal:
        reasons |= {name: audit.refusal for name in COMPARING if not reasons[name]}
    return reasons


def probed_methods(audit: Audit) -> list[str]:
    """Methods that are run only if a probe finds log-probabilities at the address."""
    if not audit.asked.endpoints:
        return []
    reasons = why_not(audit)
    return [name for name in (RANKING, MIN_K) if not reasons[name]]


def batches_of(audit: Audit, endpoint: Endpoint) -> list[Batch]:
    """Everything that is asked at most because of one audited model."""
    asked, helpers = audit.asked, audit.asked.helpers
    if audit.refusal:
        return []
    found = [(DCQ, endpoint, quizzing.quiz_requests(asked, audit.names, audit.quizzed), MODEL)]
    if source_of(audit.rows, asked) == WRITTEN:
        requests = quizzing.option_requests(audit.quizzed)
        found.append(("options of the quizzes", helpers[PERTURBER], requests, PERTURBER))
    if not why_not(audit)[REPLICATION]:
        prompts = completing.audit_prompts(audit)
        requests = completing.completion_requests(prompts["prompt"], asked)
        found.append((REPLICATION, endpoint, requests, MODEL))
        if JUDGE in helpers:
            requests = completing.longest_judgements(prompts["second_piece"], asked)
            found.append(("ICL judge", helpers[JUDGE], requests, JUDGE))
    form = known_form(endpoint)
    if not form:
        found.append((PROBE, endpoint, probe_requests(), MODEL))
        form = CHAT  # the one that takes most, of those that the probe may find
    passages = [text for rows in audit.sets for text in rows.passages]
    for name, texts in ((MIN_K, passages), (RANKING, quizzing.ranking_texts(audit))):
        if name in probed_methods(audit):
            found.append((name, endpoint, score_requests(texts, form), MODEL))
    return found


def plan_table(audit: Audit) -> pd.DataFrame:
    """``audit_cost.csv``: what a run takes at most, nothing of it being in the response log.

    One row for each model and method. input_tokens are a cautious estimate, output_tokens and
    cost (empty without a price) the most; a local model makes no calls.
    """
    reasons, rows = why_not(audit), []
    for endpoint in audit.asked.endpoints:
        for name, who, requests, role in batches_of(audit, endpoint):
            bodies, price = [body_of(who, one) for one in requests], audit.asked.prices[role]
            n_in = sum(map(input_tokens, bodies))
            n_out = sum(output_limit(body) or 0 for body in bodies)
            row = {"model": who.model, "method": name, "is_run": not reasons.get(name)}
            row |= {"reason": "", "n_calls": len(bodies), "price_date": price.date if price else ""}
            row |= {"input_tokens": n_in, "output_tokens": n_out}
            rows.append(row | {"cost": price.of(n_in, n_out) if price else None})
        about = {"model": endpoint.model, "is_run": False}
        rows += [about | {"method": n, "reason": why} for n, why in reasons.items() if why]
    for model in _local(audit):
        for name, (n_read, n_written) in local_tokens(audit).items():
            reason = reasons[name]
            row = {"model": name_of(model), "method": name, "is_run": not reason, "reason": reason}
            row |= {"n_calls": 0, "cost": 0.0, "input_tokens": 0 if reason else n_read}
            rows.append(row | {"output_tokens": 0 if reason else n_written})
    columns = ["model", "method", "is_run", "reason", "n_calls", "input_tokens", "output_tokens"]
    table = pd.DataFrame(rows).reindex(columns=[*columns, "cost", "price_date"])
    return table.astype(dict.fromkeys(["n_calls", "input_tokens", "output_tokens"], "Int64"))


def _local(audit: Audit) -> list[str]:
    return [model for model in audit.asked.models if isinstance(model, str)]


def local_tokens(audit: Audit) -> dict[str, tuple[int, int]]:
    """What a local model reads and writes: by method, tokens read and tokens written, roughly."""

    def tokens(texts: Sequence[str]) -> int:
        return sum(len(text.encode()) for text in texts) // completing.LETTERS_PER_TOKEN

    sizes = [tokens(rows.instances) for rows in audit.quizzed]
    n_prompts = 5 * sizes[0] + sum(sizes[1:])
    return {
        DCQ: (5 * sum(sizes), 0),
        REPLICATION: (n_prompts, n_prompts),
        RANKING: (4 * sum(sizes), 0),
        MIN_K: (tokens([text for rows in audit.sets for text in rows.passages]), 0),
        DICE: (sizes[0] * (1 + len(audit.model.reference_models)), 0),
    }


def announce_audit(audit: Audit) -> str:
    """What is still to be asked, one line each, the most that it may cost, and the cap."""
    asked, reasons = audit.asked, why_not(audit)
    lines = [
        _line(asked, f"{purpose}, {who.model}", who, *rest)
        for endpoint in asked.endpoints
        for purpose, who, *rest in batches_of(audit, endpoint)
    ]
    if methods := probed_methods(audit):
        lines.append(f"{' and '.join(methods)}: will be run {IF_GIVEN}")
    speed = _flops_per_second() if _local(audit) else 0.0
    for model in _local(audit):
        tokens = [pair for name, pair in local_tokens(audit).items() if not reasons[name]]
        n_read, n_written = (sum(part) for part in zip((0, 0), *tokens, strict=True))
        lines.append(
            f"{name_of(model)}: no calls, no cost; about {n_read:,} tokens to read and "
            f"{n_written:,} to write here, {_seconds(model, n_read, n_written, speed)}"
        )
    source = source_of(audit.rows, asked)
    if source != GIVEN:
        lines.append(f"options of the quizzes: {source}")
    if audit.unseen is not None:
        lines.append(comparison.said(audit.text_alone, *audit.near_copies))
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
    if not n_parameters and (folder := Path(located(model))).is_dir():
        n_parameters = sum(path.stat().st_size for path in folder.glob("*.safetensors")) // 4
    if not n_parameters:
        return "how long is not known before it is loaded"
    seconds = 2 * n_parameters * (n_read + _GENERATED_IS_SLOWER * n_written) / speed
    rest = ", and 1 to 3 minutes the first time, to train it" if model.startswith(LAB) else ""
    return f"roughly {math.ceil(seconds / 10) * 10} s on this processor{rest}"
