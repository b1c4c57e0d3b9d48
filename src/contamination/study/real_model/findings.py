"""What the tables of notebook 12 say: rows to show, titles of figures, sentences, a conclusion.

``results`` are tables by name, as in ``real_model``; a part that was not asked has none. ``model``
is the model's name in the tables, and ``short_name`` gives the name in a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.tables import MISSING, auc_text, copies_text, interval_text, listed
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
# Of each part: its question, what is measured, and the control.
QUESTIONS = {
    "quiz": ("Does it find the original?", "lead over a clean model", "lead on our own quizzes"),
    "completions": (
        "Does it complete instances?",
        "partitions called contaminated under the right names",
        "other instructions",
    ),
    "judge": (
        "Can it replace the judge?",
        "share of near-exact matches that both judge and person find",
        "a rule, and a constant answer",
    ),
    "dates": (
        "Can it tell older from newer pages?",
        "AUC of older against newer pages",
        "AUC of the words alone",
    ),
    "copies": (
        "Could the score see copies at all?",
        "AUC of pages with copies against pages without",
        "AUC before the copies",
    ),
    "doses": (
        "How does the AUC follow the number of copies?",
        "AUC of seen against held-out rows",
        "fresh rows",
    ),
    "falls": (
        "Does it react like our small models?",
        "falls of the AUC in both groups",
        "similar AUCs for verbatim rows",
    ),
}


def short_name(model: str) -> str:
    """A model's name within a sentence.

    >>> short_name("SmolLM2-135M-Instruct-Q4_1"), short_name("another-model")
    ('SmolLM2', 'another-model')
    """
    return "SmolLM2" if model.startswith("SmolLM2-") else model


# All questions in a table


def overview(results: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What is measured for each question, its control, and whether *supported* can be reached.

    Returns:
        question, measured, control and reachable, all texts, a row for each of ``QUESTIONS``.
    """
    reachable = dict.fromkeys(QUESTIONS, "yes")
    reachable |= {"quiz": "where the clean model leaves room", "dates": "above the words alone"}
    reachable |= {"copies": "no verdict: a control itself", "doses": "no verdict: p-values"}
    if "pretrained_readings" in results:
        n_without, n, _ = _room(results["pretrained_readings"])
        reachable["quiz"] = f"on {n - n_without} of {n} benchmarks"
    if "pretrained_min_k" in results:
        of_words = results["pretrained_min_k"]["blind_auc"].min()
        reachable["dates"] = f"only with an AUC above {of_words:.2f}"
    rows = [(*QUESTIONS[part], text) for part, text in reachable.items()]
    return pd.DataFrame(rows, columns=["question", "measured", "control", "reachable"])


