"""Questions about a topic, and their answers, written by a chat model: section 7.2.2."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pandas as pd

from contamination.core import overlap
from contamination.models.chat import Answer, Request, answer_all

# The first sentence is the paper's query. The second is ours, so that the list can be read.
QUERY = "Can you give me a list of questions and answers related to {topic}"
FORM = 'Write each question on a line that begins with "Q:", and its answer on the next, with "A:".'
OPTIONS = {"temperature": 1, "max_tokens": 2000}  # the paper states neither
PER_ANSWER = 20  # questions that one answer may hold
MOST_ROUNDS = 8
_PAIR = re.compile(
    r"^[\W\d]*Q(?:uestion)?\W*\d*\s*[:.][\s*_]*(.+?)[\s*_]*\n+[\W\d]*A(?:nswer)?\W*\d*\s*[:.]"
    r"[\s*_]*(.+?)[\s*_]*$",
    re.M | re.I,
)


def read_questions(answer: Answer) -> list[tuple[str, str]]:
    r"""Questions and answers of one list; none where nothing has this form.

    >>> read_questions(Answer("1. Q: Who is it?\n   A: A cat.\n\n**Q:** Why?\n**A:** No.", "ok"))
    [('Who is it?', 'A cat.'), ('Why?', 'No.')]
    """
    return [pair for pair in _PAIR.findall(answer.text) if all(map(overlap.words, pair))]


def write_questions(topic: str, n: int, **asking: Any) -> pd.DataFrame:
    """n different questions about a topic with their answers, columns question and answer.

    The chat model (``asking``: endpoint, price and cap, as ``models.chat.answer_all``) is asked
    again until there are enough. Fewer come back if a round brings nothing new.

    Raises:
        ValueError: if no answer holds a question.
        ChatError: as ``answer_all``.
    """
    messages = [{"role": "user", "content": f"{QUERY.format(topic=topic)}. {FORM}"}]
    query = Request(messages=messages, options=OPTIONS, may_be_cut=True)
    found: dict[str, tuple[str, str]] = {}
    n_asked = 0
    for _ in range(MOST_ROUNDS):
        n_before, n_calls = len(found), math.ceil((n - len(found)) / PER_ANSWER)
        # The same query, each time to be answered anew.
        requests = [replace(query, replicate=n_asked + number) for number in range(n_calls)]
        n_asked += n_calls
        for answer in answer_all(requests=requests, **asking):
            for question, reply in read_questions(answer):
                found.setdefault(overlap.normalised(question), (question, reply))
        if len(found) >= n or len(found) == n_before:
            break
    if not found:
        raise ValueError(
            f'no question about "{topic}" in {n_asked} answers: look at them in the response log'
        )
    return pd.DataFrame([*found.values()][:n], columns=["question", "answer"])
