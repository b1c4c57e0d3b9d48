"""Rules that take the quizzes without any memory, and whether they do as well as a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.overlap import normalised, word_overlap, words
from contamination.core.statistics import (
    correct_family,
    end_p,
    holm,
    percentile_interval,
    share_interval,
)
from contamination.core.verdicts import (
    CLAIMS,
    FOUND,
    NOT_RUN,
    OPEN,
    RULED_OUT,
    SHOWN,
    SMALL,
    strongest,
)
from contamination.dcq.assessment import (
    POSITIONS,
    assess,
    resample_counts,
    standard_answers_of,
)
from contamination.dcq.quizzes import OPTION_COLUMNS

N_OPTIONS = len(OPTION_COLUMNS)
Rule = Callable[[Sequence[str]], np.ndarray]


def centrality(options: Sequence[str]) -> np.ndarray:
    """Mean word overlap of each option with the others, shape (n_options,), 0 to 1."""
    overlap = np.array([[word_overlap(a, b) for b in options] for a in options])
    np.fill_diagonal(overlap, 0)
    return overlap.sum(axis=1) / (len(options) - 1)


def word_frequency(options: Sequence[str]) -> np.ndarray:
    """Mean Zipf frequency of each option's words in general English, shape (n_options,).

    From the ``wordfreq`` package, never from the quizzed instances. Zipf = log10
    of occurrences per billion words; unknown words count 0.
    """
    from wordfreq import zipf_frequency

    return np.array([np.mean([zipf_frequency(w, "en") for w in words(o)] or [0]) for o in options])


def length(options: Sequence[str]) -> np.ndarray:
    """Number of words of each option, shape (n_options,): a rewriter may drop some."""
    return np.array([len(words(option)) for option in options], dtype=float)


RULES: dict[str, Rule] = {
    "centrality": centrality,
    "word frequency": word_frequency,
    "length": length,
}


def pick_letters(scores: np.ndarray) -> tuple[str, float]:
    """Letters of the highest score of the texts at A to D ("BD" for a tie), and its margin.

    The margin to the next score is in units of the score, 0 for a tie.
    """
    best = np.isclose(scores, scores.max())
    letters = "".join(letter for letter, is_best in zip(POSITIONS, best, strict=True) if is_best)
    return letters, float(scores.max() - scores[~best].max()) if best.sum() == 1 else 0.0


def share_pct(is_right: np.ndarray, weights: np.ndarray) -> float:
    """Weighted share of right answers in percent, NaN without weights; arrays of one shape."""
    total = weights.sum()
    return 100 * float((is_right * weights).sum() / total) if total else float("nan")


def quiz_texts(quiz: pd.Series, position: str) -> tuple[list[str], int]:
    """The four texts of a standard quiz with the original at one position, and its place.

    Where option_d already is the original (the seven "wild" datasets) the four
    released options are the quiz, at every position.
    """
    options = [quiz[column] for column in OPTION_COLUMNS]
    if options[-1] == quiz["instance"] or normalised(options[-1]) == normalised(quiz["instance"]):
        return options, N_OPTIONS - 1
    place = POSITIONS.index(position)
    return [*options[:place], quiz["instance"], *options[place + 1 :]], place


def chance_of_best(n: int, n_quizzes: int) -> float:
    """Expected best share of independent guesses over several quizzes of n questions, exact."""
    counts = np.arange(n + 1)
    below = stats.binom.cdf(counts, n, 1 / N_OPTIONS) ** n_quizzes
    return float((1 - below[:-1]).sum() / n)


def rule_choices(
    quizzes: pd.DataFrame,
    rules: Mapping[str, Rule] = RULES,
    positions: Sequence[str] = POSITIONS,
) -> pd.DataFrame:
    """What each rule takes in each quiz: choice and margin, as of ``pick_letters``, and no text.

    ``positions`` are where the original is put; a dataset whose option D already is the
    original has one quiz for each instance, with it at D.
    """
    rows = []
    for dataset, of_dataset in quizzes.groupby("dataset", sort=False):
        records = [quiz for _, quiz in of_dataset.iterrows()]
        is_fixed = all(quiz_texts(quiz, POSITIONS[0])[1] for quiz in records)
        for quiz in records:
            for position in POSITIONS[-1:] if is_fixed else positions:
                texts, _ = quiz_texts(quiz, position)
                rows += [
                    (dataset, quiz["index"], position, name, *pick_letters(rule(texts)))
                    for name, rule in rules.items()
                ]
    columns = ["dataset", "index", "position", "control", "choice", "margin"]
    return pd.DataFrame(rows, columns=columns)


def credits_of(choices: pd.DataFrame) -> pd.Series:
    """Chance that each choice is the original, 0 to 1: ties are drawn by lot."""
    pairs = zip(choices["position"], choices["choice"], strict=True)
    found = [(position in choice) / len(choice) for position, choice in pairs]
    return pd.Series(found, choices.index, dtype=float)


def by_position(of_rule: pd.DataFrame, column: str, positions: Sequence[str]) -> np.ndarray:
    """A column of one rule's choices on one dataset, shape (n_positions, n_instances).

    Where the original's place is fixed, its one quiz stands for every position.
    """
    wide = of_rule.pivot(index="index", columns="position", values=column)
    wide = wide.loc[of_rule["index"].unique()]
    if len(wide.columns) == 1:
        return np.repeat(wide.to_numpy().T, len(positions), axis=0)
    return wide[list(positions)].to_numpy().T


def control_table(choices: pd.DataFrame, levels: pd.DataFrame) -> pd.DataFrame:
    """``dcq_controls.csv``: every rule on every dataset next to every model's level.

    Where the original's place is free (three datasets), the rules take one quiz per position
    that the model was quizzed at, and the best of them counts. ``levels`` are ``dcq_published``;
    difference_pct is rule minus model, points.
    """
    rows = []
    choices = choices.assign(credit=credits_of(choices))
    for (dataset, name), of_rule in choices.groupby(["dataset", "control"], sort=False):
        is_fixed = len(of_rule["position"].unique()) == 1
        for model in levels[levels["dataset"] == dataset].itertuples():
            positions = POSITIONS[-1:] if is_fixed else tuple(model.least_preferred) or POSITIONS
            credit = by_position(of_rule, "credit", positions)
            n_quizzes, n = credit.shape
            share = float(credit.mean(axis=1).max())
            low, high = share_interval(round(share * n), n)
            row = {"dataset": dataset, "control": name, "n": n, "n_quizzes": n_quizzes}
            row |= {"chance_pct": 100 * chance_of_best(n, n_quizzes), "max_pct": 100 * share}
            row |= {"ci_low_pct": 100 * low, "ci_high_pct": 100 * high}
            row |= {"model": model.model, "paper_max_pct": model.max_pct}
            rows.append(row | {"difference_pct": row["max_pct"] - model.max_pct})
    return pd.DataFrame(rows)


WRONG, COVERAGE, QUARTER = "E wrong", "equal coverage", "E a quarter"
COUNTS = (WRONG, COVERAGE, QUARTER)
CLAIMED_BY = (COVERAGE, QUARTER)  # a claim needs both
RULES_CLAIM, BEYOND_CLAIM = CLAIMS["dcq_rules"], CLAIMS["dcq_beyond_rules"]
ALPHA = 0.025  # one-sided
FEWEST_QUIZZES = 10  # quizzes a rule gets wrong, below which nothing is said of them


@dataclass(frozen=True)
class Answers:
    """What one model answered on one partition, n instances in the order of ``index``.

    ``positions`` are the least preferred, or all of A to D where there is none;
    ``is_right`` and ``is_none`` (E) hold for these, shape (n_positions, n).
    """

    model: str
    dataset: str
    index: np.ndarray
    positions: tuple[str, ...]
    is_right: np.ndarray
    is_none: np.ndarray

    @property
    def n(self) -> int:
        """The number of instances."""
        return len(self.index)

    def weights(self, n_resamples: int, seed: int) -> np.ndarray:
        """How often each instance counts: once in the data itself, then in each resample."""
        return np.vstack([np.ones(self.n), *resample_counts(self.n, n_resamples, seed)])

    def of_rule(self, choices: pd.DataFrame, column: str) -> np.ndarray:
        """A column of one rule's choices, shape (n_positions, n); ValueError if one is missing."""
        if not np.array_equal(choices["index"].unique(), self.index):
            raise ValueError(
                f"a rule has no choice for some instances of {self.dataset}: make it choose again"
            )
        return by_position(choices, column, self.positions)


