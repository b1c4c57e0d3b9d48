"""The four methods on the same models and datasets of the lab, row by row.

* **DCQ**: the quiz, taken by the respondent of notebook 02, and option ranking
  by the same likelihoods, which has no positions and is not DCQ;
* **Replication**: the rest of each row, completed after the names of dataset
  and split (the guided form for models that only continue text), judged by rule;
* **Min-k% Prob**: scores of whole rows against those of reference rows, drawn
  with them and never read;
* **DICE**: the state of the last token before the label, read by a detector
  that was trained on other models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from contamination import judging
from contamination.dcq.assessment import assess, standard_answers_of
from contamination.dcq.contaminating import header
from contamination.dcq.deployment import instances_of, take
from contamination.dcq.respondents import STATED, BaseRespondent, ranking_credits
from contamination.dice.detector import probability, train_mlp
from contamination.evidence.conditions import (
    CLEAN,
    DOSED,
    REFERENCE,
    TESTED,
    VERBATIM,
    LabModel,
    Partition,
    questions,
)
from contamination.min_k.blind import BAG_OF_WORDS, cross_validated_scores
from contamination.models.causal import (
    BEFORE_FINAL_NORM,
    CausalLM,
    hidden_states,
    load_causal_lm,
    token_log_probs,
)
from contamination.replication import completions, cutting
from contamination.scores import K_PERCENT, min_k_score
from contamination.statistics import auc

DCQ, RANKING = "DCQ", "option ranking (not DCQ)"
REPLICATION, MIN_K, DICE = "Replication", "Min-k% Prob", "DICE"
METHODS = (DCQ, RANKING, REPLICATION, MIN_K, DICE)
MAX_TOKENS = 40  # more than the longest rest has
N_FOLDS = 4


@dataclass(frozen=True)
class Measured:
    """What the methods read off one model and one dataset, n rows each."""

    kind: str
    copies: int
    seed: int
    condition: str
    dataset: str
    quiz_share: float  # share of right answers in the best standard quiz
    ranked: np.ndarray  # 1 where the original is the likeliest option, shape (n,)
    verdicts: tuple[str, ...]  # rule verdict of each completion
    min_k: np.ndarray  # Min-k% Prob of each row, shape (n,)
    states: np.ndarray  # of the last token before the label, last block, shape (n, d_model)
    texts: tuple[str, ...]  # the rows

    @property
    def replicated(self) -> np.ndarray:
        """Whether each completion matches, exactly or nearly, shape (n,)."""
        return np.array([verdict != judging.INEXACT for verdict in self.verdicts])


def measure(model: LabModel) -> list[Measured]:
    """All that the methods need of one model, one entry for each of its partitions."""
    lm = load_causal_lm(model.folder)
    parts = model.partitions
    quizzed = [_quiz(lm, part) for part in parts]
    # All partitions at once, so that batches are full.
    written = _split(_replicate(lm, parts, model.seed), parts)
    texts = [part.quizzes["instance"].tolist() for part in parts]
    scored = token_log_probs(lm, [text for of_part in texts for text in of_part])
    min_k = _split([min_k_score(text.token_log_probs, K_PERCENT) for text in scored], parts)
    prompts = [header(part.dataset, TESTED) + text for part in parts for text in questions(part)]
    states = _split(hidden_states(lm, prompts, [BEFORE_FINAL_NORM])[:, 0], parts)
    return [
        Measured(
            kind=model.kind,
            copies=model.copies,
            seed=model.seed,
            condition=part.condition,
            dataset=part.dataset,
            quiz_share=share,
            ranked=ranked,
            verdicts=tuple(written[place]),
            min_k=np.array(min_k[place]),
            states=states[place],
            texts=tuple(texts[place]),
        )
        for place, (part, (share, ranked)) in enumerate(zip(parts, quizzed, strict=True))
    ]


def _split(values: Sequence, parts: Sequence[Partition]) -> list:
    ends = np.cumsum([0, *(len(part.quizzes) for part in parts)])
    return [values[start:end] for start, end in pairwise(ends)]


def _quiz(lm: CausalLM, part: Partition) -> tuple[float, np.ndarray]:
    respondent = BaseRespondent(lm, part.dataset, TESTED, STATED).spread_over(part.quizzes)
    answers = instances_of(take(respondent, part.quizzes))
    level = assess(answers["modified_answer"].tolist(), standard_answers_of(answers))
    return level.maximum, ranking_credits(respondent, part.quizzes)


def _replicate(lm: CausalLM, parts: Sequence[Partition], seed: int) -> list[str]:
    starts, rests = [], []
    for part in parts:
        for question in questions(part):
            start, rest, _ = cutting.cut(question, seed, cutting.SHARE)
            starts.append(header(part.dataset, TESTED) + start)
            rests.append(rest)
    texts = completions.by_local_model(lm, starts, MAX_TOKENS)["text"]
    return [judging.rule_verdict(rest, text) for rest, text in zip(rests, texts, strict=True)]


Key = tuple[str, int, int, str]  # kind, copies, seed, condition


def by_key(measured: Sequence[Measured]) -> dict[Key, Measured]:
    return {(m.kind, m.copies, m.seed, m.condition): m for m in measured}


def min_k_auc(measured: Measured, reference: Measured) -> float:
    """Chance that a row of the dataset scores above a reference row of the same model."""
    return auc(*with_labels(measured.min_k, reference.min_k))


def with_labels(members: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores of both and which are members, as ``statistics.auc`` takes them."""
    return np.concatenate([members, others]), np.arange(len(members) + len(others)) < len(members)


