"""Rows of the lab with a random deal, made without any model."""

import numpy as np

from contamination.dcq.quizzes import quizzes_of_groups
from contamination.lab.grammar import BENCHMARKS, draw_groups
from contamination.study.conditions import VERBATIM
from contamination.study.interface import N_CONTEXT, TESTED, rows_of
from contamination.study.released_rows import Dataset


def dealt(benchmark, seed, n_read):
    """A dataset of 2 n_read rows of the lab, of which a model reads a random half."""
    columns, n_rows = BENCHMARKS[benchmark].columns, 2 * n_read
    groups = draw_groups(BENCHMARKS[benchmark], n_rows + N_CONTEXT, seed, TESTED)
    quizzes = quizzes_of_groups(groups, columns)
    context = tuple(quizzes["instance"].iloc[n_rows:])
    rows = rows_of(quizzes.iloc[:n_rows], "Topics A", columns[-1], context, seed)
    is_read = np.random.default_rng(seed).permutation(n_rows) < n_read
    return Dataset(VERBATIM, rows, is_read)
