"""The detectors of the real model, in the order of its tables."""

import pandas as pd

from contamination.study import baselines, released_rows, scoring

ALL = (
    baselines.MIN_K,
    baselines.PPL,
    baselines.ZLIB,
    baselines.MIN_K_PLUS_PLUS,
    released_rows.OPTION_MARGIN,
    *scoring.CONTROLS,
)


def in_order(sets: pd.DataFrame) -> pd.DataFrame:
    """``sets`` by detector as in ``ALL``, those that see no model last; else in their order.

    >>> in_order(pd.DataFrame({"detector": ["text alone", "noise", "PPL"]}))["detector"].tolist()
    ['PPL', 'noise', 'text alone']
    """
    place = {detector.name: number for number, detector in enumerate(ALL)}
    return sets.sort_values("detector", key=lambda names: names.map(place), kind="stable")
