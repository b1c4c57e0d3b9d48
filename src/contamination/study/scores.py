"""Scores of the pretraining study as arrays: rows crossed with base models, for every detector."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd

from contamination.study import (
    context,
    dc_pdd,
    four_methods,
    number_twins,
    sampling,
    scoring,
)
from contamination.study.assignment import assign
from contamination.study.baselines import OF_TOKENS, PPL
from contamination.study.crossed import CrossedScores
from contamination.study.interface import LOG_PROBABILITIES
from contamination.study.pretraining import PRETRAINED, WORDS
from contamination.study.row_pools import GROUPS, ROWS, Group

OTHERS = (
    four_methods.RANKING,
    context.CODEC,
    context.RECALL,
    four_methods.DCQ,
    four_methods.REPLICATION,
    sampling.CDD,
    sampling.COVERAGE,
)
TWINS = tuple(number_twins.NAMES.values())
# The detectors of the protocol, in its order, and what each must see of a model.
ACCESS = (
    {detector.name: detector.access for detector in OF_TOKENS}
    | {dc_pdd.NAME: LOG_PROBABILITIES}
    | {detector.name: detector.access for detector in OTHERS}
    | dict.fromkeys(TWINS, LOG_PROBABILITIES)
)
DETECTORS = tuple(ACCESS)
EXPLORATORY = (dc_pdd.WITHOUT_BOUND,)  # scored, but in no family and without a verdict
CONTROLS = scoring.CONTROL_NAMES
EVERY = (*DETECTORS, *EXPLORATORY, *CONTROLS)
# Whose AUCs after later clean training are a family of their own.
OF_LATER = (*(detector.name for detector in OF_TOKENS), dc_pdd.NAME)
# What a reader meets in place of a detector's name in the ledger.
SHOWN = {
    four_methods.DCQ.name: "DCQ (simulated respondent)",
    four_methods.RANKING.name: "option ranking",
    scoring.CONTROLS[-1].name: "distance of the weights",
}


def display_name(detector: str) -> str:
    """A detector's name for a reader.

    >>> display_name("DCQ"), display_name("PPL")
    ('DCQ (simulated respondent)', 'PPL')
    """
    return SHOWN.get(detector, detector)


@cache
def exposures(kind: str) -> Mapping[int, Group]:
    """The groups of rows that models see in a kind of pool, each with the number that marks it.

    On verbatim rows the number is that of the copies. Three indirect forms are seen in as many
    copies, so there the groups are counted.
    """
    seen = [group for group in GROUPS[kind] if group.copies]
    return {group.copies if kind == ROWS else n: group for n, group in enumerate(seen, start=1)}


@cache
def exposure_numbers(benchmark: str, kind: str, base_seeds: tuple[int, ...]) -> np.ndarray:
    """The number of each row's exposure under each model, 0 for held out, (n_models, n_rows)."""
    sizes = {group.name: group.size for group in GROUPS[kind]}
    numbers = {group.name: number for number, group in exposures(kind).items()}
    names = [assign(seed, benchmark, kind, sizes) for seed in base_seeds]
    return np.array([[numbers.get(name, 0) for name in of_model] for of_model in names])


