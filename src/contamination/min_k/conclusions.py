"""What the lesson and the lab on Min-k% Prob conclude, worded by their tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from contamination.core.blind_scores import BAG_OF_WORDS, DATE_RULE
from contamination.core.scores import MIN_K
from contamination.core.tables import auc_text, copies_text, interval_text, listed
from contamination.core.verdicts import FEWEST_MODELS
from contamination.min_k.checks import LABELLED_BY

CLEAN_MODEL, SEEN, FRESH = ("clean", "verbatim"), ("dosed", "verbatim"), ("dosed", "fresh rows")
VERBATIM_EVENTS, TWO_VERSIONS, BY_VERSION = "verbatim", "two versions", "by version"
N_SHUFFLES = 10_000
RARE = 0.05  # luck that so few assignments have is called unusual


def what_moved(before: np.ndarray, after: np.ndarray, is_member: np.ndarray) -> str:
    """How the means of two groups moved in training, and how usual their gap was before it.

    Args:
        before, after: scores before and after training on the members, shape (n_passages,).
        is_member: the random assignment, shape (n_passages,).
    """
    is_member = np.asarray(is_member, bool)
    shuffled = np.tile(is_member, (N_SHUFFLES, 1))
    shuffled = np.random.default_rng(0).permuted(shuffled, axis=1)
    gap = before[is_member].mean() - before[~is_member].mean()
    gaps = shuffled @ before / is_member.sum() - ~shuffled @ before / (~is_member).sum()
    share = (np.abs(gaps) >= abs(gap) - 1e-12).mean()
    unusual = " So this assignment is an unusual one." if share < RARE else ""
    members, others = ((after - before)[kind].mean() for kind in (is_member, ~is_member))
    return (
        f"In training, the members' mean changes by {members:+.2f} and the non-members' by "
        f"{others:+.2f}. The gap before training, {gap:+.3f}, is the luck of the assignment, "
        "because the model has seen neither group. A gap at least as large, in either direction, "
        f"occurs in {100 * share:.1f} % of {N_SHUFFLES:,} random assignments.{unusual} This is why "
        "we look at the change of the gap, and assign the passages again below."
    )


def giveaway(words: pd.DataFrame, wikimia: pd.DataFrame) -> str:
    """What tells the two kinds of WikiMIA passages apart.

    Args:
        words: ``published.wikimia_words``.
        wikimia: ``wikimia_tables.wikimia_blind_table``.
    """
    n_years = int(words["word"].str.fullmatch(r"(?:19|20)\d\d").sum())
    rule = wikimia.loc[wikimia["baseline"] == DATE_RULE, "auc"]
    return (
        f"{n_years} of these {len(words)} words {'is a year' if n_years == 1 else 'are years'}. "
        "A simple rule does without any learning: it takes the latest year that a passage "
        "mentions, and the earlier that year is, the higher the score. Its AUC is "
        f"{rule.min():.2f} to {rule.max():.2f} over the {len(rule)} passage lengths."
    )


def words_result(articles: pd.DataFrame) -> str:
    """What the table of ``checks.words_by_label`` shows."""
    by_label = articles.set_index("who is a member")
    chance, date = (by_label.loc[name] for name in LABELLED_BY[:2])
    if date["ci_low"] > 0.5:
        found = "the words tell members from non-members, although no language model is involved"
    else:
        found = "the words are not shown to tell members from non-members"
    return f"{_check_by_chance([chance])} If the date decides, {found}."


def score_result(of_score: pd.DataFrame) -> str:
    """What the table of ``checks.score_by_label`` under two models shows."""
    chance, date = (
        [row for _, row in of_score[of_score["who is a member"] == name].iterrows()]
        for name in LABELLED_BY[:2]
    )
    above = [row["ci_low"] > 0.5 for row in date]
    if above[1]:
        which = "both intervals lie" if above[0] else "only the second interval lies"
        found = f"{which} above 0.5. The second model has seen the older era's words in other texts"
    else:
        found = "the second interval does not lie above 0.5, so the score need not follow the date"
    return f"{_check_by_chance(chance)} If the date decides, {found}."


def _check_by_chance(rows: list[pd.Series]) -> str:
    contain = [row["ci_low"] <= 0.5 <= row["ci_high"] for row in rows]
    if all(contain):
        one = "the interval contains 0.5, as it should"
        return f"If chance decides, {one if len(rows) == 1 else 'both intervals contain 0.5'}."
    return "If chance decides, an interval does not contain 0.5, so the check fails."


def conclusion(
    training: pd.DataFrame,
    wikimia: pd.DataFrame,
    paper_auc: float,
    articles: pd.DataFrame,
    of_score: pd.DataFrame,
) -> str:
    """What the lesson concludes, in words that its tables choose.

    Args:
        training: one row: before, after, change (mean AUCs over n_assignments), the 95 %
            interval ci_low, ci_high of the change, and found_pct, the share of members that the
            score finds at 5 % false alarms.
        wikimia: ``wikimia_tables.wikimia_blind_table``.
        paper_auc: average AUC that the paper prints for Min-k% Prob.
        articles: ``checks.words_by_label``.
        of_score: ``checks.score_by_label`` under two models that saw none of the articles;
            trained_on says which others, the last one articles of one era.
    """
    n_higher, on_wikimia = _words_on_wikimia(wikimia, paper_auc)
    parts = [_what_training_does(training), on_wikimia, _why(articles, of_score)]
    parts.append(_advice(n_higher, training["found_pct"].item()))
    return "\n\n".join(parts)


def _what_training_does(training: pd.DataFrame) -> str:
    row = training.iloc[0]
    change = f"{row['change']:+.2f}, 95 % interval {interval_text(row.ci_low, row.ci_high, 2)}"
    if row.ci_low > 0:
        claim = f"{MIN_K} does respond to training: one training step on each member raises"
    elif row.ci_high < 0:
        claim = f"{MIN_K} responds to training in the wrong direction: a step on each member lowers"
    else:
        return (
            f"Whether {MIN_K} responds to one gradient step on each member is inconclusive: the "
            f"mean AUC is {row['before']:.2f} before training and {row['after']:.2f} after it, and "
            f"the interval of the change contains zero ({change})."
        )
    return (
        f"{claim} the score's mean AUC from {row['before']:.2f} to {row['after']:.2f} over "
        f"{row['n_assignments']:.0f} random assignments of the same passages ({change}). The model "
        "is small, and it was tested right after training."
    )


def _words_on_wikimia(wikimia: pd.DataFrame, paper_auc: float) -> tuple[int, str]:
    words = wikimia[wikimia["baseline"] == BAG_OF_WORDS]
    n_higher, n_lengths = int((words["ci_low"] > paper_auc).sum()), len(words)
    printed = f"the {paper_auc} that the paper prints for {MIN_K}"
    lowest = f"{np.floor(100 * words['auc'].min()) / 100:.2f}"  # rounded up, it would not be met
    if n_higher == n_lengths:
        text = (
            "A high AUC on WikiMIA need not come from training. A classifier that sees only the "
            f"words of a passage, and uses no language model, reaches an AUC of {lowest} or more "
            f"at all {n_lengths} passage lengths, and that is higher than {printed}."
        )
    elif n_higher:
        text = (
            "On WikiMIA the result depends on the passage length. A classifier that sees only the "
            f"words clearly beats {printed} at {n_higher} of {n_lengths} lengths."
        )
    else:
        text = (
            "On WikiMIA the control does not overturn the paper's result. A classifier that sees "
            f"only the words clearly beats {printed} at none of the {n_lengths} passage lengths "
            f"(its lowest AUC is {lowest})."
        )
    return n_higher, text


def _of_the_score(of_score: pd.DataFrame) -> str:
    """Whether the score, too, follows the date under models that saw none of the articles."""
    by_date = of_score[of_score["who is a member"] == LABELLED_BY[1]]
    none, one_era = by_date.iloc[0], by_date.iloc[-1]
    under = f"under a model trained on {one_era['trained_on']}, and on none of those that we score"
    if one_era["ci_low"] > 0.5:
        return (
            f" The date is enough for {MIN_K}, too: {under}, its AUC is {auc_text(one_era)} if the "
            f"date decides. Under a model trained on {none['trained_on']}, it is {auc_text(none)}. "
            "So dated labels can give a high AUC although the model was trained on none of the "
            "passages."
        )
    return (
        f" {MIN_K} itself is not shown to follow the date: {under}, its AUC is "
        f"{auc_text(one_era)} if the date decides."
    )


def _why(articles: pd.DataFrame, of_score: pd.DataFrame) -> str:
    by_label = articles.set_index("who is a member")
    chance, date, gap = (by_label.loc[name] for name in LABELLED_BY)
    aucs = (
        f"{date['auc']:.2f} if the date decides membership and {chance['auc']:.2f} if chance does"
    )
    interval = f"difference {gap['auc']:+.2f}, {interval_text(gap['ci_low'], gap['ci_high'], 2)}"
    if gap["ci_low"] > 0:
        return (
            "A date can be enough for words to tell members from non-members, as the invented "
            f"articles show. On the same texts, the words reach an AUC of {aucs} ({interval})."
            + _of_the_score(of_score)
        )
    contains = "contains zero" if gap["ci_high"] >= 0 else "lies below zero"
    return (
        "The invented articles do not show that a date is enough for such an AUC. On the same "
        f"texts, the words reach an AUC of {aucs}, and the interval of the difference "
        f"{contains} ({interval})." + _of_the_score(of_score)
    )


def _advice(n_higher: int, found_pct: float) -> str:
    if n_higher:
        return (
            "So are the probabilities enough to tell? Only if nothing but training distinguishes "
            "the members from the non-members. Even then, the answer for a single text remains "
            f"uncertain: at 5 % false alarms, we found {found_pct:.0f} % of the members. On "
            "WikiMIA, the words differ as well. This could explain the paper's AUC, but we have "
            "not shown that it does: on WikiMIA we tested only words and years, and Min-k% Prob "
            "only on invented articles. Before you take a high AUC as evidence of training, ask "
            "two questions. What decided which passages are members? And what AUC do the words "
            "alone reach on the same passages?"
        )
    return (
        "The paper's AUC is therefore not explained by the words that we tried. Report this "
        "comparison next to every AUC, because without it nobody can know."
    )


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
