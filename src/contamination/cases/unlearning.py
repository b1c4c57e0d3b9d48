"""Auditing a model that was made to forget: the unlearning study of Shi et al., section 7.

Min-k% Prob of a text under the model before and after unlearning: where the
ratio of the two is near 1, the study suspects that the text was not unlearned,
and lets the unlearned model complete it (``unlearning_items``). Here stands the table: what
the models write for suspected items, compared with what they write for all other items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.cases.unlearning_items import MIN_K, MIN_K_SHARE, PPL, PPL_SHARE
from contamination.core import statistics
from contamination.core.tables import interval_text
from contamination.models.chat import OK, REFUSED

MAIN_METRICS = ["rouge_l", "unigram_recall"]  # one for each task
# Not a selector: the items that only one of the two shares holds, against one another. What both
# select cannot tell the two apart, so this is their paired comparison.
ALONE = f"{MIN_K} alone against {PPL} alone"

ROW_COLUMNS = ["unlearning", "model", "task", "selector", "k_percent", "ratio_low", "ratio_high"]
ROW_COLUMNS += ["n_items", "n_selected", "n_samples", "metric", "against", "mean_selected"]
ROW_COLUMNS += ["mean_other", "difference", "ci_low", "ci_high", "n_valid", "n_refused", "n_error"]
ROW_COLUMNS += ["p"]
METRICS = ["rouge_l", "rouge_l_recall", "unigram_recall", "simcse", "judge"]
LEFT_OUT = "left_out"  # the metric of the truth: whether an item was never given to the unlearner
N_SHUFFLES = 9999  # of the permutation test of a difference of means


def audit_rows(
    scored: Mapping[str, pd.DataFrame],
    chosen: Mapping[str, np.ndarray],
    metrics: Sequence[str],
    controls: Sequence[str] = (),
    *,
    unlearned: str,
    n_resamples: int,
    **labels: Any,
) -> pd.DataFrame:
    """Rows of ``unlearning.csv``: selected items compared with all other items.

    Args:
        scored: name of a model to its ``scored_samples`` of the same items.
        chosen: as ``unlearning_items.selections`` returned it.
        metrics: columns of ``scored`` to average, over the samples of an item first.
        controls: models whose score is taken from the unlearned model's, item
            by item, in further rows (column ``against``).
        unlearned: the model that the selectors looked at.
        n_resamples: of the bootstrap over the items of each group.
        **labels: further columns of ``ROW_COLUMNS``, such as task and k_percent.

    Returns:
        Columns ``ROW_COLUMNS``; difference is mean_selected - mean_other with its
        interval, p that of a permutation test, for the rows that make a claim or that
        ``claims_with_intervals`` shows. A group without items has no mean. Where
        both shares are among the selectors, rows of ``ALONE`` compare what each selects alone:
        mean_selected is that of Min-k% Prob, mean_other that of perplexity.
    """
    groups = {name: (is_selected, ~is_selected) for name, is_selected in chosen.items()}
    if {MIN_K_SHARE, PPL_SHARE} <= set(chosen):
        one, other = chosen[MIN_K_SHARE], chosen[PPL_SHARE]
        groups[ALONE] = one & ~other, other & ~one
    rows = []
    for metric in metrics:
        means = {
            name: table.groupby("item")[metric].mean().to_numpy() for name, table in scored.items()
        }
        counts = {name: _counts(table, metric) for name, table in scored.items()}
        compared_to = [(name, "", values) for name, values in means.items()]
        compared_to += [(unlearned, c, means[unlearned] - means[c]) for c in controls]
        for name, against, values in compared_to:
            about = {"model": name, "metric": metric, "against": against, **counts[name]}
            about["n_samples"] = int(scored[name]["sample"].nunique())
            for selector, pair in groups.items():
                difference = _difference(values, *pair, n_resamples)
                is_claim = name == unlearned and not against
                is_test = is_claim or (metric in MAIN_METRICS and selector == MIN_K_SHARE)
                p = _permutation_p(values, *pair) if is_test else np.nan
                rows.append({"selector": selector, **about, **difference, "p": p})
    table = pd.DataFrame(rows).assign(unlearning=unlearned, **labels).reindex(columns=ROW_COLUMNS)
    # The window belongs to the selectors that use it.
    windowed = table["selector"].isin([MIN_K, PPL])
    table[["ratio_low", "ratio_high"]] = table[["ratio_low", "ratio_high"]].where(windowed)
    return table


def left_out_rows(
    is_left_out: np.ndarray, chosen: Mapping[str, np.ndarray], *, n_resamples: int, **labels: Any
) -> pd.DataFrame:
    """Rows on the truth that only a lab has: the share of items never given to the unlearner.

    As :func:`audit_rows`, but the interval is that of a difference of two shares: a
    bootstrap of a few yes and no has no width where all are alike. p is that
    of Fisher's exact test, which keeps its level however few they are.
    """
    table = pd.DataFrame({"item": range(len(is_left_out)), "sample": 0, LEFT_OUT: is_left_out})
    scored = {labels["unlearned"]: table.astype({LEFT_OUT: float})}
    rows = audit_rows(scored, chosen, [LEFT_OUT], n_resamples=n_resamples, **labels)
    n_other = rows["n_items"] - rows["n_selected"]
    shares = rows["mean_selected"], rows["n_selected"], rows["mean_other"], n_other
    for place, (share, n, other_share, n_others) in enumerate(zip(*shares, strict=True)):
        counts = share * n, n, other_share * n_others, n_others
        rows.loc[place, ["ci_low", "ci_high"]] = statistics.share_difference_interval(*counts)
        rows.loc[place, "p"] = _fisher_p(*counts)
    return rows


def _fisher_p(n_found: float, n: int, n_other_found: float, n_other: int) -> float:
    if not n or not n_other:
        return float("nan")
    found, other = round(n_found), round(n_other_found)
    return float(stats.fisher_exact([(found, n - found), (other, n_other - other)]).pvalue)


def _permutation_p(values: np.ndarray, is_selected: np.ndarray, is_other: np.ndarray) -> float:
    """Two-sided p of the difference of means, by dealing the items to the two groups anew."""
    groups = [values[~np.isnan(values) & kind] for kind in (is_selected, is_other)]
    if min(group.size for group in groups) < 2:
        return float("nan")
    return float(
        stats.permutation_test(
            groups,
            lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
            vectorized=True,
            n_resamples=N_SHUFFLES,
            rng=np.random.default_rng(0),
        ).pvalue
    )


def _counts(table: pd.DataFrame, metric: str) -> dict[str, int]:
    """Answers behind a metric; only a judge's can be refused or fail."""
    status = table.get(f"{metric}_status", pd.Series(OK, index=table.index))
    n_valid, n_refused = int((status == OK).sum()), int((status == REFUSED).sum())
    n_error = len(table) - n_valid - n_refused
    return {"n_valid": n_valid, "n_refused": n_refused, "n_error": n_error}