@dataclass(frozen=True, eq=False)
class StudyScores:
    """All scores of the study: an array of shape (n_models, n_rows) for each of the keys.

    A key is detector, model (pretrained, or after later training), benchmark and kind of pool.
    Models are in the order of ``base_seeds``.
    """

    base_seeds: tuple[int, ...]
    arrays: Mapping[tuple[str, str, str, str], np.ndarray]

    @property
    def detectors(self) -> tuple[str, ...]:
        """Detectors of the protocol that were asked, in its order; neither controls nor others."""
        asked = {detector for detector, *_ in self.arrays}
        return tuple(name for name in DETECTORS if name in asked)

    @property
    def all_detectors(self) -> tuple[str, ...]:
        """``detectors``, exploratory ones, controls, and others that were asked."""
        asked = {detector for detector, *_ in self.arrays}
        return (*(name for name in EVERY if name in asked), *sorted(asked - {*EVERY}))

    def pools_of(
        self, detector: str, kind: str = ROWS, model: str = PRETRAINED
    ) -> list[CrossedScores]:
        """Scores of a detector on each pool that it was asked about, by benchmark.

        ``copies`` of these holds numbers of ``exposures``.
        """
        found = []
        for (name, of_model, benchmark, of_kind), scores in sorted(self.arrays.items()):
            if (name, of_model, of_kind) == (detector, model, kind):
                numbers = exposure_numbers(benchmark, kind, self.base_seeds)
                found.append(CrossedScores(f"{benchmark} {kind}", scores, numbers))
        return found

    def of_models(self, base_seeds: Sequence[int]) -> StudyScores:
        """The same for some of the base models; ValueError for one that is not there."""
        places = [self.base_seeds.index(seed) for seed in base_seeds]
        return StudyScores(
            tuple(base_seeds), {key: scores[places] for key, scores in self.arrays.items()}
        )

    def log_probabilities(self) -> list[CrossedScores]:
        """Mean token log-probabilities on each pool of verbatim rows, in nats.

        They follow from PPL, which scores a row by minus its perplexity.
        """
        pools = self.pools_of(PPL.name)
        return [replace(pool, scores=-np.log(-pool.scores)) for pool in pools]

    def benchmarks(self, detector: str, kind: str = ROWS) -> tuple[str, ...]:
        """The benchmarks that a detector was asked about, by name."""
        return tuple(
            benchmark
            for name, model, benchmark, of_kind in sorted(self.arrays)
            if (name, model, of_kind) == (detector, PRETRAINED, kind)
        )

    def later_models(self) -> tuple[str, ...]:
        """Models after later training, in the order in which they were scored."""
        return tuple(dict.fromkeys(model for _, model, *_ in self.arrays if model != PRETRAINED))


def arrange_scores(scores: pd.DataFrame, added: Collection[str] = ()) -> StudyScores:
    """The parts of the ledger as arrays.

    Args:
        scores: ``pretraining.COLUMNS`` and base_seed, as ``pretraining.read_parts`` gives them.
        added: detectors that are not the study's, such as one of the reader's own.

    Raises:
        ValueError: for a detector that the study does not know, or where a row has no score under
            one of the base models, or two.
    """
    if unknown := {*scores["detector"]} - {*EVERY, *added}:
        raise ValueError(f'no detector of the study is called "{min(unknown)}"')
    base_seeds = tuple(sorted(scores["base_seed"].unique().tolist()))
    # Categories keep the order of the ledger, in which shorter continuations come first.
    kinds = {word: pd.Categorical(scores[word], categories=scores[word].unique()) for word in WORDS}
    ordered = scores.assign(**kinds).sort_values([*WORDS, "base_seed", "row"], kind="stable")
    arrays = {}
    for key, part in ordered.groupby(WORDS, observed=True, sort=False):
        arrays[key] = _crossed(part, base_seeds, key)
    return StudyScores(base_seeds, arrays)


def _crossed(part: pd.DataFrame, base_seeds: Sequence[int], key: tuple) -> np.ndarray:
    detector, _, benchmark, kind = key
    n_rows = sum(group.size for group in GROUPS[kind])
    seeds, rows = np.repeat(base_seeds, n_rows), np.tile(np.arange(n_rows), len(base_seeds))
    if not (
        np.array_equal(part["base_seed"], seeds) and np.array_equal(part["row"].astype(int), rows)
    ):
        raise ValueError(
            f"{detector} on {benchmark}, {kind}: every one of {n_rows} rows needs one score under "
            f"each of {len(base_seeds)} base models"
        )
    return part["score"].to_numpy(float).reshape(len(base_seeds), n_rows)
