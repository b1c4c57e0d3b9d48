"""What a run would ask at most, and what it would cost: calls and tokens of every method."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import pandas as pd

from contamination.audit import comparison
from contamination.audit.instrument import check_texts
from contamination.audit.options import RULE, WRITTEN, quizzes_unasked, source_of
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
    UNSEEN,
    Audit,
    RunEndpoints,
    name_of,
)
from contamination.audit.rows import FEWEST_ROWS, Rows
from contamination.audit.settings import LAB, check_name
from contamination.core.overlap import words
from contamination.dcq.quizzes import LETTERS, header, perturbation_request, quiz_prompt
from contamination.models.chat import ChatError, Secret, estimate
from contamination.models.exchange import (
    Endpoint,
    Request,
    body_of,
    input_tokens,
    output_limit,
    requests_of_prompts,
)
from contamination.models.prompt_log_probs import (
    CHAT,
    known_form,
    probe_requests,
    score_requests,
)
from contamination.replication import instructions
from contamination.replication.instructions import (
    FIRST_INSTANCES_PROMPT,
    GENERAL,
    GUIDED,
    JUDGE_PROMPTS,
    LABELLED_TASKS,
    NLI,
    PAPER_OPTIONS,
    WRONG_DATASET,
    WRONG_SPLIT,
    cut_rows,
)


def check_ready(asked: RunEndpoints, references: Sequence[str] = ()) -> None:
    """Raise, in one line, if a key, a price, an address or a local model is missing.

    Raises:
        ChatError: if a key's variable is not set, or nothing listens at an address.
        FileNotFoundError: if a local model (or reference) is not there, or if nobody can say.
        ValueError: if an endpoint that asks for a key has no price.
    """
    roles = [(model, MODEL) for model in asked.endpoints]
    roles += [(helper, role) for role, helper in asked.helpers.items()]
    for who, role in roles:
        if who.key_variable:
            Secret(who.key_variable)
        if asked.prices[role] is None and (who.key_variable or asked.cap):
            raise ValueError(
                f"no price for {who.model}: fill in prices and price_date, the day you read the "
                "price list"
            )
        _check_listens(who)
    for name in [*(one for one in asked.models if isinstance(one, str)), *references]:
        if unchecked := check_name(name):  # without a connection it cannot be loaded either
            raise FileNotFoundError(unchecked)


def _check_listens(who: Endpoint) -> None:
    address = urlsplit(who.base_url)
    if address.scheme in getproxies():  # what stands behind a proxy cannot be seen from here
        return
    port = address.port or {"https": 443}.get(address.scheme, 80)
    try:
        socket.create_connection((address.hostname, port), timeout=5).close()
    except OSError as error:
        raise ChatError(
            f"nothing answers at {who.base_url} ({error.strerror or error}): start the server, or "
            "check base_url and the connection"
        ) from error


# At most: the modified quiz and one for each position; the paper's second perturbation on top.
N_QUIZZES = 1 + len(LETTERS)
FEWEST_WORDS = 4  # of a piece: the rule judge calls no shorter one a match
LETTERS_PER_TOKEN = 3  # as ``models.exchange.input_tokens`` counts them
_CHEAT_FORMAT = "CSV"
PROBE, SELF_CHECK = "probe for log-probabilities", "known texts, to check the instrument"
NOT_ASKED = "not asked for"
NO_ANSWERS = "a file of log-probabilities answers no question"
IF_GIVEN = "if the address gives log-probabilities of prompts, which will be probed"
# Purpose, who is asked, everything at most, and whose price it has.
Batch = tuple[str, Endpoint, list[Request], str]


# DCQ and option ranking


def quizzed_instances(audit: Audit) -> list[list[str]]:
    """Originals of the rows that a quiz can be made of, of the dataset and of unseen rows.

    All of them where a perturber will write options. ValueError if too few rows have options.
    """
    return [
        rows.instances
        if source_of(rows, audit.asked) == WRITTEN
        else quizzes_unasked(rows, audit.told.seed)["instance"].tolist()
        for rows in audit.quizzed
    ]


def quiz_requests(audit: Audit) -> list[Request]:
    """Everything at most; the originals stand for options that are not there yet."""
    n_quizzes = N_QUIZZES + audit.told.dcq.second_perturbation
    asked = [(t, k) for texts in quizzed_instances(audit) for k in range(n_quizzes) for t in texts]
    layout = audit.asked.quiz_layout
    prompts = [quiz_prompt((t, t, t, f"{t} {k}"), *audit.names, layout=layout) for t, k in asked]
    return requests_of_prompts(prompts, audit.asked.quiz_options)


def option_requests(audit: Audit) -> list[Request]:
    """What a perturber is asked, but for perturbations that have to be asked for again."""
    return [
        perturbation_request(row, rows.columns, replicate, layout=audit.asked.quiz_layout)
        for replicate in range(1 + audit.told.dcq.second_perturbation)
        for rows in audit.quizzed
        for row in rows.rows[list(rows.columns)].astype(str).to_dict("records")
    ]


def ranking_texts(audit: Audit) -> list[str]:
    """What an address is asked for the ranking, at most."""
    start = header(*audit.names)
    texts = [text for texts in quizzed_instances(audit) for text in texts]
    return [f"{start}{text}{k}" for k in range(4) for text in texts]


def passage_texts(audit: Audit) -> list[str]:
    """What an address is asked for Min-k% Prob."""
    return [text for rows in audit.sets for text in audit.scored_texts(rows)]


# Replication


def completion_requests(prompts: Sequence[str], asked: RunEndpoints) -> list[Request]:
    """The paper's requests, as the endpoint takes them, cut at ``asked.completion_tokens``."""
    return requests_of_prompts(
        prompts, asked.sent(PAPER_OPTIONS | {"max_tokens": asked.completion_tokens})
    )


