"""What an audit is about, what it will ask at most, and what that costs, before the first question.

Nothing here asks a model. What is paid is refused above the cap, and before a key, a price, an
address or a model is missing.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import pandas as pd

from contamination.audit import comparison
from contamination.audit.decision import FEWEST_COMPARISON
from contamination.audit.instrument import check_texts
from contamination.audit.options import RULE, WRITTEN, quizzes_unasked, source_of
from contamination.audit.rows import FEWEST_ROWS, Rows
from contamination.audit.settings import JUDGE, LAB, MODEL, PERTURBER, Settings, check_name
from contamination.core.overlap import words
from contamination.data import partitions
from contamination.dcq.quizzes import (
    LETTERS,
    QUIZ_OPTIONS,
    header,
    perturbation_request,
    quiz_prompt,
)
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
    COMPLETIONS,
    known_form,
    probe_requests,
    score_requests,
)
from contamination.replication import instructions
from contamination.replication.instructions import GUIDED, JUDGE_PROMPTS, LABELLED_TASKS

DCQ, REPLICATION, RANKING, MIN_K = "DCQ", "replication", "option ranking", "Min-k% Prob"
# What parameter ``methods`` calls them, and what tables do.
NAMED = {"dcq": DCQ, "replication": REPLICATION, "ranking": RANKING, "min_k": MIN_K}
METHODS = tuple(NAMED.values())
UNSEEN = "unseen rows"
TEXT = "text"  # form of a scored row, the other is "instance"
# At most: the modified quiz and one for each position; the paper's second perturbation on top.
N_QUIZZES = 1 + len(LETTERS)
FEWEST_WORDS = 4  # of a piece: the rule judge calls no shorter one a match
LETTERS_PER_TOKEN = 3  # as ``models.exchange.input_tokens`` counts them
PROBE, SELF_CHECK = "probe for log-probabilities", "known texts, to check the instrument"
NO_COMPARISON = "no comparison rows: name a file of rows that the model cannot have seen"
# Purpose, who is asked, everything at most, and whose price it has.
Batch = tuple[str, Endpoint, list[Request], str]


@dataclass(frozen=True)
class Audit:
    """Everything that is asked about, before the first question.

    Attributes:
        told: the settings.
        rows: the dataset: as many rows as Min-k% Prob scores, the first of them quizzed.
        unseen: rows that the model cannot have seen, or None.
        text_alone: dataset against unseen rows, ``comparison.by_text_alone``.
        near_copies: rows that the two have nearly in common, ``comparison.near_copies``.
        refusal: why no method may hold the dataset against the unseen rows; "" if each may.
    """

    told: Settings
    rows: Rows
    unseen: Rows | None
    text_alone: tuple[dict, ...] = ()
    near_copies: tuple[dict, ...] = ()
    refusal: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """Dataset and split as the prompts say them."""
        return self.told.data.called

    @property
    def title(self) -> str:
        """The dataset as its user knows it: the name of a file, else dataset and split."""
        data = self.told.data
        is_file = not data.names and partitions.find_file(data.dataset)
        return Path(data.dataset).name if is_file else " ".join(self.names)

    def scored_texts(self, rows: Rows) -> list[str]:
        """Rows as Min-k% Prob scores them, and as the checks of the text alone see them."""
        return rows.passages if self.told.min_k.form == TEXT else rows.instances

    @property
    def passages(self) -> list[str]:
        """The scored texts of both files."""
        return [text for rows in self.sets for text in self.scored_texts(rows)]

    @property
    def sets(self) -> list[Rows]:
        """The dataset, and unseen rows where there are some."""
        return [rows for rows in (self.rows, self.unseen) if rows is not None]

    @property
    def quizzed(self) -> list[Rows]:
        """Of each set the rows that all methods but Min-k% Prob take."""
        return [rows.head(self.told.n_instances) for rows in self.sets]

    @cached_property
    def originals(self) -> list[list[str]]:
        """Instances of each set that a quiz can be made of; ValueError if they are too few.

        All of them where a perturber will write options.
        """
        return [
            rows.instances
            if source_of(rows, self.told) == WRITTEN
            else quizzes_unasked(rows, self.told.seed)["instance"].tolist()
            for rows in self.quizzed
        ]

    @cached_property
    def pieces(self) -> list[pd.DataFrame]:
        """The rows of each set in two pieces, without those that have too few words for the judge.

        ValueError if they are too few.
        """
        return [self._cut(rows) for rows in self.quizzed]

    def _cut(self, rows: Rows) -> pd.DataFrame:
        columns = (self.told.data.task, rows.texts, rows.label_column)
        how = {"how": self.told.replication.cut, "min_words": FEWEST_WORDS}
        found = []
        for place in range(len(rows.rows)):
            one = rows.rows.iloc[[place]]
            try:
                cut = instructions.cut_rows(one, *columns, seed=self.told.seed, **how)
            except ValueError:  # too few words
                continue
            if len(words(cut["second_piece"].iloc[0])) >= FEWEST_WORDS:
                found.append(cut)
        if len(found) < FEWEST_ROWS:
            raise ValueError(
                f"{len(found)} of {len(rows.rows)} rows can be cut into two pieces of at least "
                f"{FEWEST_WORDS} words, and at least {FEWEST_ROWS} are needed: name longer texts"
            )
        return pd.concat(found)

    @cached_property
    def reasons(self) -> dict[str, str]:
        """For each method "" if it will be run, else why not."""
        model, data = self.told.model, self.told.data
        wanted = self.told.methods or list(NAMED)
        found: dict[str, str] = {
            called: "" if name in wanted else "not asked for" for name, called in NAMED.items()
        }

        def refuse(why: str, *methods: str) -> None:
            found.update({name: found[name] or why for name in methods})

        def refuse_failing(needed: str, *methods: str) -> None:
            if not all(found[name] for name in methods):
                try:
                    getattr(self, needed)
                except ValueError as error:
                    refuse(str(error), *methods)

        if model.log_probs:
            others = (name for name in METHODS if name != MIN_K)
            refuse("a file of log-probabilities answers no question", *others)
        if data.task in LABELLED_TASKS and not data.label_column:
            why = f"prompts of {data.task} show the label, and label_column is empty"
            refuse(why, REPLICATION)
        elif data.task != instructions.NLI and (n := len(data.text_columns)) > 1:
            refuse(f"prompts of {data.task} hold one text, text_columns names {n}", REPLICATION)
        refuse_failing("pieces", REPLICATION)
        if self.unseen is None:
            refuse(NO_COMPARISON, MIN_K)
        # A file that says which rows were seen is scored next to the classifiers of its words.
        of_labelled = {MIN_K} if data.member_column else set()
        refuse(self.refusal, *(name for name in METHODS if name not in of_labelled))
        refuse_failing("originals", DCQ, RANKING)
        return found

    @property
    def probed(self) -> list[str]:
        """Methods that are run only if a probe finds log-probabilities at the address."""
        is_served = self.told.endpoints
        return [name for name in (RANKING, MIN_K) if is_served and not self.reasons[name]]


# What is asked at most


def quiz_requests(audit: Audit) -> list[Request]:
    """The originals stand for options that are not there yet."""
    n_quizzes = N_QUIZZES + audit.told.dcq.second_perturbation
    asked = [(t, k) for texts in audit.originals for k in range(n_quizzes) for t in texts]
    layout = audit.told.dcq.layout
    prompts = [quiz_prompt((t, t, t, f"{t} {k}"), *audit.names, layout=layout) for t, k in asked]
    return requests_of_prompts(prompts, quiz_options(audit.told))


def quiz_options(told: Settings) -> dict[str, Any]:
    """Sampling options of a quiz's answer."""
    return told.model.sent(QUIZ_OPTIONS | {"max_tokens": told.dcq.answer_tokens})


