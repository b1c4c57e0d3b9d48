"""Token log-probabilities of the pretraining study's rows: what a token detector looks at.

A part of the ledger holds them for one base model, so that a new detector that looks at nothing
else is evaluated in seconds, without a model. Values are rounded to steps of ``STEPS`` and kept
as whole numbers; a text is never kept, since the lab draws the rows again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import scores, storage
from contamination.dcq.contaminating import training_texts
from contamination.lab import world
from contamination.models.loading import CausalLM
from contamination.models.local import TokenScores, load_causal_lm, token_ids, token_log_probs
from contamination.study import pretraining, row_pools, store
from contamination.study.interface import Rows
from contamination.study.row_pools import ROWS

NAME = "tokens"  # of the parts of the ledger
# Steps to which values are rounded, in nats. A token that a detector finds surprising has a
# log-probability between -3 and -12, of which half precision keeps steps of 1/512 to 1/128.
STEPS = {
    "log_prob": 1 / 64,
    "vocabulary_mean": 1 / 32,
    "vocabulary_std": 1 / 32,
    "lowercase_log_prob": 1 / 32,
}
# Min-k% Prob of the values before they are rounded, against the stored score: both are in single
# precision, so what is left is rounding in other batches.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class RowTokens:
    """What a model says of the tokens of one row; every token has a log-probability.

    The header of the dataset, under which models meet the row, is part of it. Arrays have shape
    (n_tokens,), but ``lowercase_log_probs``: a text in small letters has other tokens. Natural
    logarithms. ``vocabulary_mean`` and ``vocabulary_std`` are of the log-probability under the
    model's own distribution at that place.
    """

    text: str
    token_ids: np.ndarray
    log_probs: np.ndarray
    vocabulary_mean: np.ndarray
    vocabulary_std: np.ndarray
    lowercase_log_probs: np.ndarray


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A base model of the pretraining study of which nothing is there but its rows' tokens."""

    base_seed: int
    tokens: Mapping[str, pd.DataFrame]  # by benchmark, in the order of its rows


def row_tokens(model: CausalLM | StoredModel, rows: Rows) -> list[RowTokens]:
    """The tokens of every row, in order: of a model that runs here, or from the ledger.

    ValueError for rows that the ledger does not hold.
    """
    texts = training_texts(rows.texts, rows.dataset, rows.split)
    if not isinstance(model, StoredModel):
        whole = token_log_probs(model, texts, with_moments=True)
        lowercase = token_log_probs(model, [text.lower() for text in texts])
        return [
            RowTokens(text, of.token_ids, *_columns(of, small).values())
            for text, of, small in zip(texts, whole, lowercase, strict=True)
        ]
    pools = {pool.rows.dataset: pool for pool in row_pools.pools() if pool.kind == ROWS}
    if rows.dataset not in pools or rows.texts != pools[rows.dataset].rows.texts:
        raise ValueError("the ledger holds no tokens of these rows: take the rows of its pools")
    table = model.tokens[pools[rows.dataset].benchmark]
    return [
        RowTokens(text, np.array(ids), *values)
        for text, ids, *values in zip(
            texts, _ids_of(texts), *(table[column] for column in STEPS), strict=True
        )
    ]


@cache
def _ids_of(texts: tuple[str, ...]) -> list[list[int]]:
    return token_ids(row_pools.the_lab().tokenizer, texts)


def read_models() -> list[StoredModel]:
    """The models whose tokens the ledger holds; FileNotFoundError and ValueError as ``store``."""
    found = []
    for name in store.names(NAME):
        tables, about = store.read_tables(name)
        table = tables[NAME]
        for column, step in about["steps"].items():
            table[column] = [step * np.asarray(values, dtype=float) for values in table[column]]
        by_benchmark = dict(iter(table.sort_values("row").groupby("benchmark")))
        found.append(StoredModel(about["base_seed"], by_benchmark))
    return found


