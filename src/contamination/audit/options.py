"""Options of the quizzes: given with the rows, written by a chat model, or made by a rule.

The rule replaces words by words of the same list, drawn with equal chances
(the list is ours and English). Nobody reads what comes out, so it is cruder
than the paper's perturber; the original is still the only text that somebody
wrote, which is what the same quiz on rows that nobody can have read is for.
"""

from __future__ import annotations

import json
import re
from importlib import resources

import numpy as np
import pandas as pd

from contamination.audit.asked import PERTURBER, Asked
from contamination.audit.rows import FEWEST_ROWS, Rows
from contamination.core import storage, visible
from contamination.core.overlap import normalised
from contamination.data import partitions
from contamination.data.partitions import format_instance
from contamination.dcq.perturbation import FIFTH, perturb
from contamination.dcq.quizzes import OPTION_COLUMNS

GIVEN, WRITTEN, RULE = "given with the rows", "written by the perturber", "made by a rule"
_N_TRIES = 60
# Words that stand for one another in most places, with the forms that occur.
_GROUPS = json.loads((resources.files(__package__) / "interchangeable_words.json").read_text())
_WORD = re.compile(r"[A-Za-z-]+")
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

    def draw(match: re.Match[str]) -> str:
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


def source_of(rows: Rows, asked: Asked) -> str:
    """Where the options of these rows come from."""
    if set(OPTION_COLUMNS) <= set(rows.rows):
        return GIVEN
    return WRITTEN if PERTURBER in asked.helpers else RULE


def quizzes_of(rows: Rows, asked: Asked, seed: int) -> pd.DataFrame:
    """Quizzes of a sample, see ``dcq.perturbation``; ValueError if too few rows get options."""
    source = source_of(rows, asked)
    if source == WRITTEN:
        ask = asked.ask(PERTURBER)
        quizzes, _ = perturb(rows.rows, rows.columns, ask, label_columns=rows.labels)
    elif source == GIVEN:
        quizzes = rows.rows[["index", *OPTION_COLUMNS]].fillna("").assign(**{FIFTH: ""})
        quizzes = quizzes.astype(dict.fromkeys(OPTION_COLUMNS, str))
        quizzes.insert(1, "instance", rows.instances)
        texts = quizzes[["instance", *OPTION_COLUMNS]].map(normalised)
        is_distinct = texts.ne("").all(axis=1) & texts.nunique(axis=1).eq(texts.shape[1])
        quizzes = quizzes[is_distinct].reset_index(drop=True)
    else:
        quizzes = _quizzes_by_rule(rows, seed)
    if len(quizzes) < FEWEST_ROWS:
        cure = "name a perturber_model, or give the columns option_a to option_d"
        raise ValueError(
            f"{len(quizzes)} of {len(rows.rows)} rows have four distinct options {source}, "
            f"at least {FEWEST_ROWS} are needed: {cure}"
        )
    return quizzes


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


def read_options(source: str) -> pd.DataFrame:
    """Quizzes of an earlier run: instance, option_a to option_d and perhaps fifth, checked."""
    quizzes = partitions.load_rows(source)
    if source.lower().endswith(".csv"):  # as a run wrote it
        quizzes = storage.with_texts(quizzes, visible.unguarded)
    needed = ["instance", *OPTION_COLUMNS]
    if missing := [name for name in needed if name not in quizzes]:
        raise ValueError(f'options_file "{source}" lacks the columns {", ".join(missing)}')
    texts = quizzes[needed].fillna("").astype(str)
    is_empty = texts.map(str.strip).eq("").any(axis=1)
    if texts.empty or is_empty.any():
        raise ValueError(
            f'options_file "{source}": {int(is_empty.sum())} of {len(texts)} rows lack a text; '
            "every quiz needs an instance and four options"
        )
    if (texts[OPTION_COLUMNS[-1]] == texts["instance"]).all():
        raise ValueError(
            f'in "{source}" option_d is the original everywhere, so there is no modified quiz: '
            "options need four perturbations"
        )
    texts[FIFTH] = quizzes[FIFTH].fillna("").astype(str) if FIFTH in quizzes else ""
    return texts.assign(index=range(len(texts)))
