"""Shift without exposure: how often a detector prefers one of two sets that no model has seen.

The second protocol (``docs/protocol_2.md``) draws two sets of 60 rows that differ in one thing:
how natural the paraphrases in their quizzes are, their length, the balance of their labels, their
date, or nothing. What goes along with length or with a label, such as words and templates, goes
along here too; the AUC of a bag of words says how much of it there is. An exact test of A against
B is right whenever rows are exchangeable, so what it finds here beyond its level is the shift.

The naturalness dial is that of ``lab.grammar``: it changes the paraphrases that stand in a row's
quiz and never the row itself. For a detector that reads no quiz this shift is none at all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import blind
from contamination.core.statistics import auc, auc_within, holm
from contamination.core.verdicts import ALPHA, CLAIMS
from contamination.dcq.quizzes import quizzes_of_groups
from contamination.lab import passages, world
from contamination.lab.grammar import BENCHMARKS, draw_groups
from contamination.models.local import CausalLM, load_causal_lm, n_tokens
from contamination.study import (
    baselines,
    context,
    four_methods,
    pretraining,
    row_pools,
    sampling,
    store,
)
from contamination.study.assignment import seed_of
from contamination.study.interface import N_CONTEXT, Detector, Rows, row_scores, rows_of, title
from contamination.study.protocol import (
    binomial_p,
    effective_number,
    false_alarm_limits,
    permutation_p,
)
from contamination.study.scores import EXPLORATORY, display_name

NAME = "shift"  # of the parts of the ledger
NONE, NATURALNESS, LENGTH, LABELS, DATE = "none", "naturalness", "length", "label balance", "date"
DOCSTRINGS = "docstrings"
# On which rows each shift is made.
SHIFTS = {
    NONE: ("topics", "grade_school"),
    NATURALNESS: ("topics",),
    LENGTH: ("topics", "grade_school"),
    LABELS: ("topics",),
    DATE: (DOCSTRINGS,),
}
N_DRAWS = 3  # pairs of sets of each base model, shift and benchmark
N_ROWS = 60  # of a set
N_CANDIDATES = 480  # rows of a draw, from which both sets are taken
DIAL = 0.5  # of set B
MAJORITY = 0.8  # share of one label in set B
WORLD_SEED = 0  # of ``row_pools.the_lab``
N_WORDS = 32  # of a docstring; nearest to the other rows, which have about 55 to 75 tokens
# They need generated continuations and took two fifths of the time (see the protocol).
LEFT_OUT = tuple(one.name for one in (sampling.CDD, sampling.COVERAGE, four_methods.REPLICATION))
NOISE_CONTROL, LENGTH_CONTROL, WEIGHTS_CONTROL = (one.name for one in baselines.CONTROLS)
FALSE_VERDICTS = CLAIMS["pretraining_shift"]
MUST_NOT = (NOISE_CONTROL, WEIGHTS_CONTROL)  # exceed their level under any shift
CONTROLS = (*MUST_NOT, LENGTH_CONTROL)
COLUMNS = ["detector", "shift", "benchmark", "draw", "n_a", "n_b", "auc", "p_a", "p_b"]
COLUMNS += ["auc_of_words"]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two sets of rows that no model has seen, as one; ``is_a``, shape (n_rows,), tells them."""

    shift: str
    benchmark: str
    draw: int
    rows: Rows
    is_a: np.ndarray

    def auc_of_words(self) -> float:
        """Cross-validated AUC of a bag of words that tells A from B without any model."""
        n_folds = blind.feasible_folds(self.is_a)
        judged = blind.cross_validated_scores(
            self.rows.texts, self.is_a, blind.BAG_OF_WORDS, n_folds
        )
        return auc_within([(values, self.is_a[items]) for items, values in judged])


# Two sets


def pairs(lab: world.World, base_seed: int) -> Iterator[Pair]:
    """All pairs of sets of one base model, by shift, benchmark and draw."""
    for shift, benchmarks in SHIFTS.items():
        for benchmark in benchmarks:
            for draw in range(N_DRAWS):
                yield pair(lab, shift, benchmark, base_seed, draw)


