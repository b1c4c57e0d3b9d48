"""What your unlearned model writes, text by text: the numbers and examples of section 7.2.

The paper prints how many completions of suspected items come close to the original text, the
distribution of their scores (Figure 6(b)), and the closest ones (Tables 5 and 10).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from contamination.cases.unlearning_items import MIN_K, MIN_K_SHARE, STORY
from contamination.core import plots

UNLEARNED = "unlearned"
# From which score on the paper calls a completion close: section 7.2.1, Table 10 and Table 5.
CLOSE = {"judge": 4.0, "simcse": 0.7, "unigram_recall": 1.0}
SELECTED = {"in_window": MIN_K, "in_share": MIN_K_SHARE}  # columns, and the selector of each
COLUMNS = ["task", "model", "item", "sample", *SELECTED, "prompt", "reference", "completion"]


def completions_table(
    items: Mapping[str, pd.DataFrame],
    scored: Mapping[str, Mapping[str, pd.DataFrame]],
    chosen: Mapping[str, Mapping[str, np.ndarray]],
) -> pd.DataFrame:
    """Every completion of every model with its scores, a row each: ``unlearning_completions.csv``.

    Args:
        items: task to its items, of ``unlearning_items.chunk_items`` or ``question_items``.
        scored: task, then name of a model, to its ``scored_samples`` of these items.
        chosen: task to what ``unlearning_items.selections`` returned.

    Returns:
        ``COLUMNS``, then the scores. in_window and in_share say whether Min-k% Prob selected
        the item, by the window of ratios and by the fixed share.
    """
    parts = []
    for task, of_models in scored.items():
        prompts = items[task]["prompt"].to_numpy()
        for model, samples in of_models.items():
            of_item = samples["item"].to_numpy()
            about = {"task": task, "model": model, "prompt": prompts[of_item]}
            about |= {column: chosen[task][name][of_item] for column, name in SELECTED.items()}
            parts.append(samples.assign(**about))
    table = pd.concat(parts, ignore_index=True)
    return table[[*COLUMNS, *table.columns.difference(COLUMNS, sort=False)]]


def close_rows(completions: pd.DataFrame) -> pd.DataFrame:
    """How many completions come close to the original text: ``unlearning_close.csv``.

    One row for each model, task, score in ``CLOSE``, and selected or other items (``selector``
    says by which rule). A completion is close from ``at_least`` on. Completions without a
    score, such as those that the judge refused to rate, are in no count.

    Returns:
        task, model, metric, at_least, selector, selected, n_items, n_completions, n_close,
        close_pct (empty without completions), n_items_close (items with a close completion).
    """
    rows = []
    for (task, model), written in completions.groupby(["task", "model"], sort=False):
        for metric in [name for name in CLOSE if name in written and written[name].notna().any()]:
            rated = written.dropna(subset=metric)
            for column, selector in SELECTED.items():
                for selected in (True, False):
                    part = rated[rated[column] == selected]
                    close = part[part[metric] >= CLOSE[metric]]
                    row = {"task": task, "model": model, "metric": metric}
                    row |= {"at_least": CLOSE[metric], "selector": selector, "selected": selected}
                    row |= {"n_items": part["item"].nunique(), "n_completions": len(part)}
                    share = 100 * len(close) / len(part) if len(part) else np.nan
                    row |= {"n_close": len(close), "close_pct": share}
                    rows.append(row | {"n_items_close": close["item"].nunique()})
    return pd.DataFrame(rows)


def closest(completions: pd.DataFrame, n: int) -> pd.DataFrame:
    """The unlearned model's closest completion of each item, the n closest of each task.

    By the judge's rating, then SimCSE and the overlap of words, as far as they are there.
    """
    written = completions[completions["model"] == UNLEARNED]
    scores = [name for name in (*CLOSE, "rouge_l") if name in written]
    order = written.sort_values(scores, ascending=False, kind="stable", na_position="last")
    best = order.drop_duplicates(["task", "item"])
    return best.groupby("task", sort=False).head(n).sort_values("task", kind="stable")


def distributions(completions: pd.DataFrame) -> Figure:
    """Figure 6(b): the unlearned model's scores, selected items next to all other items.

    A panel for each score by meaning, or for the overlap of words if no completion was compared
    by meaning; answers to questions have the overlap alone.
    """
    written = completions[completions["model"] == UNLEARNED]
    shown = []
    for task, part in written.groupby("task", sort=False):
        scored = [name for name in ("simcse", "judge") if name in part and part[name].notna().any()]
        overlap = "rouge_l" if task == STORY else "unigram_recall"
        shown += [(task, name) for name in scored or [overlap]]
    figure, axes = plots.panels(len(shown), 1, (6, 2.6 * len(shown)))
    for axis, (task, metric) in zip(axes[:, 0], shown, strict=True):
        part = written[written["task"] == task].dropna(subset=metric)
        kind = part["in_share"].map({True: "selected items", False: "other items"})
        style = {"stat": "percent", "common_norm": False, "multiple": "dodge"}
        first = -10 if part[metric].min() < 0 else 0  # a cosine may be negative
        bins = {"discrete": True} if metric == "judge" else {"bins": np.arange(first, 11) / 10}
        palette = {"selected items": plots.MEMBER, "other items": plots.OTHER}
        sns.histplot(x=part[metric], hue=kind, palette=palette, ax=axis, **style, **bins)
        axis.set(xlabel=metric, ylabel="completions, %", title=task)
        if legend := axis.get_legend():
            legend.set_title("")
    return figure
