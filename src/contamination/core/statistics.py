"""Statistics that every method shares: AUC, bootstrap, exact tests, agreement, families."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from scipy.sparse import csr_matrix

from contamination.core.verdicts import ALPHA, CONTROL_FAILS, FOUND, OPEN, RULED_OUT, SMALL

CONFIDENCE = 0.95  # of every interval
CHANCE = 0.5  # AUC of a score that tells nothing
_VALUES_PER_CHUNK = 2_000_000  # bounds the memory of a bootstrap at any sample size


def _two_groups(scores: np.ndarray, is_member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scores = np.asarray(scores, dtype=float)
    is_member = np.asarray(is_member, dtype=bool)
    if scores.shape != is_member.shape or scores.ndim != 1:
        raise ValueError(f"scores {scores.shape} and labels {is_member.shape} must be one per item")
    if np.isnan(scores).any():
        raise ValueError(f"{int(np.isnan(scores).sum())} of {scores.size} scores are undefined")
    if is_member.all() or not is_member.any():
        raise ValueError(
            f"an AUC needs members and non-members, got {int(is_member.sum())} members "
            f"among {is_member.size} items"
        )
    return scores, is_member


def auc(scores: np.ndarray, is_member: np.ndarray) -> float:
    """Chance that a member scores above a non-member, 0 to 1; ties count one half, 0.5 is chance.

    Both arrays have shape (n_items,). ValueError if their shapes differ, a score is undefined,
    or one kind does not occur.

    >>> auc([3, 2, 1, 0], [True, False, True, False])
    0.75
    """
    scores, is_member = _two_groups(scores, is_member)
    ranks = stats.rankdata(scores)
    n_members = int(is_member.sum())
    n_others = is_member.size - n_members
    wins = ranks[is_member].sum() - n_members * (n_members + 1) / 2
    return float(wins / (n_members * n_others))


def tpr_at_fpr(scores: np.ndarray, is_member: np.ndarray, fpr: float = 0.05) -> float:
    """Largest true positive rate among thresholds whose false positive rate is at most ``fpr``.

    The convention is "at most": with 20 non-members one false alarm is allowed at 5 %.
    Both arrays have shape (n_items,). ValueError as in :func:`auc`.
    """
    scores, is_member = _two_groups(scores, is_member)
    others = np.sort(scores[~is_member])[::-1]
    # The tolerance keeps 0.05 * 20 at one false alarm in binary arithmetic.
    n_allowed = int(np.floor(fpr * others.size + 1e-9))
    if n_allowed >= others.size:
        return 1.0
    return float((scores[is_member] > others[n_allowed]).mean())


def bootstrap_aucs(
    score_sets: Sequence[np.ndarray], is_member: np.ndarray, n_resamples: int, seed: int
) -> np.ndarray:
    """AUCs, shape (n_scores, n_resamples), of several scores of the same items.

    Members and non-members are resampled apart, and all scores see the same
    resampled items, so that differences between rows are paired. ``is_member`` and each
    of ``score_sets`` have shape (n_items,).
    """
    checked = [_two_groups(scores, is_member) for scores in score_sets]
    is_member = checked[0][1]
    levels = [np.unique(scores, return_inverse=True)[1].astype(np.int32) for scores, _ in checked]
    groups = (np.flatnonzero(is_member), np.flatnonzero(~is_member))
    aucs = np.empty((len(levels), n_resamples))
    for rows, (members, others) in _resampled_items(groups, n_resamples, seed):
        for aucs_of_score, level in zip(aucs, levels, strict=True):
            aucs_of_score[rows] = _aucs_of_levels(level[members], level[others], level.max() + 1)
    return aucs


def _resampled_items(
    groups: Sequence[np.ndarray], n_resamples: int, seed: int
) -> Iterator[tuple[slice, list[np.ndarray]]]:
    rng = np.random.default_rng(seed)
    n_rows = max(1, _VALUES_PER_CHUNK // sum(group.size for group in groups))
    for start in range(0, n_resamples, n_rows):
        rows = slice(start, min(start + n_rows, n_resamples))
        shape = rows.stop - rows.start
        yield (
            rows,
            [
                group[rng.integers(0, group.size, (shape, group.size), dtype=np.int32)]
                for group in groups
            ],
        )


def _aucs_of_levels(members: np.ndarray, others: np.ndarray, n_levels: int) -> np.ndarray:
    def counts(levels: np.ndarray) -> np.ndarray:
        offsets = np.arange(len(levels), dtype=np.int32)[:, None] * np.int32(n_levels)
        flat = np.bincount((levels + offsets).ravel(), minlength=len(levels) * n_levels)
        return flat.reshape(len(levels), n_levels)

    other_counts = counts(others)
    n_below = np.cumsum(other_counts, axis=1) - 0.5 * other_counts
    wins = np.einsum("ij,ij->i", counts(members), n_below)
    return wins / (members.shape[1] * others.shape[1])


def auc_within(sets: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """AUC over the pairs of a member and a non-member that lie in one set.

    ``sets`` are scores and membership, each of shape (n_items,). A set counts by its pairs, so
    one that holds one kind alone counts for nothing; without any pair the AUC is undefined.

    >>> auc_within([([2, 1], [True, False]), ([1, 2, 3], [True, False, True]), ([5], [True])])
    0.6666666666666666
    """
    known = [(scores, kind) for scores, kind in sets if 0 < np.sum(kind) < len(kind)]
    if not known:
        return float("nan")
    n_pairs = [np.sum(kind) * (len(kind) - np.sum(kind)) for _, kind in known]
    return float(np.average([auc(*one) for one in known], weights=n_pairs))


def bootstrap_auc_within(
    sets: Sequence[tuple[np.ndarray, np.ndarray]],
    n_resamples: int,
    seed: int,
    units: Sequence[np.ndarray] | None = None,
) -> np.ndarray:
    """``auc_within`` of resampled items, shape (n_resamples,); undefined where no pair is drawn.

    A Poisson bootstrap: each item comes as often as a Poisson draw of mean 1 says, whatever
    its set. Resampling within sets would give a set of one member no spread at all. ``units``,
    numbers from 0 with the shapes of the sets, are what is drawn in place of items, such as the
    book of a passage.
    """
    rng = np.random.default_rng(seed)
    n_units = 0 if units is None else 1 + max(unit.max() for unit in units)
    of_unit = rng.poisson(1, (n_resamples, n_units))
    wins, pairs = np.zeros(n_resamples), np.zeros(n_resamples)
    for number, (scores, is_member) in enumerate(sets):
        levels, level = np.unique(np.asarray(scores, float), return_inverse=True)
        is_member = np.asarray(is_member, dtype=bool)
        n_rows = max(1, _VALUES_PER_CHUNK // len(level))
        for start in range(0, n_resamples, n_rows):
            rows = slice(start, min(start + n_rows, n_resamples))
            if units is None:
                drawn = rng.poisson(1, (rows.stop - rows.start, len(level))).astype(float)
            else:
                drawn = of_unit[rows][:, units[number]].astype(float)
            members, others = (
                _at_levels(drawn[:, kind], level[kind], levels.size)
                for kind in (is_member, ~is_member)
            )
            wins[rows] += (members * (np.cumsum(others, axis=1) - others / 2)).sum(axis=1)
            pairs[rows] += members.sum(axis=1) * others.sum(axis=1)
    return np.divide(wins, pairs, out=np.full(n_resamples, np.nan), where=pairs > 0)


def _at_levels(counts: np.ndarray, level: np.ndarray, n_levels: int) -> np.ndarray:
    """Counts of the items (columns) added up by level, shape (n_rows, n_levels)."""
    added = csr_matrix(
        (np.ones(level.size), (np.arange(level.size), level)), (level.size, n_levels)
    )
    return counts @ added


def percentile_interval(values: np.ndarray) -> tuple[float, float]:
    """Central 95 % interval of bootstrap values, shape (n_resamples,).

    Undefined values are left out, and where none is left the interval is undefined.
    """
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    if values.size == 0:
        return (float("nan"), float("nan"))
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def auc_interval(
    scores: np.ndarray, is_member: np.ndarray, n_resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Stratified bootstrap interval of an AUC, 95 %; arguments and errors as in :func:`auc`."""
    return percentile_interval(bootstrap_aucs([scores], is_member, n_resamples, seed)[0])


