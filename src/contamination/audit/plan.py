"""What a run would ask, said before anything is asked: calls, tokens, cost, time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch

from contamination.audit import comparison, requests
from contamination.audit.prepared import (
    COMPARING,
    DCQ,
    DICE,
    JUDGE,
    METHODS,
    MIN_K,
    MODEL,
    NO_COMPARISON,
    PERTURBER,
    RANKING,
    REPLICATION,
    Audit,
    name_of,
)
from contamination.audit.requests import GIVEN, WRITTEN, source_of
from contamination.audit.settings import LAB
from contamination.models.chat import estimate
from contamination.models.exchange import Endpoint, Request, body_of, input_tokens, output_limit
from contamination.models.prompt_log_probs import CHAT, known_form, probe_requests, score_requests
from contamination.models.source import located
from contamination.replication.instructions import LABELLED_TASKS
from contamination.replication.prompts import NLI

_LAB_PARAMETERS = 1_400_000
_GENERATED_IS_SLOWER = 20  # a token written against a token read, roughly
PROBE = "probe for log-probabilities"
IF_GIVEN = "if the address gives log-probabilities of prompts, which will be probed"
NOT_ASKED = "not asked for"
# Purpose, who is asked, everything at most, and whose price it has.
Batch = tuple[str, Endpoint, list[Request], str]


def why_not(audit: Audit) -> dict[str, str]:
    """For each method "" if it will be run, else why not."""
    model, data = audit.model, audit.data
    reasons = {name: "" if name in audit.methods else NOT_ASKED for name in METHODS}
    if data.task in LABELLED_TASKS and not data.label_column:
        why = f"prompts of {data.task} show the label, and label_column is empty"
        reasons[REPLICATION] = reasons[REPLICATION] or why
    elif data.task != NLI and len(data.text_columns) > 1:
        why = f"prompts of {data.task} hold one text, text_columns names {len(data.text_columns)}"
        reasons[REPLICATION] = reasons[REPLICATION] or why
    elif not reasons[REPLICATION]:
        try:
            for rows in audit.quizzed:
                requests.cut_pieces(audit, rows)
        except ValueError as error:
            reasons[REPLICATION] = str(error)
    if audit.unseen is None:
        reasons[MIN_K] = reasons[MIN_K] or NO_COMPARISON
    if model.base_url:
        why = "DICE reads hidden states, which an address does not give"
        reasons[DICE] = reasons[DICE] or why
    elif len(audit.told.dice.reference_models) < 2:
        why = "reference_models names fewer than two clean models of the same base"
        reasons[DICE] = reasons[DICE] or why
    # A file that says which rows were seen is scored beside the classifiers of its words.
    of_labelled = {MIN_K} if data.member_column else set()
    if audit.refusal:
        refused = [name for name in COMPARING if not reasons[name] and name not in of_labelled]
        reasons |= dict.fromkeys(refused, audit.refusal)
    return reasons


def probed_methods(audit: Audit) -> list[str]:
    """Methods that are run only if a probe finds log-probabilities at the address."""
    if not audit.asked.endpoints:
        return []
    reasons = why_not(audit)
    return [name for name in (RANKING, MIN_K) if not reasons[name]]


def batches_of(audit: Audit, endpoint: Endpoint, form: str = "") -> list[Batch]:
    """Everything that is asked at most because of one audited model.

    ``form`` is that in which its address gives log-probabilities, if that is known already.
    """
    asked, reasons, found = audit.asked, why_not(audit), []
    will_quiz = not (reasons[DCQ] and reasons[RANKING])
    if not reasons[DCQ]:
        found.append((DCQ, endpoint, requests.quiz_requests(audit), MODEL))
    if will_quiz and source_of(audit.rows, asked) == WRITTEN:
        helper = asked.helpers[PERTURBER]
        found.append(("options of the quizzes", helper, requests.option_requests(audit), PERTURBER))
    if not reasons[REPLICATION]:
        prompts, more = requests.audit_prompts(audit), requests.cheat_prompts(audit)
        of_prompts = requests.completion_requests([*prompts["prompt"], *more], asked)
        found.append((REPLICATION, endpoint, of_prompts, MODEL))
        if JUDGE in asked.helpers:
            longest = requests.longest_judgements(prompts["second_piece"], asked)
            found.append(("ICL judge", asked.helpers[JUDGE], longest, JUDGE))
    probed = probed_methods(audit)
    if probed and not form:
        found.append((PROBE, endpoint, probe_requests(), MODEL))
    # The form that takes most, of those that the probe may find.
    texts = {MIN_K: [text for rows in audit.sets for text in rows.passages]}
    texts[RANKING] = requests.ranking_texts(audit)
    for name in (MIN_K, RANKING):
        if name in probed:
            found.append((name, endpoint, score_requests(texts[name], form or CHAT), MODEL))
    return found


def plan_table(audit: Audit) -> pd.DataFrame:
    """``audit_cost.csv``: what a run takes at most, nothing of it being in the response log.

    One row for each model and method. input_tokens are a cautious estimate, output_tokens and
    cost (empty without a price) the most; a local model makes no calls. Where comparison rows are
    told apart, which is found out afterwards, no method that needs them asks anything.
    """
    reasons, rows = why_not(audit), []
    for endpoint in audit.asked.endpoints:
        for name, who, batch, role in batches_of(audit, endpoint):
            bodies, price = [body_of(who, one) for one in batch], audit.asked.prices[role]
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
        return sum(len(text.encode()) for text in texts) // requests.LETTERS_PER_TOKEN

    sizes = [tokens(rows.instances) for rows in audit.quizzed]
    n_prompts = 5 * sizes[0] + sum(sizes[1:])
    return {
        DCQ: (5 * sum(sizes), 0),
        REPLICATION: (n_prompts, n_prompts),
        RANKING: (4 * sum(sizes), 0),
        MIN_K: (tokens([text for rows in audit.sets for text in rows.passages]), 0),
        DICE: (sizes[0] * (1 + len(audit.told.dice.reference_models)), 0),
    }


def announce_audit(audit: Audit) -> str:
    """What is still to be asked, one line each, the most that it may cost, and the cap."""
    asked, reasons = audit.asked, why_not(audit)
    lines = [
        f"{purpose}, {who.model}: {estimate(who, batch, **asked.paying(role))}"
        for endpoint in asked.endpoints
        for purpose, who, batch, role in batches_of(audit, endpoint, known_form(endpoint))
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
