"""What the lesson and the lab on the Data Contamination Quiz conclude, worded by their tables."""

from __future__ import annotations

import pandas as pd
from scipy import stats

from contamination.core.statistics import CONFIDENCE
from contamination.core.verdicts import INCONCLUSIVE, NOT_RUN, NOT_SUPPORTED, SUPPORTED
from contamination.dcq.known_truth import (
    RESPONDENT,
    UNSEEN,
    WITH_LABEL,
    WITHOUT_LABEL,
    WRONG_LABEL,
)
from contamination.dcq.lesson_findings import FREQUENCY, MODEL, few_names, in_words
from contamination.dcq.respondent_sweep import RANGE_READING

PICKS = {
    FREQUENCY: "picks the text whose words are most common",
    "centrality": "picks the text that shares the most words with the others",
    "length": "picks the longest text",
}
SIDES = {"below": "below", "above": "above", "neither": "on no one side of"}


def moves_title(moves: pd.DataFrame) -> str:
    """Title of Figure 2: for how many panels answers move to the original and to nothing else."""
    asked = moves[moves["verdict"] != NOT_RUN]
    n_moved = int(asked["verdict"].eq(SUPPORTED).sum())
    return f"Answers follow the original in {n_moved} of {len(asked)} panels with a control"


def conclusion(levels: pd.DataFrame, rules: pd.DataFrame) -> str:
    """What the lesson concludes, in words that its tables choose.

    Args:
        levels: ``dcq_published``.
        rules: ``dcq_rules``, of which GPT-4 and any other models are compared with the rule that
            is chosen on the other datasets.
    """
    rows = _of_chosen_rule(rules, MODEL)
    n_behind = int(rows["verdict"].eq(NOT_SUPPORTED).sum())
    first = " ".join([_arithmetic(levels), _against_the_rule(rules)])
    parts = [first, _other_verdicts(rules), _meaning(n_behind, len(rows))]
    return "\n\n".join(filter(None, parts))


def _of_chosen_rule(rules: pd.DataFrame, model: str) -> pd.DataFrame:
    rows = rules[rules["chosen_on_others"] & (rules["model"] == model)]
    return rows.drop_duplicates("dataset")


def _arithmetic(levels: pd.DataFrame) -> str:
    n_same, n = int(levels["matches"].sum()), len(levels)
    if n_same == n:
        return f"The paper's arithmetic is right: we reproduce the numbers of all {n} pairs."
    if n_same > n / 2:
        return (
            f"We reproduce the paper's numbers for {n_same} of {n} pairs of model and dataset, to "
            "the last printed digit."
        )
    return (
        f"We cannot confirm the paper's arithmetic: from the released answers we reproduce the "
        f"numbers for only {n_same} of {n} pairs of model and dataset."
    )


def _against_the_rule(rules: pd.DataFrame) -> str:
    """On which datasets each model beats the rule that the other datasets choose."""
    chosen = rules.loc[rules["chosen_on_others"], "control"].unique()
    picks = " or ".join(PICKS.get(name, f"follows the rule {name}") for name in chosen)
    parts = []
    for model in dict.fromkeys(rules["model"]):
        rows = _of_chosen_rule(rules, model)
        behind = rows.loc[rows["verdict"] == NOT_SUPPORTED, "dataset"].tolist()
        n_of = f"{in_words(len(rows))} datasets{few_names(behind)}"
        if behind:
            parts.append(f"{model} is shown to beat it on {in_words(len(behind))} of {n_of}.")
        else:
            parts.append(f"{model} is not shown to beat it on any of {n_of}.")
    return (
        "What the levels mean is a different question, since a rule that never saw the data can "
        "take the same quizzes. A rule may be the best on a dataset by luck. So on each "
        f"dataset we use the rule that is best on the other datasets: the one that {picks}. "
        f"{' '.join(parts)}"
    )


def _other_verdicts(rules: pd.DataFrame) -> str:
    """What is known of the datasets on which no model beats the rule."""
    sentences = []
    for model in dict.fromkeys(rules["model"]):
        rows = _of_chosen_rule(rules, model)
        equal = rows.loc[rows["verdict"] == SUPPORTED, "dataset"].tolist()
        n_open = int(rows["verdict"].eq(INCONCLUSIVE).sum())
        n, where = f" of {in_words(len(rows))} datasets", in_words(len(equal))
        parts = []
        if equal:
            parts.append(
                f"the rule does as well, to within five points, on {where}{n}{few_names(equal)}"
            )
        if n_open:
            number = in_words(n_open) + ("" if equal else n)
            parts.append(f"the comparison is inconclusive on {number}")
        if parts:
            sentences.append(f"Against {model}, {', and '.join(parts)}.")
    return " ".join(sentences)


