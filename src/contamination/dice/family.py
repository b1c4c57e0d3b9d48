"""The tests of notebook 05b as one family, corrected together, and the verdicts they lead to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from contamination.core.statistics import with_p_adjusted
from contamination.core.verdicts import CLAIMS, CONTROL_FAILS, OPEN, strongest, verdict_column
from contamination.dice.accuracy import seen_and_fresh, within_floor
from contamination.dice.mixtures import UNSEEN
from contamination.dice.pool import OTHER_CLEAN

ANY_FLOOR = (0.0, 100.0)
SMALLEST = CLAIMS["dice_auroc"].smallest_effect  # points of AUROC that would matter


def with_verdicts(
    gains: pd.DataFrame,
    layers: pd.DataFrame,
    aurocs: pd.DataFrame,
    floor_pct: Sequence[float] = ANY_FLOOR,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Tables 1 and 2 and Figure 4 with p_adjusted (Holm over all three) and verdict.

    ``gains`` as ``accuracy.gains``, ``layers`` as ``paper_rows.layer_rows`` and ``aurocs`` as
    ``paper_rows.add_clean_difference``. ``floor_pct`` bounds the accuracy of clean models
    that can be seen to gain and to fall.
    """
    gains, layers, aurocs = with_p_adjusted(gains, layers, aurocs)
    return judge_inflation(gains, floor_pct), judge_layers(layers), judge_aurocs(aurocs)


def judge_inflation(gains: pd.DataFrame, floor_pct: Sequence[float] = ANY_FLOOR) -> pd.DataFrame:
    """``gains`` with p_adjusted, and the verdict: is the score inflated, by more than clean ones?

    The control fails where the clean models that a condition is compared with have lost the skill:
    models that answer nothing cannot be inflated, so a difference to them says nothing. The verdict
    of clean models is blank. Where the sets exchange roles, they do so for clean models as well.
    """
    is_clean = gains["condition"].eq(OTHER_CLEAN)
    controls = gains.loc[is_clean, ["ci_low", "ci_high"]].to_numpy().tolist()
    words = []
    for row in gains.itertuples():
        is_exchanged = seen_and_fresh(row.condition)[0] == UNSEEN
        of_clean = [(-high, -low) for low, high in controls] if is_exchanged else controls
        control = strongest(of_clean, row.ci_low)
        word = OPEN  # without a p there were too few models, which decide nothing
        if not np.isnan(row.p):
            ends = row.ci_low, row.ci_high
            word = CLAIMS["dice_inflation"].verdict(
                *ends, p_adjusted=row.p_adjusted, control=control
            )
        words.append(word if within_floor(row.reference_pct, floor_pct) else CONTROL_FAILS)
    return gains.assign(verdict=pd.Series(words, gains.index, dtype=object).mask(is_clean, ""))


def judge_layers(layers: pd.DataFrame) -> pd.DataFrame:
    """``layers`` with p_adjusted, and the verdict on more than a half, at located layers alone."""
    words = verdict_column(layers, CLAIMS["dice_layers"], where=layers["located"].astype(bool))
    return layers.assign(verdict=words)


def judge_aurocs(aurocs: pd.DataFrame) -> pd.DataFrame:
    """``aurocs`` with p_adjusted, and the verdict on the difference; blank where there is none.

    An AUROC ends at 100 %. Where two clean models leave no room for the smallest difference that
    would matter, the comparison cannot show one, and the verdict is open.
    """
    ends, is_asked = ("difference_low", "difference_high"), aurocs["difference_pct"].notna()
    can_reject = aurocs["two_clean_pct"].map(leaves_room)
    words = verdict_column(
        aurocs, CLAIMS["dice_auroc"], *ends, can_reject=can_reject, where=is_asked
    )
    return aurocs.assign(verdict=words)


def leaves_room(two_clean_pct: float) -> bool:
    """Whether an AUROC can lie above that of two clean models by as much as would matter.

    >>> leaves_room(90.0), leaves_room(99.9)
    (True, False)
    """
    return 100 - two_clean_pct >= SMALLEST
