"""What an audit would ask, said before anything is asked: calls, tokens, cost, time."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from contamination.audit.options import GIVEN, WRITTEN, source_of
from contamination.audit.rows import FEWEST_ROWS, Rows, head
from contamination.audit.settings import LAB, Asked, Data, Model, endpoints_of
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.contaminating import header
from contamination.dcq.perturbation import perturbation_request
from contamination.dcq.respondents import ChatRespondent
from contamination.judging import judge_requests
from contamination.models.chat import Endpoint, Price, Request, estimate
from contamination.models.exchange import body_of, input_tokens, output_limit
from contamination.overlap import words
from contamination.replication.completions import MAX_TOKENS, chat_requests
from contamination.replication.cutting import cut_rows
from contamination.replication.instructions import GUIDED, LABELLED_TASKS, prompts_of
from contamination.replication.prompts import JUDGE_PROMPT

DCQ, REPLICATION, RANKING = "DCQ", "replication", "option ranking"
MIN_K, DICE = "Min-k% Prob", "DICE"
METHODS = (DCQ, REPLICATION, RANKING, MIN_K, DICE)
NO_COMPARISON = "no comparison rows: name a file of rows that the model cannot have seen"
FEWEST_WORDS = 4  # of a piece: the rule judge calls no shorter one a match
_LETTERS_PER_TOKEN = 3  # as ``models.exchange.input_tokens`` counts them
_LAB_PARAMETERS = 1_400_000
_GENERATED_IS_SLOWER = 20  # a token written against a token read, roughly


@dataclass(frozen=True)
class Audit:
    """Everything that is asked about, before the first question.

    Attributes:
        model, data, asked: settings, see ``audit.settings``.
        names: dataset and split as the prompts say them.
        rows: the dataset: as many rows as Min-k% Prob scores, the first of them quizzed.
        unseen: rows that the model cannot have seen, or None.
        n_quizzed: rows of either that the other methods take.
        seed: of cuts and options.
    """

    model: Model
    data: Data
    asked: Asked
    names: tuple[str, str]
    rows: Rows
    unseen: Rows | None
    n_quizzed: int
    seed: int


def why_not(audit: Audit) -> dict[str, str]:
    """For each method "" if it will be run, else why not."""
    model, data = audit.model, audit.data
    local = not model.base_url
    reads = local or model.gives_log_probs
    no_log_probs = "the address gives no log-probabilities of a text (gives_log_probs)"
    reasons = dict.fromkeys(METHODS, "")
    if data.task in LABELLED_TASKS and not data.label_column:
        reasons[REPLICATION] = f"prompts of {data.task} show the label, and label_column is empty"
    else:
        try:
            for rows in filter(None, (audit.rows, audit.unseen)):
                _pieces(audit, head_of(audit, rows))
        except ValueError as error:
            reasons[REPLICATION] = str(error)
    reasons[RANKING] = "" if reads else no_log_probs
    reasons[MIN_K] = (NO_COMPARISON if audit.unseen is None else "") if reads else no_log_probs
    if not local:
        reasons[DICE] = "DICE reads hidden states, which an address does not give"
    elif len(model.reference_models) < 2:
        reasons[DICE] = "reference_models names fewer than two clean models of the same base"
    return reasons


def replication_prompts(audit: Audit, rows: Rows, only: Sequence[str] = ()) -> pd.DataFrame:
    """Every row under every instruction, or under some (``instructions.prompts_of``).

    A model that follows instructions gets those of Table 3; the form for one that
    does not is chosen where completions are written.
    """
    data, (dataset, split) = audit.data, audit.names
    pieces = _pieces(audit, rows)
    names = {"dataset": dataset, "split": split}
    names |= {"other_dataset": data.other_names[0], "other_split": data.other_names[1]}
    labels = sorted(audit.rows.rows[rows.label_column].unique()) if rows.label_column else []
    more_than_one = len(labels) > 1 or data.task not in LABELLED_TASKS
    if not only and not more_than_one:
        only = (GUIDED, "general", "wrong dataset", "wrong split")  # no label could be wrong
    found = prompts_of(pieces, data.task, labels=labels, instructions=only, **names)
    continued = prompts_of(
        pieces, data.task, labels=labels, instructions=only, form="continue", **names
    )
    return found.assign(
        continued=continued["prompt"], task=data.task, group=found["index"], **names
    )


def _pieces(audit: Audit, rows: Rows) -> pd.DataFrame:
    """The rows in two pieces; those with too few words for the judge are left out."""
    columns, cut = list(audit.data.text_columns), []
    for place in range(len(rows.rows)):
        with contextlib.suppress(ValueError):  # too few words
            one = rows.rows.iloc[[place]]
            how = {"seed": audit.seed, "min_words": FEWEST_WORDS}
            cut.append(cut_rows(one, audit.data.task, columns, rows.label_column, **how))
    pieces = [one for one in cut if len(words(one["second_piece"].iloc[0])) >= FEWEST_WORDS]
    if len(pieces) < FEWEST_ROWS:
        raise ValueError(
            f"{len(pieces)} of {len(rows.rows)} rows can be cut into two pieces of at least "
            f"{FEWEST_WORDS} words, at least {FEWEST_ROWS} are needed: longer texts, or a script "
            "that is written with spaces"
        )
    return pd.concat(pieces)


def _quizzes_at_most(rows: Rows) -> list[tuple[str, ...]]:
    # Options are not there yet: the originals stand for them, told apart by a number.
    return [
        (text, text, text, f"{text} {k}")
        for k in range(1 + len(POSITIONS))
        for text in rows.instances
    ]


def requests_of(audit: Audit, endpoint: Endpoint) -> dict[str, tuple[Endpoint, list[Request], int]]:
    """By what it is for: who is asked, everything at most, and the place of its price."""
    reasons = why_not(audit)
    sets = [rows for rows in (audit.rows, audit.unseen) if rows is not None]
    quizzed = [head_of(audit, rows) for rows in sets]
    found: dict[str, tuple[Endpoint, list[Request], int]] = {}
    ask = ChatRespondent(list, *audit.names, options=audit.asked.quiz_options)
    quizzes = [texts for rows in quizzed for texts in _quizzes_at_most(rows)]
    found[DCQ] = endpoint, ask.requests(quizzes), 0
    if audit.asked.perturber and source_of(audit.rows, audit.asked) == WRITTEN:
        written = [
            perturbation_request(row, rows.columns)
            for rows in quizzed
            for row in rows.rows[list(rows.columns)].to_dict("records")
        ]
        found["options of the quizzes"] = audit.asked.perturber, written, 1
    if not reasons[REPLICATION]:
        prompts = pd.concat(
            replication_prompts(audit, rows, () if place == 0 else (GUIDED,))
            for place, rows in enumerate(quizzed)
        )
        limit = audit.asked.limit_option
        asked = chat_requests(prompts["prompt"].tolist(), MAX_TOKENS, limit)
        found[REPLICATION] = endpoint, asked, 0
        if audit.asked.judge:
            # The completions are not there yet: each is taken to be as long as it may be.
            longest = "x" * _LETTERS_PER_TOKEN * MAX_TOKENS
            written = [f"{longest}{n}" for n in range(len(prompts))]
            pairs = prompts["second_piece"].tolist(), written
            found["ICL judge"] = audit.asked.judge, judge_requests(*pairs, JUDGE_PROMPT, limit), 2
    if audit.model.gives_log_probs:
        texts = [text for rows in sets for text in rows.passages]
        found[MIN_K] = endpoint, _echo_requests(texts), 0
        start = header(*audit.names)
        texts = [
            f"{start}{text}{k}" for k in range(4) for rows in quizzed for text in rows.instances
        ]
        found[RANKING] = endpoint, _echo_requests(texts), 0
    return found


def _echo_requests(texts: Sequence[str]) -> list[Request]:
    # As ``models.chat.prompt_log_probs`` asks.
    options = {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
    return [Request(prompt=text, options=options, may_be_cut=True) for text in texts]


def head_of(audit: Audit, rows: Rows) -> Rows:
    """The rows that all methods but Min-k% Prob take."""
    return head(rows, audit.n_quizzed)


def plan_table(audit: Audit) -> pd.DataFrame:
    """``audit_cost.csv``: what a run takes at most, nothing of it being in the response log.

    Returns:
        One row for each model and method: model, method, is_run, reason,
        n_calls, input_tokens (cautious estimate), output_tokens (at most), cost
        (at most; empty without a price), price_date. For local models n_calls and
        cost are 0 and input_tokens are those read.
    """
    reasons, rows = why_not(audit), []
    for endpoint in endpoints_of(audit.model):
        asked = requests_of(audit, endpoint)
        for name, (who, requests, place) in asked.items():
            rows.append(
                {"model": who.model, "method": name, "is_run": not reasons.get(name), "reason": ""}
                | _whole(who, requests, audit.asked.prices[place])
            )
        rows += [
            {"model": endpoint.model, "method": name, "is_run": False, "reason": reason}
            for name, reason in reasons.items()
            if reason
        ]
    for model in audit.model.names * (not audit.model.base_url):
        for name in METHODS:
            n_read, n_written = _local_tokens(audit)[name]
            rows.append(
                {"model": name_of(model), "method": name, "is_run": not reasons[name]}
                | {"reason": reasons[name], "n_calls": 0, "cost": 0.0}
                | {"input_tokens": n_read * (not reasons[name])}
                | {"output_tokens": n_written * (not reasons[name])}
            )
    columns = ["model", "method", "is_run", "reason", "n_calls", "input_tokens", "output_tokens"]
    table = pd.DataFrame(rows).reindex(columns=[*columns, "cost", "price_date"])
    return table.astype(dict.fromkeys(["n_calls", "input_tokens", "output_tokens"], "Int64"))


def name_of(model: str) -> str:
    """A model's name in tables, which hold no path of the machine."""
    return Path(model).name if Path(model).is_absolute() else model


