"""Tables of a Min-k% study: rows of ``min_k_auc.csv``, k chosen on other texts, the null.

Everything here takes what ``detect`` returned; no model is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from contamination import plots, scores, statistics
from contamination.min_k.blind import BAG_OF_WORDS, blind_table

# Fixed beforehand and the same at every size of a run.
K_SWEEP = (5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 100.0)
NULL_SEEDS = range(20)
N_EVENTS = 120  # event articles of both eras together
N_RAW_FAMILIES = 40  # families whose pages make the raw split

KEYS = ["method", "k_percent"]
SHOWN_METHODS = [scores.MIN_K, scores.PPL, scores.ZLIB, scores.MIN_K_PLUS_PLUS]  # in figures
N_FOLDS = 10
BLIND_LABELS = ["benchmark", "setting", "length"]
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
]


def auc_rows(
    detected: Mapping[int, pd.DataFrame],
    is_member: Sequence[bool],
    *,
    n_resamples: int,
    seed: int = 0,
    **labels,
) -> pd.DataFrame:
    """Rows of ``min_k_auc.csv`` for one set of passages under one or more models.

    Args:
        detected: training seed to what ``min_k.detect.detect`` gave for the
            passages under that model; all hold the same passages and methods.
        is_member: membership of the passages.
        n_resamples: bootstrap resamples of the passages.
        seed: bootstrap seed; methods and models see the same resamples.
        **labels: further columns of ``AUC_COLUMNS``, such as benchmark, setting,
            length, model, blind_auc.

    Returns:
        One row for each model, method and k; with several models also a row
        with an empty seed: the mean AUC over the models, its interval from
        passages resampled for all models together.
    """
    is_member = np.asarray(is_member, dtype=bool)
    first = next(iter(detected.values()))
    facts = {
        "n_members": int(is_member.sum()),
        "n_non_members": int((~is_member).sum()),
        "first_token_scored": bool(first["first_token_scored"].iloc[0]),
        "windowed_share": float(first.groupby("passage")["n_windows"].first().gt(1).mean()),
    }
    rows = []
    for (method, k_percent), _ in first.groupby(KEYS, sort=False, dropna=False):
        values = [_scores(table, method, k_percent) for table in detected.values()]
        resampled = statistics.bootstrap_aucs(values, is_member, n_resamples, seed)
        aucs = [statistics.auc(score, is_member) for score in values]
        rates = [statistics.tpr_at_fpr(score, is_member) for score in values]
        groups = [([number], training) for number, training in enumerate(detected)]
        if len(detected) > 1:
            groups.append((list(range(len(detected))), None))
        for numbers, training in groups:
            low, high = statistics.percentile_interval(resampled[numbers].mean(axis=0))
            rows.append(
                {"seed": training, "n_models": len(numbers), "method": method}
                | {"k_percent": k_percent, "auc": float(np.mean([aucs[n] for n in numbers]))}
                | {"ci_low": low, "ci_high": high}
                | {"tpr_at_5_fpr": float(np.mean([rates[n] for n in numbers]))}
                | facts
                | labels
            )
    table = pd.DataFrame(rows).reindex(columns=AUC_COLUMNS)
    return table.astype({"seed": "Int64", "k_percent": float})


def of_all_models(rows: pd.DataFrame) -> pd.DataFrame:
    """Of ``auc_rows`` the rows over all models together; every row where there is one model."""
    return rows[rows["n_models"] == rows["n_models"].max()]


def blind_rows(
    texts: Sequence[str],
    is_member: Sequence[bool],
    *,
    n_permutations: int,
    n_resamples: int,
    groups: Sequence[int] | None = None,
    **labels,
) -> pd.DataFrame:
    """Rows of ``blind_baselines.csv``: all blind baselines on one set of passages.

    Args:
        texts: passages.
        is_member: their membership.
        n_permutations, n_resamples, groups: as in ``min_k.blind.blind_table``.
        **labels: columns put before it: benchmark, setting, length.
    """
    found = blind_table(
        list(texts),
        is_member,
        n_folds=n_folds(is_member),
        n_permutations=n_permutations,
        n_resamples=n_resamples,
        groups=groups,
    )
    named = pd.DataFrame({name: labels.get(name) for name in BLIND_LABELS}, index=found.index)
    return pd.concat([named.astype({"length": "Int64"}), found], axis=1)


def beside_words(
    detected: Mapping[int, pd.DataFrame],
    texts: Sequence[str],
    is_member: Sequence[bool],
    *,
    n_permutations: int,
    n_resamples: int,
    **labels,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``auc_rows`` with the best blind AUC on the same passages, and these ``blind_rows``."""
    words = blind_rows(
        texts, is_member, n_permutations=n_permutations, n_resamples=n_resamples, **labels
    )
    best = {"blind_auc": words["auc"].max(), "n_resamples": n_resamples}
    return auc_rows(detected, is_member, **best, **labels), words


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


