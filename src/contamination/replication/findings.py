"""Sentences that state a Time Travel result, each built from its table (parts B and C).

Each is tested with a table that confirms the paper's reading and one that
refutes it.
"""

from __future__ import annotations

import pandas as pd

from contamination.replication.algorithm1 import ALPHA
from contamination.replication.instructions import (
    GENERAL,
    GUIDED,
    WRONG_DATASET,
    WRONG_SPLIT,
)
from contamination.replication.published_tables import PRINTED_TESTS, RULE_JUDGE, USUAL_RULE
from contamination.replication.study import (
    ALGORITHM_2,
    ICL_JUDGE,
)
from contamination.replication.study import RULE_JUDGE as LAB_RULE_JUDGE
from contamination.statistics import share_interval

NEAR_ALPHA = (0.001, 0.999)
FEWEST_OF_A_KIND = 3  # partitions of a kind below which right answers tell nothing
FEWEST_MATCHES = 5  # near-exact matches below which a judge's share says nothing


def test_choice_sentence(published: pd.DataFrame) -> str:
    """What the pairing, the kind of test and the correction do to the asterisks.

    Args:
        published: ``replication_published``.
    """
    n = len(published)
    count = {name: int(published[name].sum()) for name in published if name.startswith("sign")}
    printed = int(published["paper_significant"].sum())
    agree = int((published["significant"] == published["paper_significant"]).sum())
    text = (
        f"Of {n} tests the paper marks {printed}; the paired bootstrap marks "
        f"{count['significant']} and agrees with the print in {agree} of {n}. Resampling the two "
        f"samples apart, as the released code does, marks {count['significant_unpaired']}; sign "
        f"flips, an exact test of the same pairs, mark {count['significant_sign_flip']}. After "
        f"Holm's correction for {n} tests {count['significant_holm']} (bootstrap) and "
        f"{count['significant_sign_flip_holm']} (sign flips) remain. "
    )
    if len({*count.values()}) == 1:
        return text + "The choice of test changes nothing here."
    return text + "So how many tests are significant depends on the choice of test."


def power_sentence(published: pd.DataFrame) -> str:
    """Whether so few instances could pass a correction for so many tests at all.

    Args:
        published: ``replication_published``.
    """
    n_tests, n = len(published), int(published["n"].min())
    smallest, needed = 0.5**n, 0.05 / n_tests
    text = (
        f"With {n} instances the smallest p that sign flips can give is 1/{2**n} = {smallest:.5f}; "
        f"Holm's first limit for {n_tests} tests is 0.05/{n_tests} = {needed:.5f}. "
    )
    if smallest > needed:
        return text + (
            f"So no cell could pass, whatever the model knows: {n} instances are too few for "
            f"{n_tests} tests. What the bootstrap leaves standing rests on p values of nearly 0 "
            "that so few differences cannot support."
        )
    return text + "So a cell can pass if the effect is strong enough."


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
    """Table 1 beside the answer that needs no model, for each model and for both together.

    Args:
        success: ``replication_success``.
    """
    sentences = []
    for model, rows in success.groupby("model", sort=False):
        constant = rows[rows["test"] == "constant"].nlargest(1, "n_right").iloc[0]
        paper = rows[rows["test"].isin(PRINTED_TESTS)]
        total, n_contaminated = int(constant["n_partitions"]), int(constant["n_contaminated"])
        counts = ", ".join(f"{row.algorithm} {row.n_right}" for row in paper.itertuples())
        text = (
            f"{model}: {n_contaminated} of {total} partitions are contaminated by the human label; "
            f"answering “{constant['algorithm']}” is right in {int(constant['n_right'])}, {counts}."
        )
        if min(n_contaminated, total - n_contaminated) < FEWEST_OF_A_KIND:
            text += " With so few of one kind this comparison cannot separate the methods."
        else:
            better = paper[paper["n_right"] > constant["n_right"]]["algorithm"].tolist()
            text += f" Better than the constant answer: {', '.join(better) or 'none'}."
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
        low, high = share_interval(int(row["n_near_found"]), int(row["n_near"]))
        text += (
            f" On {model}'s completions: kappa {row['kappa']:.2f}, {row['n_near_found']:.0f} of "
            f"{row['n_near']:.0f} near-exact matches found (95 % interval {100 * low:.0f} to "
            f"{100 * high:.0f} %)"
        )
        text += ", too few to tell." if row["n_near"] < FEWEST_MATCHES else "."
    return text


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
    """Algorithm 2 by the rule judge on completions written without the dataset's name.

    Args:
        marks: ``replication_marks``.
    """

    def flagged(judge: str, instruction: str) -> pd.DataFrame:
        rows = marks[(marks["judge"] == judge) & (marks["instruction"] == instruction)]
        return rows[rows["mark"].ne("×")]

    n = int((marks["judge"].eq(RULE_JUDGE) & marks["instruction"].eq("guided")).sum())
    general = flagged(RULE_JUDGE, "general")
    low, high = share_interval(len(general), n)
    text = (
        f"The rule judge flags {len(flagged(RULE_JUDGE, 'guided'))} of {n} on the guided "
        f"completions and {len(general)} of {n} on the general ones (95 % interval "
        f"{100 * low:.0f} to {100 * high:.0f} %), which name no dataset"
    )
    if general.empty:
        return text + ": no flag arises without the dataset's name, which supports the paper."
    names = ", ".join(
        f"{row.model} on {row.dataset} {row.split} with a threshold of "
        f"{row.near_exact_threshold:.2f}"
        for row in general.itertuples()
    )
    n_usual = len(flagged(USUAL_RULE, "general"))
    text += f" ({names}). With the threshold that most partitions get, {n_usual} of {n} are flagged"
    if n_usual == 0:
        return text + (
            ": the flag is a mistake of the rule, whose threshold falls where this partition is "
            "left out, and none is due to the dataset's name. That supports the paper."
        )
    return text + (
        ": such a flag is either the rule's error or a sign that the model knows the instance "
        "without its name; the texts must be read to tell."
    )


