"""What the tables of notebook 12 say: rows to show, titles of figures, sentences, a conclusion.

``results`` are tables by name, as in ``real_model``; a part that was not asked has none. ``model``
is the model's name in the tables, and ``short_name`` gives the name in a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.tables import copies_text, interval_text, listed
from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, LEVEL, NOT_SUPPORTED, SUPPORTED
from contamination.min_k.wikimia_tables import AGE
from contamination.replication.decisions import ALGORITHM_2
from contamination.replication.instructions import GUIDED
from contamination.study import equivalence
from contamination.study.conditions import DOSED, FRESH, LATER, PARAPHRASE, VERBATIM
from contamination.study.real_model import ALWAYS_NO, IN_WORDS, PARTS

FAVOURITE_PCT = 90  # of answers: a letter chosen as often hardly depends on the texts
CHANCE_PCT = 25.0  # of four texts one is the original
N_DRAWS = 20_000  # of random halves, to which the one that was drawn is compared


def short_name(model: str) -> str:
    """A model's name within a sentence.

    >>> short_name("SmolLM2-135M-Instruct-Q4_1"), short_name("another-model")
    ('SmolLM2', 'another-model')
    """
    return "SmolLM2" if model.startswith("SmolLM2-") else model


# The quiz


def clean_shares(readings: pd.DataFrame) -> str:
    """How many originals a model finds that saw none: why a high share is no sign of memory."""
    claims = readings[~readings["is_unread"].astype(bool)]
    low, high = claims["clean_pct"].min(), claims["clean_pct"].max()
    n_above = int(claims["clean_low_pct"].gt(CHANCE_PCT).sum())
    text = (
        f"The clean model, which saw none of these {len(claims)} benchmarks, finds {low:.0f} to "
        f"{high:.0f} % of the originals. By chance it would find {CHANCE_PCT:.0f} %. "
    )
    if n_above == len(claims):
        return text + "So a share above chance is no sign of memory."
    return text + f"It is shown to be above chance on {n_above} of {len(claims)} benchmarks."


def quiz_rows(readings: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``pretrained_readings`` as they are drawn and shown, benchmarks first.

    Benchmarks are ordered by their lead. ``lead`` is a text with its interval, and perfect_low
    and perfect_high are the interval that the lead of a model would have that finds every
    original: as wide as the interval of the clean model, NaN for our own quizzes.
    """
    is_own = readings["is_unread"].astype(bool)
    claims = readings[~is_own].sort_values("difference_pct", ascending=False, kind="stable")
    rows = pd.concat([claims, readings[is_own]], ignore_index=True)
    is_own = rows["is_unread"].astype(bool)
    leads = [
        f"{row.difference_pct:.0f} {interval_text(row.ci_low_pct, row.ci_high_pct, 0)}"
        for row in rows.itertuples()
    ]
    return rows.assign(
        dataset=rows["dataset"].str.replace("unread: ", "ours: "),
        is_unread=is_own,
        lead=leads,
        perfect_low=(100 - rows["clean_high_pct"]).mask(is_own),
        perfect_high=(100 - rows["clean_low_pct"]).mask(is_own),
    )


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
    rows = quiz_rows(readings)
    with_room = rows.loc[rows["perfect_low"] > needed, "dataset"].tolist()
    text = (
        f"On our own quizzes, the intervals of the leads reach up to {needed:.1f} points (the "
        "dashed line). "
    )
    if not n_without:
        return text + "A perfect model could lead by more than that on every benchmark."
    return text + (
        f"On {n_without} of {n} benchmarks, even the interval of a perfect model would begin at or "
        "below this line, because the clean model already finds so many originals. There, no model "
        "could support the claim, no matter what it remembers. "
        f"{f'Only {listed(with_room)} had room for it.' if with_room else 'No benchmark had room.'}"
    )


def _room(readings: pd.DataFrame) -> tuple[int, int, float]:
    """Benchmarks without room for the lead that the claim needs, all benchmarks, and this lead.

    The lead of a model that finds every original has an interval as wide as the clean model's.
    """
    is_unseen = readings["is_unread"].astype(bool)
    needed = readings.loc[is_unseen, "ci_high_pct"].max()
    room = 100 - readings.loc[~is_unseen, "clean_high_pct"]
    return int((room <= needed).sum()), len(room), needed


