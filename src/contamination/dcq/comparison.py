"""Is a rule without memory as good as a model on the same quizzes?

For each instance the rule's answer minus the model's, averaged over the
model's least preferred positions, which its modified quiz fixes. A rule must
choose and a model may answer E, so E is counted in three ways. Where the
original's place is fixed in the released files, one released quiz stands for
every position; the model's quiz at another position holds one other
perturbation.

Intervals and p values come from one bootstrap over instances, the same
resamples for every rule and model of a dataset. The p values are one-sided and
adjusted by Holm over all rows of a count; a verdict needs one of at most 2.5 %,
in either direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from contamination.core.statistics import holm, percentile_interval
from contamination.core.verdicts import CLAIMS, FOUND, NOT_RUN, OPEN, RULED_OUT, SHOWN, SMALL
from contamination.dcq.assessment import (
    POSITIONS,
    assess,
    levels_of_counts,
    resample_counts,
    standard_answers_of,
    usable_positions,
)
from contamination.dcq.controls import by_position, credits_of

WRONG, COVERAGE, QUARTER = "E wrong", "equal coverage", "E a quarter"
MAXIMUM = "maximum, E wrong"
COUNTS = (WRONG, COVERAGE, QUARTER, MAXIMUM)
CLAIMED_BY = (COVERAGE, QUARTER)  # a claim needs both
RULES_CLAIM, BEYOND_CLAIM = CLAIMS["dcq_rules"], CLAIMS["dcq_beyond_rules"]
ALPHA = 0.025  # one-sided
FEWEST_QUIZZES = 10  # quizzes a rule gets wrong, below which nothing is said of them


@dataclass(frozen=True)
class Answers:
    """What one model answered on one partition, n instances in the order of ``index``.

    ``positions`` are the least preferred, or all of A to D where there is none;
    ``is_right`` and ``is_none`` (E) hold for these, shape (n_positions, n). ``bias`` says
    which of A to D the modified quiz took, ``right`` where the original at A to D was
    found (0 where not asked), shape (n, 4).
    """

    model: str
    dataset: str
    index: np.ndarray
    positions: tuple[str, ...]
    is_right: np.ndarray
    is_none: np.ndarray
    bias: np.ndarray
    right: np.ndarray

    @property
    def n(self) -> int:
        """The number of instances."""
        return len(self.index)

    @property
    def was_quizzed(self) -> np.ndarray:
        """For each of A to D whether the original stood there in a quiz, booleans of shape (4,)."""
        return np.array([position in self.positions for position in POSITIONS])

    def weights(self, n_resamples: int, seed: int) -> np.ndarray:
        """How often each instance counts: once in the data itself, then in each resample."""
        return np.vstack([np.ones(self.n), *resample_counts(self.n, n_resamples, seed)])


def answers_of(instances: pd.DataFrame) -> Answers:
    """Answers of one model on one partition, from rows of ``published.released_instances``."""
    modified, standard = instances["modified_answer"], standard_answers_of(instances)
    positions = assess(modified.tolist(), standard).least_preferred or POSITIONS
    at = {position: np.array(standard[position]) for position in positions}
    none = np.zeros(len(instances))
    return Answers(
        model=instances["model"].iloc[0],
        dataset=instances["dataset"].iloc[0],
        index=instances["index"].to_numpy(),
        positions=positions,
        is_right=np.array([at[p] == p for p in positions], float),
        is_none=np.array([at[p] == "E" for p in positions], float),
        bias=np.array([modified == p for p in POSITIONS], float).T,
        right=np.array([at[p] == p if p in at else none for p in POSITIONS], float).T,
    )


def compare_rules(
    choices: pd.DataFrame, instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """``dcq_rules.csv``: every rule against every model, E counted in each way.

    With fewer resamples than about 40 x the number of comparisons no adjusted p value
    can be small enough, and every verdict is open. The corrected interval is then
    unbounded.

    Args:
        choices: of ``controls.rule_choices``.
        instances: ``published.released_instances("DCQ")``.

    Returns:
        Among others chosen_on_others (this rule has most right answers on the other
        datasets, no model asked), counted (how E counts; "maximum, E wrong" is the
        paper's maximum for both, whose bootstrap selects positions and best quiz
        anew), difference_pct (rule minus model, points), adjusted p values (p_as_well: of a
        rule at most five points below the model), word: the verdict of this count, and
        verdict: what equal coverage and E at a quarter both say, else open. From
        corrected_low_pct to corrected_high_pct is the interval of :func:`corrected_interval`.
    """
    chosen, rows, resampled = rule_chosen_on_others(choices), [], []
    choices = choices.assign(credit=credits_of(choices))
    for _, of_pair in instances.groupby(["model", "dataset"], sort=False):
        answers = answers_of(of_pair)
        weights = answers.weights(n_resamples, seed)
        of_dataset = choices[choices["dataset"] == answers.dataset]
        for control, of_rule in of_dataset.groupby("control", sort=False):
            credit, margin = (_of_rule(answers, of_rule, name) for name in ("credit", "margin"))
            row = {"model": answers.model, "dataset": answers.dataset, "control": control}
            row["chosen_on_others"] = chosen[answers.dataset] == control
            for counted in COUNTS:
                levels = 100 * _levels(weights, answers, credit, margin, counted)
                row |= {"counted": counted, "n": answers.n, "n_positions": len(answers.positions)}
                rows.append(row | _difference(*levels))
                resampled.append((levels[0] - levels[1])[1:])
    table = _with_corrected_intervals(pd.DataFrame(rows), resampled)
    table["word"] = [word_of(row) for row in table.itertuples()]
    keys = ["model", "dataset", "control"]
    claims = table[table["counted"].isin(CLAIMED_BY)].groupby(keys)["word"].agg(verdict_of)
    return table.merge(claims.rename("verdict").reset_index(), on=keys, how="left")


def rule_chosen_on_others(choices: pd.DataFrame) -> dict[str, str]:
    """For each dataset the rule with the highest mean share on the others, "" without others."""
    shares = credits_of(choices).groupby([choices["dataset"], choices["control"]], sort=False)
    shares = shares.mean().unstack(sort=False)
    if len(shares) == 1:
        return {shares.index[0]: ""}
    return {dataset: shares.drop(index=dataset).mean().idxmax() for dataset in shares.index}


def _of_rule(answers: Answers, of_rule: pd.DataFrame, column: str) -> np.ndarray:
    if not np.array_equal(of_rule["index"].unique(), answers.index):
        raise ValueError(
            f"a rule has no choice for some instances of {answers.dataset}: make it choose again"
        )
    return by_position(of_rule, column, answers.positions)


def _levels(
    weights: np.ndarray, answers: Answers, credit: np.ndarray, margin: np.ndarray, counted: str
) -> np.ndarray:
    """Shares of rule and model in each sample, shape (2, n_samples), 0 to 1."""
    if counted == MAXIMUM:
        return _maxima(weights, answers, credit)
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


def _maxima(weights: np.ndarray, answers: Answers, credit: np.ndarray) -> np.ndarray:
    bias, right = weights @ answers.bias, weights @ answers.right
    model = levels_of_counts(bias, right, answers.n, answers.was_quizzed).maximum
    usable = usable_positions(bias, answers.n, answers.was_quizzed)
    rule = np.full(usable.shape, -np.inf)
    rule[:, answers.was_quizzed] = weights @ credit.T / answers.n
    rule = np.where(usable, rule, -np.inf).max(axis=1)
    return np.array([np.where(np.isfinite(rule), rule, np.nan), model])


def _difference(rule: np.ndarray, model: np.ndarray) -> dict[str, float]:
    """Point values, interval and one-sided p values; the first sample is the data itself."""
    differences = (rule - model)[1:]
    low, high = percentile_interval(differences)
    return {
        "rule_pct": rule[0],
        "model_pct": model[0],
        "difference_pct": rule[0] - model[0],
        "ci_low_pct": low,
        "ci_high_pct": high,
        "p_better": _p_above(differences, 0),
        "p_as_well": _p_above(differences, -RULES_CLAIM.smallest_effect),
        "p_worse": _p_above(-differences, 0),
    }


def _p_above(values: np.ndarray, bound: float) -> float:
    values = values[~np.isnan(values)]
    return float((1 + (values <= bound + 1e-9).sum()) / (1 + values.size))


def _with_corrected_intervals(table: pd.DataFrame, resampled: Sequence[np.ndarray]) -> pd.DataFrame:
    """The table with adjusted p values, and with the intervals that lead to the same words."""
    p_values = ["p_better", "p_as_well", "p_worse"]
    table[p_values] = table.groupby("counted")[p_values].transform(holm)
    is_left = table[p_values].gt(ALPHA)
    n_left = is_left.groupby(table["counted"]).transform("sum")
    n_left = zip(resampled, n_left["p_as_well"], n_left["p_worse"], strict=True)
    ends = [corrected_interval(*one) for one in n_left]
    table[["corrected_low_pct", "corrected_high_pct"]] = ends
    return table


def corrected_interval(
    differences: np.ndarray, n_as_well: int, n_worse: int
) -> tuple[float, float]:
    """Interval that excludes a value exactly where Holm's corrected test of a row does.

    Holm's correction rejects the rows whose p value is at most ``ALPHA`` divided by the number of
    rows that it does not reject. So each end is the resample at that level.

    Args:
        differences: of each resample, points; undefined ones are left out.
        n_as_well, n_worse: rows that the two tests, of the lower and the upper end, do not reject.

    Returns:
        The ends, -100 or 100 points where there are too few resamples for an end.
    """
    values = np.sort(differences[~np.isnan(differences)])
    n_below, n_above = (
        int(ALPHA / max(1, n) * (1 + values.size) + 1e-9) for n in (n_as_well, n_worse)
    )
    low = float(values[n_below - 1]) if n_below else -100.0
    return low, float(values[-n_above]) if n_above else 100.0


def word_of(row: Any) -> str:
    """The verdict of one count: is the model ahead of the rule?

    The interval is the rule's share minus the model's. That the model is less than five points
    ahead needs the adjusted p value of a test of its own.
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


