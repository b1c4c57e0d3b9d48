"""One's own two checkpoints and the text that one of them should have unlearned (notebook 08)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit.local_models import check_models, load_model
from contamination.cases.library import read_text
from contamination.cases.settings import OwnModels, price_of
from contamination.cases.unlearning_items import QUESTIONS, STORY, chunk_items, question_items
from contamination.cases.unlearning_judge import rate_samples
from contamination.cases.unlearning_questions import write_questions
from contamination.core import overlap
from contamination.data import partitions
from contamination.models.chat import Endpoint
from contamination.models.loading import CausalLM, LanguageModel
from contamination.models.sentences import load_sentence_encoder, similarities


def own_items(settings: OwnModels, score_answers: bool = False) -> dict[str, pd.DataFrame]:
    """One's own items, and whether all that a run needs is there, before it costs anything.

    Returns:
        Task to its items (``score_answers`` as in ``unlearning_items.question_items``); empty where
        no model is named. Questions about a topic are not among them (:func:`written_questions`).

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
    if not (settings.book or settings.questions or settings.question_topic):
        raise ValueError("book, questions and question_topic are empty: fill in one of them")
    if settings.question_topic and (settings.questions or not settings.judge_model):
        raise ValueError(
            "question_topic needs a judge_model to write questions: leave questions empty"
        )
    items = {}
    if settings.book:
        book = Path(settings.book)
        if not book.is_file():
            raise FileNotFoundError(f'book "{book.name}" is not a file: name a text file')
        items[STORY] = chunk_items(read_text(book), settings.chunk_words, settings.own_prompt_words)
    if settings.questions:
        rows = partitions.load_rows(settings.questions)
        if not {"question", "answer"} <= set(rows):
            raise ValueError(f"questions need the columns question and answer, got {list(rows)}")
        for name in ("question", "answer"):
            without = rows.index[[pd.isna(v) or not overlap.words(str(v)) for v in rows[name]]]
            if len(without):
                raise ValueError(f"row {without[0]} has no {name}: fill it in or drop the row")
        texts = rows["question"].astype(str), rows["answer"].astype(str)
        items[QUESTIONS] = question_items(*texts, score_answers)
    check_models([*names, settings.simcse_model], settings.model.revision)
    return {task: table.head(settings.max_items or None) for task, table in items.items()}


def written_questions(
    settings: OwnModels, judge: Mapping[str, Any], score_answers: bool = False
) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Questions that the chat model writes now, where a topic is named.

    Returns:
        The items, as in :func:`own_items`, and the questions with their answers, which serve as
        the file ``questions`` of another run after you have checked them. Both empty without a
        topic.
    """
    if not (settings.model.names and settings.question_topic):
        return {}, pd.DataFrame()
    n = min(settings.n_questions, settings.max_items or settings.n_questions)
    written = write_questions(settings.question_topic, n, **judge)
    texts = written["question"].tolist(), written["answer"].tolist()
    return {QUESTIONS: question_items(*texts, score_answers)}, written


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


def load_models(settings: OwnModels) -> dict[str, CausalLM]:
    """The models by their part: original, unlearned and, where named, never saw."""
    parts = zip(("original", "unlearned", "never saw"), settings.model.names, strict=False)
    return {part: load_model(settings.model, name) for part, name in parts}


def load_encoder(settings: OwnModels) -> LanguageModel | None:
    """The SimCSE checkpoint, None where none is named."""
    if not settings.simcse_model:
        return None
    is_safe = settings.model.safetensors_only
    return load_sentence_encoder(settings.simcse_model, safetensors_only=is_safe)


def with_meaning(
    samples: pd.DataFrame, encoder: LanguageModel | None, judge: Mapping[str, Any]
) -> pd.DataFrame:
    """Samples of ``unlearning_items.sampled`` with similarity of meaning where it is asked for.

    ``simcse``, and the judge's rating where :func:`judge_settings` returned one.
    """
    if encoder is not None:
        pairs = samples["reference"].tolist(), samples["completion"].tolist()
        samples = samples.assign(simcse=similarities(encoder, *pairs))
    return rate_samples(samples, **judge) if judge else samples