def longest_judgements(references: Sequence[str], asked: RunEndpoints) -> list[Request]:
    """What a judge is asked at most: each completion is taken to be as long as it may be."""
    n_letters = LETTERS_PER_TOKEN * asked.completion_tokens
    longest = ["x" * n_letters + str(n) for n in range(len(references))]
    pairs = zip(references, longest, strict=True)
    prompt = JUDGE_PROMPTS[asked.completion_layout]
    return requests_of_prompts([prompt.format(reference=r, candidate=c) for r, c in pairs], {})


def cheat_prompts(audit: Audit) -> list[str]:
    """The one prompt of Did-ChatGPT-Cheat? where it is asked for, else none."""
    dataset, split = audit.names
    of_split = {"dataset_name": dataset, "split_name": split, "format": _CHEAT_FORMAT}
    return [FIRST_INSTANCES_PROMPT.format(**of_split)] * audit.told.replication.first_instances


def audit_prompts(audit: Audit) -> pd.DataFrame:
    """The dataset under every instruction and unseen rows under the guided one, see ``rows``.

    Column continued holds the prompts for a model that does not follow instructions.
    """
    parts = [
        _prompts(audit, rows, (GUIDED,) if name == UNSEEN else ()).assign(rows=name)
        for name, rows in zip(("dataset", UNSEEN), audit.quizzed, strict=False)
    ]
    return pd.concat(parts, ignore_index=True)


def _prompts(audit: Audit, rows: Rows, only: Sequence[str]) -> pd.DataFrame:
    task, pieces = audit.data.task, cut_pieces(audit, rows)
    labels = list(audit.data.label_names)
    if not labels and rows.labels:
        labels = sorted(audit.rows.rows[rows.label_column].unique())
    if audit.told.replication.guided_only:
        only = (GUIDED,)
    elif not only and task in LABELLED_TASKS and len(labels) < 2:
        only = (GUIDED, GENERAL, WRONG_DATASET, WRONG_SPLIT)  # no label could be wrong
    names = dict(zip(("dataset", "split"), audit.names, strict=True))
    same: dict[str, Any] = names | {"labels": labels, "instructions": only}
    same["layout"] = audit.asked.completion_layout
    same |= dict(zip(("other_dataset", "other_split"), audit.data.wrongly_called, strict=True))
    found = instructions.prompts_of(pieces, task, **same)
    continued = instructions.prompts_of(pieces, task, form=instructions.CONTINUE, **same)["prompt"]
    about = {"benchmark": names["dataset"], "task": task, "copies": None, "group": found["index"]}
    return found.assign(continued=continued, **about, **names)


