"""The texts of the books study: books of documentation or of one's own, and their snippets.

Shi et al., arXiv:2310.16789, section 5.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from contamination.core.words import first_words, units

VALIDATION, TEST = "validation", "test"
PAGE_WORDS = 200  # a page of the lab fits into its context


def documentation_books(
    passages: pd.DataFrame, n_books: int, n_words: int, seed: int
) -> pd.DataFrame:
    """Modules of documentation as books, half of them for training, membership at random.

    A book is what the clean split of the lab (``lab.passages.split_by_family``) holds of one
    module outside the background, so no run of 13 words occurs in two books, nor in the
    background; cut to ``n_words``, a shorter module is not a book. Half of the books in training
    and half of the others are of the part "validation", the rest of "test";
    so ``n_books`` is a multiple of four.

    Raises:
        ValueError: if too few modules are long enough.
    """
    pages = passages[passages["role"] != "background"].groupby("family")
    long_enough = [name for name, page in pages if page["n_words"].sum() >= n_words]
    if len(long_enough) < n_books:
        raise ValueError(
            f"only {len(long_enough)} modules have {n_words} words, {n_books} books asked for: "
            "ask for fewer or shorter ones"
        )
    dealt = np.random.default_rng([seed, 6]).permutation(long_enough)[:n_books]
    rows = [
        {
            "book": name,
            "package": pages.get_group(name)["package"].iloc[0],
            "part": (VALIDATION, TEST)[number % 2],
            "in_training": number % 4 < 2,
            "text": first_words(" ".join(pages.get_group(name)["text"]), n_words),
        }
        for number, name in enumerate(dealt)
    ]
    return pd.DataFrame(rows).sort_values("book", ignore_index=True)


def pages(text: str, n_words: int = PAGE_WORDS) -> list[str]:
    """A book cut into pages, each of which fits into a training block; the last may be shorter."""
    words = units(text)
    starts = range(0, len(words), n_words)
    return ["".join(words[start : start + n_words]).rstrip() for start in starts]


def read_books(folder: str, part: str, in_training: bool | None) -> pd.DataFrame:
    """The plain-text files (.txt, UTF-8) of a folder, one book each, in alphabetical order.

    ``in_training`` is None where that is the question. Columns as ``documentation_books``,
    package empty.

    Raises:
        FileNotFoundError: if there is no such folder, or no .txt file in it.
        ValueError: if a file is not UTF-8.
    """
    files = sorted(Path(folder).expanduser().glob("*.txt"))
    if not files:
        raise FileNotFoundError(
            f'"{folder}" has no .txt file: name a folder with one plain-text file for each book'
        )
    rows = [(file.stem, "", part, in_training, read_text(file)) for file in files]
    return pd.DataFrame(rows, columns=["book", "package", "part", "in_training", "text"])


def read_text(file: Path) -> str:
    """A plain-text file in UTF-8; ValueError if it is not."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file.name}: not UTF-8 text: save the file as UTF-8") from error


def random_snippets(books: pd.DataFrame, n_snippets: int, n_words: int, seed: int) -> pd.DataFrame:
    """Snippets from random places of each book; they may overlap, as the paper's may.

    The paper draws 100 of 512 words from each book. The places in a book do not depend on other
    books; its snippets (from 0) stand one after another.

    Raises:
        ValueError: if a book has fewer words than a snippet, or two books of a part have one name.
    """
    rows = []
    for row in books.to_dict("records"):
        words = units(row.pop("text"))
        if len(words) < n_words:
            raise ValueError(
                f'book "{row["book"]}" has {len(words)} words, a snippet {n_words}: leave it out '
                "or ask for shorter snippets"
            )
        name = [seed, 7, *row["book"].encode()]
        starts = np.random.default_rng(name).integers(len(words) - n_words + 1, size=n_snippets)
        rows += [
            row | {"snippet": number, "text": "".join(words[start : start + n_words]).rstrip()}
            for number, start in enumerate(starts)
        ]
    table = pd.DataFrame(rows)
    if table.duplicated(["part", "book", "snippet"]).any():
        raise ValueError("two books of one part have the same name: rename one of them")
    return table
