"""Does what the lab shows hold for a real model? Frames are ``sets`` as in ``protocol``.

A **room** is the lab or the real model. The **effect** of a condition is by how much the AUC of
its rows differs from that of rows read verbatim, unit by unit, by the same detector.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.statistics import holm, verdict
from contamination.study import protocol
from contamination.study.conditions import (
    NOTHING_READ,
    PARAPHRASE,
    READERS,
    SEVERAL,
    TEXT_ALONE,
    WITHOUT_LABEL,
)
from contamination.study.protocol import BASE, CANNOT_TELL, DOSED, LEVEL, VERBATIM
from contamination.study.scoring import CONTROLS

AGREES, DIFFERS = "agrees", "differs"
COMPARED = (PARAPHRASE, SEVERAL, WITHOUT_LABEL)
LEAST, MOST = 0.6, 0.9  # mean AUC of verbatim rows at which an effect has room on both sides
MOST_APART = 0.1  # of two rooms' mean AUC of verbatim rows; farther apart no dose is alike
_OF_A_ROOM = ["copies", "verbatim_auc", "verbatim_power", "effect", "effect_low", "effect_high"]
COLUMNS = ["detector", "condition", *_OF_A_ROOM, *(f"lab_{name}" for name in _OF_A_ROOM)]
COLUMNS += ["difference", "ci_low", "ci_high", "verdict"]


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

    verdict: "differs" where the interval of the difference excludes 0; "agrees" where it does not
    and both effects' intervals lie on the same side of 0; else "cannot tell".
    """
    rooms = [real, lab[lab["benchmark"].eq(benchmark)]]
    names = [name for name in real["detector"].unique() if name in set(rooms[1]["detector"])]
    controls = {TEXT_ALONE, *(control.name for control in CONTROLS)}
    rows = []
    for detector in (name for name in names if name not in controls):
        of_rooms = [room[room["detector"].eq(detector)] for room in rooms]
        for condition in COMPARED:
            compared = _compared(*(_by_dose(sets, condition) for sets in of_rooms))
            rows.append({"detector": detector, "condition": condition} | compared)
    return pd.DataFrame(rows, columns=COLUMNS)


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
        return {"verdict": CANNOT_TELL}
    row, effects, sides = {}, [], []
    for prefix, room, copies in zip(("", "lab_"), (real, lab), doses, strict=True):
        auc, power, effect = room[copies]
        low, high = stats.ttest_1samp(effect, 0).confidence_interval()
        figures = (copies, auc, power, effect.mean(), low, high)
        row |= {f"{prefix}{name}": x for name, x in zip(_OF_A_ROOM, figures, strict=True)}
        effects.append(effect)
        sides.append(verdict(low, high))
    low, high = stats.ttest_ind(*effects, equal_var=False).confidence_interval()
    is_one_side = sides[0] == sides[1] and sides[0] in ("above", "below")
    word = AGREES if is_one_side else CANNOT_TELL
    word = word if low <= 0 <= high else CANNOT_TELL if np.isnan(low) else DIFFERS
    row |= {"difference": row["effect"] - row["lab_effect"], "ci_low": low, "ci_high": high}
    return row | {"verdict": word}


def headline(table: pd.DataFrame) -> str:
    """What ``agreement`` says of all effects; each of its intervals stands for itself.

    Differences count as such where chance, one effect in twenty, would give as many in less
    than one table of twenty. That takes effects for independent, which models shared are not.
    """
    counts = table["verdict"].value_counts()
    n_agree, n_differ = (int(counts.get(word, 0)) for word in (AGREES, DIFFERS))
    n_open = len(table) - n_agree - n_differ
    is_chance = stats.binomtest(n_differ, len(table), LEVEL, "greater").pvalue > LEVEL
    told = {
        (True, False): "where it can be told, a real model and the lab agree",
        (False, True): "where it can be told, a real model and the lab differ",
        (True, True): "a real model and the lab agree in some effects and differ in others",
        (False, False): "whether a real model and the lab agree cannot be told",
    }[n_agree > 0, not is_chance]
    if n_differ and is_chance:
        told += ", and no more differ than chance would give"
    differ = "differs" if n_differ == 1 else "differ"
    counted = f"{n_agree} agree, {n_differ} {differ} and {n_open} cannot be told"
    text = f"In how other readings than word for word are seen, {told}. "
    text += f"Of {len(table)} effects {counted}."
    if n_differ:
        text += f" If none truly differed, {LEVEL * len(table):.1f} would seem to."
    return text