def cut_pieces(audit: Audit, rows: Rows) -> pd.DataFrame:
    """The rows in two pieces; those with too few words for the judge are left out."""
    columns, cut = (audit.data.task, rows.texts, rows.label_column), []
    how: dict[str, Any] = {
        "seed": audit.told.seed,
        "how": audit.told.replication.cut,
        "min_words": FEWEST_WORDS,
    }
    for place in range(len(rows.rows)):
        with contextlib.suppress(ValueError):  # too few words
            cut.append(cut_rows(rows.rows.iloc[[place]], *columns, **how))
    pieces = [one for one in cut if len(words(one["second_piece"].iloc[0])) >= FEWEST_WORDS]
    if len(pieces) < FEWEST_ROWS:
        raise ValueError(
            f"{len(pieces)} of {len(rows.rows)} rows can be cut into two pieces of at least "
            f"{FEWEST_WORDS} words, and at least {FEWEST_ROWS} are needed: name longer texts"
        )
    return pd.concat(pieces)


# What is run, and its cost


def skip_reasons(audit: Audit) -> dict[str, str]:
    """For each method "" if it will be run, else why not."""
    model, data = audit.model, audit.data
    reasons = {name: "" if name in audit.methods else NOT_ASKED for name in METHODS}
    if model.log_probs:
        reasons = {name: reasons[name] or NO_ANSWERS for name in METHODS} | {MIN_K: reasons[MIN_K]}
    if data.task in LABELLED_TASKS and not data.label_column:
        why = f"prompts of {data.task} show the label, and label_column is empty"
        reasons[REPLICATION] = reasons[REPLICATION] or why
    elif data.task != NLI and len(data.text_columns) > 1:
        why = f"prompts of {data.task} hold one text, text_columns names {len(data.text_columns)}"
        reasons[REPLICATION] = reasons[REPLICATION] or why
    elif not reasons[REPLICATION]:
        try:
            for rows in audit.quizzed:
                cut_pieces(audit, rows)
        except ValueError as error:
            reasons[REPLICATION] = str(error)
    if audit.unseen is None:
        reasons[MIN_K] = reasons[MIN_K] or NO_COMPARISON
    if model.base_url:
        why = "DICE reads hidden states, which an address does not give"
        reasons[DICE] = reasons[DICE] or why
    elif not reasons[DICE] and len(audit.told.dice.reference_models) < 2:
        reasons[DICE] = "reference_models names fewer than two clean models of the same base"
    # A file that says which rows were seen is scored next to the classifiers of its words.
    of_labelled = {MIN_K} if data.member_column else set()
    if audit.refusal:
        refused = [name for name in COMPARING if not reasons[name] and name not in of_labelled]
        reasons |= dict.fromkeys(refused, audit.refusal)
    if quizzing := [name for name in (DCQ, RANKING) if not reasons[name]]:
        try:
            quizzed_instances(audit)
        except ValueError as error:
            reasons |= dict.fromkeys(quizzing, str(error))
    return reasons


def probed_methods(audit: Audit) -> list[str]:
    """Methods that are run only if a probe finds log-probabilities at the address."""
    if not audit.asked.endpoints:
        return []
    reasons = skip_reasons(audit)
    return [name for name in (RANKING, MIN_K) if not reasons[name]]


def batches_of(audit: Audit, endpoint: Endpoint, form: str = "") -> list[Batch]:
    """Everything that is asked at most because of one audited model.

    ``form`` is that in which its address gives log-probabilities, if that is known already.
    """
    asked, reasons, found = audit.asked, skip_reasons(audit), []
    will_quiz = not (reasons[DCQ] and reasons[RANKING])
    if not reasons[DCQ]:
        found.append((DCQ, endpoint, quiz_requests(audit), MODEL))
    if will_quiz and source_of(audit.rows, asked) == WRITTEN:
        helper = asked.helpers[PERTURBER]
        found.append(("options of the quizzes", helper, option_requests(audit), PERTURBER))
    if not reasons[REPLICATION]:
        prompts, more = audit_prompts(audit), cheat_prompts(audit)
        of_prompts = completion_requests([*prompts["prompt"], *more], asked)
        found.append((REPLICATION, endpoint, of_prompts, MODEL))
        if JUDGE in asked.helpers:
            longest = longest_judgements(prompts["second_piece"], asked)
            found.append(("ICL judge", asked.helpers[JUDGE], longest, JUDGE))
    probed = probed_methods(audit)
    if probed and not form:
        found.append((PROBE, endpoint, probe_requests(), MODEL))
    if probed:
        known = score_requests(check_texts(), form or CHAT)
        found.append((SELF_CHECK, endpoint, known, MODEL))
    # The form that takes most, of those that the probe may find.
    for name, texts_of in ((MIN_K, passage_texts), (RANKING, ranking_texts)):
        if name in probed:
            requests = score_requests(texts_of(audit), form or CHAT)
            found.append((name, endpoint, requests, MODEL))
    return found


