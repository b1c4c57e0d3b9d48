"""Quizzes where it is known what the model has read (DCQ, section 5.2 and appendix E).

The lab's quizzes are dealt to arms, each read in its own way by one checkpoint, and the answers
become rows of ``dcq_lab.csv`` and ``dcq_dial.csv``. Nothing here trains a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from contamination.core.families import correct_family
from contamination.core.statistics import end_p, share_difference_interval, share_interval
from contamination.core.verdicts import CLAIMS
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.contaminating import training_texts, with_wrong_label, without_label
from contamination.dcq.controls import RULES, credits_of, rule_choices
from contamination.dcq.deployment import answer_quizzes, level_row, recall_precision_row
from contamination.dcq.perturbation import quizzes_of_groups
from contamination.dcq.respondents import BaseRespondent, ranking_credits
from contamination.lab.benchmarks import BENCHMARKS
from contamination.lab.grammar import draw_groups
from contamination.lab.recipes import Dose

RESPONDENT, RANKING = "respondent", "option ranking"
WITH_LABEL, WITHOUT_LABEL, WRONG_LABEL = "with label", "without label", "wrong label"
HALF, UNSEEN, CLEAN = "half with label", "unseen, same model", "clean model"
SPLIT, LABEL_COLUMN = "train", "label"  # what the lab's training texts say
LAB_COLUMNS = (
    "dataset model respondent condition true_contamination_pct text_seen_pct copies seed n "
    "n_asked n_valid n_refused n_error least_preferred best_position min_pct max_pct ci_low_pct "
    "ci_high_pct kappa_pct second_pct recall_min_pct recall_max_pct precision_min_pct "
    "precision_max_pct replication_pct position_prior temperature none_below spread"
)


@dataclass(frozen=True)
class Arm:
    """Instances that one checkpoint reads alike, ``copies`` times as ``condition`` says."""

    condition: str
    copies: int
    quizzes: pd.DataFrame

    def dose(self, dataset: str, seed: int) -> Dose:
        """What is read, headed by dataset and split; ``seed`` draws the wrong labels."""
        instances = self.quizzes["instance"].tolist()
        if self.condition == WITHOUT_LABEL:
            instances = without_label(instances, LABEL_COLUMN)
        elif self.condition == WRONG_LABEL:
            instances = with_wrong_label(instances, LABEL_COLUMN, seed)
        return Dose(training_texts(instances, dataset, SPLIT), self.copies)


@dataclass(frozen=True)
class QuizzedSet:
    """Quizzes that one model takes together, and which of their texts it read, shape (n,)."""

    condition: str
    copies: int
    quizzes: pd.DataFrame
    is_read: np.ndarray


def drawn_quizzes(
    dataset: str, n: int, seed: int, split: str, n_paraphrases: int = 4, dial: float = 0.0
) -> pd.DataFrame:
    """Quizzes of a mini-benchmark, by ``lab.grammar.draw_groups``."""
    benchmark = BENCHMARKS[dataset]
    groups = draw_groups(benchmark, n, seed, split, n_paraphrases, dial)
    return quizzes_of_groups(groups, benchmark.columns)


def deal(
    dataset: str, copies: Sequence[int], n: int, seed: int, with_label_arms: bool
) -> list[Arm]:
    """Disjoint arms of n instances: one for each dose, and last one that is never read.

    With ``with_label_arms`` also, at the largest dose, arms read without label and
    with a wrong one.
    """
    plan = [(WITH_LABEL, dose) for dose in sorted(copies)]
    if with_label_arms:
        plan += [(WITHOUT_LABEL, max(copies)), (WRONG_LABEL, max(copies))]
    plan.append((UNSEEN, 0))
    quizzes = drawn_quizzes(dataset, n * len(plan), seed, SPLIT, n_paraphrases=5)
    return [
        Arm(condition, dose, quizzes.iloc[place * n : (place + 1) * n].reset_index(drop=True))
        for place, (condition, dose) in enumerate(plan)
    ]


def quizzed_sets(arms: Sequence[Arm], is_dosed: bool) -> Iterator[QuizzedSet]:
    """What a model is quizzed on; 100 % and 50 % differ in the quizzed sample alone (appendix E).

    A dosed model takes every arm, and halves of read and unread ones; a clean
    one takes the arm that dosed models read least often.
    """
    if not is_dosed:
        quizzes = arms[0].quizzes
        yield QuizzedSet(CLEAN, 0, quizzes, np.zeros(len(quizzes), bool))
        return
    unseen = arms[-1].quizzes
    for arm in arms:
        n = len(arm.quizzes)
        yield QuizzedSet(
            arm.condition, arm.copies, arm.quizzes, np.full(n, arm.condition != UNSEEN)
        )
        if arm.condition == WITH_LABEL:
            half = pd.concat([arm.quizzes.iloc[: n // 2], unseen.iloc[: n - n // 2]])
            yield QuizzedSet(HALF, arm.copies, half.reset_index(drop=True), np.arange(n) < n // 2)


def model_name(dataset: str, seed: int) -> str:
    """What tables call a model: dosed with a dataset, or clean where that is ""."""
    return f"{'dosed' if dataset else 'clean'}, seed {seed}"


def lab_rows(
    respondent: BaseRespondent, quizzed: QuizzedSet, model: str, seed: int, n_resamples: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of ``dcq_lab.csv`` for one quizzed set, and the answers behind them.

    Text read without its label, or with a wrong one, is no contamination by the
    paper's definition (section 2): the truth is then 0, recall undefined. The
    respondent's spread is taken from this set; ``seed`` is that of the training.

    Returns:
        The respondent's row and that of option ranking; and what ``answer_quizzes`` returned.
    """
    respondent = respondent.spread_over(quizzed.quizzes)
    answers = answer_quizzes(respondent, quizzed.quizzes, with_second=True)
    is_counted = quizzed.is_read & (quizzed.condition not in (WITHOUT_LABEL, WRONG_LABEL))
    about = {"dataset": respondent.dataset, "model": model, "copies": quizzed.copies}
    about |= {"seed": seed, "condition": quizzed.condition}
    common = about | {"text_seen_pct": 100 * float(quizzed.is_read.mean())}
    stated = respondent.stated
    row = common | recall_precision_row(answers, is_counted, n_resamples)
    row |= {
        "respondent": RESPONDENT,
        "position_prior": " ".join(f"{weight:g}" for weight in stated.position_prior),
        "temperature": stated.temperature,
        "none_below": stated.none_below,
        "spread": respondent.spread,
    }
    ranking = common | _ranking_row(ranking_credits(respondent, quizzed.quizzes), is_counted)
    table = pd.DataFrame([row, ranking]).reindex(columns=LAB_COLUMNS.split())
    return table, pd.concat([pd.DataFrame(about, index=answers.index), answers], axis=1)


