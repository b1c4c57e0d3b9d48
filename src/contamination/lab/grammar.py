"""Mini-benchmarks by grammar: instances, and groups of paraphrases that no memory tells apart.

A template has two kinds of slots. **Facts** (numbers, labels, whatever the
answer names) stay the same over a group; **wording** (every other slot) is
drawn anew for the original and for each paraphrase, all from the same set of
interchangeable words. The five texts of a group are therefore exchangeable:
without memory nothing but chance can pick the original out, neither by how
frequent its words are nor by which text the others resemble most.

The naturalness dial turns that off by degrees. At 1 a paraphrase is what a
rewriting model makes of the original: an edit that leaves most words alone and
replaces some by rarer ones, so that the original holds the most frequent words
and is the centre of its group. The original does not depend on the dial, so one
model can be quizzed at every setting.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import pandas as pd

PARTS = ("train", "validation", "test", "background", "tokenizer")
EDIT_SHARE = 0.4
_MAX_ROUNDS = 1_000
_ARTICLE = re.compile(r"\b([Aa])n? (?=([a-z]+))")
_VOWEL = re.compile(r"[aeiou](?!ni[^nm]|s[ei])")
_SENTENCE_START = re.compile(r"(?:^|[.!?:] |\n)[a-z]")


@dataclass(frozen=True)
class Template:
    """One pattern of an instance.

    A wording slot named ``buy_2`` without an entry of its own uses that of ``buy``. ``derive``
    computes further values from the drawn facts, such as the answer; ``weights`` are the
    probabilities of a slot's values where they are not equally likely.
    """

    name: str
    fields: Mapping[str, str]  # column name to text with ``{slot}`` names, in the order of printing
    facts: Mapping[str, Sequence[Any]]  # slot name to its possible values; the same over a group
    wording: Mapping[str, Sequence[str]]  # slot name to words, from frequent to rare
    derive: Callable[[dict[str, Any]], dict[str, Any]] = lambda facts: {}
    weights: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def wording_slots(self) -> dict[str, Sequence[str]]:
        """The wording slots that occur in the fields, with their words, in order of use."""
        slots: dict[str, Sequence[str]] = {}
        for text in self.fields.values():
            for _, name, _, _ in string.Formatter().parse(text):
                if not name:
                    continue
                base = name.rstrip("0123456789").rstrip("_")
                if name in self.wording:
                    slots[name] = self.wording[name]
                elif base in self.wording:
                    slots[name] = self.wording[base]
        return slots


@dataclass(frozen=True)
class Benchmark:
    """One mini-benchmark: its name, the task of the papers it stands for, its templates."""

    name: str
    task: str
    templates: tuple[Template, ...]

    @property
    def columns(self) -> list[str]:
        """Names of an instance's fields, in the order in which it is written out."""
        return list(self.templates[0].fields)


def count_instances(benchmark: Benchmark) -> int:
    """Number of distinct instances the grammar can produce, all parts together."""
    return sum(
        prod(len(values) for values in template.facts.values())
        * prod(len(words) for words in template.wording_slots().values())
        for template in benchmark.templates
    )


def draw_instances(benchmark: Benchmark, n: int, seed: int, part: str) -> pd.DataFrame:
    """Distinct instances of one part of a mini-benchmark: template and the benchmark's columns.

    Parts never overlap, whatever their seeds: a hash of the instance decides the part it
    belongs to. Errors as in :func:`draw_groups`.
    """
    groups = draw_groups(benchmark, n, seed, part, n_paraphrases=0)
    return groups.drop(columns=["group", "option"])


def draw_groups(
    benchmark: Benchmark,
    n: int,
    seed: int,
    part: str,
    n_paraphrases: int = 4,
    naturalness: float = 0.0,
) -> pd.DataFrame:
    """Instances, each with distinct word-level paraphrases of its own.

    No text occurs twice in the result, and all belong to the part. Paraphrases that repeat a
    text are drawn again; since every wording is equally likely, that leaves all texts of a
    group exchangeable at naturalness 0. The originals depend on the benchmark, n, seed and
    part alone.

    Args:
        n: number of groups.
        part: one of :data:`PARTS`.
        naturalness: 0, interchangeable, to 1, edits of the original with rarer words. In
            between, each slot of a paraphrase is an edit with that probability and a fresh
            draw otherwise.

    Returns:
        Columns ``group``, ``option`` (0 the original, then its paraphrases), ``template`` and
        the benchmark's own; sorted by group and option.

    Raises:
        ValueError: for more texts than the part holds.
    """
    key = [PARTS.index(part), *benchmark.name.encode()]
    chooser = np.random.default_rng([seed, 0, *key])
    choices = chooser.integers(len(benchmark.templates), size=n)
    rows: list[dict[str, Any]] = []
    for index, template in enumerate(benchmark.templates):
        groups = np.flatnonzero(choices == index).tolist()
        drawer = _Drawer(template, PARTS.index(part), index)
        originals = drawer.originals(len(groups), np.random.default_rng([seed, 1, index, *key]))
        paraphraser = np.random.default_rng([seed, 2, index, *key])
        options = [originals]
        for _ in range(n_paraphrases):
            options.append(drawer.paraphrases(originals, paraphraser, naturalness))
        for option, draws in enumerate(options):
            rows += [
                {"group": group, "option": option, "template": template.name} | drawer.render(draw)
                for group, draw in zip(groups, draws, strict=True)
            ]
    rows.sort(key=lambda row: (row["group"], row["option"]))
    return pd.DataFrame(rows, columns=["group", "option", "template", *benchmark.columns])