def option_requests(audit: Audit) -> list[Request]:
    """What a perturber is asked, but for perturbations that have to be asked for again."""
    return [
        perturbation_request(row, rows.columns, replicate, layout=audit.told.dcq.layout)
        for replicate in range(1 + audit.told.dcq.second_perturbation)
        for rows in audit.quizzed
        for row in rows.rows[list(rows.columns)].astype(str).to_dict("records")
    ]


def completion_requests(prompts: Sequence[str], told: Settings) -> list[Request]:
    """The paper's requests, as the endpoint takes them, with the answers' longest length."""
    longest = {"max_tokens": told.replication.completion_tokens}
    return requests_of_prompts(prompts, told.model.sent(instructions.PAPER_OPTIONS | longest))


def judge_requests(references: Sequence[str], told: Settings) -> list[Request]:
    """Each completion is taken to be as long as it may be."""
    longest = "x" * LETTERS_PER_TOKEN * told.replication.completion_tokens
    prompt = JUDGE_PROMPTS[told.replication.layout]
    pairs = [(one, f"{longest}{n}") for n, one in enumerate(references)]
    return requests_of_prompts([prompt.format(reference=r, candidate=c) for r, c in pairs], {})


def cheat_prompts(audit: Audit) -> list[str]:
    """The one prompt of Did-ChatGPT-Cheat? where it is asked for, else none."""
    dataset, split = audit.names
    prompt = instructions.FIRST_INSTANCES_PROMPT.format(
        dataset_name=dataset, split_name=split, format="CSV"
    )
    return [prompt] * audit.told.replication.first_instances


