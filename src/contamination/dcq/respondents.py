"""Who takes a quiz: a chat model, a local instruct model, or a base model.

A base model reads no instruction: each option is scored as the continuation of
the names of dataset and split, as they headed the training texts. With a stated
prior over positions and a stated threshold below which the answer is E this is
a *respondent*. Without them it is *option ranking*: no position effect, never E,
and not DCQ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from contamination.dcq.assessment import CHOICES, POSITIONS
from contamination.dcq.controls import Rule
from contamination.dcq.quizzes import (
    MODIFIED,
    QUIZ_OPTIONS,
    Ask,
    Texts,
    header,
    quiz_options,
    quiz_prompt,
)
from contamination.models.chat import OK, REFUSED, UNPARSABLE, Answer
from contamination.models.exchange import requests_of_prompts
from contamination.models.local import CausalLM, as_chat, option_log_probs, token_log_probs

LOG_PROBS = tuple(f"log_prob_{position.lower()}" for position in POSITIONS)
AT_A_TIME = 2000  # quizzes asked of an endpoint together
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.S)
# Words before a letter. Some say that it is the answer, some that it is the last word on it.
_BEFORE = (
    r"(?i:[\W_]*(?:the|my|correct|best|so|is|i|would|will|d|ll|go|with|boxed"
    r"|(?P<named>answer|option|choice|(?P<final>final|therefore|choose|pick|select)))\b)*[\W_]*"
)
_ALONE = r"(?P<alone>[A-Ea-e])[\W_]*"
_WITH_TEXT = r"(?P<with_text>[A-Ea-e])(?:[).:]+\s|\s+[-–—]\s+(?![A-E]\b)).*"
# "Option B is exact", but neither "Answer: A film" nor "Option B is not".
_IN_PROSE = (
    r"(?P<in_prose>[A-E])[)*]*,?\s+(?:is|was|as|because|since|matches|seems|appears|reflects"
    r"|corresponds)\b(?!(?:\s+\w+)?\s+(?:not|never|wrong|incorrect)\b).*"
)
_LETTER = re.compile(rf"{_BEFORE}(?:{_ALONE}|{_WITH_TEXT}|{_IN_PROSE})", re.S)
_CAPITALS_ONLY = re.compile(r"\b[A-E][).:]")
_OF_PROSE = re.compile(r"\b(?:[B-E]|A(?!\s+[a-z]))\b(?!['’])")
_COLUMN = re.compile(r"[a-z_]+: .*")  # as a line of an instance begins
_REFUSAL = re.compile(r"\b(sorry|cannot|can[’']t|unable|apologi[sz]e)\b", re.I)


def read_letter(answer: Answer) -> tuple[str, str]:
    """Letter and status of an answer; "" and why where no single letter was given.

    What a model thinks, up to ``</think>``, is left out. A letter may be lower case, stand behind
    "Answer:" or "I would choose", and carry its option's text. Behind other text it may
    have the last line. Two letters are none. A refusal in prose counts as refused.
    """
    if answer.status != OK:
        return "", answer.status
    text = _THOUGHT.sub("", answer.text).strip()
    if letter := _letter_in(text)[0] or _letter_of_last_line(text):
        return letter, OK
    return "", REFUSED if _REFUSAL.search(text) else UNPARSABLE


def _letter_in(text: str) -> tuple[str, bool]:
    """The one letter of a text, or "", and whether it is said to be final."""
    if not (found := _LETTER.fullmatch(text)):
        return "", False
    letter = found["alone"] or found["with_text"] or found["in_prose"]
    if found["in_prose"]:
        is_one = bool(found["named"]) and set(_OF_PROSE.findall(text)) == {letter}
    else:
        is_one = len(set(_CAPITALS_ONLY.findall(text))) < 2
    return (letter.upper(), bool(found["final"])) if is_one else ("", False)


def _letter_of_last_line(text: str) -> str:
    """The letter of the last line, unless the line is an instance's or other letters compete."""
    *others, last = text.splitlines() or [""]
    letter, is_final = ("", False) if _COLUMN.fullmatch(last) else _letter_in(last)
    return letter if is_final or not any(_letter_in(line)[0] for line in others) else ""


@dataclass(frozen=True)
class ChatRespondent:
    """A model behind an endpoint.

    ``ask`` sends requests, such as ``models.chat.answer_all`` with its endpoint;
    ``options`` are for sampling; ``prompt`` makes a quiz of (texts, dataset, split).
    """

    ask: Ask
    dataset: str
    split: str
    options: dict = field(default_factory=lambda: dict(QUIZ_OPTIONS))
    prompt: Callable[[Sequence[str], str, str], str] = quiz_prompt

    def __call__(self, quizzes: Sequence[Texts]) -> pd.DataFrame:
        """Answer and status of each quiz, in order."""
        letters = []
        for start in range(0, len(quizzes), AT_A_TIME):  # requests and answers are let go of
            texts = quizzes[start : start + AT_A_TIME]
            prompts = [self.prompt(one, self.dataset, self.split) for one in texts]
            answers = self.ask(requests_of_prompts(prompts, self.options))
            letters += [read_letter(answer) for answer in answers]
        return pd.DataFrame(letters).set_axis(["answer", "status"], axis=1)


