"""One's own books, scored by a local model or by a served one: part C of notebook 06."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from contamination.audit.local_models import check_models, load_model
from contamination.cases.library import TEST, VALIDATION, read_books
from contamination.cases.settings import OwnBooks, price_of
from contamination.min_k.detect import detect, detect_served
from contamination.models.chat import Endpoint


def own_books(settings: OwnBooks) -> pd.DataFrame | None:
    """One's own books from three folders, or None where none is named.

    ValueError if only some folders are named, a validation folder holds fewer than four
    books, or two books have the same text; other errors as ``library.read_books``.
    """
    names = "validation_members_folder", "validation_non_members_folder", "test_folder"
    folders = [getattr(settings, name) for name in names]
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
            raise ValueError(
                f'"{name}" has {len(books)} books: add some, because validation needs four'
            )
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
    who = settings.model
    if own is None and not who.names:
        return None
    if own is None:
        raise ValueError("a model is named but no folder of books: name both, or neither")
    if len(who.names) != 1:
        raise ValueError("your books are scored by one model: name exactly one in model, names")
    if not who.base_url:
        check_models([who.first, settings.neighbor_model], who.revision)
        return lambda texts, **options: detect(texts, load_model(who), **options)
    check_models([settings.neighbor_model])
    endpoint = Endpoint(who.base_url, who.first, who.key_variable or None)
    price = price_of(who.prices, who.price_date)
    return partial(detect_served, endpoint=endpoint, price=price, cap=who.cost_cap or None)
