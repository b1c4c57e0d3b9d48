"""Quizzes where it is known what the model has read (DCQ, section 5.2 and appendix E)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from contamination.core.statistics import (
    correct_family,
    end_p,
    share_difference_interval,
    share_interval,
)
from contamination.core.verdicts import CLAIMS
from contamination.dcq.assessment import POSITIONS, assess, positions_to_quiz
from contamination.dcq.contaminating import training_texts, with_wrong_label, without_label
from contamination.dcq.controls import RULES, credits_of, rule_choices
from contamination.dcq.quizzes import (
    MODIFIED,
    SECOND,
    STANDARD,
    answer_quizzes,
    level_row,
    quizzes_of_groups,
    recall_precision_row,
)
from contamination.dcq.respondents import LOG_PROBS, AnswerRule, BaseRespondent, ranking_credits
from contamination.lab.grammar import BENCHMARKS, draw_groups
from contamination.lab.training import Dose

RESPONDENT, RANKING = "respondent", "option ranking"
WITH_LABEL, WITHOUT_LABEL, WRONG_LABEL = "with label", "without label", "wrong label"
HALF, UNSEEN, CLEAN = "half with label", "unseen, same model", "clean model"
SPLIT, LABEL_COLUMN = "train", "label"  # what the lab's training texts say
LAB_COLUMNS = (
    "dataset model respondent condition true_contamination_pct copies seed n "
    "n_asked n_valid n_refused n_error least_preferred best_position min_pct max_pct ci_low_pct "
    "ci_high_pct kappa_pct second_pct recall_min_pct recall_max_pct precision_min_pct "
    "precision_max_pct replication_pct"
)


@dataclass(frozen=True)
class Arm:
    """Instances that one checkpoint reads ``copies`` times as ``condition`` says, or never.

    Column is_read of the quizzes says which of their originals it reads.
    """

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
    parts = [quizzes.iloc[n * k : n * (k + 1)].reset_index(drop=True) for k in range(len(plan))]
    return [
        Arm(condition, dose, part.assign(is_read=condition != UNSEEN))
        for (condition, dose), part in zip(plan, parts, strict=True)
    ]


def quizzed_sets(arms: Sequence[Arm], is_dosed: bool) -> Iterator[Arm]:
    """What a model is quizzed on; 100 % and 50 % differ in the quizzed sample alone (appendix E).

    A dosed model takes every arm, and halves of read and unread ones; a clean
    one takes the arm that dosed models read least often.
    """
    if not is_dosed:
        yield Arm(CLEAN, 0, arms[0].quizzes.assign(is_read=False))
        return
    unseen = arms[-1].quizzes
    for arm in arms:
        yield arm
        if arm.condition == WITH_LABEL:
            n = len(arm.quizzes)
            half = pd.concat([arm.quizzes.iloc[: n // 2], unseen.iloc[: n - n // 2]])
            yield Arm(HALF, arm.copies, half.reset_index(drop=True))


def model_name(dataset: str, seed: int) -> str:
    """What tables call a model: dosed with a dataset, or clean where that is ""."""
    return f"{'dosed' if dataset else 'clean'}, seed {seed}"


def lab_rows(
    respondent: BaseRespondent, quizzed: Arm, model: str, seed: int, n_resamples: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of ``dcq_lab.csv`` for one quizzed set, and the answers behind them.

    Text read without its label, or with a wrong one, is no contamination by the
    paper's definition (section 2): the truth is then 0, recall undefined. The
    respondent's spread is taken from this set; ``seed`` is that of the training.

    Returns:
        The respondent's row and that of option ranking; and what ``answer_quizzes`` returned.
    """
    quizzes = quizzed.quizzes
    respondent = respondent.spread_over(quizzes)
    answers = answer_quizzes(respondent, quizzes, with_second=True)
    is_seen = quizzes["is_read"] & (quizzed.condition not in (WITHOUT_LABEL, WRONG_LABEL))
    about = {"dataset": respondent.dataset, "model": model, "copies": quizzed.copies}
    about |= {"seed": seed, "condition": quizzed.condition}
    row = about | recall_precision_row(answers, is_seen, n_resamples) | {"respondent": RESPONDENT}
    credits_ = ranking_credits(respondent, quizzes)
    n, right, both = len(credits_), credits_.sum(), (credits_ * is_seen).sum()
    ranking = about | _share_row(credits_) | {"respondent": RANKING}
    ranking |= {"n": n, "n_asked": n, "n_valid": n, "n_refused": 0, "n_error": 0}
    ranking["true_contamination_pct"] = row["true_contamination_pct"]
    ranking["recall_max_pct"] = 100 * both / is_seen.sum() if is_seen.any() else np.nan
    ranking["precision_max_pct"] = 100 * both / right if right else np.nan
    table = pd.DataFrame([row, ranking]).reindex(columns=LAB_COLUMNS.split())
    return table, pd.concat([pd.DataFrame(about, index=answers.index), answers], axis=1)


