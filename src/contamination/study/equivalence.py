"""Does indirect exposure act in a real model as in the lab? The test of ``docs/protocol_2.md``.

Frames are ``sets`` as in ``study.protocol``. The **effect** of a condition is the AUC of its rows
minus the AUC of verbatim rows, under the same model and by the same detector, as the mean over
four detectors. A **pair** is two units of the real model that exchange datasets and halves of the
rows; its effect is the mean of both.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core import scores
from contamination.core.claims import CLAIMS
from contamination.core.tables import interval_text, listed
from contamination.core.verdicts import ALPHA, FEWEST_MODELS, INCONCLUSIVE, NOT_RUN, SUPPORTED
from contamination.study.conditions import BASE, DOSED, PARAPHRASE, SEVERAL, VERBATIM, WITHOUT_LABEL
from contamination.study.released_rows import CONFIRMATORY

OF_TOKENS = (scores.MIN_K, scores.PPL, scores.ZLIB, scores.MIN_K_PLUS_PLUS)
COMPARED = (PARAPHRASE, SEVERAL, WITHOUT_LABEL)
MOST_APART = 0.1  # of the two mean AUCs of verbatim rows; farther apart the doses are not alike
LAB_BENCHMARK = "topics"  # only it has all conditions
LAB_COPIES, REAL_COPIES = 3, 4
MARGIN = CLAIMS["pretrained_equivalence"].smallest_effect
CONFIRMING = "confirmatory"
SUBTRACTED = "base model subtracted"
WITH_PILOT = "pilot included"
# A condition within a sentence: what the model saw in place of the row.
IN_WORDS = {
    PARAPHRASE: "one paraphrase",
    SEVERAL: "several paraphrases",
    WITHOUT_LABEL: "the row without its label",
}
ANALYSES = (CONFIRMING, SUBTRACTED, WITH_PILOT)  # the last two are sensitivity analyses
FIGURES = ["verbatim_auc", "lab_verbatim_auc", "real_effect", "lab_effect", "difference"]
FIGURES += ["ci90_low", "ci90_high", "ci_low", "ci_high", "p_equivalent"]
COLUMNS = ["analysis", "condition", "n_pairs", "n_lab", *FIGURES, "verdict", "note"]


def equivalence(real: pd.DataFrame, lab: pd.DataFrame) -> pd.DataFrame:
    """Whether each effect under the real model equals the lab's to within ``MARGIN``.

    Args:
        real: sets of the real model, of ``CONFIRMATORY`` units and, for the sensitivity analysis
            with all pairs, of the pilot's. A pair without both twins, all detectors and all
            conditions is left out.
        lab: sets of the lab's first study.

    Returns:
        ``COLUMNS``, by ``ANALYSES`` and condition. difference is the real model's effect minus the
        lab's, AUC. ci90_ are the limits of its 90 % Welch interval, which lies within the margin
        exactly if p_equivalent is at most 0.05, and ci_ those of the 95 % interval. verdict, of
        the confirmatory analysis alone: supported if p_equivalent is at most 0.05, else
        inconclusive. It is inconclusive as well with fewer than five pairs, and where the mean
        AUCs of verbatim rows differ by more than ``MOST_APART``; note says so. Not run with fewer
        than two pairs.
    """
    lab = lab[lab["benchmark"].eq(LAB_BENCHMARK)]
    rows = []
    for analysis in ANALYSES:
        own = real if analysis == WITH_PILOT else real[real["unit"].isin(CONFIRMATORY)]
        is_subtracted = analysis == SUBTRACTED
        pairs = _of_pairs(_by_unit(own, REAL_COPIES, is_subtracted))
        bases = _by_unit(lab, LAB_COPIES, is_subtracted)
        for condition in COMPARED:
            row = _compared(pairs, bases, condition)
            if analysis != CONFIRMING:
                row["verdict"] = ""  # it makes no claim
            rows.append({"analysis": analysis, "condition": condition} | row)
    return pd.DataFrame(rows, columns=COLUMNS)


def _by_unit(sets: pd.DataFrame, copies: int, is_base_subtracted: bool) -> pd.DataFrame:
    """Each unit's AUC of verbatim rows and its effects, means over the detectors.

    Where the base model was asked about the same rows, ``is_base_subtracted`` takes off what the
    effect is under it.
    """
    of_dose = sets[sets["model"].eq(DOSED) & sets["copies"].eq(copies)]
    wide = _complete(of_dose)
    found = pd.DataFrame({VERBATIM: wide[VERBATIM].mean(axis=1)})
    before = _complete(sets[sets["model"].eq(BASE)]) if is_base_subtracted else wide.iloc[:0]
    for condition in COMPARED:
        found[condition] = (wide[condition] - wide[VERBATIM]).mean(axis=1)
        if len(before):
            found[condition] -= (before[condition] - before[VERBATIM]).mean(axis=1)
    return found.dropna()


def _complete(sets: pd.DataFrame) -> pd.DataFrame:
    """AUCs of the units that have all of them: a row for each, (condition, detector) as columns."""
    wide = sets.pivot(index="unit", columns=["condition", "detector"], values="value")
    asked = pd.MultiIndex.from_tuples(product((VERBATIM, *COMPARED), OF_TOKENS))
    return wide.reindex(columns=asked).dropna()


def _of_pairs(by_unit: pd.DataFrame) -> pd.DataFrame:
    """Means of two twins, which have the numbers 2 d and 2 d + 1; of whole pairs alone."""
    pairs = by_unit.groupby(by_unit.index // 2)
    return pairs.mean()[pairs.size().eq(2)]


def _compared(pairs: pd.DataFrame, bases: pd.DataFrame, condition: str) -> dict[str, object]:
    """One row of :func:`equivalence` but its key."""
    row: dict[str, object] = {"n_pairs": len(pairs), "n_lab": len(bases)}
    if min(len(pairs), len(bases)) < 2:
        missing = {"verdict": NOT_RUN, "note": "fewer than two pairs or lab models"}
        return row | dict.fromkeys(FIGURES, np.nan) | missing
    real, lab = pairs[condition], bases[condition]
    welch = stats.ttest_ind(real, lab, equal_var=False)
    (low90, high90), (low, high) = (welch.confidence_interval(share) for share in (0.90, 0.95))
    apart = pairs[VERBATIM].mean() - bases[VERBATIM].mean()
    p_equivalent = float(equivalence_p(real, lab, MARGIN))
    figures = (pairs[VERBATIM].mean(), bases[VERBATIM].mean(), real.mean(), lab.mean())
    figures += (real.mean() - lab.mean(), low90, high90, low, high, p_equivalent)
    notes = []
    if len(pairs) < FEWEST_MODELS:
        notes.append(f"fewer than {FEWEST_MODELS} pairs")
    if abs(apart) > MOST_APART:
        notes.append(f"the AUCs of verbatim rows differ by more than {MOST_APART:.2f}")
    is_equal = p_equivalent <= ALPHA and not notes
    if low > MARGIN or high < -MARGIN:
        notes.append("the 95 % interval lies outside the margin")
    verdict = {"verdict": SUPPORTED if is_equal else INCONCLUSIVE, "note": "; ".join(notes)}
    return row | dict(zip(FIGURES, figures, strict=True)) | verdict


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


def summarize_equivalence(table: pd.DataFrame) -> str:
    """What the confirmatory rows of :func:`equivalence` say, in a paragraph."""
    known = _confirming(table)
    if known.empty:
        return in_brief(table)
    n_pairs, n_lab = known["n_pairs"].iloc[0], known["n_lab"].iloc[0]
    differences = "; ".join(
        f"{IN_WORDS[row.condition]} {row.difference:+.2f} "
        f"[{row.ci90_low:+.2f}, {row.ci90_high:+.2f}]"
        for row in known.itertuples()
    )
    return (
        f"{in_brief(table)} The effect of a form is the AUC of rows that a model saw in this form "
        "minus the AUC of rows that it saw verbatim. The effect under SmolLM2 "
        f"({n_pairs} pairs of fine-tuned models) minus the effect under {n_lab} small models, with "
        f"90 % intervals: {differences}."
    )


def in_brief(table: pd.DataFrame) -> str:
    """For which forms the AUC is shown to change as much in the real model as in the lab."""
    known = _confirming(table)
    if known.empty:
        return "No pair of the real model has been trained, so nothing can be compared yet."
    is_equal = known["verdict"].eq(SUPPORTED)
    open_ = known.loc[~is_equal, "condition"].map(IN_WORDS).tolist()
    said = []
    if is_equal.any():
        said.append(_of_equal(known[is_equal]))
    if open_:
        notes = sorted({note for note in known["note"] if note})
        why = f" ({'; '.join(notes)})" if notes else ""
        full = "" if is_equal.any() else ", instead of on the full row"
        said.append(
            f"For training on {listed(open_, 'or')}{full}, the result is inconclusive{why}."
        )
    differ = known[~is_equal & (known["ci_low"].gt(0) | known["ci_high"].lt(0))]
    said += [_of_different(row) for row in differ.itertuples()]
    return " ".join(said)


def _of_equal(rows: pd.DataFrame) -> str:
    """The forms with equal effects, the effects, and whether the margin is wider than these."""
    forms = listed(rows["condition"].map(IN_WORDS).tolist(), "or")
    effects = listed(
        [f"{row.lab_effect:+.2f} and {row.real_effect:+.2f}" for row in rows.itertuples()]
    )
    text = (
        f"Training on {forms}, instead of on the full row, changes the AUC by {effects} (small "
        f"models, real model). These changes are equal to within {MARGIN:.2f}"
    )
    if rows[["lab_effect", "real_effect"]].abs().lt(MARGIN).all(axis=None):
        return f"{text}, but they are smaller than that margin, so this says little."
    return f"{text}."


def _of_different(row: Any) -> str:
    """A form whose effects are shown to differ, by an unknown amount."""
    return (
        f"With {IN_WORDS[row.condition]} the two changes do differ "
        f"({row.lab_effect:+.2f} and {row.real_effect:+.2f}; 95 % interval of the difference "
        f"{interval_text(row.ci_low, row.ci_high, 2)}). The difference may be larger or smaller "
        f"than {MARGIN:.2f}."
    )


def _confirming(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the confirmatory analysis that have a verdict."""
    return table[table["analysis"].eq(CONFIRMING) & table["verdict"].ne(NOT_RUN)]