def bootstrap_p(
    value: float, resampled: np.ndarray, null: float = 0.0, smallest: float = 0.0
) -> float:
    """Two-sided p that ``value`` is ``null``, by a normal with the bootstrap's standard error.

    Unlike a count of resamples it does not stop at one in their number, so that it can be
    corrected for many tests. ``smallest`` is the least that so few items allow. ``resampled`` has
    shape (n_resamples,); p is undefined where ``value`` or the error is.

    >>> round(bootstrap_p(1.96, np.random.default_rng(0).normal(1.96, 1, 100_000)), 3)
    0.05
    """
    error = np.nanstd(resampled)
    if np.isnan(value) or np.isnan(error):
        return float("nan")
    if error == 0:
        return 1.0 if value == null else smallest
    return float(max(smallest, 2 * stats.norm.sf(abs(value - null) / error)))


def interval_p(value: float, low: float, high: float, null: float = 0.0) -> float:
    """Two-sided p that ``value`` is ``null``, by a normal with the width of its 95 % interval.

    >>> round(interval_p(0.6, 0.5, 0.7, 0.5), 3)
    0.05
    """
    error = (high - low) / (2 * stats.norm.ppf((1 + CONFIDENCE) / 2))
    if not error:
        return 1.0 if value == null else 0.0
    return float(2 * stats.norm.sf(abs(value - null) / error))