def audit_prompts(audit: Audit) -> pd.DataFrame:
    """The dataset under every instruction and unseen rows under the guided one, see ``rows``.

    Column continued holds the prompts for a model that does not follow instructions.
    """
    data, told = audit.told.data, audit.told.replication
    names = dict(zip(("dataset", "split"), audit.names, strict=True))
    same: dict[str, Any] = names | {"layout": told.layout}
    same |= dict(zip(("other_dataset", "other_split"), data.wrongly_called, strict=True))
    parts = []
    for rows, pieces in zip(audit.quizzed, audit.pieces, strict=True):
        labels, only = list(data.label_names), ()
        if not labels and rows.labels:
            labels = sorted(audit.rows.rows[rows.label_column].unique())
        if told.guided_only or parts:
            only = (GUIDED,)
        elif data.task in LABELLED_TASKS and len(labels) < 2:  # no label could be wrong
            only = (GUIDED, instructions.GENERAL)
            only += (instructions.WRONG_DATASET, instructions.WRONG_SPLIT)
        same |= {"labels": labels, "instructions": only}
        found = instructions.prompts_of(pieces, data.task, **same)
        continued = instructions.prompts_of(pieces, data.task, form=instructions.CONTINUE, **same)
        about = {"benchmark": names["dataset"], "task": data.task, "copies": None}
        about |= {"group": found["index"]} | names | {"rows": UNSEEN if parts else "dataset"}
        parts.append(found.assign(continued=continued["prompt"], **about))
    return pd.concat(parts, ignore_index=True)


def batches_of(audit: Audit, endpoint: Endpoint, form: str = "") -> list[Batch]:
    """Everything that is asked at most because of one audited model.

    ``form`` is that in which its address gives log-probabilities, if that is known already.
    """
    told, reasons, found = audit.told, audit.reasons, []
    if not reasons[DCQ]:
        found.append((DCQ, endpoint, quiz_requests(audit), MODEL))
    will_quiz = not (reasons[DCQ] and reasons[RANKING])
    if will_quiz and source_of(audit.rows, told) == WRITTEN:
        helper = told.helpers[PERTURBER]
        found.append(("options of the quizzes", helper, option_requests(audit), PERTURBER))
    if not reasons[REPLICATION]:
        prompts = audit_prompts(audit)
        asked = completion_requests([*prompts["prompt"], *cheat_prompts(audit)], told)
        found.append((REPLICATION, endpoint, asked, MODEL))
        if helper := told.helpers.get(JUDGE):
            asked = judge_requests(prompts["second_piece"], told)
            found.append(("ICL judge", helper, asked, JUDGE))
    if audit.probed and not form:
        found.append((PROBE, endpoint, probe_requests(), MODEL))
    texts_of = {SELF_CHECK: check_texts()} if audit.probed else {}
    if MIN_K in audit.probed:
        texts_of[MIN_K] = audit.passages
    if RANKING in audit.probed:
        start, texts = header(*audit.names), [text for one in audit.originals for text in one]
        texts_of[RANKING] = [f"{start}{text}{k}" for k in range(4) for text in texts]
    # The form that takes most, of those that the probe may find.
    for name, texts in texts_of.items():
        found.append((name, endpoint, score_requests(texts, form or COMPLETIONS), MODEL))
    return found


# What it costs


def plan_table(audit: Audit) -> pd.DataFrame:
    """``audit_cost.csv``: what a run takes at most, nothing of it being in the response log.

    One row for each model and method. input_tokens are a cautious estimate, output_tokens and
    cost (empty without a price) the most; a local model makes no calls.
    """
    told, reasons, rows = audit.told, audit.reasons, []
    for endpoint in told.endpoints:
        for name, who, batch, role in batches_of(audit, endpoint):
            bodies, price = [body_of(who, one) for one in batch], told.prices[role]
            n_in = sum(map(input_tokens, bodies))
            n_out = sum(output_limit(body) or 0 for body in bodies)
            row: dict[str, Any] = {"model": who.model, "method": name, "reason": ""}
            row |= {"is_run": not reasons.get(name), "n_calls": len(bodies)}
            row |= {"price_date": price.date if price else "", "input_tokens": n_in}
            row |= {"output_tokens": n_out, "cost": price.of(n_in, n_out) if price else None}
            rows.append(row)
        about = {"model": endpoint.model, "is_run": False}
        rows += [about | {"method": n, "reason": why} for n, why in reasons.items() if why]
    for model in told.local:
        for name, (n_read, n_written) in local_tokens(audit).items():
            row = {"model": told.model.name_of(model), "method": name, "reason": reasons[name]}
            row |= {"is_run": not reasons[name], "n_calls": 0, "cost": 0.0}
            rows.append(row | {"input_tokens": n_read, "output_tokens": n_written})
    columns = ["model", "method", "is_run", "reason", "n_calls", "input_tokens", "output_tokens"]
    table = pd.DataFrame(rows).reindex(columns=[*columns, "cost", "price_date"])
    return table.astype(dict.fromkeys(["n_calls", "input_tokens", "output_tokens"], "Int64"))


