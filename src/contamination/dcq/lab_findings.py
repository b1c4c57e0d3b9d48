"""What quizzes whose truth is known say, each built from its table (part A).

Each is tested with a table that confirms the paper's reading and one that
refutes it.
"""

from __future__ import annotations

import pandas as pd

RISE_PCT = 10.0  # a smaller rise is within what chance does to one draw of quizzes
LEAST_LEVEL_PCT = 10.0  # a lower level leaves nothing to compare


# Readings: each takes ``dcq_lab`` at one setting of the respondent (``sweep.readings_table``).


def _of(lab: pd.DataFrame, *conditions: str) -> pd.DataFrame:
    return lab[lab["condition"].isin(conditions) & lab["respondent"].eq("respondent")]


def range_and_truth(lab: pd.DataFrame) -> str:
    """Where the range lies in most sets of which all or half was read with its label (Table 1)."""
    rows = _of(lab, "with label", "half with label")
    truth = rows["true_contamination_pct"]
    sides = {"below": rows["max_pct"] < truth, "above": rows["min_pct"] > truth}
    return next((side for side, is_so in sides.items() if is_so.mean() > 0.5), "neither")


def read_and_unread(lab: pd.DataFrame) -> str:
    """In how many datasets and doses every model is credited with more of what it read."""
    return _cases(gains(lab)["respondent"].groupby(["dataset", "copies"]).min() > 0)


def respondent_and_ranking(lab: pd.DataFrame) -> str:
    """In how many datasets and doses the respondent gains less than option ranking.

    Ranking is right one time in four by chance and the respondent seldom, so each is
    held against its own level on instances that the same model never read.
    """
    means = {name: rows.groupby(["dataset", "copies"]).mean() for name, rows in gains(lab).items()}
    return _cases(means["respondent"] < means["option ranking"])


def quiz_and_replication(lab: pd.DataFrame) -> str:
    """In how many datasets and doses the quiz finds more than replication does (Tables 2 and 3).

    Both also find something in sets that were never read, so their gains over these
    are compared.
    """
    found = ["max_pct", "replication_pct"]
    unread = _of(lab, "unseen, same model").groupby("dataset")[found].mean()
    read = _of(lab, "with label").groupby(["dataset", "copies"])[found].mean()
    gain = read - unread.reindex(read.index, level="dataset")
    return _cases(gain["max_pct"] > gain["replication_pct"])


def label_matters(lab: pd.DataFrame) -> str:
    """What was read otherwise than with its label and is credited with half as much (section 2)."""
    rows = _of(lab, "with label", "without label", "wrong label")
    rows = rows[rows["dataset"].isin(_of(lab, "without label")["dataset"])]
    means = rows[rows["copies"] == rows["copies"].max()].groupby("condition")["max_pct"].mean()
    if not {"with label", "without label", "wrong label"} <= set(means.index):
        return "not read otherwise"
    if means["with label"] < LEAST_LEVEL_PCT:
        return "too little is recognised"
    others = means.drop("with label")
    as_much = others.index[others >= means["with label"] / 2]
    return " and ".join(sorted(as_much)) or "neither"


def level_of_unread(lab: pd.DataFrame) -> str:
    """Whether sets that nobody read are credited with little (mean maximum); the truth is 0."""
    level = _of(lab, "unseen, same model", "clean model")["max_pct"].mean()
    return f"{'at most' if level <= LEAST_LEVEL_PCT else 'above'} {LEAST_LEVEL_PCT:.0f} %"


def answers_move(lab: pd.DataFrame) -> str:
    """How many models move to an original that they read, and not to a fifth text (Figure 2)."""
    rows = _of(lab, "with label")
    rows = rows[rows["copies"] == rows["copies"].max()]
    moves = rows["original_pct"] - rows["modified_pct"] > RISE_PCT
    stays = (rows["fifth_pct"] - rows["modified_pct"]).abs() <= RISE_PCT
    return _cases(moves & stays)


def answers_of_clean_models_move(lab: pd.DataFrame) -> str:
    """The control of ``answers_move``: how many clean models move to the original."""
    rows = _of(lab, "clean model")
    return _cases(rows["original_pct"] - rows["modified_pct"] > RISE_PCT)


READINGS = {
    "where the range lies, against the truth, in most sets read": range_and_truth,
    "credited with more of what was read than of what was not, every model": read_and_unread,
    "gains less than option ranking": respondent_and_ranking,
    "the quiz gains more than replication": quiz_and_replication,
    "read otherwise and credited with at least half as much": label_matters,
    "sets that nobody read, mean maximum": level_of_unread,
    "answers move to the original, not to a fifth text; dosed models": answers_move,
    "answers move to the original; clean models": answers_of_clean_models_move,
}


def gains(lab: pd.DataFrame) -> dict[str, pd.Series]:
    """Maximum on sets read with label minus that on sets the same model never read, points.

    Returns:
        A series for "respondent" and one for "option ranking", by (dataset, copies, seed).
    """
    found = {}
    for name, rows in lab.groupby("respondent"):
        levels = rows.set_index(["dataset", "copies", "seed"])["max_pct"]
        unread = levels[(rows["condition"] == "unseen, same model").to_numpy()].droplevel("copies")
        read = levels[(rows["condition"] == "with label").to_numpy()]
        found[name] = read - unread.reindex(read.index.droplevel("copies")).to_numpy()
    return found


def _cases(is_so: pd.Series) -> str:
    return f"{int(is_so.sum())} of {len(is_so)}"


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

    Takers with a threshold of their own are left out: their level is that of the threshold.

    Args:
        dial: ``dcq_dial``.
    """
    dial = dial[dial["chance_pct"].notna()]
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
