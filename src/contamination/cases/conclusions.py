"""What the case studies 07 and 08 conclude, in words that their tables choose."""

from __future__ import annotations

import pandas as pd

from contamination.cases.downstream import insertions
from contamination.core.scores import MIN_K
from contamination.core.tables import auc_text, interval_text, listed
from contamination.core.verdicts import FEWEST_MODELS, INCONCLUSIVE, SUPPORTED

LEVEL_OF_TPR = 0.05  # false-positive rate of the notebook's TPR
LARGE_PART = 80.0  # percent of the memory; what leaves so much has unlearned almost nothing


def _signed(row: pd.Series, name: str = "difference", ends: str = "difference") -> str:
    """A difference with its interval, "+0.13 [0.10, 0.16]"."""
    return f"{row[name]:+.2f} {interval_text(row[f'{ends}_low'], row[f'{ends}_high'], 2)}"


# Notebook 07: benchmark examples in the training corpus


def top_of_the_list(auc: float, tpr: float) -> str:
    """What the share of inserted rows above the limit adds to the AUC."""
    if tpr >= LEVEL_OF_TPR:
        return (
            f"The limit finds {100 * tpr:.0f} % of the inserted rows. With a score that knows "
            f"nothing, it would find about {100 * LEVEL_OF_TPR:.0f} %."
        )
    found = f"fewer than {100 * LEVEL_OF_TPR:.0f} % of the inserted rows are above the limit"
    if auc <= 0.5:
        return f"The AUC is not above chance, and {found}."
    return (
        f"Although the AUC is above chance, {found}: some held-out rows also have very high "
        "scores. An AUC does not tell you what is at the top of the list."
    )


def words_by_occurrence(rows: pd.DataFrame) -> str:
    """Whether the words alone tell the examples of a number of insertions from the others.

    ``rows`` as in ``downstream.summarize_occurrences``, with the AUC of the words (blind_auc).
    """
    is_off = rows["blind_ci_low"].gt(0.5) | rows["blind_ci_high"].lt(0.5)
    if not is_off.any():
        return (
            "The interval of the words alone contains one half for every number of insertions, so "
            "no group of examples is known to differ by its words."
        )
    uneven = [
        f"{insertions(row.occurrence)} ({row.blind_auc:.2f} "
        f"{interval_text(row.blind_ci_low, row.blind_ci_high, 2)})"
        for row in rows[is_off].itertuples()
    ]
    return (
        "The words alone are not at chance for the examples that were inserted "
        f"{listed(uneven)}. There the words may explain a part of the score's AUC, so look at its "
        "change and not at its height."
    )


def rates_result(average: pd.DataFrame) -> str:
    """Whether a higher learning rate makes inserted examples easier to find, or more often right.

    ``average`` has the row of the lower rate, then that of the raised one, Min-k% Prob on average
    over the datasets, with the columns of ``downstream.with_accuracy``.
    """
    lower, raised = (row for _, row in average.iterrows())
    gaps = [row["accuracy_contaminants"] - row["accuracy_others"] for row in (lower, raised)]
    texts = [
        f"{gap:+.2f} {interval_text(row['gap_low'], row['gap_high'], 2)}"
        for gap, row in zip(gaps, (lower, raised), strict=True)
    ]
    said = (
        f"The AUC at the raised rate minus that at the lower one is {_signed(raised)}. The share "
        "of correct answers on inserted minus that on held-out examples is "
        f"{texts[0]} at the lower rate and {texts[1]} at the raised one. "
    )
    if raised["gap_low"] > 0:
        said += "The second interval lies above 0, so this model answers inserted examples better. "
    else:
        said += "The second interval contains 0 or lies below it, so no gap is shown. "
    return said + _few(raised["n_models"], "for each rate")