def pair(lab: world.World, shift: str, benchmark: str, base_seed: int, draw: int) -> Pair:
    """Two sets of ``N_ROWS`` rows that differ as the shift says.

    The draw depends on nothing but the arguments, so base models are independent but for the
    docstrings, of which there is one corpus. ValueError for a shift that is not made on the
    benchmark, or where the draw has too few rows of a kind.
    """
    if benchmark not in SHIFTS.get(shift, ()):
        raise ValueError(f'no shift "{shift}" is made on "{benchmark}"')
    seed = seed_of(base_seed, benchmark, f"shift {shift}, draw {draw}")
    if shift == DATE:
        texts, is_a, before = _dated(lab, seed)
        nothing = pd.DataFrame(index=range(len(texts)))  # docstrings have no quizzes
        rows = Rows("", "", texts, texts, nothing, before, seed)
    else:
        quizzes, is_a = _drawn(lab, shift, benchmark, seed)
        pool = next(one for one in row_pools.pools() if one.benchmark == benchmark)
        name = f"{title(benchmark)} S"  # no model has seen this name
        rows = rows_of(quizzes, name, pool.label, pool.rows.context, seed)
    return Pair(shift, benchmark, draw, rows, is_a)


def _drawn(
    lab: world.World, shift: str, benchmark: str, seed: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Quizzes of the rows of A, then of B, and which are A."""
    candidates = _candidates(benchmark, seed)
    if shift == LENGTH:
        lengths = n_tokens(lab.tokenizer, candidates["instance"])
        is_long = lengths >= np.median(lengths)
        in_a, in_b = np.flatnonzero(is_long)[:N_ROWS], np.flatnonzero(~is_long)[:N_ROWS]
    elif shift == LABELS:
        in_a, in_b = _by_label(candidates["label"].to_numpy(), seed)
    else:
        in_a, in_b = np.arange(N_ROWS), np.arange(N_ROWS, 2 * N_ROWS)
    set_a, set_b = candidates.iloc[in_a], candidates.iloc[in_b]
    if shift == NATURALNESS:  # the same rows at another setting of the dial
        natural = _candidates(benchmark, seed, DIAL).set_index("index")
        set_b = natural.loc[set_b["index"]].reset_index()
    if min(len(set_a), len(set_b)) < N_ROWS:
        raise ValueError(f"{benchmark}: the draw has too few rows for the shift {shift}")
    quizzes = pd.concat([set_a, set_b], ignore_index=True)
    return quizzes, np.arange(len(quizzes)) < N_ROWS


def _candidates(benchmark: str, seed: int, naturalness: float = 0.0) -> pd.DataFrame:
    """Quizzes and labels of a draw without what any pool holds, in random order."""
    columns = BENCHMARKS[benchmark].columns
    groups = draw_groups(
        BENCHMARKS[benchmark], N_CANDIDATES, seed, row_pools.PART, naturalness=naturalness
    )
    quizzes = quizzes_of_groups(groups, columns)
    quizzes["label"] = groups.loc[groups["option"] == 0, columns[-1]].to_numpy()
    return quizzes[~quizzes["instance"].isin(_texts_of_pools())]


@cache
def _texts_of_pools() -> frozenset[str]:
    """Rows of the pools, the paraphrases that models see instead, and the rows of context."""
    of_pools = (
        (*pool.rows.texts, *pool.rows.context, *pool.rows.quizzes["fifth"])
        for pool in row_pools.pools()
    )
    return frozenset(text for texts in of_pools for text in texts)


def _by_label(labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of rows with labels in equal shares, and of others with one label in 80 %.

    Which label that is depends on the seed.
    """
    names = np.unique(labels)
    n_main = round(MAJORITY * N_ROWS)
    n_a, n_other = N_ROWS // len(names), (N_ROWS - n_main) // (len(names) - 1)
    main = np.random.default_rng([seed, 41]).integers(len(names))
    in_a, in_b = [], []
    for number, name in enumerate(names):
        places = np.flatnonzero(labels == name)
        in_a += places[:n_a].tolist()
        in_b += places[n_a : n_a + (n_main if number == main else n_other)].tolist()
    return np.array(in_a), np.array(in_b)


def _dated(lab: world.World, seed: int) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...]]:
    """Older and newer docstrings, which are older, and rows of context of both kinds.

    A docstring's version is the latest that it names, and a package's median version divides its
    docstrings, since versions of two packages have no order. Both sets have as many docstrings
    of each package and as many words of each docstring. Families of the background are left out,
    and no passage repeats 13 words of the background or of another passage. The packages have
    some 750 such docstrings, so pairs are subsamples: what they show is conditional on that
    corpus, and pairs of two base models share docstrings.
    """
    split = passages.split_by_version(lab.docstrings, WORLD_SEED)
    seen = lab.passages.loc[lab.passages["role"] == "background", "family"]
    dated = passages.passages_of_length(split, N_WORDS)
    if dated["family"].isin(seen).any():
        raise ValueError(
            "a dated docstring is in the background, so models saw it: use the study's lab"
        )
    # A few of each kind are held aside: none of them is ever tested.
    mixed = dated.sample(frac=1, random_state=row_pools.POOL_SEED)
    n_each = N_CONTEXT // 2
    is_aside = mixed.groupby("role").cumcount() < n_each
    aside = mixed.loc[is_aside, "text"].sample(frac=1, random_state=row_pools.POOL_SEED)
    generator = np.random.default_rng(seed)
    left = mixed[~is_aside].iloc[generator.permutation(len(mixed) - is_aside.sum())]
    older, newer = left[left["role"] == "member"], left[left["role"] == "non-member"]
    set_a = older.head(N_ROWS)
    wanted = newer["package"].map(set_a["package"].value_counts()).fillna(0)
    set_b = newer[newer.groupby("package").cumcount() < wanted]
    if len(set_a) != N_ROWS or len(set_b) != N_ROWS:
        raise ValueError(f"{len(older)} older and {len(newer)} newer docstrings are too few")
    texts = (*set_a["text"], *set_b["text"])
    return texts, np.arange(2 * N_ROWS) < N_ROWS, tuple(aside)


