"""Sentences that state a Min-k% result, each built from its table.

Each is tested with a table that confirms the paper's reading and one that
refutes it. An interval that holds 0.5 is "no better than chance".
"""

from __future__ import annotations

import pandas as pd

EXPECTED_MISSES_PCT = 5


def _auc(row: pd.Series) -> str:
    return f"{row['auc']:.2f} [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def null_sentence(null: pd.DataFrame) -> str:
    """How often an interval misses 0.5 when nothing was trained on."""
    parts = []
    for method, rows in null.groupby("method", sort=False):
        parts.append(f"{method} in {int(rows['misses'].sum())} of {len(rows)}")
    return (
        f"For two groups that were never trained on, the 95 % interval misses 0.5 for "
        f"{' and for '.join(parts)} deals; {EXPECTED_MISSES_PCT} % are expected."
    )


def leakage_sentence(
    clean: pd.Series, raw: pd.Series, clean_overlap: float, raw_overlap: float
) -> str:
    """What repeated text between members and non-members does.

    Args:
        clean, raw: Min-k% rows of the clean and of the raw split.
        clean_overlap, raw_overlap: share of non-members with a 13-gram of a member, percent.
    """
    text = (
        f"In the raw split {raw_overlap:.0f} % of non-members share 13 words with a member (clean "
        f"split: {clean_overlap:.0f} %). Min-k% Prob reaches {_auc(raw)} there and {_auc(clean)} "
        "in the clean one. "
    )
    if raw["ci_high"] < clean["ci_low"]:
        return text + "Repeated text makes non-members look like members and hides the difference."
    if raw["ci_low"] > clean["ci_high"]:
        return text + "The raw split looks easier, so more than leakage differs between the two."
    return text + "The intervals overlap, so no cost of leakage can be shown with so few passages."


def wikimia_sentence(rows: pd.DataFrame, blind: pd.DataFrame) -> str:
    """A lab model on the real WikiMIA, which it never read, beside the words alone.

    Args:
        rows: Min-k% rows of the lab model, one for each length, with the paper's
            average in paper_auc.
        blind: blind rows, one for each length and baseline.
    """
    best = blind.groupby("length")["auc"].max()
    found = ", ".join(f"{value:.2f} at {length} words" for length, value in best.items())
    values = ", ".join(f"{row['length']:.0f} words: {_auc(row)}" for _, row in rows.iterrows())
    at_chance = (rows["ci_low"] <= 0.5) & (rows["ci_high"] >= 0.5)
    text = (
        f"On the real WikiMIA the words alone, without any model, reach an AUC of {found}; the "
        f"paper prints {rows['paper_auc'].iloc[0]} for Min-k% Prob (average). A lab model that has "
        f"read no page of it: {values}. "
    )
    if at_chance.all():
        return text + "It stays at chance at every length, as it should."
    return text + (
        f"It stays at chance at {int(at_chance.sum())} of {len(rows)} lengths; elsewhere its "
        "scores follow the difference between the two groups of texts, which cannot be membership."
    )