def of_gpt4(beside: pd.DataFrame, model: str) -> str:
    """On how many datasets two rankings find more than GPT-4: rows of ``pretrained_beside``."""
    of_gpt4 = beside[beside["model"].eq("GPT-4") & beside["ci_low_pct"].gt(0)]
    n = beside.loc[beside["model"].eq("GPT-4"), "dataset"].nunique()
    own, clean = (
        int(of_gpt4["control"].eq(f"{taker}, whole text").sum()) for taker in (model, "clean LM")
    )
    text = (
        f"On {own} of {n} datasets, the ranking of {short_name(model)} is shown to find more "
        "originals than GPT-4 found by letter, and the ranking of the clean model on "
        f"{clean or 'none'} of {n}."
    )
    return f"{text} So finding more than GPT-4 is no sign of memory either." if clean else text


def of_letters(by_letter: pd.DataFrame, model: str) -> str:
    """Whether the answers by letter can say anything: rows of ``pretrained_dcq``."""
    low, high = by_letter["same_letter_pct"].min(), by_letter["same_letter_pct"].max()
    between = f"{low:.0f} to {high:.0f} %" if round(low) != round(high) else f"{high:.0f} %"
    text = (
        f"Asked for a letter, {short_name(model)} gives the same one in {between} of its answers. "
    )
    if low >= FAVOURITE_PCT:
        return text + "So its letters hardly depend on the texts and tell us nothing about memory."
    return text + "So its letters depend on the texts, at least on some of the datasets."


# Completions, the judge, dates and copies


def matches(decided: pd.DataFrame) -> pd.DataFrame:
    """How many completions match under each instruction: counts from ``pretrained_replication``.

    Returns:
        instruction, n_valid, n_exact, n_near_exact, and called: "1 of 14" partitions that
        Algorithm 2 calls contaminated.
    """
    of_2 = decided[decided["method"].eq(ALGORITHM_2)]
    by = of_2.groupby("instruction", sort=False)
    counts = by[["n_valid", "n_exact", "n_near_exact", "contaminated"]].sum().astype(int)
    called = counts["contaminated"].astype(str) + " of " + by.size().astype(str)
    return counts.assign(called=called).drop(columns="contaminated").reset_index()


def of_completions(decided: pd.DataFrame, model: str) -> str:
    """What the completions under the right names show, and what they are next to the others."""
    n, n_supported, n_failing, n_open = _completions(decided)
    counts = matches(decided).set_index("instruction")
    right, wrong = counts.loc[GUIDED], counts.drop(index=GUIDED)
    matching = int(wrong[["n_exact", "n_near_exact"]].to_numpy().sum())
    text = (
        f"Under the right names, {short_name(model)} completes {right['n_exact'] or 'none'} of "
        f"{right['n_valid']} instances exactly and {right['n_near_exact'] or 'none'} nearly "
        f"exactly. Under the other instructions, it completes {matching or 'none'} of "
        f"{wrong['n_valid'].sum()} exactly or nearly. "
        f"The claim is supported for {n_supported or 'none'} of {n} partitions"
    )
    if n_failing:
        text += f", and for {n_failing} the control fails"
    return f"{text}, and {n_open} {'is' if n_open == 1 else 'are'} inconclusive."


def judge_rows(judges: pd.DataFrame, model: str) -> pd.DataFrame:
    """``pretrained_judge`` with the near-exact matches as counts: "5 of 13"."""
    most = judges[["n_near", "n_near_flagged"]].max(axis=1)
    near = judges["n_near_found"].astype(str) + " of " + most.astype(str)
    return judges.assign(near=near, judge=judges["judge"].replace(model, short_name(model)))


