"""What the tables of completions, of the judge, of dated pages and of copies say in notebook 12."""

from __future__ import annotations

import numpy as np
import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.tables import auc_text, listed
from contamination.core.verdicts import ALPHA, CONTROL_FAILS, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.min_k.wikimia_tables import AGE
from contamination.replication.decisions import ALGORITHM_2
from contamination.replication.instructions import GUIDED
from contamination.study.real_model import ALWAYS_NO, short_name

N_DRAWS = 20_000  # of random halves, to which the one that was drawn is compared


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
    """What the model completes under the right names, compared with all other instructions."""
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


def _completions(decided: pd.DataFrame) -> tuple[int, int, int, int]:
    """Partitions, and those that are supported, whose control fails, and that are inconclusive."""
    guided = decided["method"].eq(ALGORITHM_2) & decided["instruction"].eq(GUIDED)
    words = decided.loc[guided, "verdict"]
    supported, failing, open_ = (
        int(words.eq(word).sum()) for word in (SUPPORTED, CONTROL_FAILS, INCONCLUSIVE)
    )
    return len(words), supported, failing, open_


def judge_rows(judges: pd.DataFrame, model: str) -> pd.DataFrame:
    """``pretrained_judge`` with the near-exact matches as counts: "5 of 13"."""
    most = judges[["n_near", "n_near_flagged"]].max(axis=1)
    near = judges["n_near_found"].astype(str) + " of " + most.astype(str)
    return judges.assign(near=near, judge=judges["judge"].replace(model, short_name(model)))


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


def dates_title(capsule: pd.DataFrame) -> str:
    """Title of the figure of ``pretrained_min_k``: whether any score beats the words."""
    n_better = int(capsule["verdict"].eq(SUPPORTED).sum())
    if n_better:
        return f"{n_better} of {len(capsule)} scores tell older from newer pages better than words"
    return "No score is shown to tell older from newer pages better than the words alone"


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
        f"Before the copies, the two AUCs are {aucs_text(aucs)}. No page "
        f"had a copy then, so {'this is' if p <= ALPHA else 'they differ from one half only by'} "
        "the luck of the draw"
    )
    if p > ALPHA:
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


def aucs_text(aucs: pd.Series) -> str:
    """AUCs within a sentence: "0.36 and 0.35"."""
    return listed([f"{auc:.2f}" for auc in aucs])


def of_copies(control: pd.DataFrame) -> str:
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