def end_p(value: float, low: float, high: float, null: float = 0.0, df: float = math.inf) -> float:
    """Two-sided p that ``value`` is ``null``, by the end of its 95 % interval that faces ``null``.

    It is 0.05 where that end is ``null``, for lopsided intervals too. ``df`` are the degrees of
    freedom of Student's t, for intervals over few models. Undefined where one of the numbers is.

    >>> round(end_p(0.6, 0.5, 0.62, 0.5), 3), round(end_p(0.7, 0.6, 0.72, 0.5, df=4), 3)
    (0.05, 0.005)
    """
    reach = value - low if value >= null else high - value
    if math.isnan(reach):
        return float("nan")
    if reach <= 0:  # a percentile interval may leave its value out
        reach = (high - low) / 2
    if not reach:
        return 1.0 if value == null else 0.0
    t = stats.t.ppf((1 + CONFIDENCE) / 2, df) * abs(value - null) / reach
    return float(2 * stats.t.sf(t, df))


def smallest_split_p(n_members: int, n_others: int) -> float:
    """The smallest two-sided p of a test that deals so many items to two groups anew.

    >>> smallest_split_p(3, 3)
    0.1
    """
    n = n_members + n_others
    return min(1.0, 2 / math.comb(n, n_members)) if n <= 100 else 0.0


def over_drawn_models(resampled: np.ndarray, seed: int) -> np.ndarray:
    """Mean over models drawn anew for each resample: (n_models, n_resamples) to (n_resamples,)."""
    drawn = np.random.default_rng([seed, 10]).integers(len(resampled), size=resampled.shape)
    return np.take_along_axis(resampled, drawn, axis=0).mean(axis=0)


