"""What each method asks a model behind an address, its perturber and its judge, at most."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pandas as pd

from contamination.audit.prepared import PERTURBER, UNSEEN, Asked, Audit
from contamination.audit.rows import FEWEST_ROWS, Rows
from contamination.core.overlap import words
from contamination.dcq.prompts import LETTERS, header, perturbation_request, quiz_prompt
from contamination.models.exchange import Request, prompted
from contamination.replication import instructions
from contamination.replication.cutting import cut_rows
from contamination.replication.instructions import (
    GENERAL,
    GUIDED,
    LABELLED_TASKS,
    WRONG_DATASET,
    WRONG_SPLIT,
)
from contamination.replication.prompts import (
    FIRST_INSTANCES_PROMPT,
    JUDGE_PROMPT,
    PAPER_OPTIONS,
)

# At most: the modified quiz and one for each position; the paper's second perturbation on top.
N_QUIZZES = 1 + len(LETTERS)
GIVEN, WRITTEN, RULE = "given with the rows", "written by the perturber", "made by a rule"
FEWEST_WORDS = 4  # of a piece: the rule judge calls no shorter one a match
LETTERS_PER_TOKEN = 3  # as ``models.exchange.input_tokens`` counts them
_CHEAT_FORMAT = "CSV"


# DCQ and option ranking


def source_of(rows: Rows, asked: Asked) -> str:
    """Where the options of these rows come from."""
    if rows.has_options:
        return GIVEN
    return WRITTEN if PERTURBER in asked.helpers else RULE


def quiz_requests(audit: Audit) -> list[Request]:
    """Everything at most; the originals stand for options that are not there yet."""
    n_quizzes = N_QUIZZES + audit.told.dcq.second_perturbation
    asked = [(t, k) for rows in audit.quizzed for k in range(n_quizzes) for t in rows.instances]
    prompts = [quiz_prompt((t, t, t, f"{t} {k}"), *audit.names) for t, k in asked]
    return prompted(prompts, audit.asked.quiz_options)


def option_requests(audit: Audit) -> list[Request]:
    """What a perturber is asked, but for perturbations that have to be asked for again."""
    return [
        perturbation_request(row, rows.columns, replicate)
        for replicate in range(1 + audit.told.dcq.second_perturbation)
        for rows in audit.quizzed
        for row in rows.rows[list(rows.columns)].astype(str).to_dict("records")
    ]


def ranking_texts(audit: Audit) -> list[str]:
    """What an address is asked for the ranking, at most."""
    start = header(*audit.names)
    texts = [text for rows in audit.quizzed for text in rows.instances]
    return [f"{start}{text}{k}" for k in range(4) for text in texts]


# Replication


def completion_requests(prompts: Sequence[str], asked: Asked) -> list[Request]:
    """The paper's requests, as the endpoint takes them, cut at ``asked.completion_tokens``."""
    return prompted(prompts, asked.sent(PAPER_OPTIONS | {"max_tokens": asked.completion_tokens}))


def longest_judgements(references: Sequence[str], asked: Asked) -> list[Request]:
    """What a judge is asked at most: each completion is taken to be as long as it may be."""
    n_letters = LETTERS_PER_TOKEN * asked.completion_tokens
    longest = ["x" * n_letters + str(n) for n in range(len(references))]
    pairs = zip(references, longest, strict=True)
    return prompted([JUDGE_PROMPT.format(reference=r, candidate=c) for r, c in pairs], {})


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
    if not only and task in LABELLED_TASKS and len(labels) < 2:
        only = (GUIDED, GENERAL, WRONG_DATASET, WRONG_SPLIT)  # no label could be wrong
    names = dict(zip(("dataset", "split"), audit.names, strict=True))
    same = names | {"labels": labels, "instructions": only}
    same |= dict(zip(("other_dataset", "other_split"), audit.data.wrongly_called, strict=True))
    found = instructions.prompts_of(pieces, task, **same)
    continued = instructions.prompts_of(pieces, task, form=instructions.CONTINUE, **same)["prompt"]
    about = {"benchmark": names["dataset"], "task": task, "copies": None, "group": found["index"]}
    return found.assign(continued=continued, **about, **names)


def cut_pieces(audit: Audit, rows: Rows) -> pd.DataFrame:
    """The rows in two pieces; those with too few words for the judge are left out."""
    columns, cut = (audit.data.task, rows.texts, rows.label_column), []
    how = {"seed": audit.told.seed, "how": audit.told.replication.cut, "min_words": FEWEST_WORDS}
    for place in range(len(rows.rows)):
        with contextlib.suppress(ValueError):  # too few words
            cut.append(cut_rows(rows.rows.iloc[[place]], *columns, **how))
    pieces = [one for one in cut if len(words(one["second_piece"].iloc[0])) >= FEWEST_WORDS]
    if len(pieces) < FEWEST_ROWS:
        raise ValueError(
            f"{len(pieces)} of {len(rows.rows)} rows can be cut into two pieces of at least "
            f"{FEWEST_WORDS} words, at least {FEWEST_ROWS} are needed: longer texts, or a script "
            "that is written with spaces"
        )
    return pd.concat(pieces)
