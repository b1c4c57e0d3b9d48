"""What a model computed, on disk, one file for each batch.

The unit is the batch, not the text: the last bits of a score depend on the
texts it was computed beside, so a text served from another batch would make a
result depend on what ran before. A batch is named by everything that entered
it; it is written whole or not at all, so a killed run loses one batch, its
restart composes the same batches and gives the same bytes, and processes may
share the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file
from tqdm import tqdm

from contamination.core import caches, storage

FORMAT = 2  # raise it when a change of code changes a number
SHOWN_AFTER = 2  # seconds, from which on a bar says how far the batches are


def batches_of(lengths: Sequence[int], max_batch_tokens: int) -> list[list[int]]:
    """Numbers of the items of each batch, such that a batch holds little padding.

    Longest items first, so that a batch that does not fit into memory is met at once. Rows
    times longest row is at most ``max_batch_tokens``, unless an item alone is longer; a row is
    padded by at most a third of its length, or by 16 tokens where that is more.

    >>> batches_of([4, 1, 5, 4], max_batch_tokens=10)
    [[2, 0], [3, 1]]
    """
    batches: list[list[int]] = []
    longest = 0
    for item in sorted(range(len(lengths)), key=lambda item: -lengths[item]):
        fits = batches and (len(batches[-1]) + 1) * longest <= max_batch_tokens
        if fits and longest - lengths[item] <= max(16, lengths[item] // 3):
            batches[-1].append(item)
        else:
            longest = lengths[item]
            batches.append([item])
    return batches


class BatchCache:
    """Arrays of one kind of computation by one model under one set of settings."""

    def __init__(self, name: str, identity: Mapping[str, str], settings: Mapping[str, Any]) -> None:
        key = {"identity": dict(identity), "settings": dict(settings), "format": FORMAT}
        self.folder = storage.cache_folder(name, storage.hash_of(key)[:32])
        self.name = name
        if not (self.folder / "key.json").exists():
            storage.write_json(self.folder / "key.json", key)

    def arrays(
        self,
        batch: Sequence[Any],
        compute: Callable[[], Mapping[str, np.ndarray]],
        names: Sequence[str],
    ) -> dict[str, np.ndarray]:
        """The named arrays of a batch (JSON values): read, or computed and written."""
        stored = self.get(batch, names)
        return self.put(batch, compute(), names) if stored is None else stored

    def get(self, batch: Sequence[Any], names: Sequence[str]) -> dict[str, np.ndarray] | None:
        """The named arrays of a batch, or None where the disk does not hold all of them."""
        path = self._path(batch)
        stored = load_file(path) if caches.is_whole(path) else {}
        if any(name not in stored for name in names):
            return None
        storage.record("cache", name=self.name, hits=1, misses=0)
        return {name: stored[name] for name in names}

    def put(
        self, batch: Sequence[Any], arrays: Mapping[str, np.ndarray], names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Write the arrays of a batch and return those named; KeyError for any other name."""
        caches.seal(storage.write_safetensors(self._path(batch), arrays))
        storage.record("cache", name=self.name, hits=0, misses=1)
        return {name: arrays[name] for name in names}

    def _path(self, batch: Sequence[Any]) -> Path:
        return self.folder / f"{storage.hash_of(batch)}.safetensors"


class Job(NamedTuple):
    """One batch: what enters it, as JSON values, and what its work is called with."""

    key: Any
    arguments: tuple


def run_batches(
    lm: Any,
    work: Callable[..., Mapping[str, np.ndarray]],
    jobs: Sequence[Job],
    names: Sequence[str],
    store: BatchCache | None,
) -> Iterator[tuple[int, Mapping[str, np.ndarray]]]:
    """Number and arrays of every batch once, those on the disk first.

    ``work(lm, *arguments)``, a function of a module, which workers of a cluster import by
    name, computes what the store does not hold. The store receives each result before it is
    handed out; None keeps nothing. Who watches the run sees a bar with the time left.
    """
    missing = {}
    for number, job in enumerate(jobs):
        stored = store.get(job.key, names) if store else None
        if stored is None:
            missing[number] = job.arguments
        else:
            yield number, stored
    shown = {"delay": SHOWN_AFTER, "leave": False, "unit": " batches"}
    shown["disable"] = not storage.is_watched()
    done = lm.compute(work, missing)
    for number, arrays in tqdm(done, lm.identity["model"], len(missing), **shown):
        yield number, store.put(jobs[number].key, arrays, names) if store else arrays