def share_interval(n_found: int, n: int) -> tuple[float, float]:
    """95 % Wilson interval of a share; undefined for an empty denominator."""
    if n == 0:
        return (float("nan"), float("nan"))
    interval = stats.binomtest(int(n_found), int(n)).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def share_difference_interval(
    n_found: float, n: float, n_other_found: float, n_other: float
) -> tuple[float, float]:
    """95 % interval of one share minus another, of two samples: Newcombe's, from Wilson's.

    Numbers may be means over several quizzes; they are rounded. Undefined for an
    empty denominator. It keeps its level at ten items and at shares of 0 and 1.

    >>> [round(end, 3) for end in share_difference_interval(56, 70, 48, 80)]
    [0.052, 0.334]
    """
    n, n_other = round(n), round(n_other)
    if not n or not n_other:
        return (float("nan"), float("nan"))
    found, other = min(n, round(n_found)), min(n_other, round(n_other_found))
    share, other_share = found / n, other / n_other
    (low, high), (other_low, other_high) = share_interval(found, n), share_interval(other, n_other)
    gap = share - other_share
    return (
        float(gap - np.hypot(share - low, other_high - other_share)),
        float(gap + np.hypot(high - share, other_share - other_low)),
    )


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's step-down adjustment of p values tested together, shape (n_tests,), in their order.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(p_values.size, 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps))
    return adjusted


def mcnemar_p(n_first: ArrayLike, n_second: ArrayLike) -> Any:
    """Exact two-sided p of McNemar's test, from the cases that only one of two decides so.

    McNemar, Psychometrika 12 (1947). If neither decides so more often, the smaller number is
    binomial with a share of one half: p is twice its lower tail, and at most 1. Numbers of cases
    or arrays of them; p has their common shape, and is 1 where there is no such case.

    >>> mcnemar_p(6, 0).item(), mcnemar_p(0, 0).item(), mcnemar_p([1, 7], [3, 2]).round(3).tolist()
    (0.03125, 1.0, [0.625, 0.18])
    """
    n_first, n_second = np.asarray(n_first), np.asarray(n_second)
    tail = stats.binom.cdf(np.minimum(n_first, n_second), n_first + n_second, 0.5)
    return np.minimum(1, 2 * tail)


def with_p_adjusted(*tables: pd.DataFrame) -> list[pd.DataFrame]:
    """The tables with ``p_adjusted``: Holm's correction over all their ``p`` together.

    The tests of a notebook are one family. A row without ``p`` is no test.
    """
    p_values = np.concatenate([table["p"].to_numpy(float) for table in tables])
    adjusted, is_test = np.full(p_values.size, np.nan), ~np.isnan(p_values)
    adjusted[is_test] = holm(p_values[is_test])
    parts = np.split(adjusted, np.cumsum([len(table) for table in tables])[:-1])
    return [table.assign(p_adjusted=part) for table, part in zip(tables, parts, strict=True)]


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Cohen's kappa of two raters; undefined when both use a single label throughout."""
    from sklearn.metrics import cohen_kappa_score

    if len({*first, *second}) == 1:
        return float("nan")
    return float(cohen_kappa_score(list(first), list(second)))


NEED_AN_EFFECT = (*FOUND, CONTROL_FAILS)  # verdicts on values that lie above their null


def correct_family(table: pd.DataFrame, needing: Collection[str] = NEED_AN_EFFECT) -> pd.DataFrame:
    """Rows with p and verdict: added is p_adjusted (Holm's), and the verdict is what it leaves.

    The rows are one family. If the corrected p of a row is above the level, its effect is not
    shown. The verdict is then open, or ruled out where the interval excludes an effect that
    matters. A row without p is no test and keeps its verdict. ``needing`` names the verdicts that
    rest on the test.

    >>> rows = pd.DataFrame({"p": [0.01, 0.2, 0.2], "verdict": ["shown", "shown", "ruled out"]})
    >>> correct_family(rows)["verdict"].tolist()
    ['shown', 'open', 'ruled out']
    """
    (table,) = with_p_adjusted(table)
    words = table["verdict"]
    is_lost = words.isin(needing) & table["p_adjusted"].gt(ALPHA)
    words = words.mask(is_lost & words.eq(SMALL), RULED_OUT).mask(is_lost & words.ne(SMALL), OPEN)
    return table.assign(verdict=words)
