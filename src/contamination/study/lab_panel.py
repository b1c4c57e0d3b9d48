"""Verdicts on means over base models."""

from __future__ import annotations

import pandas as pd

from contamination.core.claims import CLAIMS
from contamination.core.verdicts import strongest
from contamination.study.conditions import DOSED, VERBATIM

CLAIMED = (DOSED, VERBATIM)  # model and condition that ``mean_auc_by_dose`` makes a claim about


def units_verdict(table: pd.DataFrame) -> pd.DataFrame:
    """``mean_auc_by_dose`` with p_adjusted, corrected within a notebook's family, and verdict.

    The verdict is blank for the controls; their intervals have to lie below that of a claim that
    is supported.
    """
    is_claim = table["model"].eq(CLAIMED[0]) & table["condition"].eq(CLAIMED[1])
    controls = table.loc[~is_claim, ["ci_low", "ci_high"]].to_numpy().tolist()
    claim = CLAIMS["over_base_models"]
    rows = zip(table.itertuples(), is_claim, strict=True)
    return table.assign(
        verdict=[
            claim.verdict(
                row.ci_low,
                row.ci_high,
                p_adjusted=row.p_adjusted,
                control=strongest(controls, row.ci_low),
                n_models=row.n_units,
            )
            if is_one
            else ""
            for row, is_one in rows
        ]
    )
