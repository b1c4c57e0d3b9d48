"""Cut an instance into first and second piece (Time Travel, section 3.1, step 2).

Texts of several sentences are cut at a sentence end, single sentences at a
word; of a sentence pair the first piece is sentence 1. Where the cut falls is
random, per instance: it depends on the seed and the text alone, so an instance
is cut alike in every sample it is drawn into.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from contamination.core import storage
from contamination.core.words import sentence_ends, unit_ends
from contamination.replication.instructions import NLI, TASKS

PAPER, SHARE = "paper", "share"
CUTS = (PAPER, SHARE)
SHARE_OF_WORDS = (0.4, 0.7)  # DCQ, arXiv:2311.06233: length of the first piece


def cut(text: str, seed: int, how: str = PAPER, min_words: int = 1) -> tuple[str, str, bool]:
    """First piece, second piece, and whether the cut falls inside a sentence.

    Args:
        text: an instance, or its summary.
        seed: with the text it decides where the cut falls.
        how: ``paper``: at a random sentence end, or at a random word where none
            leaves ``min_words`` on both sides; ``share``: after 40 to 70 % of the
            words, as in the DCQ paper's comparison.
        min_words: fewest words of either piece. A second piece of one or two
            words is completed right by chance.

    ValueError for fewer than twice ``min_words`` words, or an unknown ``how``.
    """
    if how not in CUTS:
        raise ValueError(f"cut must be one of {', '.join(CUTS)}, got {how!r}")
    ends = unit_ends(text)
    if len(ends) < 2 * min_words:
        raise ValueError(
            f"a text of {len(ends)} words cannot be cut into two pieces of {min_words}: {text!r}"
        )
    places = range(min_words, len(ends) - min_words + 1)  # words of the first piece
    if how == SHARE:
        low, high = (share * len(ends) for share in SHARE_OF_WORDS)
        within = [place for place in places if low <= place <= high]
        places = within or [min(places, key=lambda place: abs(place - (low + high) / 2))]
    at_sentence_end = set(sentence_ends(text))
    if how == PAPER:
        places = [place for place in places if ends[place - 1] in at_sentence_end] or places
    generator = np.random.default_rng(int(storage.hash_of([seed, text])[:15], 16))
    end = ends[places[int(generator.integers(len(places)))] - 1]
    return text[:end].strip(), text[end:].strip(), end not in at_sentence_end


def cut_rows(
    rows: pd.DataFrame,
    task: str,
    text_columns: Sequence[str],
    label_column: str = "",
    *,
    seed: int,
    how: str = PAPER,
    min_words: int = 1,
) -> pd.DataFrame:
    """Instances in two pieces: with label (as text), first_piece, second_piece, is_mid_sentence.

    Args:
        rows: instances.
        task: one of ``instructions.TASKS``; sentence pairs are not cut.
        text_columns: the column of the text; for sentence pairs both.
        label_column: empty where the prompt shows none.
        seed, how, min_words: of :func:`cut`.

    ValueError for an unknown task, a wrong number of columns, or as in :func:`cut`.
    """
    if task not in TASKS:
        raise ValueError(f'task must be one of {", ".join(TASKS)}, got "{task}"')
    n_columns = 2 if task == NLI else 1
    if len(text_columns) != n_columns:
        raise ValueError(f"{task} needs {n_columns} text columns, got {list(text_columns)}")
    if task == NLI:
        first, second = (rows[column].astype(str).str.strip() for column in text_columns)
        pieces = [(*pair, False) for pair in zip(first, second, strict=True)]
    else:
        pieces = [cut(str(text), seed, how, min_words) for text in rows[text_columns[0]]]
    found = pd.DataFrame(pieces, columns=["first_piece", "second_piece", "is_mid_sentence"])
    found.index = rows.index
    labels = rows[label_column].astype(str) if label_column else ""
    return rows.assign(label=labels, **found)
