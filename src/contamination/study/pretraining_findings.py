"""What the pretraining study found, in sentences and one table, all computed from its tables."""

from __future__ import annotations

import pandas as pd

from contamination.core.claims import CLAIMS
from contamination.core.statistics import CHANCE
from contamination.core.tables import interval_text, listed, p_text
from contamination.core.verdicts import ALPHA, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.study.conditions import PARAPHRASE, WITHOUT_LABEL
from contamination.study.row_pools import CHAT

SMALLEST_FALL = CLAIMS["pretraining_later"].smallest_effect  # of an AUC
WORDS = {0: "none", 1: "one", 4: "four", 16: "sixteen"}
# Headings of the table by access.
# What a model saw of a row, after a number of copies.
FORMS = {
    PARAPHRASE: "of a paraphrase",
    WITHOUT_LABEL: "without the label",
    CHAT: "in a chat template",
}


def copies_words(copies: int) -> str:
    """A number of copies within a sentence.

    >>> copies_words(1), copies_words(16), copies_words(7)
    ('one copy', 'sixteen copies', '7 copies')
    """
    return f"{WORDS.get(copies, copies)} {'copy' if copies == 1 else 'copies'}"


def percent(share_pct: float) -> str:
    """A small share in percent with two digits that count.

    >>> percent(0.00412), percent(0.0659)
    ('0.0041 %', '0.066 %')
    """
    return f"{share_pct:.2g} %"


def n_decimals(row: pd.Series, decimals: int = 2) -> int:
    """Decimals of an AUC: one more where a supported claim's interval would seem to reach 0.50."""
    is_close = round(row["ci_low"], decimals) == CHANCE
    return decimals + (row.get("verdict") == SUPPORTED and is_close)


def of_auc(row: pd.Series, decimals: int = 2) -> str:
    """An AUC with its interval and ``n_decimals``; without an interval where nothing varies.

    >>> row = pd.Series({"auc": 0.521, "ci_low": 0.502, "ci_high": 0.541, "verdict": SUPPORTED})
    >>> of_auc(row), of_auc(row.replace(SUPPORTED, NOT_SUPPORTED))
    ('0.521 [0.502, 0.541]', '0.52 [0.50, 0.54]')
    """
    if pd.isna(row["ci_low"]):
        return f"{row['auc']:.{decimals}f} (the same under every model)"
    decimals = n_decimals(row, decimals)
    ends = interval_text(row["ci_low"], row["ci_high"], decimals)
    return f"{row['auc']:.{decimals}f} {ends}"


def cell_texts(table: pd.DataFrame) -> list[str]:
    """AUC, interval and verdict of every row, as cells of one table.

    Cells that look alike and have different verdicts show three decimals and the adjusted p.

    Args:
        table: auc, ci_low, ci_high, verdict ("" without a claim) and p_adjusted.
    """
    short = [of_auc(row) for _, row in table.iterrows()]
    plain = [of_auc(row) for _, row in table.assign(verdict="").iterrows()]
    verdicts = table["verdict"].tolist()
    told: dict[str, set[str]] = {}
    for text, verdict in zip(plain, verdicts, strict=True):
        told.setdefault(text, set()).update({verdict} - {""})
    cells = []
    for (_, row), text, alike in zip(table.iterrows(), short, plain, strict=True):
        if row["verdict"] and len(told[alike]) > 1:
            text = f"{of_auc(row.drop('verdict'), 3)}, {p_text(row['p_adjusted'])}"
        cells.append(": ".join(filter(None, [text, row["verdict"]])))
    return cells


def flags_text(row: pd.Series) -> str:
    """How many of the single tests, one for each model and benchmark, are significant.

    >>> flags_text(pd.Series({"n_flagged": 11, "n_tests": 60}))
    '11 of 60'
    """
    return f"{row['n_flagged']} of {row['n_tests']}"


def _counts(verdicts: pd.Series) -> dict[str, int]:
    return {word: int(verdicts.eq(word).sum()) for word in (SUPPORTED, NOT_SUPPORTED, INCONCLUSIVE)}


def _how_many(k: int, n: int, noun: str = "detectors") -> str:
    """A share of all in words: "none of the 15 detectors", "all 15 detectors", "3 of 15"."""
    return {0: f"none of the {n} {noun}", n: f"all {n} {noun}"}.get(k, f"{k} of {n} {noun}")


def figure_title(detection: pd.DataFrame) -> str:
    """The finding: how many detectors are above chance at the fewest and at the most copies."""
    lines = ["Shown to be above chance on average:"]
    for copies in (detection["copies"].min(), detection["copies"].max()):
        verdicts = detection.loc[detection["copies"].eq(copies), "verdict"]
        who = _how_many(_counts(verdicts)[SUPPORTED], len(verdicts))
        lines.append(f"{who} at {copies_words(copies)}")
    return "\n".join(lines)


