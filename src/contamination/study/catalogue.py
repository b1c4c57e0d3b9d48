"""Every detector of the study, in the order of its tables."""

import pandas as pd

from contamination.study import (
    baselines,
    constat,
    context,
    four_methods,
    released_rows,
    sampling,
    scoring,
    whole_sets,
)

OF_THE_PAPERS = (
    four_methods.DCQ,
    four_methods.REPLICATION,
    baselines.MIN_K,
    four_methods.DICE,
)
OF_ROWS = (
    *OF_THE_PAPERS,
    four_methods.RANKING,
    baselines.PPL,
    baselines.ZLIB,
    baselines.LOWERCASE,
    baselines.MIN_K_PLUS_PLUS,
    context.CODEC,
    context.RECALL,
    sampling.CDD,
    sampling.COVERAGE,
)
OF_SETS = (whole_sets.EXCHANGEABILITY, whole_sets.DATASET_INFERENCE)
CONSTAT = constat.constat_detector(())  # asked with reference models; this describes it
ALL = (*OF_ROWS, released_rows.OPTION_MARGIN, *OF_SETS, CONSTAT, *scoring.CONTROLS)
BY_NAME = {detector.name: detector for detector in ALL}


def in_order(sets: pd.DataFrame) -> pd.DataFrame:
    """``sets`` by detector as in ``ALL``, those that see no model last; else in their order.

    >>> in_order(pd.DataFrame({"detector": ["noise", "text alone", "DCQ"]}))["detector"].tolist()
    ['DCQ', 'noise', 'text alone']
    """
    place = {detector.name: number for number, detector in enumerate(ALL)}
    return sets.sort_values("detector", key=lambda names: names.map(place), kind="stable")
