"""What notebook 05 and its lab conclude about DICE, in words that their tables choose."""

from __future__ import annotations

from collections.abc import Sequence

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
from contamination.dice.family import SMALLEST
from contamination.dice.mixtures import SEEN, UNSEEN
from contamination.dice.pool import CONTAMINATED

LESSON_CONTAMINATED = "contaminated"  # its name in the lesson
NEW_CONTAMINATED = "new contaminated"  # the lesson's model that no detector has learned from


def conclusion_of_distances(at_layer: pd.Series, layer: int) -> str:
    """Whether the contaminated model lies farther from the clean one than other clean models do.

    ``at_layer`` has the mean distance from the clean model at the located layer, by model.
    """
    main = at_layer[LESSON_CONTAMINATED]
    clean = at_layer.drop(LESSON_CONTAMINATED)
    of_clean = listed([f"{value:.0f} (“{name}”)" for name, value in clean.items()])
    said = (
        f"At the located layer {layer}, the contaminated model lies {main:.0f} away from the clean "
        f"model on average. The other clean models lie {of_clean} away. "
    )
    if main > clean.max():
        return said + (
            "The contaminated model lies farthest away, so training on the questions may add to "
            "the distance. One model of each kind is an example, not a proof."
        )
    return said + (
        "A clean model lies as far away as the contaminated one or farther, so a large distance "
        "is no sign of contamination."
    )


def conclusion_of_new_models(never_met: pd.DataFrame) -> str:
    """Whether a detector recognises contamination in models from which it has not learned.

    Args:
        never_met: model, asked (kind of questions) and flagged_pct, the percentage of its states
            that the detector calls contaminated. ``NEW_CONTAMINATED`` is one of the models, and
            the others are clean.
    """
    numbers, is_above = _of_new_models(never_met)
    numbers += " "
    if is_above.all():
        return numbers + (
            "So in this example the detector has learned to do more than tell its own two models "
            "apart: it tells a contaminated model from clean ones that it has never met."
        )
    if not is_above.any():
        return numbers + (
            "So the detector has only learned to tell its own two models apart: among new models, "
            "it does not recognise the contaminated one."
        )
    return numbers + (
        "So the detector recognises the new contaminated model on questions "
        f"{listed(list(is_above.index[is_above]))}, but not on questions "
        f"{listed(list(is_above.index[~is_above]))}."
    )


def _of_new_models(never_met: pd.DataFrame) -> tuple[str, pd.Series]:
    """A sentence on the states that are flagged, and on which questions the models differ."""
    flagged = never_met.pivot(index="model", columns="asked", values="flagged_pct")
    flagged = flagged[never_met["asked"].unique()]
    contaminated, clean = flagged.loc[NEW_CONTAMINATED], flagged.drop(NEW_CONTAMINATED).max()
    of_clean = f"at most {_by_kind(clean)}" if clean.max() > 0 else "none"
    numbers = (
        f"The detector flags {_by_kind(contaminated)} of the new contaminated model's states as "
        f"contaminated, and {of_clean} of the clean models' states."
    )
    return numbers, contaminated - clean >= SMALLEST


def _by_kind(percent: pd.Series) -> str:
    """Percentages by kind of questions, one where all are equal."""
    texts = [f"{value:.0f} %" for value in percent]
    if len(set(texts)) == 1:
        return texts[0]
    kinds = zip(texts, percent.index, strict=True)
    return listed([f"{text} (questions {asked})" for text, asked in kinds])


def conclusion(lesson: pd.DataFrame, paper_pct: Sequence[float], never_met: pd.DataFrame) -> str:
    """What the controls leave of DICE's success on one contaminated model, in paragraphs.

    Args:
        lesson: model, asked (kind of questions) and auroc_pct against the clean model. The model
            ``LESSON_CONTAMINATED`` has a row for each kind of questions, and so has every other
            model, which is clean.
        paper_pct: AUROC of DICE in the paper's Table 2, in percent.
        never_met: as in :func:`conclusion_of_new_models`.
    """
    is_main = lesson["model"] == LESSON_CONTAMINATED
    main = lesson[is_main].set_index("asked")["auroc_pct"]
    clean = lesson[~is_main].groupby("asked", sort=False)["auroc_pct"].max().reindex(main.index)
    is_above = main - clean >= SMALLEST
    between, control = (
        _by_kind(values) + (" on both kinds of questions" if len(set(values.round())) == 1 else "")
        for values in (main, clean)
    )
    said = [
        f"Our detector tells the contaminated model from the clean one with an AUROC of {between}."
        f" For two clean models, which saw none of these questions, the same recipe reaches "
        f"{control}."
    ]
    if main.max() < 50 + SMALLEST:
        said.append(
            "So in this example DICE does not recognise the contaminated model, and there is no "
            "success that a control would have to explain."
        )
    elif is_above.all():
        said.append(
            "So in this example the detector sees more than which of two models it looks at: "
            "training on the questions adds to the AUROC. One model of each kind is an example, "
            "not a proof."
        )
    elif not is_above.any():
        said.append(
            "So an AUROC this high is no evidence of contamination. It may only show that the "
            "detector can tell which of two models a state comes from."
            "\n\n"
            f"In the paper's Table 2, DICE reaches {min(paper_pct):.0f} % or more, but the table "
            "has no pair of clean models. So the table cannot show whether its detectors recognise "
            "contamination or only tell one model from another."
        )
    else:
        said.append(
            f"The contaminated model is {SMALLEST:.0f} points or more above the clean models on "
            f"questions {listed(list(main.index[is_above]))}, and not on questions "
            f"{listed(list(main.index[~is_above]))}. So this example decides nothing."
        )
    numbers, is_above = _of_new_models(never_met)
    speaks = "does not speak in favour of DICE"
    if is_above.all():
        speaks = "speaks in favour of DICE"
    elif is_above.any():
        speaks = "speaks in favour of DICE on one kind of question only"
    said.append(
        "A fairer test asks the detector about models that it has never met. In our example, this "
        f"test {speaks}. {numbers} A single new contaminated model is an example, not a proof. The "
        "lab repeats the test with several models of each kind and with fewer copies."
    )
    return "\n\n".join(said)


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
