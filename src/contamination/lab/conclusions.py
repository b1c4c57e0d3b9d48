"""Notebook 01: what its two controls allow to be concluded about the lab's texts."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import listed
from contamination.core.verdicts import SUPPORTED


def conclusion(overlaps: pd.DataFrame, dial: pd.DataFrame) -> str:
    """One paragraph: is training the only difference between members and non-members?

    Args:
        overlaps: split ("clean", "raw" and others), overlap_pct (non-members that share 13 words
            in a row with a member, 0 to 100) and holds.
        dial: rule, naturalness (0 to 1) and verdict of the claim that a rule without memory
            finds the originals more often than chance.
    """
    by_split = overlaps.set_index("split")
    shared = by_split.loc["clean", "overlap_pct"]
    passages = "Members and non-members share no thirteen words in a row"
    if shared:
        passages = f"{shared:.1f} % of the non-members share thirteen words in a row with a member"
    raw = (
        ". Had we assigned single pages and not removed repeated text, "
        f"{by_split.loc['raw', 'overlap_pct']:.0f} % of the non-members would share such a run "
        "with a member"
    )
    at_zero = dial[dial["naturalness"] == dial["naturalness"].min()]
    finders = at_zero.loc[at_zero["verdict"] == SUPPORTED, "rule"].tolist()
    rules = f"no rule that we tried ({listed(list(at_zero['rule']))}) is shown to find"
    if finders:
        finds = "finds" if len(finders) == 1 else "find"
        rules = f"a rule without memory ({listed(finders)}) {finds}"
    text = (
        f"Chance decided which families became members. {passages}{raw}. If an original and its "
        f"paraphrases are drawn alike (naturalness 0), {rules} the originals more often than "
        "chance. "
    )
    if shared or finders:
        return text + "So training is not the only difference, and no result below can be trusted."
    return text + (
        "So if a method finds more members or originals than chance would, it has found traces of "
        "training. Nobody can be so sure of a real benchmark. That is why the notebooks begin here."
    )
