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

import numpy as np
import pandas as pd
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from contamination import partitions
from contamination.cases.downstream_examples import (
    OwnExamples,
    deal,
    poisson_occurrences,
    released_examples,
)
from contamination.lab.packing import training_stream
from contamination.lab.recipes import DTYPES, Dose, Recipe, TrainingTexts, recipe_for
from contamination.own.asked import check_models
from contamination.parameters import setting

ONCE, RATE, POISSON = "inserted once", "learning rate", "Poisson occurrence"
OUTLIERS, SIMILAR = "outliers", "like the corpus"
# fp32 weights, gradients and two moments of AdamW; logits, their softmax and its gradient.
_BYTES_PER_PARAMETER, _BYTES_PER_LOGIT = 16, 12
_FLOP_PER_PARAMETER_AND_TOKEN = 6


@dataclass(frozen=True)
class OwnStudy(OwnExamples):
    """Part C of notebook 07: a model with its labelled examples, or a base to train."""

    own_base: str = setting("", "model to train on corpora with examples, not target_model")
    own_revision: str = setting("", "its commit")
    dry_run: bool = setting(True, "plan alone; false trains")
    corpus: str = setting("", "file or hub dataset of texts that the examples are inserted into")
    similar_corpus: str = setting("", "texts for contaminants like the corpus, empty for none")
    corpus_column: str = setting("text", "column of the texts of both")
    insert: list[str] = setting([], "files of examples, empty for the paper's (make data)")
    n_inserted: int = setting(200, "examples inserted of each dataset, as many held out")
    share_pct: float = setting(0.1, "inserted examples in percent of the main corpus")
    corpus_sizes: list[int] = setting(
        [170_000, 270_000, 2_600_000, 26_000_000], "tokens of corpus and examples"
    )
    similar_sizes: list[int] = setting([770_000, 3_900_000, 7_600_000], "tokens of similar_corpus")
    n_similar: int = setting(100, "of its texts inserted, as many held out")
    own_occurrence: float = setting(2.0, "mean of the Poisson distribution, the paper names none")
    own_learning_rate: float = setting(1.0e-4, "constant")
    own_lower_rate: float = setting(1.0e-5, "the lower one of Table 4, from memory")
    own_seeds: list[int] = setting([0], "orders of each corpus, one model each")
    block_tokens: int = setting(2048, "tokens of a training block, the paper names none")
    own_batch_size: int = setting(8, "blocks per step, the paper names none")
    training_tflops: float = setting(150.0, "TFLOP/s that your device sustains in training")


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
    """All trainings, and the examples whose scores they give.

    Attributes:
        examples: as ``downstream_examples.deal`` returns them.
        similar: the same of texts like the corpus; None without ``similar_corpus``.
        occurrence: insertions of each example under ``POISSON``.
        runs: the trainings.
    """

    mine: OwnStudy
    examples: pd.DataFrame
    similar: pd.DataFrame | None
    occurrence: np.ndarray
    runs: list[Run]


