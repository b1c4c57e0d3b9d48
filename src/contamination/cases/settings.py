"""What part C of the case studies is told of one's own model and data: ``own_settings``.

``OwnBooks`` is of notebook 06, ``OwnModels`` of 08, ``Pairs`` of 05b.
"""

from __future__ import annotations

from collections.abc import Sequence

from contamination.audit.settings import KEY, KEY_NAME, Model
from contamination.core.parameters import OwnSettings, setting
from contamination.models.chat import Price


def price_of(prices: Sequence[float], date: str) -> Price | None:
    """The price of a served model's tokens on a day; None without one, ValueError if unfit."""
    if len(prices) not in (0, 2) or bool(prices) != bool(date):
        raise ValueError("prices must be two, for input and output tokens, and need a price_date")
    return Price(*prices, date=date) if prices else None


class OwnBooks(OwnSettings):
    """Part C of notebook 06: one's own model and data."""

    model: Model = setting(Model(), "who scores: a local model, or one at base_url")
    validation_members_folder: str = setting("", "folder of .txt books the model has read")
    validation_non_members_folder: str = setting("", "folder of .txt books it cannot have read")
    test_folder: str = setting("", "folder of .txt books in question, empty to skip part C")
    own_snippets: int = setting(100, "snippets from each book [1 to 10000]")
    own_snippet_words: int = setting(512, "words in a snippet [1 to 100000]")
    neighbor_model: str = setting("", "fill-mask model that writes neighbours, empty for none")


class OwnModels(OwnSettings):
    """Part C of notebook 08: one's own model and data."""

    model: Model = setting(
        Model(), "names: before unlearning, after it, and a model that never saw the text"
    )
    book: str = setting("", "text file that should have been unlearned, empty for none")
    questions: str = setting("", "file with the columns question and answer, empty for none")
    chunk_words: int = setting(512, "words in a chunk [2 to 100000]")
    own_prompt_words: int = setting(200, "words in a chunk given as prompt [1 to chunk_words]")
    answer_tokens: int = setting(64, "longest answer in tokens [1 to 100000]")
    max_items: int = setting(0, "chunks and questions of each kind, 0 means all [0 or more]")
    simcse_model: str = setting("", "supervised SimCSE checkpoint, empty for none")
    judge_model: str = setting("", "chat model that rates completions (Table 9), empty for none")
    judge_base_url: str = setting("", "its address [address]")
    judge_key_variable: str = setting(KEY, KEY_NAME)
    prices: list[float] = setting(
        [], "USD per million tokens of the judge [0 or more, 0 to 6 values]"
    )
    price_date: str = setting("", "of the price list [a day YYYY-MM-DD]")
    cost_cap: float = setting(0.0, "most the judge may cost in USD, 0 for no cap [0 or more]")


class Pairs(OwnSettings):
    """``own_settings`` of notebook 05b: pairs of clean and contaminated models, DICE's own study.

    The first of ``model.names`` is the base that they are fine-tuned from.
    """

    model: Model = setting(Model(), "the base of the pairs, and how all of them are loaded")
    checkpoints: dict = setting(
        {},
        "trained pairs: for each condition, folders or ids",
    )
    own_vanilla: str = setting("", "to train them: instruction data, a file or hub id")
    vanilla_columns: list[str] = setting(
        ["question", "response"], "its columns; a third is its system prompt [2 to 3 values]"
    )
    own_conditions: list[str] = setting(
        ["GSM-i x5"], "to train: set of problems and number of copies"
    )
    n_contaminated: int = setting(2, "models of each of these; a verdict needs 5 [1 to 100]")
    n_references: int = setting(3, "clean models that are trained; likewise [1 to 100]")
    own_rows: int = setting(25000, "rows of a mixture [1 or more]")
    own_copied_rows: int = setting(0, "problems copied into it, 0 for all of a set [0 or more]")
    own_learning_rate: float = setting(1.0e-5, "of its fine-tuning [above 0 to 1]")
    own_batch_size: int = setting(1, "rows per step of its fine-tuning [1 to 1000]")
    own_weight_decay: float = setting(0.0, "AdamW's [0 to 1]")
    own_warmup_share: float = setting(0.05, "steps over which the rate rises [0 to 1]")
    lora: bool = setting(False, "adapters (peft) instead of all weights")
    problem_sets: dict = setting(
        {}, "for each set, its file or hub id, question and answer columns, split"
    )
    n_questions: int = setting(0, "problems of each set, 0 for all [0 or more]")
    answer_tokens: int = setting(256, "longest completion, in tokens [1 to 100000]")
    paper_model: str = setting("", "column of Table 1 next to [empty or LLaMA2-7B or Phi2-2.7B]")
