"""Sentences that state a Min-k% result, each built from its table.

Each is tested with a table that confirms the paper's reading and one that
refutes it. An interval that holds 0.5 is "no better than chance".
"""

from __future__ import annotations

import pandas as pd

EXPECTED_MISSES_PCT = 5


def _auc(row: pd.Series) -> str:
    return f"{row['auc']:.2f} [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def copies_sentence(rows: pd.DataFrame) -> str:
    """Does the AUC of Min-k% Prob rise with the number of copies read?

    Args:
        rows: Min-k% rows over the models together, one for each number of copies,
            the AUC of the best blind baseline on the same passages in blind_auc.
    """
    rows = rows.sort_values("copies")
    points = "; ".join(f"{row['copies']:.0f}: {_auc(row)}" for _, row in rows.iterrows())
    rises = rows["auc"].is_monotonic_increasing
    text = f"Min-k% Prob by copies: {points}. "
    text += (
        "The AUC rises with every step. "
        if rises
        else "The AUC does not rise with every step, so the dose is not the whole story here. "
    )
    seen = rows[rows["ci_low"] > 0.5]
    if seen.empty:
        text += "No dose is told from chance. "
    else:
        text += f"The first dose whose interval lies above 0.5 is {seen['copies'].min():.0f}. "
    low, high = rows["blind_auc"].min(), rows["blind_auc"].max()
    return text + f"The best blind baseline reaches {low:.2f} to {high:.2f} on the same passages."


def versions_sentence(rows: pd.DataFrame) -> str:
    """Does Min-k% Prob tell the version that was read from the one that was not?

    Args:
        rows: Min-k% rows on two versions of the same texts, one for each model;
            copies 0 for the model that read neither.
    """
    points = "; ".join(f"{row['model']} {_auc(row)}" for _, row in rows.iterrows())
    seen = (rows.loc[rows["copies"] > 0, "ci_low"] > 0.5).all()
    unseen = (rows.loc[rows["copies"] == 0, "ci_low"] > 0.5).any()
    text = f"Read against unread version: {points}. "
    if unseen:
        return text + "The model that read neither tells them apart too: that is not memory."
    if seen:
        return text + "Only the model that read one of them tells them apart."
    return text + "Neither model tells them apart."


def methods_sentence(rows: pd.DataFrame, difference: tuple[float, float]) -> str:
    """Which methods find members at all, and whether Min-k% Prob beats perplexity.

    Args:
        rows: one row per method, over the models together.
        difference: paired interval of AUC(Min-k% Prob) - AUC(PPL).
    """
    low, high = difference
    above = rows[rows["ci_low"] > 0.5]
    best = rows.loc[rows["auc"].idxmax()]
    text = (
        f"{len(above)} of {len(rows)} methods have an interval above 0.5; the highest AUC is "
        f"{best['method']} with {_auc(best)}. Against perplexity (PPL), Min-k% Prob differs by "
        f"[{low:+.3f}, {high:+.3f}]"
    )
    if low > 0:
        return text + ": better, as in the paper."
    if high < 0:
        return text + ": worse, against the paper."
    return text + ": no difference can be told here, where the paper finds one of 0.05 on average."


def blind_sentence(blind: pd.DataFrame, setting: str) -> str:
    """What the words alone say about membership.

    Args:
        blind: rows of ``blind_baselines`` of one setting.
        setting: how the sentence calls it.
    """
    best = blind.loc[blind["auc"].idxmax()]
    text = f"{setting}: {best['baseline']}, without any model, reaches {_auc(best)}"
    if best["ci_low"] > 0.5:
        return text + (
            ". Members and non-members can be told apart by the text, so an AUC of a detector on "
            "these passages is no evidence of membership."
        )
    return text + ", no better than chance: the words do not explain an AUC above 0.5 here."


def null_sentence(null: pd.DataFrame) -> str:
    """How often an interval misses 0.5 when nothing was trained on."""
    parts = []
    for method, rows in null.groupby("method", sort=False):
        parts.append(f"{method} in {int(rows['misses'].sum())} of {len(rows)}")
    return (
        f"For two groups that were never trained on, the 95 % interval misses 0.5 for "
        f"{' and for '.join(parts)} deals; {EXPECTED_MISSES_PCT} % are expected."
    )


def trend_sentence(rows: pd.DataFrame, column: str, paper: str) -> str:
    """Whether an AUC rises along a column, and what the paper says.

    Args:
        rows: Min-k% rows, one for each value of ``column``.
        column: what varies, such as length or n_parameters.
        paper: the paper's direction, a clause.
    """
    rows = rows.sort_values(column)
    points = "; ".join(f"{getattr(row, column):,.0f}: {row.auc:.2f}" for row in rows.itertuples())
    first, last = rows.iloc[0], rows.iloc[-1]
    text = f"Min-k% Prob by {column.replace('n_', '')}: {points}. The paper: {paper}. "
    if last["ci_low"] > first["ci_high"]:
        return (
            text + "Here the last lies above the first beyond both intervals: the same direction."
        )
    if last["ci_high"] < first["ci_low"]:
        return (
            text + "Here the last lies below the first beyond both intervals: the other direction."
        )
    return text + "Here the intervals of first and last overlap: no direction can be told."


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


def sweep_sentence(sweep: pd.DataFrame, k_percent: float) -> str:
    """The k chosen on one half, and what it is worth on the other beside the paper's.

    Args:
        sweep: as ``study.swept_k`` returns it.
        k_percent: the k used everywhere else.
    """
    best = sweep[sweep["is_best"]].iloc[0]
    text = (
        f"On the first half k = {best['k_percent']:.0f} is best with "
        f"{best['auc_chosen_on']:.2f}; on the other half it reaches {best['auc_held_out']:.2f}"
    )
    same = sweep[sweep["k_percent"] == k_percent]
    if same.empty or best["k_percent"] == k_percent:
        return text + "."
    here = same["auc_held_out"].iloc[0]
    text += f", where k = {k_percent:.0f} reaches {here:.2f}"
    if best["auc_held_out"] > here:
        return text + ": the choice carries over."
    return text + ": the choice does not carry over."


def date_sentence(rows: pd.DataFrame, arm: str) -> str:
    """What of an AUC under a date split the base model has already, without reading a member.

    Args:
        rows: Min-k% rows of one arm: the model that read the members, and the base
            model (copies 0).
        arm: how the sentence calls it.
    """
    base, dosed = (rows[rows["copies"].eq(0) == is_base].iloc[0] for is_base in (True, False))
    text = f"{arm}: Min-k% Prob reaches {_auc(dosed)}, and {_auc(base)} under the base model"
    if base["ci_low"] <= 0.5 <= base["ci_high"]:
        return text + ", which stays at chance."
    return text + (
        ", which has read neither group: here an AUC away from 0.5 needs no membership at all."
    )


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