def _whole(who: Endpoint, requests: Sequence[Request], price: Price | None) -> dict:
    bodies = [body_of(who, request) for request in requests]
    n_in, n_out = sum(map(input_tokens, bodies)), sum(output_limit(body) or 0 for body in bodies)
    return {
        "n_calls": len(bodies),
        "input_tokens": n_in,
        "output_tokens": n_out,
        "cost": price.of(n_in, n_out) if price else None,
        "price_date": price.date if price else "",
    }


def _local_tokens(audit: Audit) -> dict[str, tuple[int, int]]:
    """By method: tokens read and tokens written, roughly."""
    sets = [rows for rows in (audit.rows, audit.unseen) if rows is not None]
    of_all = (
        sum(len(text.encode()) for rows in sets for text in rows.passages) // _LETTERS_PER_TOKEN
    )
    quizzed = [head_of(audit, rows) for rows in sets]
    sizes = [
        sum(len(text.encode()) for text in rows.instances) // _LETTERS_PER_TOKEN for rows in quizzed
    ]
    n_prompts = 5 * sizes[0] + sum(sizes[1:])
    return {
        DCQ: (5 * sum(sizes), 0),
        REPLICATION: (n_prompts, n_prompts),
        RANKING: (4 * sum(sizes), 0),
        MIN_K: (of_all, 0),
        DICE: (sizes[0] * (1 + len(audit.model.reference_models)), 0),
    }


