"""Tables of a Min-k% study: rows of ``min_k_auc.csv`` and of ``blind_baselines.csv``.

Everything here takes what ``detect`` returned; no model is loaded. Where chance
decides membership, each model has a **deal** of its own: which passages it reads,
and how often. An interval over models draws deals with replacement, and passages
within each, so it covers the luck of the deal and of the training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from contamination import plots, scores, statistics
from contamination.cases.downstream import drawn_models
from contamination.min_k.blind import blind_table

# Fixed beforehand and the same at every size of a run.
N_EVENTS = 120  # event articles of both eras together
N_RAW_FAMILIES = 40  # families whose pages make the raw split

KEYS = ["method", "k_percent"]
SHOWN_METHODS = [scores.MIN_K, scores.PPL, scores.ZLIB, scores.MIN_K_PLUS_PLUS]  # in figures
N_FOLDS = 10
BLIND_LABELS = ["benchmark", "setting", "length", "seed"]
RISES, FALLS, CANNOT_TELL = "rises", "falls", "cannot be told"
Deals = Mapping[int, Sequence[bool]]  # deal to the membership of its passages
Detected = Mapping[int, pd.DataFrame]  # deal to what ``min_k.detect.detect`` gave for them
AUC_COLUMNS = [
    "benchmark",
    "setting",
    "length",
    "model",
    "n_parameters",
    "copies",
    "seed",
    "n_models",
    "method",
    "k_percent",
    "reference_model",
    "first_token_scored",
    "n_members",
    "n_non_members",
    "windowed_share",
    "auc",
    "ci_low",
    "ci_high",
    "tpr_at_5_fpr",
    "blind_auc",
    "paper_auc",
    "paper_tpr",
    "before_auc",
    "before_low",
    "before_high",
    "difference",
    "difference_low",
    "difference_high",
    "verdict",
]


def auc_rows(
    detected: Detected,
    is_member: Deals,
    *,
    n_resamples: int,
    before: Detected | None = None,
    seed: int = 0,
    **labels,
) -> pd.DataFrame:
    """Rows of ``min_k_auc.csv`` for one set of passages under one or more models.

    Args:
        detected: deal (training seed) to the scores of its passages under its model;
            all deals hold the same methods.
        is_member: deal to the membership of these passages.
        n_resamples: bootstrap resamples.
        before: deal to the scores of the same passages under the same model before it
            read any; None where no such model is at hand.
        seed: bootstrap seed; methods, and a model before and after, see the same
            resampled passages.
        **labels: further columns of ``AUC_COLUMNS``, such as benchmark, setting,
            length, model, blind_auc.

    Returns:
        One row for each model, method and k; with several models also a row
        with an empty seed: the mean AUC over the models, numbers of passages the
        mean of the deals, rounded. before_auc is the AUC before reading, difference
        what reading adds to it (paired interval), verdict that of ``verdict``.
    """
    first = next(iter(detected.values()))
    groups = [([number], deal) for number, deal in enumerate(detected)]
    if len(detected) > 1:
        groups.append((list(range(len(detected))), None))
    rows = []
    for (method, k_percent), _ in first.groupby(KEYS, sort=False, dropna=False):
        how = (is_member, method, k_percent, n_resamples, seed)
        after = _aucs(detected, *how)
        unread = None if before is None else _aucs(before, *how)
        rates = [
            statistics.tpr_at_fpr(scores_of(table, method, k_percent), is_member[deal])
            for deal, table in detected.items()
        ]
        for numbers, deal in groups:
            found = _estimate(*after, numbers, seed)
            row = {"seed": deal, "n_models": len(numbers), "method": method}
            row |= {"k_percent": k_percent} | _named(found, "auc", "ci")
            row |= {"tpr_at_5_fpr": float(np.mean([rates[n] for n in numbers]))}
            if unread is not None:
                base = _estimate(*unread, numbers, seed)
                change = (found[0] - base[0], found[1] - base[1])
                row |= _named(base, "before_auc", "before")
                row |= _named(change, "difference", "difference")
                row["verdict"] = verdict(row["difference_low"], row["difference_high"])
            rows.append(row | _facts(detected, is_member, numbers) | labels)
    table = pd.DataFrame(rows).reindex(columns=AUC_COLUMNS)
    return table.astype({"seed": "Int64", "copies": "Int64", "k_percent": float})


def verdict(low: float, high: float) -> str:
    """What the interval of a difference of AUCs carries: "rises", "falls" or "cannot be told".

    >>> verdict(0.01, 0.2), verdict(-0.2, 0.1)
    ('rises', 'cannot be told')
    """
    if low > 0:
        return RISES
    return FALLS if high < 0 else CANNOT_TELL


def _aucs(detected, is_member, method, k_percent, n_resamples, seed):
    """AUC of each deal, shape (n_deals,), and resampled, (n_deals, n_resamples)."""
    aucs, resampled = [], []
    for number, (deal, table) in enumerate(detected.items()):
        values, kind = scores_of(table, method, k_percent), np.asarray(is_member[deal], bool)
        aucs.append(statistics.auc(values, kind))
        resampled.append(statistics.bootstrap_aucs([values], kind, n_resamples, seed + number)[0])
    return np.array(aucs), np.array(resampled)


def _estimate(aucs, resampled, numbers, seed) -> tuple[float, np.ndarray]:
    """Mean AUC of some deals, and its resamples: deals are drawn, passages within each."""
    numbers = list(numbers)
    of_deals = resampled[numbers]
    chosen = drawn_models(*of_deals.shape, seed)
    return float(aucs[numbers].mean()), np.take_along_axis(of_deals, chosen, axis=0).mean(axis=0)


def _named(found: tuple[float, np.ndarray], name: str, ends: str) -> dict[str, float]:
    low, high = statistics.percentile_interval(found[1])
    return {name: found[0], f"{ends}_low": low, f"{ends}_high": high}


def _facts(detected: Detected, is_member: Deals, numbers: Sequence[int]) -> dict:
    chosen = [list(detected)[number] for number in numbers]
    counts = np.mean([[np.sum(is_member[d]), np.sum(~np.asarray(is_member[d]))] for d in chosen], 0)
    windows = [detected[d].groupby("passage")["n_windows"].first().gt(1).mean() for d in chosen]
    return {
        "n_members": round(counts[0]),
        "n_non_members": round(counts[1]),
        "first_token_scored": bool(detected[chosen[0]]["first_token_scored"].iloc[0]),
        "windowed_share": float(np.mean(windows)),
    }


def of_all_models(rows: pd.DataFrame) -> pd.DataFrame:
    """Of ``auc_rows`` the rows over all models together; every row where there is one model."""
    return rows[rows["n_models"] == rows["n_models"].max()]


def blind_rows(
    texts: Mapping[int, Sequence[str]],
    is_member: Deals,
    *,
    n_permutations: int,
    n_resamples: int,
    groups: Sequence[int] | None = None,
    **labels,
) -> pd.DataFrame:
    """Rows of ``blind_baselines.csv``: all blind baselines on the passages of each deal.

    Args:
        texts: deal to its passages.
        is_member: deal to their membership.
        n_permutations, n_resamples, groups: as in ``min_k.blind.blind_table``.
        **labels: columns put before it: benchmark, setting, length.

    Returns:
        Columns of ``blind_table``, before them the labels and the deal (seed), behind
        them verdict: "above chance", "below chance" or "cannot be told".
    """
    parts = []
    for deal, some in texts.items():
        found = blind_table(
            list(some),
            is_member[deal],
            n_folds=n_folds(is_member[deal]),
            n_permutations=n_permutations,
            n_resamples=n_resamples,
            groups=groups,
        )
        values = labels | {"seed": deal}
        named = pd.DataFrame({name: values.get(name) for name in BLIND_LABELS}, index=found.index)
        parts.append(pd.concat([named.astype({"length": "Int64"}), found], axis=1))
    table = pd.concat(parts, ignore_index=True)
    words = {RISES: "above chance", FALLS: "below chance", CANNOT_TELL: CANNOT_TELL}
    ends = zip(table["ci_low"] - 0.5, table["ci_high"] - 0.5, strict=True)
    return table.assign(verdict=[words[verdict(*pair)] for pair in ends])


def beside_words(
    detected: Detected,
    texts: Mapping[int, Sequence[str]],
    is_member: Deals,
    *,
    n_permutations: int,
    n_resamples: int,
    before: Detected | None = None,
    **labels,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``auc_rows`` with the best blind AUC on the same passages, and these ``blind_rows``.

    Over several deals it is the best mean of one baseline.
    """
    words = blind_rows(
        texts, is_member, n_permutations=n_permutations, n_resamples=n_resamples, **labels
    )
    rows = auc_rows(detected, is_member, n_resamples=n_resamples, before=before, **labels)
    return with_words(rows, words), words


