"""Section 6 of Shi et al., arXiv:2310.16789, on a model of one's own: the corpora and the plan.

Examples are inserted at random places of a corpus, once or as often as a
Poisson draw says, and the model reads it for one epoch at a constant learning
rate. First comes the plan: what would be read, in how many steps, how long and
with how much memory. Nothing is trained while ``dry_run`` is on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import AutoModelForCausalLM

from contamination.audit.local_models import check_models
from contamination.cases.downstream_examples import (
    deal,
    examples_of_files,
    poisson_occurrences,
    released_examples,
)
from contamination.cases.settings import OwnStudy
from contamination.data import partitions
from contamination.lab.training import (
    DTYPES,
    Dose,
    Recipe,
    TrainingTexts,
    recipe_for,
    training_stream,
)
from contamination.models import local
from contamination.models.source import load_config, load_tokenizer

ONCE, RATE, POISSON = "inserted once", "learning rate", "Poisson occurrence"
OUTLIERS, SIMILAR = "outliers", "like the corpus"
# fp32 weights, gradients and two moments of AdamW; logits, their softmax and its gradient.
_BYTES_PER_PARAMETER, _BYTES_PER_LOGIT = 16, 12
_FLOP_PER_PARAMETER_AND_TOKEN = 6


def own_examples(settings: OwnStudy) -> pd.DataFrame | None:
    """One's own examples, checked before they cost anything; None without a model.

    Columns dataset (the file's name), text, is_member. A FileNotFoundError or
    ValueError in one line, also if two files have the same name.
    """
    who, parts = settings.model, []
    if settings.corpus:
        return None
    if bool(who.names) != bool(settings.datasets):
        missing = "datasets" if who.names else "model, names"
        raise ValueError(f"{missing} is empty: name a model and datasets, or neither")
    check_models([who.first, settings.neighbor_model], who.revision)
    for file in settings.datasets:
        columns = settings.text_column, settings.member_column
        texts, is_member = partitions.labelled_passages(partitions.load_rows(file), *columns)
        if min(is_member.sum(), (~is_member).sum()) < 2:
            raise ValueError(f'"{file}" needs at least two members and two non-members')
        name = Path(file).name if Path(file).is_absolute() else file
        parts.append(pd.DataFrame({"dataset": name, "text": texts, "is_member": is_member}))
    names = [part["dataset"].iloc[0] for part in parts]
    if len(set(names)) < len(names):
        raise ValueError(f"two datasets have the same name ({', '.join(names)}): rename one file")
    return pd.concat(parts, ignore_index=True) if parts else None


@dataclass(frozen=True, eq=False)
class Run:
    """One training: its table's setting, what is read and how, and what that takes."""

    setting: str
    texts: TrainingTexts
    recipe: Recipe
    n_tokens: int
    share_pct: float
    n_steps: int
    n_computed: int

    @property
    def facts(self) -> dict[str, float]:
        """Columns of the tables."""
        rate = self.recipe.learning_rate
        return {"n_tokens": self.n_tokens, "share_pct": self.share_pct, "learning_rate": rate}


@dataclass(frozen=True, eq=False)
class Study:
    """All trainings, and the examples whose scores they give."""

    settings: OwnStudy
    examples: pd.DataFrame  # as ``downstream_examples.deal`` returns them
    similar: pd.DataFrame | None  # the same of texts like the corpus, with ``similar_corpus``
    occurrence: np.ndarray  # insertions of each example under ``POISSON``
    runs: list[Run]


def own_study(settings: OwnStudy) -> Study | None:
    """The corpora and trainings asked for, checked before they cost anything; None without a base.

    FileNotFoundError if the model or a file is not there, ValueError if something does not fit.
    """
    if not settings.corpus:
        return None
    if not settings.model.names:
        raise ValueError("corpus needs model, names: the model that reads it")
    _check(settings)
    tokenizer = _tokenizer(settings)
    seed = settings.own_seeds[0]
    files, column = settings.insert, settings.text_column
    pool = examples_of_files(files, column) if files else released_examples()
    examples = _dealt(pool, settings.n_inserted, seed, tokenizer, settings)
    inserted = tuple(examples[examples["is_member"]]["text"])
    n_inserted = int(_lengths(tokenizer, inserted).sum())
    main = round(100 * n_inserted / settings.share_pct)
    occurrence = poisson_occurrences(examples["is_member"], settings.own_occurrence, seed)
    times = [Dose(tuple(of["text"]), int(n)) for n, of in examples.groupby(occurrence) if n]
    once, high = (Dose(inserted),), settings.own_learning_rate
    wanted: list[tuple[str, tuple[Dose, ...], int, float]] = [
        (ONCE, once, main, high),
        (RATE, once, main, settings.own_lower_rate),
    ]
    wanted += [(POISSON, tuple(times), main, high)] if times else []
    wanted += [(OUTLIERS, once, size, high) for size in sorted(settings.corpus_sizes)]
    corpus = settings.corpus, settings.corpus_column
    texts = _texts(*corpus, tokenizer, max(main, *settings.corpus_sizes))
    runs = [_run(settings, tokenizer, texts, *one, s) for one in wanted for s in settings.own_seeds]
    similar = None
    if settings.similar_corpus:
        # Contaminants come from the very texts that the corpus is made of.
        corpus = settings.similar_corpus, settings.similar_column or settings.corpus_column
        sizes = sorted(settings.similar_sizes)
        texts = _texts(*corpus, tokenizer, sizes[-1], spare=2 * settings.n_similar)
        pool = pd.DataFrame({"dataset": SIMILAR, "text": texts})
        similar = _dealt(pool, settings.n_similar, seed, tokenizer, settings)
        rest = tuple(text for text in texts if text not in set(similar["text"]))
        dose = (Dose(tuple(similar[similar["is_member"]]["text"])),)
        for size in sizes:
            one = SIMILAR, dose, size, high
            runs += [_run(settings, tokenizer, rest, *one, s) for s in settings.own_seeds]
    return Study(settings, examples, similar, occurrence, runs)


def _check(settings: OwnStudy) -> None:
    if settings.datasets:
        raise ValueError("set datasets to test a model or corpus to train one, not both")
    if settings.model.device_map:
        raise ValueError("training runs on one device: leave device_map empty")
    if settings.model.dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)} to train")
    check_models([settings.model.first, settings.neighbor_model], settings.model.revision)
    longest = getattr(_config(settings), "max_position_embeddings", None) or settings.block_tokens
    if settings.block_tokens > longest:
        raise ValueError(f"block_tokens is {settings.block_tokens}, but the model reads {longest}")


