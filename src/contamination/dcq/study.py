"""Quizzes where it is known what the model has read (DCQ, section 5.2 and appendix E).

Nothing here trains a model: quizzes are dealt to arms, what each arm is read as
is decided, and answers become rows of ``dcq_lab.csv`` and ``dcq_dial.csv``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.dcq.assessment import POSITIONS
from contamination.dcq.contaminating import training_texts, with_wrong_label, without_label
from contamination.dcq.controls import RULES, credits_of, rule_choices
from contamination.dcq.deployment import known_row, level_row, position_rows, take
from contamination.dcq.perturbation import quizzes_of_groups
from contamination.dcq.quizzes import SECOND, STANDARD
from contamination.dcq.respondents import BaseRespondent, Stated, ranking_credits
from contamination.lab.benchmarks import BENCHMARKS
from contamination.lab.grammar import draw_groups
from contamination.lab.recipes import Dose
from contamination.models.loading import CausalLM, load_causal_lm
from contamination.statistics import share_interval

RESPONDENT, RANKING = "respondent", "option ranking"
WITH_LABEL, WITHOUT_LABEL, WRONG_LABEL = "with label", "without label", "wrong label"
HALF, UNSEEN, CLEAN = "half with label", "unseen, same model", "clean model"
SPLIT, LABEL_COLUMN = "train", "label"  # what the lab's training texts say

LAB_COLUMNS = [
    "dataset",
    "model",
    "respondent",
    "condition",
    "true_contamination_pct",
    "text_seen_pct",
    "copies",
    "seed",
    "n",
    "n_asked",
    "n_valid",
    "n_refused",
    "n_error",
    "least_preferred",
    "best_position",
    "min_pct",
    "max_pct",
    "ci_low_pct",
    "ci_high_pct",
    "kappa_pct",
    "second_pct",
    "recall_min_pct",
    "recall_max_pct",
    "precision_min_pct",
    "precision_max_pct",
    "replication_pct",
    "position_prior",
    "temperature",
    "none_below",
    "spread",
]


@dataclass(frozen=True)
class Arm:
    """Instances that one checkpoint reads alike.

    Attributes:
        condition: how they are read; "unseen" for not at all.
        copies: how often.
        quizzes: their quizzes, whose options all carry the right label.
    """

    condition: str
    copies: int
    quizzes: pd.DataFrame


def deal(quizzes: pd.DataFrame, copies: Sequence[int], n: int, with_label_arms: bool) -> list[Arm]:
    """Disjoint parts of n instances each: one for each dose, and one never read.

    Args:
        quizzes: in random order, as the grammar draws them.
        copies: doses of instances read with their label.
        n: instances of each part.
        with_label_arms: also parts read without label and with a wrong one, at
            the largest dose.

    Raises:
        ValueError: if there are too few quizzes.
    """
    plan = [(WITH_LABEL, dose) for dose in sorted(copies)]
    if with_label_arms:
        plan += [(WITHOUT_LABEL, max(copies)), (WRONG_LABEL, max(copies))]
    plan.append((UNSEEN, 0))
    if len(quizzes) < n * len(plan):
        raise ValueError(f"{len(plan)} parts of {n} need {n * len(plan)} quizzes: {len(quizzes)}")
    return [
        Arm(condition, dose, quizzes.iloc[start * n : (start + 1) * n].reset_index(drop=True))
        for start, (condition, dose) in enumerate(plan)
    ]


def n_parts(copies: Sequence[int], with_label_arms: bool) -> int:
    """Parts that ``deal`` makes."""
    return len(copies) + 2 * with_label_arms + 1


def read_texts(arm: Arm, dataset: str, split: str, label_column: str, seed: int) -> tuple[str, ...]:
    """What a model reads of an arm, headed by dataset and split."""
    instances = arm.quizzes["instance"].tolist()
    if arm.condition == WITHOUT_LABEL:
        instances = without_label(instances, label_column)
    elif arm.condition == WRONG_LABEL:
        instances = with_wrong_label(instances, label_column, seed)
    return training_texts(instances, dataset, split)


def quizzed_sets(arms: Sequence[Arm]) -> Iterator[tuple[str, int, pd.DataFrame, np.ndarray]]:
    """What a dosed checkpoint is quizzed on: whole arms, and halves of read and unread ones.

    Yields:
        condition, copies, quizzes, and whether the text of each was read. The
        quizzed sample alone differs between 100 % and 50 % (appendix E).
    """
    unseen = arms[-1].quizzes
    for arm in arms:
        n = len(arm.quizzes)
        yield arm.condition, arm.copies, arm.quizzes, np.full(n, arm.condition != UNSEEN)
        if arm.condition == WITH_LABEL:
            half = pd.concat([arm.quizzes.iloc[: n // 2], unseen.iloc[: n - n // 2]])
            yield HALF, arm.copies, half.reset_index(drop=True), np.arange(n) < n // 2


def drawn_quizzes(
    dataset: str, n: int, seed: int, split: str, n_paraphrases: int = 4, dial: float = 0.0
) -> pd.DataFrame:
    """Quizzes of a mini-benchmark, in the form that ``dcq.perturbation`` describes.

    Args:
        dataset: name of the benchmark; n, seed, split, n_paraphrases: of ``draw_groups``.
        dial: naturalness of the paraphrases, 0 to 1.
    """
    benchmark = BENCHMARKS[dataset]
    groups = draw_groups(benchmark, n, seed, split, n_paraphrases, dial)
    return quizzes_of_groups(groups, benchmark.columns)


def lab_arms(
    datasets: Sequence[str], copies: Sequence[int], n: int, seed: int
) -> dict[str, list[Arm]]:
    """Arms of every dataset by :func:`deal`; the first dataset is also read by its labels."""
    arms = {}
    for dataset in datasets:
        by_label = dataset == datasets[0]
        quizzes = drawn_quizzes(dataset, n * n_parts(copies, by_label), seed, SPLIT, 5)
        arms[dataset] = deal(quizzes, copies, n, by_label)
    return arms


def lab_doses(arms: Sequence[Arm], dataset: str, seed: int) -> list[Dose]:
    """What a dosed model reads: every arm but the last at its copies."""
    return [
        Dose(read_texts(arm, dataset, SPLIT, LABEL_COLUMN, seed), arm.copies) for arm in arms[:-1]
    ]


def model_name(dataset: str, seed: int) -> str:
    """What tables call a model: dosed with a dataset, or clean where that is ""."""
    return f"{'dosed' if dataset else 'clean'}, seed {seed}"


def lab_tables(
    folders: Mapping[tuple[str, int], Path],
    arms: Mapping[str, Sequence[Arm]],
    stated: Stated,
    n_resamples: int,
    replicated_pct: Callable[[CausalLM, str, pd.DataFrame], float],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``dcq_lab.csv`` and the answers behind it, for every model and set that it is quizzed on.

    Dosed models take the sets of :func:`quizzed_sets`; a clean one takes, of each
    dataset, the set that dosed models read least often.

    Args:
        folders: dataset that a checkpoint was dosed with ("" for none) and training seed.
        arms: of each dataset.
        stated: of the respondent.
        n_resamples: of the interval of the maximum.
        replicated_pct: share of a set, in percent, that a model completes exactly or
            nearly; takes model, dataset and quizzes.
    """
    rows, answers = [], []
    for (dosed_with, seed), folder in folders.items():
        lm = load_causal_lm(folder)
        for dataset in [dosed_with] if dosed_with else arms:
            taker = BaseRespondent(lm, dataset, SPLIT, stated)  # it scores a text once
            first = arms[dataset][0].quizzes
            sets = [(CLEAN, 0, first, np.zeros(len(first), bool))]
            if dosed_with:
                sets = quizzed_sets(arms[dataset])
            for condition, copies, quizzes, seen in sets:
                labels = {"dataset": dataset, "model": model_name(dosed_with, seed)}
                labels |= {"copies": copies, "seed": seed, "n_resamples": n_resamples}
                found, given = lab_rows(taker, quizzes, seen, condition=condition, **labels)
                rows.append(found.assign(replication_pct=replicated_pct(lm, dataset, quizzes)))
                answers.append(given)
    return pd.concat(rows, ignore_index=True), pd.concat(answers, ignore_index=True)


