"""The small world that the notebooks share: its texts, its tokenizer, its base models.

Everything follows from the arguments, and everything costly is cached under
the hash of what decides it, so notebooks that build the same world share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tokenizers
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from contamination.core import storage
from contamination.core.parallel import in_processes
from contamination.data.partitions import format_instance
from contamination.lab.grammar import BENCHMARKS, draw_instances
from contamination.lab.passages import collect_docstrings, split_by_family
from contamination.lab.passages import passages_of_length as at_length  # noqa: F401
from contamination.lab.tokenizer import tokenizer_of, train_tokenizer
from contamination.lab.training import (
    Dose,
    Recipe,
    TrainingTexts,
    background_read,
    describe,
    recipe_for,
    train,
)

SHAPE = ("n_layers", "width", "n_heads")
# M is the size used elsewhere; XL, of 29 M parameters, wants a GPU.
SIZES = {"XS": (2, 48, 2), "S": (3, 80, 4), "M": (4, 128, 4), "XL": (8, 512, 8)}
DEFAULT_SIZE = "M"
# Continued training is gentler than training from scratch: at 1e-3 a single
# copy already separates members, which leaves nothing of a dose to be seen.
CONTINUED_LEARNING_RATE = 3e-4
# Shares of the base model's tokens that smaller trainings read.
MASKED_SHARE = 0.3
CONTINUED_SHARE = 0.03
N_BACKGROUND_INSTANCES = 100  # of each mini-benchmark, so that models know the formats
TOKENIZER_VERSION = 1  # raise it when ``train_tokenizer`` makes another one of the same texts
# The longest prose passage of 256 words has fewer tokens; what has more is a table of numbers.
MAX_PASSAGE_TOKENS = 600


@dataclass(frozen=True)
class World:
    """Texts and tokenizer of the lab."""

    docstrings: pd.DataFrame  # every docstring of the installed packages
    passages: pd.DataFrame  # the clean random split (``lab.passages.split_by_family``)
    background: tuple[str, ...]  # what every model reads
    tokenizer: PreTrainedTokenizerFast  # of background and of draws used nowhere else

    def texts(self, *doses: Dose) -> TrainingTexts:
        """Training texts: the background and these doses."""
        return TrainingTexts(self.background, doses, self.tokenizer)


def build_world(seed: int) -> World:
    """The lab's texts and tokenizer under one seed of the deal; some seconds, then cached."""
    docstrings = collect_docstrings()
    passages = split_by_family(docstrings, seed)
    prose = passages.loc[passages["role"] == "background", "text"].tolist()
    background = (*prose, *_instances("background", seed))
    texts = [*prose, *_instances("tokenizer", seed)]

    def merges() -> pd.DataFrame:
        return pd.DataFrame({"json": [train_tokenizer(texts).backend_tokenizer.to_str()]})

    inputs = [texts, tokenizers.__version__]
    merged = storage.cached_table("lab", "tokenizers", TOKENIZER_VERSION, inputs, merges)
    tokenizer = tokenizer_of(Tokenizer.from_str(merged["json"].item()))
    return World(docstrings, passages, background, tokenizer)


def _instances(part: str, seed: int) -> list[str]:
    return [
        format_instance(row, benchmark.columns)
        for benchmark in BENCHMARKS.values()
        for row in draw_instances(benchmark, N_BACKGROUND_INSTANCES, seed, part).to_dict("records")
    ]


def base_model(
    world: World,
    n_background_tokens: int,
    seed: int,
    size: str = DEFAULT_SIZE,
    doses: Sequence[Dose] = (),
) -> Path:
    """A model from scratch on background, and doses mixed in; ``seed``: of weights and order."""
    return train(*recipe_from_scratch(world, doses, n_background_tokens, seed, size))


def recipe_from_scratch(
    world: World,
    doses: Sequence[Dose],
    n_background_tokens: int,
    seed: int,
    size: str,
    **settings: Any,
) -> tuple[Recipe, TrainingTexts]:
    """Recipe and texts of a model of a size, from scratch on background and doses mixed.

    ``settings`` are further fields of the recipe.
    """
    texts = world.texts(*doses)
    shape = dict(zip(SHAPE, SIZES[size], strict=True))
    seeds = {"seed": seed, "order_seed": seed}
    how = {"n_background_tokens": n_background_tokens} | shape | seeds | settings
    return recipe_for(texts, **how), texts


def continued_model(
    world: World,
    base: Path,
    doses: Sequence[Dose],
    n_background_tokens: int,
    seed: int,
    learning_rate: float = CONTINUED_LEARNING_RATE,
    **settings: Any,
) -> Path:
    """A base model trained on, on background and doses mixed; no dose makes the clean counterpart.

    The seed is of the order; ``settings`` are further fields of the recipe, such as ``ascent``.
    """
    texts = world.texts(*doses)
    parent = describe(base)
    shape = {name: parent["recipe"][name] for name in SHAPE}
    how = {"n_background_tokens": n_background_tokens, "learning_rate": learning_rate}
    how |= {"seed": parent["recipe"]["seed"], "order_seed": seed, "parent": parent["recipe_hash"]}
    return train(recipe_for(texts, **how, **shape, **settings), texts, parent=base)


