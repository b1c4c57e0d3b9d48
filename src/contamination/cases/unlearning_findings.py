"""Sentences that state a result of the unlearning audit, each built from its table.

Each is tested with a table that confirms the paper's reading and one that
refutes it. A difference whose interval holds 0 cannot be told from none.
"""

from __future__ import annotations

import pandas as pd
from scipy import stats

from contamination.cases.unlearning import (
    ALONE,
    EASIEST,
    MIN_K,
    MIN_K_SHARE,
    PPL,
    STORY,
)

ALPHA = 0.05
METRIC_NAMES = {
    "rouge_l": "ROUGE-L",
    "rouge_l_recall": "ROUGE-L recall",
    "unigram_recall": "unigram recall",
    "simcse": "SimCSE similarity",
    "judge": "the judge's rating",
}


def _difference(row: pd.Series) -> str:
    if pd.isna(row["ci_low"]):
        return f"{row['difference']:+.3f} (a group of one item, no interval)"
    return f"{row['difference']:+.3f} [{row['ci_low']:+.3f}, {row['ci_high']:+.3f}]"


def _metric(row: pd.Series) -> str:
    return METRIC_NAMES[row["metric"]]


def memory_sentence(models: pd.DataFrame, metric: str, original: str, retrained: str) -> str:
    """How much of what the original remembers each unlearned model still has.

    Args:
        models: one row for each model: model, unlearned (true or false) and the
            mean of the metric.
        metric: column of ``models``.
        original, retrained: names of the model that read the story and of the one
            trained without it.
    """
    values = models.set_index("model")[metric]
    gap = values[original] - values[retrained]
    text = (
        f"Mean {METRIC_NAMES[metric]}: {values[original]:.2f} for the original, "
        f"{values[retrained]:.2f} for the model retrained without the story"
    )
    if gap <= 0:
        return text + ". The original remembers nothing that could be unlearned."
    parts = [
        f"{name} leaves {100 * (values[name] - values[retrained]) / gap:.0f} %"
        for name in models.loc[models["unlearned"], "model"]
    ]
    return text + f". Of this gap {', '.join(parts)}."


def selected_sentence(row: pd.Series, paper: str) -> str:
    """Do the selected items come back better than the others, as the paper reads it?

    Args:
        row: of ``unlearning.csv``, the unlearned model itself.
        paper: the paper's finding, a clause.
    """
    text = (
        f"{row['model']}, {row['task']}: {row['selector']} selects {row['n_selected']} of "
        f"{row['n_items']} items. "
    )
    if not 0 < row["n_selected"] < row["n_items"]:
        return text + f"There is no second group to compare with. The paper: {paper}."
    text += (
        f"Mean {_metric(row)} is {row['mean_selected']:.2f} for them and {row['mean_other']:.2f} "
        f"for the others, a difference of {_difference(row)}. The paper: {paper}. "
    )
    if row["ci_low"] > 0:
        return text + "Here the selected items come back better."
    if row["ci_high"] < 0:
        return text + "Here the selected items come back worse."
    return text + "Here no difference can be told."


