"""What the tables of notebook 12 say: titles of its figures, and one paragraph for a lecturer.

``results`` are tables by name, as in ``real_model``; a part that was not asked has none.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.tables import copies_text, listed
from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.min_k.wikimia_tables import AGE
from contamination.replication.decisions import ALGORITHM_2
from contamination.replication.instructions import GUIDED
from contamination.study import equivalence
from contamination.study.conditions import DOSED, FRESH, PARAPHRASE, VERBATIM
from contamination.study.real_model import ALWAYS_NO, IN_WORDS, PARTS

FAVOURITE_PCT = 90  # of answers: a letter chosen as often hardly depends on the texts


def quiz_title(readings: pd.DataFrame) -> str:
    """Title of the figure of ``pretrained_readings``: where the model leads, and its control."""
    n_ahead, n_claims, n_unseen, n_controls = _leads(readings)
    return (
        f"Shown to be ahead of a clean model on {n_ahead} of {n_claims} benchmarks,\n"
        f"and on {n_unseen} of {n_controls} sets of quizzes that no model has seen"
    )


def room_for_leads(readings: pd.DataFrame) -> str:
    """On how many benchmarks a lead could have been large enough to support the claim."""
    n_without, n, needed = _room(readings)
    text = (
        f"On our own quizzes, the intervals of the leads reach up to {needed:.0f} points. Only an "
        "interval above this value could support the claim. "
    )
    if not n_without:
        return text + "This was possible on every benchmark."
    return text + (
        f"On {n_without} of {n} benchmarks, this was impossible: the clean model already finds so "
        "many originals that even a model that finds all of them would not lead by enough. There, "
        "the claim could not be supported, no matter what the model remembers."
    )


def _room(readings: pd.DataFrame) -> tuple[int, int, float]:
    """Benchmarks without room for the lead that the claim needs, all benchmarks, and this lead.

    The lead of a model that finds every original has an interval as wide as the clean model's.
    """
    is_unseen = readings["is_unread"].astype(bool)
    needed = readings.loc[is_unseen, "ci_high_pct"].max()
    room = 100 - readings.loc[~is_unseen, "clean_high_pct"]
    return int((room <= needed).sum()), len(room), needed


def of_letters(by_letter: pd.DataFrame) -> str:
    """Whether the answers by letter can say anything: rows of ``pretrained_dcq``."""
    low, high = by_letter["same_letter_pct"].min(), by_letter["same_letter_pct"].max()
    between = f"{low:.0f} to {high:.0f} %" if round(low) != round(high) else f"{high:.0f} %"
    text = f"The model gives its favourite letter in {between} of its answers. "
    if low >= FAVOURITE_PCT:
        return text + "So its letters hardly depend on the texts and tell us nothing about memory."
    return text + "So its letters depend on the texts, at least on some of the datasets."


def of_doses(by_condition: pd.DataFrame) -> str:
    """How the AUC of a score follows the exposure, from rows of ``stouffer.combine_p_values``.

    A form of exposure other than verbatim copies has a row for one number of copies.
    """
    dosed = by_condition[by_condition["model"].eq(DOSED)]
    verbatim = dosed[dosed["condition"].eq(VERBATIM)].sort_values("copies")
    aucs = listed(
        [f"{row.auc:.2f} with {copies_text(row.copies)}" for row in verbatim.itertuples()]
    )
    text = f"If the model saw a row verbatim, the AUC is {aucs}."
    for row in dosed[dosed["condition"].eq(PARAPHRASE)].itertuples():
        text += f" If it saw a paraphrase instead, {row.copies} times, the AUC is {row.auc:.2f}."
    for row in dosed[dosed["condition"].eq(FRESH)].itertuples():
        text += f" For fresh rows, the control, it is {row.auc:.2f}."
    return text


def dates_title(capsule: pd.DataFrame) -> str:
    """Title of the figure of ``pretrained_min_k``: whether any score beats the words."""
    n_better = int(capsule["verdict"].eq(SUPPORTED).sum())
    if n_better:
        return f"{n_better} of {len(capsule)} scores tell older from newer pages better than words"
    return "No score is shown to tell older from newer pages better than the words alone"


def conclusion(
    results: Mapping[str, pd.DataFrame],
    equal: pd.DataFrame,
    model: str,
    by_condition: pd.DataFrame | None = None,
) -> str:
    """What the answers of a real model show, a paragraph for each part, all from its tables.

    Args:
        results: some or all tables of ``real_model.PARTS``.
        equal: of ``study.equivalence.equivalence``.
        model: name of the model that was asked.
        by_condition: as in :func:`of_doses`.
    """
    sentences = [
        f"We do not know which benchmark rows {model} was trained on, so we cannot check "
        "a verdict of contamination. All that counts is how each result compares with its control."
    ]
    known = [part for part, tables in PARTS.items() if set(tables) <= set(results)]
    pointing = []  # rows that support memory, of each part that can
    for part, of_part in _OF_PARTS.items():
        if part in known:
            n_supported, text = of_part(results)
            pointing.append(n_supported)
            sentences.append(text)
        if part == "completions" and "judge" in known:
            sentences.append(_of_judge(results["pretrained_judge"], model))
    if "copies" in known:
        sentences.append(_of_copies(results["pretrained_control"]))
    if by_condition is not None:
        sentences.append(
            "In the last sections we know the truth, because we fine-tuned the model ourselves. "
            f"These are AUCs of {MIN_K}. {of_doses(by_condition)}"
        )
    sentences.append(_of_equivalence(equal))
    if sum(pointing):
        sentences.append(
            "What points to training here is a reason to look closer, not a proof: we cannot "
            "check it against the training data."
        )
    elif pointing:
        sentences.append(
            "So nothing here shows that the model was trained on the texts that we asked about, "
            "and nothing shows that it was not."
        )
    if missing := [IN_WORDS[part] for part in PARTS if part not in known]:
        sentences.append(f"This conclusion leaves out what was not asked: {listed(missing)}.")
    return "\n\n".join(sentences)


def _leads(readings: pd.DataFrame) -> tuple[int, int, int, int]:
    """Leads over the clean model and datasets, of benchmarks and then of unseen quizzes."""
    is_unseen = readings["is_unread"].astype(bool)
    is_ahead = readings["ci_low_pct"].gt(0)
    return (
        int((is_ahead & ~is_unseen).sum()),
        int((~is_unseen).sum()),
        int((is_ahead & is_unseen).sum()),
        int(is_unseen.sum()),
    )


def _of_quiz(results: Mapping[str, pd.DataFrame]) -> tuple[int, str]:
    """How many datasets support the claim, and a sentence on the ranking of quiz options."""
    readings = results["pretrained_readings"]
    n_ahead, n_claims, n_unseen, n_controls = _leads(readings)
    n_supported = int(readings["verdict"].eq(SUPPORTED).sum())
    n_without = _room(readings)[0]
    text = (
        f"On {n_ahead} of {n_claims} datasets, the model finds the originals by likelihood more "
        "often than a small model that never saw the benchmark"
    )
    if n_supported:
        return n_supported, (
            f"{text}, and on {n_supported} of them by more than on any quizzes that no model can "
            "have seen; memory would explain that, and so would better taste in such texts."
        )
    if n_unseen:
        return 0, (
            f"{text}. It also leads on {n_unseen} of {n_controls} sets of quizzes that no model "
            "can have seen, so a larger model's taste explains such a lead without any memory."
        )
    return 0, (
        f"{text}. On none of them is this lead shown to be larger than on quizzes that no model "
        f"can have seen. (On {n_without or 'none'} of the {n_claims} datasets, no model could have "
        "been shown to lead by that much.)"
    )


def _of_completions(results: Mapping[str, pd.DataFrame]) -> tuple[int, str]:
    table = results["pretrained_replication"]
    of_guided = table[table["method"].eq(ALGORITHM_2) & table["instruction"].eq(GUIDED)]
    n, words = len(of_guided), of_guided["verdict"]
    n_supported, n_failing = int(words.eq(SUPPORTED).sum()), int(words.eq(CONTROL_FAILS).sum())
    n_all, exact, near = of_guided[["n_valid", "n_exact", "n_near_exact"]].sum().astype(int)
    text = (
        f"Asked under the right names, the model completes {exact or 'none'} of {n_all} released "
        f"instances exactly and {near or 'none'} nearly exactly. That it does so under the right "
        f"names alone is supported for {n_supported or 'none'} of {n} partitions"
    )
    if n_failing:
        text += f", and on {n_failing} more, it also does so under wrong names"
    if n_open := int(words.eq(INCONCLUSIVE).sum()):
        verb = "is" if n_open == 1 else "are"
        text += (
            f". {n_open} {verb} inconclusive, because the model may be too small to complete rows"
        )
    return n_supported, f"{text}."


def _of_dates(results: Mapping[str, pd.DataFrame]) -> tuple[int, str]:
    capsule = results["pretrained_min_k"]
    n, counts = len(capsule), capsule["verdict"].value_counts()
    n_better = int(counts.get(SUPPORTED, 0))
    if n_better:
        return n_better, (
            f"{n_better} of {n} scores tell the older pages of WikiMIA from the newer ones better "
            "than the words alone do, although the model is newer than both."
        )
    by_verdict = {
        NOT_SUPPORTED: "stay close to chance",
        CONTROL_FAILS: "tell them apart and no better than the words",
        INCONCLUSIVE: "are inconclusive",
    }
    said = [f"{counts[word]} {text}" for word, text in by_verdict.items() if word in counts]
    return 0, (
        f"Of {n} scores on WikiMIA pages, none is shown to tell older from newer pages better "
        f"than the words alone, whose AUC is at least {capsule['blind_auc'].min():.2f}: "
        f"{listed(said)}."
    )


_OF_PARTS = {"quiz": _of_quiz, "completions": _of_completions, "dates": _of_dates}


def _of_judge(judges: pd.DataFrame, model: str) -> str:
    by_judge = judges.set_index("judge")
    own, constant = by_judge.loc[model], by_judge.loc[ALWAYS_NO, "agreement"]
    shares = (
        f"it agrees with a person on {100 * own['agreement']:.0f} % of the completions, and a "
        f"judge that always says no agrees on {100 * constant:.0f} %"
    )
    if own["ci_low"] > constant:
        return f"As a judge of completions it is better than a constant answer: {shares}."
    return f"As a judge of completions it is not shown to beat a constant answer: {shares}."


def _of_copies(control: pd.DataFrame) -> str:
    """Whether the score can see copies at all, which is what makes a null result worth a word."""
    of_score = control[control["method"].eq(MIN_K)].set_index("setting")
    # The settings in which the copies alone tell the two sides apart.
    within = of_score.loc[[f"copies of {age}, none of {age}" for age in AGE.values()]]
    copies = int(within["copies"].iloc[0])
    changes = listed(
        [
            f"from {row.before_auc:.2f} to {row.auc:.2f} among {age}"
            for age, row in zip(AGE.values(), within.itertuples(), strict=True)
        ]
    )
    if within["holds"].astype(bool).all():
        return (
            f"{MIN_K} does notice copies. We added {copies} copies of each page in a random half, "
            f"and the AUC of this half against the other half rises {changes}."
        )
    return (
        f"The positive control fails: {copies} copies that we added to a random half are not shown "
        f"to raise the AUC of {MIN_K} everywhere ({changes}), so a null result of this score "
        "means nothing."
    )


def _of_equivalence(equal: pd.DataFrame) -> str:
    own = equal[equal["analysis"].eq(equivalence.CONFIRMING) & np.isfinite(equal["difference"])]
    if own.empty:
        return "No fine-tuned pair of SmolLM2 can be compared with our small models yet."
    is_equal = own["verdict"].eq(SUPPORTED)
    shown, open_ = (
        [equivalence.IN_WORDS[name] for name in own.loc[which, "condition"]]
        for which in (is_equal, ~is_equal)
    )
    within = f"within {equivalence.MARGIN:.2f} AUC"
    if not shown:
        return (
            "Fine-tuned on rows that we chose at random, SmolLM2 is not shown to react as our "
            f"small models do, {within}, to any form of indirect exposure."
        )
    text = (
        "Fine-tuned on rows that we chose at random, SmolLM2 reacts as our small models do, "
        f"{within}, to {listed(shown)}"
    )
    text += ". (The effects on the AUC are: "
    effects = [
        f"{row.real_effect:+.2f} in SmolLM2 and {row.lab_effect:+.2f} in the small models"
        for row in own[is_equal].itertuples()
    ]
    text += f"{listed(effects)}.)"
    if open_:
        text += f" For {listed(open_)}, that comparison is inconclusive."
    is_apart = ~is_equal & (own["ci90_low"].gt(0) | own["ci90_high"].lt(0))
    if is_apart.any():
        names = [equivalence.IN_WORDS[name] for name in own.loc[is_apart, "condition"]]
        text += f" For {listed(names)}, the effects differ, but perhaps by less than the margin."
    return text


def equivalence_title(equal: pd.DataFrame) -> str:
    """Title of the figure of the confirmatory rows of ``equivalence``."""
    n_equal = int(equal["verdict"].eq(SUPPORTED).sum())
    return (
        f"SmolLM2 and our small models are shown to react alike\nto {n_equal} of {len(equal)} "
        "forms of indirect exposure"
    )