def continued_models(
    world: World,
    base: Path,
    runs: Sequence[tuple[Sequence[Dose], int]],
    n_background_tokens: int,
    learning_rate: float = CONTINUED_LEARNING_RATE,
    **settings: Any,
) -> list[Path]:
    """:func:`continued_model` for each pair of doses and seed, several at a time."""
    train_one = partial(continued_model, world, base, learning_rate=learning_rate, **settings)
    return in_processes(train_one, [(doses, n_background_tokens, seed) for doses, seed in runs])


def reordered_model(world: World, base: Path, folder: Path, seed: int) -> Path:
    """A model that read the same background texts as ``folder``, in another order (its seed).

    ``folder`` is by :func:`continued_model` from ``base``. ValueError if it read doses, or more
    tokens than the background has.
    """
    checkpoint = describe(folder)
    recipe = Recipe(**checkpoint["recipe"])
    texts = replace(world.texts(), background=background_read(recipe, world.texts()))
    # Told to read as many tokens as they have, it reads each of them once.
    n_tokens = sum(
        len(world.tokenizer(text, verbose=False).input_ids) + 1 for text in texts.background
    )
    if n_tokens != checkpoint["n_tokens"]:
        raise ValueError(
            "the model to reorder read doses, or texts more than once: name a clean one that read "
            "fewer tokens"
        )
    recipe = replace(recipe, **texts.hashes(), n_background_tokens=n_tokens, order_seed=seed)
    return train(recipe, texts, parent=base)


def continued_tokens(n_background_tokens: int) -> int:
    """Background tokens that a continued model reads next to its doses, given the base model's."""
    return round(CONTINUED_SHARE * n_background_tokens)


def masked_model(world: World, n_background_tokens: int, seed: int) -> Path:
    """A small masked language model, for the neighbours of a passage.

    Of the base model's ``n_background_tokens`` it reads ``MASKED_SHARE``.
    """
    texts, n_tokens = world.texts(), round(MASKED_SHARE * n_background_tokens)
    how = {"objective": "masked", "n_layers": 2, "seed": seed, "order_seed": seed}
    return train(recipe_for(texts, n_background_tokens=n_tokens, **how), texts)


def model_row(name: str, folder: Path) -> dict:
    """The row of ``lab_models.csv``: what a checkpoint is (:func:`describe`) and its doses.

    n_contaminated counts the texts dosed; copies are per dose, as text; seed is of the order.
    """
    checkpoint = describe(folder)
    recipe = checkpoint["recipe"]
    return {
        "model": name,
        "recipe_hash": checkpoint["recipe_hash"],
        **{name: recipe[name] for name in ("objective", "dtype", "n_layers", "width")},
        **{name: checkpoint[name] for name in ("n_parameters", "n_tokens")},
        "n_contaminated": sum(n_texts for _, n_texts, _ in recipe["doses"]),
        "copies": ", ".join(str(copies) for *_, copies in recipe["doses"]) or "0",
        "share_pct": checkpoint["share_pct"],
        "learning_rate": recipe["learning_rate"],
        "seed": recipe["order_seed"],
        "parent": recipe["parent"] or "",
    }


def one_per_family(
    world: World, passages: pd.DataFrame, role: str, max_families: int = 0
) -> pd.DataFrame:
    """The longest passage of each family of a role (member, non-member or held-out), whole.

    Families were dealt whole, so only passages of different families are independent. Those of
    more than ``MAX_PASSAGE_TOKENS`` tokens are passed over in every role alike. ``max_families``
    are taken by name; 0 means all.
    """
    of_role = passages[passages["role"] == role]
    encoded = world.tokenizer.backend_tokenizer.encode_batch(of_role["text"].tolist())
    of_role = of_role[[len(tokens.ids) <= MAX_PASSAGE_TOKENS for tokens in encoded]]
    longest = of_role.sort_values("n_words", ascending=False, kind="stable")
    chosen = longest.drop_duplicates("family").sort_values("family")
    return chosen.head(max_families or None).sort_index().reset_index(drop=True)


def dealt_passages(
    world: World, copies: Sequence[int], seed: int, max_families: int = 0
) -> pd.DataFrame:
    """One passage of each member and non-member family of the clean split, dealt anew.

    Half of the passages become members, and the numbers of copies (one that occurs twice gets
    two shares) fall on equal shares of them; among passages of like length, so that every
    deal has as many members of each dose at each length, give or take one. Passages and their
    order do not depend on the seed. ``copies`` of non-members are 0.
    """
    roles = ("member", "non-member")
    parts = [one_per_family(world, world.passages, role, max_families) for role in roles]
    pool = pd.concat(parts, ignore_index=True)
    shuffled = np.random.default_rng([seed, 3]).random(len(pool))
    dealt = np.empty(len(pool), dtype=int)
    pattern = [n for number in copies for n in (number, 0)]
    dealt[np.lexsort((shuffled, pool["n_words"]))] = np.resize(pattern, len(pool))
    return pool.assign(role=np.where(dealt > 0, *roles), copies=dealt)


def doses_of(passages: pd.DataFrame) -> list[Dose]:
    """One dose for each number of copies above 0, fewest first; column ``copies`` decides."""
    members = passages[passages["copies"] > 0]
    return [Dose(tuple(group["text"]), int(n)) for n, group in members.groupby("copies")]