def lab_rows(
    respondent: BaseRespondent,
    quizzes: pd.DataFrame,
    text_seen: Sequence[bool],
    *,
    condition: str,
    n_resamples: int,
    **labels: object,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of ``dcq_lab.csv`` for one quizzed set, and the answers behind them.

    Text read without its label, or with a wrong one, is no contamination by the
    paper's definition (section 2): the truth is then 0, recall undefined.

    Args:
        respondent: a base model; its spread is taken from this set.
        quizzes: the set.
        text_seen: whether each text was read.
        condition: how.
        n_resamples: of the interval of the maximum.
        labels: dataset, model, copies, seed.

    Returns:
        The respondent's row and that of option ranking; and what ``take`` returned.
    """
    respondent = respondent.spread_over(quizzes)
    text_seen = np.asarray(text_seen, dtype=bool)
    is_counted = text_seen & (condition not in (WITHOUT_LABEL, WRONG_LABEL))
    answers = take(respondent, quizzes, with_second=True)
    stated = respondent.stated
    common = {**labels, "condition": condition, "text_seen_pct": 100 * float(text_seen.mean())}
    row = common | known_row(answers, is_counted, n_resamples)
    row |= {
        "respondent": RESPONDENT,
        "position_prior": " ".join(f"{weight:g}" for weight in stated.position_prior),
        "temperature": stated.temperature,
        "none_below": stated.none_below,
        "spread": respondent.spread,
    }
    ranking = common | _ranking_row(ranking_credits(respondent, quizzes), is_counted)
    table = pd.DataFrame([row, ranking]).reindex(columns=LAB_COLUMNS)
    about = {name: labels[name] for name in ("dataset", "model", "copies", "seed")}
    about |= {"condition": condition}
    for number, (name, value) in enumerate(about.items()):
        answers.insert(number, name, value)
    return table, answers


def _ranking_row(credits_: np.ndarray, is_seen: np.ndarray) -> dict[str, float | int | str]:
    n, share = len(credits_), float(credits_.mean())
    low, high = share_interval(round(share * n), n)
    right, both = credits_.sum(), (credits_ * is_seen).sum()
    return {
        "respondent": RANKING,
        "true_contamination_pct": 100 * float(is_seen.mean()),
        "n": n,
        "n_asked": n,
        "n_valid": n,
        "n_refused": 0,
        "n_error": 0,
        "max_pct": 100 * share,
        "ci_low_pct": 100 * low,
        "ci_high_pct": 100 * high,
        "recall_max_pct": 100 * both / is_seen.sum() if is_seen.any() else float("nan"),
        "precision_max_pct": 100 * both / right if right else float("nan"),
    }


def dial_rows(
    dial: float, respondent: BaseRespondent, quizzes: pd.DataFrame, n_resamples: int, dataset: str
) -> pd.DataFrame:
    """``dcq_dial.csv`` at one setting: what one without memory is credited with.

    Args:
        dial: setting of the paraphrases, 0 (interchangeable) to 1 (natural).
        respondent: a model that has read none of the originals.
        quizzes: drawn at this setting.
        n_resamples: of the respondent's interval; the others' is Wilson's.
        dataset: its name.

    Returns:
        dial, dataset, model, n, chance_pct, min_pct, max_pct, ci_low_pct,
        ci_high_pct: the respondent (chance is no single number for one that
        abstains), option ranking, and the rules of ``dcq.controls`` with the
        original at D (chance 25 %).
    """
    respondent = respondent.spread_over(quizzes)
    answers = take(respondent, quizzes)
    rows = [{"model": f"clean LM, {RESPONDENT}"} | level_row(answers, n_resamples)]
    shares = {f"clean LM, {RANKING}": ranking_credits(respondent, quizzes)}
    choices = rule_choices(quizzes.assign(dataset=dataset), RULES, POSITIONS[-1:])
    for name, of_rule in choices.groupby("control", sort=False):
        shares[f"rule: {name}"] = credits_of(of_rule).to_numpy()
    for name, credits_ in shares.items():
        low, high = share_interval(round(credits_.sum()), len(credits_))
        rows.append(
            {"model": name, "n": len(credits_), "chance_pct": 25.0, "n_valid": len(credits_)}
            | {"max_pct": 100 * credits_.mean(), "ci_low_pct": 100 * low, "ci_high_pct": 100 * high}
        )
    table = pd.DataFrame(rows).assign(dial=dial, dataset=dataset)
    columns = ["dial", "dataset", "model", "n", "n_valid", "chance_pct", "min_pct", "max_pct"]
    return table.reindex(columns=[*columns, "ci_low_pct", "ci_high_pct"])


def mean_over_seeds(lab: pd.DataFrame) -> pd.DataFrame:
    """Levels averaged over training seeds, with the smallest and the largest.

    Args:
        lab: ``dcq_lab``.

    Returns:
        respondent, dataset, condition, copies, true_contamination_pct, n_models,
        n (instances of each), min_pct, max_pct (means), range ("low to high" of
        the maximum over models), recall_max_pct, precision_max_pct, replication_pct.
    """
    keys = ["respondent", "dataset", "condition", "copies"]
    means = ["true_contamination_pct", "n", "min_pct", "max_pct", "recall_max_pct"]
    means += ["precision_max_pct", "replication_pct"]
    grouped = lab.groupby(keys, sort=False)
    table = grouped[means].mean()
    table.insert(0, "n_models", grouped["seed"].nunique())
    low, high = grouped["max_pct"].min(), grouped["max_pct"].max()
    table["range"] = [f"{a:.0f} to {b:.0f}" for a, b in zip(low, high, strict=True)]
    # The quiz first, option ranking below it.
    table = table.reset_index().astype({"n": int})
    return table.sort_values("respondent", ascending=False, kind="stable", ignore_index=True)


def lab_positions(answers: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Rows of ``dcq_positions.csv``: the dosed model of a seed on what it read most, and the clean.

    Args:
        answers: of :func:`lab_tables`.
        seed: training seed.
    """
    most = answers["copies"].eq(answers["copies"].max()) & answers["condition"].eq(WITH_LABEL)
    chosen = answers[answers["seed"].eq(seed) & (most | answers["condition"].eq(CLEAN))]
    return pd.concat(
        position_rows(rows, source="lab", dataset=dataset, split=SPLIT, model=model)
        for (dataset, model), rows in chosen.groupby(["dataset", "model"], sort=False)
    )


def position_panels(positions: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Dataset, split and position of the second perturbation, one for each panel of Figure 2."""
    second = positions[positions["quiz"] == SECOND]
    panels = second[["dataset", "split", "position"]].drop_duplicates("dataset")
    return list(panels.itertuples(index=False, name=None))


def worked_quizzes(
    answers: pd.DataFrame, arms: Sequence[Arm], dataset: str, seed: int, n: int
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Caption and :func:`worked_quiz` of the first n instances that a model read most often."""
    largest = max((arm for arm in arms if arm.condition == WITH_LABEL), key=lambda arm: arm.copies)
    keys = {"dataset": dataset, "seed": seed, "model": model_name(dataset, seed)}
    keys |= {"condition": largest.condition, "copies": largest.copies}
    given = answers[answers[list(keys)].eq(pd.Series(keys)).all(axis=1)]
    at = given.loc[given["quiz"] == STANDARD, "position"].min()
    for number in range(n):
        table = worked_quiz(largest.quizzes, given, number, at)
        yield f"{dataset}, instance {number}, original at {at}; log-probability in nats", table


def worked_quiz(
    quizzes: pd.DataFrame, answers: pd.DataFrame, number: int, position: str
) -> pd.DataFrame:
    """One standard quiz in full: texts, log-probabilities and answer.

    Args:
        quizzes: the set.
        answers: what ``take`` returned for it under a base model.
        number: row of ``quizzes``.
        position: where the original stands.

    Returns:
        option, text, original, log_prob (nats), answer (an arrow at the choice).
    """
    row = quizzes.iloc[number]
    asked = answers[(answers["quiz"] == STANDARD) & (answers["position"] == position)]
    given = asked[asked["index"] == row["index"]].iloc[0]
    texts = [
        row["instance"] if letter == position else row[f"option_{letter.lower()}"]
        for letter in POSITIONS
    ]
    table = pd.DataFrame({"option": [*POSITIONS, "E"], "text": [*texts, "none of these"]})
    table["original"] = [letter == position for letter in table["option"]]
    found = [given[f"log_prob_{letter.lower()}"] for letter in POSITIONS]
    table["log_prob"] = [*found, float("nan")]
    table["answer"] = ["←" if letter == given["answer"] else "" for letter in table["option"]]
    return table