def rows_within(control: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``pretrained_control`` in which the copies alone tell the two sides apart."""
    of_score = control[control["method"].eq(MIN_K)].set_index("setting")
    within = of_score.loc[[f"copies of {age}, none of {age}" for age in AGE.values()]]
    pages = within["n_members"].astype(str) + " and " + within["n_non_members"].astype(str)
    return within.assign(age=[*AGE.values()], pages=pages).reset_index()


def of_draw(control: pd.DataFrame) -> str:
    """Whether the AUCs before the copies lie as far from one half as a random draw may.

    The halves of older and of newer pages are drawn separately, so the two AUCs are independent.
    """
    within = rows_within(control)
    aucs, rng = within["before_auc"], np.random.default_rng(0)
    of_draws = [
        _random_aucs(n, m, rng)
        for n, m in zip(within["n_members"], within["n_non_members"], strict=True)
    ]
    is_as_far = abs(np.mean(of_draws, axis=0) - 0.5) >= abs(aucs.mean() - 0.5) - 1e-9
    p = is_as_far.mean()
    text = (
        f"Before the copies, the two AUCs are {listed([f'{auc:.2f}' for auc in aucs])}. No page "
        f"had a copy then, so {'this is' if p <= LEVEL else 'they differ from one half only by'} "
        "the luck of this draw of halves"
    )
    if p > LEVEL:
        return f"{text}."
    share = f"{100 * p:.1f} %" if p >= 0.001 else "fewer than 0.1 %"
    return (
        f"{text}, and it is an unusual draw: in {share} of random draws, the mean AUC lies as far "
        "from one half. So do not read the change alone. The AUC after the copies, next to one "
        "half, shows that they were noticed."
    )


def _random_aucs(n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """AUCs of ``n`` against ``m`` rows without ties where chance decides who is which."""
    ranks = rng.random((N_DRAWS, n + m)).argsort(axis=1).argsort(axis=1)[:, :n]
    return (ranks.sum(axis=1) - n * (n - 1) / 2) / (n * m)


def dates_title(capsule: pd.DataFrame) -> str:
    """Title of the figure of ``pretrained_min_k``: whether any score beats the words."""
    n_better = int(capsule["verdict"].eq(SUPPORTED).sum())
    if n_better:
        return f"{n_better} of {len(capsule)} scores tell older from newer pages better than words"
    return "No score is shown to tell older from newer pages better than the words alone"


# Models that we fine-tuned


def of_later(by_condition: pd.DataFrame) -> str:
    """How much of what copies added to the AUC is left after training on other text."""
    verbatim = by_condition[by_condition["condition"].eq(VERBATIM)]
    for later in verbatim[verbatim["model"].eq(LATER)].itertuples():
        same = verbatim["model"].eq(DOSED) & verbatim["copies"].eq(later.copies)
        at_once = verbatim[same].iloc[0]
        left = (later.auc - later.auc_before) / (at_once["auc"] - at_once["auc_before"])
        return (
            f"After further training on other text, the AUC of verbatim rows is {later.auc:.2f} "
            f"instead of {at_once['auc']:.2f}, so {100 * left:.0f} % of what "
            f"{copies_text(later.copies)} had added is left."
        )
    return ""


def of_doses(by_condition: pd.DataFrame) -> str:
    """How the AUC of Min-k% Prob follows the exposure, from rows of ``stouffer.combine_p_values``.

    A form of exposure other than verbatim copies has a row for one number of copies.
    """
    dosed = by_condition[by_condition["model"].eq(DOSED)]
    verbatim = dosed[dosed["condition"].eq(VERBATIM)].sort_values("copies")
    aucs = listed(
        [f"{row.auc:.2f} with {copies_text(row.copies)}" for row in verbatim.itertuples()]
    )
    text = f"If a model saw a row verbatim, the AUC of {MIN_K} is {aucs}."
    for row in dosed[dosed["condition"].eq(PARAPHRASE)].itertuples():
        text += f" If it saw a paraphrase instead, {row.copies} times, the AUC is {row.auc:.2f}."
    for row in dosed[dosed["condition"].eq(FRESH)].itertuples():
        text += f" For fresh rows, the control, it is {row.auc:.2f}."
    return text


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
    known = [part for part, tables in PARTS.items() if set(tables) <= set(results)]
    name, pointing = short_name(model), []
    quiz, written, dated, known_truth = [], [], [], []
    if "quiz" in known:
        readings = results["pretrained_readings"]
        pointing.append(int(readings["verdict"].eq(SUPPORTED).sum()))
        quiz.append(_of_quiz(readings, name))
    if "completions" in known:
        n, n_supported, n_failing, _ = _completions(results["pretrained_replication"])
        pointing.append(n_supported)
        written.append(
            f"That {name} completes rows under the right names alone is supported for "
            f"{n_supported or 'none'} of {n} partitions."
        )
        written += [f"For {n_failing}, the control fails."] * bool(n_failing)
    if "judge" in known:
        written.append(of_judge(results["pretrained_judge"], model))
    if "dates" in known:
        capsule = results["pretrained_min_k"]
        pointing.append(int(capsule["verdict"].eq(SUPPORTED).sum()))
        dated.append(of_dates(capsule))
    if "copies" in known:
        dated.append(_of_copies(results["pretrained_control"]))
    if by_condition is not None:
        known_truth.append(f"In Part 2 we know the truth. {of_doses(by_condition)}")
    paragraphs = [[_opening(pointing, name)], quiz, written, dated, known_truth]
    paragraphs.append([_of_equivalence(equal)])
    if missing := [IN_WORDS[part] for part in PARTS if part not in known]:
        text = f"This conclusion leaves out what was not asked: {listed(missing)}."
        paragraphs.append([text])
    return "\n\n".join(" ".join(sentences) for sentences in paragraphs if sentences)


def _opening(pointing: list[int], name: str) -> str:
    """The answer to the question of the notebook: rows that support memory, of each part."""
    why = (
        f"We do not know which texts {name} was trained on, so we cannot check a verdict. All "
        "that counts is how each result compares with its control."
    )
    if sum(pointing):
        return (
            "Some results point to training on the texts that we asked about, which is a reason "
            f"to look closer and not a proof. {why}"
        )
    if pointing:
        return (
            f"Nothing here shows that {name} was trained on the texts that we asked about, and "
            f"nothing shows that it was not. {why}"
        )
    return why


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


def _of_quiz(readings: pd.DataFrame, name: str) -> str:
    n_ahead, n_claims, n_unseen, n_controls = _leads(readings)
    n_supported = int(readings["verdict"].eq(SUPPORTED).sum())
    text = f"In the quiz, {name} leads the clean model on {n_ahead} of {n_claims} benchmarks"
    if n_supported:
        return (
            f"{text}, and on {n_supported} of them by more than on any quizzes that no model can "
            "have seen. Memory would explain that, and so would better taste in such texts."
        )
    if n_unseen:
        return (
            f"{text}. It also leads on {n_unseen} of {n_controls} sets of quizzes that no model "
            "can have seen, so a larger model's taste explains such a lead without any memory."
        )
    return (
        f"{text}, and on none of them by more than on quizzes that no model can have seen. On "
        f"{_room(readings)[0] or 'none'} of the {n_claims}, no model could have been shown to lead "
        "by that much."
    )


def _completions(decided: pd.DataFrame) -> tuple[int, int, int, int]:
    """Partitions, and those that are supported, whose control fails, and that are inconclusive."""
    guided = decided["method"].eq(ALGORITHM_2) & decided["instruction"].eq(GUIDED)
    words = decided.loc[guided, "verdict"]
    supported, failing, open_ = (
        int(words.eq(word).sum()) for word in (SUPPORTED, CONTROL_FAILS, INCONCLUSIVE)
    )
    return len(words), supported, failing, open_


def of_dates(capsule: pd.DataFrame) -> str:
    """How many scores tell older from newer pages, and what the others do."""
    n, counts = len(capsule), capsule["verdict"].value_counts()
    n_better = int(counts.get(SUPPORTED, 0))
    if n_better:
        return (
            f"{n_better} of {n} scores tell the older pages of WikiMIA from the newer ones better "
            "than the words alone do, although the model is newer than both."
        )
    by_verdict = {
        NOT_SUPPORTED: "stay close to chance",
        CONTROL_FAILS: "tell them apart and no better than the words",
        INCONCLUSIVE: "are inconclusive",
    }
    said = [f"{counts[word]} {text}" for word, text in by_verdict.items() if word in counts]
    return (
        f"Of {n} scores on WikiMIA pages, none is shown to tell older from newer pages better "
        f"than the words alone, whose AUC is at least {capsule['blind_auc'].min():.2f}: "
        f"{listed(said)}."
    )


def of_judge(judges: pd.DataFrame, model: str) -> str:
    """Whether the model judges completions better than a constant answer does."""
    by_judge = judges.set_index("judge")
    own, constant = by_judge.loc[model], by_judge.loc[ALWAYS_NO, "agreement"]
    shares = (
        f"it agrees with a person on {100 * own['agreement']:.0f} % of the completions, and a "
        f"judge that always says no agrees on {100 * constant:.0f} %"
    )
    is_better = "is" if own["ci_low"] > constant else "is not shown to be"
    return f"As a judge, {short_name(model)} {is_better} better than a constant answer: {shares}."


def _of_copies(control: pd.DataFrame) -> str:
    """Whether the score can see copies at all, which is what makes a null result worth a word."""
    within = rows_within(control)
    copies = int(within["copies"].iloc[0])
    if within["holds"].astype(bool).all():
        aucs = listed([f"{row.auc:.2f} among {row.age}" for row in within.itertuples()])
        return (
            f"{MIN_K} does notice copies: after {copies} copies of each page in a random half, its "
            f"AUC is {aucs}."
        )
    changes = listed(
        [
            f"from {row.before_auc:.2f} to {row.auc:.2f} among {row.age}"
            for row in within.itertuples()
        ]
    )
    return (
        f"The positive control fails: {copies} copies that we added to a random half are not shown "
        f"to raise the AUC of {MIN_K} everywhere ({changes}), so a null result of this score "
        "means nothing."
    )


def of_equivalence(equal: pd.DataFrame) -> str:
    """What the table of falls shows beyond its verdicts: alike doses, and effects that differ."""
    own = equal[equal["analysis"].eq(equivalence.CONFIRMING) & np.isfinite(equal["difference"])]
    if own.empty:
        return ""
    first, is_equal = own.iloc[0], own["verdict"].eq(SUPPORTED)
    apart = abs(first["verbatim_auc"] - first["lab_verbatim_auc"])
    near = "close enough" if apart <= equivalence.MOST_APART else "too far apart"
    text = (
        f"Verbatim rows have a mean AUC of {first['verbatim_auc']:.2f} in SmolLM2 and of "
        f"{first['lab_verbatim_auc']:.2f} in our small models, which is {near} to compare the "
        f"falls. {_of_equivalence(equal)}"
    )
    is_apart = ~is_equal & (own["ci90_low"].gt(0) | own["ci90_high"].lt(0))
    if is_apart.any():
        names = [equivalence.IN_WORDS[name] for name in own.loc[is_apart, "condition"]]
        text += f" For {listed(names)}, the falls differ, but perhaps by less than the margin."
    return text


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
            f"SmolLM2 is not shown to react as our small models do, {within}, to any form of "
            "indirect exposure."
        )
    text = f"SmolLM2 reacts as our small models do, {within}, to {listed(shown)}."
    return f"{text} For {listed(open_)}, that is inconclusive." if open_ else text


def falls(equal: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``equivalence`` with falls of the AUC in place of effects, so with signs turned."""
    return equal.assign(
        condition=equal["condition"].replace(equivalence.IN_WORDS),
        real_fall=-equal["real_effect"],
        lab_fall=-equal["lab_effect"],
        fall_difference=-equal["difference"],
        fall_low=-equal["ci90_high"],
        fall_high=-equal["ci90_low"],
    )


def equivalence_title(equal: pd.DataFrame) -> str:
    """Title of the figure of the confirmatory rows of ``equivalence``."""
    n_equal = int(equal["verdict"].eq(SUPPORTED).sum())
    return (
        f"SmolLM2 and our small models are shown to react alike\nto {n_equal} of {len(equal)} "
        "forms of indirect exposure"
    )