def local_tokens(audit: Audit) -> dict[str, tuple[int, int]]:
    """Tokens that a local model reads and writes, roughly, by method; 0 where it is not run."""

    def tokens(texts: Sequence[str]) -> int:
        return sum(len(text.encode()) for text in texts) // LETTERS_PER_TOKEN

    sizes = [tokens(rows.instances) for rows in audit.quizzed]
    n_prompts = 5 * sizes[0] + sum(sizes[1:])
    found = {
        DCQ: (5 * sum(sizes), 0),
        REPLICATION: (n_prompts, n_prompts),
        RANKING: (4 * sum(sizes), 0),
        MIN_K: (tokens(audit.passages), 0),
    }
    return {name: (0, 0) if audit.reasons[name] else n for name, n in found.items()}


def announce_audit(audit: Audit) -> str:
    """What is still to be asked, one line each, the most that it may cost, and the cap."""
    told, reasons = audit.told, audit.reasons
    lines = [f"{purpose}, {who.model}: {one}" for purpose, who, one in _estimates(audit)]
    if methods := audit.probed:
        lines.append(
            f"{' and '.join(methods)}: will be run if the address gives log-probabilities of "
            "prompts, which will be probed"
        )
    for model in told.local:
        n_read, n_written = map(sum, zip(*local_tokens(audit).values(), strict=True))
        trained = ", and 1 to 3 minutes the first time, to train it" * model.startswith(LAB)
        lines.append(
            f"{told.model.name_of(model)}: no calls, no cost; about {n_read:,} tokens to read and "
            f"{n_written:,} to write here{trained}"
        )
    source = source_of(audit.rows, told)
    if source == WRITTEN:
        lines.append(f"options of the quizzes: {source}")
    elif source == RULE and not (reasons[DCQ] and reasons[RANKING]):
        n_can, n_rows = sum(map(len, audit.originals)), sum(len(one.rows) for one in audit.quizzed)
        lines.append(f"options of the quizzes: {source}, which {n_can} of {n_rows} rows allow")
        n_comparison = len(audit.originals[-1])
        if audit.unseen is not None and n_comparison < FEWEST_COMPARISON:
            run = " and ".join(name for name in (DCQ, RANKING) if not reasons[name])
            lines.append(
                f"{run}: run for the tables alone, since {n_comparison} comparison rows allow a "
                f"quiz, and a verdict needs {FEWEST_COMPARISON}"
            )
    if audit.unseen is not None:
        lines.append(comparison.describe_check(audit.text_alone, *audit.near_copies))
    if told.endpoints and not audit.refusal:
        whole = plan_table(audit)["cost"].sum(min_count=1)
        cost = "unknown without prices" if pd.isna(whole) else f"at most {whole:.2f}"
        cap = f"cap {told.model.cost_cap:.2f}" if told.model.cost_cap else "no cap is set"
        lines.append(f"all of it, nothing being in the log: {cost} ({cap})")
    return "\n".join(lines)


def _estimates(audit: Audit) -> list[tuple[str, Endpoint, Any]]:
    return [
        (purpose, who, estimate(who, batch, **audit.told.paying(role)))
        for endpoint in audit.told.endpoints
        for purpose, who, batch, role in batches_of(audit, endpoint, known_form(endpoint))
    ]


# Refused before it costs


def refuse_above_cap(audit: Audit) -> None:
    """ValueError if what is still to be asked may cost more than what the cap leaves."""
    cap = audit.told.model.cost_cap
    found = [one for *_, one in _estimates(audit)] if cap else []
    most = sum(one.cost or 0.0 for one in found) + max((one.spent for one in found), default=0.0)
    if most > cap:
        raise ValueError(
            f"with what was spent before, the plan may cost {most:.2f}, and the cap is "
            f"{cap:.2f}: raise --cap (cost_cap), or ask fewer methods or rows"
        )


def check_ready(told: Settings) -> None:
    """Raise, in one line, if a key, a price, an address or a local model is missing.

    Raises:
        ChatError: if a key's variable is not set, or nothing listens at an address.
        FileNotFoundError: if a local model is not there, or if nobody can say.
        ValueError: if an endpoint that asks for a key has no price.
    """
    roles = [(endpoint, MODEL) for endpoint in told.endpoints]
    for who, role in [*roles, *((helper, role) for role, helper in told.helpers.items())]:
        if who.key_variable:
            Secret(who.key_variable)
        if told.prices[role] is None and (who.key_variable or told.model.cost_cap):
            raise ValueError(
                f"no price for {who.model}: fill in prices and price_date, the day you read the "
                "price list"
            )
        _check_listens(who)
    for name in told.local:
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