# What detectors say


def detectors_by_benchmark(lab: world.World) -> dict[str, tuple[Detector, ...]]:
    """Detectors of the pretraining study that are asked about each kind of rows.

    Those in ``LEFT_OUT`` are not asked. Docstrings have no quiz, no question and no number to
    swap, so they are asked what needs texts and rows of context alone; ReCaLL stays with
    ``topics``, as in the protocol.
    """
    of_tokens = pretraining.token_detectors(lab)
    asked = {DOCSTRINGS: (*of_tokens, context.CODEC, *baselines.CONTROLS)}
    for benchmark in dict.fromkeys(name for names in SHIFTS.values() for name in names):
        if benchmark != DOCSTRINGS:
            every = pretraining.detectors_of(lab, benchmark, row_pools.ROWS, of_tokens)
            asked[benchmark] = tuple(one for one in every if one.name not in LEFT_OUT)
    return asked


def score_pair(
    lm: CausalLM, one: Pair, detectors: Sequence[Detector], base_seed: int
) -> tuple[pd.DataFrame, list[dict]]:
    """What detectors say of a pair of sets under one model.

    Returns:
        ``COLUMNS``: auc is that of A against B; p_a is one-sided with A as the suspect and B as
        the comparison, p_b the other way round, both by ``protocol.permutation_p``; auc_of_words is
        that of a bag of words, which sees no model. And seconds of each detector.
    """
    words, table, seconds = one.auc_of_words(), [], []
    n_a, n_b = int(one.is_a.sum()), int((~one.is_a).sum())
    for detector in detectors:
        start = time.perf_counter()
        values = row_scores(detector, lm, one.rows)
        spent = time.perf_counter() - start
        seconds.append({"detector": detector.name, "benchmark": one.benchmark, "seconds": spent})
        name = (detector.name, one.shift, one.benchmark, one.draw)
        p_values = [permutation_p(values, of, (base_seed, *name)) for of in (one.is_a, ~one.is_a)]
        table.append((*name, n_a, n_b, auc(values, one.is_a), *p_values, words))
    return pd.DataFrame(table, columns=COLUMNS), seconds


