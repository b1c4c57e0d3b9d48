"""Notebook 01: what its two controls allow to be concluded about the lab's texts."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import auc_text, listed
from contamination.core.verdicts import SUPPORTED


def conclusion(overlaps: pd.DataFrame, dial: pd.DataFrame) -> str:
    """One paragraph: is training the only difference between members and non-members?

    Args:
        overlaps: split ("one per family", "whole families", "raw" and others), overlap_pct
            (non-members that share 13 words in a row with a member, 0 to 100), and the AUC of a
            classifier that sees the words alone, with its interval: auc, ci_low, ci_high.
        dial: rule, naturalness (0 to 1) and verdict of the claim that a rule without memory
            finds the originals more often than chance.
    """
    by_split = overlaps.set_index("split")
    ours, whole = by_split.loc["one per family"], by_split.loc["whole families"]
    passages = "Members and non-members share no thirteen words in a row, and"
    if ours["overlap_pct"]:
        passages = (
            f"{ours['overlap_pct']:.1f} % of the non-members share thirteen words in a row with a "
            "member, and"
        )
    is_told = not ours["ci_low"] <= 0.5 <= ours["ci_high"]
    passages += (
        f" a classifier that sees only the words {'tells' if is_told else 'is not shown to tell'} "
        f"them apart (AUC {auc_text(ours)}). Had we assigned single pages and not removed "
        f"repeated text, {by_split.loc['raw', 'overlap_pct']:.0f} % of the non-members would share "
        f"such a run with a member. With all passages of whole families, the classifier's AUC "
        f"would be {auc_text(whole)}."
    )
    at_zero = dial[dial["naturalness"] == dial["naturalness"].min()]
    finders = at_zero.loc[at_zero["verdict"] == SUPPORTED, "rule"].tolist()
    rules = f"no rule that we tried ({listed(list(at_zero['rule']))}) is shown to find"
    if finders:
        finds = "finds" if len(finders) == 1 else "find"
        rules = f"a rule without memory ({listed(finders)}) {finds}"
    text = (
        f"We take one passage from each family, and chance decides which are members. {passages} "
        f"If an original and its paraphrases are drawn alike (naturalness 0 of the benchmark "
        f"topics), {rules} the originals more often than chance. "
    )
    if ours["overlap_pct"] or is_told or finders:
        return text + "So training is not the only difference, and no result below can be trusted."
    return text + (
        "The controls are not precise enough to show that nothing else differs. The random draws "
        "are the reason to expect it, and the controls do not speak against it. So if a method "
        "finds clearly more members or originals than chance would, it has found traces of "
        "training. Nobody can be so sure of a real benchmark. That is why the notebooks begin here."
    )
