"""Sentences of notebook 09: what is recomputed, and what the first detector study shows."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from contamination.core.tables import listed, p_text
from contamination.core.verdicts import ALPHA, INCONCLUSIVE, SUPPORTED
from contamination.dcq.comparison import COVERAGE, QUARTER
from contamination.study import first_study, protocol
from contamination.study.conditions import (
    CLEAN,
    DOSED,
    FRESH,
    PARAPHRASE,
    TRUTHS,
    VERBATIM,
    WITHOUT_LABEL,
)
from contamination.study.four_methods import REPLICATION
from contamination.study.pretraining_findings import copies_words
from contamination.study.pretraining_scores import display_name

SUCCESSOR = (
    "These models saw little but benchmark rows after their pretraining, and benchmarks usually "
    "leak in another way. So choose a detector by the second study (notebook 09b), which inserts "
    "single rows into the pretraining."
)
NOTICED = {
    VERBATIM: "rows that a model saw verbatim",
    PARAPHRASE: "rows of which it saw one paraphrase",
}


def conclusion(brief: str, readings: pd.DataFrame) -> str:
    """Two paragraphs: what is recomputed, and what the controls leave.

    Args:
        brief: of ``readings.recomputed_in_brief``.
        readings: of ``readings.of_released_answers``.
    """
    arithmetic = f"{brief} This checks the papers' arithmetic. It repeats none of their experiments"
    columns = ["Method", "The paper's claim", "Our reading"]
    left = [
        f"- {method.partition(']')[0].removeprefix('[')}. Claim: {claim}. Our reading: {reading}."
        for method, claim, reading in readings[columns].itertuples(index=False)
    ]
    bullets = "\n".join(left)
    return f"{arithmetic}.\n\nWhat do the controls leave?\n\n{bullets}"


def _noticed(cells: pd.DataFrame) -> str:
    k, n = int(cells["verdict"].eq(SUPPORTED).sum()), len(cells)
    return f"{k or 'none'} of {n} detectors {'notices' if k < 2 else 'notice'}"


def summarize_counting(rules: pd.DataFrame) -> str:
    """Where the two ways of counting E disagree on whether the chosen rule does as well.

    ``rules`` as ``dcq_rules``, of one model.
    """
    chosen = rules[rules["chosen_on_others"] & rules["counted"].isin([COVERAGE, QUARTER])]
    words = chosen.pivot(index="dataset", columns="counted", values="word")
    leads = chosen.pivot(index="dataset", columns="counted", values="difference_pct")
    apart = leads[words[COVERAGE].eq(SUPPORTED) ^ words[QUARTER].eq(SUPPORTED)]
    text = (
        f"We count {rules['model'].iloc[0]}'s answer E (none of the texts) in two ways, and a "
        "verdict must be the same in both: E is a quarter of a right answer, or the rule skips as "
        "many quizzes as the model does."
    )
    if apart.empty:
        return f"{text} They agree on where the rule does as well as the model."
    named = [
        f"{name} ({row[QUARTER]:+.0f} points in the first, {row[COVERAGE]:+.0f} in the second)"
        for name, row in apart.iterrows()
    ]
    rule = chosen["control"].iloc[0]
    return (
        f"{text} They disagree about the rule “{rule}” on {listed(named)}, rule minus model. So "
        f"the verdict there is {INCONCLUSIVE}."
    )


def summarize_power(shown: pd.DataFrame) -> str:
    """What *supported* means, shown by the weakest power that is; ``shown`` as ``evasion.csv``."""
    text = (
        f"Supported means more flags than the {100 * ALPHA:.0f} % of chance. It does not mean that "
        "most models are flagged"
    )
    found = shown[shown["verdict"].eq(SUPPORTED)]
    if found.empty:
        return f"{text}. Here no cell is supported."
    low = found.loc[found["power_at_5_fpr"].idxmin()]
    return (
        f"{text}: the lowest supported power is that of {low['method']} "
        f"({low['condition'].removeprefix('dosed, ')}), {low['n_detected']} of {low['n_models']} "
        f"base models ({100 * low['power_at_5_fpr']:.0f} %)."
    )


def summarize_other_rule(sets: pd.DataFrame, methods: Sequence[str]) -> str:
    """Where a paraphrase is rarely flagged, what its mean AUC is, which notebook 09b tests.

    ``sets`` as in ``protocol``, of one benchmark and dose.
    """
    is_asked = sets["detector"].isin(methods) & sets["condition"].eq(PARAPHRASE)
    by_method = sets[is_asked & sets["model"].eq(DOSED)].groupby("detector")
    found = by_method.agg(auc=("value", "mean"), n=("p", "size"))
    found["n_flagged"] = by_method["p"].agg(lambda p: int(p.le(ALPHA).sum()))
    rule = (
        "This table counts the models in which a test is significant. Notebook 09b tests the mean "
        "AUC of the same scores instead, which can show an effect that is too weak for a test of "
        "one model."
    )
    if found.empty:
        return rule
    name = found["auc"].idxmax()
    row = found.loc[name]
    text = (
        f"{rule} {name}, for example, flags {row['n_flagged']:.0f} of {row['n']:.0f} models that "
        f"saw one paraphrase of each row, and its mean AUC is {row['auc']:.2f}"
    )
    if round(row["auc"], 2) <= 0.5:
        return f"{text}, so a test of the mean finds nothing either."
    return f"{text} (chance: 0.50). So the two verdicts may differ."


def summarize_false_alarms(sets: pd.DataFrame, gate_table: pd.DataFrame) -> str:
    """Which exact tests flag too many clean sets, and what all unseen sets together say of them.

    Args:
        sets: as in ``protocol``, of the lab's first study.
        gate_table: of ``gates.gate_table``, without the protocol's own controls.
    """
    is_high = gate_table["is_exact"] & gate_table["calibration"].eq(protocol.MISCALIBRATED)
    high = gate_table.loc[is_high, "detector"].unique().tolist()
    if not high:
        return "No exact test is shown to flag more unseen datasets than it may."
    counts = []
    for name in high:
        own = sets[sets["detector"].eq(name) & sets["model"].eq(CLEAN)]["p"].dropna()
        n, k = len(own), int(own.le(ALPHA).sum())
        p = p_text(protocol.binomial_p(k, n, ALPHA))
        counts.append(f"{name} flags {k} of {n} ({ALPHA * n:.0f} expected, {p})")
    alarms = first_study.false_alarms(sets)
    together = alarms[alarms["detector"].isin(map(display_name, high))]
    pooled = [
        f"{row.n_flagged} of {row.n_sets} for {row.detector}" for row in together.itertuples()
    ]
    failed = alarms.loc[~alarms["holds"], "detector"].tolist()
    checked = (
        f"After Holm's correction for {len(alarms)} detectors and controls, none of these counts "
        "is shown to exceed 5 %, so we see no sign of a fault in the code"
    )
    if failed:
        checked = f"That is more than 5 % for {listed(failed)}, so the code needs a look"
    return (
        f"Too many datasets are flagged under clean models: {listed(counts)}. These p-values treat "
        "the datasets as independent, which they are not. If we add the unseen datasets of models "
        f"that saw other rows, the counts are {listed(pooled)}. {checked}."
    )


def summarize_copies(pairs: pd.DataFrame, evasion: pd.DataFrame, copies: int) -> str:
    """How much a comparison at few copies hides, by the detector that gains most from more.

    Args:
        pairs: of ``protocol.detector_pairs``.
        evasion: as ``evasion.csv``, of the benchmark of the pairs.
        copies: of the pairs.
    """
    verbatim = evasion[evasion["condition"].eq(VERBATIM)]
    verbatim = verbatim[verbatim["method"].isin({*pairs["detector"], *pairs["other"]})]
    flags = verbatim.pivot(index="method", columns="copies", values="n_detected")
    most = flags.columns.max()
    gain = flags[most] - flags[copies]
    name, n = gain.idxmax(), verbatim["n_models"].max()
    text = f"The protocol fixed {copies_words(copies)} for this comparison"
    if gain[name] <= 0:
        return f"{text}. With {copies_words(most)} no detector flags more models."
    return (
        f"{text}, and the order may differ at another number: {name} flags "
        f"{flags.loc[name, copies]:.0f} of {n} base models with {copies_words(copies)} and "
        f"{flags.loc[name, most]:.0f} with {copies_words(most)}."
    )


def summarize_unseen(evidence: pd.DataFrame) -> str:
    """Why so many partitions that no model saw are inconclusive for Replication, if they are."""
    is_asked = evidence["method"].eq(REPLICATION.name) & evidence["truth"].eq(TRUTHS[FRESH])
    own = evidence[is_asked]
    open_ = own[own["verdict"].eq(INCONCLUSIVE)]
    if open_.empty:
        return "Replication says something definite about every partition that no model saw."
    return (
        f"Of the {len(own)} partitions that no model saw, {len(open_)} are {INCONCLUSIVE} for "
        f"Replication, because a partition has only {open_['n'].max():.0f} rows. The upper end of "
        f"the interval is at least {100 * open_['ci_high'].min():.0f} %, even where no row "
        "matches, so a small effect cannot be ruled out."
    )


def summarize_real(evasion: pd.DataFrame, detectors: Sequence[str], copies: int) -> str:
    """How often the detectors of tokens flag the real model, by what it saw of the rows.

    ``evasion`` as ``lab_panel.evasion_table`` of the real model.
    """
    own = evasion[evasion["method"].isin(detectors) & evasion["copies"].eq(copies)]
    by_condition = own.groupby("condition")["n_detected"].agg(["min", "max"])
    n = own["n_models"].max()

    def of(condition: str) -> str:
        low, high = by_condition.loc[condition]
        return f"{low} of {n}" if low == high else f"{low} to {high} of {n}"

    verbatim, paraphrase = (by_condition.loc[name] for name in (VERBATIM, PARAPHRASE))
    meaning = "The table does not show that a paraphrase is harder to notice than the row itself."
    if paraphrase["max"] < verbatim["min"]:
        meaning = "All of them flag fewer models that saw a paraphrase than the row itself."
    return (
        f"With {copies_words(copies)}, the {own['method'].nunique()} detectors that use token "
        f"probabilities flag {of(VERBATIM)} fine-tuned models if they saw the rows verbatim, "
        f"{of(WITHOUT_LABEL)} if without the label and {of(PARAPHRASE)} if they saw a paraphrase "
        f"({of(FRESH)} for rows that we did not add). {meaning}"
    )
