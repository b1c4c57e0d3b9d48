"""Frames of the protocol with a known truth, made without any model."""

import numpy as np
import pandas as pd

from contamination.dcq.quizzes import quizzes_of_groups
from contamination.lab.grammar import BENCHMARKS, draw_groups
from contamination.study import arms, protocol
from contamination.study.conditions import VERBATIM

ONE_CELL = {"benchmark": "topics", "model": "dosed", "condition": "verbatim", "copies": 3}


def product(**columns) -> pd.DataFrame:
    """Every combination of the columns' values; the other columns of a set have plain values."""
    columns = {name: np.atleast_1d(values) for name, values in columns.items()}
    frame = pd.MultiIndex.from_product(columns.values(), names=list(columns)).to_frame(index=False)
    plain = {"detector": "A", "unit": 0, **ONE_CELL, "n_read": 50, "n_unread": 50}
    plain |= {"value": 0.5, "p": np.nan, "own_p": np.nan}
    return frame.assign(**{k: v for k, v in plain.items() if k not in frame})[protocol.SET_COLUMNS]


def dealt(benchmark, seed, n_read):
    """A dataset of 2 n_read rows of the lab, of which a model reads a random half."""
    columns, n_rows = BENCHMARKS[benchmark].columns, 2 * n_read
    groups = draw_groups(BENCHMARKS[benchmark], n_rows + arms.N_CONTEXT, seed, arms.TESTED)
    quizzes = quizzes_of_groups(groups, columns)
    context = tuple(quizzes["instance"].iloc[n_rows:])
    rows = arms.rows_of(quizzes.iloc[:n_rows], "Topics A", columns[-1], context, seed)
    is_read = np.random.default_rng(seed).permutation(n_rows) < n_read
    return arms.Dataset(VERBATIM, rows, is_read)
