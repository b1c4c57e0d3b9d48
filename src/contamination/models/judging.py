"""Labels of a completion: exact, near-exact or inexact match.

The *rule judge* compares strings and uses no model. It is a lower bound, not a
judge: a near-exact match in the paper's sense (same structure and meaning)
cannot be told from overlap alone. The *ICL judge* is a chat model with a few
examples in its prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contamination.core.overlap import is_contained, is_equal, rouge_l, words
from contamination.core.verdicts import EXACT, INEXACT, NEAR_EXACT
from contamination.models.chat import OK, UNPARSABLE, Endpoint, Request, answer_all
from contamination.models.exchange import requests_of_prompts

if TYPE_CHECKING:
    from contamination.models.loading import CausalLM

NEAR_EXACT_FROM = 0.82  # ROUGE-L from which the rule judge calls a completion near-exact
SHORT = 4  # words of a reference; fewer are contained in many texts by chance

# What the judge may say, in lower case and without a full stop; nothing else is a
# label. A bare "Yes", which the prompt's instruction invites, does not say which
# match, so it counts as the weaker one.
BARE_YES = "yes"
LABEL_OF_ANSWER = {
    "yes (exact match)": EXACT,
    "yes (near-exact match)": NEAR_EXACT,
    BARE_YES: NEAR_EXACT,
    "no": INEXACT,
    "no (inexact match)": INEXACT,
}
_MAX_TOKENS = 10  # of a local judge's answer


@dataclass(frozen=True)
class Judgement:
    """What the ICL judge made of one completion.

    ``label`` is None where the answer is none; ``status`` is "ok", or why there is no
    label, as in ``models.chat``; ``is_bare_yes``: the judge said "Yes" and not which match;
    ``text`` is its answer, "" where it was not asked.
    """

    label: str | None
    status: str
    is_bare_yes: bool = False
    text: str = ""


def parse_label(text: str) -> tuple[str | None, bool]:
    """Label in a judge's answer, None where there is none, and whether it is a bare "Yes".

    >>> parse_label(" Yes (near-exact match). ")
    ('near-exact', False)
    >>> parse_label("Yes")
    ('near-exact', True)
    >>> parse_label("Yes, because both name the cat.")
    (None, False)
    """
    said = text.strip().rstrip(".").lower()
    return LABEL_OF_ANSWER.get(said), said == BARE_YES


def judge_requests(
    references: Sequence[str],
    candidates: Sequence[str],
    prompt: str,
) -> list[Request]:
    """One request per pair; ``prompt`` holds ``{reference}`` and ``{candidate}``."""
    pairs = zip(references, candidates, strict=True)
    return requests_of_prompts([prompt.format(reference=r, candidate=c) for r, c in pairs], {})


def ask_judge(
    endpoint: Endpoint,
    references: Sequence[str],
    candidates: Sequence[str],
    prompt: str,
    **settings: Any,
) -> list[Judgement]:
    """Labels by a chat model on the pairs of :func:`judge_requests`, in order.

    An empty completion matches nothing and is not sent. ``settings`` are keyword
    arguments of ``models.chat.answer_all``.
    """

    def answers_to(requests: Sequence[Request]) -> list[tuple[str, str]]:
        return [(a.text, a.status) for a in answer_all(endpoint, requests, **settings)]

    return _judged(references, candidates, prompt, answers_to)


def ask_local_judge(
    lm: CausalLM, references: Sequence[str], candidates: Sequence[str], prompt: str
) -> list[Judgement]:
    """The same by a local instruct model, greedy; ValueError if it has no chat template."""
    # These load torch, which reading a label does not need.
    from contamination.models.local import as_chat, complete

    def answers_to(requests: Sequence[Request]) -> list[tuple[str, str]]:
        prompts = as_chat(lm, [(request.messages or [])[0]["content"] for request in requests])
        return [(text, OK) for text in complete(lm, prompts, _MAX_TOKENS)]

    return _judged(references, candidates, prompt, answers_to)


def _judged(
    references: Sequence[str],
    candidates: Sequence[str],
    prompt: str,
    answers_to: Callable[[Sequence[Request]], list[tuple[str, str]]],
) -> list[Judgement]:
    places = [place for place, text in enumerate(candidates) if text.strip()]
    chosen = ([texts[place] for place in places] for texts in (references, candidates))
    requests = judge_requests(*chosen, prompt)
    judgements = [Judgement(INEXACT, OK)] * len(candidates)
    for place, (text, status) in zip(places, answers_to(requests) if requests else [], strict=True):
        label, is_bare = parse_label(text) if status == OK else (None, False)
        status = UNPARSABLE if status == OK and label is None else status
        judgements[place] = Judgement(label, status, is_bare, text)
    return judgements


def rule_labels(rouge_scores: np.ndarray, near_exact_threshold: float | np.ndarray) -> np.ndarray:
    """Rule judge from ROUGE-L alone, shape (n,): a score of 1 stands in for equal texts."""
    near = np.where(rouge_scores >= near_exact_threshold, NEAR_EXACT, INEXACT)
    return np.where(rouge_scores >= 1, EXACT, near)


def rule_label(
    reference: str,
    candidate: str,
    near_exact_threshold: float = NEAR_EXACT_FROM,
    short_may_match: bool = True,
) -> str:
    """Rule judge from texts: equality first, then overlap or containment.

    A reference of fewer than ``SHORT`` words is contained in many texts by chance, so containment
    does not count for it, and with ``short_may_match`` false it is never a match.
    """
    is_long = len(words(reference)) >= SHORT
    if not (is_long or short_may_match):
        return INEXACT
    # First, since it refuses a reference without a word, which equals an empty completion.
    is_near = rouge_l(reference, candidate) >= near_exact_threshold
    if is_equal(reference, candidate):
        return EXACT
    return NEAR_EXACT if is_near or (is_long and is_contained(reference, candidate)) else INEXACT
