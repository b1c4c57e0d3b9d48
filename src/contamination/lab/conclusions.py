"""Notebook 01: what its two controls allow to be concluded about the lab's texts."""

from __future__ import annotations

import pandas as pd

from contamination.core.claims import CLAIMS
from contamination.core.tables import auc_text, listed
from contamination.core.verdicts import NOT_SUPPORTED, SUPPORTED

_CLAIM = CLAIMS["naturalness"]
_LIMIT = _CLAIM.null + _CLAIM.smallest_effect


def conclusion(overlaps: pd.DataFrame, dial: pd.DataFrame) -> str:
    """Three paragraphs: passages, quiz, and whether training is the only difference.

    Args:
        overlaps: as :func:`splits_reading` takes them.
        dial: as :func:`dial_reading` takes it.
    """
    by_split = overlaps.set_index("split")
    ours = by_split.loc["one per family"]
    shared = "no non-member shares thirteen words in a row with a member"
    if ours["overlap_pct"]:
        shared = (
            f"{ours['overlap_pct']:.1f} % of the non-members share thirteen words in a row with "
            "a member"
        )
    passages = (
        "The passages: we take one from each family, and chance decides which are members. Then "
        f"{shared}. A classifier that sees only the words reaches AUC {auc_text(ours)}, "
        f"and this interval {'excludes' if _tells(ours) else 'contains'} one half. With as many "
        "passages, but each family on one side, it reaches "
        f"{auc_text(by_split.loc['fewer passages'])}. If we assigned single pages and kept "
        f"repeated text, {by_split.loc['raw', 'overlap_pct']:.0f} % of the non-members would "
        "share such a run with a member."
    )
    at_zero = dial[dial["naturalness"] == dial["naturalness"].min()]
    finders = at_zero.loc[at_zero["verdict"] == SUPPORTED, "rule"].tolist()
    quiz = (
        "The quiz: an original and its paraphrases are drawn alike (naturalness "
        f"{at_zero['naturalness'].iloc[0]:g} on the benchmark topics). Then {_found(at_zero)}, and "
        f"guessing finds {_CLAIM.null:.0f} %. {_verdicts(at_zero)}"
    )
    if ours["overlap_pct"] or _tells(ours) or finders:
        follows = "So training is not the only difference, and no later result can be trusted."
    else:
        follows = (
            "What follows: we trust these passages because chance decided the role of each of "
            "them separately, after repeated text was removed, and this quiz because all its texts "
            "are drawn alike. The controls look for mistakes, and here they found none. So if a "
            "detector finds clearly more members or originals than chance would, it has found "
            "traces of training. Nobody can be so sure of a real benchmark, and that is why the "
            "notebooks begin here."
        )
    return "\n\n".join([passages, quiz, follows])


def splits_reading(overlaps: pd.DataFrame) -> str:
    """Which splits pass both controls, and one point for each split, in the order of the table.

    Args:
        overlaps: split (the five of the notebook), overlap_pct (non-members that share 13 words
            in a row with a member, 0 to 100), holds, and the AUC of a classifier that sees the
            words alone, with its interval: auc, ci_low, ci_high.
    """
    passing = overlaps.loc[overlaps["holds"], "split"].tolist()
    first = "No split passes both controls."
    if passing:
        first = f"{listed(passing)} pass both controls."
    if len(passing) == 1:
        first = f"Only one split passes both controls: {passing[0]}."
    points = [f"- {row['split']}: {_POINTS[row['split']](row)}" for _, row in overlaps.iterrows()]
    clean = overlaps[overlaps["overlap_pct"] == 0]
    not_enough = "\n\nSo it is not enough to remove repeated text."
    last = not_enough if any(_tells(row) for _, row in clean.iterrows()) else ""
    return first + "\n\n" + "\n".join(points) + last


def splits_title(overlaps: pd.DataFrame) -> str:
    """The title of the figure: for which splits the words alone tell members apart."""
    names = [row["split"] for _, row in overlaps.iterrows() if _tells(row)]
    if not names:
        return "Words alone tell members from\nnon-members in no split"
    return f"Words alone tell members from\nnon-members in {len(names)} of {len(overlaps)} splits"


def _tells(row: pd.Series) -> bool:
    return not row["ci_low"] <= 0.5 <= row["ci_high"]


def _words(row: pd.Series) -> str:
    if _tells(row):
        return f"the words tell members from non-members (AUC {auc_text(row)})."
    return f"the AUC is {auc_text(row)}, and its interval contains one half."