def _meaning(n_behind: int, n: int) -> str:
    if n_behind == n:
        return (
            f"So this rule does not explain what {MODEL} knows. Memory is one explanation, and a "
            "better rule is another."
        )
    if n_behind > n / 2:
        start = f"So on most datasets {MODEL} knows more than this rule, and memory may be why."
    elif n_behind:
        start = (
            f"So on most datasets the answers do not show that {MODEL} remembers anything, because "
            "a rule that never saw the data may do as well."
        )
    else:
        start = (
            f"So on no dataset do the answers show that {MODEL} remembers anything, because a rule "
            "that never saw the data may do as well."
        )
    if n_behind:
        start += (
            f" Where {MODEL} is ahead, it may remember the rows. But a better rule might do as "
            f"well, and {MODEL} may recognise its own style, because it wrote the rewrites."
        )
    return (
        f"{start} Even where the rule does as well, {MODEL} may have seen the dataset: the quiz "
        "just cannot show it. Before you believe a contamination level, ask how many originals a "
        "rule without memory finds in the same quizzes."
    )


def levels_found(n_right: int, levels: pd.DataFrame, n_rows: int) -> str:
    """How often the range is right on the lab's first benchmark, and what the label changes.

    Args:
        n_right: row sets whose range contains the true level.
        levels: max_pct (mean over models), indexed by condition and copies.
        n_rows: instances of a row set.
    """
    text = f"The range contains the true level in {n_right} of {len(levels)} row sets."
    most = levels.index.get_level_values("copies").max()
    with_label, *others = (
        levels["max_pct"].get((condition, most), float("nan"))
        for condition in (WITH_LABEL, WITHOUT_LABEL, WRONG_LABEL)
    )
    # Of a share near one half, whose interval is the widest.
    margin = 100 * stats.norm.ppf((1 + CONFIDENCE) / 2) * (0.25 / n_rows) ** 0.5
    return (
        f"{text} Rows seen {most} times get a maximum of {with_label:.0f} % with their label, "
        f"{others[0]:.0f} % without it and {others[1]:.0f} % with a wrong one. A row set has "
        f"{n_rows} rows, so chance alone can move the level of one model by up to {margin:.0f} "
        "points."
    )


def lab_conclusion(
    lab: pd.DataFrame,
    readings: pd.DataFrame,
    rises: pd.DataFrame,
    covered: pd.DataFrame,
    reciprocal: pd.DataFrame,
    beyond: pd.DataFrame,
) -> str:
    """What the lab concludes, three paragraphs in words that its tables choose.

    Args:
        lab, readings, reciprocal, beyond: ``dcq_lab``, ``dcq_readings``, ``dcq_reciprocal`` and
            ``dcq_beyond_rules``.
        rises: ``known_truth.dial_rises``.
        covered: bias_profile, covered_share (0 to 1) and mean_miss_pct (points), both means over
            the true shares, where every contaminated instance is recognised.
    """
    paragraphs = [
        [_known_truth(lab, readings), _settings(readings)],
        [_dial(rises), _covered(covered)],
        [_replicas(reciprocal), _where_the_rule_fails(beyond)],
    ]
    return "\n\n".join(" ".join(sentences) for sentences in paragraphs)


def _known_truth(lab: pd.DataFrame, readings: pd.DataFrame) -> str:
    rows = lab[lab["respondent"] == RESPONDENT]
    most = rows["condition"].eq(WITH_LABEL) & rows["copies"].eq(rows["copies"].max())
    seen, unseen = rows[most], rows[rows["condition"] == UNSEEN]
    (side,) = readings.loc[readings["reading"] == RANGE_READING, ["stated", "verdict"]].itertuples()
    lies = (
        "For most sets of rows that were seen with their labels, the range lies "
        f"{SIDES[side.stated]} the truth"
    )
    if side.verdict == SUPPORTED:
        robust = "at every setting of the simulated respondent"
    else:
        robust = "but not so at every setting of the simulated respondent"
    return (
        f"{lies}, {robust}. With {seen['copies'].iloc[0]} copies of each row the true level is "
        f"{seen['true_contamination_pct'].mean():.0f} %. At the setting that we chose, the quiz "
        f"gives these rows a maximum of {seen['max_pct'].mean():.0f} %, and rows that the same "
        f"models never saw {unseen['max_pct'].mean():.0f} % (means over all benchmarks)."
    )


