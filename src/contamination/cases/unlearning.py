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
from contamination.core.tables import with_interval
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
                is_claim = name == unlearned and not against
                is_test = is_claim or (metric in MAIN_METRICS and selector == MIN_K_SHARE)
                difference = _difference(values, *pair, n_resamples, is_test)
                rows.append({"selector": selector, **about, **difference})
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


def _counts(table: pd.DataFrame, metric: str) -> dict[str, int]:
    """Answers behind a metric; only a judge's can be refused or fail."""
    status = table.get(f"{metric}_status", pd.Series(OK, index=table.index))
    n_valid, n_refused = int((status == OK).sum()), int((status == REFUSED).sum())
    n_error = len(table) - n_valid - n_refused
    return {"n_valid": n_valid, "n_refused": n_refused, "n_error": n_error}


def _difference(
    values: np.ndarray,
    is_selected: np.ndarray,
    is_other: np.ndarray,
    n_resamples: int,
    is_test: bool,
) -> dict[str, float]:
    """Means of both groups, and their difference with its interval; p by dealing the items anew."""
    # An item without any valid answer has no mean.
    groups = [values[~np.isnan(values) & kind] for kind in (is_selected, is_other)]
    mean, other = (float(group.mean()) if group.size else float("nan") for group in groups)
    row: dict[str, float] = {"n_items": int((is_selected | is_other).sum())}
    row |= {"n_selected": int(is_selected.sum()), "mean_selected": mean, "mean_other": other}
    row |= {"difference": mean - other} | dict.fromkeys(("ci_low", "ci_high", "p"), float("nan"))
    if min(group.size for group in groups) < 2:
        return row

    def gap(one: np.ndarray, two: np.ndarray, axis: int) -> np.ndarray:
        return one.mean(axis=axis) - two.mean(axis=axis)

    # Both start from the same seed.
    of_items: dict[str, Any] = {"n_resamples": n_resamples, "rng": np.random.default_rng(0)}
    ends = stats.bootstrap(groups, gap, method="percentile", **of_items).confidence_interval
    row |= {"ci_low": float(ends.low), "ci_high": float(ends.high)}
    if is_test:
        shuffles: dict[str, Any] = {"n_resamples": N_SHUFFLES, "rng": np.random.default_rng(0)}
        tested = stats.permutation_test(groups, gap, vectorized=True, **shuffles)
        row["p"] = float(tested.pvalue)
    return row


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
    is_compared = {
        "own": rows["model"].eq(rows["unlearning"]) & rows["against"].eq(""),
        "easy": rows["model"].eq(control) & rows["against"].eq(""),
        "remembered": rows["against"].eq(control),
        "spared": rows["against"].eq(original),
    }
    texts = with_interval(rows)
    known = texts["difference"].map("{:.2f} ".format).where(texts["difference"].notna(), "")
    texts["text"] = known + texts["interval"]
    texts["claim"] = np.select([*is_compared.values()], [*is_compared], "")
    keys = ["unlearning", "task", "n_selected"]
    table = texts.pivot_table("text", keys, "claim", aggfunc="first", sort=False)
    return table[[name for name in is_compared if name in table]].reset_index()
