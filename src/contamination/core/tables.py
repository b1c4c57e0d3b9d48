"""How result tables look in a notebook: rounded, captioned, escaped."""

from __future__ import annotations

import html
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import HTML, Markdown

from contamination.core.keys import visible
from contamination.core.scores import n_lowest

MISSING = "–"
NOT_REPORTED = "not reported"
NOT_CARRIED = "This run does not carry the conclusion of the stored run"
_MARKED = "#F5B7A0"
# JupyterLab aligns cells to the right. Where styles are stripped, as on GitHub, nothing is lost.
_STYLE = "<style>.result :is(caption, th, td) { text-align: left }</style>"
_P_DECIMALS = 3  # of p values
_P_VALUE = re.compile("p(_.+)?")  # names of columns that hold p values

# Headings that :func:`heading` does not give; one spelling everywhere.
LABELS = {
    "k_percent": "k %",
    "n_non_members": "non-members",
    "tpr_at_5_fpr": "TPR at 5 % FPR",
    "paper_tpr": "paper TPR %",
    "share_pct": "dosed share %",
    "permutation_null": "shuffled labels",
    "is_best": "chosen",
    "index": "instance",
    "interval": "95 % interval",
    "n_right_best_quiz": "right in best quiz",
    "n_option_d_is_original": "option D is the original",
    "n_line_breaks_alone": "told apart by line breaks",
    "difference_pct": "difference, points",
    "rouge_l": "ROUGE-L",
    "rouge_l_recall": "ROUGE-L recall",
    "released_rouge": "ROUGE-L",
    "story_nll": "NLL of the story",
    "other_nll": "NLL of other text",
    "mean_general": "general",
    "mean_guided": "guided",
    "n_partitions": "of",
    "paper_n_right": "paper",
    "published": "printed",
    "note": "reason",
}
_WORDS = {"pct": "%", "auc": "AUC", "auroc": "AUROC"}


class Page(HTML):
    """Something to display, as HTML (``data``) and, where there is no browser, as text."""

    def __init__(self, data: str, text: str) -> None:
        super().__init__(data)
        self.text = text

    def __repr__(self) -> str:
        return self.text


def heading(column: str) -> str:
    """A column's name as a reader meets it.

    >>> heading("n_models"), heading("paper_max_pct"), heading("blind_auc")
    ('models', 'paper max %', 'blind AUC')
    """
    if column in LABELS:
        return LABELS[column]
    return " ".join(_WORDS.get(word, word) for word in column.removeprefix("n_").split("_"))


def show(
    table: pd.DataFrame,
    caption: str = "",
    columns: str = "",
    labels: Mapping[str, str] | None = None,
    decimals: int | Mapping[str, int] = 2,
    paper_columns: str = "",
) -> Page:
    """A table for display, without its index; the CSV keeps full precision.

    It is a plain ``<table>`` that reads well without any style, with the same table as text next
    to it. Dataset text and model answers are untrusted, so every cell, label and the caption are
    escaped before they become HTML, and control characters are written out.

    Args:
        columns: to show, in order, names parted by spaces; all when empty.
        labels: headings other than those of :func:`heading`.
        decimals: decimals of numbers, for all columns or per column. Columns named ``p`` or
            ``p_...`` hold p values, which :func:`format_p` prints.
        paper_columns: columns of printed values, named likewise; an empty one reads
            "not reported".
    """
    if columns:
        table = table[columns.split()]
    labels = labels or {}
    columns_of_text = []
    for column, values in table.items():
        missing = NOT_REPORTED if column in paper_columns.split() else MISSING
        number = _number_format(str(column), decimals)
        columns_of_text.append([_text(value, number, missing) for value in values])
    headings = [visible(labels.get(column, heading(str(column)))) for column in table]
    rows = list(zip(*columns_of_text, strict=True))
    return Page(_html_table(visible(caption), headings, rows), _as_text(caption, headings, rows))


