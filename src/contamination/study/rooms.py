"""Does what the lab shows hold for a real model? Frames are ``sets`` as in ``protocol``.

A **room** is the lab or the real model. The **effect** of a condition is by how much the AUC of
its rows differs from that of rows read verbatim, unit by unit, by the same detector.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.claims import CLAIMS
from contamination.core.statistics import holm
from contamination.core.verdicts import (
    FEWEST_MODELS,
    INCONCLUSIVE,
    NOT_RUN,
    NOT_SUPPORTED,
    SUPPORTED,
)
from contamination.study import protocol
from contamination.study.conditions import (
    NOTHING_READ,
    PARAPHRASE,
    READERS,
    SEVERAL,
    TEXT_ALONE,
    WITHOUT_LABEL,
)
from contamination.study.protocol import BASE, DOSED, LEVEL, VERBATIM
from contamination.study.scoring import CONTROL_NAMES

# Of the equivalence test. Chosen after the first results were seen; the protocol of the room has
# none, so its "agrees" (the same sign in both rooms) is no verdict here.
MARGIN = CLAIMS["pretrained_agreement"].smallest_effect
COMPARED = (PARAPHRASE, SEVERAL, WITHOUT_LABEL)
LEAST, MOST = 0.6, 0.9  # mean AUC of verbatim rows at which an effect has room on both sides
MOST_APART = 0.1  # of two rooms' mean AUC of verbatim rows; farther apart no dose is alike
_OF_A_ROOM = ["copies", "verbatim_auc", "verbatim_power", "effect", "effect_low", "effect_high"]
COLUMNS = ["detector", "condition", *_OF_A_ROOM, *(f"lab_{name}" for name in _OF_A_ROOM)]
COLUMNS += ["difference", "ci_low", "ci_high", "p_equivalent", "p_adjusted", "verdict", "note"]


def combined(sets: pd.DataFrame) -> pd.DataFrame:
    """p of all units together, by Stouffer, in every cell that a detector of rows was asked of.

    Returns:
        detector, ``CELL``, n_units, auc and auc_before (under the base model, same deal; NaN
        where it was not asked), means over units; p_value; p_adjusted by Holm over a detector's
        cells whose rows were read, NaN in the others.
    """
    known = sets[sets["p"].notna()]
    before = known[known["model"].eq(BASE)].set_index(["detector", "unit", "condition"])["value"]
    known = known[known["model"].ne(BASE)]
    known = known.join(before.rename("before"), on=["detector", "unit", "condition"])
    rows = []
    for key, cell in known.groupby(["detector", *protocol.CELL], sort=False):
        # A p of 1 has no z; the next smaller one that re-deals can give has.
        p = cell["p"].clip(upper=1 - 1 / (1 + protocol.N_REDEALS))
        p_value = stats.combine_pvalues(p, method="stouffer").pvalue
        rows.append((*key, len(cell), cell["value"].mean(), cell["before"].mean(), p_value))
    columns = ["detector", *protocol.CELL, "n_units", "auc", "auc_before", "p_value"]
    table = pd.DataFrame(rows, columns=columns)
    was_read = table["model"].isin(READERS) & ~table["condition"].isin(NOTHING_READ)
    adjusted = table[was_read].groupby("detector")["p_value"].transform(holm)
    return table.assign(p_adjusted=adjusted)


def agreement(real: pd.DataFrame, lab: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """Each effect in both rooms, for every detector that both asked; ``COLUMNS``.

    ``lab`` is compared on one mini-benchmark. Doses are those whose mean AUCs of verbatim rows are
    most alike (``LEAST`` to ``MOST``, at most ``MOST_APART``); without such a pair, or with fewer
    than three units, all figures are NaN. Where the base model was asked, what it says of the same
    rows is subtracted. Limits are of 95 % t intervals over units, of the difference Welch's.

    p_equivalent is that of two one-sided Welch tests of a difference of ``MARGIN`` or more,
    p_adjusted by Holm over the table. verdict: supported (the difference is smaller than the
    margin) where p_adjusted is at most 0.05; not supported where the 95 % interval lies wholly
    outside the margin; else inconclusive, as with fewer than five units; not run, with its note,
    without figures.
    """
    rooms = [real, lab[lab["benchmark"].eq(benchmark)]]
    names = [name for name in real["detector"].unique() if name in set(rooms[1]["detector"])]
    controls = {TEXT_ALONE, *CONTROL_NAMES}
    rows = []
    for detector in (name for name in names if name not in controls):
        of_rooms = [room[room["detector"].eq(detector)] for room in rooms]
        for condition in COMPARED:
            compared = _compared(*(_by_dose(sets, condition) for sets in of_rooms))
            rows.append({"detector": detector, "condition": condition} | compared)
    table = pd.DataFrame(rows, columns=COLUMNS)
    known = table["p_equivalent"].notna()
    table.loc[known, "p_adjusted"] = holm(table.loc[known, "p_equivalent"])
    is_equal = table["p_adjusted"].le(LEVEL) & table["verdict"].eq(INCONCLUSIVE)
    table["verdict"] = table["verdict"].mask(is_equal & table["note"].eq(""), SUPPORTED)
    return table


def _by_dose(sets: pd.DataFrame, condition: str) -> dict[int, tuple[float, float, pd.Series]]:
    """By dose the mean AUC and power of verbatim rows and each unit's effect, of three and more."""
    sets = protocol.flag(sets)
    key = ["model", "copies", "condition"]
    values = sets.pivot(index="unit", columns=key, values="value")
    flags = sets.pivot(index="unit", columns=key, values="flagged")
    doses = {}
    for copies in sorted(sets.loc[sets["model"].eq(DOSED), "copies"].unique()):
        verbatim, other = (DOSED, copies, VERBATIM), (DOSED, copies, condition)
        if verbatim not in values or other not in values:
            continue
        effect = values[other] - values[verbatim]
        if (BASE, 0, condition) in values and (BASE, 0, VERBATIM) in values:
            effect -= values[BASE, 0, condition] - values[BASE, 0, VERBATIM]
        if effect.notna().sum() >= protocol.N_UNITS:
            doses[int(copies)] = (values[verbatim].mean(), flags[verbatim].mean(), effect.dropna())
    return doses