def _whole(row: pd.Series) -> str:
    why = (
        " Each family has its own vocabulary, and all its passages are on the same side. Once the "
        "classifier has learned from a few of them, it can guess where the others belong."
    )
    return _words(row) + why * _tells(row)


def _one_each(row: pd.Series) -> str:
    why = ""
    if not _tells(row):
        why = " No family occurs twice, so the classifier cannot learn a family's vocabulary."
        if row["auc"] < 0.5:
            why += (
                " In more than half of the pairs the non-member gets the higher score. Luck is "
                "enough to explain this, because the passages are few."
            )
    return _words(row) + why


def _fewer(row: pd.Series) -> str:
    if _tells(row):
        return _words(row) + " So one per family does not pass merely because it is small."
    return (
        _words(row)
        + " So with so few passages the control overlooks the vocabulary of the families."
    )


def _version(row: pd.Series) -> str:
    why = " Old and new pages use different words, and pages from one family are often on one side."
    return _words(row) + why * _tells(row)


def _raw(row: pd.Series) -> str:
    shared = (
        f"{row['overlap_pct']:.0f} % of the non-members share a 13-gram with a member, so a model "
        "that was trained on the members knows parts of them."
    )
    if _tells(row):
        return f"{shared} Also, {_words(row)}"
    return f"{shared} The words are no help, because each family is on both sides."


_POINTS = {
    "whole families": _whole,
    "one per family": _one_each,
    "fewer passages": _fewer,
    "by version": _version,
    "raw": _raw,
}


def base_model_reading(model: pd.Series) -> str:
    """What a base model is, from its row of ``lab_models``."""
    n_added = model["n_contaminated"]
    saw = "no text but the background" if not n_added else f"{n_added:,} texts of other kinds, too"
    return (
        f"The base model is a transformer that predicts the next token (the architecture of "
        f"Llama, {model['n_layers']} layers, {model['n_parameters'] / 1e6:.1f} million "
        f"parameters). It was trained on {model['n_tokens']:,} tokens and saw {saw}."
    )


def dial_reading(dial: pd.DataFrame) -> str:
    """What the two rules find at the ends of the dial, and where they differ most.

    Args:
        dial: rule, naturalness (0 to 1), "found %" with its interval (ci_low, ci_high, percent),
            and verdict of the claim that a rule without memory finds the originals more often
            than chance.
    """
    lowest, highest = dial["naturalness"].min(), dial["naturalness"].max()
    at_zero, at_one = (dial[dial["naturalness"] == value] for value in (lowest, highest))
    text = f"At {lowest:g}, {_found(at_zero)}. {_verdicts(at_zero)}"
    for _, row in dial.iterrows():
        is_below = row["ci_high"] < _LIMIT
        if is_below and f"{row['ci_high']:.1f}" == f"{_LIMIT:.1f}":
            text += (
                f" (The interval of {row['rule']} ends only just below that, at "
                f"{row['ci_high']:.3f} %, so this verdict is a close one.)"
            )
    text += f" At {highest:g}, {_found(at_one)}."
    found = dial.pivot(index="naturalness", columns="rule", values="found %")
    widest = (found.max(axis=1) - found.min(axis=1)).idxmax()
    if lowest < widest < highest:
        text += (
            f" The two rules differ most at {widest:g}, where {found.loc[widest].idxmax()} finds "
            f"{found.loc[widest].max():g} % and {found.loc[widest].idxmin()} "
            f"{found.loc[widest].min():g} %. There, some slots are drawn anew, so a paraphrase can "
            "have more common words than the original."
        )
    return text


def _found(rows: pd.DataFrame) -> str:
    parts = [f"{row['rule']} {row['found %']:g} %" for _, row in rows.iterrows()]
    parts[0] = f"{rows['rule'].iloc[0]} finds {rows['found %'].iloc[0]:g} %"
    return f"{listed(parts)} of the originals"


def _verdicts(rows: pd.DataFrame) -> str:
    """Which rules find the originals more often than chance, by their verdicts."""
    finders = rows.loc[rows["verdict"] == SUPPORTED, "rule"].tolist()
    if finders:
        finds = "finds" if len(finders) == 1 else "find"
        return f"So without memory, {listed(finders)} {finds} the originals more often than chance."
    if (rows["verdict"] == NOT_SUPPORTED).all():
        return f"Their intervals end below {_LIMIT:.0f} %, so neither rule is of much help."
    unsure = rows.loc[rows["verdict"] != NOT_SUPPORTED, "rule"].tolist()
    return f"Whether a rule beats chance there is inconclusive for {listed(unsure)}."