def _share_row(credits_: np.ndarray) -> dict[str, Any]:
    ends = share_interval(round(credits_.sum()), len(credits_))
    row = {"max_pct": 100 * float(credits_.mean())}
    return row | dict(zip(("ci_low_pct", "ci_high_pct"), (100 * end for end in ends), strict=True))


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


# Half and double the stated temperature; from "never E" to "nearly always E".
TEMPERATURES = (0.375, 0.75, 1.5)
THRESHOLDS = (0.0, 0.5, 0.7, 0.9)
KEYS = ["dataset", "model", "copies", "seed", "condition"]
DOSES = ["dataset", "copies"]
RISE_PCT = 10.0  # a smaller rise is within what chance does to one draw of quizzes
LEAST_LEVEL_PCT = 10.0  # a lower level leaves nothing to compare


def settings(stated: AnswerRule) -> Iterator[AnswerRule]:
    """The grid, which the stated setting joins."""
    temperatures = sorted({*TEMPERATURES, stated.temperature})
    thresholds = sorted({*THRESHOLDS, stated.none_below})
    for temperature, none_below in product(temperatures, thresholds):
        yield replace(stated, temperature=temperature, none_below=none_below)


def sweep(lab: pd.DataFrame, answers: pd.DataFrame, stated: AnswerRule) -> pd.DataFrame:
    """``dcq_respondent.csv``: the respondent's levels at every setting of the grid.

    ``lab`` and ``answers`` are ``dcq_lab`` and ``dcq_answers``.
    """
    about = lab[lab["respondent"] == RESPONDENT].set_index(KEYS)
    about = about[["true_contamination_pct", "replication_pct", "n"]]
    log_probs = {key: _log_probs(rows) for key, rows in answers.groupby(KEYS, sort=False)}
    rows = [
        {"temperature": setting.temperature, "none_below": setting.none_below}
        | {"is_stated": setting == stated}
        | dict(zip(KEYS, key, strict=True))
        | about.loc[key].to_dict()
        | levels_at(*of_set, setting)
        for setting, (key, of_set) in product(settings(stated), log_probs.items())
    ]
    return pd.DataFrame(rows).astype({"n": int})


