"""Completions of prompts, from an endpoint or a local model (section 4: temperature 0).

A completion that begins by repeating the prompt or the first piece, as chat
models do, is cut down to what follows: the repeated words were given, and
sentence 1 of a pair may hold all of sentence 2. ``is_repeated`` counts these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from contamination.core.overlap import normalised
from contamination.core.words import units
from contamination.models.chat import OK, UNPARSABLE, Endpoint, Request, answer_all
from contamination.models.loading import CausalLM
from contamination.models.local import as_chat, complete
from contamination.replication.instructions import CONTINUE, INSTRUCT, MAX_TOKENS

# Where the instructions end, as printed and as released.
_LAST_FIELD = re.compile(r"(?:Second Piece|SECOND PIECE|Sentence 2|SENTENCE 2):")


def by_chat(endpoint: Endpoint, requests: Sequence[Request], **settings: Any) -> pd.DataFrame:
    """Completions of an endpoint: text and status ("ok", or why there is none), in order.

    ``settings`` are keyword arguments of ``models.chat.answer_all``.
    """
    answers = answer_all(endpoint, requests, **settings)
    return pd.DataFrame({"text": [a.text for a in answers], "status": [a.status for a in answers]})


def by_local_model(
    lm: CausalLM, prompts: Sequence[str], max_tokens: int = MAX_TOKENS, form: str = CONTINUE
) -> pd.DataFrame:
    """Completions of a local model, greedy; columns as :func:`by_chat`.

    Prompts of the form ``instruct`` stand in the model's chat template, if it has one. A model
    that only continues text (``continue``) does not know where the instance ends: its completion
    is the rest of the line.
    """
    is_chat = form == INSTRUCT and lm.tokenizer.chat_template
    texts = complete(lm, as_chat(lm, prompts) if is_chat else list(prompts), max_tokens)
    if form == CONTINUE:
        texts = [text.lstrip("\n").partition("\n")[0] for text in texts]
    status = [OK if text.strip() else UNPARSABLE for text in texts]
    return pd.DataFrame({"text": texts, "status": status})


def with_completions(prompts: pd.DataFrame, written: pd.DataFrame) -> pd.DataFrame:
    """The prompts of ``instructions.prompts_of`` with completion, status and is_repeated."""
    pairs = [
        without_repetition(first, text)
        for first, text in zip(prompts["first_piece"], written["text"], strict=True)
    ]
    return prompts.assign(
        completion=[text for text, _ in pairs],
        status=written["status"].to_numpy(),
        is_repeated=[is_repeated for _, is_repeated in pairs],
    )


def without_repetition(first_piece: str, completion: str) -> tuple[str, bool]:
    """The completion without a leading repetition of prompt or first piece, and whether it had one.

    >>> without_repetition("The cat", "the  cat sat.")
    ('sat.', True)
    """
    parts = _LAST_FIELD.split(completion)
    written, n_given = units(parts[-1]), len(units(first_piece))
    if _plain("".join(written[:n_given])) == _plain(first_piece):
        return "".join(written[n_given:]), True
    return parts[-1].strip(), len(parts) > 1


def _plain(text: str) -> str:
    return normalised(text).rstrip(",;:. ，；：、。")
