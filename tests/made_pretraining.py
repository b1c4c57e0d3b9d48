"""Made parts of the pretraining study: rows crossed with base models, exposures of known effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from contamination.lab.grammar import BENCHMARKS
from contamination.study import pretraining as arm
from contamination.study import row_pools, scores
from contamination.study.scores import exposure_numbers, exposures

SEEDS = row_pools.BASE_SEEDS
# What a row at each number of copies gains, in standard deviations of a score.
GAINS = {1: 0.0, 4: 0.6, 16: 2.5}
INDIRECT_GAINS = {1: 0.0, 2: 0.4, 3: 0.8, 4: 1.6}  # by the number of ``exposures``


def copies_of(pool: row_pools.Pool, base_seed: int) -> np.ndarray:
    """Copies that a base model sees of every row of a pool, in any form; shape (n_rows,)."""
    by_name = {group.name: group.copies for group in pool.groups}
    return np.array([by_name[name] for name in pool.assigned(base_seed)])


def made_scores(
    detectors: Sequence[str] = ("PPL", "Zlib", "n-gram coverage", "noise"),
    seeds: Sequence[int] = SEEDS,
    gains: Mapping[int, float] = GAINS,
    indirect: Mapping[int, float] = INDIRECT_GAINS,
    kept: float = 0.5,
    difficulty: float = 2.0,
    spread: float = 0.3,
    strength: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Scores of the columns of a part and base_seed, as ``pretraining.read_parts`` gives them.

    A score is the difficulty of the row (the same under every model) + the model's own level +
    the gain of the row's exposure + noise. Rows and models differ in how much they gain.

    Args:
        kept: share of the gain that is left after each later training.
        difficulty: standard deviation between rows, where noise has one.
        spread: standard deviation of the gain between rows, and between models half of it, as a
            share of the gain.
        strength: of each detector, by which gains are multiplied; 1 if it is not named, and 0 for
            the controls.
    """
    tables = []
    strength = dict.fromkeys(scores.CONTROLS, 0.0) | dict(strength or {})
    kinds = [(benchmark, row_pools.ROWS) for benchmark in row_pools.BENCHMARKS]
    for benchmark, kind in [*kinds, (row_pools.INDIRECT_ON, row_pools.INDIRECT)]:
        seen = exposure_numbers(benchmark, kind, tuple(seeds))
        by_number = gains if kind == row_pools.ROWS else indirect
        gain = np.zeros(seen.shape)
        for number in exposures(kind):
            gain[seen == number] = by_number[number]
        place = sorted(BENCHMARKS).index(benchmark)
        for detector in detectors:
            if not is_asked(detector, benchmark, kind):
                continue
            of = scores.EVERY.index(detector)
            generator = np.random.default_rng([place, kind == row_pools.ROWS, of])
            n_models, n_rows = seen.shape
            of_rows = difficulty * generator.normal(size=n_rows)
            level = generator.normal(size=(n_models, 1))
            factor = 1 + spread * generator.normal(size=n_rows)
            factor = factor + spread / 2 * generator.normal(size=(n_models, 1))
            models = {arm.PRETRAINED: 1.0}
            if kind == row_pools.ROWS and detector in scores.OF_LATER:
                for number, n_tokens in enumerate(row_pools.LATER_TOKENS, start=1):
                    models[arm.later_name(n_tokens)] = kept**number
            for model, share in models.items():
                own = share * strength.get(detector, 1.0) * gain * factor
                values = of_rows + level + own + generator.normal(size=seen.shape)
                if detector == "PPL":  # minus the perplexity
                    values = -np.exp(-np.clip(values, -80, 80))
                tables.append(_part(values, seeds, (detector, model, benchmark, kind)))
    return pd.concat(tables, ignore_index=True)


def is_asked(detector: str, benchmark: str, kind: str) -> bool:
    """Whether the study asks a detector about a pool, as ``pretraining.detectors_of`` has it."""
    if detector in ("ReCaLL", "CDD", "n-gram coverage"):
        return benchmark == row_pools.INDIRECT_ON
    if detector in scores.TWINS:
        return benchmark == "grade_school" and kind == row_pools.ROWS
    return True


def _part(values: np.ndarray, seeds: Sequence[int], words: tuple) -> pd.DataFrame:
    n_models, n_rows = values.shape
    table = {
        word: np.full(values.size, value) for word, value in zip(scores.WORDS, words, strict=True)
    }
    table |= {"row": np.tile(np.arange(n_rows), n_models)}
    # The ledger keeps single precision.
    table |= {"score": values.ravel().astype(np.float32).astype(float)}
    return pd.DataFrame(table | {"base_seed": np.repeat(seeds, n_rows)})


def made_shares() -> pd.DataFrame:
    """Rows as ``pretraining.exposure`` gives them; each copy of a row is 0.004 % of the tokens."""
    kinds = [(benchmark, row_pools.ROWS) for benchmark in row_pools.BENCHMARKS]
    rows = []
    for benchmark, kind in [*kinds, (row_pools.INDIRECT_ON, row_pools.INDIRECT)]:
        for group in row_pools.GROUPS[kind]:
            row = {"benchmark": benchmark, "pool": kind, "form": group.form}
            row |= {"copies": group.copies, "n_rows": group.size, "tokens_per_row": 70.0}
            row |= {"row_share_pct": 0.004 * group.copies}
            rows.append(row | {"group_share_pct": 0.004 * group.copies * group.size})
    return pd.DataFrame(rows)
