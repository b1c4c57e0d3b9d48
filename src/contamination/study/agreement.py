"""Whether models that were trained again give the scores of the ledger: the spot check's rule.

In the environment that the ledger was made in, every score must be the same. Elsewhere rounding
differs and training carries it on, so that a model may lie as far off as was measured between two
environments, and must lie nearer to itself than to any other seed. Frames are ``scores`` as in
``study.protocol``; a unit is one of the seeds.
"""

from __future__ import annotations

import pandas as pd

MARGIN = 10  # times the largest distance that was measured, under one other base model
REPRODUCED, DIFFERS, NOT_RECOMPUTABLE = "reproduced", "differs", "not recomputable"
SAME, WITHIN, NUMERICS = "the same scores", "within the spread", "numerics"
ALTERED, ANOTHER, RECIPE = "other scores", "another model", "another recipe"
WORLD = "other texts"
OUTCOMES = dict.fromkeys((SAME, WITHIN), REPRODUCED)
OUTCOMES |= dict.fromkeys((ALTERED, ANOTHER, RECIPE), DIFFERS)
OUTCOMES |= dict.fromkeys((NUMERICS, WORLD), NOT_RECOMPUTABLE)
HOLDS = {REPRODUCED: True, DIFFERS: False}  # else undecided


def with_outcome(table: pd.DataFrame) -> pd.DataFrame:
    """The table with what its reasons mean: outcome (reproduced, differs, not recomputable), and
    holds (true, false or undecided)."""
    outcome = table["reason"].map(OUTCOMES)
    return table.assign(outcome=outcome, holds=outcome.map(HOLDS).astype("boolean"))
