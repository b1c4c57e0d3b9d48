"""Sentences on partitions whose contamination is known, each built from its table (part A).

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
from contamination.replication.study import (
    ALGORITHM_1,
    ALGORITHM_2,
    DID_CHATGPT_CHEAT,
    OPTION_RANKING,
    PAIRED_BOOTSTRAP,
    SIGN_FLIPS,
)
from contamination.statistics import share_interval

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
    counts, too_many, highest = [], [], 0.0
    for method, instruction in LAB_METHODS:
        rows = _of_method(doses, method, instruction).query("copies == 0")
        flagged, n = int(rows["n_flagged"].sum()), int(rows["n_partitions"].sum())
        low, high = stats.binomtest(flagged, n).proportion_ci(method="exact")
        counts.append(f"{method} {flagged} ({100 * low:.0f} to {100 * high:.0f} %)")
        highest = max(highest, high)
        p_value = stats.binomtest(flagged, n, ALPHA, alternative="greater").pvalue
        if p_value <= ALPHA:
            too_many.append(f"{method} (p {p_value:.3f})")
    text = (
        f"Flagged of {n} clean partitions, with the exact 95 % interval of the rate: "
        f"{'; '.join(counts)}. "
    )
    level = f"{100 * ALPHA:.0f} %"
    if too_many:
        return text + f"Above a rate of {level}: {'; '.join(too_many)}."
    text += f"For no method is a rate above {level} shown"
    if highest > ALPHA:
        return text + f"; so few partitions do not exclude rates of up to {100 * highest:.0f} %."
    return text + "."


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
