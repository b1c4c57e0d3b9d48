"""Lists of rows that a model saw, with an error guarantee: how the guarantee is kept, as a table.

The section "Rows with an error guarantee" of ``docs/protocol_2.md``; the procedure for one list is
``row_lists``, and this module repeats it for every model and without each group of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.storage import hash_of
from contamination.core.verdicts import ALPHA, FEWEST_MODELS, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.study.assignment import HELD_OUT
from contamination.study.conditions import VERBATIM
from contamination.study.crossed import (
    N_ROW_GROUPS,
    CrossedScores,
    Estimate,
    LeftOut,
    interval_left_out,
    mean_left_out,
    row_group,
)
from contamination.study.pretraining_results import share_pct
from contamination.study.pretraining_scores import StudyScores, display_name, exposures
from contamination.study.row_pools import ROWS

QS = (0.10, 0.20)
N_TESTED_UNSEEN = 60  # held-out rows among the tested ones; all other held-out rows calibrate
TOLERANCE = 1e-12  # of p against its bound, both of which are fractions of small whole numbers


class Lists(NamedTuple):
    """One list for each model: shares, and how many rows are named, shape (n_models,)."""

    false_share: LeftOut
    found_share: LeftOut
    n_named: np.ndarray


def tested_unseen(base_seed: int, pool: CrossedScores, copies: np.ndarray, dose: int) -> np.ndarray:
    """The held-out rows of one model that are tested, drawn by a hash of what the list is of.

    All detectors get the same. ``copies`` of one model, shape (n_rows,); gives row numbers.
    """
    name = hash_of(["row list", int(base_seed), pool.name, dose])
    generator = np.random.default_rng(int(name[:15], 16))
    return generator.choice(np.flatnonzero(copies == HELD_OUT), N_TESTED_UNSEEN, replace=False)


def lists_of(
    pool: CrossedScores, dose: int, base_seeds: Sequence[int], qs: Sequence[float] = QS
) -> list[Lists]:
    """The lists of every model at one dose, one ``Lists`` for each q.

    ValueError where a model has no row at the dose, or too few held-out rows to calibrate.
    """
    groups = row_group(pool.scores.shape[1])
    in_group = np.equal.outer(groups, np.arange(N_ROW_GROUPS))
    found: list[list] = [[] for _ in qs]
    for seed, scores, copies in zip(base_seeds, pool.scores, pool.copies, strict=True):
        seen = np.flatnonzero(copies == dose)
        is_calibration = copies == HELD_OUT
        if not len(seen) or is_calibration.sum() <= N_TESTED_UNSEEN:
            raise ValueError(
                f"{pool.name}: a list needs rows at {dose} copies and more than "
                f"{N_TESTED_UNSEEN} held-out rows"
            )
        unseen = tested_unseen(seed, pool, copies, dose)
        is_calibration[unseen] = False
        tested = np.concatenate([seen, unseen])
        is_seen = np.arange(len(tested)) < len(seen)
        # Calibration rows at least as high as a tested row: all of them, and those of each group.
        as_high = scores[is_calibration] >= scores[tested][:, None]
        by_group = as_high.astype(float) @ in_group[is_calibration]
        n_as_high, n_left = as_high.sum(axis=1)[:, None], in_group[is_calibration].sum(axis=0)
        p_values = np.concatenate(
            [
                (1 + n_as_high) / (1 + is_calibration.sum()),
                (1 + n_as_high - by_group) / (1 + is_calibration.sum() - n_left),
            ],
            axis=1,
        )
        # The first column is the list; each other one is the list without one group of rows.
        is_kept = np.concatenate([np.ones((len(tested), 1), bool), ~in_group[tested]], axis=1)
        for of_q, q in zip(found, qs, strict=True):
            is_named = _named(p_values, is_kept, q)
            n_named = is_named.sum(axis=0)
            n_false = (is_named & ~is_seen[:, None]).sum(axis=0)
            n_seen = (is_kept & is_seen[:, None]).sum(axis=0)
            of_q.append((n_false / np.maximum(n_named, 1), (n_named - n_false) / n_seen, n_named))
    lists = []
    for of_q in found:
        false_share, found_share, n_named = (
            np.array(arrays).T for arrays in zip(*of_q, strict=True)
        )
        parts = [LeftOut(share[0], share[1:]) for share in (false_share, found_share)]
        lists.append(Lists(*parts, n_named[0]))
    return lists


def _named(p_values: np.ndarray, is_kept: np.ndarray, q: float) -> np.ndarray:
    """``row_lists.named_rows`` for many lists at once: a column each, of the rows that are kept."""
    p_values = np.where(is_kept, p_values, np.inf)
    ordered = np.sort(p_values, axis=0)
    places = np.arange(1, len(ordered) + 1)[:, None]
    is_below = ordered <= q * places / is_kept.sum(axis=0) + TOLERANCE
    last = np.where(is_below, places, 0).max(axis=0)
    cut = np.take_along_axis(ordered, np.maximum(last - 1, 0)[None], axis=0)
    return (p_values <= cut) & (last > 0)


def list_verdict(low: float, high: float, q: float, n_models: int) -> str:
    """Is the share of false discoveries at most q? From its one-sided 95 % limits.

    >>> list_verdict(0.01, 0.04, 0.1, 20), list_verdict(0.12, 0.2, 0.1, 20)
    ('supported', 'not supported')
    """
    if n_models < FEWEST_MODELS:
        return INCONCLUSIVE
    return SUPPORTED if high <= q else NOT_SUPPORTED if low > q else INCONCLUSIVE


def row_lists(study: StudyScores, shares: pd.DataFrame) -> pd.DataFrame:
    """Lists of rows at q of 10 % and 20 %: how many names are false, and how many rows are found.

    For each model, benchmark and dose 60 seen and 60 held-out rows are tested, and 240 held-out
    rows calibrate. Means are over models and benchmarks. The guarantee averages over assignments;
    it is none for a single model.

    Returns:
        a row for each detector, number of copies and q: detector, copies, row_share_pct, q,
        n_models, n_lists (models times benchmarks), false_share (realised false-discovery
        proportion, 0 where nothing is named), false_low and false_high (one-sided 95 % limits),
        se_models, se_rows, expected (false_share at most, under exchangeability), found_share (of
        the seen rows), found_low and found_high (95 % interval), named (rows on a list, mean),
        n_models_without (models without any discovery), n_lists_without, verdict.
    """
    rows = []
    n_models = len(study.base_seeds)
    for detector in study.detectors:
        pools, benchmarks = study.pools_of(detector), study.benchmarks(detector)
        for copies in exposures(ROWS):
            share = share_pct(shares, benchmarks, ROWS, VERBATIM, copies)
            of_pools = [lists_of(pool, copies, study.base_seeds) for pool in pools]
            for q, lists in zip(QS, zip(*of_pools, strict=True), strict=True):
                false_share = interval_left_out(mean_left_out([one.false_share for one in lists]))
                found = interval_left_out(mean_left_out([one.found_share for one in lists]))
                low, high = _one_sided(false_share, n_models)
                n_named = np.array([one.n_named for one in lists])
                n_seen = int((pools[0].copies[0] == copies).sum())
                rows.append(
                    {
                        "detector": display_name(detector),
                        "copies": copies,
                        "row_share_pct": share,
                        "q": q,
                        "n_models": n_models,
                        "n_lists": n_named.size,
                        "false_share": false_share.value,
                        "false_low": low,
                        "false_high": high,
                        "se_models": false_share.se_models,
                        "se_rows": false_share.se_rows,
                        "expected": q * N_TESTED_UNSEEN / (N_TESTED_UNSEEN + n_seen),
                        "found_share": found.value,
                        "found_low": found.low,
                        "found_high": found.high,
                        "named": n_named.mean(),
                        "n_models_without": int((n_named == 0).all(axis=0).sum()),
                        "n_lists_without": int((n_named == 0).sum()),
                        "verdict": list_verdict(low, high, q, n_models),
                    }
                )
    return pd.DataFrame(rows)


def _one_sided(share: Estimate, n_models: int) -> tuple[float, float]:
    """One-sided 95 % limits with the standard error of both jackknives."""
    error = np.hypot(share.se_models, share.se_rows)
    half = stats.t.ppf(1 - ALPHA, max(n_models - 1, 1)) * error
    low, high = np.clip([share.value - half, share.value + half], 0, 1)
    return float(low), float(high)
