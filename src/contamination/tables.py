"""How result tables look in a notebook: rounded, captioned, escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

import pandas as pd
from IPython.display import HTML, Markdown
from pandas.io.formats.style import Styler

MISSING = "–"
NOT_REPORTED = "not reported"
_MARKED = "#F5B7A0"
_LONGEST_UNBROKEN = 32  # characters of a cell that is kept on one line

# Headings of the result tables, one spelling everywhere.
LABELS = {
    "k_percent": "k %",
    "n_members": "members",
    "n_non_members": "non-members",
    "tpr_at_5_fpr": "TPR at 5 % FPR",
    "auc": "AUC",
    "blind_auc": "blind AUC",
    "paper_auc": "paper AUC",
    "paper_tpr": "paper TPR %",
    "n_parameters": "parameters",
    "n_models": "models",
    "n_tokens": "tokens",
    "share_pct": "dosed share %",
    "learning_rate": "learning rate",
    "permutation_null": "shuffled labels",
    "overlap_pct": "overlap %",
    "windowed_share": "windowed",
    "n_rows": "rows",
    "n_unique": "unique",
    "size_mb": "MB",
    "n_files": "files",
    "owner_repo": "repository",
    "auc_chosen_on": "AUC, chosen on",
    "auc_held_out": "AUC, held out",
    "is_best": "chosen",
    "index": "instance",
    "modified_answer": "modified quiz",
    "answer_at_b": "original at B",
    "answer_at_c": "original at C",
    "answer_at_d": "original at D",
    "least_preferred": "least preferred",
    "min_pct": "min %",
    "paper_min_pct": "paper min",
    "max_pct": "max %",
    "paper_max_pct": "paper max",
    "interval": "95 % interval",
    "replication_pct": "repl. %",
    "paper_replication_pct": "paper repl.",
    "n_replicas": "replicas",
    "n_right_best_quiz": "right in best quiz",
    "expected_if_independent": "expected if independent",
    "n_right_any_quiz": "right in any quiz",
    "p_at_least_as_many": "p (at least as many)",
    "n_option_d_is_original": "option D is the original",
    "n_repeated_options": "with repeated options",
    "n_line_breaks_alone": "told apart by line breaks",
    "chance_pct": "chance %",
    "difference_pct": "difference, points",
    "fixed": "at the best position",
    "best_position": "best position",
    "n_answered_none": "answered E",
    "right_when_chosen_pct": "right when a text was chosen, %",
    "n_rule_right": "rule right",
    "right_where_rule_right_pct": "model right there, %",
    "n_rule_wrong": "rule wrong",
    "right_where_rule_wrong_pct": "model right there too, %",
    "p_sign_flip": "p sign flips",
    "significant_sign_flip": "sign flips *",
    "n_contaminated": "contaminated",
    "n_found": "found",
    "n_items": "items",
    "n_selected": "selected",
    "n_samples": "samples",
    "mean_selected": "mean, selected",
    "mean_other": "mean, others",
    "rouge_l": "ROUGE-L",
    "rouge_l_recall": "ROUGE-L recall",
    "unigram_recall": "unigram recall",
    "story_nll": "NLL of the story",
    "other_nll": "NLL of other text",
    "is_stock": "stock",
    "n_flagged": "flagged",
    "mean_general": "general",
    "mean_guided": "guided",
    "p_paired": "p paired",
    "p_unpaired": "p unpaired",
    "significant": "paired *",
    "paper_significant": "paper *",
    "significant_holm": "* after Holm",
    "rouge_general": "ROUGE-L general",
    "rouge_guided": "ROUGE-L guided",
    "annotator1": "annotator 1",
    "n_right": "right",
    "n_partitions": "of",
    "paper_n_right": "paper",
    "n_quizzes": "quizzes",
    "n_agree": "agree",
    "n_near": "near-exact",
    "n_near_found": "near-exact found",
    "n_near_flagged": "near-exact flagged",
    "n_partitions_right": "partitions right",
    "second_piece": "second piece",
    "released_rouge": "ROUGE-L",
    "published": "printed",
    "note": "reason",
    "n_printed": "printed",
    "n_recomputed": "recomputed",
    "n_matching": "match",
    "n_ties": "of these halfway",
    "n_differing": "differ",
}


def show(
    table: pd.DataFrame,
    caption: str = "",
    columns: str = "",
    labels: Mapping[str, str] | None = None,
    decimals: int | Mapping[str, int] = 2,
    paper_columns: str = "",
) -> Styler:
    """A table for display; the CSV keeps full precision.

    Dataset text and model answers are untrusted, so every cell, label and the
    caption are escaped before they become HTML.

    Args:
        table: what to show; its index is hidden.
        caption: what the table is, with its denominators.
        columns: columns to show, in order, names parted by spaces; all when empty.
        labels: headings other than those of ``LABELS``.
        decimals: decimals of numbers, for all columns or per column.
        paper_columns: columns of printed values, named likewise; an empty one reads
            "not reported".
    """
    if columns:
        table = table[columns.split()]
    headings = LABELS | dict(labels or {})
    per_column = decimals if isinstance(decimals, Mapping) else dict.fromkeys(table, decimals)
    shown = pd.DataFrame(
        {
            html.escape(str(headings.get(column, column))): [
                _text(
                    value,
                    per_column.get(column, 2),
                    NOT_REPORTED if column in paper_columns.split() else MISSING,
                )
                for value in values
            ]
            for column, values in table.items()
        }
    )
    style = shown.style.hide(axis="index").format(escape="html")
    style = style.set_properties(**{"text-align": "left", "white-space": "nowrap"})
    long = [column for column in shown if shown[column].str.len().max() > _LONGEST_UNBROKEN]
    style = style.set_properties(subset=long, **{"white-space": "pre-wrap"})
    style = style.set_table_styles(
        [
            {"selector": "caption", "props": "text-align: left; font-style: italic"},
            {"selector": "th", "props": "text-align: left"},
        ]
    )
    return style.set_caption(html.escape(caption)) if caption else style


def _text(value: object, decimals: int, missing: str) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and pd.isna(value)):
        return missing
    if isinstance(value, str):
        return value or missing
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "yes" if value else "no"
    if isinstance(value, float) or type(value).__name__.startswith("float"):
        return f"{value:.{decimals}f}"
    return str(value)


def interval_text(low: float, high: float, decimals: int = 1) -> str:
    """An interval as text, "[49.4, 64.6]"; undefined ends read as missing."""
    if pd.isna(low) or pd.isna(high):
        return MISSING
    return f"[{low:.{decimals}f}, {high:.{decimals}f}]"


def with_interval(
    table: pd.DataFrame,
    low: str = "ci_low",
    high: str = "ci_high",
    name: str = "interval",
    decimals: int = 2,
) -> pd.DataFrame:
    """The table with one text column for an interval's two ends."""
    texts = [interval_text(a, b, decimals) for a, b in zip(table[low], table[high], strict=True)]
    return table.assign(**{name: texts})


def say(text: str) -> Markdown:
    """A sentence for display; characters that Markdown or HTML would act on are escaped."""
    return Markdown(re.sub(r"([*_`\[\]|])", r"\\\1", html.escape(text, quote=False)))


def coloured_tokens(tokens: list[str], values: list[float], k_percent: float) -> HTML:
    """A passage token by token, its least likely tokens marked.

    Args:
        tokens: the tokens as text, spaces included.
        values: log-probability of each token, nats.
        k_percent: share of tokens to mark, those with the lowest values.
    """
    n_marked = max(1, int(len(values) * k_percent / 100))
    lowest = set(sorted(range(len(values)), key=lambda index: values[index])[:n_marked])
    colours = [_MARKED if index in lowest else "none" for index in range(len(values))]
    spans = [
        f'<span title="{value:.2f} nats" style="background: {colour}">{html.escape(token)}</span>'
        for token, value, colour in zip(tokens, values, colours, strict=True)
    ]
    return HTML(f'<p style="white-space: pre-wrap; line-height: 1.8">{"".join(spans)}</p>')
