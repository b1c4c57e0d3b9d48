"""The quiz and Replication as detectors: one score for each row.

A row's score is what the method says of it before anything is averaged, so that rows dealt to
be read can be compared with their unread siblings.
"""

from __future__ import annotations

import numpy as np

from contamination.dcq.assessment import CHOICES
from contamination.dcq.quizzes import answer_quizzes, header, instances_of
from contamination.dcq.respondents import ANSWER_RULE, BaseRespondent, ranking_credits
from contamination.models import judging
from contamination.models.local import CausalLM
from contamination.replication import completions, instructions
from contamination.study.interface import ANSWERS, LOG_PROBABILITIES, Detector, Rows

MAX_TOKENS = 40  # of a completion; longer than nearly all rests of the lab's questions


def _quiz_credits(lm: CausalLM, rows: Rows) -> np.ndarray:
    """Share of the standard quizzes that are answered right, one for each least preferred position.

    The respondent is that of notebook 02b: likelihoods, a stated preference, a stated threshold.
    """
    respondent = BaseRespondent(lm, rows.dataset, rows.split, ANSWER_RULE).spread_over(rows.quizzes)
    answers = instances_of(answer_quizzes(respondent, rows.quizzes))
    credits = [
        answers[f"answer_at_{letter.lower()}"].eq(letter).to_numpy()
        for letter in CHOICES[:4]
        if answers[f"answer_at_{letter.lower()}"].ne("").all()
    ]
    return np.mean(credits, axis=0)


def _ranked_first(lm: CausalLM, rows: Rows) -> np.ndarray:
    return ranking_credits(BaseRespondent(lm, rows.dataset, rows.split, ANSWER_RULE), rows.quizzes)


def _replicated(lm: CausalLM, rows: Rows) -> np.ndarray:
    """1 where the rest of a row is completed exactly or nearly, by the rule judge; else 0."""
    pieces = [
        instructions.cut(question, rows.seed, instructions.SHARE) for question in rows.questions
    ]
    prompts = [header(rows.dataset, rows.split) + start for start, _, _ in pieces]
    texts = completions.by_local_model(lm, prompts, MAX_TOKENS)["text"]
    verdicts = [judging.rule_label(rest, t) for (_, rest, _), t in zip(pieces, texts, strict=True)]
    return np.array([float(verdict != judging.INEXACT) for verdict in verdicts])


DCQ = Detector("DCQ", ANSWERS, _quiz_credits, source="Golchin & Surdeanu, arXiv:2311.06233")
RANKING = Detector("option ranking (not DCQ)", LOG_PROBABILITIES, _ranked_first)
REPLICATION = Detector(
    "Replication", ANSWERS, _replicated, source="Golchin & Surdeanu, arXiv:2308.08493"
)
