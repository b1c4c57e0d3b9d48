"""Quizzes where it is known what the model has read (DCQ, section 5.2 and appendix E)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

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


# Half and double the stated temperature; from "never E" to "nearly always E".
TEMPERATURES = (0.375, 0.75, 1.5)
THRESHOLDS = (0.0, 0.5, 0.7, 0.9)
KEYS = ["dataset", "model", "copies", "seed", "condition"]
DOSES = ["dataset", "copies"]
RISE_PCT = 10.0  # a smaller rise is within what chance does to one draw of quizzes
LEAST_LEVEL_PCT = 10.0  # a lower level leaves nothing to compare
RANGE_READING = "where the range lies, against the truth, in most sets read"
Reading = Callable[[pd.DataFrame], str]


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

    ``modified`` are those of the four perturbations, shape (n, 4), nats; ``original`` and
    ``fifth`` of the originals and the fifth perturbations, shape (n,). none_pct is E in the
    modified quiz; modified_pct, original_pct and fifth_pct are answers at the position
    that the modified quiz chose least, with these texts there.
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
        "none_pct": 100 * chosen.count("E") / n,
        "modified_pct": 100 * counts[least] / n,
        "original_pct": 100 * standard[least].count(least) / n,
        "fifth_pct": 100 * letters(fifth, least).count(least) / n,
    }


# Readings of the rows of one setting, next to those of option ranking, which has no setting.


def _of(lab: pd.DataFrame, *conditions: str) -> pd.DataFrame:
    return lab[lab["condition"].isin(conditions) & lab["respondent"].eq(RESPONDENT)]


def _cases(is_so: pd.Series) -> str:
    return f"{int(is_so.sum())} of {len(is_so)}"


def _at_largest_dose(lab: pd.DataFrame, *conditions: str) -> pd.DataFrame:
    rows = _of(lab, *conditions)
    return rows[rows["copies"] == rows["copies"].max()]


def gains(lab: pd.DataFrame, respondent: str) -> pd.Series:
    """Maximum on sets read with label minus that on sets the same model never read, points."""
    rows = lab[lab["respondent"] == respondent]
    levels = rows.set_index([*DOSES, "seed"])["max_pct"]
    unread = levels[(rows["condition"] == UNSEEN).to_numpy()].droplevel("copies")
    read = levels[(rows["condition"] == WITH_LABEL).to_numpy()]
    return read - unread.reindex(read.index.droplevel("copies")).to_numpy()


def range_and_truth(lab: pd.DataFrame) -> str:
    """Where the range lies in most sets of which all or half was read with its label (Table 1)."""
    rows = _of(lab, WITH_LABEL, HALF)
    truth = rows["true_contamination_pct"]
    sides = {"below": rows["max_pct"] < truth, "above": rows["min_pct"] > truth}
    return next((side for side, is_so in sides.items() if is_so.mean() > 0.5), "neither")


def read_and_unread(lab: pd.DataFrame) -> str:
    """Datasets and doses where every model is credited with more of what it read."""
    return _cases(gains(lab, RESPONDENT).groupby(DOSES).min() > 0)


def respondent_and_ranking(lab: pd.DataFrame) -> str:
    """Datasets and doses where the respondent gains less; each has another level of chance."""
    respondent, ranking = (gains(lab, name).groupby(DOSES).mean() for name in (RESPONDENT, RANKING))
    return _cases(respondent < ranking)


def quiz_and_replication(lab: pd.DataFrame) -> str:
    """Datasets and doses where the quiz gains more than replication does (Tables 2 and 3)."""
    shares = ["max_pct", "replication_pct"]
    unread = _of(lab, UNSEEN).groupby("dataset")[shares].mean()
    read = _of(lab, WITH_LABEL).groupby(DOSES)[shares].mean()
    gain = read - unread.reindex(read.index, level="dataset")
    return _cases(gain["max_pct"] > gain["replication_pct"])


def label_matters(lab: pd.DataFrame) -> str:
    """What was read otherwise than with its label and is credited with half as much (section 2)."""
    conditions = [WITH_LABEL, WITHOUT_LABEL, WRONG_LABEL]
    rows = _at_largest_dose(lab, *conditions)
    rows = rows[rows["dataset"].isin(_of(lab, WITHOUT_LABEL)["dataset"])]
    means = rows.groupby("condition")["max_pct"].mean()
    if not set(conditions) <= set(means.index):
        return "not read otherwise"
    if means[WITH_LABEL] < LEAST_LEVEL_PCT:
        return "too little is recognised"
    others = means.drop(WITH_LABEL)
    return " and ".join(sorted(others.index[others >= means[WITH_LABEL] / 2])) or "neither"


def level_of_unread(lab: pd.DataFrame) -> str:
    """Whether sets that nobody read are credited with little (mean maximum); the truth is 0."""
    level = _of(lab, UNSEEN, CLEAN)["max_pct"].mean()
    return f"{'at most' if level <= LEAST_LEVEL_PCT else 'above'} {LEAST_LEVEL_PCT:.0f} %"


def answers_move(lab: pd.DataFrame) -> str:
    """Models that move to an original that they read, and not to a fifth text (Figure 2)."""
    rows = _at_largest_dose(lab, WITH_LABEL)
    moves = rows["original_pct"] - rows["modified_pct"] > RISE_PCT
    stays = (rows["fifth_pct"] - rows["modified_pct"]).abs() <= RISE_PCT
    return _cases(moves & stays)


def answers_of_clean_models_move(lab: pd.DataFrame) -> str:
    """The control of :func:`answers_move`."""
    rows = _of(lab, CLEAN)
    return _cases(rows["original_pct"] - rows["modified_pct"] > RISE_PCT)


READINGS: dict[str, Reading] = {
    RANGE_READING: range_and_truth,
    "credited with more of what was read than of what was not, every model": read_and_unread,
    "gains less than option ranking": respondent_and_ranking,
    "the quiz gains more than replication": quiz_and_replication,
    "read otherwise and credited with at least half as much": label_matters,
    "sets that nobody read, mean maximum": level_of_unread,
    "answers move to the original, not to a fifth text; dosed models": answers_move,
    "answers move to the original; clean models": answers_of_clean_models_move,
}


def readings_table(
    swept: pd.DataFrame, lab: pd.DataFrame, readings: Mapping[str, Reading] = READINGS
) -> pd.DataFrame:
    """``dcq_readings.csv``: what the table says at the stated setting, and at how many others.

    elsewhere has the other answers of a reading, with the number of their settings; holds:
    whether no setting says anything else.
    """
    ranking = lab[lab["respondent"] != RESPONDENT]
    tables = [
        (rows["is_stated"].any(), pd.concat([rows.assign(respondent=RESPONDENT), ranking]))
        for _, rows in swept.groupby(["temperature", "none_below"], sort=False)
    ]
    table = []
    for name, reading in readings.items():
        said = [reading(rows) for _, rows in tables]
        stated = said[[is_stated for is_stated, _ in tables].index(True)]
        others = pd.Series([text for text in said if text != stated], dtype=str).value_counts()
        table.append(
            {"reading": name, "stated": stated}
            | {"elsewhere": "; ".join(f"{answer} ({n})" for answer, n in others.items())}
            | {"n_settings": len(said), "n_same": said.count(stated)}
            | {"holds": others.empty}
        )
    return pd.DataFrame(table)
