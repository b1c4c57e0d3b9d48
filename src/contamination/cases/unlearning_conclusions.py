"""What notebook 08 says of its results, in words that its tables choose."""

from __future__ import annotations

import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.tables import difference_text, interval_text, listed
from contamination.core.verdicts import ALPHA

LARGE_PART = 80.0  # percent of the memory; what leaves so much has unlearned almost nothing


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
        ahead, more_than, kept = (
            difference_text(row, ends="ci") for row in (own, remembered, spared)
        )
        about = truth[truth["unlearning"].eq(way) & truth["task"].eq(task)].iloc[0]
        text = (
            f"After {way}, in {task}, all three intervals lie above 0: the {own['n_selected']} "
            f"selected items lead by {ahead}, the lead over the {control} model is larger by "
            f"{more_than}, and unlearning took less from them, by {kept}. "
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
    if found["p_adjusted"].le(ALPHA).any():
        return " ".join(parts)
    return " ".join(parts) + " After the correction this is not significant."


def conclusion(
    main: pd.DataFrame,
    truth: pd.DataFrame,
    counts: pd.DataFrame,
    models: pd.DataFrame,
) -> str:
    """Whether suspicion shows what a model still remembers, in one paragraph.

    Args:
        main, truth: as in :func:`lead_without_the_truth`; the control is the retrained model.
        counts: as in :func:`window_result`.
        models: model, unlearned and left (percent of the memory).
    """
    n = main.groupby(["unlearning", "task"]).ngroups
    said = (
        "We cannot say whether the suspicious items are still in the model's memory or are simply "
        "easy, because we have one model of each kind. "
    )
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