def with_words(rows: pd.DataFrame, words: pd.DataFrame) -> pd.DataFrame:
    """``auc_rows`` with the best blind AUC of ``blind_rows`` on the same passages."""
    of_deal = words.groupby("seed")["auc"].max()
    of_all = words.groupby("baseline")["auc"].mean().max()
    return rows.assign(blind_auc=rows["seed"].map(of_deal).astype(float).fillna(of_all))


def blind_line(rows: pd.DataFrame, x: str) -> pd.DataFrame:
    """AUC of the best blind baseline along a column of ``auc_rows``: columns ``x`` and auc."""
    return rows.groupby(x, as_index=False)["blind_auc"].first().rename(columns={"blind_auc": "auc"})


def auc_figure(rows: pd.DataFrame, x: str, xlabel: str, fixed: str) -> Figure:
    """``plots.auc_lines`` of the methods of ``SHOWN_METHODS``, with the blind baseline.

    Args:
        rows, x, xlabel: as there.
        fixed: what is the same for all rows, behind their numbers in the title.
    """
    shown = rows[rows["method"].isin(SHOWN_METHODS)]
    return plots.auc_lines(shown, x, xlabel, f"{numbers_of(rows)}, {fixed}", blind_line(rows, x))


def numbers_of(rows: pd.DataFrame) -> str:
    """Models and passages behind a figure, for its title.

    >>> columns = ["n_models", "n_members", "n_non_members"]
    >>> numbers_of(pd.DataFrame([[3, 44, 155], [3, 20, 155]], columns=columns))
    '3 models, 20 to 44 members, 155 non-members'
    """
    parts = [f"{rows['n_models'].max()} models"]
    for column, kind in (("n_members", "members"), ("n_non_members", "non-members")):
        low, high = rows[column].min(), rows[column].max()
        parts.append(f"{low} {kind}" if low == high else f"{low} to {high} {kind}")
    return ", ".join(parts)