def _settings(readings: pd.DataFrame) -> str:
    n_same, n = int(readings["verdict"].eq(SUPPORTED).sum()), len(readings)
    if n_same == n:
        return f"All {in_words(n)} findings on these models are the same at every setting."
    verb = "is" if n_same == 1 else "are"
    if not n_same:
        return "No finding on these models is the same at every setting."
    return (
        f"Of {in_words(n)} findings on these models, only {in_words(n_same)} {verb} the same at "
        "every setting of the respondent. Do not transfer the others to a chat model."
    )


def _dial(rises: pd.DataFrame) -> str:
    raised = rises[rises["verdict"] == SUPPORTED]
    if raised.empty:
        return "We have not shown that natural paraphrases give the original away."
    return (
        "If paraphrases are edits with rarer words, as our dial makes them, they give the original "
        f"away: {in_words(len(raised))} of {in_words(len(rises))} respondents that never saw a row "
        "find it more often than with interchangeable paraphrases, by up to "
        f"{raised['rise_pct'].max():.0f} points."
    )


def _covered(covered: pd.DataFrame) -> str:
    n_good = int(covered["covered_share"].gt(0.5).sum())
    if n_good == len(covered):
        return (
            "If the model recognises every row it saw, the range contains the true level in most "
            "partitions, for all answer habits that we tried."
        )
    habits = "answer habit" if len(covered) == 1 else "answer habits"
    misses = covered.set_index("bias_profile")["mean_miss_pct"]
    of_model = misses[[str(name).startswith(f"{MODEL},") for name in misses.index]].iloc[0]
    return (
        "The formula itself has a fault too. Even if the model recognises every row it saw, the "
        f"range contains the true level in most partitions for {'only ' if n_good else ''}"
        f"{in_words(n_good)} of {in_words(len(covered))} {habits}. How much this matters depends "
        f"on the habit: on average, the range is {of_model:.1f} points from the truth with "
        f"that of {MODEL}, and {misses.max():.1f} points with “{misses.idxmax()}”."
    )


def _replicas(reciprocal: pd.DataFrame) -> str:
    counts = reciprocal["verdict"].value_counts()
    asked = reciprocal[reciprocal["n_replicas"] > 0]
    n_refuted, n_asked = int(counts.get(NOT_SUPPORTED, 0)), len(asked)
    claim = "The paper says that every replicated row is also answered right in the quiz."
    if n_refuted:
        n_at_no_letter = int((asked["n_right_any_quiz"] < asked["n_replicas"]).sum())
        return (
            f"{claim} At the best letter, this is refuted for {in_words(n_refuted)} of "
            f"{in_words(n_asked)} pairs of model and dataset (for {in_words(n_at_no_letter)} if a "
            "right answer at any letter counts)."
        )
    return (
        f"{claim} This is refuted for no pair of model and dataset, and supported for "
        f"{in_words(int(counts.get(SUPPORTED, 0)))} of {in_words(n_asked)}."
    )


def _where_the_rule_fails(beyond: pd.DataFrame) -> str:
    rows = beyond[(beyond["model"] == MODEL) & (beyond["control"] == FREQUENCY)]
    rows = rows[rows["verdict"] != NOT_RUN]
    ahead = rows.loc[rows["verdict"] == SUPPORTED, "dataset"].tolist()
    start = f"On the quizzes that {FREQUENCY} gets wrong, {MODEL} is shown to beat"
    if not ahead:
        return f"{start} every other rule on no dataset."
    return (
        f"{start} every other rule on {in_words(len(ahead))} of {in_words(len(rows))} datasets"
        f"{few_names(ahead)}. So these rules do not explain {MODEL}'s answers there. Memory is one "
        f"explanation. Others are a better rule, or that {MODEL} recognises its own style, because "
        "it wrote the rewrites."
    )