def at_k(detected: pd.DataFrame, k_percent: float) -> pd.DataFrame:
    """Scores at one k; methods without k stay."""
    return detected[detected["k_percent"].isna() | (detected["k_percent"] == k_percent)]


def difference_interval(
    detected: Mapping[int, pd.DataFrame],
    is_member: Sequence[bool],
    k_percent: float,
    *,
    n_resamples: int,
    seed: int = 0,
) -> tuple[float, float]:
    """95 % interval of AUC(Min-k% Prob) - AUC(PPL), the mean over models.

    Paired: both methods and all models see the same resampled passages.
    """
    is_member = np.asarray(is_member, dtype=bool)
    resampled = [
        statistics.bootstrap_aucs(
            [_scores(table, method, k) for table in detected.values()], is_member, n_resamples, seed
        ).mean(axis=0)
        for method, k in ((scores.MIN_K, k_percent), (scores.PPL, None))
    ]
    return statistics.percentile_interval(resampled[0] - resampled[1])


def _scores(detected: pd.DataFrame, method: str, k_percent: float) -> np.ndarray:
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


def swept_k(detected: pd.DataFrame, is_member: Sequence[bool], seed: int = 0) -> pd.DataFrame:
    """AUC of Min-k% Prob at every k, on one half of the passages and on the other.

    The k that is best on the first half (random within members and
    non-members) is judged on the second, which had no say in it.

    Args:
        detected: scores at several k.
        is_member: membership of the passages.
        seed: seed of the halves.

    Returns:
        k_percent, auc_chosen_on, auc_held_out, is_best (on the first half).
    """
    is_member = np.asarray(is_member, dtype=bool)
    rng = np.random.default_rng(seed)
    first_half = np.zeros(is_member.size, dtype=bool)
    for kind in (True, False):
        numbers = rng.permutation(np.flatnonzero(is_member == kind))
        first_half[numbers[: numbers.size // 2]] = True
    rows = []
    for k_percent in sorted(detected.loc[detected["method"] == scores.MIN_K, "k_percent"].unique()):
        values = _scores(detected, scores.MIN_K, k_percent)
        rows.append(
            {
                "k_percent": k_percent,
                "auc_chosen_on": statistics.auc(values[first_half], is_member[first_half]),
                "auc_held_out": statistics.auc(values[~first_half], is_member[~first_half]),
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(is_best=table.index == table["auc_chosen_on"].idxmax())


def null_study(
    min_k_scores: np.ndarray,
    texts: Sequence[str],
    seeds: Sequence[int],
    *,
    n_resamples: int,
) -> pd.DataFrame:
    """How often intervals miss 0.5 when neither group was ever trained on.

    The passages are dealt into two groups of equal size anew for every seed.

    Args:
        min_k_scores: scores of passages that the model never read, shape (n,).
        texts: these passages.
        seeds: seeds of the deals, fixed beforehand.
        n_resamples: bootstrap resamples of each interval.

    Returns:
        seed, method ("Min-k% Prob" or the blind baseline's name), auc, ci_low,
        ci_high, misses (0.5 lies outside the interval).
    """
    rows = []
    for seed in seeds:
        is_member = np.zeros(len(texts), dtype=bool)
        dealt = np.random.default_rng([seed, 20]).permutation(len(texts))
        is_member[dealt[: len(texts) // 2]] = True
        low, high = statistics.auc_interval(min_k_scores, is_member, n_resamples, seed)
        value = statistics.auc(min_k_scores, is_member)
        rows.append((seed, scores.MIN_K, value, low, high))
        blind = blind_table(
            texts,
            is_member,
            baselines=[BAG_OF_WORDS],
            n_folds=n_folds(is_member),
            n_permutations=0,
            n_resamples=n_resamples,
            seed=seed,
        ).iloc[0]
        rows.append((seed, BAG_OF_WORDS, blind["auc"], blind["ci_low"], blind["ci_high"]))
    table = pd.DataFrame(rows, columns=["seed", "method", "auc", "ci_low", "ci_high"])
    return table.assign(misses=(table["ci_low"] > 0.5) | (table["ci_high"] < 0.5))


def n_folds(is_member: Sequence[bool]) -> int:
    """Folds of a blind baseline: ten, or as many as the smaller kind has passages."""
    is_member = np.asarray(is_member, dtype=bool)
    return int(min(N_FOLDS, is_member.sum(), (~is_member).sum()))
