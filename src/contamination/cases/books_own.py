"""One's own books, scored by a local model or by a served one: part C of notebook 06."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.asked import check_models
from contamination.cases.library import TEST, VALIDATION, read_books
from contamination.cases.settings import OwnBooks
from contamination.min_k.detect import detect, score_table
from contamination.models.chat import Endpoint, Price
from contamination.models.prompt_log_probs import prompt_log_probs


def own_books(settings: OwnBooks) -> pd.DataFrame | None:
    """One's own books from three folders, or None where none is named.

    ValueError if only some folders are named, a validation folder holds fewer than four
    books, or two books have the same text; other errors as ``library.read_books``.
    """
    names = "validation_members_folder", "validation_non_members_folder", "test_folder"
    folders = [*settings.only(*names).values()]
    if not any(folders):
        return None
    if not all(folders):
        raise ValueError(
            "name three folders of books: members and non-members to choose the threshold on, and "
            "the books in question"
        )
    kinds = (VALIDATION, True), (VALIDATION, False), (TEST, None)
    shelves = [read_books(name, *kind) for name, kind in zip(folders, kinds, strict=True)]
    for name, books in zip(folders[:2], shelves, strict=False):
        if len(books) < 4:
            raise ValueError(f'"{name}" holds {len(books)} books: validation needs four or more')
    table = pd.concat(shelves, ignore_index=True)
    for _, same in table.groupby("text")["book"]:
        if len(same) > 1:
            raise ValueError(f'"{same.iloc[0]}" and "{same.iloc[1]}" have the same text: drop one')
    return table


def own_scorer(own: pd.DataFrame | None, settings: OwnBooks) -> Callable[..., pd.DataFrame] | None:
    """What scores one's own snippets, checked before it costs anything; None without books.

    Returns:
        A function of texts, neighbors and k_percents that gives the table of
        ``min_k.detect.detect``; the model is loaded or asked when it is called.

    Raises:
        ValueError: if books come without a scorer, a scorer without books, or both kinds.
        FileNotFoundError: if the local model or the one for neighbours is not there.
    """
    model, base_url = settings.target_model, settings.base_url
    if own is None and not model and not base_url:
        return None
    if own is None:
        raise ValueError("a model is named but no folder of books: part C needs both, or neither")
    if bool(model) == bool(base_url):
        raise ValueError("part C needs one scorer: a target_model, or a base_url with served_model")
    check_models([model, settings.neighbor_model], settings.target_revision)
    if model:
        return lambda texts, **options: detect(texts, settings.load(), **options)
    endpoint = Endpoint(base_url, settings.served_model, settings.key_variable or None)
    price = Price(settings.input_price, 0.0, settings.price_date) if settings.price_date else None
    return partial(detect_served, endpoint=endpoint, price=price, cap=settings.cap or None)


def detect_served(
    texts: Sequence[str],
    endpoint: Endpoint,
    *,
    neighbors: Sequence[Sequence[str]] | None = None,
    k_percents: Sequence[float] = (20.0,),
    **settings: Any,
) -> pd.DataFrame:
    """Scores of passages by a served model that gives log-probabilities of its prompt.

    Args:
        neighbors: of each passage; adds Neighbor.
        k_percents: shares of tokens that Min-k% Prob keeps.
        settings: keyword arguments of ``models.chat.answer_all``, such as price and cap.

    Returns:
        Columns as ``min_k.detect.detect``. Min-K%++ is missing: it needs the
        whole distribution, which no endpoint gives.
    """
    around = [[]] * len(texts) if neighbors is None else neighbors
    every = [*texts, *(text.lower() for text in texts), *(text for each in around for text in each)]
    log_probs = prompt_log_probs(endpoint, every, **settings)
    n, ends = len(texts), np.cumsum([2 * len(texts), *map(len, around)])
    near = None if neighbors is None else [log_probs[a:b] for a, b in pairwise(ends)]
    counts = [(values.size + 1, 1) for values in log_probs[:n]]
    own, lowered = log_probs[:n], log_probs[n : 2 * n]
    table = score_table(texts, own, counts, k_percents, lowered=lowered, near=near)
    return table.assign(first_token_scored=False)
