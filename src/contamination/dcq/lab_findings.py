"""Sentences on quizzes whose truth is known, each built from its table (part A).

Each is tested with a table that confirms the paper's reading and one that
refutes it.
"""

from __future__ import annotations

import pandas as pd

RISE_PCT = 10.0  # a smaller rise is within what chance does to one draw of quizzes
LEAST_LEVEL_PCT = 10.0  # a lower level leaves nothing to compare


def known_levels_sentence(lab: pd.DataFrame) -> str:
    """Does the range from minimum to maximum hold the truth where something was read (Table 1)?

    Args:
        lab: ``dcq_lab``; rows of instances read with their label, all of a set or half
            of it, are taken.
    """
    rows = lab[lab["condition"].isin(["with label", "half with label"])]
    rows = rows[rows["respondent"] == "respondent"]
    below = rows["max_pct"] < rows["true_contamination_pct"]
    above = rows["min_pct"] > rows["true_contamination_pct"]
    text = (
        f"The range from minimum to maximum holds the true share in {_n_covered(rows)} of "
        f"{len(rows)} rows (one for each model and quizzed set); it lies below the truth in "
        f"{int(below.sum())} and above it in {int(above.sum())}. "
    )
    # Half sets repeat instances of the whole ones.
    by_dose = rows[rows["condition"] == "with label"].groupby("copies")["recall_max_pct"].mean()
    if len(by_dose):
        doses = ", ".join(f"{copies} copies {recall:.0f} %" for copies, recall in by_dose.items())
        text += f"Recall where the whole set was read, mean over models and datasets: {doses}. "
    if below.sum() > len(rows) / 2:
        return text + "Mostly the quiz credits less than was read."
    if above.sum() > len(rows) / 2:
        return text + "Mostly the quiz credits more than was read."
    return text + "Neither side prevails."


def _n_covered(rows: pd.DataFrame) -> int:
    truth = rows["true_contamination_pct"]
    return int((rows["min_pct"].le(truth) & rows["max_pct"].ge(truth)).sum())


def unread_sentence(lab: pd.DataFrame) -> str:
    """What models are credited with on instances that they never read.

    Args:
        lab: ``dcq_lab``; rows of the respondent in the unseen and clean conditions are
            taken.
    """
    rows = lab[lab["condition"].isin(["unseen, same model", "clean model"])]
    parts, of_respondent = [], rows[rows["respondent"] == "respondent"]
    for condition, rows in of_respondent.groupby("condition", sort=False):
        parts.append(
            f"{condition}: {rows['max_pct'].mean():.0f} % on average, at most "
            f"{rows['max_pct'].max():.0f} % ({len(rows)} quizzed sets)"
        )
    return (
        f"Credited with on instances never read: {'; '.join(parts)}. The truth is 0 %; the range "
        f"holds it in {_n_covered(of_respondent)} of {len(of_respondent)} rows."
    )


def label_sentence(lab: pd.DataFrame) -> str:
    """Does the quiz tell instances read with their label from those read without or with another?

    Section 2 calls only the first contamination.

    Args:
        lab: ``dcq_lab``, rows of one dataset at one dose: conditions "with
            label", "without label", "wrong label", one row per model each.
    """
    rows = lab[lab["respondent"] == "respondent"]
    levels = rows.groupby("condition", sort=False)["max_pct"]
    means, counts = levels.mean(), levels.count()
    if not {"with label", "without label", "wrong label"} <= set(means.index):
        return "Instances without their label, or with another, were not read."
    parts = "; ".join(f"{name} {means[name]:.0f} %" for name in means.index)
    text = (
        f"Maximum by how the instances were read, mean of {counts.iloc[0]} models: {parts}. "
        "Without the right label the truth is 0 % by the paper's definition. "
    )
    if means["with label"] < LEAST_LEVEL_PCT:
        return text + "At this dose too little is recognised to compare."
    others = means.drop("with label")
    as_much = others.index[others >= means["with label"] / 2]
    if len(as_much):
        return text + (
            f"Credited with at least half of what the whole instance is: {', '.join(as_much)}. So "
            "the quiz finds words that were read, not contamination as the paper defines it."
        )
    return text + "The quiz credits mostly instances that were read with their label."


