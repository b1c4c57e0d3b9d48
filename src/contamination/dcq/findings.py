"""Sentences that state a DCQ result, each built from its table.

The text changes when the numbers do; each function is tested with a table that
confirms the paper's reading and one that refutes it.
"""

from __future__ import annotations

import pandas as pd

from contamination.dcq.assessment import Assessment

NARROW_PCT = 30.0  # an interval wider than this says little about a share


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
        f"The interval [minimum, maximum] is {printed_width.median():.1f} points wide (median of "
        f"{len(published)} rows); the bootstrap interval of the maximum over instances is "
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
    if any_quiz == n:
        return counts + (
            "Every replica was right somewhere, but not in the quiz that the paper scores."
        )
    return counts + (
        "The paper reports a right answer for every replica; the released answers do not show "
        f"it: {n - any_quiz} replicas were right in no quiz at all."
    )


def control_sentence(controls: pd.DataFrame) -> str:
    """What share of the model's contamination level each rule without memory reaches.

    No rule is chosen after the fact: every one is reported on every pair.

    Args:
        controls: ``dcq_controls``, one row per rule, dataset and model.
    """
    reached = []
    for control, rows in controls.groupby("control", sort=False):
        n_equalled = int((rows["max_pct"] >= rows["paper_max_pct"]).sum())
        reached.append(
            f"{control} reaches {rows['reached_pct'].median():.0f} % of the model's level (median; "
            f"{rows['reached_pct'].min():.0f} to {rows['reached_pct'].max():.0f} %) and equals or "
            f"exceeds the model in {n_equalled} of {len(rows)} pairs"
        )
    text = f"Without having seen a single instance, {'; '.join(reached)}. "
    one_per_dataset = controls.drop_duplicates(["dataset", "control"])
    above = one_per_dataset[one_per_dataset["ci_low_pct"] > one_per_dataset["chance_pct"]]
    if above.empty:
        return text + (
            "No rule stands above chance on any dataset, so these quizzes cannot be solved by "
            "taste or by comparing the options; memory is the simpler reading of the model's level."
        )
    n_datasets = one_per_dataset["dataset"].nunique()
    return text + (
        f"A rule stands above chance on {above['dataset'].nunique()} of {n_datasets} datasets. "
        "There a right answer is no proof of memory: the quiz can be solved to that extent by the "
        "texts alone. It does not follow that the models had no memory: a model may use both, and "
        "these texts do not tell how much of each."
    )