def mean_levels(rules: pd.DataFrame) -> pd.DataFrame:
    """Shares of rule and model, means over datasets, in the two ways that a claim needs.

    ``rules`` are rows of ``dcq_rules`` of one rule and one model. Returns rule_pct and model_pct
    by counted: the rule leaves out as many quizzes as the model, or E is a quarter.
    """
    rows = rules[rules["counted"].isin(CLAIMED_BY)]
    return rows.groupby("counted", sort=False)[["rule_pct", "model_pct"]].mean()


def beyond_rules(
    choices: pd.DataFrame, instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """``dcq_beyond_rules.csv``: is a model right where a rule is right, and where it fails?

    All shares are over the model's least preferred positions. On the quizzes that
    a rule gets wrong chance is not known, so the model is held against every
    other rule on the same quizzes. E counts as wrong, which is hard on the model.

    Args:
        choices: of ``controls.rule_choices``; may also hold models without memory.
        instances: ``published.released_instances("DCQ")``.

    Returns:
        Numbers n_... are means over quizzes; a tie of the rule counts in both by its
        chance. strongest_other is right most often where the rule is wrong;
        difference_pct is the model minus it, points; p_more (than every other rule)
        and p_less (than one of them) are one-sided, adjusted by Holm over all rows.
        verdict: whether the model is right more often than every other rule there, and note:
        why this was not asked.
    """
    rows, choices = [], choices.assign(credit=credits_of(choices))
    for _, of_pair in instances.groupby(["model", "dataset"], sort=False):
        answers = answers_of(of_pair)
        weights = answers.weights(n_resamples, seed)
        of_dataset = choices[choices["dataset"] == answers.dataset]
        credit = {
            name: _of_rule(answers, of_rule, "credit")
            for name, of_rule in of_dataset.groupby("control", sort=False)
        }
        rows += [
            _where_right(answers, credit[name], name) | _where_wrong(weights, answers, credit, name)
            for name in credit
        ]
    table = pd.DataFrame(rows)
    p_values = ["p_more", "p_less"]
    table[p_values] = table[p_values].apply(holm)
    table["verdict"] = [_beyond(row) for row in table.itertuples()]
    note = f"fewer than {FEWEST_QUIZZES} quizzes that the rule gets wrong"
    return table.assign(note=np.where(table["verdict"].eq(NOT_RUN), note, ""))


def _where_right(answers: Answers, credit: np.ndarray, control: str) -> dict:
    return {
        "model": answers.model,
        "dataset": answers.dataset,
        "control": control,
        "n": answers.n,
        "n_answered_none": answers.is_none.sum(axis=1).mean(),
        "max_pct": 100 * answers.is_right.mean(axis=1).max(),
        "right_when_chosen_pct": share_pct(answers.is_right, 1 - answers.is_none),
        "n_rule_right": credit.sum(axis=1).mean(),
        "right_where_rule_right_pct": share_pct(answers.is_right, credit),
        "n_rule_wrong": (1 - credit).sum(axis=1).mean(),
        "right_where_rule_wrong_pct": share_pct(answers.is_right, 1 - credit),
    }


def _where_wrong(
    weights: np.ndarray, answers: Answers, credit: dict[str, np.ndarray], control: str
) -> dict:
    """The model against every other rule on the quizzes that one rule gets wrong."""
    wrong = 1 - credit[control]
    n_wrong = weights @ wrong.sum(axis=0)
    others = [name for name in credit if name != control]
    if not others or not n_wrong[0]:
        return {"strongest_other": "", "p_more": 1.0, "p_less": 1.0}
    gaps = {}
    for other in others:
        gap = weights @ ((answers.is_right - credit[other]) * wrong).sum(axis=0)
        with np.errstate(invalid="ignore"):
            gaps[other] = 100 * gap / n_wrong
    shares = {other: share_pct(credit[other], wrong) for other in others}
    strongest = max(shares, key=shares.__getitem__)
    low, high = percentile_interval(gaps[strongest][1:])
    p_less = min(_p_above(-gap[1:], 0) for gap in gaps.values())
    return {
        "strongest_other": strongest,
        "other_where_rule_wrong_pct": shares[strongest],
        "difference_pct": gaps[strongest][0],
        "ci_low_pct": low,
        "ci_high_pct": high,
        "p_more": max(_p_above(gap[1:], 0) for gap in gaps.values()),
        "p_less": min(1.0, len(others) * p_less),
    }


def _beyond(row: Any) -> str:
    if row.n_rule_wrong < FEWEST_QUIZZES:
        return NOT_RUN
    two_sided = min(1.0, 2 * row.p_more)
    return BEYOND_CLAIM.verdict(row.ci_low_pct, row.ci_high_pct, p_adjusted=two_sided)


def share_pct(is_right: np.ndarray, weights: np.ndarray) -> float:
    """Weighted share of right answers in percent, NaN without weights; arrays of one shape."""
    total = weights.sum()
    return 100 * float((is_right * weights).sum() / total) if total else float("nan")