def _config(settings: OwnStudy) -> Any:
    config = load_config(settings.model.first, settings.model.revision or None)
    return config.get_text_config()


def _tokenizer(settings: OwnStudy) -> Any:
    revision = settings.model.revision or None
    tokenizer = load_tokenizer(settings.model.first, revision=revision)
    if not tokenizer.is_fast or tokenizer.eos_token_id is None:
        name = settings.model.first
        raise ValueError(f'"{name}" needs a fast tokenizer with an end-of-text token')
    # A text begins with the token that ends one where the model has no other.
    for name in ("bos_token", "pad_token"):
        if getattr(tokenizer, name) is None:
            setattr(tokenizer, name, tokenizer.eos_token)
    return tokenizer


def _lengths(tokenizer: Any, texts: Sequence[Any]) -> np.ndarray:
    """Tokens of each text with the special ones at both ends, shape (n_texts,)."""
    return local.n_tokens(tokenizer, texts, n_special=2)


def _dealt(
    pool: pd.DataFrame, n: int, seed: int, tokenizer: Any, settings: OwnStudy
) -> pd.DataFrame:
    lengths = _lengths(tokenizer, pool["text"])
    return deal(pool, n, seed, n_tokens=lengths, max_tokens=settings.block_tokens)


def _texts(
    source: str, column: str, tokenizer: Any, n_tokens: int, spare: int = 0
) -> tuple[str, ...]:
    """Texts of a corpus, in its order, until they hold so many tokens; and ``spare`` more."""
    found = partitions.load_columns(source, "train", [column])[column].dropna().astype(str)
    texts = [text for text in found.unique() if text.strip()]
    n_found = 0
    for start in range(0, len(texts), 1000):
        ends = n_found + np.cumsum(_lengths(tokenizer, texts[start : start + 1000]))
        n_found = int(ends[-1])
        n_used = start + int(np.searchsorted(ends, n_tokens)) + 1 + spare
        if n_found >= n_tokens and n_used <= len(texts):
            return tuple(texts[:n_used])
    raise ValueError(
        f'"{source}" holds {n_found} tokens in {len(texts)} texts, {n_tokens} are needed: '
        "name a longer corpus or smaller sizes (the main corpus follows from share_pct)"
    )


def _run(
    settings: OwnStudy,
    tokenizer: Any,
    background: tuple[str, ...],
    name: str,
    doses: tuple[Dose, ...],
    n_tokens: int,
    learning_rate: float,
    seed: int,
) -> Run:
    n_doses = sum(int(_lengths(tokenizer, dose.texts).sum()) * dose.copies for dose in doses)
    texts = TrainingTexts(background, doses, tokenizer)
    recipe = recipe_for(
        texts,
        n_background_tokens=max(0, n_tokens - n_doses),
        context=settings.block_tokens,
        block=settings.block_tokens,
        batch_size=settings.own_batch_size,
        learning_rate=learning_rate,
        schedule="constant",
        warmup_share=0.0,
        order_seed=seed,
        dtype=settings.model.dtype,
    )
    stream = training_stream(recipe, texts)
    share = 100 * stream.n_dose_tokens / stream.n_tokens
    n_computed = sum(batch.input_ids.size for batch in stream.batches)
    return Run(name, texts, recipe, stream.n_tokens, share, len(stream.batches), n_computed)


def plan_table(study: Study) -> pd.DataFrame:
    """What the trainings read and take, one row each and their sum, known without one of them.

    share_pct is of inserted examples; hours are six operations for each parameter and token
    at ``training_tflops``; memory_gib holds weights, gradients and moments in fp32 and the
    logits of a step (what the blocks keep for the backward pass comes on top).
    """
    settings, config = study.settings, _config(study.settings)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    n_parameters = model.num_parameters()
    n_logits = settings.own_batch_size * settings.block_tokens * config.vocab_size
    memory = (_BYTES_PER_PARAMETER * n_parameters + _BYTES_PER_LOGIT * n_logits) / 2**30
    seconds = _FLOP_PER_PARAMETER_AND_TOKEN * n_parameters / (1e12 * settings.training_tflops)
    rows = [
        {"setting": run.setting, "seed": run.recipe.order_seed, **run.facts}
        | {"n_steps": run.n_steps, "hours": run.n_computed * seconds / 3600}
        for run in study.runs
    ]
    sums = pd.DataFrame(rows)[["n_tokens", "n_steps", "hours"]].sum().to_dict()
    table = pd.DataFrame([*rows, {"setting": "all", **sums}]).assign(memory_gib=memory)
    return table.astype({"n_tokens": int, "n_steps": int, "seed": "Int64"})