def sides(passages: Mapping[int, pd.DataFrame]) -> tuple[dict[int, list[str]], dict]:
    """Of the passages of each deal (columns text and role) the texts and who is a member."""
    texts = {deal: rows["text"].tolist() for deal, rows in passages.items()}
    return texts, {deal: rows["role"].eq("member").to_numpy() for deal, rows in passages.items()}


def at_k(detected: pd.DataFrame, k_percent: float) -> pd.DataFrame:
    """Scores at one k; methods without k stay."""
    return detected[detected["k_percent"].isna() | (detected["k_percent"] == k_percent)]


def difference_row(
    first: Detected,
    last: Detected,
    is_member: Deals,
    /,
    *,
    methods: tuple[tuple[str, float | None], tuple[str, float | None]],
    n_resamples: int,
    seed: int = 0,
    **labels,
) -> dict:
    """How an AUC differs between two scores of the same passages: a row of ``min_k_trends.csv``.

    Args:
        first, last: deal to scores; both hold the same passages in the same order.
        is_member: deal to their membership.
        methods: method and k of ``first`` and of ``last``.
        n_resamples, seed: of the bootstrap, as in ``auc_rows``.
        **labels: columns put before it.

    Returns:
        The labels, n_members, n_non_members, n_models, first_auc, last_auc,
        difference (last - first) with the ends of its paired interval, verdict.
    """
    (one, one_k), (other, other_k) = methods
    numbers, how = range(len(first)), (n_resamples, seed)
    pair = [
        _estimate(*_aucs(scored, is_member, method, k, *how), numbers, seed)
        for scored, method, k in ((first, one, one_k), (last, other, other_k))
    ]
    facts = _facts(first, is_member, numbers)
    row = labels | {name: facts[name] for name in ("n_members", "n_non_members")}
    row |= {"n_models": len(first), "first_auc": pair[0][0], "last_auc": pair[1][0]}
    change = (pair[1][0] - pair[0][0], pair[1][1] - pair[0][1])
    row |= _named(change, "difference", "difference")
    return row | {"verdict": verdict(row["difference_low"], row["difference_high"])}


def scores_of(detected: pd.DataFrame, method: str, k_percent: float | None) -> np.ndarray:
    """Scores of one method at one k (None or NaN: the method has none), passages in order."""
    chosen = detected[detected["method"] == method]
    if pd.notna(k_percent):
        chosen = chosen[chosen["k_percent"] == k_percent]
    return chosen.sort_values("passage")["score"].to_numpy()


def select(detected: pd.DataFrame, keep: Sequence[bool]) -> pd.DataFrame:
    """Scores of some of the passages, numbered anew."""
    numbers = np.flatnonzero(np.asarray(keep, dtype=bool))
    renumbered = pd.Series(np.arange(len(numbers)), index=numbers)
    chosen = detected[detected["passage"].isin(numbers)]
    return chosen.assign(passage=chosen["passage"].map(renumbered).to_numpy())


def n_folds(is_member: Sequence[bool]) -> int:
    """Folds of a blind baseline: ten, or as many as the smaller kind has passages."""
    is_member = np.asarray(is_member, dtype=bool)
    return int(min(N_FOLDS, is_member.sum(), (~is_member).sum()))
