"""Frames of the protocol with a known truth, made without any model."""

import numpy as np
import pandas as pd

from contamination.study import protocol

ONE_CELL = {"benchmark": "topics", "model": "dosed", "condition": "verbatim", "copies": 3}


def product(**columns) -> pd.DataFrame:
    """Every combination of the columns' values; the other columns of a set have plain values."""
    columns = {name: np.atleast_1d(values) for name, values in columns.items()}
    frame = pd.MultiIndex.from_product(columns.values(), names=list(columns)).to_frame(index=False)
    plain = {"detector": "A", "unit": 0, **ONE_CELL, "n_read": 50, "n_unread": 50}
    plain |= {"value": 0.5, "p": np.nan, "own_p": np.nan}
    return frame.assign(**{k: v for k, v in plain.items() if k not in frame})[protocol.SET_COLUMNS]
