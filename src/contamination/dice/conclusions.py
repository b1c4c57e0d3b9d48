"""What notebook 05 and its lab conclude about DICE, in words that their tables choose."""

from __future__ import annotations

import pandas as pd

from contamination.core.claims import CLAIMS
from contamination.core.tables import interval_text, listed
from contamination.core.verdicts import (
    CONTROL_FAILS,
    FEWEST_MODELS,
    INCONCLUSIVE,
    NOT_SUPPORTED,
    SUPPORTED,
)
from contamination.dice import controls
from contamination.dice.detector import MEAN_DIFFERENCE, MLP
from contamination.dice.mixtures import SEEN, UNSEEN
from contamination.dice.pool import CONTAMINATED


def lab_conclusion(
    inflated: pd.DataFrame,
    aurocs: pd.DataFrame,
    control_table: pd.DataFrame,
    layers: pd.DataFrame,
) -> str:
    """What the lab finds out about inflated scores, about DICE and about its controls.

    ``inflated`` as ``paper_rows.with_flags``, ``aurocs`` as
    ``paper_rows.add_clean_difference`` and ``layers`` as ``paper_rows.layer_rows``, all with the
    verdicts of ``dice.family``, ``control_table`` as ``controls.control_table``.
    """
    is_main = aurocs["trained_on"].eq(CONTAMINATED)
    fresh = aurocs[is_main & aurocs["method"].eq(MLP) & aurocs["tested_on"].eq(UNSEEN)].iloc[0]
    numbers = (
        f"On fresh questions DICE tells contaminated from clean models with an AUROC of "
        f"{fresh['auroc_pct']:.1f} %, and two clean models apart with "
        f"{fresh['two_clean_pct']:.1f} %. "
    )
    between = interval_text(fresh["difference_low"], fresh["difference_high"])
    difference = f"In this run the difference is {fresh['difference_pct']:+.1f} points {between}"
    elsewhere = " On another processor some verdicts differ, so we call the question open."
    found = {
        SUPPORTED: f"{difference}, above zero: contamination leaves a trace of its own. The rest "
        f"needs no contamination, because two clean models reach it too.{elsewhere}",
        NOT_SUPPORTED: f"{difference}.{elsewhere}",
        INCONCLUSIVE: f"{difference}, and whether contamination adds anything is inconclusive.",
    }[fresh["verdict"]]
    scope = (
        f" This answer is about DICE, fresh questions, the located layer and the {fresh['n'] // 2} "
        f"problems of a set.{_of_other_traces(aurocs[is_main], layers)}"
    )
    reading = controls.strongest_reading(control_table)
    of_controls = f"{_of_controls(control_table)} {reading}"
    return "\n\n".join([_of_inflation(inflated), numbers + found + scope, of_controls])


def _of_other_traces(aurocs: pd.DataFrame, layers: pd.DataFrame) -> str:
    """What else of the family is supported, besides DICE on fresh questions."""
    is_other = aurocs["verdict"].eq(SUPPORTED)
    is_other &= ~(aurocs["method"].eq(MLP) & aurocs["tested_on"].eq(UNSEEN))
    traces = [
        f"{'the mean difference' if row.method == MEAN_DIFFERENCE else row.method} on "
        f"{'the seen questions ' if row.tested_on == SEEN else ''}{row.tested_on} "
        f"({row.difference_pct:+.1f} points above two clean models, p = {row.p_adjusted:.3f})"
        for row in aurocs[is_other].itertuples()
    ]
    kinds = layers.loc[layers["verdict"].eq(SUPPORTED), "distance"].unique().tolist()
    if kinds:
        traces.append(f"more than half of the {listed(kinds)} distance between states")
    if not traces:
        return " No other measure of the family shows a trace of training on the problems either."
    return (
        f" Other measures do show a trace of training on the problems: {listed(traces)}. "
        "A trace of training on such problems does not say that these questions were seen."
    )


def _of_controls(table: pd.DataFrame) -> str:
    """The three controls that matter most, each in one sentence."""
    if table["holds"].isna().all():
        return f"No control has {FEWEST_MODELS} models of a kind, so none can be judged."
    rows = table.set_index("control")
    clean = rows.loc[controls.TWO_CLEAN]
    unmet = rows.loc[controls.HELD_OUT]
    pairs = rows.loc[[controls.PAIRED, controls.SWAPPED_PAIRED]]
    is_apart = clean["ci_low"] > 50 or clean["ci_high"] < 50
    apart = "tells two clean models" if is_apart else "is not shown to tell two clean models"
    of_two = clean["auroc_pct"]
    more = "more than" if unmet["ci_low"] > of_two else "not shown to be more than"
    is_higher = pairs["holds"].eq(True).fillna(False).all()
    score = "score" if is_higher else "are not shown to score"
    of_pairs = listed([_value(row) for _, row in pairs.iterrows()])
    return (
        f"Three controls matter most. DICE {apart} apart on fresh questions ({_value(clean)}). "
        "Contaminated models that the detector has never met reach "
        f"{_value(unmet)}, which is {more} the {of_two:.0f} % of two clean models. "
        f"Questions that a model saw {score} higher than fresh ones in both roles, once "
        f"a clean model's scores are subtracted ({of_pairs})."
    )


def _value(row: pd.Series) -> str:
    """An AUROC of the controls in percent with its interval."""
    return f"{row['auroc_pct']:.0f} % {interval_text(row['ci_low'], row['ci_high'], 0)}"


def _of_inflation(inflated: pd.DataFrame) -> str:
    """Which of the conditions are inflated."""
    least = CLAIMS["dice_inflation"].smallest_effect
    shown = _points(inflated[inflated["verdict"] == SUPPORTED])
    n_claims = inflated["verdict"].fillna("").ne("").sum()
    n_none, n_open, n_failed = (
        inflated["verdict"].eq(word).sum() for word in (NOT_SUPPORTED, INCONCLUSIVE, CONTROL_FAILS)
    )
    said = f"None of the {n_claims} contaminated conditions is shown to inflate the score."
    if shown:
        said = f"Of the {n_claims} contaminated conditions, {listed(shown)} inflate the score."
        said = said.replace("inflate the", "inflates the") if len(shown) == 1 else said
    failed = f" In {n_failed} the control fails." if n_failed else ""
    ruled_out = f"For {n_none} of them an inflation of {least:.0f} points or more is ruled out, "
    return f"{said} {ruled_out}and {n_open} are inconclusive.{failed}"


def _points(rows: pd.DataFrame) -> list[str]:
    """Conditions with their inflation."""
    return [
        f"“{row.condition}” ({row.inflation_points:+.0f} points "
        f"{interval_text(row.ci_low, row.ci_high, 0)})"
        for row in rows.itertuples()
    ]
