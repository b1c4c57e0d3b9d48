"""Detectors that read sampled continuations of a row's beginning: CDD and n-gram coverage.

Both cut each question as the Data Contamination Quiz's comparison does (40 to 70 % of the words
are given), put the header of the dataset in front and compare what follows, so that a model that
only continues text can answer. A continuation counts as far as the row's rest has lines. Both
ask for the same samples, which are drawn once and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contamination.core.words import words_and_marks
from contamination.dcq.quizzes import header
from contamination.models.loading import CausalLM
from contamination.models.local import complete, encode
from contamination.replication import instructions
from contamination.study.four_methods import MAX_TOKENS
from contamination.study.interface import ANSWERS, Detector, Rows

# Of each row. Both papers draw 50: 130 seconds of one core for 100 rows of the lab, not 26.
N_SAMPLES = 10
TEMPERATURE = 0.8  # CDD's; Hallinan et al. sample at 1 from the likeliest 95 %
ALPHA = 0.05  # CDD: share of the longest output by which a sample may differ
MIN_NGRAM = 3  # n-gram coverage: words of the shortest run that counts


class Continuations(NamedTuple):
    """What a model writes after a row's beginning, and how the row goes on."""

    rest: str
    greedy: str
    samples: tuple[str, ...]


def continuations(lm: CausalLM, rows: Rows) -> list[Continuations]:
    """The greedy and ``N_SAMPLES`` sampled continuations of each row.

    ValueError if a question is too short to be cut, or does not fit into the model's context.
    """
    pieces = [
        instructions.cut(question, rows.seed, instructions.SHARE, MIN_NGRAM)
        for question in rows.questions
    ]
    prompts = [header(rows.dataset, rows.split) + first for first, _, _ in pieces]
    greedy = complete(lm, prompts, MAX_TOKENS)
    repeated = [prompt for prompt in prompts for _ in range(N_SAMPLES)]
    sampled = complete(lm, repeated, MAX_TOKENS, temperature=TEMPERATURE, seed=rows.seed)
    written = []
    for place, (_, rest, _) in enumerate(pieces):
        own = sampled[place * N_SAMPLES : (place + 1) * N_SAMPLES]
        cut = [_first_lines(text, 1 + rest.count("\n")) for text in [greedy[place], *own]]
        written.append(Continuations(rest, cut[0], tuple(cut[1:])))
    return written


def _first_lines(text: str, n: int) -> str:
    return "\n".join(text.lstrip("\n").split("\n")[:n]).strip()


def edit_distances(reference: Sequence[int], others: Sequence[Sequence[int]]) -> np.ndarray:
    """Levenshtein distance of each of n sequences of ids (0 or more) to one, shape (n,).

    >>> edit_distances([1, 2, 3], [[1, 3], [1, 2, 3], []])
    array([1, 0, 3])
    """
    lengths = np.array([len(other) for other in others])
    columns = np.arange(lengths.max() + 1)
    padded = np.full((len(others), columns[-1]), -1)
    for row, other in zip(padded, others, strict=True):
        row[: len(other)] = other
    distances = np.tile(columns, (len(others), 1))  # to the empty beginning of the reference
    for token in reference:
        change = np.minimum(distances[:, 1:] + 1, distances[:, :-1] + (padded != token))
        change = np.hstack([distances[:, :1] + 1, change])
        # An insertion costs 1 for each column it goes to the right.
        distances = np.minimum.accumulate(change - columns, axis=1) + columns
    return distances[np.arange(len(others)), lengths]


def peakedness(greedy: Sequence[int], samples: Sequence[Sequence[int]]) -> float:
    """Share of sampled outputs within ALPHA times the longest output's length of the greedy one.

    CDD, Dong et al., arXiv:2402.15938: edit distances in tokens; the longest is taken
    over samples and greedy output, as in the authors' code. 0 to 1, higher means more likely
    read; 1 too for a model that always stops at once. ValueError if there is no sample.

    >>> peakedness([1, 2, 3, 4], [[1, 2, 3, 4], [1, 2, 3, 9]])
    0.5
    """
    if len(samples) == 0:
        raise ValueError("peakedness needs at least one sampled output")
    longest = max(len(output) for output in [greedy, *samples])
    return float(np.mean(edit_distances(greedy, samples) <= ALPHA * longest))


def coverage(rest: str, continuation: str) -> float:
    """Share of the words of a row's rest that lie in a run which the continuation holds too.

    Hallinan et al., arXiv:2508.09603. Runs have at least ``MIN_NGRAM`` words, where marks count
    as words and letters keep their case. 0 to 1, higher means more likely read. ValueError if the
    rest is shorter.

    >>> coverage("a b c d e", "x b c d")
    0.6
    """
    words, written = words_and_marks(rest), words_and_marks(continuation)
    if len(words) < MIN_NGRAM:
        raise ValueError(f"a rest of {len(words)} words holds no run of {MIN_NGRAM}: {rest!r}")
    known = {tuple(written[n : n + MIN_NGRAM]) for n in range(len(written) - MIN_NGRAM + 1)}
    is_covered = np.zeros(len(words), dtype=bool)
    for n in range(len(words) - MIN_NGRAM + 1):
        if tuple(words[n : n + MIN_NGRAM]) in known:
            is_covered[n : n + MIN_NGRAM] = True
    return float(is_covered.mean())


def cdd_scores(lm: CausalLM, rows: Rows) -> np.ndarray:
    """CDD's peakedness of each row's continuations, shape (n_rows,).

    The paper has a model solve a task, in at most 100 tokens; here it continues a question. Ties
    are many: scores are multiples of 1 / ``N_SAMPLES``. ValueError as in :func:`continuations`.
    """
    peaks = []
    for _, greedy, samples in continuations(lm, rows):
        first, *others = encode(lm, [greedy, *samples], allow_empty=True)
        peaks.append(peakedness(first, others))
    return np.array(peaks)


def coverage_scores(lm: CausalLM, rows: Rows) -> np.ndarray:
    """The largest n-gram coverage among each row's samples, shape (n_rows,).

    The paper gives half of the words and samples as many tokens as the rest has. ValueError as
    in :func:`continuations` and :func:`coverage`.
    """
    return np.array(
        [
            max(coverage(rest, sample) for sample in samples)
            for rest, _, samples in continuations(lm, rows)
        ]
    )


CDD = Detector("CDD", ANSWERS, cdd_scores, source="Dong et al., 2402.15938")
COVERAGE = Detector(
    "n-gram coverage",
    ANSWERS,
    coverage_scores,
    source="Hallinan et al., 2508.09603",
)