def summary(
    results: Mapping[str, pd.DataFrame],
    equal: pd.DataFrame,
    model: str,
    by_condition: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The result and the verdicts of each question that has some; arguments of ``conclusion``.

    Returns:
        question, measured, control, result, and verdicts: "9 inconclusive, 1 not supported".
    """
    found = {}
    if "pretrained_readings" in results:
        readings = results["pretrained_readings"]
        n_ahead, n, n_unseen, n_own = _leads(readings)
        text = f"ahead of the clean model on {n_ahead} of {n} benchmarks, and on {n_unseen} of "
        text += f"{n_own} sets of our own quizzes"
        found["quiz"] = (text, _counted(readings["verdict"]))
    if "pretrained_replication" in results:
        decided = results["pretrained_replication"]
        of_2 = decided[decided["method"].eq(ALGORITHM_2)]
        is_right, called = of_2["instruction"].eq(GUIDED), of_2["contaminated"].astype(bool)
        text = f"{called[is_right].sum()} of {is_right.sum()}; under other instructions "
        text += f"{called[~is_right].sum()} of {(~is_right).sum()}"
        found["completions"] = (text, _counted(of_2.loc[is_right, "verdict"]))
    if "pretrained_judge" in results:
        judges = judge_rows(results["pretrained_judge"], model)
        own = judges[judges["judge"].eq(short_name(model))]
        others = judges.loc[judges["judge"].ne(short_name(model)), "near"]
        text = f"{own['near'].iloc[0]}; the controls {listed(others.tolist())}"
        found["judge"] = (text, _counted(own["verdict"]))
    if "pretrained_min_k" in results:
        capsule = results["pretrained_min_k"]
        text = f"{capsule['auc'].min():.2f} to {capsule['auc'].max():.2f}; the words alone "
        text += f"{capsule['blind_auc'].min():.2f} or more"
        found["dates"] = (text, _counted(capsule["verdict"]))
    if "pretrained_control" in results:
        within = rows_within(results["pretrained_control"])
        before, after = (_both(within[column]) for column in ("before_auc", "auc"))
        text = f"{after} after {copies_text(within['copies'].iloc[0])}, {before} before"
        found["copies"] = (text, MISSING)
    if by_condition is not None:
        found["doses"] = (_doses_in_brief(by_condition), MISSING)
    own = _confirming(equal)
    if len(own):
        text = f"equal within {equivalence.MARGIN:.2f} for {own['verdict'].eq(SUPPORTED).sum()} "
        found["falls"] = (f"{text}of {len(own)} forms", _counted(own["verdict"]))
    rows = [(*QUESTIONS[part], *found[part]) for part in QUESTIONS if part in found]
    return pd.DataFrame(rows, columns=["question", "measured", "control", "result", "verdicts"])


def _counted(verdicts: pd.Series) -> str:
    """Verdicts with their numbers, the most frequent first; rows without a claim have none."""
    counts = verdicts[verdicts.ne("")].value_counts()
    return ", ".join(f"{n} {word}" for word, n in counts.items())


def _both(aucs: pd.Series) -> str:
    return listed([f"{auc:.2f}" for auc in aucs])


def _doses_in_brief(by_condition: pd.DataFrame) -> str:
    dosed = by_condition[by_condition["model"].eq(DOSED)].sort_values("copies")
    parts = []
    for condition, told in ((VERBATIM, "{}"), (PARAPHRASE, "{} as a paraphrase")):
        for row in dosed[dosed["condition"].eq(condition)].itertuples():
            parts.append(f"{row.auc:.2f} after {told.format(copies_text(row.copies))}")
    for row in dosed[dosed["condition"].eq(FRESH)].itertuples():
        parts.append(f"{row.auc:.2f} for fresh rows")
    return ", ".join(parts)


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
    original: as wide as the interval of the clean model, NaN for our own quizzes. has_room: this
    interval begins above all intervals of leads on our own quizzes.
    """
    *_, needed = _room(readings)
    is_own = readings["is_unread"].astype(bool)
    claims = readings[~is_own].sort_values("difference_pct", ascending=False, kind="stable")
    rows = pd.concat([claims, readings[is_own]], ignore_index=True)
    is_own = rows["is_unread"].astype(bool)
    leads = [
        f"{row.difference_pct:.1f} {interval_text(row.ci_low_pct, row.ci_high_pct, 1)}"
        for row in rows.itertuples()
    ]
    return rows.assign(
        dataset=rows["dataset"].str.replace("unread: ", "ours: "),
        is_unread=is_own,
        lead=leads,
        perfect_low=(100 - rows["clean_high_pct"]).mask(is_own),
        perfect_high=(100 - rows["clean_low_pct"]).mask(is_own),
        has_room=~is_own & (100 - rows["clean_high_pct"]).gt(needed),
    )


def quiz_title(readings: pd.DataFrame) -> str:
    """Title of the figure of ``pretrained_readings``: where the model leads, and its control."""
    n_ahead, n_claims, *_ = _leads(readings)
    n_supported = int(readings["verdict"].eq(SUPPORTED).sum())
    text = f"Shown to be ahead of the clean model on {n_ahead} of {n_claims} benchmarks"
    if n_supported:
        return f"{text},\nand on {n_supported} clearly above the control"
    if n_ahead:
        return f"{text},\nbut on none clearly above the control"
    return "Not shown to be ahead of the clean model on any benchmark"


def room_for_leads(readings: pd.DataFrame) -> str:
    """On how many benchmarks a lead could have been large enough to support the claim."""
    n_without, n, needed = _room(readings)
    rows = quiz_rows(readings)
    with_room = rows.loc[rows["has_room"], "dataset"].tolist()
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
        f"{f'Only {listed(with_room)} had room.' if with_room else 'No benchmark had room.'}"
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
        f"{short_name(model)}'s ranking is shown to find more originals than GPT-4's letters "
        f"on {own or 'none'} of {n} datasets."
    )
    if not clean:
        return f"{text} The clean model's ranking is shown to do so on none of {n}."
    return (
        f"{text} But the clean model's ranking is shown to do so too, on {clean} of {n}. So "
        "finding more than GPT-4 is no sign of memory either."
    )


