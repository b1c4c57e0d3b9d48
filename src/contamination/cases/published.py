"""What Shi et al., arXiv:2310.16789, print of the downstream and the unlearning study."""

from __future__ import annotations

import numpy as np
import pandas as pd

from contamination.cases.unlearning_items import QUESTIONS, STORY
from contamination.data.published import printed_cells


def printed_downstream() -> pd.DataFrame:
    """Tables 3 and 7 as printed: AUC and TPR at 5 % FPR (in percent), as text."""
    cells = printed_cells().query("paper == 'Min-k% Prob' and table in ['Table 3', 'Table 7']")
    table = cells.pivot(index=["dataset", "row"], columns="metric", values="value").reset_index()
    names = {"row": "method", "auc": "paper_auc", "tpr_at_5_fpr_pct": "paper_tpr"}
    return table.rename(columns=names)[["dataset", *names.values()]]


def printed_learning_rates() -> pd.DataFrame:
    """Tables 4 and 8 as printed: AUC of Min-k% Prob and task accuracy at two learning rates.

    Numbers, by dataset and learning_rate ("lower", "raised"); an average that is not printed is
    missing.
    """
    cells = printed_cells().query("paper == 'Min-k% Prob' and table in ['Table 4', 'Table 8']")
    kind = np.select(
        [cells["row"].str.startswith("Contaminant"), cells["row"].str.startswith("Non-")],
        ["accuracy_contaminants", "accuracy_others"],
        "auc",
    )
    rate = np.where(cells["row"].str.contains("lower"), "lower", "raised")
    table = cells.assign(kind=kind, learning_rate=rate, value=cells["value"].astype(float))
    table = table.pivot(index=["dataset", "learning_rate"], columns="kind", values="value")
    order = ["auc", "accuracy_contaminants", "accuracy_others"]
    return table[order].reset_index().rename_axis(columns=None)


def with_printed_downstream(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the printed AUC and rate of the same dataset and method, or of the average."""
    keys = ["dataset", "method"]
    printed = printed_downstream().set_index(keys)
    beside = printed.reindex(pd.MultiIndex.from_frame(rows[keys])).set_axis(rows.index)
    return rows.assign(**beside)


def printed_unlearning() -> pd.DataFrame:
    """Section 7.2 as printed. Nothing of it was released, so nothing can be recomputed."""
    rows = [
        (STORY, "chunks of 512 words", "approximately 1000", "7.2.1"),
        (STORY, "chunks selected by Min-k% Prob", "188", "7.2.1"),
        (STORY, "chunks selected by perplexity", "none", "7.2.1"),
        (STORY, "completions rated 4 or 5 by GPT-4, selected chunks", "5.3%", "7.2.1"),
        (STORY, "chunks with a completion rated 4 or 5", "10", "7.2.1"),
        (STORY, "the same for chunks that were not selected", "", "not reported"),
        (QUESTIONS, "questions", "1000", "7.2.2"),
        (QUESTIONS, "questions selected by Min-k% Prob", "103", "7.2.2"),
        (QUESTIONS, "mean ROUGE-L recall, selected", "0.23", "7.2.2"),
        (QUESTIONS, "mean ROUGE-L recall, not selected", "0.10", "7.2.2"),
        (QUESTIONS, "the same under a model that never saw the books", "", "not reported"),
    ]
    return pd.DataFrame(rows, columns=["task", "quantity", "value", "where"])