def summarize_detection(
    detection: pd.DataFrame, reference: pd.DataFrame, controls: pd.DataFrame
) -> str:
    """F1 in a paragraph: how many detectors find each number of copies, next to the attack.

    Tables as of ``pretraining_results``.
    """
    attack = reference[~reference["is_exploratory"]].set_index("copies")
    # The detectors that were asked on most benchmarks; the attack is asked on as many.
    every = max(detection["benchmarks"].unique(), key=lambda names: names.count(", "))
    sentences = []
    for place, (copies, of_dose) in enumerate(detection.groupby("copies")):
        share = percent(attack.loc[copies, "row_share_pct"])  # a mean over all benchmarks
        what = f"{copies_words(copies)} ({share})"
        if not place:
            what = f"{copies_words(copies)} of a row ({share} of the training tokens)"
        what = f"{what[0].upper()}{what[1:]} {'is' if copies == 1 else 'are'}"
        sentences.append(f"{what} {_detected(of_dose, every)}.")
        sentences += _nearly(of_dose)
        about = "The reference attack"
        about += "" if place else ", which knows what the other models saw,"
        sentences.append(f"{about} reaches {of_auc(attack.loc[copies])}.")
    failed = controls[~controls["holds"]]
    names = listed(list(dict.fromkeys((controls if failed.empty else failed)["detector"])))
    if failed.empty:
        sentences.append(f"None of the controls ({names}) is supported.")
    else:
        sentences.append(
            f"A control fails: by the same rule {names} would be supported, so these verdicts "
            "cannot be trusted."
        )
    return " ".join(sentences)


def _detected(of_dose: pd.DataFrame, every: str) -> str:
    """By how many detectors rows at one dose are detected, after "is".

    A best detector that was asked on fewer than ``every`` benchmark is compared with the attack on
    the same ones.
    """
    counts, n = _counts(of_dose["verdict"]), len(of_dose)
    if not counts[SUPPORTED]:
        return f"not detected by any of the {n} detectors: {_said(counts)}"
    best = of_dose[of_dose["verdict"].eq(SUPPORTED)]
    best = best.loc[best["auc"].idxmax()]
    who = _how_many(counts[SUPPORTED], n)
    name = best["detector"]
    if best["benchmarks"] != every:
        benchmarks = listed(best["benchmarks"].split(", "))
        name += f", asked on {benchmarks} alone, where the attack reaches {best['lira_auc']:.2f}"
    chance = ALPHA * best["n_tests"]
    return (
        f"detected by {who}, and the best ({name}) reaches an AUC of {of_auc(best)} and is "
        f"significant in {flags_text(best)} single tests, where chance gives {chance:.0f}"
    )


def _nearly(of_dose: pd.DataFrame) -> list[str]:
    """Detectors whose interval lies above one half although their p-value is too large."""
    is_near = of_dose["ci_low"].gt(CHANCE) & of_dose["p_adjusted"].gt(ALPHA)
    names = of_dose.loc[is_near, "detector"].tolist()
    if not names:
        return []
    whose = "its" if len(names) == 1 else "their"
    return [
        f"For {listed(names)}, the interval lies above one half as well, but {whose} corrected "
        f"p-value is above {ALPHA}."
    ]


def _said(counts: dict[str, int]) -> str:
    """How the claims end that are not supported."""
    parts = [
        f"{counts[word]} {'claim is' if counts[word] == 1 else 'claims are'} {word}"
        for word in (NOT_SUPPORTED, INCONCLUSIVE)
        if counts[word]
    ]
    return " and ".join(parts)


def summarize_indirect_exposure(indirect: pd.DataFrame) -> str:
    """F2 in a paragraph: how many detectors find rows of which the model saw another form."""
    sentences = []
    for (form, copies), rows in indirect.groupby(["exposure", "copies"], sort=False):
        best = rows.loc[rows["auc"].idxmax()]
        what = f"{copies_words(copies)} {FORMS[form]}"
        verb = "is" if copies == 1 else "are"
        who = _how_many(_counts(rows["verdict"])[SUPPORTED], len(rows))
        sentences.append(
            f"{what[0].upper()}{what[1:]} {verb} detected by {who}; the highest AUC is "
            f"{of_auc(best)} ({best['detector']}), and this detector reaches "
            f"{best['verbatim_auc']:.2f} on other rows with as many verbatim copies."
        )
    return " ".join(sentences)


def summarize_later_training(later: pd.DataFrame) -> str:
    """F3 in a paragraph: whether clean training afterwards lowers the AUC, at the largest dose."""
    names = later["detector"].unique()
    counts, n = _counts(later["verdict"]), len(later)
    copies = later["copies"].max()
    sentences = []
    for n_tokens, rows in later[later["copies"].eq(copies)].groupby("later_tokens"):
        left = rows.loc[rows["verdict"].ne(SUPPORTED), "detector"].tolist()
        who = _how_many(len(rows) - len(left), len(rows), "token detectors")
        who += f" (all but {listed(left)})" if 0 < len(left) <= len(rows) / 2 else ""
        sentences.append(
            f"After {n_tokens:,} further clean tokens, a fall in AUC for rows with "
            f"{copies_words(copies)} is supported for {who}. The mean AUC of all {len(names)} goes "
            f"from {rows['auc_before'].mean():.2f} to {rows['auc_after'].mean():.2f}."
        )
    rest = _said(counts)
    sentences.append(
        f"Over all doses and token counts, {counts[SUPPORTED]} of {n} such claims are supported"
        f"{'; ' + rest if rest else ''}."
    )
    if later["ci_high"].lt(SMALLEST_FALL).all():
        sentences.append(
            f"All {n} intervals end below {SMALLEST_FALL}, so every fall is smaller than one that "
            "matters."
        )
    return " ".join(sentences)