def of_letters(by_letter: pd.DataFrame, model: str) -> str:
    """Whether the answers by letter can say anything: rows of ``pretrained_dcq``."""
    low, high = by_letter["same_letter_pct"].min(), by_letter["same_letter_pct"].max()
    between = f"{low:.0f} to {high:.0f} %" if round(low) != round(high) else f"{high:.0f} %"
    text = (
        f"We asked {short_name(model)} for letters on {len(by_letter)} datasets. On each of them, "
        f"{between} of its answers are one and the same letter. "
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
    called = int(right["called"].partition(" ")[0])
    if right["n_exact"] + right["n_near_exact"] or called:
        text = (
            f"Under the right names, {short_name(model)} completes {right['n_exact'] or 'none'} of "
            f"{right['n_valid']} instances exactly and {right['n_near_exact'] or 'none'} nearly "
            f"exactly, and {called or 'none'} of {n} partitions are called contaminated."
        )
    else:
        text = (
            f"{short_name(model)} completes nothing under the right names, so none of the {n} "
            "partitions is called contaminated."
        )
    text += (
        f" Under the other instructions, it completes {matching or 'none'} of "
        f"{wrong['n_valid'].sum()} instances exactly or almost exactly. "
        f"The claim is supported for {n_supported or 'none'} of the {n} partitions"
    )
    if n_failing:
        text += f", and for {n_failing} the control fails"
    how_many = f"all {n}" if n_open == n else n_open
    return f"{text}, and the verdict is inconclusive for {how_many}."


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
    after = [auc_text(row) for _, row in within.iterrows()]
    return within.assign(age=[*AGE.values()], pages=pages, after=after).reset_index()


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
        f"Before the copies, the two AUCs are {_both(aucs)}. No page "
        f"had a copy then, so {'this is' if p <= LEVEL else 'they differ from one half only by'} "
        "the luck of the draw"
    )
    if p > LEVEL:
        return f"{text}."
    share = f"{100 * p:.1f} %" if p >= 0.001 else "fewer than 0.1 %"
    is_above = within["ci_low"].gt(0.5).all()
    return (
        f"{text}, and it is an unusual draw: in {share} of random draws, the mean AUC lies at "
        "least this far from one half. So look at the AUC after the copies as well: its intervals "
        + ("lie above one half, too." if is_above else "do not both lie above one half.")
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
        tens = 10 * round(10 * left)
        return (
            f"After further training on other text, the AUC of verbatim rows is {later.auc:.2f} "
            f"instead of {at_once['auc']:.2f}. So about {tens} % of the rise from "
            f"{at_once['auc_before']:.2f} is left."
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
    """What the answers of a real model show together, next to the table of ``summary``.

    Args:
        results: some or all tables of ``real_model.PARTS``.
        equal: of ``study.equivalence.equivalence``.
        model: name of the model that was asked.
        by_condition: as in :func:`of_doses`.
    """
    known = [part for part, tables in PARTS.items() if set(tables) <= set(results)]
    claims = {"quiz": "readings", "completions": "replication", "dates": "min_k"}
    pointing = [
        int(results[f"pretrained_{name}"]["verdict"].eq(SUPPORTED).sum())
        for part, name in claims.items()
        if part in known
    ]
    name = short_name(model)
    paragraphs = [[_opening(pointing, name)]]
    if "quiz" in known:
        paragraphs[0].append(_of_quiz(results["pretrained_readings"], name))
    able = []
    if "copies" in known:
        able.append(_of_copies(results["pretrained_control"]))
    if by_condition is not None:
        able.append(_of_fewest(by_condition))
    paragraphs += [able, [_carried_over(equal)]]
    if missing := [IN_WORDS[part] for part in PARTS if part not in known]:
        text = f"This conclusion leaves out what was not asked: {listed(missing)}."
        paragraphs.append([text])
    return "\n\n".join(" ".join(sentences) for sentences in paragraphs if sentences)


def _opening(pointing: list[int], name: str) -> str:
    """The answer to the question of the notebook: rows that support memory, of each part."""
    if sum(pointing):
        return (
            "Some results point to training on the texts that we asked about, which is a reason "
            "to look closer and not a proof."
        )
    if pointing:
        return (
            f"Nothing here shows that {name} was trained on the texts that we asked about, and "
            "nothing shows that it was not."
        )
    return f"We asked {name} nothing whose answer could point to training."


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
    if not n_ahead:
        return f"In the quiz, {name} is not shown to lead the clean model on any benchmark."
    ahead = f"{name} is shown to lead the clean model on {n_ahead} of {n_claims} benchmarks"
    if n_supported:
        return (
            f"In the quiz, {ahead}, and on {n_supported} of them by more than on any quizzes that "
            "no model can have seen. Memory would explain that, and so would better taste in such "
            "texts."
        )
    if n_unseen:
        return (
            f"In the quiz, {ahead}. It also leads on {n_unseen} of {n_controls} sets of quizzes "
            "that no model can have seen, so a larger model's taste explains such a lead without "
            "any memory."
        )
    return (
        f"Without its control, the quiz would look like memory: {ahead}. But on none of them is "
        "the lead shown to be larger than on quizzes that no model can have seen."
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
        "No score is shown to tell older from newer pages better than the words alone, whose AUC "
        f"is at least {capsule['blind_auc'].min():.2f}. Of the {n} tests (every score at every "
        f"length), {listed(said)}."
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
        return f"{MIN_K} is not blind: it notices the {copies} copies that we add to pages."
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


def _of_fewest(by_condition: pd.DataFrame) -> str:
    """What the smallest dose of verbatim rows leaves, next to the largest one."""
    dosed = by_condition[by_condition["model"].eq(DOSED) & by_condition["condition"].eq(VERBATIM)]
    dosed = dosed.sort_values("copies")
    if len(dosed) < 2:
        return ""
    few, many = dosed.iloc[0], dosed.iloc[-1]
    is_faint = few["auc"] - 0.5 < (many["auc"] - 0.5) / 2
    rest = "so a text that was seen only rarely would be easy to miss" if is_faint else ""
    rest = rest or "so a text that was seen only rarely shows as well"
    return (
        f"Where we know the truth, in Part 2, the AUC of {MIN_K} is {few['auc']:.2f} after "
        f"{copies_text(few['copies'])} and {many['auc']:.2f} after "
        f"{copies_text(many['copies'])}, {rest}."
    )


def _confirming(equal: pd.DataFrame) -> pd.DataFrame:
    return equal[equal["analysis"].eq(equivalence.CONFIRMING) & np.isfinite(equal["difference"])]


def of_equivalence(equal: pd.DataFrame) -> str:
    """What the table of falls shows beyond its verdicts: alike doses, and effects that differ."""
    own = _confirming(equal)
    if own.empty:
        return ""
    first, is_equal = own.iloc[0], own["verdict"].eq(SUPPORTED)
    apart = abs(first["verbatim_auc"] - first["lab_verbatim_auc"])
    limit = f"the protocol's limit ({equivalence.MOST_APART:.2f})"
    near = f"within {limit}" if apart <= equivalence.MOST_APART else f"larger than {limit}"
    text = (
        f"Verbatim rows have a mean AUC of {first['verbatim_auc']:.2f} in SmolLM2 and of "
        f"{first['lab_verbatim_auc']:.2f} in our small models, and the difference is {near}. "
        f"{_of_equivalence(equal)}"
    )
    is_apart = ~is_equal & (own["ci90_low"].gt(0) | own["ci90_high"].lt(0))
    for row in own[is_apart].itertuples():
        text += f" {_of_apart(equivalence.IN_WORDS[row.condition], row.ci90_low, row.ci90_high)}"
    return text


def _of_apart(name: str, low: float, high: float) -> str:
    """What an interval of effects without zero says; a fall has the opposite sign."""
    margin = equivalence.MARGIN
    text = f"For {name}, the interval excludes zero, so the falls do differ"
    nearest, farthest = sorted((abs(low), abs(high)))
    if nearest >= margin:
        return f"{text}, and by more than the margin."
    if farthest < margin:
        return f"{text}, although by less than the margin."
    end = f"{-margin:.2f}" if low > 0 else f"+{margin:.2f}"
    return (
        f"{text}; but it reaches past {end}, so we cannot say whether they differ by less than the "
        "margin."
    )


def _carried_over(equal: pd.DataFrame) -> str:
    """For how many forms of exposure the small models are shown to be a guide."""
    own = _confirming(equal)
    if own.empty:
        return _of_equivalence(equal)
    n_equal = int(own["verdict"].eq(SUPPORTED).sum())
    rest = "; for the others, the result is inconclusive" if n_equal < len(own) else ""
    return (
        "What our small models teach about indirect exposure is shown to carry over to SmolLM2 "
        f"for {n_equal or 'none'} of {len(own)} forms{rest}."
    )


def _of_equivalence(equal: pd.DataFrame) -> str:
    own = _confirming(equal)
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
    return f"{text} For {listed(open_)}, the result is inconclusive." if open_ else text


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
