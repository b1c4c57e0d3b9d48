"""Pools of rows that base models share, and base models that see some of them in pretraining.

Each base model of ``docs/protocol_2.md`` sees other rows of the pools, at other numbers of copies.
So rows and models are crossed (``study.crossed``), and the models are each other's shadow models
(``study.reference_attack``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from contamination.dcq.contaminating import training_texts
from contamination.dcq.quizzes import quizzes_of_groups
from contamination.lab import grammar, training, world
from contamination.lab.grammar import draw_groups
from contamination.lab.training import Dose, Recipe, TrainingTexts
from contamination.models import local
from contamination.study.assignment import assign
from contamination.study.conditions import PARAPHRASE, VERBATIM, WITHOUT_LABEL
from contamination.study.interface import N_CONTEXT, TESTED, Rows, question_of, rows_of, title

BENCHMARKS = ("topics", "entailment", "grade_school")
BASE_SEEDS = tuple(range(300, 320))
POOL_SEED = 300
LARGER_LEARNING_RATE = 1e-3  # of Pythia-31M, which is as large as world.SIZES["XL"]
LATER_TOKENS = (100_000, 400_000)  # of clean text after pretraining, two continuations apart
ROWS, INDIRECT = "rows", "indirect"
INDIRECT_ON = "topics"
HELD_OUT = "held out"
CHAT = "chat template"  # the other forms are conditions
PART = TESTED  # of the grammar, which draws no background from it


@lru_cache(maxsize=1)
def the_lab() -> world.World:
    """The lab that notebook 01 builds."""
    return world.build_world(0)


@dataclass(frozen=True)
class Group:
    """Rows of a pool that a model sees in one form, so many times; or not at all (0 copies)."""

    form: str
    copies: int
    size: int

    @property
    def name(self) -> str:
        """Form and copies, or ``HELD_OUT``."""
        return f"{self.form}, {self.copies} copies" if self.copies else HELD_OUT


DOSES = (1, 4, 16)
GROUPS = {
    ROWS: (*(Group(VERBATIM, copies, 60) for copies in DOSES), Group(VERBATIM, 0, 300)),
    INDIRECT: (
        Group(PARAPHRASE, 4, 60),
        Group(PARAPHRASE, 16, 60),
        Group(WITHOUT_LABEL, 4, 60),
        Group(CHAT, 4, 60),
        Group(VERBATIM, 0, 120),
    ),
}


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows of one benchmark that all base models share, and the forms in which they are seen."""

    benchmark: str
    kind: str  # ``ROWS`` or ``INDIRECT``
    rows: Rows
    label: str  # the last field of a row

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that rows are assigned to, in a fixed order."""
        return GROUPS[self.kind]

    @cached_property
    def forms(self) -> Mapping[str, tuple[str, ...]]:
        """What a model sees of each row, for every form, under the header of the dataset."""
        texts, questions = self.rows.texts, self.rows.questions
        forms = {
            VERBATIM: texts,
            PARAPHRASE: tuple(self.rows.quizzes["fifth"]),  # no quiz shows it
            WITHOUT_LABEL: questions,
        }
        under_header = {
            form: training_texts(seen, self.rows.dataset, self.rows.split)
            for form, seen in forms.items()
        }
        chat = (in_chat(text, self.label) for text in texts)
        return under_header | {CHAT: tuple(chat)}

    def assigned(self, base_seed: int) -> np.ndarray:
        """The name of the group of every row under one base model, shape (n_rows,)."""
        sizes = {group.name: group.size for group in self.groups}
        return assign(base_seed, self.benchmark, self.kind, sizes)

    def doses(self, base_seed: int) -> list[Dose]:
        """What a base model sees of the pool."""
        assigned = self.assigned(base_seed)
        found = []
        for group in self.groups:
            texts = np.array(self.forms[group.form], dtype=object)[assigned == group.name]
            if group.copies:
                found.append(Dose(tuple(texts), group.copies))
        return found


def in_chat(text: str, label: str) -> str:
    """A row in the chat template, under no header.

    >>> in_chat("text: A storm.\\nlabel: 0 (World)", "label")
    'User: text: A storm.\\nAssistant: 0 (World)'
    """
    question = question_of(text, label)
    answer = text.removeprefix(f"{question}\n{label}: ")
    return f"User: {question}\nAssistant: {answer}"


@cache
def pools() -> tuple[Pool, ...]:
    """The pools of rows: one of each benchmark, and one for indirect exposure."""
    kinds = [(benchmark, ROWS) for benchmark in BENCHMARKS] + [(INDIRECT_ON, INDIRECT)]
    return tuple(_pool(benchmark, kind) for benchmark, kind in kinds)


def _pool(benchmark: str, kind: str) -> Pool:
    """Both pools of a benchmark come from one draw, so that no row is in two of them."""
    columns = grammar.BENCHMARKS[benchmark].columns
    sizes = {of: sum(group.size for group in GROUPS[of]) for of in GROUPS}
    n_rows = sum(sizes.values()) + N_CONTEXT
    groups = draw_groups(grammar.BENCHMARKS[benchmark], n_rows, POOL_SEED, PART, n_paraphrases=5)
    quizzes = quizzes_of_groups(groups, columns)
    start = 0 if kind == ROWS else sizes[ROWS]
    own = quizzes.iloc[start : start + sizes[kind]].reset_index(drop=True)
    name = f"{title(benchmark)} {'P' if kind == ROWS else 'Q'}"
    label, context = columns[-1], quizzes["instance"].iloc[-N_CONTEXT:]
    return Pool(benchmark, kind, rows_of(own, name, label, context, POOL_SEED), label)


def background_tokens(lab: world.World) -> int:
    """Tokens of all background texts, with the two that mark the ends of each."""
    return _tokens_of(lab.background, lab.tokenizer)


@cache
def _tokens_of(texts: tuple[str, ...], tokenizer: PreTrainedTokenizerFast) -> int:
    return int(local.n_tokens(tokenizer, texts, n_special=2).sum())


def grammar_share(lab: world.World) -> float:
    """The share of the background's tokens that are rows of the lab's grammars, 0 to 1.

    These are other rows than those of the pools; they teach a model the formats.
    """
    n_rows = world.N_BACKGROUND_INSTANCES * len(grammar.BENCHMARKS)
    return _tokens_of(lab.background[-n_rows:], lab.tokenizer) / background_tokens(lab)


def base_recipe(
    lab: world.World, base_seed: int, is_larger: bool = False
) -> tuple[Recipe, TrainingTexts]:
    """How a base model is trained: on the background and its rows of the pools.

    Rows are spread over the whole training. ``is_larger``: as ``docs/protocol_larger.md`` says.
    """
    doses = [dose for pool in pools() for dose in pool.doses(base_seed)]
    n_tokens = background_tokens(lab)
    if is_larger:
        return world.recipe_from_scratch(
            lab, doses, n_tokens, base_seed, "XL", learning_rate=LARGER_LEARNING_RATE
        )
    return world.recipe_from_scratch(lab, doses, n_tokens, base_seed, world.DEFAULT_SIZE)


def base_model(lab: world.World, base_seed: int, is_larger: bool = False) -> Path:
    """A base model of ``base_recipe``: from the cache, or trained in five minutes of a core.

    A larger one takes an hour of a core, or a minute on a GPU.
    """
    return training.train(*base_recipe(lab, base_seed, is_larger))


def later_model(lab: world.World, base: Path, base_seed: int, n_tokens: int) -> Path:
    """A base model that goes on for ``n_tokens`` of clean background."""
    return world.continued_model(lab, base, (), n_tokens, base_seed)


def exposure(lab: world.World, base_seeds: Sequence[int]) -> list[dict]:
    """How much of the training each group of rows is: tokens, and share of all of them.

    A row for each pool and group: benchmark, pool, form, copies, n_rows, tokens of one copy of a
    row, and in percent of all training tokens one row's share and the group's; means over base
    models.
    """
    lengths = {
        (pool.benchmark, pool.kind, form): local.n_tokens(lab.tokenizer, texts, n_special=2)
        for pool in pools()
        for form, texts in pool.forms.items()
    }
    found = []
    totals = dict.fromkeys(base_seeds, background_tokens(lab))
    for seed in base_seeds:
        for pool in pools():
            assigned = pool.assigned(seed)
            for group in pool.groups:
                of_group = lengths[pool.benchmark, pool.kind, group.form][assigned == group.name]
                n_tokens = int(of_group.sum()) * group.copies
                totals[seed] += n_tokens
                found.append((seed, pool, group, float(of_group.mean()), n_tokens))
    rows = []
    for pool in pools():
        for group in pool.groups:
            own = [one for one in found if one[1] is pool and one[2] is group]
            shares = [100 * n_tokens / totals[seed] for seed, *_, n_tokens in own]
            rows.append(
                {
                    "benchmark": pool.benchmark,
                    "pool": pool.kind,
                    "form": group.form,
                    "copies": group.copies,
                    "n_rows": group.size,
                    "tokens_per_row": np.mean([length for *_, length, _ in own]),
                    "row_share_pct": np.mean(shares) / group.size,
                    "group_share_pct": np.mean(shares),
                }
            )
    return rows
