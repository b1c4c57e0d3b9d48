"""Sentences that state a DCQ result, each built from its table (parts B and C).

The text changes when the numbers do; each function is tested with a table that
confirms the paper's reading and one that refutes it.
"""

from __future__ import annotations

import pandas as pd

from contamination.dcq.assessment import Assessment
from contamination.dcq.comparison import (
    AS_WELL,
    BETTER,
    BEYOND,
    CANNOT_TELL,
    NOT_BEYOND,
    TOO_FEW,
    WORSE,
)

NARROW_PCT = 30.0  # an interval wider than this says little about a share
VERDICTS = (BETTER, AS_WELL, WORSE, BEYOND, NOT_BEYOND, CANNOT_TELL, TOO_FEW)


def assessment_sentence(found: Assessment) -> str:
    """One assessment in words."""
    at = ", ".join(found.least_preferred) or "none, so all four are quizzed"
    return (
        f"Least preferred: {at}. The original is found most often at {found.best_position}: "
        f"maximum {100 * found.maximum:.2f} %. Kappa is {100 * found.kappa:.2f} %, the "
        f"second-largest share {100 * found.second:.2f} %; the larger of the two is the minimum, "
        f"{100 * found.minimum:.2f} %."
    )


def position_sentence(positions: pd.DataFrame, panels: list[tuple[str, str, str]]) -> str:
    """How far the original draws the answers to its position (Figure 2), GPT-4.

    Args:
        positions: ``dcq_positions``.
        panels: (dataset, split, position of the original).
    """
    moves, follows = [], []
    for dataset, split, at in panels:
        rows = positions.query(
            "model == 'GPT-4' and dataset == @dataset and split == @split and option == @at"
            " and position in ['', @at]"
        )
        counts = rows["count"].fillna(rows["paper_count"]).groupby(rows["quiz"]).first()
        if not {"modified", "standard"} <= set(counts.index):
            continue
        modified, standard = counts["modified"], counts["standard"]
        moves.append(f"{dataset} {split}: {modified} to {standard} answers at {at}")
        follows.append(standard > modified)
    text = f"From the modified to the standard quiz, {'; '.join(moves)}. "
    if all(follows):
        return text + "In every panel answers move to the original, as the paper reports."
    return text + (
        f"Answers move to the original in {sum(follows)} of {len(follows)} panels only, against "
        "what the paper reports."
    )


def audit_sentence(audit: pd.DataFrame) -> str:
    """What the released options give away without any quiz.

    Args:
        audit: ``audit_options``.
    """
    always = audit[audit["n_option_d_is_original"] == audit["n"]]
    n_rows = int(always["n"].sum())
    if always.empty:
        text = "In no dataset is option D always the original. "
    else:
        text = (
            f"In all {n_rows} rows of {len(always)} datasets ({', '.join(always['dataset'])}) "
            "option D is the original instance: their fourth perturbation is not released, so "
            "the modified quiz of these datasets cannot be asked again as it was. "
        )
    alone = audit[audit["n_line_breaks_alone"] > 0]
    if len(alone):
        cases = ", ".join(
            f"{row.n_line_breaks_alone} of {row.n} rows of {row.dataset}"
            for row in alone.itertuples()
        )
        text += f"In {cases} the number of line breaks alone tells the original from the others."
    else:
        text += "Line breaks give no original away."
    return text


def interval_sentence(published: pd.DataFrame) -> str:
    """Where the printed interval hides how little the quiz says.

    Args:
        published: ``dcq_published``.
    """
    printed_width = published["max_pct"] - published["min_pct"]
    width = published["ci_high_pct"] - published["ci_low_pct"]
    inside = width.le(printed_width)
    text = (
        f"The range from minimum to maximum is {printed_width.median():.1f} points wide (median "
        f"of {len(published)} rows); the bootstrap interval of the maximum over instances is "
        f"{width.median():.1f} points wide"
    )
    if inside.any():
        text += f", narrower than the printed one in {int(inside.sum())} rows"
    wide = published[width.gt(NARROW_PCT)]
    if wide.empty:
        return text + f". No row is wider than {NARROW_PCT:.0f} points."
    rows = "; ".join(
        f"{row.model} on {row.dataset}: {row.max_pct:.0f} % with "
        f"[{row.ci_low_pct:.0f}, {row.ci_high_pct:.0f}] %"
        for row in wide.itertuples()
    )
    return text + (
        f". Wider than {NARROW_PCT:.0f} points: {rows}. There the best position is close to the "
        "limit of least preferred ones, so other instances of the same partition could have "
        "ruled it out."
    )


def reciprocal_sentence(reciprocal: pd.DataFrame) -> str:
    """Does every replica come with a right answer, as appendix C says?

    Args:
        reciprocal: ``dcq_reciprocal``.
    """
    n = int(reciprocal["n_replicas"].sum())
    if n == 0:
        return "No instance was replicated, so there is nothing to compare."
    best = int(reciprocal["n_right_best_quiz"].sum())
    any_quiz = int(reciprocal["n_right_any_quiz"].sum())
    expected = float(reciprocal["expected_if_independent"].sum())
    counts = (
        f"Of {n} exact or near-exact replicas, {best} were answered right in the best quiz and "
        f"{any_quiz} in at least one quiz; were replicas answered like any instance, "
        f"{expected:.1f} would be right in the best quiz. "
    )
    if best == n:
        return counts + "This confirms the paper: every replica comes with a right answer."
    largest = reciprocal.groupby("dataset")["n_replicas"].sum().idxmax()
    rest = reciprocal[reciprocal["dataset"] != largest]
    if rest["n_replicas"].sum():
        counts += (
            f"Without {largest}, which holds most replicas, {rest['n_right_best_quiz'].sum()} of "
            f"{rest['n_replicas'].sum()} are right in the best quiz "
            f"({rest['expected_if_independent'].sum():.1f} expected) and "
            f"{rest['n_right_any_quiz'].sum()} in at least one. "
        )
    if any_quiz == n:
        counts += "Every replica was right somewhere, but not in the quiz that the paper scores. "
    else:
        counts += (
            "The paper reports a right answer for every replica; the released answers do not show "
            f"it: {n - any_quiz} replicas were right in no quiz at all. "
        )
    return counts + (
        "With so few replicas independence is neither refuted nor shown; what falls is the claim "
        "of perfect agreement."
    )