def score_base(lab: world.World, base_seed: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """One part of the ledger: ``COLUMNS`` for a base model, and what made them."""
    folder = row_pools.base_model(lab, base_seed)
    lm, asked = load_causal_lm(folder), detectors_by_benchmark(lab)
    tables, seconds = [], []
    for one in pairs(lab, base_seed):
        table, spent = score_pair(lm, one, asked[one.benchmark], base_seed)
        tables.append(table)
        seconds += spent
    about = {
        "base_seed": base_seed,
        "recipe_hash": world.describe(folder)["recipe_hash"],
        "environment": store.environment(),
        "seconds": store.seconds_by_detector(seconds),
    }
    return pd.concat(tables, ignore_index=True), about


def write_part(folder: Path, name: str, about: Mapping[str, Any], base_seed: int) -> None:
    """``score_base`` as files of the ledger, ``about`` joined; scores of rows are not kept."""
    sets, made_by = score_base(row_pools.the_lab(), base_seed)
    small = dict.fromkeys(COLUMNS[:3], "category") | dict.fromkeys(COLUMNS[3:6], "int16")
    store.write_tables(folder, name, {"sets": sets.astype(small)}, {**made_by, **about})


# Verdicts


def false_verdicts(sets: pd.DataFrame) -> pd.DataFrame:
    """How often each detector calls one of two unseen sets seen: family F4 of the protocol.

    Args:
        sets: ``COLUMNS`` and base_seed.

    Returns:
        A row for each detector, shift and benchmark; docs/columns.csv says what its columns mean.
        rate: the worse of both directions, with one-sided 95 % limits low and high. p_value of
        "the rate is at most 0.05": exact binomial at the effective number of sets, times two for
        the two directions. holds: whether the detector keeps its level, empty where that is open.
        What is ``EXPLORATORY`` is outside the family and empty. The controls are a family of their
        own: length must give false verdicts where lengths differ, noise and the distance of the
        weights nowhere.
    """
    rows = []
    for key, own in sets.groupby(COLUMNS[:3], sort=False):
        flags = {"A": own["p_a"].le(ALPHA), "B": own["p_b"].le(ALPHA)}
        suspect = max(flags, key=lambda name: flags[name].mean())
        worse, bases = flags[suspect], own["base_seed"]
        rate, n_effective = worse.mean(), effective_number(worse, bases)
        rows.append(
            {
                **dict(zip(COLUMNS[:3], key, strict=True)),
                "n_models": bases.nunique(),
                "n_sets": len(own),
                "rate_a": flags["A"].mean(),
                "rate_b": flags["B"].mean(),
                "suspect": suspect,
                "rate": rate,
                **dict(zip(("low", "high"), false_alarm_limits(worse, bases), strict=True)),
                "auc": own["auc"].mean(),
                "auc_of_words": own["auc_of_words"].mean(),
                "p_value": min(
                    1, 2 * binomial_p(rate * n_effective, n_effective, FALSE_VERDICTS.null)
                ),
            }
        )
    table = pd.DataFrame(rows)
    in_family = ~table["detector"].isin(EXPLORATORY)
    is_control = table["detector"].isin(CONTROLS)
    table["p_adjusted"] = np.nan
    for family in (in_family & ~is_control, is_control):
        tested = table.index[family & table["p_value"].notna()]
        table.loc[tested, "p_adjusted"] = holm(table.loc[tested, "p_value"])
    table["holds"] = pd.Series([_holds(row) for row in table.itertuples()], dtype=object)
    table.loc[~in_family & ~is_control, "holds"] = None
    table["detector"] = table["detector"].map(display_name)
    for column, order in (("detector", table["detector"].unique()), ("shift", list(SHIFTS))):
        table[column] = pd.Categorical(table[column], order)
    table = table.sort_values(["detector", "shift"], kind="stable", ignore_index=True)
    return table.astype(dict.fromkeys(["detector", "shift"], object))


def _holds(row: Any) -> bool | None:
    """Whether a detector keeps its level, or a control came out as it must; None where open."""
    ends = row.low, row.high
    keeps = FALSE_VERDICTS.holds(*ends, p_adjusted=row.p_adjusted, n_models=row.n_models)
    if row.detector in MUST_NOT:
        return keeps is not False
    if row.detector == LENGTH_CONTROL:
        return keeps is False if row.shift == LENGTH else None
    return keeps
