"""What the rows of the paper's Table 2 and Figures 4 and 6 say, in sentences."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import interval_text, listed
from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.dice.answers import BASELINES
from contamination.dice.detector import MLP
from contamination.dice.family import SMALLEST, leaves_room
from contamination.dice.mixtures import SEEN, UNSEEN
from contamination.dice.paper_rows import FLAG_THRESHOLD
from contamination.dice.pool import CLEAN, CONTAMINATED


def summarize_layers(layers: pd.DataFrame, n_layers: int) -> str:
    """Whether all distances of one condition locate the same layer, and what training accounts for.

    ``layers`` are its located rows, as :func:`layer_rows`; ``n_layers`` the model's blocks.
    """
    located = sorted(set(layers["layer"]))
    of_layers = listed([str(layer) for layer in located])
    last = ", the last one" if located == [n_layers] else ""
    said = f"The {len(layers)} distances locate layer{'s' * (len(located) > 1)} {of_layers}{last}."
    known = layers.dropna(subset="ci_low")
    n_above, n_unknown = (known["ci_low"] > 0.5).sum(), len(layers) - len(known)
    said += (
        f" Of the {len(known)} shares with an interval, {n_above} lie above one half, before the "
        "correction for all tests."
    )
    if n_unknown:
        rest = layers.loc[layers["ci_low"].isna(), "share_from_training"]
        said += f" Of the {n_unknown} without one, {(rest > 0.5).sum()} lie above one half."
    return said


def summarize_fresh_questions(table_2: pd.DataFrame) -> str:
    """What contamination adds to telling any two models apart, on fresh questions.

    ``table_2`` as :func:`add_clean_difference`, with the verdicts of ``dice.family``.
    """
    is_row = table_2["trained_on"].eq(CONTAMINATED) & table_2["method"].eq(MLP)
    row = table_2[is_row & table_2["tested_on"].eq(UNSEEN)].iloc[0]
    between = interval_text(row["difference_low"], row["difference_high"])
    said = (
        f"On fresh questions, DICE tells contaminated from clean models with an AUROC of "
        f"{row['auroc_pct']:.1f} %, and two clean models apart with {row['two_clean_pct']:.1f} %. "
        f"The difference, taken before rounding, is {row['difference_pct']:+.1f} points {between}, "
        f"and the claim that it is above zero is {row['verdict']}. The other "
        f"{row['two_clean_pct'] - 50:.1f} points above chance come with any two models."
    )
    on_seen = table_2[is_row & table_2["tested_on"].eq(SEEN)]
    for clean in on_seen["two_clean_pct"].dropna():
        if not leaves_room(clean):
            said += (
                f" On {SEEN}, two clean models reach {clean:.1f} % already. This leaves no room "
                f"for a difference of {SMALLEST:.0f} points, so that row is inconclusive."
            )
    return said


def summarize_methods(table_2: pd.DataFrame) -> str:
    """On which sets a method that needs no training tells more than DICE, of Table 2's rows."""
    rows = table_2[table_2["trained_on"].eq(CONTAMINATED)]
    said = []
    for tested_on, of_set in rows.groupby("tested_on", sort=False):
        aurocs = of_set.set_index("method")["auroc_pct"]
        better = aurocs[[name for name in BASELINES if name in aurocs]]
        better = better[better > aurocs[MLP]].sort_values(ascending=False)
        if len(better):
            named = listed([f"{name} ({value:.0f} %)" for name, value in better.items()])
            said.append(f"On {tested_on}, {named} {'is' if len(better) == 1 else 'are'} above DICE "
                        f"({aurocs[MLP]:.0f} %) without any training.")  # fmt: skip
    return " ".join(said) or "On no set is a method without training above DICE."


def summarize_flags(table: pd.DataFrame) -> str:
    """Whether the flag follows the inflation, in conditions where a verdict says which it is.

    ``table`` as :func:`with_flags`, with the verdicts of ``dice.family``.
    """
    said, of_flags = [], []
    for word in (SUPPORTED, NOT_SUPPORTED):
        rows = table[table["verdict"] == word]
        shown = [
            f"{row.condition} ({row.inflation_points:+.0f} points, mean flag {row.flag:.2f})"
            for row in rows.itertuples()
        ]
        said.append(f"{word} for {listed(shown) if shown else 'no condition'}")
        if shown:
            n_flagged = rows["flagged"].eq(True).sum()
            of_flags.append(f"in {n_flagged} of {len(rows)} where the claim is {word}")
    n_open, n_failed = (table["verdict"].eq(word).sum() for word in (INCONCLUSIVE, CONTROL_FAILS))
    text = f"The claim that the score is inflated is {said[0]}, and {said[1]}. "
    if of_flags:
        text += f"The mean flag is above the paper's threshold of {FLAG_THRESHOLD} "
        text += f"{listed(of_flags)}. "
    text += f"The claim is inconclusive for {n_open} conditions, and the control fails for "
    text += f"{n_failed}."
    is_taken_back = table["verdict"].eq(INCONCLUSIVE) & table["ci_low"].gt(0) & table["p"].notna()
    for row in table[is_taken_back].itertuples():
        text += (
            f" The interval of {row.condition} lies above zero, but after the correction for all "
            f"tests its p-value is {row.p_adjusted:.2f}, so the claim stays {row.verdict}."
        )
    return text


def summarize_clean_flags(flagged: pd.DataFrame) -> str:
    """On which sets clean models are flagged on average, from the rows of :func:`flags`."""
    means = flagged[flagged["condition"] == CLEAN].groupby("benchmark", sort=False)["flag"].mean()
    above = means[means > FLAG_THRESHOLD]
    if above.empty:
        return "The mean flag of clean models is below the threshold on every set of questions."
    named = listed([f"{name} ({value:.2f})" for name, value in above.items()])
    return (
        f"Clean models are flagged too: their mean flag is above the threshold of {FLAG_THRESHOLD} "
        f"on {named}, although they saw no problem."
    )