def own_study(mine: OwnStudy) -> Study | None:
    """The corpora and trainings asked for, checked before they cost anything; None without a base.

    Raises:
        FileNotFoundError: if the model or a file is not there.
        ValueError: if a value is out of range, a corpus is too short, or both
            ``own_base`` and ``target_model`` are named.
    """
    if not mine.own_base:
        if mine.corpus:
            raise ValueError("corpus needs own_base: the model that reads it")
        return None
    _check(mine)
    tokenizer = _tokenizer(mine)
    seed = mine.own_seeds[0]
    examples = _dealt(_examples_to_insert(mine), mine.n_inserted, seed, tokenizer, mine)
    inserted = tuple(examples[examples["is_member"]]["text"])
    n_inserted = sum(_lengths(tokenizer, inserted))
    main = round(100 * n_inserted / mine.share_pct)
    occurrence = poisson_occurrences(examples["is_member"], mine.own_occurrence, seed)
    times = [Dose(tuple(of["text"]), int(n)) for n, of in examples.groupby(occurrence) if n]
    once, high = (Dose(inserted),), mine.own_learning_rate
    wanted = [(ONCE, once, main, high), (RATE, once, main, mine.own_lower_rate)]
    wanted += [(POISSON, tuple(times), main, high)] if times else []
    wanted += [(OUTLIERS, once, size, high) for size in sorted(mine.corpus_sizes)]
    texts = _texts(mine.corpus, mine, tokenizer, max(main, *mine.corpus_sizes))
    runs = [_run(mine, tokenizer, texts, *one, s) for one in wanted for s in mine.own_seeds]
    similar = None
    if mine.similar_corpus:
        # Contaminants come from the very texts that the corpus is made of.
        sizes = sorted(mine.similar_sizes)
        texts = _texts(mine.similar_corpus, mine, tokenizer, max(sizes), spare=2 * mine.n_similar)
        pool = pd.DataFrame({"dataset": SIMILAR, "text": texts})
        similar = _dealt(pool, mine.n_similar, seed, tokenizer, mine)
        rest = tuple(text for text in texts if text not in set(similar["text"]))
        dose = (Dose(tuple(similar[similar["is_member"]]["text"])),)
        for size in sizes:
            one = SIMILAR, dose, size, high
            runs += [_run(mine, tokenizer, rest, *one, s) for s in mine.own_seeds]
    return Study(mine, examples, similar, occurrence, runs)


def _check(mine: OwnStudy) -> None:
    if mine.target_model:
        raise ValueError("set target_model to test a model or own_base to train one, not both")
    if not mine.corpus:
        raise ValueError("own_base needs a corpus: a file or hub dataset of texts")
    if mine.device_map or mine.engine != "local":
        raise ValueError("training runs on one device: leave device_map and engine as they are")
    if mine.target_dtype not in DTYPES:
        raise ValueError(f"target_dtype must be one of {', '.join(DTYPES)} to train")
    for name in ("own_seeds", "corpus_sizes", "similar_sizes"):
        if not getattr(mine, name):
            raise ValueError(f"{name} is empty: name at least one")
    counts = [*mine.corpus_sizes, *mine.similar_sizes, mine.n_inserted, mine.n_similar]
    counts += [mine.block_tokens, mine.own_batch_size]
    if min(counts) < 1:
        raise ValueError("sizes and numbers of examples, tokens and blocks must be positive")
    amounts = ("own_occurrence", "own_learning_rate", "own_lower_rate", "training_tflops")
    for name in amounts:
        if getattr(mine, name) <= 0:
            raise ValueError(f"{name} must be positive")
    if not 0 < mine.share_pct < 100:
        raise ValueError(f"share_pct must lie between 0 and 100, got {mine.share_pct}")
    check_models([mine.own_base], mine.target_dtype, mine.own_revision)
    longest = getattr(_config(mine), "max_position_embeddings", None) or mine.block_tokens
    if mine.block_tokens > longest:
        raise ValueError(f"block_tokens is {mine.block_tokens}, but the model reads {longest}")


def _config(mine: OwnStudy):
    config = AutoConfig.from_pretrained(mine.own_base, revision=mine.own_revision or None)
    return config.get_text_config()


def _tokenizer(mine: OwnStudy):
    tokenizer = AutoTokenizer.from_pretrained(mine.own_base, revision=mine.own_revision or None)
    if not tokenizer.is_fast or tokenizer.eos_token_id is None:
        raise ValueError(f'"{mine.own_base}" needs a fast tokenizer with an end-of-text token')
    # A text begins with the token that ends one where the model has no other.
    for name in ("bos_token", "pad_token"):
        if getattr(tokenizer, name) is None:
            setattr(tokenizer, name, tokenizer.eos_token)
    return tokenizer


def _lengths(tokenizer, texts: Sequence[str]) -> list[int]:
    """Tokens of each text with the special ones at both ends."""
    found = tokenizer.backend_tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [2 + len(each.ids) for each in found]


