"""Several models with a p-value each: one p-value for all of them, by Stouffer's method.

If no model had learned anything, each p-value would be uniform, its quantile of the normal
distribution normal, and so would be the sum of n quantiles over the square root of n.
"""

from __future__ import annotations

import pandas as pd

from contamination.core.statistics import holm
from contamination.study import protocol
from contamination.study.conditions import BASE, NOTHING_READ, READERS
from contamination.study.crossed import stouffer


def combine_p_values(sets: pd.DataFrame) -> pd.DataFrame:
    """One p-value over all models, by Stouffer's method, for each detector and exposure.

    Returns:
        detector, ``CELL``, n_units (models), auc and auc_before (under the base model, with the
        same assignment; NaN where it was not asked), means over models; p_value; p_adjusted by
        Holm over a detector's exposures whose rows were seen, NaN in all other rows.
    """
    known = sets[sets["p"].notna()]
    before = known[known["model"].eq(BASE)].set_index(["detector", "unit", "condition"])["value"]
    known = known[known["model"].ne(BASE)]
    known = known.join(before.rename("before"), on=["detector", "unit", "condition"])
    rows = []
    for key, cell in known.groupby(["detector", *protocol.CELL], sort=False):
        means = cell["value"].mean(), cell["before"].mean()
        rows.append((*key, len(cell), *means, stouffer(cell["p"].to_numpy())))
    columns = ["detector", *protocol.CELL, "n_units", "auc", "auc_before", "p_value"]
    table = pd.DataFrame(rows, columns=columns)
    was_read = table["model"].isin(READERS) & ~table["condition"].isin(NOTHING_READ)
    adjusted = table[was_read].groupby("detector")["p_value"].transform(holm)
    return table.assign(p_adjusted=adjusted)