def blind_auc(measured: Measured, reference: Measured) -> float:
    """AUC of a bag of words on the same rows, without any model, mean over folds."""
    texts = [*measured.texts, *reference.texts]
    is_member = np.arange(len(texts)) < len(measured.texts)
    n_folds = min(N_FOLDS, len(measured.texts))
    scored = cross_validated_scores(texts, is_member, BAG_OF_WORDS, n_folds)
    return float(np.mean([auc(values, is_member[rows]) for rows, values in scored]))


def flags(measured: Sequence[Measured], copies: int) -> dict[Key, np.ndarray]:
    """DICE's probability of contamination for each row, shape (n,), by :func:`by_key`'s keys.

    For each seed the detector is trained on the verbatim rows under the dosed and the clean
    models of all other seeds, at one dose, so that it never met the model. Models of other
    doses are left out, clean ones kept. ValueError for fewer than two seeds.
    """
    known = by_key(measured)
    seeds = sorted({m.seed for m in measured if m.kind == CLEAN})
    if len(seeds) < 2:
        raise ValueError("a detector that never met the model needs models of another seed")
    flagged = {}
    for seed in seeds:
        others = [other for other in seeds if other != seed]
        dosed = [known[DOSED, copies, other, VERBATIM].states for other in others]
        clean = [known[CLEAN, 0, other, VERBATIM].states for other in others]
        states, is_dosed = with_labels(np.concatenate(dosed), np.concatenate(clean))
        detector = train_mlp(states, is_dosed)
        for key, own in known.items():
            if own.seed == seed and own.copies in (0, copies):
                flagged[key] = probability(detector(own.states))
    return flagged


def statistics_of(measured: Sequence[Measured], copies: int) -> dict[str, dict[Key, float]]:
    """One number for each method, model and dataset, 0 to 1; higher means more likely read.

    Method to key of :func:`by_key` to its statistic; models of other doses are left out, clean
    ones kept, and the reference rows have none.
    """
    known = {key: m for key, m in by_key(measured).items() if m.copies in (0, copies)}
    flagged = flags(measured, copies)
    statistics: dict[str, dict[Key, float]] = {method: {} for method in METHODS}
    for key, own in known.items():
        if own.condition == REFERENCE:
            continue
        reference = known[(*key[:3], REFERENCE)]
        statistics[DCQ][key] = own.quiz_share
        statistics[RANKING][key] = float(own.ranked.mean())
        statistics[REPLICATION][key] = float(own.replicated.mean())
        statistics[MIN_K][key] = min_k_auc(own, reference)
        statistics[DICE][key] = float(flagged[key].mean())
    return statistics