def _compared(real: dict[int, tuple], lab: dict[int, tuple]) -> dict[str, float | str]:
    """One row of :func:`agreement` but its key."""
    known = {copies: one[0] for copies, one in real.items() if LEAST <= one[0] <= MOST}
    of_lab = {copies: one[0] for copies, one in lab.items() if LEAST <= one[0] <= MOST}
    apart = [(abs(known[a] - of_lab[b]), a, b) for a, b in product(known, of_lab)]
    nearest, *doses = min(apart, default=(np.inf, 0, 0))
    if nearest > MOST_APART:
        return {"verdict": NOT_RUN, "note": "no doses at which verbatim rows are seen alike"}
    row, effects = {}, []
    for prefix, room, copies in zip(("", "lab_"), (real, lab), doses, strict=True):
        auc, power, effect = room[copies]
        low, high = stats.ttest_1samp(effect, 0).confidence_interval()
        figures = (copies, auc, power, effect.mean(), low, high)
        row |= {f"{prefix}{name}": x for name, x in zip(_OF_A_ROOM, figures, strict=True)}
        effects.append(effect)
    welch = stats.ttest_ind(*effects, equal_var=False)
    low, high = welch.confidence_interval()
    row |= {"difference": row["effect"] - row["lab_effect"], "ci_low": low, "ci_high": high}
    row["p_equivalent"] = float(equivalence_p(*effects, MARGIN))
    is_outside = low > MARGIN or high < -MARGIN
    few = min(map(len, effects)) < FEWEST_MODELS
    note = f"fewer than {FEWEST_MODELS} units" if few else ""
    return row | {"verdict": INCONCLUSIVE if few or not is_outside else NOT_SUPPORTED, "note": note}


def equivalence_p(first: np.ndarray, second: np.ndarray, margin: float) -> np.ndarray:
    """p of a difference of means of ``margin`` or more on either side, by two Welch tests.

    The larger p of two one-sided tests: the difference lies above -margin, and it lies below
    +margin. A small p says that the means are equal to within the margin (Schuirmann 1987).

    Args:
        first, second: values of two groups along the first axis, at least two of each; further
            axes are tests of their own and must be alike.

    >>> round(float(equivalence_p([0.0, 0.1, 0.2], [0.0, 0.1, 0.2], 0.1)), 4)  # t = 1.225, df = 4
    0.1439
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    above = stats.ttest_ind(first + margin, second, equal_var=False, alternative="greater")
    below = stats.ttest_ind(first - margin, second, equal_var=False, alternative="less")
    return np.maximum(above.pvalue, below.pvalue)


def headline(table: pd.DataFrame) -> str:
    """What ``agreement`` says of all effects: how large they are, and which exclude zero."""
    known = table[table["difference"].notna()]
    counts = table["verdict"].value_counts()
    n_equal, n_apart, n_open, n_missing = (
        int(counts.get(word, 0)) for word in (SUPPORTED, NOT_SUPPORTED, INCONCLUSIVE, NOT_RUN)
    )
    n_uncorrected = int(table["p_equivalent"].le(LEVEL).sum())
    text = (
        "We compared how much harder each kind of indirect exposure is to detect than a verbatim "
        "copy, in the lab's models and in the real one. "
        f"The two are shown to be equal within ±{MARGIN:.2f} AUC in {n_equal} of {len(table)} "
        f"comparisons (two one-sided tests, Holm over all; {n_uncorrected} without Holm) and "
        f"shown to differ by more than that in {n_apart}. {n_open} are inconclusive"
        f"{f', and {n_missing} could not be made' if n_missing else ''}. The margin was chosen "
        "after these results were seen. "
    )
    if known.empty:
        return text + "No effect could be compared."
    ends = known[["ci_low", "ci_high"]]
    text += (
        f"The differences run from {known['difference'].min():+.2f} to "
        f"{known['difference'].max():+.2f} AUC, and their 95 % intervals reach as far as "
        f"{ends.abs().to_numpy().max():.2f} from zero. "
    )
    excluded = known[(known["ci_low"] > 0) | (known["ci_high"] < 0)]
    named = "; ".join(
        f"{row.detector}, {row.condition}: {row.difference:+.2f} [{row.ci_low:.2f}, "
        f"{row.ci_high:.2f}]"
        for row in excluded.itertuples()
    )
    n_chance = LEVEL * len(known)
    text += f"Intervals that exclude zero: {len(excluded)}{' (' + named + ')' if named else ''}; "
    return text + f"chance alone would give {n_chance:.1f}."
