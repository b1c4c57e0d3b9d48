"""Quizzes as those that the authors released, with made rows, and a tiny model that knows them."""

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from tiny_models import saved, tiny_llama

from contamination.core import storage
from contamination.lab.tokenizer import train_tokenizer
from contamination.study import released_rows

NAMES = ("GSM8k", "WNLI", "AG News", "RTE", *released_rows.SHORTEST)
LABELLED = ("WNLI", "AG News", "RTE")
WORDS = {"instance": "here", "option_a": "there", "option_b": "near", "option_c": "far off"}
TEMPLATE = "{% for one in messages %}{{ one['content'] }}\n{% endfor %}"


def made(name: str, row: int, wording: str) -> str:
    label = f"\nlabel: {row % 2}" if name in LABELLED else ""
    return f"text: {name} has row {row} {wording}{label}"


def made_quizzes(n_rows: int | Mapping[str, int]) -> pd.DataFrame:
    """So many rows of each dataset, or of all."""
    sizes = dict.fromkeys(NAMES, n_rows) if isinstance(n_rows, int) else n_rows
    rows = [(name, row) for name in NAMES for row in range(sizes[name])]
    texts = {column: [made(*row, word) for row in rows] for column, word in WORDS.items()}
    return pd.DataFrame({"dataset": [name for name, _ in rows]} | texts)


def tiny_base(folder: Path, quizzes: pd.DataFrame) -> Path:
    """A tiny model with a chat template, whose tokenizer is trained on the quizzes."""
    tokenizer = train_tokenizer(quizzes[list(WORDS)].to_numpy().ravel(), 320)
    tokenizer.chat_template = TEMPLATE
    saved(folder, tiny_llama(tokenizer), tokenizer)
    config = folder / "tokenizer_config.json"
    storage.write_json(config, json.loads(config.read_text()) | {"chat_template": TEMPLATE})
    return folder
