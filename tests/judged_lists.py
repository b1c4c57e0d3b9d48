"""What a list of rows gives where the truth is known, counted plainly."""

from typing import NamedTuple

import numpy as np


class RowList(NamedTuple):
    """What one list gives: rows named, the share of them unseen, the share of seen rows found."""

    n_named: int
    false_share: float  # 0 where nothing is named
    found_share: float


def judge_list(is_named: np.ndarray, is_seen: np.ndarray) -> RowList:
    """What a list gives; both masks have shape (n_rows,)."""
    n_named = int(is_named.sum())
    return RowList(
        n_named,
        float((is_named & ~is_seen).sum() / n_named) if n_named else 0.0,
        float((is_named & is_seen).sum() / is_seen.sum()),
    )