def rescoring_sentence(rescored: pd.DataFrame, metric: str = "ROUGE-L") -> str:
    """Whether the released values of a metric follow from the released texts.

    Args:
        rescored: ``released.rescored``.
        metric: ROUGE-L or BLEURT.
    """
    column, differs = {"ROUGE-L": ("rouge", "differs"), "BLEURT": ("bleurt", "bleurt_differs")}[
        metric
    ]
    rows = rescored[rescored[differs].eq(True)]
    n, n_differing = len(rescored), len(rows)
    text = f"{n - n_differing} of {n} released {metric} values follow from the released texts"
    if n_differing == 0:
        return text + "."
    largest = (rows[column] - rows[f"released_{column}"]).abs().max()
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
        "So for exact matches the rule is enough here, and for near-exact ones it is not: it "
        "counts shared words, also where one changed number or name makes another statement."
    )


def own_sentence(table: pd.DataFrame) -> str:
    """Algorithm 2's decision on one's own partition beside its controls.

    Args:
        table: ``replication_own``; the ICL judge decides where there is one.
    """
    rows = table[table["method"] == ALGORITHM_2]
    judge = ICL_JUDGE if rows["metric"].eq(ICL_JUDGE).any() else LAB_RULE_JUDGE
    rows = rows[rows["metric"] == judge].set_index("instruction")
    guided = rows.loc[GUIDED]
    if guided["n_valid"] == 0:
        return f"The {judge} has no verdict on any guided completion: nothing can be said."
    text = (
        f"By the {judge} {guided['n_exact']} guided completions of {guided['n_valid']} are exact "
        f"and {guided['n_near_exact']} near-exact matches"
    )
    if not guided["contaminated"]:
        return text + ": no flag. That does not show that the model never read the partition."
    controls = rows.loc[[GENERAL, WRONG_DATASET, WRONG_SPLIT]]
    also = controls.index[controls["contaminated"].eq(True)].tolist()
    if also:
        return text + (
            f": a flag, but also with these instructions: {', '.join(also)}. The right names are "
            "not what it takes; either the model knows the texts by heart, or they follow from "
            "their first pieces. Read the completions to tell."
        )
    unheard = controls.index[controls["n_valid"] == 0].tolist()
    if unheard:
        return text + (
            f": a flag, but no verdict at all with these instructions: {', '.join(unheard)}. "
            "Without them it cannot be told whether the names matter."
        )
    return text + ": a flag, and none without the right names, as contamination would have it."


def operating_sentence(curves: pd.DataFrame) -> str:
    """What the rule of Algorithm 2 gains and loses with more instances.

    Args:
        curves: ``operating_curves``.
    """
    table = curves.set_index(["judge_error_pct", "true_share_pct", "k"])["flag_probability"]
    error, sizes = curves["judge_error_pct"].max(), sorted(curves["k"].unique())
    small, large = sizes[0], sizes[-1]
    share = min(share for share in curves["true_share_pct"].unique() if share >= 10)
    text = (
        f"With a judge that never errs and {share:.0f} % of instances replicated, a partition is "
        f"flagged with probability {table[0.0, share, small]:.2f} at k = {small} and "
        f"{table[0.0, share, large]:.2f} at k = {large}. With a judge that errs in {error:.0f} % "
        f"of completions a clean partition is flagged with {table[error, 0.0, small]:.2f} at "
        f"k = {small} and {table[error, 0.0, large]:.2f} at k = {large}. "
    )
    if table[error, 0.0, large] > ALPHA:
        return text + (
            f"So at this error the rule of one exact or two near-exact matches belongs to about "
            f"{small} instances: with more of them the judge's errors alone flag a partition."
        )
    return text + "So the rule stands more instances at this judge's error."