def sizes_result(of_size: pd.DataFrame, spread: float) -> str:
    """How the AUC changes from the smallest to the largest corpus, for each kind of text.

    ``of_size`` has Min-k% Prob rows (setting, n_tokens, the difference to the smallest corpus and
    n_models); ``spread`` is by how much the AUCs of models of one size differ.
    """
    compared = of_size[of_size["difference"].notna()]
    if compared.empty:
        return "With one corpus size, there is nothing to compare."
    last = compared.sort_values("n_tokens").groupby("setting", sort=False).last()
    changes = [f"{_signed(row)} ({name})" for name, row in last.iterrows()]
    said = f"From the smallest to the largest corpus, the AUC changes by {listed(changes)}. "
    if spread:
        said += f"The order of the texts alone changes it by {spread:.3f}. "
    return said + _few(last["n_models"].min(), "for each corpus size")


def _few(n_models: float, each: str) -> str:
    """That a comparison has too few models, or that the verdicts are in the table."""
    if n_models >= FEWEST_MODELS:
        return "The verdicts are below."
    models = "one model" if n_models == 1 else f"{n_models:.0f} models"
    return f"With {models} {each}, what this says about other models is {INCONCLUSIVE}."


def verdicts_in_brief(rows: pd.DataFrame) -> str:
    """The verdicts on the models of this notebook, in one sentence.

    ``rows`` has the rows that make a claim (verdict, n_models).
    """
    n_models, counts = rows["n_models"], rows["verdict"].value_counts(sort=False)
    least, most = int(n_models.min()), int(n_models.max())
    behind = "one model" if most == 1 else f"{most} models"
    behind = f"at most {behind}" if least < most else behind
    said = f"The tables above make {len(rows)} claims about the average AUC of {MIN_K}"
    if set(counts.index) == {INCONCLUSIVE} and most < FEWEST_MODELS:
        return (
            f"{said}. All are {INCONCLUSIVE}, because we trained {behind} for each claim and a "
            f"verdict needs at least {FEWEST_MODELS}."
        )
    return f"{said}: {listed([f'{word} ({n})' for word, n in counts.items()])}."


def downstream_conclusion(
    of_bases: pd.DataFrame, once: pd.Series, correction: pd.DataFrame, others: pd.DataFrame
) -> str:
    """What the study shows about inserted examples, in paragraphs.

    Args:
        of_bases: of ``lab_panel.units_verdict``; rows without a verdict are controls.
        once: Min-k% Prob on average over datasets where examples are inserted once, with
            share_pct and paper_auc (as printed; empty if it is not).
        correction: of ``score_correction.correction_table``.
        others: n_models and verdict of the rows on occurrence, learning rate and corpus size.
    """
    claims = of_bases[of_bases["verdict"].ne("")].sort_values("copies")
    least, most = claims.iloc[0], claims.iloc[-1]
    controls = of_bases[of_bases["verdict"].eq("")]
    highest = controls.loc[controls["auc"].idxmax()]
    shown = claims["verdict"].eq(SUPPORTED)
    numbers = (
        f"Over {least['n_units']} base models, the AUC of {MIN_K} is {auc_text(least)} for rows "
        f"seen {_copies(least)} and {auc_text(most)} for rows seen {_copies(most)}; the highest "
        f"AUC of a control is {auc_text(highest)}."
    )
    if shown.all():
        found = "Inserted rows can be found, and more easily if they occur often. "
        if most["ci_low"] <= least["ci_high"]:
            found = "Inserted rows can be found, but whether more copies help is not shown. "
    elif shown.any():
        found = "Inserted rows can be found at some numbers of copies. "
    else:
        found = "That inserted rows can be found is not shown. "
    said = found + numbers
    said += (
        f" Of the tokens that our main models saw, {once['share_pct']:.0f} % are "
        f"inserted rows, and one insertion gives an AUC of {auc_text(once)}."
    )
    paper = pd.to_numeric(once["paper_auc"], errors="coerce")
    if pd.notna(paper):
        said += (
            f" The paper prints {paper:.2f} with a far smaller share. The two studies "
            "also differ in the models and in the texts, so do not compare these numbers."
        )
    row = correction.sort_values("copies").iloc[-1]
    inflation = _signed(row, "inflation", "ci")
    copies = f"{row['copies']:.0f} copies"
    if row["ci_low"] > 0:
        said += f"\n\nThe score on the inserted rows is inflated: with {copies}, by {inflation}."
    else:
        said += (
            "\n\nThat a row can be found does not mean that it inflates the score. With "
            f"{copies}, the inflation is {inflation}, so none is shown, and this run cannot say "
            "how well a correction works."
        )
    if others["n_models"].max() < FEWEST_MODELS:
        said += (
            " On the learning rate and the corpus size, this notebook is "
            f"{INCONCLUSIVE}: it has too few models for each comparison."
        )
    return said