def answers_of(instances: pd.DataFrame) -> Answers:
    """Answers of one model on one partition, from rows of ``published.released_instances``."""
    standard = standard_answers_of(instances)
    positions = assess(instances["modified_answer"].tolist(), standard).least_preferred or POSITIONS
    at = {position: np.array(standard[position]) for position in positions}
    return Answers(
        model=instances["model"].iloc[0],
        dataset=instances["dataset"].iloc[0],
        index=instances["index"].to_numpy(),
        positions=positions,
        is_right=np.array([at[p] == p for p in positions], float),
        is_none=np.array([at[p] == "E" for p in positions], float),
    )


def compare_rules(
    choices: pd.DataFrame, instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """``dcq_rules.csv``: every rule against every model, E counted in each way.

    With fewer resamples than about 40 x the number of comparisons no adjusted p value can be
    small enough, and every verdict is open. ``choices`` are of ``rule_choices``, ``instances``
    ``published.released_instances("DCQ")``.

    Returns:
        counted (how E counts), difference_pct (rule minus model, points) with its interval,
        adjusted p values (p_as_well: of a rule at most five points below the model, p_worse:
        of one below it), word: the verdict of this count, and verdict: what equal coverage and
        E at a quarter both say, else open. From corrected_low_pct to corrected_high_pct is the
        interval of :func:`corrected_interval`.
    """
    rows, resampled, choices = [], [], choices.assign(credit=credits_of(choices))
    for _, of_pair in instances.groupby(["model", "dataset"], sort=False):
        answers = answers_of(of_pair)
        weights = answers.weights(n_resamples, seed)
        of_dataset = choices[choices["dataset"] == answers.dataset]
        for control, of_rule in of_dataset.groupby("control", sort=False):
            credit, margin = (answers.of_rule(of_rule, name) for name in ("credit", "margin"))
            row = {"model": answers.model, "dataset": answers.dataset, "control": control}
            for counted in COUNTS:
                levels = 100 * _levels(weights, answers, credit, margin, counted)
                differences = (levels[0] - levels[1])[1:]  # the first sample is the data itself
                low, high = percentile_interval(differences)
                row |= {"counted": counted, "n": answers.n, "n_positions": len(answers.positions)}
                row |= {"rule_pct": levels[0, 0], "model_pct": levels[1, 0]}
                row |= {"difference_pct": levels[0, 0] - levels[1, 0]}
                row |= {"ci_low_pct": low, "ci_high_pct": high}
                row["p_as_well"] = _p_above(differences, -RULES_CLAIM.smallest_effect)
                rows.append(row | {"p_worse": _p_above(-differences, 0)})
                resampled.append(differences)
    table, p_values = pd.DataFrame(rows), ["p_as_well", "p_worse"]
    table[p_values] = table.groupby("counted")[p_values].transform(holm)
    n_left = table[p_values].gt(ALPHA).groupby(table["counted"]).transform("sum").to_numpy()
    ends = [corrected_interval(of, *left) for of, left in zip(resampled, n_left, strict=True)]
    table[["corrected_low_pct", "corrected_high_pct"]] = ends
    table["word"] = [word_of(row) for row in table.itertuples()]
    keys = ["model", "dataset", "control"]
    claims = table[table["counted"].isin(CLAIMED_BY)].groupby(keys)["word"].agg(verdict_of)
    return table.merge(claims.rename("verdict").reset_index(), on=keys, how="left")


def _levels(
    weights: np.ndarray, answers: Answers, credit: np.ndarray, margin: np.ndarray, counted: str
) -> np.ndarray:
    """Shares of rule and model in each sample, shape (2, n_samples), 0 to 1."""
    rule, model = weights @ credit.T, weights @ answers.is_right.T
    n_none = weights @ answers.is_none.T
    if counted == QUARTER:
        model = model + n_none / 4
    if counted == COVERAGE:
        columns = zip(credit, margin, n_none.T, strict=True)
        rule = np.column_stack([_right_at_coverage(weights, *column) for column in columns])
    return np.array([rule.mean(axis=1), model.mean(axis=1)]) / answers.n


def _right_at_coverage(
    weights: np.ndarray, credit: np.ndarray, margin: np.ndarray, n_none: np.ndarray
) -> np.ndarray:
    """Right answers of a rule that leaves out ``n_none`` quizzes, smallest margin first.

    Quizzes of one margin are left out in equal parts. Shape (n_samples,).
    """
    order = np.argsort(margin, kind="stable")
    starts = np.unique(margin[order].round(9), return_index=True)[1]
    n_quizzes = np.add.reduceat(weights[:, order], starts, axis=1)
    n_right = np.add.reduceat((weights * credit)[:, order], starts, axis=1)
    before = np.cumsum(n_quizzes, axis=1) - n_quizzes
    left_out = np.clip(n_none[:, None] - before, 0, n_quizzes)
    return (n_right * (1 - left_out / np.maximum(n_quizzes, 1))).sum(axis=1)


def _p_above(values: np.ndarray, bound: float) -> float:
    values = values[~np.isnan(values)]
    return float((1 + (values <= bound + 1e-9).sum()) / (1 + values.size))


def corrected_interval(
    differences: np.ndarray, n_as_well: int, n_worse: int
) -> tuple[float, float]:
    """Interval that excludes a value exactly where Holm's corrected test of a row does, points.

    Holm's correction rejects the rows whose p value is at most ``ALPHA`` divided by the number of
    rows that it does not reject: ``n_as_well`` in the test of the lower end, ``n_worse`` in that of
    the upper one. So each end is the resample at that level, or -100 or 100 if there are too few.
    """
    values = np.sort(differences)
    n_below, n_above = (
        int(ALPHA / max(1, n) * (1 + values.size) + 1e-9) for n in (n_as_well, n_worse)
    )
    low = float(values[n_below - 1]) if n_below else -100.0
    return low, float(values[-n_above]) if n_above else 100.0


def word_of(row: Any) -> str:
    """The verdict of one count: is the model ahead of the rule?

    That it is less than five points ahead needs the adjusted p value of a test of its own.
    """
    ends = -row.ci_high_pct, -row.ci_low_pct
    word = RULES_CLAIM.verdict(*ends, p_adjusted=min(1.0, 2 * row.p_worse))
    if row.p_as_well <= ALPHA:
        return word
    return {SMALL: SHOWN, RULED_OUT: OPEN}.get(word, word)


def verdict_of(words: pd.Series) -> str:
    """What every count says, else open; shown where both counts show it and one of them little."""
    if set(words) == {*FOUND}:
        return SHOWN
    return words.iloc[0] if len(set(words)) == 1 else OPEN


def beyond_rules(
    choices: pd.DataFrame, instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """``dcq_beyond_rules.csv``: is a model right where a rule fails?

    On the quizzes that a rule gets wrong chance is not known, so the model is held
    against every other rule on the same quizzes, at its least preferred positions. E
    counts as wrong, which is hard on the model. Arguments as of ``compare_rules``; among the
    choices may be models without memory.

    Returns:
        n_rule_wrong is a mean over positions; a tie of the rule counts by its chance.
        strongest_other is right most often where the rule is wrong; difference_pct is the
        model minus it, points; p_more (than every other rule) is one-sided, adjusted by Holm
        over all rows. verdict: whether the model is right more often than every other rule
        there, and note: why this was not asked.
    """
    rows, choices = [], choices.assign(credit=credits_of(choices))
    for _, of_pair in instances.groupby(["model", "dataset"], sort=False):
        answers = answers_of(of_pair)
        weights = answers.weights(n_resamples, seed)
        of_dataset = choices[choices["dataset"] == answers.dataset]
        credit = {
            name: answers.of_rule(of_rule, "credit")
            for name, of_rule in of_dataset.groupby("control", sort=False)
        }
        rows += [_where_wrong(weights, answers, credit, name) for name in credit]
    table = pd.DataFrame(rows)
    table["p_more"] = holm(table["p_more"].to_numpy())
    table["verdict"] = [
        BEYOND_CLAIM.verdict(row.ci_low_pct, row.ci_high_pct, p_adjusted=min(1.0, 2 * row.p_more))
        if row.n_rule_wrong >= FEWEST_QUIZZES
        else NOT_RUN
        for row in table.itertuples()
    ]
    note = f"fewer than {FEWEST_QUIZZES} quizzes that the rule gets wrong"
    return table.assign(note=np.where(table["verdict"].eq(NOT_RUN), note, ""))


def _where_wrong(
    weights: np.ndarray, answers: Answers, credit: dict[str, np.ndarray], control: str
) -> dict:
    """The model against every other rule on the quizzes that one rule gets wrong."""
    wrong = 1 - credit[control]
    n_wrong = weights @ wrong.sum(axis=0)
    others = [name for name in credit if name != control]
    row: dict[str, Any] = {"model": answers.model, "dataset": answers.dataset, "control": control}
    row |= {"n": answers.n, "n_rule_wrong": wrong.sum(axis=1).mean()}
    row |= {"right_where_rule_wrong_pct": share_pct(answers.is_right, wrong)}
    if not others or not n_wrong[0]:
        return row | {"strongest_other": "", "p_more": 1.0}
    gaps = {}
    for other in others:
        gap = weights @ ((answers.is_right - credit[other]) * wrong).sum(axis=0)
        with np.errstate(invalid="ignore"):
            gaps[other] = 100 * gap / n_wrong
    shares = {other: share_pct(credit[other], wrong) for other in others}
    strongest = max(shares, key=shares.__getitem__)
    low, high = percentile_interval(gaps[strongest][1:])
    return row | {
        "strongest_other": strongest,
        "other_where_rule_wrong_pct": shares[strongest],
        "difference_pct": gaps[strongest][0],
        "ci_low_pct": low,
        "ci_high_pct": high,
        "p_more": max(_p_above(gap[1:], 0) for gap in gaps.values()),
    }


def compare_with_released_answers(
    choices: pd.DataFrame, instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """``pretrained_beside.csv``: every taker next to a model's released answers.

    Both on the instances that the taker took. Shares are means over the model's least preferred
    positions, found on all its instances; E counts as wrong. The interval of difference_pct (taker
    minus model, points) is a paired bootstrap over instances; model_where_wrong_pct is the model's
    share on the quizzes that the taker gets wrong (n_control_wrong, mean over positions).
    """
    rows, choices = [], choices.assign(credit=credits_of(choices))
    for _, of_pair in instances.groupby(["model", "dataset"], sort=False):
        answers = answers_of(of_pair)
        of_dataset = choices[choices["dataset"] == answers.dataset]
        for control, of_control in of_dataset.groupby("control", sort=False):
            credit = by_position(of_control, "credit", answers.positions)
            taken = np.isin(answers.index, of_control["index"].unique())
            right = answers.is_right[:, taken]
            gain = 100 * (credit - right).mean(axis=0)
            weights = np.vstack(list(resample_counts(len(gain), n_resamples, seed)))
            low, high = percentile_interval(weights @ gain / len(gain))
            row = {"model": answers.model, "dataset": answers.dataset, "control": control}
            row |= {"n": len(gain), "model_pct": 100 * right.mean()}
            row |= {"control_pct": 100 * credit.mean(), "difference_pct": gain.mean()}
            row |= {"ci_low_pct": low, "ci_high_pct": high}
            row["n_control_wrong"] = (1 - credit).sum(axis=1).mean()
            rows.append(row | {"model_where_wrong_pct": share_pct(right, 1 - credit)})
    return pd.DataFrame(rows)


def compare_with_clean_model(
    choices: pd.DataFrame,
    taker: str,
    clean: str,
    unread: Collection[str] = (),
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """``pretrained_readings.csv``: a taker next to one that has read none of the quizzes.

    Both are controls of ``choices`` and take the same quizzes. A share is the mean over instances
    and positions of the original, in percent, 25 by chance. Datasets of ``unread`` nobody can
    have read, so they show what the taker's taste alone can do.

    Returns:
        Shares and their difference (taker minus clean, points) with 95 % intervals, by a paired
        bootstrap over instances; holds, of unread datasets: the taker is not ahead there; verdict,
        of all others: it is ahead by more than on any unread dataset; p of no difference and
        p_adjusted (Holm over datasets with a verdict).
    """
    rows, choices = [], choices.assign(credit=100 * credits_of(choices))
    for dataset, of_dataset in choices.groupby("dataset", sort=False):
        credit = of_dataset.groupby(["control", "index"], sort=False)["credit"].mean().unstack()
        values = {"taker": credit.loc[taker].to_numpy(), "clean": credit.loc[clean].to_numpy()}
        values["difference"] = values["taker"] - values["clean"]
        n = credit.shape[1]
        weights = np.vstack(list(resample_counts(n, n_resamples, seed))) / n
        row = {"dataset": dataset, "n": n}
        for name, value in values.items():
            low, high = percentile_interval(weights @ value)
            ends = "ci" if name == "difference" else name
            row |= {f"{name}_pct": value.mean(), f"{ends}_low_pct": low, f"{ends}_high_pct": high}
        rows.append(row | {"is_unread": dataset in unread})
    table = pd.DataFrame(rows)
    claim, ends = CLAIMS["pretrained_readings"], ["ci_low_pct", "ci_high_pct"]
    by_taste = table.loc[table["is_unread"], ends].to_numpy().tolist()
    table["holds"] = (table["ci_low_pct"] <= claim.null).astype(object).where(table["is_unread"])
    table["verdict"] = [
        ""
        if row.is_unread
        else claim.verdict(
            row.ci_low_pct, row.ci_high_pct, control=strongest(by_taste, row.ci_low_pct)
        )
        for row in table.itertuples()
    ]
    ends = table["difference_pct"], table["ci_low_pct"], table["ci_high_pct"]
    p_values = pd.Series([end_p(*of_row) for of_row in zip(*ends, strict=True)], table.index)
    return correct_family(table.assign(p=p_values.mask(table["is_unread"])))