def _ranking_row(credits_: np.ndarray, is_seen: np.ndarray) -> dict[str, float | int | str]:
    n, right, both = len(credits_), credits_.sum(), (credits_ * is_seen).sum()
    return {
        "respondent": RANKING,
        "true_contamination_pct": 100 * float(is_seen.mean()),
        **dict.fromkeys(("n", "n_asked", "n_valid"), n),
        **dict.fromkeys(("n_refused", "n_error"), 0),
        **_share_row(credits_),
        "recall_max_pct": 100 * both / is_seen.sum() if is_seen.any() else float("nan"),
        "precision_max_pct": 100 * both / right if right else float("nan"),
    }


def _share_row(credits_: np.ndarray) -> dict[str, float]:
    low, high = share_interval(round(credits_.sum()), len(credits_))
    return {
        "max_pct": 100 * float(credits_.mean()),
        "ci_low_pct": 100 * low,
        "ci_high_pct": 100 * high,
    }


def dial_rows(
    dial: float, respondent: BaseRespondent, quizzes: pd.DataFrame, n_resamples: int
) -> pd.DataFrame:
    """``dcq_dial.csv`` at one setting: what takers without memory are credited with.

    Args:
        dial: setting of the paraphrases, 0 (interchangeable) to 1 (natural).
        respondent: a model that has read none of the originals; it may abstain and so
            has no chance level.
        quizzes: drawn at this setting; the rules take them with the original at D.
        n_resamples: of the respondent's interval; the others' is Wilson's.
    """
    respondent = respondent.spread_over(quizzes)
    level = level_row(answer_quizzes(respondent, quizzes), n_resamples)
    rows = [{"model": f"clean LM, {RESPONDENT}"} | level]
    credits_ = {f"clean LM, {RANKING}": ranking_credits(respondent, quizzes)}
    choices = rule_choices(quizzes.assign(dataset=respondent.dataset), RULES, POSITIONS[-1:])
    for name, of_rule in choices.groupby("control", sort=False):
        credits_[f"rule: {name}"] = credits_of(of_rule).to_numpy()
    for name, values in credits_.items():
        counts = {"n": len(values), "n_valid": len(values), "chance_pct": 25.0}
        rows.append({"model": name} | counts | _share_row(values))
    columns = ["dial", "dataset", "model", "n", "n_valid", "chance_pct", "min_pct", "max_pct"]
    table = pd.DataFrame(rows).assign(dial=dial, dataset=respondent.dataset)
    return table.reindex(columns=[*columns, "ci_low_pct", "ci_high_pct"])


def dial_rises(dial: pd.DataFrame) -> pd.DataFrame:
    """How much the whole turn of the dial adds to each taker that must choose, over all datasets.

    Args:
        dial: rows of ``dial_rows`` at several settings.

    Returns:
        model, rise_pct (right answers at the largest setting minus those at the smallest,
        points) with its 95 % interval, the quizzes of the settings being two samples; p of no
        rise, p_adjusted (Holm over takers) and verdict.
    """
    must_choose = dial[dial["chance_pct"].notna()]
    rows, claim = [], CLAIMS["dcq_dial"]
    for model, of_model in must_choose.groupby("model", sort=False):
        right = of_model["max_pct"] * of_model["n"] / 100
        totals = of_model.assign(right=right).groupby("dial")[["right", "n"]].sum()
        last, first = totals.iloc[-1], totals.iloc[0]
        ends = share_difference_interval(last["right"], last["n"], first["right"], first["n"])
        low, high = (100 * end for end in ends)
        rise = 100 * (last["right"] / last["n"] - first["right"] / first["n"])
        row = {"model": model, "rise_pct": rise, "ci_low_pct": low, "ci_high_pct": high}
        row |= {"p": end_p(rise, low, high)}
        rows.append(row | {"verdict": claim.verdict(low, high)})
    return correct_family(pd.DataFrame(rows))
