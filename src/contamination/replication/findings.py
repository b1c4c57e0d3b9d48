"""Sentences that state a Time Travel result, each built from its table.

Each is tested with a table that confirms the paper's reading and one that
refutes it.
"""

from __future__ import annotations

import pandas as pd

from contamination.replication.published_tables import PRINTED_TESTS

NEAR_ALPHA = (0.001, 0.999)


def test_choice_sentence(published: pd.DataFrame) -> str:
    """What the pairing and the correction do to the asterisks.

    Args:
        published: ``replication_published``.
    """
    n = len(published)
    paired = int(published["significant"].sum())
    unpaired = int(published["significant_unpaired"].sum())
    holm = int(published["significant_holm"].sum())
    printed = int(published["paper_significant"].sum())
    agree = int((published["significant"] == published["paper_significant"]).sum())
    text = (
        f"Of {n} tests the paper marks {printed}; the exact paired test marks {paired} and agrees "
        f"with the print in {agree} of {n}. Resampling the two samples apart, as the released "
        f"code does, marks {unpaired}; with Holm's correction for {n} tests, {holm} remain. "
    )
    if holm == paired == unpaired:
        return text + "The choice of test changes nothing here."
    return text + "So how many partitions Algorithm 1 flags depends on the choice of test."


def seed_sentence(published: pd.DataFrame) -> str:
    """Cells whose asterisk a random seed can turn on or off."""
    low, high = NEAR_ALPHA
    unsure = published[published["chance_significant"].between(low, high)]
    if unsure.empty:
        return "No cell lies so close to 0.05 that the seed of 10,000 resamples could flip it."
    cells = "; ".join(
        f"{row.model} {row.dataset} {row.split} {row.metric} (exact p {row.p_paired:.4f}, "
        f"marked with {100 * row.chance_significant:.0f} % of seeds)"
        for row in unsure.itertuples()
    )
    return f"{len(unsure)} cells depend on the seed of 10,000 resamples: {cells}."


def success_sentence(success: pd.DataFrame) -> str:
    """Table 1 beside the answer that needs no model.

    Args:
        success: ``replication_success``.
    """
    sentences = []
    for model, rows in success.groupby("model", sort=False):
        constant = rows[rows["test"] == "constant"].nlargest(1, "n_right").iloc[0]
        paper = rows[rows["test"].isin(PRINTED_TESTS)]
        beaten = paper[paper["n_right"] > constant["n_right"]]
        total = int(constant["n_partitions"])
        text = f"{model}: answering “{constant['algorithm']}” is right in "
        text += f"{int(constant['n_right'])} of {total} partitions; "
        if len(beaten):
            names = ", ".join(f"{row.algorithm} ({row.n_right})" for row in beaten.itertuples())
            text += f"better than that: {names}."
        else:
            text += "no algorithm does better."
        sentences.append(text)
    return " ".join(sentences)


def judge_sentence(agreement: pd.DataFrame) -> str:
    """How far the judge agrees, where it matters: on near-exact matches and per model.

    Args:
        agreement: ``judge_agreement``.
    """
    rows = agreement[
        (agreement["judge"] == "GPT-4 ICL") & (agreement["reference"] == "annotator 1")
    ].set_index("subset")
    every = rows.loc["all"]
    without = rows.loc["all, without prompt examples"]
    text = (
        f"The judge agrees with the annotators on {every['n_agree']:.0f} of {every['n']:.0f} "
        f"completions (kappa {every['kappa']:.2f}); most are plain inexact matches. Of "
        f"{every['n_near']:.0f} near-exact matches it finds {every['n_near_found']:.0f}; without "
        f"the instances that its own prompt explains, {without['n_near_found']:.0f} of "
        f"{without['n_near']:.0f} (kappa {without['kappa']:.2f})."
    )
    for model in ("GPT-4", "GPT-3.5"):
        row = rows.loc[model]
        text += (
            f" On {model}'s completions: kappa {row['kappa']:.2f}, "
            f"{row['n_near_found']:.0f} of {row['n_near']:.0f} near-exact matches found."
        )
    poor = [model for model in ("GPT-4", "GPT-3.5") if rows.loc[model, "kappa"] <= 0]
    if poor:
        return text + f" On {' and '.join(poor)} that is no better than chance agreement."
    return text + " Agreement is better than chance for both models."


