"""Was some part of the suspected rows seen, how large a part at least, and which rows?

A score (higher means more likely seen) is held against that of comparison rows of the same draw.

1. From each score we take what the rows' length and word frequency let expect.
2. Rows are cut into strata by a *text index*, which tells the two files apart by the same
   features. Labels are re-dealt within strata alone.
3. Two statistics: how many comparison rows each suspected row beats (Mann-Whitney, strong where
   many rows were seen), and the sum over suspected rows of 1 / sqrt(conformal p), strong where a
   few were. Each is standardised by its mean and deviation under the re-deals. The larger of the
   two is the test statistic, and its p comes from the same re-deals.
4. The share seen: we leave out the highest suspected rows until the test no longer rejects. Their
   number is a lower 95 % bound, and it is above 0 exactly where the test rejects.
5. The list: Benjamini and Hochberg's procedure on conformal p-values (arXiv:2510.09717).

docs/audit.md has the simulations: how often the rule is wrong, and what it notices.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from contamination.core.overlap import words
from contamination.core.statistics import auc
from contamination.core.verdicts import ALPHA

N_REDEALS = 9_999
MOST_STRATA, ROWS_OF_A_STRATUM = 5, 10
FEWEST_COMPARISON = 20  # below, a verdict is at most open
MOST_APART = 0.85  # AUC of the text index; above, a verdict is at most open
N_SEARCHED, SHIFT_STEP = 999, 0.01  # re-deals of each step of a search, and its end
MANY_ROWS = 4_000  # from here on, so many are enough
_NEXT = 1e-9
_CELLS = 2_000_000  # re-deals times rows that are worked on at once
_DIGITS = 9  # of a standardised score: what differs by less is a tie


def text_features(texts: Sequence[str]) -> np.ndarray:
    """Log length in letters, and mean log frequency of the words in the other rows; (n_rows, 2).

    >>> text_features(["a b", "a c"]).round(2).tolist()
    [[1.39, 0.35], [1.39, 0.35]]
    """
    counted = [Counter(words(text)) for text in texts]
    everywhere: Counter[str] = Counter()
    for own in counted:
        everywhere.update(own)
    found = []
    for text, own in zip(texts, counted, strict=True):
        logs = [n * math.log1p(everywhere[word] - n) for word, n in own.items()]
        found.append((math.log1p(len(text)), sum(logs) / max(1, own.total())))
    return np.array(found)


def adjusted(scores: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Scores less what the features let expect, in standard deviations of the score; (n_rows,).

    Least squares over all rows, without the labels. Equal scores stay equal: all are then 0.
    """
    if np.ptp(scores) == 0:
        return np.zeros_like(scores)
    return np.round(_residuals(scores / scores.std(), features), _DIGITS)


def _residuals(values: np.ndarray, features: np.ndarray) -> np.ndarray:
    known = np.column_stack([np.ones(len(values)), features])
    return values - known @ np.linalg.lstsq(known, values, rcond=None)[0]


def text_index(is_suspected: np.ndarray, features: np.ndarray) -> np.ndarray:
    """How much each row resembles the suspected rows by its features, linearly; (n_rows,)."""
    labels = is_suspected.astype(float)
    return np.round(labels - _residuals(labels, features), _DIGITS)


