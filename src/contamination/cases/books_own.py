"""One's own books, scored by a local model or by a served one: the end of notebook 06."""

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
    """One's own books from three folders, checked before they cost anything; None without any.

    Raises:
        ValueError: if a folder or the model is not named, a validation folder holds fewer
            than four books, or two books have the same text.
        FileNotFoundError: if a folder or a local model is not there.
    """
    who, members = settings.model, settings.validation_members_folder
    folders = members, settings.validation_non_members_folder, settings.test_folder
    if not any((*folders, *who.names)):
        return None
    if not all(folders) or len(who.names) != 1:
        raise ValueError(
            "name one model and three folders of books: members and non-members to choose the "
            "threshold on, and the books in question"
        )
    check_models([settings.neighbor_model])
    if not who.base_url:
        check_models([who.first], who.revision)
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


def own_scorer(settings: OwnBooks) -> Callable[..., pd.DataFrame]:
    """What scores snippets: takes texts, neighbors and k_percents, gives ``min_k.detect.detect``.

    The model is loaded or asked when it is called. ValueError if the prices do not fit.
    """
    who = settings.model
    if not who.base_url:
        return lambda texts, **options: detect(texts, load_model(who), **options)
    endpoint = Endpoint(who.base_url, who.first, who.key_variable or None)
    price = price_of(who.prices, who.price_date)
    return partial(detect_served, endpoint=endpoint, price=price, cap=who.cost_cap or None)