def _log_probs(answers: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of four perturbations, shape (n, 4), of originals and of fifth ones, shape (n,); nats."""

    def placed(quiz: str) -> np.ndarray:
        rows = answers[answers["quiz"] == quiz]
        position = rows["position"].iloc[0]
        return rows.loc[rows["position"] == position, f"log_prob_{position.lower()}"].to_numpy()

    modified = answers.loc[answers["quiz"] == MODIFIED, list(LOG_PROBS)].to_numpy()
    return modified, placed(STANDARD), placed(SECOND)


def levels_at(
    modified: np.ndarray, original: np.ndarray, fifth: np.ndarray, stated: AnswerRule
) -> dict[str, float]:
    """The quiz taken from log-probabilities: minimum, maximum and choices, in percent.

    Arguments are as of ``_log_probs``. modified_pct, original_pct and fifth_pct are answers
    at the position that the modified quiz chose least, with these texts there.
    """
    spread, n = float(modified.std(axis=1, ddof=1).mean()), len(modified)

    def letters(placed: np.ndarray | None = None, position: str = "") -> list[str]:
        shown = modified.copy()
        if placed is not None:
            shown[:, POSITIONS.index(position)] = placed
        return stated.answers(shown, spread)[0].tolist()

    chosen = letters()
    counts = {letter: chosen.count(letter) for letter in POSITIONS}
    standard = {p: letters(original, p) for p in positions_to_quiz(counts, n)}
    level = assess(chosen, standard)
    least = min(POSITIONS, key=counts.__getitem__)
    return {
        "min_pct": 100 * level.minimum,
        "max_pct": 100 * level.maximum,
        "modified_pct": 100 * counts[least] / n,
        "original_pct": 100 * standard[least].count(least) / n,
        "fifth_pct": 100 * letters(fifth, least).count(least) / n,
    }


def gains(lab: pd.DataFrame, respondent: str) -> pd.Series:
    """Maximum on sets read with label minus that on sets the same model never read, points."""
    rows = lab[lab["respondent"] == respondent]
    levels = rows.set_index([*DOSES, "seed"])["max_pct"]
    unread = levels[(rows["condition"] == UNSEEN).to_numpy()].droplevel("copies")
    read = levels[(rows["condition"] == WITH_LABEL).to_numpy()]
    return read - unread.reindex(read.index.droplevel("copies")).to_numpy()


def readings_of(lab: pd.DataFrame) -> dict[str, str]:
    """What the rows of one setting say, next to those of option ranking, which has no setting.

    A case is a dataset with a number of copies, or a model. The tables are those of the paper:
    range and truth (Table 1), replication (Tables 2 and 3), moves (Figure 2); a text without its
    label is no contamination (section 2).
    """
    rows = lab[lab["respondent"].eq(RESPONDENT)]

    def of(*conditions: str) -> pd.DataFrame:
        return rows[rows["condition"].isin(conditions)]

    def cases(is_so: pd.Series) -> str:
        return f"{int(is_so.sum())} of {len(is_so)}"

    read, clean, seen = of(WITH_LABEL), of(CLEAN), of(WITH_LABEL, HALF)
    truth = seen["true_contamination_pct"]
    sides = {"below": seen["max_pct"] < truth, "above": seen["min_pct"] > truth}
    gain, of_ranking = (gains(lab, name).groupby(DOSES) for name in (RESPONDENT, RANKING))
    shares = ["max_pct", "replication_pct"]
    unread = of(UNSEEN).groupby("dataset")[shares].mean()
    means = read.groupby(DOSES)[shares].mean()
    means -= unread.reindex(means.index, level="dataset")
    largest = rows[rows["copies"] == read["copies"].max()]
    otherwise = [WITHOUT_LABEL, WRONG_LABEL]
    is_asked = largest["dataset"].isin(of(*otherwise)["dataset"])
    by_label = largest[is_asked].groupby("condition")["max_pct"].mean()
    found = by_label[otherwise] >= by_label[WITH_LABEL] / 2
    label = " and ".join(found.index[found]) or "neither"
    if by_label[WITH_LABEL] < LEAST_LEVEL_PCT:
        label = "too little is recognised"
    level = of(UNSEEN, CLEAN)["max_pct"].mean()
    most = largest[largest["condition"] == WITH_LABEL]
    moves = most["original_pct"] - most["modified_pct"] > RISE_PCT
    stays = (most["fifth_pct"] - most["modified_pct"]).abs() <= RISE_PCT
    return {
        "where the range lies, against the truth, in most sets read": next(
            (side for side, is_so in sides.items() if is_so.mean() > 0.5), "neither"
        ),
        "credited with more of what was read than of what was not, every model": cases(
            gain.min() > 0
        ),
        "gains less than option ranking": cases(gain.mean() < of_ranking.mean()),
        "the quiz gains more than replication": cases(means["max_pct"] > means["replication_pct"]),
        "read otherwise and credited with at least half as much": label,
        "sets that nobody read, mean maximum": (
            f"{'at most' if level <= LEAST_LEVEL_PCT else 'above'} {LEAST_LEVEL_PCT:.0f} %"
        ),
        "answers move to the original, not to a fifth text; dosed models": cases(moves & stays),
        "answers move to the original; clean models": cases(
            clean["original_pct"] - clean["modified_pct"] > RISE_PCT
        ),
    }


def readings_table(swept: pd.DataFrame, lab: pd.DataFrame) -> pd.DataFrame:
    """``dcq_readings.csv``: what the table says at the stated setting, and at how many others.

    elsewhere has the other answers of a reading, with the number of their settings; holds:
    whether no setting says anything else.
    """
    ranking, said, stated = lab[lab["respondent"] != RESPONDENT], [], {}
    for _, rows in swept.groupby(["temperature", "none_below"], sort=False):
        said.append(readings_of(pd.concat([rows.assign(respondent=RESPONDENT), ranking])))
        stated = said[-1] if rows["is_stated"].any() else stated
    table = []
    for name, answer in stated.items():
        answers = pd.Series([of[name] for of in said])
        others = answers[answers != answer].value_counts()
        table.append(
            {"reading": name, "stated": answer}
            | {"elsewhere": "; ".join(f"{other} ({n})" for other, n in others.items())}
            | {"n_settings": len(said), "n_same": int(answers.eq(answer).sum())}
            | {"holds": others.empty}
        )
    return pd.DataFrame(table)
