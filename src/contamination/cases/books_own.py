"""One's own books, scored by a local model or by a served one: part C of notebook 06."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination import scores
from contamination.cases.library import TEST, VALIDATION, read_books
from contamination.min_k.detect import detect
from contamination.models.chat import Endpoint, Price, prompt_log_probs
from contamination.own.asked import check_models
from contamination.own.settings import OwnTarget
from contamination.parameters import setting


@dataclass(frozen=True)
class OwnBooks(OwnTarget):
    """Part C of notebook 06: one's own model and data."""

    validation_members_folder: str = setting("", "folder of .txt books the model has read")
    validation_non_members_folder: str = setting("", "folder of .txt books it cannot have read")
    test_folder: str = setting("", "folder of .txt books in question, empty to skip part C")
    own_snippets: int = setting(100, "snippets of each book")
    own_snippet_words: int = setting(512, "words of a snippet")
    base_url: str = setting("", "endpoint with prompt log-probabilities instead, up to /v1")
    served_model: str = setting("", "the model's name at the endpoint")
    key_variable: str = setting("", "name of the environment variable with the key, empty for none")
    input_price: float = setting(
        0.0, "price of a million input tokens, 0 for a server of one's own"
    )
    price_date: str = setting("", "day the price was read")
    cap: float = setting(0.0, "most that the run may cost, 0 for no cap")
    neighbor_model: str = setting("", "fill-mask model that writes neighbours, empty for none")

    @property
    def name(self) -> str:
        """What tables call the model, without the folder it lies in."""
        return self.served_model or Path(self.target_model).name


def own_books(mine: OwnBooks) -> pd.DataFrame | None:
    """One's own books from three folders, or None where none is named.

    Raises:
        ValueError: if only some of the folders are named, a validation folder holds
            fewer than four books, or two books have the same text.
        FileNotFoundError: as ``library.read_books``.
    """
    known = {
        "validation_members_folder": (VALIDATION, True),
        "validation_non_members_folder": (VALIDATION, False),
        "test_folder": (TEST, None),
    }
    folders = mine.only(*known)
    if not any(folders.values()):
        return None
    if not all(folders.values()):
        raise ValueError(
            "name three folders of books: members and non-members to choose the threshold on, and "
            "the books in question"
        )
    found = [read_books(folder, *known[name]) for name, folder in folders.items()]
    for folder, table in list(zip(folders.values(), found, strict=True))[:2]:
        if len(table) < 4:
            raise ValueError(f'"{folder}" holds {len(table)} books: validation needs four or more')
    table = pd.concat(found, ignore_index=True)
    for _, same in table.groupby("text")["book"]:
        if len(same) > 1:
            raise ValueError(f'"{same.iloc[0]}" and "{same.iloc[1]}" have the same text: drop one')
    return table


def own_scorer(own: pd.DataFrame | None, mine: OwnBooks) -> Callable[..., pd.DataFrame] | None:
    """What scores one's own snippets, checked before it costs anything; None without books.

    Args:
        own: as ``own_books`` returns it.
        mine: a local model or an endpoint, and the model that will write neighbours.

    Returns:
        A function of texts, neighbors and k_percents that gives the table of
        ``min_k.detect.detect``; the model is loaded or asked when it is called.

    Raises:
        ValueError: if books come without a scorer, or a scorer without books, or
            both kinds of scorer are named.
        FileNotFoundError: if the local model or the one for neighbours is not there.
    """
    model, base_url = mine.target_model, mine.base_url
    if own is None and not model and not base_url:
        return None
    if own is None:
        raise ValueError("a model is named but no folder of books: part C needs both, or neither")
    if bool(model) == bool(base_url):
        raise ValueError("part C needs one scorer: a target_model, or a base_url with served_model")
    check_models([model, mine.neighbor_model], mine.target_dtype, mine.target_revision)
    if model:

        def local(texts: Sequence[str], **how: Any) -> pd.DataFrame:
            return detect(texts, mine.load(), **how)

        return local
    endpoint = Endpoint(base_url, mine.served_model, mine.key_variable or None)
    paid = {"price": Price(mine.input_price, 0.0, mine.price_date)} if mine.price_date else {}
    return partial(detect_served, endpoint=endpoint, cap=mine.cap or None, **paid)


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
        texts: passages.
        endpoint: the model, see ``models.chat.prompt_log_probs``.
        neighbors: neighbours of each passage; adds Neighbor.
        k_percents: shares of tokens that Min-k% Prob keeps.
        settings: keyword arguments of ``models.chat.answer_all``, such as price and cap.

    Returns:
        Columns as ``min_k.detect.detect``. Min-K%++ is missing: it needs the
        whole distribution, which no endpoint gives.
    """
    around = [[]] * len(texts) if neighbors is None else neighbors
    lowercase = [text.lower() for text in texts]
    every = [*texts, *lowercase, *(text for group in around for text in group)]
    found = [value.token_log_probs for value in prompt_log_probs(endpoint, every, **settings)]
    ends = np.cumsum([2 * len(texts), *map(len, around)])
    rows = []
    for number, (start, end) in enumerate(pairwise(ends)):
        own, low = found[number], found[len(texts) + number]
        values = [
            (scores.PPL, None, scores.perplexity_score(own)),
            (scores.ZLIB, None, scores.zlib_score(own, texts[number])),
            (scores.LOWERCASE, None, scores.lowercase_score(own, low)),
        ]
        if neighbors is not None:
            values.append((scores.NEIGHBOR, None, scores.neighbor_score(own, found[start:end])))
        values += [(scores.MIN_K, k, scores.min_k_score(own, k)) for k in k_percents]
        counts = {"n_tokens": own.size + 1, "n_scored": own.size, "n_windows": 1}
        rows += [
            {"passage": number, "method": method, "k_percent": k_percent, "score": score}
            | counts
            | {"first_token_scored": False}
            for method, k_percent, score in values
        ]
    return pd.DataFrame(rows).astype({"k_percent": float})