def strata_of(index: np.ndarray) -> np.ndarray:
    """Fifths of the text index, fewer where rows are few; numbers from 0, (n_rows,).

    Rows of one index are in one stratum.

    >>> strata_of(np.arange(20.0)).tolist() == [0] * 10 + [1] * 10
    True
    """
    n_strata = max(1, min(MOST_STRATA, len(index) // ROWS_OF_A_STRATUM))
    middle = stats.rankdata(index) - 0.5  # rows that are alike share a rank, and so a stratum
    return (middle * n_strata / len(index)).astype(int)


def conformal_p(scores: np.ndarray, comparison: np.ndarray) -> np.ndarray:
    """p of each row: (1 + comparison rows that score at least as high) / (1 + their number).

    >>> conformal_p(np.array([5.0, 1.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [0.25, 1.0]
    """
    ordered = np.sort(comparison)
    n_as_high = len(ordered) - np.searchsorted(ordered, scores, side="left")
    return (1 + n_as_high) / (1 + len(ordered))


def both_statistics(scores: np.ndarray, deals: np.ndarray) -> np.ndarray:
    """Rank sum, and sum of 1 / sqrt(conformal p), of the suspected rows; (2, n_deals).

    ``deals`` says which rows are suspected, boolean of shape (n_deals, n_rows).
    """
    order = np.argsort(-scores, kind="stable")
    deals, ordered = deals[:, order], scores[order]
    last = np.searchsorted(-ordered, -ordered, side="right") - 1  # of the rows that are as high
    n_as_high = np.cumsum(~deals, axis=1, dtype=np.int32)[:, last]
    n_comparison = (~deals).sum(axis=1, keepdims=True)
    tail = np.sqrt((1 + n_comparison) / (1 + n_as_high))
    return np.array([deals @ stats.rankdata(ordered), np.where(deals, tail, 0).sum(axis=1)])


def redeal_p(
    scores: np.ndarray,
    is_suspected: np.ndarray,
    strata: np.ndarray,
    n_redeals: int = N_REDEALS,
    seed: int = 0,
) -> tuple[float, float]:
    """p of "no suspected row was seen", and that of the rank sum's other direction.

    The second one is small where the comparison rows score higher. A p is
    (1 + re-deals at least as extreme) / (1 + re-deals).
    """
    generator = np.random.default_rng([seed, len(scores)])
    in_order = np.argsort(strata, kind="stable")  # each stratum is one stretch of this order
    scores, dealt, strata = scores[in_order], is_suspected[in_order], strata[in_order]
    found = [both_statistics(scores, dealt[None])]
    size = max(1, _CELLS // len(scores))
    for start in range(0, n_redeals, size):
        n = min(size, n_redeals - start)
        order = np.argsort(generator.random((n, len(scores))) + strata, axis=1)
        found.append(both_statistics(scores, dealt[order]))
    values = np.concatenate(found, axis=1)
    spread = values.std(axis=1, keepdims=True)
    centred = values - values.mean(axis=1, keepdims=True)
    z = np.round(np.divide(centred, spread, out=np.zeros_like(values), where=spread > 0), _DIGITS)
    larger = z.max(axis=0)
    return float((larger >= larger[0]).mean()), float((z[0] <= z[0, 0]).mean())


def dealt_within(
    strata: np.ndarray, is_suspected: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """The labels dealt again at random, within strata; (n_rows,)."""
    dealt = np.empty_like(is_suspected)
    order = np.argsort(generator.random(len(strata)) + strata)
    dealt[order] = is_suspected[np.argsort(strata, kind="stable")]
    return dealt


def auc_interval(value: float, n_seen: int, n_other: int) -> tuple[float, float]:
    """95 % interval of an AUC, which has a width also where rows are tied or wholly separated.

    Newcombe, Statistics in Medicine 25 (2006) 559, method 5: the values from which the AUC is
    1.96 of their own Hanley-McNeil errors away.

    >>> [round(end, 2) for end in auc_interval(1.0, 30, 30)]
    [0.93, 1.0]
    """
    z, mean_n = stats.norm.ppf(0.975), (n_seen + n_other) / 2 - 1

    def distance(truth: float) -> float:
        tied = (1 - truth) / (2 - truth) + truth / (1 + truth)
        variance = truth * (1 - truth) * (1 + mean_n * tied) / (n_seen * n_other)
        return (value - truth) ** 2 - z**2 * variance

    # The AUC itself solves the equation where it is 0 or 1, and is not the end that is meant.
    low = 0.0 if value <= 0 else brentq(distance, 0.0, value - _NEXT)
    high = 1.0 if value >= 1 else brentq(distance, value + _NEXT, 1.0)
    return float(low), float(high)


class Comparison:
    """One score of suspected and comparison rows, tested.

    Attributes:
        n, n_comparison: numbers of rows.
        values: scores less what the features explain, (n_rows,).
        auc: AUC of suspected against comparison rows, of these values.
        text_auc: that of the text index: how far the features alone tell the two files apart.
        conformal: conformal p-value of each suspected row, in their order, (n,).
        p_values: as :func:`redeal_p`.
    """

    def __init__(
        self,
        scores: np.ndarray,
        is_suspected: np.ndarray,
        features: np.ndarray,
        seed: int = 0,
        n_redeals: int = N_REDEALS,
    ) -> None:
        """Scores are finite, (n_rows,), and higher means more likely seen; both kinds are there.

        ``features`` may explain a score without memory, (n_rows, n_features).
        """
        self.is_suspected, self.seed, self.n_redeals = is_suspected, seed, n_redeals
        self.n, self.n_comparison = int(is_suspected.sum()), int((~is_suspected).sum())
        self.values, index = adjusted(scores, features), text_index(is_suspected, features)
        self.auc, self.text_auc = auc(self.values, is_suspected), auc(index, is_suspected)
        self.conformal = conformal_p(self.values[is_suspected], self.values[~is_suspected])
        self._strata = strata_of(index)
        order = np.argsort(-self.values, kind="stable")
        self._highest = order[is_suspected[order]]  # places of the suspected rows, from the highest
        self.p_values = self._p_without(0)

    def _p_without(self, n_left_out: int) -> tuple[float, float]:
        kept = np.ones(len(self.values), bool)
        kept[self._highest[:n_left_out]] = False
        parts = self.values[kept], self.is_suspected[kept], self._strata[kept]
        return redeal_p(*parts, self.n_redeals, self.seed)

    def n_seen_at_least(self, level: float = ALPHA) -> int:
        """Lower bound, with confidence 1 - level, on the number of suspected rows that were seen.

        By bisection: the number of the highest rows without which the test does not reject. It is
        above 0 exactly where the p-value is at most ``level``.
        """
        if self.p_values[0] > level:
            return 0
        rejects, accepts = 0, self.n  # without any suspected row there is nothing to reject
        while accepts - rejects > 1:
            middle = (rejects + accepts) // 2
            if self._p_without(middle)[0] <= level:
                rejects = middle
            else:
                accepts = middle
        return accepts

    def overturned_by(self, level: float = ALPHA) -> float:
        """The smallest shift of the suspected rows' scores without which the test does not reject.

        In standard deviations of the score, to two decimals; 0 where the test does not reject. A
        difference between the files as large as this, from any other cause, explains the result.
        """
        low, high = 0.0, 2 * float(np.ptp(self.values))
        if self.p_values[0] > level:
            return low
        while high - low > SHIFT_STEP:
            middle = (low + high) / 2
            shifted = self.values - middle * self.is_suspected
            p, _ = redeal_p(shifted, self.is_suspected, self._strata, N_SEARCHED, self.seed)
            low, high = (middle, high) if p <= level else (low, middle)
        return round(high, 2)

    def listed(self, rate: float) -> np.ndarray:
        """Which suspected rows a list names with a false-discovery rate of ``rate``; (n,)."""
        return stats.false_discovery_control(self.conformal) <= rate


def shortest_list(n: int, n_comparison: int, rate: float) -> int:
    """The fewest names that a list can have; more than n where no list is possible.

    >>> shortest_list(90, 60, 0.1), shortest_list(30, 8, 0.1)
    (15, 34)
    """
    return math.ceil(round(n / (rate * (n_comparison + 1)), _DIGITS))
