"""Sentences that state a DICE result, each built from its table.

Each is tested with a table that confirms the paper's reading and one that
refutes it. Intervals are over models.
"""

from __future__ import annotations

import pandas as pd

from contamination.dice import controls
from contamination.dice.mixtures import SEEN, SYN, UNSEEN
from contamination.dice.pool import CLEAN

FLAG_THRESHOLD = 0.5  # Figure 6(a) reads predictions above it as contaminated


def _pct(row: pd.Series) -> str:
    text = f"{row['auroc_pct']:.0f}"
    if pd.isna(row["ci_low"]):
        return text
    return f"{text} [{row['ci_low']:.0f}, {row['ci_high']:.0f}]"


def _row(table: pd.DataFrame, control: str) -> pd.Series:
    return table[table["control"] == control].iloc[0]


def accuracy_sentence(accuracy: pd.DataFrame, condition: str) -> str:
    """Does contamination inflate the score on GSM-i, and what happens elsewhere?

    Args:
        accuracy: ``dice_accuracy``.
        condition: the contaminated models.
    """
    clean, contaminated = (accuracy[accuracy["condition"] == name] for name in (CLEAN, condition))

    def gain(benchmarks: pd.Series, column: str) -> float:
        means = [
            rows[rows["benchmark"].isin(benchmarks)][column].mean()
            for rows in (contaminated, clean)
        ]
        return float(means[0] - means[1])

    ood = contaminated.loc[~contaminated["in_distribution"], "benchmark"].unique()
    seen, fresh = (gain([name], "accuracy_pct") for name in (SEEN, UNSEEN))
    text = (
        f"{condition} against clean: {seen:+.0f} points on {SEEN}, {fresh:+.0f} on fresh {UNSEEN}"
    )
    if len(ood):
        elsewhere = gain(ood, "accuracy_pct")
        likelihood = gain(ood, "answer_log_prob")
        text += f", {elsewhere:+.0f} on other distributions"
        text += f" (answer log-probability {likelihood:+.2f} nats for a token)"
    if seen > fresh + 5:
        return f"{text}. The score on {SEEN} is inflated: fresh questions do not follow."
    return f"{text}. No inflation: fresh questions do as well, so there is no false score to flag."


def layers_sentence(layers: pd.DataFrame, condition: str) -> str:
    """Which layer is located, and whether two clean models differ there as much.

    Args:
        layers: ``dice_layers``.
        condition: the contaminated models.
    """
    rows = layers[(layers["model"] == condition) & layers["located"]]
    found = {row.distance: int(row.layer) for row in rows.itertuples()}
    by_rule = "; ".join(f"{name}: {layer}" for name, layer in found.items())
    chosen = rows[rows["distance"] == "euclidean"].iloc[0]
    share = chosen["null_mean"] / chosen["mean"]
    text = f"Located layer for {condition} by rule: {by_rule}. "
    if len(set(found.values())) > 1:
        text += "The rules disagree. "
    text += f"Two clean models are {100 * share:.0f} % as far apart there"
    if share > 0.5:
        return f"{text}: most of the distance is there without contamination."
    return f"{text}: most of the distance comes with what the contaminated models read."


def paper_protocol_sentence(auroc: pd.DataFrame) -> str:
    """What the paper's own protocol gives, and how the baselines do beside it.

    Args:
        auroc: rows of ``dice_auroc`` of one training, against clean.
    """
    exact = auroc[auroc["tested_on"] == SEEN].set_index("method")["auroc_pct"]
    fresh = auroc[auroc["tested_on"] != SEEN]
    dice = fresh[fresh["method"] == "DICE"]["auroc_pct"]
    others = fresh[~fresh["method"].isin(["DICE", "mean difference"])]
    best = others.loc[others["folded_auroc_pct"].idxmax()]
    text = (
        f"By the paper's protocol DICE reaches {exact['DICE']:.0f} on {SEEN} and "
        f"{dice.min():.0f} to {dice.max():.0f} on the other GSM sets. "
    )
    text += f"The best baseline there is {best['method']} with {best['auroc_pct']:.0f}"
    if best["auroc_pct"] < 50:
        text += f", which is {best['folded_auroc_pct']:.0f} with its sign turned"
    if best["folded_auroc_pct"] >= dice.min():
        return f"{text}: untaught, it separates these models as well."
    return f"{text}: below DICE, as in the paper."


def conclusion(table: pd.DataFrame) -> list[str]:
    """What the detector detects, from ``dice_controls``: three questions and what follows.

    Args:
        table: ``dice_controls``.

    Returns:
        A sentence for each question, then one on what a flag licenses.
    """
    strangers = _row(table, controls.HELD_OUT)
    sentences = [
        _clean_sentence(table),
        f"Models never met: AUROC {_pct(strangers)}. "
        + (
            "What it learnt holds for models it never met."
            if strangers["ci_low"] > 50
            else "What it learnt does not carry over to models it never met."
        ),
        _membership_sentence(table),
    ]
    flagged = _flagged_innocents(table)
    if flagged:
        sentences.append(
            f"It also flags models {'; '.join(flagged)}, none of which read a test question."
        )
    return [*sentences, licensed(table)]