def ranking_sentence(lab: pd.DataFrame) -> str:
    """What the respondent's threshold and prior leave of what likelihoods know.

    Ranking is right one time in four by chance and the respondent seldom, so each is
    held against its own level on instances that the same model never read.

    Args:
        lab: ``dcq_lab``, rows of both in the conditions "with label" and "unseen, same model".
    """
    keys = ["respondent", "dataset", "seed"]
    unread = lab.loc[lab["condition"] == "unseen, same model", [*keys, "max_pct"]]
    rows = lab[lab["condition"] == "with label"].merge(unread, on=keys, suffixes=("", "_unread"))
    rows["gain"] = rows["max_pct"] - rows["max_pct_unread"]
    parts, not_told, n_less = [], [], 0
    cases = rows.groupby(["dataset", "copies"], sort=False)
    for (dataset, copies), of_case in cases:
        said, gains = [], {}
        for name in ("option ranking", "respondent"):
            one = of_case[of_case["respondent"] == name]
            gains[name] = one["gain"]
            said.append(
                f"{name} {one['max_pct'].mean():.0f} against {one['max_pct_unread'].mean():.0f} % "
                f"({one['gain'].min():+.0f} to {one['gain'].max():+.0f} points)"
            )
        parts.append(f"{dataset}, {copies} copies: {', '.join(said)}")
        n_less += gains["respondent"].mean() < gains["option ranking"].mean()
        if gains["respondent"].min() <= 0:
            not_told.append(f"{dataset}, {copies} copies")
    text = (
        f"Read against never read by the same model, range over models: {'; '.join(parts)}. The "
        f"respondent gains less than option ranking in {n_less} of {len(parts)} cases"
    )
    if n_less == len(parts):
        text += ": abstaining and a liking for a position cost right answers"
    if not_told:
        return (
            text
            + f". Not every model answers right more often what it read: {'; '.join(not_told)}."
        )
    return text + ". Every model answers right more often what it read."


def replication_sentence(lab: pd.DataFrame) -> str:
    """Does the quiz find more than replication does, as in Tables 2 and 3?

    Both also find something in sets that were never read, so their gains over these
    are compared.

    Args:
        lab: ``dcq_lab``, rows of the respondent in the conditions "with label" and
            "unseen, same model".
    """
    rows = lab[lab["respondent"] == "respondent"].set_index("dataset")
    found = ["max_pct", "replication_pct"]
    unread = rows[rows["condition"] == "unseen, same model"].groupby("dataset")[found].mean()
    read = rows[rows["condition"] == "with label"]
    means = read.groupby(["dataset", "copies"], sort=False)[found].mean()
    parts, n_more = [], 0
    for (dataset, copies), row in means.iterrows():
        base = unread.loc[dataset]
        parts.append(
            f"{dataset}, {copies} copies: replicated {row['replication_pct']:.0f} % "
            f"({base['replication_pct']:.0f} %), quiz {row['max_pct']:.0f} % "
            f"({base['max_pct']:.0f} %)"
        )
        gain = row - base
        n_more += bool(gain["max_pct"] > gain["replication_pct"])
    text = (
        "Replicated exactly or nearly, in brackets sets that the same models never read: "
        f"{'; '.join(parts)}. Beyond the brackets the quiz finds more in {n_more} of {len(parts)} "
        "cases; in Tables 2 and 3, which have none, in every row"
    )
    if n_more == len(parts):
        return text + ". The lab shows the same order."
    return text + ". The lab does not show that order."