def plan_table(audit: Audit) -> pd.DataFrame:
    """``audit_cost.csv``: what a run takes at most, nothing of it being in the response log.

    One row for each model and method. input_tokens are a cautious estimate, output_tokens and
    cost (empty without a price) the most; a local model makes no calls. Where comparison rows are
    told apart, which is found out afterwards, no method that needs them asks anything.
    """
    reasons, rows = skip_reasons(audit), []
    for endpoint in audit.asked.endpoints:
        for name, who, batch, role in batches_of(audit, endpoint):
            bodies, price = [body_of(who, one) for one in batch], audit.asked.prices[role]
            n_in = sum(map(input_tokens, bodies))
            n_out = sum(output_limit(body) or 0 for body in bodies)
            row: dict[str, Any] = {
                "model": who.model,
                "method": name,
                "is_run": not reasons.get(name),
            }
            row |= {"reason": "", "n_calls": len(bodies), "price_date": price.date if price else ""}
            row |= {"input_tokens": n_in, "output_tokens": n_out}
            rows.append(row | {"cost": price.of(n_in, n_out) if price else None})
        about = {"model": endpoint.model, "is_run": False}
        rows += [about | {"method": n, "reason": why} for n, why in reasons.items() if why]
    for model in local_models(audit):
        for name, (n_read, n_written) in local_tokens(audit).items():
            reason = reasons[name]
            row = {"model": name_of(model), "method": name, "is_run": not reason}
            row |= {"reason": reason, "n_calls": 0, "cost": 0.0}
            row |= {"input_tokens": 0 if reason else n_read}
            rows.append(row | {"output_tokens": 0 if reason else n_written})
    columns = ["model", "method", "is_run", "reason", "n_calls", "input_tokens", "output_tokens"]
    table = pd.DataFrame(rows).reindex(columns=[*columns, "cost", "price_date"])
    return table.astype(dict.fromkeys(["n_calls", "input_tokens", "output_tokens"], "Int64"))


def local_models(audit: Audit) -> list[str]:
    """Folders or hub ids of the audited models that are loaded here, in order."""
    if audit.model.log_probs:
        return []
    return [model for model in audit.asked.models if isinstance(model, str)]


def local_tokens(audit: Audit) -> dict[str, tuple[int, int]]:
    """What a local model reads and writes: by method, tokens read and tokens written, roughly."""

    def tokens(texts: Sequence[str]) -> int:
        return sum(len(text.encode()) for text in texts) // LETTERS_PER_TOKEN

    sizes = [tokens(rows.instances) for rows in audit.quizzed]
    n_prompts = 5 * sizes[0] + sum(sizes[1:])
    return {
        DCQ: (5 * sum(sizes), 0),
        REPLICATION: (n_prompts, n_prompts),
        RANKING: (4 * sum(sizes), 0),
        MIN_K: (tokens(passage_texts(audit)), 0),
        DICE: (sizes[0] * (1 + len(audit.told.dice.reference_models)), 0),
    }


# In words


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


def refuse_above_cap(audit: Audit) -> None:
    """ValueError if what is still to be asked may cost more than what the cap leaves."""
    if audit.asked.cap is None:
        return
    found = [
        estimate(who, batch, **audit.asked.paying(role))
        for endpoint in audit.asked.endpoints
        for _, who, batch, role in batches_of(audit, endpoint, known_form(endpoint))
    ]
    most = sum(one.cost or 0.0 for one in found) + max((one.spent for one in found), default=0.0)
    if most > audit.asked.cap:
        raise ValueError(
            f"with what was spent before, the plan may cost {most:.2f}, and the cap is "
            f"{audit.asked.cap:.2f}: raise --cap (cost_cap), or ask fewer methods or rows"
        )


def _of_lab(model: str) -> str:
    return ", and 1 to 3 minutes the first time, to train it" if model.startswith(LAB) else ""