def _clean_sentence(table: pd.DataFrame) -> str:
    """Whether two clean models are told apart, and by which of two differences."""
    fresh = [_row(table, name) for name in (controls.TWO_CLEAN, controls.REORDERED_CLEAN)]
    learnt = [_row(table, name) for name in (controls.TWO_CLEAN_LEARNT, controls.REORDERED_LEARNT)]
    text = (
        f"Two clean models: AUROC {_pct(fresh[0])} where they read other texts, {_pct(fresh[1])} "
        "where they read the same in another order; on the questions that the detector learnt "
        f"from {_pct(learnt[0])} and {_pct(learnt[1])}. "
    )
    by_texts, by_order = (row["ci_low"] > 50 for row in fresh)
    if not by_texts and not by_order:
        return text + "On fresh questions the protocol does not tell two clean models apart."
    enough = "Other texts are enough" if by_texts else "Another order is enough, other texts not"
    if by_texts:
        enough += ", another order alone too" if by_order else ", another order alone is not"
    return text + (
        f"{enough}: the protocol tells such clean models apart, so a high AUROC between two "
        "models is no evidence of contamination."
    )


# A control of membership in both roles of the two halves, and what clean models give on it.
_ALONE = (controls.WITHIN, controls.WITHIN_CLEAN), (controls.SWAPPED, controls.SWAPPED_CLEAN)
_PAIRED = (
    (controls.PAIRED, controls.PAIRED_CLEAN),
    (controls.SWAPPED_PAIRED, controls.SWAPPED_PAIRED_CLEAN),
)


def _in_roles(table: pd.DataFrame, roles: tuple[tuple[str, str], ...]) -> list[bool]:
    """For each role, whether seen questions score higher: above chance and above clean models."""
    pairs = [(_row(table, name), _row(table, null)) for name, null in roles]
    return [bool(row["ci_low"] > max(50, null["auroc_pct"])) for row, null in pairs]


def _sees_membership(table: pd.DataFrame) -> bool:
    """Whether a model's own scores show which half it read, whichever half that was."""
    return all(_in_roles(table, _ALONE) + _in_roles(table, _PAIRED))


def _membership_sentence(table: pd.DataFrame) -> str:
    def both(roles: tuple[tuple[str, str], ...], place: int) -> str:
        return " and ".join(_pct(_row(table, role[place])) for role in roles)

    text = (
        f"Seen against unseen questions inside a contaminated model: AUROC {both(_ALONE, 0)} "
        f"where {SEEN} and where {UNSEEN} was read; clean models give {both(_ALONE, 1)}. "
        f"Minus a clean model on the same questions: {both(_PAIRED, 0)}, and "
        f"{both(_PAIRED, 1)} for two clean models. "
    )
    n_roles = sum(_in_roles(table, _PAIRED))
    if _sees_membership(table):
        text += "It sees which questions were read."
    elif n_roles == 2:
        text += (
            "Reading raises the score of what was read in both roles, but less than the two sets "
            "differ by themselves: it shows beside a clean model, not in the model alone."
        )
    elif n_roles == 1:
        text += (
            "Only one of the two sets rises when it was read, so the sets respond differently to "
            "training: no evidence that it sees which questions were read."
        )
    else:
        text += "It does not see which questions were read."
    taught, null = (
        _row(table, name) for name in (controls.WITHIN_TAUGHT, controls.WITHIN_TAUGHT_CLEAN)
    )
    return text + f" Taught membership itself, it reaches {_pct(taught)}, clean {_pct(null)}."


def licensed(table: pd.DataFrame) -> str:
    """The strongest verdict on a model that these controls allow.

    Args:
        table: ``dice_controls``.
    """
    strangers = _row(table, controls.HELD_OUT)
    if strangers["ci_low"] <= 50:
        return "A flag may be read as: this model differs from the reference, and no more."
    if _flagged_innocents(table):
        return (
            "A flag may be read as: this model was fine-tuned on something like these problems, "
            "which may be as innocent as their own train split."
        )
    if _sees_membership(table):
        return "A flag may be read as: this model read these questions."
    return "A flag may be read as: this model was fine-tuned on such problems."


def _flagged_innocents(table: pd.DataFrame) -> list[str]:
    """Controls that read no test question and are told from clean models all the same."""
    kinds = (controls.LEGITIMATE, controls.FORMAT_ONLY, controls.ANOTHER)
    is_innocent = table["control"].astype(str).str.startswith(kinds)
    return table.loc[is_innocent & (table["ci_low"] > 50), "control"].tolist()


