"""What the lesson and the lab on Min-k% Prob conclude, worded by their tables."""

from __future__ import annotations

import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.tables import auc_text, copies_text, interval_text, listed
from contamination.core.verdicts import FEWEST_MODELS

CLEAN_MODEL, SEEN, FRESH = ("clean", "verbatim"), ("dosed", "verbatim"), ("dosed", "fresh rows")
VERBATIM_EVENTS, TWO_VERSIONS, BY_VERSION = "verbatim", "two versions", "by version"
N_SHUFFLES = 10_000


def what_leakage_does(splits: pd.DataFrame) -> str:
    """What training adds in the raw split, next to the random split.

    Args:
        splits: two rows of ``auc_tables.auc_rows`` with before: the random split, then the raw
            one, in which non-members repeat text of members.
    """
    (random, raw) = splits.itertuples()
    adds = [
        f"{row.difference:+.2f} {interval_text(row.difference_low, row.difference_high, 2)}"
        for row in (random, raw)
    ]
    if raw.difference_high < random.difference_low:
        shown = "so it adds less in the raw split, as it should if leakage hides training"
    elif raw.difference_low > random.difference_high:
        shown = "so it adds more in the raw split, and leakage does not explain that"
    else:
        shown = "and the intervals overlap, so this one model does not show the effect of leakage"
    return (
        f"Training adds {adds[0]} in the random split and {adds[1]} in the raw split, {shown}. "
        f"Before training, the AUCs are {random.before_auc:.2f} and {raw.before_auc:.2f}."
    )


def lab_conclusion(
    over_bases: pd.DataFrame,
    by_copies: pd.DataFrame,
    trends: pd.DataFrame,
    sweep: pd.DataFrame,
    dated: pd.DataFrame,
    *,
    k_percent: float,
) -> str:
    """What the lab concludes, in words that its tables choose.

    Args:
        over_bases: ``study/first_study_topics.csv``: stored models, each on its own base.
        by_copies: rows of ``auc_tables.auc_rows`` over all models, one a dose.
        trends: ``auc_tables.difference_row`` in rows.
        sweep: ``checks.swept_k``.
        dated: rows of ``auc_tables.auc_rows`` after training where a date decides, and of two
            versions of a text, with the AUC of a bag of words and its interval in words_auc,
            words_low and words_high.
        k_percent: the k that is used everywhere but in the sweep.
    """
    parts = [_over_bases(over_bases), _by_copies(by_copies)]
    parts += [f"{_trends(trends)} {_best_k(sweep, k_percent)}", _dated(dated)]
    return "\n\n".join(parts)


def _over_bases(table: pd.DataFrame) -> str:
    kind = list(zip(table["model"], table["condition"], strict=True))
    rows = {each: table[[one == each for one in kind]] for each in (CLEAN_MODEL, SEEN, FRESH)}
    seen = rows[SEEN].sort_values("copies")
    n_above = int(seen["ci_low"].gt(0.5).sum())
    n_models = int(table["n_models"].max())
    auc, copies = seen["auc"], seen["copies"].map(copies_text)
    ends = [f"{auc.iloc[end]:.2f} at {copies.iloc[end]}" for end in (0, -1)]
    aucs = f"its AUC is {' and '.join(dict.fromkeys(ends))}"
    if n_above == len(seen):
        doses = listed([str(each) for each in seen["copies"]])
        claim = f"{MIN_K} tells rows that a model saw from held-out rows at every dose ({doses} "
        claim += f"{'copy' if doses == '1' else 'copies'})"
    elif n_above:
        claim = (
            f"{MIN_K} tells rows that a model saw from held-out rows at {n_above} of "
            f"{len(seen)} doses"
        )
    else:
        claim = f"{MIN_K} is shown at no dose to tell rows that a model saw from held-out rows"
    controls = pd.concat([rows[CLEAN_MODEL], rows[FRESH]])
    holds = controls["ci_low"].le(0.5) & controls["ci_high"].ge(0.5)
    aside = " and ".join(auc_text(row) for _, row in controls.iterrows())
    if holds.all():
        control = f"stay at chance ({aside})"
    else:
        control = f"do not both stay at chance ({aside}), so these AUCs must be read with care"
    return (
        f"Over {n_models} small base models and the rows of one synthetic benchmark, {claim}: "
        f"{aucs}. There are two controls, a model that saw none of the rows and rows that no model "
        f"saw. They {control}."
    )