def annotator_sentence(agreement: pd.DataFrame) -> str:
    """Whether two annotators are two opinions."""
    row = agreement[(agreement["judge"] == "annotator 2") & (agreement["subset"] == "all")].iloc[0]
    if row["n_agree"] == row["n"]:
        return (
            f"The released labels of the two annotators are the same in all {row['n']:.0f} cases, "
            "so they cannot tell how far two people would differ."
        )
    return (
        f"The two annotators agree in {row['n_agree']:.0f} of {row['n']:.0f} cases "
        f"(kappa {row['kappa']:.2f}), which bounds what any judge can reach."
    )


def false_positive_sentence(marks: pd.DataFrame) -> str:
    """Algorithm 2 on completions written without dataset and split names.

    Args:
        marks: ``replication_marks``.
    """
    general = marks[marks["instruction"] == "general"]
    guided = marks[
        (marks["judge"] == general["judge"].iloc[0]) & (marks["instruction"] == "guided")
    ]
    n_general, n_guided = int(general["mark"].ne("×").sum()), int(guided["mark"].ne("×").sum())
    text = (
        f"The rule judge flags {n_guided} of {len(guided)} partitions on the guided completions "
        f"and {n_general} of {len(general)} on the general ones, which name no dataset. "
    )
    if n_general == 0:
        return text + "So no flag arises without the dataset's name."
    flagged = general[general["mark"].ne("×")]
    names = ", ".join(f"{row.model} on {row.dataset} {row.split}" for row in flagged.itertuples())
    return text + (
        f"A flag can therefore arise without the dataset's name ({names}): either the model knows "
        "the instance anyway, or its completion follows from the first piece."
    )


def rescoring_sentence(rescored: pd.DataFrame) -> str:
    """Whether the released ROUGE-L values follow from the released texts.

    Args:
        rescored: ``released.rescored``.
    """
    n, n_differing = len(rescored), int(rescored["differs"].sum())
    text = f"{n - n_differing} of {n} released ROUGE-L values follow from the released texts"
    if n_differing == 0:
        return text + "."
    rows = rescored[rescored["differs"]]
    largest = (rows["rouge"] - rows["released_rouge"]).abs().max()
    partitions = rows[["model", "dataset", "split"]].drop_duplicates().agg(" ".join, axis=1)
    return text + (
        f"; {n_differing} do not ({', '.join(partitions)}; "
        f"the largest difference is {largest:.3f})."
    )


def text_rule_sentence(agreement: pd.DataFrame) -> str:
    """What a rule that reads strings can and cannot stand in for.

    Args:
        agreement: ``released.rule_agreement``; the first row covers all completions.
    """
    row = agreement.iloc[0]
    text = (
        f"On the {row['n']:.0f} completions of the DCQ repository the rule judge agrees with "
        f"GPT-4 on {row['n_agree']:.0f} (kappa {row['kappa']:.2f}). It flags "
        f"{row['n_near_flagged']:.0f} as near-exact where GPT-4 sees {row['n_near']:.0f}, and "
        f"{row['n_near_found']:.0f} are the same; Algorithm 2 decides alike in "
        f"{row['n_partitions_right']:.0f} of {row['n_partitions']:.0f} partitions. "
    )
    if row["n_near_found"] * 2 >= max(row["n_near"], row["n_near_flagged"]):
        return text + "So on near-exact matches the two mostly agree."
    return text + (
        "So exact matches need no judge, and near-exact ones do: the rule counts shared words, "
        "also where one changed number or name makes another statement."
    )
