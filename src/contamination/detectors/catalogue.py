"""Every detector of the study, in the order of its tables."""

from contamination.detectors import (
    baselines,
    constat,
    context,
    four_methods,
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
ALL = (*OF_ROWS, *OF_SETS, CONSTAT, *scoring.CONTROLS)
BY_NAME = {detector.name: detector for detector in ALL}
