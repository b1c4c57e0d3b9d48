"""Which rows a base model sees in pretraining, and how often: drawn by a hash, the same anywhere.

Complete randomisation: every model gets the same number of rows at each dose, and which rows
these are is independent between base models, benchmarks and pools. It is never balanced by row,
since balancing tells a method that counts shadow models which rows a model has seen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np

HELD_OUT = 0  # copies of a row that a model does not see


def seed_of(base_seed: int, benchmark: str, pool: str) -> int:
    """Seed of one assignment: the first 8 bytes of the SHA-256 of its three names.

    >>> seed_of(300, "topics", "rows") == seed_of(300, "entailment", "rows")
    False
    """
    name = json.dumps([base_seed, benchmark, pool], separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def assign(base_seed: int, benchmark: str, pool: str, sizes: Mapping[str, int]) -> np.ndarray:
    """The group of every row of a pool, drawn at random; shape (n_rows,), names of ``sizes``.

    Args:
        base_seed: of the base model.
        benchmark, pool: what the rows are of; each pool has an assignment of its own.
        sizes: rows of each group, in a fixed order; together they are the pool.

    >>> assign(300, "topics", "rows", {"4 copies": 1, "held out": 2}).tolist()
    ['held out', '4 copies', 'held out']
    """
    groups = np.repeat(list(sizes), list(sizes.values()))
    return np.random.default_rng(seed_of(base_seed, benchmark, pool)).permutation(groups)