def _columns(whole: TokenScores, lowercase: TokenScores) -> dict[str, np.ndarray]:
    return {
        "log_prob": whole.token_log_probs,
        "vocabulary_mean": np.asarray(whole.vocabulary_mean),
        "vocabulary_std": np.asarray(whole.vocabulary_std),
        "lowercase_log_prob": lowercase.token_log_probs,
    }


def score_base(lab: world.World, base_seed: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """One part of the ledger: the tokens of every verbatim row under one base model.

    Returns:
        benchmark, row and the columns of ``STEPS``, arrays of whole numbers of steps; and what
        made them: base_seed, recipe hash, environment, and the largest difference between Min-k%
        Prob of these values, before and after they are rounded, and the stored score.
        ValueError where the recipe or a score is not that of the ledger.
    """
    folder = row_pools.base_model(lab, base_seed)
    recipe_hash = world.describe(folder)["recipe_hash"]
    stored, made_by = store.read_tables(f"{pretraining.NAME}_{base_seed}")
    if recipe_hash != made_by["models"][pretraining.PRETRAINED]["recipe_hash"]:
        raise ValueError(f"base model {base_seed} has another recipe than the ledger's")
    lm, tables = load_causal_lm(folder), []
    exact, rounded = [], []
    for pool in (pool for pool in row_pools.pools() if pool.kind == ROWS):
        texts = training_texts(pool.rows.texts, pool.rows.dataset, pool.rows.split)
        whole = token_log_probs(lm, texts, with_moments=True)
        lowercase = token_log_probs(lm, [text.lower() for text in texts])
        rows = [
            {
                name: np.round(np.asarray(values, dtype=float) / STEPS[name]).astype(np.int16)
                for name, values in _columns(*of_row).items()
            }
            for of_row in zip(whole, lowercase, strict=True)
        ]
        tables.append(pd.DataFrame(rows).assign(benchmark=pool.benchmark, row=np.arange(len(rows))))
        table = stored["scores"]
        key = {"detector": scores.MIN_K, "model": pretraining.PRETRAINED}
        key |= {"benchmark": pool.benchmark, "pool": ROWS}
        known = table[(table[list(key)] == list(key.values())).all(axis=1)].sort_values("row")
        values = known["score"].to_numpy(float)
        exact.append(np.array([scores.min_k_score(one.token_log_probs) for one in whole]) - values)
        again = [scores.min_k_score(row["log_prob"] * STEPS["log_prob"]) for row in rows]
        rounded.append(np.array(again) - values)
    largest = float(np.abs(np.concatenate(exact)).max())
    if largest > TOLERANCE:
        raise ValueError(f"Min-k% Prob under base model {base_seed} is off by {largest:.2g} nats")
    about = {
        "base_seed": base_seed,
        "world": store.world_of(lab),
        "models": {pretraining.PRETRAINED: {"recipe_hash": recipe_hash}},
        "environment": store.environment(),
        "steps": STEPS,
        "min_k_off_by": largest,
        "min_k_off_by_rounded": float(np.abs(np.concatenate(rounded)).max()),
    }
    columns = ["benchmark", "row", *STEPS]
    return pd.concat(tables, ignore_index=True)[columns], about


def write_part(folder: Path, name: str, about: Mapping[str, Any], base_seed: int) -> None:
    """``score_base`` as files of the ledger, ``about`` joined."""
    tokens, made_by = score_base(row_pools.the_lab(), base_seed)
    small = tokens.astype({"benchmark": "category", "row": "int16"})
    path = folder / f"{name}_{NAME}.parquet"
    with storage.atomic_path(path) as temporary:  # a third smaller than by the ledger's own packing
        small.to_parquet(
            temporary, index=False, compression="brotli", compression_level=11,
            use_dictionary=["benchmark", "row"],
            use_byte_stream_split=[f"{column}.list.element" for column in STEPS],
        )  # fmt: skip
    sha256 = {path.name: storage.sha256_of_file(path)}
    storage.write_json(folder / f"{name}.json", {**made_by, **about, "sha256": sha256})
