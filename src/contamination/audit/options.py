"""Options of the quizzes: given with the rows, written by a chat model, or made by a rule.

The rule replaces words by words of the same list (ours, English), drawn with equal chances. It is
cruder than the paper's perturber, and the original is the only text that somebody wrote; the same
quiz on rows that nobody can have read is there for that.
"""

from __future__ import annotations

import json
from functools import partial
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
import regex

from contamination.audit.rows import FEWEST_ROWS, Rows
from contamination.audit.settings import PERTURBER, Settings
from contamination.core import storage
from contamination.core.overlap import normalised
from contamination.data.partitions import format_instance
from contamination.dcq.quizzes import FIFTH, OPTION_COLUMNS, perturb
from contamination.models.chat import answer_all

GIVEN, WRITTEN, RULE = "given with the rows", "written by the perturber", "made by a rule"
_N_TRIES = 60
# Words that stand for one another in most places, with the forms that occur.
_GROUPS = json.loads(
    (resources.files("contamination.audit") / "interchangeable_words.json").read_text()
)
_WORD = regex.compile(r"[\p{L}\p{M}-]+")
_KNOWN: dict[str, tuple[str, ...]] = {}
for _group in _GROUPS:
    for _word in _group:
        _KNOWN[_word] = tuple(dict.fromkeys([*_KNOWN.get(_word, ()), *_group]))


def by_rule(text: str, n: int, seed: int) -> list[str]:
    """At most n distinct rewritings of a text, fewer where too few of its words are known.

    Every known word is drawn anew from its list; capitals stay. Seed and text decide.

    >>> sorted(by_rule("A big house.", 5, 0))
    ['A big home.', 'A large home.', 'A large house.']
    """
    generator = np.random.default_rng(int(storage.hash_of([seed, text])[:15], 16))

    def draw(match: Any) -> str:
        word = match[0]
        if not (choices := _KNOWN.get(word.lower())):
            return word
        chosen = choices[generator.integers(len(choices))]
        return chosen.capitalize() if word[0].isupper() else chosen

    found: dict[str, str] = {}
    for _ in range(_N_TRIES):
        new = _WORD.sub(draw, text)
        if normalised(new) != normalised(text):
            found.setdefault(normalised(new), new)
        if len(found) == n:
            break
    return list(found.values())


def source_of(rows: Rows, told: Settings) -> str:
    """Where the options of these rows come from."""
    if rows.has_options:
        return GIVEN
    return WRITTEN if PERTURBER in told.helpers else RULE


def quizzes_of(
    rows: Rows, told: Settings, with_fifth: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Quizzes of a sample, and counts where a perturber wrote them, see ``dcq.quizzes``.

    ``with_fifth`` has it write a fifth perturbation. ValueError if too few rows get options.
    """
    if source_of(rows, told) != WRITTEN:
        return quizzes_unasked(rows, told.seed), pd.DataFrame()
    written: dict[str, Any] = {"label_columns": rows.labels, "with_fifth": with_fifth}
    written["layout"] = told.dcq.layout
    ask = partial(answer_all, told.helpers[PERTURBER], **told.paying(PERTURBER))
    quizzes, counts = perturb(rows.rows, rows.columns, ask, **written)
    return _enough(quizzes, rows, WRITTEN), counts


def quizzes_unasked(rows: Rows, seed: int) -> pd.DataFrame:
    """Quizzes of the rows that have, or can be given by the rule, four distinct options.

    ValueError if they are too few.
    """
    if rows.has_options:
        return _enough(_quizzes_given(rows), rows, GIVEN)
    return _enough(_quizzes_by_rule(rows, seed), rows, RULE)


def _enough(quizzes: pd.DataFrame, rows: Rows, source: str) -> pd.DataFrame:
    if len(quizzes) < FEWEST_ROWS:
        raise ValueError(
            f"{len(quizzes)} of {len(rows.rows)} rows have four distinct options {source}, and "
            f"at least {FEWEST_ROWS} are needed: name a perturber_model, or give the columns "
            "option_a to option_d"
        )
    return quizzes


def _quizzes_given(rows: Rows) -> pd.DataFrame:
    quizzes = rows.rows[["index", *OPTION_COLUMNS]].fillna("")
    quizzes[FIFTH] = rows.rows[FIFTH].fillna("") if FIFTH in rows.rows else ""
    quizzes = quizzes.astype(dict.fromkeys([*OPTION_COLUMNS, FIFTH], str))
    quizzes.insert(1, "instance", rows.instances)
    texts = quizzes[["instance", *OPTION_COLUMNS]].map(normalised)
    is_distinct = texts.ne("").all(axis=1) & texts.nunique(axis=1).eq(texts.shape[1])
    return quizzes[is_distinct].reset_index(drop=True)


def _quizzes_by_rule(rows: Rows, seed: int) -> pd.DataFrame:
    found = []
    for row in rows.rows.to_dict("records"):
        # The texts of a pair change together; a mark that no text holds parts them.
        joined = "\x1f".join(row[column] for column in rows.texts)
        options = by_rule(joined, len(OPTION_COLUMNS), seed)
        if len(options) < len(OPTION_COLUMNS):
            continue
        changed = [row | dict(zip(rows.texts, o.split("\x1f"), strict=True)) for o in options]
        printed = [format_instance(one, rows.columns) for one in (row, *changed)]
        found.append([row["index"], *printed, ""])
    return pd.DataFrame(found, columns=["index", "instance", *OPTION_COLUMNS, FIFTH])
