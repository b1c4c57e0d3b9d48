"""A real model at known doses, as ``docs/protocol_pretrained.md`` fixes.

A **unit** is one deal of rows and the models that read them, and a part of the ledger. All units
share one base model, so what they say is said of this model. Two tables:

* ``scores``: detector, unit, benchmark, model, condition, copies, row, is_read, score;
* ``sets``: the same up to copies, n_read, n_unread, value (AUC of read against unread rows), p, and
  own_p, which is always NaN.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from contamination.core.statistics import auc, holm
from contamination.dcq.quizzes import released_quizzes
from contamination.dice.mixtures import Row, vanilla_rows
from contamination.dice.pool import Settings, fine_tune
from contamination.models import local
from contamination.models.local import CausalLM, as_chat, load_causal_lm
from contamination.models.source import PACKAGED, resolve_path
from contamination.study import baselines, store
from contamination.study.conditions import (
    ALONE,
    BASE,
    CLEAN,
    CONDITIONS,
    DOSED,
    FRESH,
    FULL,
    LATER,
    READERS,
    SWAP,
    TEXT_ALONE,
    VERBATIM,
)
from contamination.study.crossed import stouffer
from contamination.study.interface import Detector, row_scores
from contamination.study.protocol import permutation_p
from contamination.study.released_rows import (
    OPTION_MARGIN,
    RELEASED,
    UNITS,
    Dataset,
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
OF_ROWS = (*OF_TOKENS, *baselines.CONTROLS)
# Of a unit; at 250 tokens a second to read (150 by all weights) and 500 to score.
TOKENS_READ, TOKENS_SCORED, MINUTES = 205_000, 125_000, 20
CELL = ["benchmark", "model", "condition", "copies"]
KEY = ["detector", "unit", *CELL]
COLUMNS = [*KEY, "row", "is_read", "score"]
SET_COLUMNS = [*KEY, "n_read", "n_unread", "value", "p", "own_p"]


@dataclass(frozen=True)
class LabModel:
    """A model of a unit and the datasets that it is asked about."""

    kind: str  # ``BASE``, ``CLEAN`` or one of ``READERS`` of ``conditions``
    unit: int
    copies: int  # of all that is read; 0 for a base or clean model
    folder: Path
    datasets: tuple[Dataset, ...]


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
    scores, made_by = score_unit(models, released_quizzes(), number)
    small = {"score": "float32", "row": "int16", "copies": "int16", "unit": "int16"}
    small |= dict.fromkeys(["detector", "benchmark", "model", "condition"], "category")
    sets = sets_of(scores).astype(dict.fromkeys(["value", "p", "own_p"], float))
    tables = {"scores": scores.astype(small), "sets": sets}
    store.write_tables(folder, name, tables, {**made_by, **facts, **about})
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
        return LabModel(kind, number, copies, folder, tuple(asked))

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


def score_unit(
    models: Sequence[LabModel], quizzes: pd.DataFrame, number: int
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Every model of a unit scored by every detector, and the text alone; and what made them.

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
        table, spent = score_models([one for one in asked if one.datasets], detectors)
        scores.append(table)
        seconds += spent
    others = [[*deal(quizzes, n).values()] for n in UNITS if n // 2 != number // 2]
    scores.append(text_alone(models, others))
    sums = pd.DataFrame(seconds).groupby("detector", sort=False).sum().round(1).reset_index()
    about = {
        "units": [number],
        "copies": list(COPIES),
        "datasets": datasets_of(number),
        "base": PACKAGED,
        "training": {"adapters": asdict(READING), "all weights": asdict(ALL_WEIGHTS)},
        "environment": store.environment(),
        "models": {f"{number} {m.kind} {m.copies}": m.folder.name for m in models},
        "seconds": sums.to_dict("records"),
    }
    return pd.concat(scores, ignore_index=True), about


def score_models(
    models: Iterable[LabModel], detectors: Sequence[Detector]
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """``scores`` of every row under every model, and detector, n_rows and seconds of each model."""
    tables, seconds = [], []
    for model in models:
        lm = load_causal_lm(model.folder)
        for detector in detectors:
            start = time.perf_counter()
            for dataset in model.datasets:
                values = row_scores(detector, lm, dataset.rows)
                tables.append(_rows(detector.name, model, dataset, values))
            spent = {"n_rows": sum(len(dataset.rows) for dataset in model.datasets)}
            spent["seconds"] = time.perf_counter() - start
            seconds.append({"detector": detector.name, **spent})
    return pd.concat(tables, ignore_index=True), seconds


def _rows(name: str, model: LabModel, dataset: Dataset, values: np.ndarray) -> pd.DataFrame:
    key = (name, model.unit, RELEASED, model.kind, dataset.condition, model.copies)
    table = pd.DataFrame({"row": np.arange(len(values)), "is_read": dataset.is_read})
    table["score"] = values
    return table.assign(**dict(zip(KEY, key, strict=True)))[COLUMNS]


def text_alone(models: Iterable[LabModel], others: Sequence[Sequence[Dataset]]) -> pd.DataFrame:
    """``scores`` of a bag of words that knows no model, for dosed models.

    For each of their conditions a logistic regression learns on ``others``, the datasets of other
    units, which rows were dealt to be read. The deal is random, so it should find nothing.
    """
    words = {}
    for condition in dict.fromkeys(one.condition for unit in others for one in unit):
        own = [dataset for unit in others for dataset in unit if dataset.condition == condition]
        bag = make_pipeline(CountVectorizer(binary=True), LogisticRegression(max_iter=1000))
        texts = [text for dataset in own for text in dataset.rows.texts]
        words[condition] = bag.fit(texts, np.concatenate([dataset.is_read for dataset in own]))
    tables = []
    for model in models:
        for dataset in model.datasets if model.kind == DOSED else ():
            values = words[dataset.condition].decision_function(list(dataset.rows.texts))
            tables.append(_rows(TEXT_ALONE, model, dataset, values))
    return pd.concat(tables, ignore_index=True)


def sets_of(scores: pd.DataFrame) -> pd.DataFrame:
    """``sets``: AUC of read against unread rows, and p by re-dealing.

    ValueError for a row that stands twice, an undefined score, a set without both kinds.
    """
    if scores.duplicated([*KEY, "row"]).any():
        raise ValueError("a row has two scores by one detector under one model")
    rows = []
    for key, part in scores.sort_values("row").groupby(KEY):
        values, is_read = part["score"].to_numpy(float), part["is_read"].to_numpy(bool)
        figures = (auc(values, is_read), permutation_p(values, is_read, key), np.nan)
        rows.append((*key, is_read.sum(), (~is_read).sum(), *figures))
    return pd.DataFrame(rows, columns=SET_COLUMNS)


def combine_p_values(sets: pd.DataFrame) -> pd.DataFrame:
    """One p-value over all models, by Stouffer's method, for each detector and exposure.

    Returns:
        detector, ``CELL``, n_units (models), auc and auc_before (under the base model, with the
        same assignment; NaN where it was not asked), means over models; p_value; p_adjusted by
        Holm over a detector's exposures whose rows were seen, NaN in all other rows.
    """
    before = sets[sets["model"].eq(BASE)].set_index(["detector", "unit", "condition"])["value"]
    known = sets[sets["model"].ne(BASE)]
    known = known.join(before.rename("before"), on=["detector", "unit", "condition"])
    rows = []
    for key, cell in known.groupby(["detector", *CELL], sort=False):
        means = cell["value"].mean(), cell["before"].mean()
        rows.append((*key, len(cell), *means, stouffer(cell["p"].to_numpy())))
    columns = ["detector", *CELL, "n_units", "auc", "auc_before", "p_value"]
    table = pd.DataFrame(rows, columns=columns)
    was_read = table["model"].isin(READERS) & table["condition"].ne(FRESH)
    adjusted = table[was_read].groupby("detector")["p_value"].transform(holm)
    return table.assign(p_adjusted=adjusted)