def _copies(row: pd.Series) -> str:
    return "once" if row["copies"] == 1 else f"{row['copies']:.0f} times"


# Notebook 08: a model that unlearned a story


def memory_left(models: pd.DataFrame, left: pd.Series) -> str:
    """How much the unlearned models still know of the story, and what unlearning did otherwise.

    Args:
        models: model, unlearned (whether it is an unlearned model) and other_nll (of other text);
            one model is named "original".
        left: percent of what the story added to ROUGE-L that is left, in the order of ``models``.
    """
    left = left.set_axis(models["model"])
    table = models.set_index("model")
    unlearned = table[table["unlearned"].astype(bool)]
    if left[unlearned.index].isna().any():
        return "The original model does not write the story better than the retrained one."
    ways = [f"{left[name]:.0f} % after {name}" for name in unlearned.index]
    said = f"Of what the story added to ROUGE-L, {listed(ways)} are left. "
    hardly = [name for name in unlearned.index if left[name] >= LARGE_PART]
    if hardly:
        said += (
            f"So {listed(hardly)} unlearned almost nothing. Suspicion "
            "compares the items within a model, so it cannot show this. "
        )
    before, after = table["other_nll"]["original"], unlearned["other_nll"]
    if (after.round(2) == round(before, 2)).all():
        return said + (
            f"The NLL of other text is {before:.2f} before and after unlearning, so on this text "
            "unlearning has no price."
        )
    changes = [f"{after[name] - before:+.2f} ({name})" for name in unlearned.index]
    return said + f"The NLL of other text changes by {listed(changes)}."


def corrected_p(audit: pd.DataFrame, shown: pd.DataFrame) -> str:
    """Why an interval can lie above 0 although the p-value next to it is large.

    ``audit`` has all tests that are corrected together (p), ``shown`` the rows of the table.
    """
    few = shown.loc[shown["ci_low"].notna(), "n_selected"]
    said = (
        "An interval may exclude 0 where the p-value is large: the p-values are corrected for "
        f"{audit['p'].notna().sum()} tests, and the intervals are not."
    )
    if few.empty:
        return said
    return said + (
        f" And a bootstrap of few items, here of only {few.min():.0f} in the smallest group, gives "
        "intervals that are too narrow."
    )


def lead_without_the_truth(main: pd.DataFrame, truth: pd.DataFrame, control: str) -> str:
    """The audits in which selected items are ahead in every comparison, and what they miss.

    Args:
        main: rows of ``unlearning.audit_rows``, one selector and one metric for each task.
        truth: rows of ``unlearning.left_out_rows`` of the same selector.
        control: the model that did not see the story and is compared.
    """
    said = []
    for (way, task), (own, remembered, spared) in _ahead(main, control).items():
        about = truth[truth["unlearning"].eq(way) & truth["task"].eq(task)].iloc[0]
        text = (
            f"After {way}, in {task}, all three intervals lie above 0: the {own['n_selected']} "
            f"selected items lead by {_signed(own, ends='ci')}, the lead over the {control} model "
            f"is larger by {_signed(remembered, ends='ci')}, and unlearning took less from them, "
            f"by {_signed(spared, ends='ci')}. "
        )
        more = about["mean_selected"] > about["mean_other"]
        text += (
            f"{'And' if more else 'But'} the share of items that were never given to the "
            f"unlearner is {about['mean_selected']:.2f} among the selected items and "
            f"{about['mean_other']:.2f} among the others"
        )
        text += "." if more else ", so the selection does not find the items that we left out."
        said.append(text)
    return " ".join(said) or "In no audit do all three intervals lie above 0."


def _ahead(main: pd.DataFrame, control: str) -> dict[tuple[str, str], list[pd.Series]]:
    """Audits whose selected items lead by themselves, over the control, and over the original."""
    found = {}
    for (way, task), group in main.groupby(["unlearning", "task"], sort=False):
        rows = group.set_index(["model", "against"])
        tests = [rows.loc[each] for each in ((way, ""), (way, control), (way, "original"))]
        if all(row["ci_low"] > 0 for row in tests):
            found[way, task] = tests
    return found


