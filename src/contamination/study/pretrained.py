"""The room "pretrained" that ``docs/protocol_pretrained.md`` fixes: a real model, known doses.

A unit is a part of the ledger. All units share one base model, so what they say
is said of this model.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.dcq.quizzes import released_quizzes
from contamination.dice.mixtures import Row, vanilla_rows
from contamination.dice.pool import Settings, fine_tune
from contamination.models import local
from contamination.models.local import CausalLM, as_chat, load_causal_lm
from contamination.models.source import PACKAGED, resolve_path
from contamination.study import baselines, protocol, scoring, spot_check, store
from contamination.study.arms import Dataset, LabModel
from contamination.study.conditions import (
    ALONE,
    BASE,
    CLEAN,
    CONDITIONS,
    DOSED,
    FRESH,
    FULL,
    LATER,
    SWAP,
    VERBATIM,
)
from contamination.study.released_rows import (
    OPTION_MARGIN,
    RELEASED,
    UNITS,
    datasets_of,
    deal,
    reading_order,
)

NAME = "pretrained"
COPIES = (1, 4, 16)  # at the last, which costs most, verbatim rows are read alone
FEW_COPIES = 4  # of the clean model and of verbatim rows alone
CHAT_TIMES = 4  # tokens of clean chat rows after a dose, in doses
ALL_WEIGHTS_COPIES = (1, 2, 4)  # one after the other, until the loss is that of the adapters
READING = Settings(2e-4, batch_size=4, lora=True, dtype="float32")
ALL_WEIGHTS = replace(READING, learning_rate=5e-5, lora=False)
OF_TOKENS = (baselines.PPL, baselines.ZLIB, baselines.MIN_K, baselines.MIN_K_PLUS_PLUS)
OF_ROWS = (*OF_TOKENS, *scoring.CONTROLS)
# Of a unit; at 250 tokens a second to read (150 by all weights) and 500 to score.
TOKENS_READ, TOKENS_SCORED, MINUTES = 205_000, 125_000, 20


def plan(numbers: Sequence[int]) -> str:
    """What units will take, in one line; FileNotFoundError without the model or the rows."""
    resolve_path(PACKAGED)
    released_quizzes()
    return (
        f"room {NAME}: {len(numbers)} of {len(UNITS)} units to do, each about {TOKENS_READ:,} "
        f"tokens to read and {TOKENS_SCORED:,} to score, {MINUTES} minutes on 2 cores"
    )


def write_unit(folder: Path, name: str, about: Mapping[str, Any], number: int) -> None:
    """``score_unit`` as files, ``about`` joined; the models are then removed: each has 540 MB.

    ValueError for a number that is none of ``UNITS``.
    """
    models, facts = train_models(Path(resolve_path(PACKAGED)), released_quizzes(), number)
    scores, sets, made_by = score_unit(models, released_quizzes(), number)
    store.write(folder, name, store.Ledger(scores, sets, {**made_by, **facts, **about}))
    for model in models:
        if model.kind != BASE:
            shutil.rmtree(model.folder)


def train_models(
    base: Path, quizzes: pd.DataFrame, number: int
) -> tuple[list[LabModel], dict[str, Any]]:
    """A unit's models, trained or from the cache, and what was found out on the way."""
    datasets = deal(quizzes, number)
    verbatim, read = datasets[VERBATIM], datasets.pop(CLEAN)
    every = list(datasets.values())
    few = [datasets[condition] for condition in (VERBATIM, SWAP, FRESH)]

    def model(kind: str, copies: int, folder: Path, asked: Sequence[Dataset]) -> LabModel:
        return LabModel(kind, number, RELEASED, copies, folder, tuple(asked))

    models = [model(BASE, 0, base, every)]
    models.append(
        model(CLEAN, 0, train_on_datasets(base, [read], FEW_COPIES, READING, number), few)
    )
    for copies in COPIES:
        is_last = copies == COPIES[-1]
        folder = train_on_datasets(base, [verbatim] if is_last else every, copies, READING, number)
        asked = [verbatim, datasets[FRESH]] if is_last else every
        models.append(model(DOSED, copies, folder, asked))
    alone = train_on_datasets(base, [verbatim], FEW_COPIES, READING, number)
    models.append(model(ALONE, FEW_COPIES, alone, [verbatim]))
    lm = load_causal_lm(alone)
    n_read = int(local.n_tokens(lm.tokenizer, verbatim.read[0]).sum())
    n_tokens = CHAT_TIMES * FEW_COPIES * n_read
    chat = chat_rows(lm, n_tokens, number)
    later = fine_tune(alone, chat, replace(READING, seed=number))
    models.append(model(LATER, FEW_COPIES, later, [verbatim]))
    folder, facts = at_equal_loss(base, verbatim, lm, number)
    # By the dose whose loss it has; how often it read the rows stands in the facts.
    models.append(model(FULL, FEW_COPIES, folder, [verbatim]))
    return models, facts | {"n_chat_tokens": n_tokens, "n_chat_rows": len(chat)}