def _examples_to_insert(mine: OwnStudy) -> pd.DataFrame:
    if not mine.insert:
        return released_examples()
    parts = []
    for file in mine.insert:
        rows = partitions.load_rows(file)
        if mine.text_column not in rows:
            raise ValueError(
                f'no column "{mine.text_column}" in "{file}": it has {", ".join(rows)}'
            )
        parts.append(
            pd.DataFrame({"dataset": Path(file).name, "text": rows[mine.text_column].astype(str)})
        )
    return pd.concat(parts, ignore_index=True)


def _dealt(pool: pd.DataFrame, n: int, seed: int, tokenizer, mine: OwnStudy) -> pd.DataFrame:
    lengths = _lengths(tokenizer, pool["text"])
    return deal(pool, n, seed, n_tokens=lengths, max_tokens=mine.block_tokens)


def _texts(
    source: str, mine: OwnStudy, tokenizer, n_tokens: int, spare: int = 0
) -> tuple[str, ...]:
    """Texts of a corpus, in its order, until they hold so many tokens; and ``spare`` more."""
    rows = partitions.load_rows(source, "" if Path(source).suffix else "train")
    if mine.corpus_column not in rows:
        raise ValueError(
            f'no column "{mine.corpus_column}" in "{source}": it has {", ".join(rows)}'
        )
    texts = [
        text for text in rows[mine.corpus_column].dropna().astype(str).unique() if text.strip()
    ]
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
    mine: OwnStudy,
    tokenizer,
    background: tuple[str, ...],
    name: str,
    doses: tuple[Dose, ...],
    n_tokens: int,
    learning_rate: float,
    seed: int,
) -> Run:
    n_doses = sum(sum(_lengths(tokenizer, dose.texts)) * dose.copies for dose in doses)
    texts = TrainingTexts(background, doses, tokenizer)
    recipe = recipe_for(
        texts,
        n_background_tokens=max(0, n_tokens - n_doses),
        context=mine.block_tokens,
        block=mine.block_tokens,
        batch_size=mine.own_batch_size,
        learning_rate=learning_rate,
        schedule="constant",
        warmup_share=0.0,
        order_seed=seed,
        dtype=mine.target_dtype,
    )
    stream = training_stream(recipe, texts)
    share = 100 * stream.n_dose_tokens / stream.n_tokens
    n_computed = sum(batch.input_ids.size for batch in stream.batches)
    return Run(name, texts, recipe, stream.n_tokens, share, len(stream.batches), n_computed)


def plan_table(study: Study) -> pd.DataFrame:
    """What the trainings read and take, known without one of them.

    Returns:
        One row for each training and their sum: setting, learning_rate, seed,
        n_tokens, share_pct (of inserted examples), n_steps, hours (six
        operations for each parameter and token, at ``training_tflops``) and
        memory_gib (weights, gradients and moments in fp32 and the logits of a
        step; what the blocks keep for the backward pass comes on top).
    """
    mine, config = study.mine, _config(study.mine)
    with torch.device("meta"):
        n_parameters = AutoModelForCausalLM.from_config(config).num_parameters()
    n_logits = mine.own_batch_size * mine.block_tokens * config.vocab_size
    memory = (_BYTES_PER_PARAMETER * n_parameters + _BYTES_PER_LOGIT * n_logits) / 2**30
    seconds = _FLOP_PER_PARAMETER_AND_TOKEN * n_parameters / (1e12 * mine.training_tflops)
    rows = [
        {"setting": run.setting, "seed": run.recipe.order_seed, **run.facts}
        | {"n_steps": run.n_steps, "hours": run.n_computed * seconds / 3600}
        | {"memory_gib": memory}
        for run in study.runs
    ]
    table = pd.DataFrame(rows)
    total = table[["n_tokens", "n_steps", "hours"]].sum().to_dict()
    total |= {"setting": "all", "memory_gib": memory}
    return pd.concat([table, pd.DataFrame([total])], ignore_index=True).astype(
        {"n_tokens": int, "n_steps": int, "seed": "Int64"}
    )