def window_result(counts: pd.DataFrame) -> str:
    """Whether the paper's window leaves two groups of items that can be compared.

    ``counts`` has n_items and, in the column Min-k% Prob, how many of them the window selects.
    """
    n, n_selected = counts["n_items"], counts[MIN_K]
    useless = n_selected.eq(0) | n_selected.eq(n)
    numbers = listed([f"{some} of {all_}" for some, all_ in zip(n_selected, n, strict=True)])
    said = f"With {MIN_K}, the window selects {numbers} items. "
    if not useless.any():
        return said + "It always leaves two groups that can be compared."
    return said + (
        f"In {useless.sum()} of {len(counts)} audits it selects none or all of them, so the "
        "paper's rule cannot be used here, at least not with this window."
    )


def left_out_result(truth: pd.DataFrame) -> str:
    """In which audits the selection finds items that were never given to the unlearner.

    ``truth`` has the rows of ``unlearning.left_out_rows`` of one selector.
    """
    found = truth[truth["ci_low"].gt(0)]
    if found.empty:
        return "In no audit is the share of left-out items shown to be larger among the selected."
    parts = [
        f"After {row.unlearning}, in {row.task}, {row.mean_selected:.2f} of the selected items "
        f"were left out and {row.mean_other:.2f} of the others (difference {row.difference:+.2f} "
        f"{interval_text(row.ci_low, row.ci_high, 2)}; corrected p = {row.p_adjusted:.2f})."
        for row in found.itertuples()
    ]
    if found["verdict"].eq(SUPPORTED).any():
        return " ".join(parts)
    return " ".join(parts) + f" After the correction this is {INCONCLUSIVE}."


def unlearning_conclusion(
    main: pd.DataFrame,
    truth: pd.DataFrame,
    meant: pd.DataFrame,
    counts: pd.DataFrame,
    models: pd.DataFrame,
) -> str:
    """Whether suspicion shows what a model still remembers, in one paragraph.

    Args:
        main, truth: as in :func:`lead_without_the_truth`; the control is the retrained model.
        meant: of ``unlearning.meanings``.
        counts: as in :func:`window_result`.
        models: model, unlearned and left (percent of the memory).
    """
    n_left, n = int(meant["verdict"].eq(SUPPORTED).sum()), len(meant)
    if n_left:
        said = f"In {n_left} of {n} audits, the selected items were not unlearned. "
    elif meant["verdict"].eq(INCONCLUSIVE).any():
        said = (
            "Whether the suspicious items are still in the model's memory, or are simply easy, is "
            f"{INCONCLUSIVE}: we have one model of each kind. "
        )
    else:
        said = "In no audit do we show that the selected items were not unlearned. "
    unlearned = models[models["unlearned"].astype(bool)]
    hardly = unlearned[unlearned["left"].ge(LARGE_PART)]
    if len(hardly):
        names = [f"{row.model} ({row.left:.0f} %)" for row in hardly.itertuples()]
        said += (
            f"After {listed(names)}, most of the memory is left, and the audit does not say so, "
            "because suspicion only compares the items of one model. "
        )
    useless = counts[MIN_K].eq(0) | counts[MIN_K].eq(counts["n_items"])
    if useless.any():
        said += (
            f"The window of the paper selects none or all of the items in {useless.sum()} of "
            f"{len(counts)} audits. "
        )
    ahead = set(_ahead(main, "retrained"))
    rows = truth[truth["ci_low"].gt(0)]
    found = set(zip(rows["unlearning"], rows["task"], strict=True))
    said += (
        f"By their intervals, the selected items are ahead in every comparison in {len(ahead)} of "
        f"{n} audits, and they contain more of the items that were never given to the unlearner "
        f"in {len(found)}. "
    )
    if ahead and found and not ahead & found:
        said += "These are different audits, so the two signs do not agree. "
    return said + (
        "So an audit of this kind needs a model that never saw the text, and several models of "
        "each kind."
    )