def lab_position_sentence(positions: pd.DataFrame) -> str:
    """Figure 2 on the lab's respondent: do answers move to the original and to nothing else?

    Args:
        positions: rows of ``dcq_positions`` with source "lab".
    """
    parts, moves, stays = [], [], []
    for (dataset, model), rows in positions.groupby(["dataset", "model"], sort=False):
        second = rows[rows["quiz"] == "second perturbation"]
        at = second["position"].iloc[0]
        at_option = rows[(rows["option"] == at) & rows["position"].isin(["", at])]
        counts = at_option.set_index("quiz")["count"].astype(int)
        parts.append(
            f"{model} on {dataset} {counts['modified']} in the modified quiz, "
            f"{counts['standard']} with the original there, {counts['second perturbation']} with "
            "a fifth perturbation there"
        )
        n = int(rows[rows["quiz"] == "modified"]["count"].sum())
        moves.append(counts["standard"] - counts["modified"] > n / 10)
        stays.append(abs(counts["second perturbation"] - counts["modified"]) <= n / 10)
    text = f"Answers at the least chosen position: {'; '.join(parts)}. "
    if all(moves) and all(stays):
        return text + (
            "As in Figure 2, answers move to the original (by more than a tenth of the quizzes) "
            "and not to another perturbation."
        )
    return text + (
        f"Answers move to the original by more than a tenth of the quizzes in {sum(moves)} of "
        f"{len(moves)} cases, and stay with another perturbation in {sum(stays)}."
    )


def dial_sentence(dial: pd.DataFrame) -> str:
    """What no memory is credited with as paraphrases turn natural.

    Args:
        dial: ``dcq_dial``.
    """
    low, high = dial["dial"].min(), dial["dial"].max()
    parts, rising = [], []
    for model, rows in dial.groupby("model", sort=False):
        means = rows.groupby("dial")["max_pct"].mean()
        parts.append(f"{model} from {means[low]:.0f} to {means[high]:.0f} %")
        if means[high] - means[low] > RISE_PCT:
            rising.append(model)
    text = (
        f"From interchangeable (dial {low:g}) to natural paraphrases (dial {high:g}), mean over "
        f"datasets: {'; '.join(parts)}. None of these has read an original. "
    )
    if rising:
        return text + (
            f"By more than {RISE_PCT:.0f} points rise: {'; '.join(rising)}. So with natural "
            "paraphrases these find originals without memory, and a level shows memory only as far "
            "as it exceeds what the same quizzes give away."
        )
    return text + "Natural paraphrases credit no one with anything more here."


def estimator_sentence(estimator: pd.DataFrame) -> str:
    """Where [minimum, maximum] covers the truth, and where it lies above or below.

    Args:
        estimator: ``dcq_estimator``.
    """
    full = estimator[estimator["recognition_pct"] == 100]
    parts = [
        f"{profile} {100 * rows['covered_share'].mean():.0f} %"
        for profile, rows in full.groupby("bias_profile", sort=False)
    ]
    text = (
        "Share of simulated partitions whose truth lies in the range, everything contaminated "
        f"being recognised, mean over true shares: {'; '.join(parts)}. "
    )
    if full["over_share"].mean() > 0.5:
        missed = full[["over_share", "under_share"]].to_numpy().sum()
        miss_pct = full["mean_miss_pct"].sum() / missed  # where it misses, not over all
        worst = full.loc[full["mean_miss_pct"].idxmax()]
        text += (
            f"Elsewhere it lies above the truth, by {miss_pct:.1f} points on average "
            f"and most with the profile {worst['bias_profile']} at a true share of "
            f"{worst['true_contamination_pct']:.0f} %: mean range [{worst['mean_min_pct']:.0f}, "
            f"{worst['mean_max_pct']:.0f}] %. The second-largest share, which gives the minimum "
            "where it exceeds kappa, holds guesses as the largest does; with kappa alone as the "
            f"minimum the range would hold the truth in "
            f"{100 * full['covered_with_kappa_share'].mean():.0f} % of partitions of all profiles. "
        )
    else:
        text += "With full recognition the range seldom lies above the truth. "
    part = estimator[
        (estimator["recognition_pct"] < 100) & (estimator["true_contamination_pct"] > 0)
    ]
    if len(part):
        text += (
            "Where fewer are recognised the range lies below the truth in "
            f"{100 * part['under_share'].mean():.0f} % of partitions with contamination."
        )
    return text.rstrip()
