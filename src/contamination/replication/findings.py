"""Sentences that state a Time Travel result, each built from its table.

Each is tested with a table that confirms the paper's reading and one that
refutes it.
"""

from __future__ import annotations

import pandas as pd
from scipy import stats

from contamination.replication.algorithm1 import ALPHA
from contamination.replication.did_chatgpt_cheat import OUTCOMES
from contamination.replication.instructions import (
    GENERAL,
    GUIDED,
    WRONG_DATASET,
    WRONG_LABEL,
    WRONG_SPLIT,
)
from contamination.replication.published_tables import PRINTED_TESTS, RULE_JUDGE, USUAL_RULE
from contamination.replication.study import (
    ALGORITHM_1,
    ALGORITHM_2,
    DID_CHATGPT_CHEAT,
    ICL_JUDGE,
    OPTION_RANKING,
    PAIRED_BOOTSTRAP,
    SIGN_FLIPS,
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
    text = (
        f"The rule judge flags {len(flagged(RULE_JUDGE, 'guided'))} of {n} on the guided "
        f"completions and {len(general)} of {n} on the general ones, which name no dataset"
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
        "So for exact matches the rule is enough here, and for near-exact ones it is not: it "
        "counts shared words, also where one changed number or name makes another statement."
    )


# The lab

# A method and the instruction it reads, as ``study.by_dose`` names them.
LAB_METHODS = (
    (f"{ALGORITHM_1}, ROUGE-L, {PAIRED_BOOTSTRAP}", GENERAL),
    (f"{ALGORITHM_1}, ROUGE-L, {SIGN_FLIPS}", GENERAL),
    (f"{ALGORITHM_2}, rule judge", GUIDED),
    (OPTION_RANKING, GUIDED),
    (DID_CHATGPT_CHEAT, "first instances"),
)
SEEN_SHARE = 0.5  # share of partitions of a dose whose flags count as seeing the dose


def _of_method(doses: pd.DataFrame, method: str, instruction: str) -> pd.DataFrame:
    rows = doses[(doses["method"] == method) & (doses["instruction"] == instruction)]
    return rows.sort_values("copies")


def main_methods(doses: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``study.by_dose`` that the sentences speak of, with a column label."""
    parts = [
        _of_method(doses, method, instruction).assign(label=f"{method} ({instruction})")
        for method, instruction in LAB_METHODS
    ]
    return pd.concat(parts, ignore_index=True)


def numbers_of(lab: pd.DataFrame) -> str:
    """Partitions and instances behind a figure, for its title."""
    rows = lab[lab["method"] == OPTION_RANKING]
    n_clean = int((rows["copies"] == 0).sum())
    per_dose = (len(rows) - n_clean) // max(1, rows.loc[rows["copies"] > 0, "copies"].nunique())
    return f"{n_clean} clean partitions, {per_dose} per dose, {rows['n'].max()} instances each"


def clean_sentence(doses: pd.DataFrame) -> str:
    """Whether clean partitions are flagged more often than the tests' level allows.

    Args:
        doses: ``study.by_dose``.
    """
    counts, too_many = [], []
    for method, instruction in LAB_METHODS:
        rows = _of_method(doses, method, instruction).query("copies == 0")
        flagged, n = int(rows["n_flagged"].sum()), int(rows["n_partitions"].sum())
        counts.append(f"{method} {flagged}")
        p_value = stats.binomtest(flagged, n, ALPHA, alternative="greater").pvalue
        if p_value <= ALPHA:
            too_many.append(f"{method} (p {p_value:.3f})")
    text = (
        f"Flagged of {n} clean partitions: {'; '.join(counts)} (95 % interval of 0 of {n}: up to "
        f"{100 * share_interval(0, n)[1]:.0f} %). "
    )
    if not too_many:
        return text + f"No method flags more of them than a level of {100 * ALPHA:.0f} % allows."
    return text + f"More than a level of {100 * ALPHA:.0f} % allows: {'; '.join(too_many)}."


def first_dose_sentence(doses: pd.DataFrame) -> str:
    """The dose at which each method begins to see, and whether it sees the highest.

    A method sees a dose when it flags at least half of the partitions there and
    at every higher dose.

    Args:
        doses: ``study.by_dose``.
    """
    parts = []
    for method, instruction in LAB_METHODS:
        rows = _of_method(doses, method, instruction).query("copies > 0")
        seen = rows["n_flagged"] >= SEEN_SHARE * rows["n_partitions"]
        from_there = seen[::-1].cummin()[::-1]
        highest = rows.iloc[-1]
        last = f"{highest['n_flagged']} of {highest['n_partitions']} at {highest['copies']}"
        if from_there.any():
            parts.append(f"{method} from {rows.loc[from_there, 'copies'].min()} copies on ({last})")
        elif seen.any():
            some = ", ".join(str(copies) for copies in rows.loc[seen, "copies"])
            parts.append(f"{method} at {some} copies but not above ({last})")
        else:
            parts.append(f"{method} at none ({last})")
    n = int(doses.loc[doses["copies"] > 0, "n_partitions"].min())
    return (
        f"The methods see the contamination: {'; '.join(parts)}. With {n} partitions of a dose "
        f"these are coarse: the 95 % interval of {n} of {n} begins at "
        f"{100 * share_interval(n, n)[0]:.0f} %."
    )


def instruction_sentence(lab: pd.DataFrame) -> str:
    """What the general instruction and the placebos replicate at the highest dose.

    Args:
        lab: ``replication_lab``.
    """
    highest = lab["copies"].max()
    rows = lab[(lab["copies"] == highest) & (lab["method"] == ALGORITHM_2)]
    found = (rows["n_exact"] + rows["n_near_exact"]).groupby(rows["instruction"]).sum()
    asked = rows.groupby("instruction")["n_valid"].sum()
    shares = found / asked
    listed = ", ".join(f"{name} {found[name]:.0f} of {asked[name]:.0f}" for name in asked.index)
    text = f"Matches at {highest} copies: {listed}. "
    if shares[GENERAL] >= 0.5 * shares[GUIDED]:
        return text + (
            "The general instruction replicates too, so a difference between the two is small just "
            "where contamination is heaviest: Algorithm 1 needs texts that come back "
            "only when the dataset is named."
        )
    return text + "Without the names the model replicates less, as Algorithm 1 expects."


def placebo_sentence(lab: pd.DataFrame) -> str:
    """Whether the flags of Algorithm 1 rest on the right names.

    Args:
        lab: ``replication_lab``.
    """
    rows = lab[(lab["method"] == ALGORITHM_1) & (lab["metric"] == "ROUGE-L")]
    rows = rows[rows["test"] == PAIRED_BOOTSTRAP]
    flags = rows.pivot(index=["dataset", "split", "truth"], columns="instruction")["contaminated"]
    flags = flags.astype(bool)
    truth = flags.index.get_level_values("truth").to_numpy(dtype=bool)
    over_general = flags[GENERAL]
    names = flags[WRONG_DATASET] | flags[WRONG_SPLIT]
    n, n_also = int(over_general.sum()), int((over_general & names).sum())
    text = (
        f"Guided beats general in {n} of {len(flags)} partitions (by chance alone at most about "
        f"{ALPHA * len(flags):.1f})"
    )
    if n == 0:
        text += "; there is no gap for a placebo to explain."
    else:
        means = rows.pivot(index=["dataset", "split", "truth"], columns="instruction")
        means = means[over_general]
        placebo = float(means["mean"][[WRONG_DATASET, WRONG_SPLIT]].mean(axis=1).mean())
        guided, general = means["mean_guided"][GENERAL].mean(), means["mean"][GENERAL].mean()
        text += (
            f", and guided with a wrong dataset or split in {n_also} of these. There the mean "
            f"ROUGE-L is {guided:.2f} guided, {placebo:.2f} with a wrong name and {general:.2f} "
            "general: "
        )
        # Not to beat a placebo is no proof of equality; what the placebo keeps of the gap is.
        if placebo - general >= 0.5 * (guided - general):
            text += "most of the gap comes with the form of the prompt, without the right names."
        elif n_also * 2 >= n:
            text += "the right names matter."
        else:
            text += "whether the right names matter cannot be told."
    wrong = flags.get(WRONG_LABEL)
    if wrong is None:
        return text
    n_clean = int((wrong & ~truth).sum())
    text += f" It beats a wrong label in {n_clean} of {int((~truth).sum())} clean partitions"
    if n_clean > ALPHA * (~truth).sum():
        return text + ": a wrong label asks for another text, so it is no placebo for memory."
    return text + "."


def cheat_sentence(lab: pd.DataFrame) -> str:
    """What the three outcomes of Did-ChatGPT-Cheat? say about the truth.

    Args:
        lab: ``replication_lab``.
    """
    rows = lab[lab["method"] == DID_CHATGPT_CHEAT]
    parts = []
    for truth, kind in ((False, "clean"), (True, "contaminated")):
        some = rows[rows["truth"].astype(bool) == truth]["outcome"]
        counts = ", ".join(f"{outcome} {int(some.eq(outcome).sum())}" for outcome in OUTCOMES)
        parts.append(f"{len(some)} {kind} partitions: {counts}")
    text = f"Did-ChatGPT-Cheat? on {'; on '.join(parts)}. "
    share = rows.assign(is_suspicious=rows["outcome"].eq(OUTCOMES[1]))
    share = share.groupby(share["truth"].astype(bool))["is_suspicious"].mean()
    if share.get(False, 0) >= 0.5:
        return text + (
            "A clean partition is suspicious as a rule: the format is known from other data, so "
            "this outcome tells nothing."
        )
    return text + "Suspicion is rare where nothing was read, so this outcome carries information."


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
