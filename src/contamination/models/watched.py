"""A local model that tells what each of its batches took, for whoever shows the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from contamination.models.forward import Row
from contamination.models.loading import Arrays, CausalLM


@dataclass(frozen=True)
class Watched(CausalLM):
    """A model that tells what its batches take; scores and their caches are the model's own.

    ``tell`` gets, after each batch: whether the model wrote, the tokens that it read or may have
    written, the seconds of the batch, and the tokens of the batches that wait.
    """

    tell: Callable[[bool, int, float, int], None]

    def compute(
        self, work: Callable[..., Arrays], jobs: Mapping[int, tuple]
    ) -> Iterator[tuple[int, Arrays]]:
        """As ``CausalLM.compute``, in the same order."""
        sizes = {number: batch_size(arguments) for number, arguments in jobs.items()}
        n_waiting = sum(n_tokens for _, n_tokens in sizes.values())
        for number, arguments in jobs.items():
            start = time.perf_counter()
            arrays = work(self, *arguments)
            is_written, n_tokens = sizes[number]
            n_waiting -= n_tokens
            self.tell(is_written, n_tokens, time.perf_counter() - start, n_waiting)
            yield number, arrays


def batch_size(arguments: tuple) -> tuple[bool, int]:
    """Whether a batch writes, and its tokens: those it reads, or those it writes at most."""
    rows = arguments[0]
    if isinstance(rows[0], Row):
        return False, sum(len(row.input_ids) for row in rows)
    return True, len(rows) * arguments[1]