class _Drawer:
    """Draws one template's instances as rows of value indices, no row twice."""

    def __init__(self, template: Template, part: int, index: int) -> None:
        self.template = template
        self.part = part
        self.words = template.wording_slots()
        self.slots = {**template.facts, **self.words}
        self.n_facts = len(template.facts)
        drawn = np.random.default_rng([20, index]).integers(
            0, 2**63, size=len(self.slots), dtype=np.uint64
        )
        self.multipliers = drawn * np.uint64(2) + np.uint64(1)  # odd ones
        self.seen: set[int] = set()

    def originals(self, n: int, generator: np.random.Generator) -> np.ndarray:
        """Shape (n, n_slots): indices into the values of each slot, facts first."""
        return self._accept(n, lambda missing: self._draw(len(missing), generator))

    def paraphrases(
        self, originals: np.ndarray, generator: np.random.Generator, naturalness: float
    ) -> np.ndarray:
        """One more text for each original, shape as the originals."""

        def propose(missing: np.ndarray) -> np.ndarray:
            of = originals[missing]
            fresh = self._draw(len(of), generator)
            sizes = np.array([len(values) for values in self.slots.values()])
            # A rarer word stands further back in its set; the rarest gives way to any other.
            uniform = generator.random(of.shape)
            rarer = of + 1 + np.floor(uniform * (sizes - of - 1)).astype(int)
            other = np.floor(uniform * (sizes - 1)).astype(int)
            is_edited = generator.random(of.shape) < EDIT_SHARE
            edit = np.where(is_edited, np.where(of < sizes - 1, rarer, other), of)
            proposal = np.where(generator.random(of.shape) < naturalness, edit, fresh)
            proposal[:, : self.n_facts] = of[:, : self.n_facts]
            return proposal

        return self._accept(len(originals), propose)

    def render(self, draw: np.ndarray) -> dict[str, str]:
        """The field texts of one row of indices."""
        values = {
            name: options[index]
            for (name, options), index in zip(self.slots.items(), draw.tolist(), strict=True)
        }
        values |= self.template.derive({name: values[name] for name in self.template.facts})
        return {
            column: tidy(text.format_map(values)) for column, text in self.template.fields.items()
        }

    def _draw(self, n: int, generator: np.random.Generator) -> np.ndarray:
        columns = []
        for name, values in self.slots.items():
            weights = self.template.weights.get(name)
            if weights is None:
                columns.append(generator.integers(len(values), size=n))
            else:
                columns.append(generator.choice(len(values), size=n, p=weights))
        return np.stack(columns, axis=1)

    def _accept(self, n: int, propose: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        accepted = np.empty((n, len(self.slots)), dtype=np.int64)
        missing = np.arange(n)
        for _ in range(_MAX_ROUNDS):
            if not len(missing):
                return accepted
            proposal = propose(missing)
            keys = self._keys(proposal)
            kept = np.zeros(len(missing), dtype=bool)
            for row in np.flatnonzero(keys % np.uint64(len(PARTS)) == self.part):
                key = int(keys[row])
                if key not in self.seen:
                    self.seen.add(key)
                    kept[row] = True
            accepted[missing[kept]] = proposal[kept]
            missing = missing[~kept]
        raise ValueError(
            f"template {self.template.name!r} cannot give {n} more distinct texts: ask for fewer"
        )

    def _keys(self, draws: np.ndarray) -> np.ndarray:
        # Two rounds of multiply and shift: every bit of every slot reaches the part.
        mixed = (draws.astype(np.uint64) + np.uint64(1)) * self.multipliers
        keys = np.bitwise_xor.reduce(mixed ^ (mixed >> np.uint64(29)), axis=1)
        keys = (keys ^ (keys >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        return keys ^ (keys >> np.uint64(29))


def tidy(text: str) -> str:
    """Sentences begin with a capital and articles fit the word they stand before.

    A text of a single word, such as a label, stays as it is.

    >>> tidy("it was a apple. we left")
    'It was an apple. We left'
    """
    if " " not in text:
        return text
    text = _ARTICLE.sub(lambda match: match[1] + ("n " if _VOWEL.match(match[2]) else " "), text)
    return _SENTENCE_START.sub(lambda match: match[0].upper(), text)
