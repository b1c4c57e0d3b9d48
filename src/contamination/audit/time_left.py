"""How long a local model's audit still takes: measured on its first rows, corrected on the way.

A plan knows about how many tokens a model will read and write. What a token takes is not known
before the model is loaded, so the first rows measure it, and every batch after them corrects it.
One line says what is left, and each new one replaces the last.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tqdm import tqdm

from contamination.audit.finding import Target
from contamination.core import storage
from contamination.models.causal import complete, token_log_probs
from contamination.models.loading import CausalLM
from contamination.models.watched import Watched

FIRST_ROWS, FIRST_LETTERS, FIRST_TOKENS = 4, 200, 8  # rows measured, of each at most, and written
_BETWEEN = 1.0  # seconds from one line to the next
_WIDEST, _HIGHEST = 200, 9  # letters of a line, and lines


class TimeLeft:
    """Seconds that the methods still take, from the tokens that they read or write.

    Args:
        planned: method to tokens read and tokens written, for each method that will be run. Of a
            method that writes, the time of a written token has that of its prompt in it.
    """

    def __init__(self, planned: Mapping[str, tuple[int, int]]) -> None:
        self._planned = dict(planned)
        self._now = ""
        self._measured: dict[bool, tuple[float, int]] = {}  # by is_written: seconds, tokens
        self._of_batches: dict[bool, tuple[float, int]] = {}

    def measure(self, is_written: bool, n_tokens: int, seconds: float) -> None:
        """What the first rows took; it counts until batches of this kind are known."""
        self._measured[is_written] = seconds, n_tokens

    def begin(self, method: str) -> None:
        """Batches from now on are of this method, one of ``planned`` or any other."""
        self._now = method

    def batch(self, is_written: bool, n_tokens: int, seconds: float, n_waiting: int) -> None:
        """A batch of the present method took so long, and those that wait have so many tokens."""
        spent, n_done = self._of_batches.get(is_written, (0.0, 0))
        self._of_batches[is_written] = spent + seconds, n_done + n_tokens
        if self._now in self._planned:
            n_planned = self._planned[self._now][is_written] - n_tokens
            pair = list(self._planned[self._now])
            # A model writes in one go, so there the batches that wait are all that is left.
            pair[is_written] = n_waiting if is_written else max(n_planned, n_waiting)
            self._planned[self._now] = pair[0], pair[1]

    def end(self, method: str) -> None:
        """The method is done and takes no more time, even if fewer batches ran than planned."""
        self._planned.pop(method, None)

    @property
    def seconds(self) -> float | None:
        """None before a kind of token that is still needed was measured."""
        total = 0.0
        for n_read, n_written in self._planned.values():
            is_written = n_written > 0
            spent, n_tokens = (self._measured | self._of_batches).get(is_written, (0.0, 0))
            if not n_tokens:
                return None
            total += spent / n_tokens * (n_written if is_written else n_read)
        return total


def in_words(seconds: float | None) -> str:
    """A time as precise as an estimate of it.

    >>> [in_words(seconds) for seconds in (None, 4, 42, 200, 7900)]
    ['time left not known yet', 'less than 10 s left', 'about 50 s left', 'about 4 min left', \
'about 2 h 12 min left']
    """
    if seconds is None:
        return "time left not known yet"
    if seconds < 10:
        return "less than 10 s left"
    if seconds < 60:
        return f"about {-(-seconds // 10) * 10:.0f} s left"
    hours, minutes = divmod(-(-int(seconds) // 60), 60)
    return f"about {f'{hours} h ' * bool(hours)}{minutes} min left"


def is_watched() -> bool:
    """Whether somebody sees the line: in a terminal that runs the audit, or in JupyterLab."""
    is_interactive = "ipykernel" in sys.modules and storage.STAGING_VARIABLE not in os.environ
    return is_interactive or storage.PROGRESS_VARIABLE in os.environ


@contextlib.contextmanager
def show_time_left(
    target: Target, planned: Mapping[str, tuple[int, int]], texts: Sequence[str]
) -> Iterator[tuple[Target, Callable[[str], contextlib.AbstractContextManager[None]]]]:
    """The target with a model that tells its progress, and what each method is run within.

    Nothing is measured or said where nobody sees it, or where the model is at an address, whose
    answers have a bar of their own. ``texts`` are rows of the audit, of which the first measure.
    """
    if not (isinstance(target.place, CausalLM) and is_watched()):
        yield target, lambda _: contextlib.nullcontext()
        return
    left = TimeLeft(planned)
    # A size of its own: some terminals give none, and then nothing would be written.
    with tqdm(bar_format="{desc}", leave=False, ncols=_WIDEST, nrows=_HIGHEST) as bar:
        said = 0.0

        def say(method: str, least: float = 0.0) -> None:
            nonlocal said
            if time.perf_counter() - said >= least:
                said = time.perf_counter()
                bar.set_description_str(f"{target.name}, {method}: {in_words(left.seconds)}")

        def tell(is_written: bool, n_tokens: int, seconds: float, n_waiting: int) -> None:
            left.batch(is_written, n_tokens, seconds, n_waiting)
            say(left._now, _BETWEEN)

        @contextlib.contextmanager
        def run(method: str) -> Iterator[None]:
            left.begin(method)
            say(method)
            try:
                yield
            finally:
                left.end(method)

        with contextlib.suppress(ValueError):  # rows that this model cannot take: batches measure
            _measure(target.place, texts, left)
        lm = target.place
        watched = Watched(lm.model, lm.tokenizer, lm.identity, tell)
        yield replace(target, place=watched), run


def _measure(lm: CausalLM, texts: Sequence[str], left: TimeLeft) -> None:
    """The first rows read and continued; what a first call alone takes is not counted."""
    first = [text[:FIRST_LETTERS] for text in texts[:FIRST_ROWS]]
    token_log_probs(lm, first[:1], cache=False)
    start = time.perf_counter()
    n_read = sum(scored.n_tokens for scored in token_log_probs(lm, first, cache=False))
    left.measure(False, n_read, time.perf_counter() - start)
    start = time.perf_counter()
    complete(lm, first, FIRST_TOKENS, cache=False)
    left.measure(True, FIRST_TOKENS * len(first), time.perf_counter() - start)
