"""One's own two checkpoints and the text that one of them should have unlearned (notebook 08)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit.local_models import check_models
from contamination.cases.library import read_text
from contamination.cases.settings import OwnModels, price_of
from contamination.cases.unlearning_items import QUESTIONS, STORY, chunk_items, question_items
from contamination.core import overlap
from contamination.data import partitions
from contamination.models.chat import Endpoint


def own_items(settings: OwnModels, score_answers: bool = False) -> dict[str, pd.DataFrame]:
    """One's own items by task, checked before a run costs anything; empty without a model.

    ``score_answers`` is that of ``unlearning_items.question_items``.

    Raises:
        FileNotFoundError: if a model or file is not there.
        ValueError: if only one of the two models is named, there is nothing to
            ask them, the book is no UTF-8 text, or the questions lack a column
            or a value.
    """
    names = settings.model.names
    if not names:
        return {}
    if len(names) not in (2, 3):
        raise ValueError(
            "model, names must list the model before and the model after unlearning, and may add "
            f"one that never saw the text; got {len(names)}"
        )
    if not (settings.book or settings.questions):
        raise ValueError("book and questions are empty: fill in one of them")
    items = {}
    if settings.book:
        text = read_text(Path(settings.book))
        items[STORY] = chunk_items(text, settings.chunk_words, settings.own_prompt_words)
    if settings.questions:
        rows = partitions.load_columns(settings.questions, "", ["question", "answer"])
        for name in rows:
            without = rows.index[[pd.isna(v) or not overlap.words(str(v)) for v in rows[name]]]
            if len(without):
                raise ValueError(f"row {without[0]} has no {name}: fill it in or drop the row")
        texts = rows["question"].astype(str), rows["answer"].astype(str)
        items[QUESTIONS] = question_items(*texts, score_answers)
    check_models([*names, settings.simcse_model], settings.model.revision)
    return {task: table.head(settings.max_items or None) for task, table in items.items()}


def judge_settings(settings: OwnModels) -> dict[str, Any]:
    """What ``unlearning_judge.rate_samples`` needs, checked before anything costs.

    Empty without a judge. ValueError if the address, the key, the second price or the price of
    a cap is missing.
    """
    if not settings.judge_model:
        return {}
    if not settings.judge_base_url:
        raise ValueError("judge_base_url is empty: fill in the address of judge_model")
    key, price = settings.judge_key_variable or None, price_of(settings.prices, settings.price_date)
    if key and not os.environ.get(key):
        raise ValueError(f"{key} is not set: export the judge's key, or leave judge_model empty")
    if settings.cost_cap and price is None:
        raise ValueError("cost_cap limits a cost that nobody knows: fill in prices and price_date")
    return {
        "endpoint": Endpoint(settings.judge_base_url, settings.judge_model, key),
        "price": price,
        "cap": settings.cost_cap or None,
    }