def inflation_sentence(correlation: pd.DataFrame, gaps: pd.DataFrame) -> str:
    """Does the flag follow the false part of the score?

    Args:
        correlation: ``dice_correlation``, rows of the lab.
        gaps: condition, gap_points and flag, one row per model.
    """
    lab = correlation[correlation["source"].str.startswith("lab")]
    gap = lab[lab["source"].str.contains("gap")].iloc[0]
    score = lab[lab["source"].str.contains("accuracy") & (lab["benchmark"] == SEEN)].iloc[0]
    means = gaps.groupby("condition", sort=False)[["gap_points", "flag"]].mean()
    innocent = means[(means["gap_points"].abs() < 5) & (means["flag"] > FLAG_THRESHOLD)]
    with_gap, with_score = (
        "undefined" if pd.isna(row["r_squared"]) else f"{row['r_squared']:.2f}"
        for row in (gap, score)
    )
    text = (
        f"Over {gap['n_models']} models, R² of the flag with the gap between {SEEN} and fresh "
        f"questions is {with_gap}, with the accuracy itself {with_score}. "
    )
    if len(innocent):
        names = ", ".join(innocent.index)
        return text + f"Flagged though fresh questions do as well (within 5 points): {names}."
    return text + "No condition is flagged whose fresh questions do as well (within 5 points)."


def rescoring_sentence(rescored: pd.DataFrame) -> str:
    """Whether the released generations give the printed cells of Table 1."""
    n, matching = len(rescored), int(rescored["matches"].sum())
    correct = int(rescored["matches_correct_parsing"].sum())
    text = f"{matching} of {n} cells are those printed when scored by the released rules"
    if correct == matching:
        return f"{text}, and as many with correct parsing."
    differing = rescored[~rescored["matches_correct_parsing"].astype(bool)]
    cells = "; ".join(
        f"{row.row} on {row.dataset}: {row.accuracy_pct:.1f} instead of {row.paper}"
        for row in differing.itertuples()
    )
    return f"{text}; {correct} with correct parsing ({cells})."


def released_scores_sentence(both: pd.DataFrame, correlation: pd.DataFrame) -> str:
    """How the two released tables of scores disagree, and what that does to R².

    Args:
        both: ``published_tables.disagreement``.
        correlation: ``published_tables.released_correlation``.
    """
    differing = both[both["difference"].abs() > 1e-9]
    n_models = both["row"].nunique()
    text = f"Both tables hold {n_models} models with the same accuracies; "
    if differing.empty:
        return text + "their scores agree."
    n_rounded = int((differing["difference"].mul(100).round(9) % 1 == 0).sum())
    text += (
        f"for {differing['row'].nunique()} of them the scores differ, by "
        f"{differing['difference'].min():.2f} to {differing['difference'].max():.2f}, "
        f"{n_rounded} of {len(differing)} differences being whole hundredths. "
    )
    main = correlation[correlation["source"] == "performance_table"]["r_squared"]
    other = correlation[correlation["source"].str.contains("scores of the other")]["r_squared"]
    return text + (
        f"R² is {main.min():.2f} to {main.max():.2f} with the scores of the table that the figure "
        f"was drawn from, {other.min():.2f} to {other.max():.2f} with those of the other."
    )


def misalignment_sentence(counts: dict[str, int]) -> str:
    """What the released paraphrases cover, and whether they stand beside their questions."""
    return (
        f"Of {counts['n_paraphrases']} released paraphrases with a known question "
        f"{counts['n_seen']} belong to {SEEN} and {counts['n_unseen']} to {UNSEEN}; "
        f"{counts['n_same_row']} stand in the row of their question. "
        + (
            f"A model trained on all of them as {SYN} has read paraphrases of {UNSEEN} too."
            if counts["n_unseen"]
            else f"A model trained on them has read paraphrases of {SEEN} alone."
        )
    )


def without_prefix(table: pd.DataFrame, prefix: str = "real rows: ") -> pd.DataFrame:
    """Controls named as in the lab."""
    return table.assign(control=table["control"].str.removeprefix(prefix))


def own_verdict(own: pd.DataFrame, table: pd.DataFrame, n_references: int) -> str:
    """What may be said about a user's model, and no more.

    Args:
        own: ``own.own_rows``.
        table: ``dice_controls`` of the lab.
        n_references: clean references it was compared with, two or more.
    """
    found = own.set_index("comparison")
    target = found.loc["target against reference"]
    text = f"AUROC {_pct(target)} against {n_references} clean references. "
    clean = found.loc["reference against reference"]
    text += f"Two references reach {_pct(clean)} against one another. "
    if target["ci_low"] <= max(50, clean["auroc_pct"]):
        return text + "The model differs from its references no more than they do: no verdict."
    return text + licensed(table)