def _html_table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def row(texts: Sequence[str], tag: str) -> str:
        cells = (html.escape(text).replace("\n", "<br>") for text in texts)
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>\n"

    above = f"<caption><i>{html.escape(caption)}</i></caption>\n" if caption else ""
    body = "".join(row(texts, "td") for texts in rows)
    return (
        f'{_STYLE}\n<table class="result">\n{above}<thead>\n{row(headings, "th")}</thead>\n'
        f"<tbody>\n{body}</tbody>\n</table>"
    )


def _as_text(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table as lines of text, its columns aligned."""
    lines = [[text.replace("\n", " / ") for text in row] for row in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([visible(caption)] * bool(caption) + texts)


def _number_format(column: str, decimals: int | Mapping[str, int]) -> Callable[[float], str]:
    is_p = _P_VALUE.fullmatch(column)
    if isinstance(decimals, Mapping):
        n_decimals = decimals.get(column, _P_DECIMALS if is_p else 2)
    else:
        n_decimals = _P_DECIMALS if is_p else decimals
    if is_p:
        return lambda p: format_p(p, decimals=n_decimals)
    return f"{{:.{n_decimals}f}}".format


def _text(value: Any, format_number: Callable[[float], str], missing: str) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and pd.isna(value)):
        return missing
    if isinstance(value, str):
        return visible(value) or missing
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return format_number(value)
    return str(value)


def format_p(p: float, smallest: float = 0.0, decimals: int = _P_DECIMALS) -> str:
    """A p value as text that never reads as zero.

    Args:
        p: 0 to 1; an undefined one reads as missing.
        smallest: the smallest p above 0 that the test can give with so few items or draws, such
            as 2^-n of n sign flips or 1/n of n resamples; 0 where that is not known. A p that
            is as small says so, since fewer items and not the effect may be the reason.
        decimals: a p below the last decimal reads as "< 0.001".

    >>> format_p(0.0123), format_p(0.00002), format_p(1 / 1024, 2**-10), format_p(0, 1 / 10_000)
    ('0.012', '< 0.001', '1/1,024 (the smallest possible)', '< 1/10,000')
    """
    if pd.isna(p):
        return MISSING
    if smallest > 0 and p <= smallest * (1 + 1e-9):
        limit = f"1/{1 / smallest:,.0f}"
        is_reached = p >= smallest * (1 - 1e-9)
        return f"{limit} (the smallest possible)" if is_reached else f"< {limit}"
    least = 10.0**-decimals
    return f"{p:.{decimals}f}" if p >= least else f"< {least:.{decimals}f}"


def interval_text(low: float, high: float, decimals: int = 1) -> str:
    """An interval as text, "[49.4, 64.6]"; undefined ends read as missing."""
    if pd.isna(low) or pd.isna(high):
        return MISSING
    return f"[{low:z.{decimals}f}, {high:z.{decimals}f}]"  # z: never "-0"


def auc_text(row: pd.Series, decimals: int = 2) -> str:
    """An AUC with its interval, "0.79 [0.77, 0.82]"; the row has auc, ci_low and ci_high."""
    return f"{row['auc']:.{decimals}f} {interval_text(row['ci_low'], row['ci_high'], decimals)}"


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
    return Markdown(_escaped(text))


def _escaped(text: str) -> str:
    return re.sub(r"([*_`\[\]|])", r"\\\1", html.escape(visible(text), quote=False))


def conclude(
    sentence: str, *, values: Callable[[], Mapping[str, Any]] = dict, **facts: Callable[[], Any]
) -> Markdown:
    """A sentence that a person wrote, if this run's tables carry it.

    No fact is looked at outside this call, so that a table without the rows that a fact reads
    stops no notebook. The sentence is then replaced by a line that names what is not carried.

    Args:
        sentence: Markdown, with values in braces as ``str.format`` takes them.
        values: gives the values by name; they are escaped, and NaN counts as not carried.
        facts: one or more, each giving True or False, or a column of them, all of which must be
            true. One that is NaN or empty, or that raises KeyError or IndexError, is not carried.

    TypeError without facts: nothing would ever contradict the sentence.

    >>> conclude("{auc:.2f} is high.", values=lambda: {"auc": 0.9}, it_is=lambda: 0.9 > 0.8).data
    '0.90 is high.'
    >>> conclude("All are high.", are_high=lambda: pd.Series(dtype=bool)).data
    'This run does not carry the conclusion of the stored run: are\\\\_high.'
    """
    if not facts:
        raise TypeError("a conclusion needs at least one fact that it rests on")
    missing = [name for name, fact in facts.items() if not _is_carried(fact)]
    try:
        given = {} if missing else dict(values())
    except LookupError as error:
        given, missing = {}, [f"values ({error})"]
    missing += [name for name, value in given.items() if pd.isna(value)]
    if missing:
        return say(f"{NOT_CARRIED}: {', '.join(missing)}.")
    return Markdown(_Escaped().vformat(sentence, (), given))


def _is_carried(fact: Callable[[], Any]) -> bool:
    try:
        found = np.asarray(fact())
    except LookupError:
        return False
    return bool(found.size and not pd.isna(found).any() and found.astype(bool).all())


class _Escaped(string.Formatter):
    """Formats a template of ours with values from anywhere."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return _escaped(super().format_field(value, format_spec))


def markdown(table: pd.DataFrame) -> str:
    """A table as Markdown, numbers to three decimals."""

    def text(cell: Any) -> str:
        if pd.isna(cell):
            return ""
        return f"{cell:.3f}" if isinstance(cell, float) else str(cell).replace("|", "/")

    rows = [list(table.columns), ["---"] * len(table.columns)]
    rows += [list(map(text, row)) for row in table.astype(object).to_numpy()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def folded(summary: str, *shown: Page | Markdown) -> Page:
    """Tables and sentences behind a line that the reader clicks to see them; as text, all of it.

    >>> folded("Show the answer", Markdown("It is 0.90."))
    Show the answer
    <BLANKLINE>
    It is 0.90.
    """
    parts, texts = [], [summary]
    for one in shown:
        if isinstance(one, Page):
            parts.append(one.data)
            texts.append(one.text)
        else:
            plain = html.unescape(re.sub(r"\\([*_`\[\]|])", r"\1", str(one.data)))
            parts += [f"<p>{html.escape(part)}</p>" for part in plain.split("\n\n")]
            texts.append(plain)
    inside = "\n".join(parts)
    page = f"<details><summary>{html.escape(summary)}</summary>\n\n{inside}\n</details>"
    return Page(page, "\n\n".join(texts))


def p_text(p: float) -> str:
    """A p-value within a sentence.

    >>> p_text(0.0123), p_text(0.00002)
    ('p = 0.012', 'p < 0.001')
    """
    text = format_p(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def marked_tokens(tokens: Sequence[str], values: Sequence[float], k_percent: float) -> Page:
    """A passage token by token, with the k % least likely tokens in bold on a coloured ground.

    Args:
        tokens: texts of the tokens with their spaces.
        values: their log-probabilities in nats, which a pointer over a token shows.
        k_percent: share of the tokens to mark, above 0 to 100; at least one is marked.

    ValueError if ``k_percent`` is out of range.
    """
    n_marked = n_lowest(len(values), k_percent)
    lowest = set(sorted(range(len(values)), key=lambda index: values[index])[:n_marked])
    shown, texts = [], []
    for index, (token, value) in enumerate(zip(map(visible, tokens), values, strict=True)):
        of_token = f'<span title="{value:.2f} nats">{html.escape(token)}</span>'
        if index in lowest:
            of_token = f'<b style="background: {_MARKED}">{of_token}</b>'
        shown.append(of_token)
        texts.append(f"[{token}]" if index in lowest else token)
    paragraph = f'<p style="white-space: pre-wrap; line-height: 1.8">{"".join(shown)}</p>'
    return Page(paragraph, "".join(texts))


def copies_text(copies: int) -> str:
    """A number of copies as a reader would say it.

    >>> copies_text(1), copies_text(16)
    ('1 copy', '16 copies')
    """
    return f"{copies} {'copy' if copies == 1 else 'copies'}"


def listed(names: Sequence[str], word: str = "and") -> str:
    """Names as a reader would say them, with ``word`` before the last.

    >>> listed(["A", "B", "C"])
    'A, B and C'
    """
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last