def _by_copies(by_copies: pd.DataFrame) -> str:
    rows = by_copies.sort_values("copies")
    n_models, n_above = int(rows["n_models"].max()), int(rows["difference_low"].gt(0).sum())
    change, copies = rows["difference"], rows["copies"].map(copies_text)
    ends = [f"by {change.iloc[end]:+.2f} at {copies.iloc[end]}" for end in (0, -1)]
    if n_models < FEWEST_MODELS:
        of_base = f"{n_models} {'model' if n_models == 1 else 'models'} from one base"
        carries = f"With only {of_base}, we conclude nothing about other models"
    else:
        carries = f"The interval of the change lies above zero at {n_above} of {len(rows)} doses"
    return (
        f"On docstrings that we assign at random, the AUC changes "
        f"{' and '.join(dict.fromkeys(ends))} compared with the same model before training. "
        f"{carries}."
    )


def _trends(trends: pd.DataFrame) -> str:
    claims = {"method": f"that {MIN_K} beats perplexity"}
    claims |= {"length": "that longer passages are easier to detect"}
    claims |= {"model size": "that larger models are easier to test"}
    is_above = trends["difference_low"].gt(0)
    said = [
        f"{where} zero for the paper's {'claim' if len(found) == 1 else 'claims'} {listed(found)}"
        for where, kind in (("lies above", is_above), ("does not lie above", ~is_above))
        if (found := [claims[what] for what in trends.loc[kind, "what"]])
    ]
    return f"In our models, the interval of the difference {', and it '.join(said)}."


def _best_k(sweep: pd.DataFrame, k_percent: float) -> str:
    (best,) = sweep[sweep["is_best"]].itertuples()
    if best.k_percent == k_percent:
        return (
            f"Among the values of k, the one that we use ({k_percent:g} %) is best on the "
            "half of the passages on which we choose."
        )
    interval = interval_text(best.difference_low, best.difference_high, 2)
    if best.difference_low > 0:
        shown = "so for these models it is better"
    elif best.difference_high < 0:
        shown = "so for these models it is worse"
    else:
        shown = "so it is not shown to be better or worse"
    return (
        f"Among the values of k, {best.k_percent:g} % is best on the half of the passages on which "
        f"we choose. On the other half, its AUC differs by {best.difference:+.2f} {interval} from "
        f"that of the {k_percent:g} % that we use, {shown}."
    )


def _dated(dated: pd.DataFrame) -> str:
    (versions,) = dated[dated["benchmark"].str.endswith(TWO_VERSIONS)].itertuples()
    by_date = dated[dated["benchmark"].str.endswith((BY_VERSION, VERBATIM_EVENTS))]
    found = [_words_and_score(row) for _, row in by_date.iterrows()]
    change = (
        f"{versions.difference:+.2f} "
        f"{interval_text(versions.difference_low, versions.difference_high, 2)}"
    )
    if versions.difference_low > 0:
        adds = f"in one model, training raises the score's AUC even there ({change})"
    elif versions.difference_high < 0:
        adds = f"in one model, training lowers the score's AUC there ({change})"
    else:
        adds = f"whether training changes the score's AUC is inconclusive ({change})"
    return (
        f"What if the date decides membership? {' '.join(found)} We chose the drift of the events "
        "ourselves, and did not test whether words and score differ. If members and non-members "
        f"are two versions of the same texts, the AUC of words alone is {versions.words_auc:.2f} "
        f"{interval_text(versions.words_low, versions.words_high, 2)}, and {adds}."
    )


def _words_and_score(row: pd.Series) -> str:
    """What words alone and the score reach on one dated set, as a sentence."""
    words = f"{row.words_auc:.2f} {interval_text(row.words_low, row.words_high, 2)}"
    if row.words_low <= 0.5:
        shown = "so the words are not shown to tell old from new"
    elif row.words_auc >= row.auc:
        shown = "so words alone are enough for an AUC of that size"
    else:
        shown = "so words alone tell old from new, though with a lower AUC"
    return (
        f'On "{row.benchmark}", words alone have an AUC of {words} and the trained model\'s score '
        f"has {auc_text(row)}, {shown}."
    )