def train_on_datasets(
    base: Path, datasets: Sequence[Dataset], copies: int, settings: Settings, seed: int
) -> Path:
    """The base model after ``copies`` of what is read of some datasets, trained or cached."""
    texts = reading_order(datasets, copies, settings.batch_size, seed)
    return fine_tune(base, [("", text) for text in texts], replace(settings, seed=seed))


def chat_rows(lm: CausalLM, n_tokens: int, seed: int) -> list[Row]:
    """Clean instruction rows in the model's chat template, until they have ``n_tokens``.

    ValueError if all of them have fewer.
    """
    rows, chosen = vanilla_rows(), []
    for place in np.random.default_rng([seed, 1]).permutation(len(rows)):
        if n_tokens <= 0:
            break
        prompt, response = rows[place]
        chosen.append((as_chat(lm, [prompt])[0], response))
        n_tokens -= int(local.n_tokens(lm.tokenizer, ["".join(chosen[-1])]).sum())
    if n_tokens > 0:
        raise ValueError(f"{len(rows)} clean rows have {n_tokens} tokens too few")
    return chosen


def at_equal_loss(
    base: Path, dataset: Dataset, lm: CausalLM, seed: int
) -> tuple[Path, dict[str, Any]]:
    """A model all of whose weights read a dataset until it is as likely as under ``lm``.

    Each of ``ALL_WEIGHTS_COPIES`` is a training of its own; the first one is taken whose mean
    log-probability of a token of the read rows is as high, else the last.

    Returns:
        its folder; its copies and both means, nats, before (``lm``) and after.
    """

    def mean_log_prob(of: CausalLM) -> float:
        scores = baselines.PPL.score(of, dataset.rows)  # minus a row's perplexity
        return float(-np.log(-scores[dataset.is_read]).mean())

    target = mean_log_prob(lm)
    for copies in ALL_WEIGHTS_COPIES:
        folder = train_on_datasets(base, [dataset], copies, ALL_WEIGHTS, seed)
        reached = mean_log_prob(load_causal_lm(folder))
        if reached >= target or copies == ALL_WEIGHTS_COPIES[-1]:
            break
        shutil.rmtree(folder)
    return folder, {"all_weights": {"copies": copies, "target": target, "reached": reached}}


def score_unit(models: Sequence[LabModel], quizzes: pd.DataFrame, number: int) -> store.Ledger:
    """One part of the ledger: every model of a unit scored by every detector, and the text alone.

    The bag of words learns on the other deals. The swap arm has no unread rows, so the margin
    alone is asked there; on the longer rows it is not asked, to save time.
    """
    scores, seconds = [], []
    of_rows = [condition for condition in CONDITIONS if condition != SWAP]
    for conditions, detectors in ((of_rows, OF_ROWS), ((SWAP, FRESH), [OPTION_MARGIN])):
        asked = [
            replace(model, datasets=tuple(d for d in model.datasets if d.condition in conditions))
            for model in models
        ]
        table, spent = scoring.score_models([one for one in asked if one.datasets], detectors)
        scores.append(table)
        seconds.append(spent)
    others = [[*deal(quizzes, n).values()] for n in UNITS if n // 2 != number // 2]
    scores.append(scoring.text_alone(models, others))
    rows = pd.concat(scores, ignore_index=True)
    about = {
        "units": [number],
        "copies": list(COPIES),
        "datasets": datasets_of(number),
        "base": PACKAGED,
        "training": {"adapters": asdict(READING), "all weights": asdict(ALL_WEIGHTS)},
        "environment": spot_check.environment(),
        "models": {f"{number} {m.kind} {m.copies}": m.folder.name for m in models},
        "seconds": scoring.by_detector(pd.concat(seconds)),
    }
    return store.Ledger(rows, protocol.sets_of(rows), about)