def meaning_sentence(rows: pd.DataFrame, control_name: str, original_name: str) -> str:
    """Does "selected" mean "not unlearned", "well remembered", or "easy for any model"?

    Easy: a model that did not read the story writes the selected items better.
    Remembered: what the unlearned model has beyond that control is more for
    them. Spared: unlearning took less from them than from the others. Only what
    is remembered and spared was not unlearned.

    Args:
        rows: of ``unlearning.csv``, one unlearned model, task, selector and metric.
        control_name: a model that did not read the story; without its rows
            nothing can be said.
        original_name: the model before unlearning.
    """
    by = {(row["model"], row["against"]): row for _, row in rows.iterrows()}
    name = rows["unlearning"].iloc[0]
    own = by[name, ""]
    if (control_name, "") not in by:
        return (
            f'{name}, {own["task"]}: without a model "{control_name}" it cannot be told whether '
            "the selected items are remembered or merely easy to predict."
        )
    control = by[control_name, ""]
    beyond, kept = by[name, control_name], by[name, original_name]
    if not 0 < own["n_selected"] < own["n_items"]:
        return (
            f"{name}, {own['task']}: {own['n_selected']} of {own['n_items']} items are selected, "
            "so there is no second group to compare with."
        )
    text = (
        f"{name}, {own['task']}: selected against other items differ in {_metric(own)} by "
        f"{_difference(own)} under the unlearned model and by {_difference(control)} under "
        f'"{control_name}", which did not read the story. Item by item, what the unlearned model '
        f"has beyond that control differs by {_difference(beyond)}, and what unlearning changed "
        f"by {_difference(kept)}. "
    )
    if own["ci_high"] < 0:
        text += "The selected items come back worse than the others. "
    is_easy, is_remembered, is_spared = (row["ci_low"] > 0 for row in (control, beyond, kept))
    if is_easy:
        text += "The selected items are easier for a model without any memory of the story. "
    if is_remembered and is_spared:
        return text + (
            "The selected items hold more of what only reading the story gives, and unlearning "
            "took less of it: selected means not unlearned."
        )
    if is_remembered:
        return text + (
            "The selected items hold more of what only reading the story gives, but that "
            "unlearning took less from them cannot be shown: selected means well remembered."
        )
    if is_easy:
        return text + "No memory can be shown beyond that: selected means easy to predict."
    return text + "Neither memory nor ease can be shown for the selected items."


def selectors_sentence(rows: pd.DataFrame) -> str:
    """Min-k% Prob against perplexity: in the same window, and with as many items.

    Args:
        rows: rows of the unlearned model itself, one for each selector and one
            of ``ALONE``, one metric.
    """
    by = rows.set_index("selector")
    own, alone = by.loc[MIN_K_SHARE], by.loc[ALONE]
    is_story = own["task"] == STORY
    printed = "188 and none of about 1000 chunks" if is_story else "103 and not reported, of 1000"
    text = (
        f"{own['model']}, {own['task']}: in the same window Min-k% Prob selects "
        f"{by.loc[MIN_K, 'n_selected']} and perplexity {by.loc[PPL, 'n_selected']} of "
        f"{own['n_items']} items (paper: {printed}). With "
        f"{own['n_selected']} items each, selected and others differ by {_difference(own)} for "
        "Min-k% Prob"
    )
    if EASIEST in by.index:
        text += (
            f" and by {_difference(by.loc[EASIEST])} for the items easiest for a model that never "
            "saw the story"
        )
    n_alone = alone["n_selected"]
    if n_alone == 0:
        return text + ". Perplexity selects the same items."
    text += (
        f". Perplexity selects {own['n_selected'] - n_alone} of these items too; the {n_alone} "
        f"that Min-k% Prob alone selects and the {n_alone} that perplexity alone selects differ by "
        f"{_difference(alone)}: "
    )
    if alone["ci_low"] > 0:
        return text + "Min-k% Prob selects better."
    if alone["ci_high"] < 0:
        return text + "perplexity selects better."
    return text + "neither can be called better."


def left_out_sentence(row: pd.Series) -> str:
    """Does the selection find the items that were never given to the unlearner?

    They were drawn by chance, so Fisher's exact test holds however few they
    are; it decides, also where the interval of the difference is kinder.

    Args:
        row: metric ``left_out``, selector Min-k% Prob.
    """
    text = f"{row['unlearning']}, {row['task']}: "
    if not 0 < row["n_selected"] < row["n_items"]:
        return (
            text + f"{row['n_selected']} of {row['n_items']} items are selected, nothing to sort."
        )
    shares = (
        (row["mean_selected"], row["n_selected"]),
        (row["mean_other"], row["n_items"] - row["n_selected"]),
    )
    counts = [(round(share * n), n - round(share * n)) for share, n in shares]
    p_value = stats.fisher_exact(counts).pvalue
    text += (
        f"{100 * row['mean_selected']:.0f} % of the selected items were left out of the "
        f"unlearning, {100 * row['mean_other']:.0f} % of the others, a difference of "
        f"{_difference(row)} (Fisher's exact test: p {p_value:.3f}). "
    )
    if p_value <= ALPHA:
        return text + f"The selection {'finds' if row['difference'] > 0 else 'avoids'} them."
    return text + "That the selection finds them cannot be shown."