def _difference(
    values: np.ndarray, is_selected: np.ndarray, is_other: np.ndarray, n_resamples: int
) -> dict[str, float]:
    # An item without any valid answer has no mean.
    is_known = ~np.isnan(values)
    groups = [values[is_known & kind] for kind in (is_selected, is_other)]
    means = [float(group.mean()) if group.size else float("nan") for group in groups]
    low = high = float("nan")
    if min(group.size for group in groups) > 1:
        interval = stats.bootstrap(
            groups,
            lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
            n_resamples=n_resamples,
            method="percentile",
            rng=np.random.default_rng(0),
        ).confidence_interval
        low, high = float(interval.low), float(interval.high)
    counts = {"n_items": (is_selected | is_other).sum(), "n_selected": is_selected.sum()}
    row: dict[str, Any] = {name: int(count) for name, count in counts.items()}
    row |= {"mean_selected": means[0], "mean_other": means[1], "difference": means[0] - means[1]}
    return row | {"ci_low": low, "ci_high": high}


def claims_with_intervals(rows: pd.DataFrame, control: str, original: str) -> pd.DataFrame:
    """What "selected" means: differences of selected and other items with intervals, as text.

    Args:
        rows: of ``audit_rows``, one selector, and one metric for each task.
        control: a model that did not see the story; a comparison with a model that is not there
            is left out.
        original: the model before unlearning.

    Returns:
        unlearning, task, n_selected, and own (the unlearned model itself), easy (the control),
        remembered (unlearned minus control) and spared (unlearned minus original).
    """
    table = []
    for (name, task), group in rows.groupby(["unlearning", "task"], sort=False):
        by = group.set_index(["model", "against"])
        tests = {"own": (name, ""), "easy": (control, "")}
        tests |= {"remembered": (name, control), "spared": (name, original)}
        texts = {}
        for claim, test in tests.items():
            if test not in by.index:
                continue
            row = by.loc[test]
            ends = interval_text(row["ci_low"], row["ci_high"], 2)
            known = pd.notna(row["difference"])
            texts[claim] = f"{row['difference']:.2f} {ends}" if known else ends
        n_selected = by.loc[(name, ""), "n_selected"]
        table.append({"unlearning": name, "task": task, "n_selected": n_selected, **texts})
    return pd.DataFrame(table)