@dataclass(frozen=True)
class InstructRespondent:
    """A local instruct model: the likeliest letter after its chat template.

    ``letter_share`` of an answer is the probability of the five letters
    together; where it is small the model was about to say something else.
    ValueError if the tokenizer has no chat template.
    """

    lm: CausalLM
    dataset: str
    split: str
    prompt: Callable[[Sequence[str], str, str], str] = quiz_prompt

    def __post_init__(self) -> None:
        as_chat(self.lm, [])  # raises before any quiz is taken

    def __call__(self, quizzes: Sequence[Texts]) -> pd.DataFrame:
        """Answer, status and letter_share, 0 to 1, of each quiz, in order."""
        prompts = as_chat(
            self.lm, [self.prompt(texts, self.dataset, self.split) for texts in quizzes]
        )
        letters = [list(CHOICES)] * len(prompts)
        log_probs = np.array(option_log_probs(self.lm, prompts, letters, score_first_token=False))
        answers = pd.DataFrame({"answer": [CHOICES[place] for place in log_probs.argmax(axis=1)]})
        return answers.assign(status=OK, letter_share=np.exp(log_probs).sum(axis=1))


@dataclass(frozen=True)
class AnswerRule:
    """What a base model's respondent adds to likelihoods; fixed before any answer.

    ``position_prior`` weighs A to D on any positive scale; ``temperature`` is in units of
    the model's own spread (see ``BaseRespondent``); the answer is E where no position has
    the chance ``none_below``, 0 to 1.
    """

    position_prior: tuple[float, float, float, float]
    temperature: float
    none_below: float

    def answers(self, log_probs: np.ndarray, spread: float) -> tuple[np.ndarray, np.ndarray]:
        """Letters A to E and the largest chance of a position, shape (n_quizzes,) each.

        ``log_probs`` are of the texts at A to D, nats, shape (n_quizzes, 4).
        """
        logits = log_probs / (self.temperature * spread) + np.log(self.position_prior)
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        letters = np.array(POSITIONS)[chances.argmax(axis=1)]
        largest = chances.max(axis=1)
        return np.where(largest < self.none_below, "E", letters), largest


# Round values, fixed beforehand on quizzes of two other mini-benchmarks (notebook 02b).
ANSWER_RULE = AnswerRule((0.7, 0.1, 0.1, 0.1), temperature=0.75, none_below=0.7)


@dataclass(frozen=True)
class BaseRespondent:
    """A base model that is told dataset and split, with a stated prior and threshold.

    The chance of each position is its prior times the likelihood of its text to
    the power of 1 / (temperature x spread), normalised over A to D. The spread, nats,
    is how much the model's log-probabilities of four perturbations differ anyway:
    models differ in it many times over, so a prior needs it as its unit.
    """

    lm: CausalLM
    dataset: str
    split: str
    stated: AnswerRule
    spread: float = 1.0
    _known: dict[str, float] = field(default_factory=dict, repr=False)

    def spread_over(self, quizzes: pd.DataFrame) -> BaseRespondent:
        """The respondent with the spread of this partition: the mean over its
        modified quizzes of the standard deviation of four log-probabilities."""
        log_probs = self.log_probs(quiz_options(quizzes, MODIFIED))
        return replace(self, spread=float(log_probs.std(axis=1, ddof=1).mean()))

    def log_probs(self, quizzes: Sequence[Sequence[str]]) -> np.ndarray:
        """Log-probability of every text after its header, nats, shape (n_quizzes, n_texts).

        A text that occurs in several quizzes is scored once.
        """
        new = sorted({text for texts in quizzes for text in texts} - self._known.keys())
        if new:
            start = header(self.dataset, self.split)
            scored = option_log_probs(self.lm, [start] * len(new), [[text] for text in new])
            self._known.update(zip(new, (float(values[0]) for values in scored), strict=True))
        return np.array([[self._known[text] for text in texts] for texts in quizzes])

    def __call__(self, quizzes: Sequence[Texts]) -> pd.DataFrame:
        """Answer, status, chance (0 to 1) and ``LOG_PROBS`` (nats) of each quiz, in order."""
        log_probs = self.log_probs(quizzes)
        letters, chances = self.stated.answers(log_probs, self.spread)
        columns = dict(zip(LOG_PROBS, log_probs.T, strict=True))
        return pd.DataFrame({"answer": letters, "status": OK, "chance": chances, **columns})


def ranking_credits(respondent: Any, quizzes: pd.DataFrame) -> np.ndarray:
    """Option ranking: 1 where the original is likelier than three perturbations, shape (n,).

    Position does not matter, and E cannot be chosen. A tie counts by lot. ``respondent`` has a
    method ``log_probs``, as ``BaseRespondent``.
    """
    columns = ["instance", "option_a", "option_b", "option_c"]
    scores = respondent.log_probs([tuple(row) for row in quizzes[columns].itertuples(index=False)])
    best = scores == scores.max(axis=1, keepdims=True)
    return best[:, 0] / best.sum(axis=1)


def likelihood_rules(lm: CausalLM, texts: Sequence[str], name: str = "clean LM") -> dict[str, Rule]:
    """Option ranking as rules of ``dcq.controls``: by a model that has not read the datasets,
    such rules have no memory.

    ``texts`` are all options of the quizzes, scored beforehand, beyond the context in
    windows. One rule takes the log-probability of the whole text, one its mean over tokens.
    """
    unique = sorted(set(texts))
    scored = dict(zip(unique, token_log_probs(lm, unique), strict=True))

    def rule(score: Callable[[np.ndarray], float]) -> Rule:
        return lambda options: np.array([score(scored[text].token_log_probs) for text in options])

    return {f"{name}, whole text": rule(np.sum), f"{name}, per token": rule(np.mean)}
