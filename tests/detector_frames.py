"""Frames of the protocol with a known truth, made without any model."""

import numpy as np
import pandas as pd

from contamination.study import protocol
from contamination.study.conditions import FRESH, VERBATIM

ONE_CELL = {"benchmark": "topics", "model": "dosed", "condition": "verbatim", "copies": 3}


def product(**columns) -> pd.DataFrame:
    """Every combination of the columns' values; the other columns of a set have plain values."""
    columns = {name: np.atleast_1d(values) for name, values in columns.items()}
    frame = pd.MultiIndex.from_product(columns.values(), names=list(columns)).to_frame(index=False)
    plain = {"detector": "A", "unit": 0, **ONE_CELL, "n_read": 50, "n_unread": 50}
    plain |= {"value": 0.5, "p": np.nan, "own_p": np.nan}
    return frame.assign(**{k: v for k, v in plain.items() if k not in frame})[protocol.SET_COLUMNS]


def sets_with_flags(flags, **columns) -> pd.DataFrame:
    """Sets of units 0, 1, ... whose p says that they are flagged (1) or not (0)."""
    frame = product(unit=np.arange(len(flags)), **columns)
    return frame.assign(p=np.where(np.asarray(flags) == 1, 0.01, 0.5))


def scores_of(detector: str, score, units=6, n_rows=60, seed=0) -> pd.DataFrame:
    """``scores`` by ``score(generator, model, condition, is_read)`` on one small matrix.

    Models: base and clean at dose 0, dosed at 12; conditions: verbatim and fresh rows.
    """
    tables = []
    for unit in range(units):
        for place, condition in enumerate((VERBATIM, FRESH)):
            deal = np.random.default_rng([seed, unit, place])
            is_read = deal.permutation(n_rows) < n_rows // 2
            for model, copies in (("base", 0), ("clean", 0), ("dosed", 12)):
                table = pd.DataFrame({"row": np.arange(n_rows), "is_read": is_read})
                table["score"] = score(deal, model, condition, is_read)
                cell = {"benchmark": "topics", "model": model, "condition": condition}
                tables.append(table.assign(detector=detector, unit=unit, copies=copies, **cell))
    return pd.concat(tables, ignore_index=True)