def plan_lines(audit: Audit) -> list[str]:
    """What is still to be asked, one line each; no call is made."""
    lines = []
    for endpoint in endpoints_of(audit.model):
        for name, (who, requests, place) in requests_of(audit, endpoint).items():
            price = audit.asked.prices[place]
            found = estimate(who, requests, **audit.asked.settings(price))
            lines.append(f"{name}, {who.model}: {found}")
    speed = _flops_per_second() if not audit.model.base_url else 0.0
    reasons = why_not(audit)
    for model in audit.model.names * (not audit.model.base_url):
        tokens = [pair for name, pair in _local_tokens(audit).items() if not reasons[name]]
        n_read, n_written = (sum(part) for part in zip(*tokens, strict=True))
        seconds = _seconds(model, n_read, n_written, speed)
        lines.append(
            f"{name_of(model)}: no calls, no cost; about {n_read:,} tokens to read and "
            f"{n_written:,} to write here, {seconds}"
        )
    if source_of(audit.rows, audit.asked) != GIVEN:
        lines.append(f"options of the quizzes: {source_of(audit.rows, audit.asked)}")
    return lines


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
    if not n_parameters and Path(model).is_dir():
        n_parameters = sum(path.stat().st_size for path in Path(model).glob("*.safetensors")) // 4
    if not n_parameters:
        return "time unknown before it is downloaded"
    seconds = 2 * n_parameters * (n_read + _GENERATED_IS_SLOWER * n_written) / speed
    rest = ", and 1 to 3 minutes the first time, to train it" if model.startswith(LAB) else ""
    return f"roughly {math.ceil(seconds / 10) * 10} s on this processor{rest}"


def announce(audit: Audit) -> str:
    """The plan as text, with the most that all of it may cost and the cap."""
    table = plan_table(audit)
    text = "\n".join(plan_lines(audit))
    if endpoints_of(audit.model):
        whole = table["cost"].sum(min_count=1)
        cost = "unknown without prices" if pd.isna(whole) else f"at most {whole:.2f}"
        cap = "no cap is set" if audit.asked.cap is None else f"cap {audit.asked.cap:.2f}"
        text += f"\nall of it, nothing being in the log: {cost} ({cap})"
    return text