def verdict_counts(rows: pd.DataFrame) -> str:
    """How often each verdict was given, "better on 1, worse on 9 of 10 datasets".

    Args:
        rows: of ``dcq_rules`` or ``dcq_beyond_rules``, one for each dataset.
    """
    counts = rows["verdict"].value_counts()
    parts = [f"{verdict} on {counts[verdict]}" for verdict in VERDICTS if verdict in counts]
    return f"{', '.join(parts)} of {len(rows)} datasets"


def rules_sentence(rules: pd.DataFrame) -> str:
    """Every rule against every model, the one first that the other datasets choose.

    Args:
        rules: ``dcq_rules``.
    """
    rules = rules.drop_duplicates(["model", "dataset", "control"])
    chosen = rules[rules["chosen_on_others"]]
    names = ", ".join(chosen["control"].unique())
    parts = [
        f"against {model} {verdict_counts(rows)}"
        for model, rows in chosen.groupby("model", sort=False)
    ]
    text = (
        f"The rule chosen on the other datasets ({names}), E counted at equal coverage and at a "
        f"quarter: {'; '.join(parts)}. All rules: "
    )
    parts = [
        f"{control} against {model} {verdict_counts(rows)}"
        for (control, model), rows in rules.groupby(["control", "model"], sort=False)
    ]
    return text + f"{'; '.join(parts)}."


def beyond_sentence(beyond: pd.DataFrame, control: str) -> str:
    """Is a model right where a rule fails, more often than the other rules are?

    Args:
        beyond: ``dcq_beyond_rules``.
        control: the rule that fails.
    """
    rows = beyond[beyond["control"] == control]
    parts = [
        f"{model} {verdict_counts(of_model)}"
        for model, of_model in rows.groupby("model", sort=False)
    ]
    return f"Right where {control} is wrong: {'; '.join(parts)}."


# Part C


def snapshots_sentence(own: pd.DataFrame) -> str:
    """Appendix A: does a newer snapshot refuse the quiz, or answer it with letters?

    Args:
        own: ``dcq_own``, one row per model.
    """
    parts = [
        f"{row.model}: {row.n_letters} letters A to D, {row.n_none} E, {row.n_refused} refused, "
        f"{row.n_unparsable} without a single letter, {row.n_error} errors of {row.n_asked} "
        f"answers; level [{row.min_pct:.1f}, {row.max_pct:.1f}] %"
        for row in own.itertuples()
    ]
    text = f"{'. '.join(parts)}. "
    if len(own) < 2:
        return text.rstrip()
    if own["n_refused"].sum() == 0 and own[["n_unparsable", "n_error"]].to_numpy().any():
        return text + "No refusal was recognised, but not every answer came as a letter."
    if own["n_refused"].sum() == 0:
        return text + "No snapshot refuses: a single letter passes the filters, as appendix A says."
    return text + (
        "Refusals do occur, against what appendix A reports: a single letter does not pass every "
        "filter. They count as wrong answers, so the levels cannot be compared as they are."
    )


def own_control_sentence(controls: pd.DataFrame) -> str:
    """Can these quizzes be solved without memory?

    Args:
        controls: ``dcq_own_controls``, one row per model and rule.
    """
    parts, reached = [], []
    for model, rows in controls.groupby("model", sort=False):
        rules = ", ".join(
            f"{row.control} {row.max_pct:.0f} % (chance {row.chance_pct:.0f} %)"
            for row in rows.itertuples()
        )
        parts.append(
            f"{model} {rows['model_max_pct'].iloc[0]:.0f} %, rules at its positions {rules}"
        )
        names = rows.loc[rows["max_pct"] >= rows["model_max_pct"], "control"]
        reached += [f"that of {model} by {', '.join(names)}"] if len(names) else []
    text = f"Maximum: {'; '.join(parts)}. "
    above = controls[controls["ci_low_pct"] > controls["chance_pct"]]["control"].unique()
    if len(above):
        text += (
            f"Above chance without memory: {', '.join(above)}. So the texts give part of the "
            "originals away, and a right answer alone is no proof of memory. "
        )
    else:
        text += "No rule stands above chance: none of them finds the originals in these quizzes. "
    if reached:
        return text + f"The level is reached without memory: {'; '.join(reached)}."
    return text + "No rule reaches the level of a model."


def perturbation_sentence(counts: pd.DataFrame) -> str:
    """How reliably the perturber gave distinct options.

    Args:
        counts: the second table of ``perturbation.perturb``.
    """
    total = counts.drop(columns=["index", "is_complete"]).sum()
    return (
        f"{int(counts['is_complete'].sum())} of {len(counts)} instances got all options in "
        f"{total['n_calls']} calls; {total['n_missing']} options were missing, "
        f"{total['n_repeated']} repeated another, {total['n_identical']} equalled the original; "
        f"{total['n_refused']} calls were refused and {total['n_error']} failed."
    )
