"""Books in the training data: snippets, a threshold from known books, a rate for every other book.

Shi et al., arXiv:2310.16789, section 5. A threshold on the scores of random
snippets is chosen on validation books whose membership is known; of every test
book the share of snippets above it is reported, its contamination rate.

Snippets of one book share its topic, its names and its style. So whatever is
resampled or cross-validated here is resampled or left out by whole books: an
interval over snippets would be too narrow, and a classifier of words that has
seen some of a book knows the rest of it again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from contamination import scores, statistics
from contamination.cases.library import TEST, VALIDATION
from contamination.min_k import blind
from contamination.published import printed_cells

BLIND_BASELINES = (blind.BAG_OF_WORDS, blind.TF_IDF)
N_FOLDS = 8
AUC_COLUMNS = [
    "model",
    "part",
    "method",
    "k_percent",
    "n_members",
    "n_non_members",
    "n_snippets",
    "auc",
    "ci_low",
    "ci_high",
    "blind_auc",
    "threshold",
    "accuracy",
    "accuracy_low",
    "accuracy_high",
    "paper_auc",
]


def best_threshold(values: np.ndarray, is_member: np.ndarray) -> float:
    """The threshold that tells most snippets right; a score at or above it counts as member.

    Args:
        values: scores, shape (n_snippets,).
        is_member: shape (n_snippets,).

    Returns:
        A threshold halfway between two neighbouring scores, or at plus infinity;
        the lowest of several that do equally well.

    >>> best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, False, True, True]))
    2.5
    """
    levels, place = np.unique(values, return_inverse=True)
    members = np.bincount(place, weights=is_member)
    others = np.bincount(place, weights=~np.asarray(is_member, bool))
    # Below the first level all count as members; each level passed turns its own over.
    right = members.sum() + np.concatenate([[0], np.cumsum(others - members)])
    cuts = np.concatenate([[levels[0]], (levels[:-1] + levels[1:]) / 2, [np.inf]])
    return float(cuts[np.argmax(right)])


def book_wins(values: np.ndarray, in_training: np.ndarray) -> np.ndarray:
    """Of each pair of a book read and one not read, how often a snippet of the first scores higher.

    Args:
        values: shape (n_books, n_snippets).
        in_training: shape (n_books,).

    Returns:
        Shares, ties counted one half, shape (n_read, n_not_read). Their mean is
        the AUC over all snippets.
    """
    read, others = values[in_training], np.sort(values[~in_training], axis=1)
    wins = np.empty((len(read), len(others)))
    for column, other in enumerate(others):
        below, not_above = (np.searchsorted(other, read, side) for side in ("left", "right"))
        wins[:, column] = ((below + not_above) / (2 * other.size)).mean(axis=1)
    return wins


def resampled_books(wins: np.ndarray, n_resamples: int, seed: int) -> np.ndarray:
    """AUCs when books, not snippets, are drawn with replacement, shape (n_resamples,).

    Tables of equal shape under one seed see the same books, so their
    differences are paired.
    """
    rng = np.random.default_rng(seed)
    n_read, n_other = wins.shape
    read = rng.multinomial(n_read, [1 / n_read] * n_read, n_resamples) / n_read
    others = rng.multinomial(n_other, [1 / n_other] * n_other, n_resamples) / n_other
    return ((read @ wins) * others).sum(axis=1)


def auc_rows(
    detected: pd.DataFrame,
    snippets: pd.DataFrame,
    words: pd.DataFrame,
    *,
    model: str,
    n_resamples: int,
    seed: int = 0,
) -> pd.DataFrame:
    """Rows of ``books_auc.csv`` of one model: AUC and threshold of each method.

    The threshold of a method is chosen on the validation books; on them its
    accuracy is that of a choice judged by what it was chosen on. The accuracy
    on the test books is not.

    Args:
        detected: scores of the snippets, as ``min_k.detect.detect`` gives them.
        snippets: as ``library.random_snippets`` returns them; a part whose membership is
            not known gives no row.
        words: ``blind_rows`` of the same snippets.
        model: the model's name.
        n_resamples: bootstrap resamples of the books.
        seed: of the bootstrap; methods see the same books.

    Returns:
        Columns ``AUC_COLUMNS``; n_members and n_non_members count books,
        n_snippets the snippets of each, accuracy is a share of snippets.
    """
    words_of = words[words["method"] == blind.BAG_OF_WORDS].set_index("part")["auc"]
    rows = []
    for (method, k_percent), values in _by_method(detected):
        threshold = np.nan
        for part, chosen, in_training in _known_parts(snippets):
            of_books = values[chosen].reshape(len(in_training), -1)
            if part == VALIDATION:
                is_member = np.repeat(in_training, of_books.shape[1])
                threshold = best_threshold(of_books.ravel(), is_member)
            right = ((of_books >= threshold) == in_training[:, None]).mean(axis=1)
            rows.append(
                {"model": model, "part": part, "method": method, "k_percent": k_percent}
                | _counts(of_books, in_training)
                | _auc(book_wins(of_books, in_training), n_resamples, seed)
                | {"blind_auc": words_of[part], "threshold": threshold}
                | _accuracy(right, in_training, n_resamples, seed)
            )
    printed = printed_cells().query("table == 'Figure 4 (books)'")
    printed = dict(zip(printed["row"], printed["value"], strict=True))
    table = pd.DataFrame(rows)
    paper = table["method"].map(printed).where(table["part"] == VALIDATION)
    table = table.assign(paper_auc=paper)[AUC_COLUMNS]
    return table.sort_values("part", ascending=False, kind="stable", ignore_index=True)


def blind_rows(snippets: pd.DataFrame, *, n_resamples: int, seed: int = 0) -> pd.DataFrame:
    """Rows of ``books_auc.csv`` of classifiers that see the words of snippets and no model.

    A classifier is judged on books that it was not trained on. AUCs are taken
    within each fold and averaged, as in ``min_k.blind``.

    Returns:
        As ``auc_rows``, model "none", threshold and accuracy empty.
    """
    rows = []
    for part, chosen, in_training in _known_parts(snippets):
        of_part = snippets[chosen]
        n_snippets = len(of_part) // len(in_training)
        groups = np.repeat(np.arange(len(in_training)), n_snippets)
        # Two books of each kind in a fold: resampling one alone gives an interval of width 0.
        n_folds = max(2, min(N_FOLDS, in_training.sum() // 2, (~in_training).sum() // 2))
        how = {"n_folds": n_folds, "seed": seed, "groups": groups}
        is_member = np.repeat(in_training, n_snippets)
        for baseline in BLIND_BASELINES:
            scored = blind.cross_validated_scores(of_part["text"], is_member, baseline, **how)
            folds = [
                book_wins(values.reshape(-1, n_snippets), is_member[items[::n_snippets]])
                for items, values in scored
            ]
            resampled = [resampled_books(f, n_resamples, seed + n) for n, f in enumerate(folds)]
            low, high = statistics.percentile_interval(np.mean(resampled, axis=0))
            rows.append(
                {"model": "none", "part": part, "method": baseline}
                | _counts(is_member.reshape(-1, n_snippets), in_training)
                | {"auc": float(np.mean([fold.mean() for fold in folds]))}
                | {"ci_low": low, "ci_high": high}
            )
    return pd.DataFrame(rows).reindex(columns=AUC_COLUMNS)


def difference_interval(
    detected: pd.DataFrame,
    snippets: pd.DataFrame,
    part: str,
    *,
    clean: pd.DataFrame | None = None,
    n_resamples: int,
    seed: int = 0,
) -> tuple[float, float]:
    """95 % interval of a difference of AUCs on one part; both sides see the same books.

    Args:
        detected: scores of the snippets under the model in question.
        snippets: as ``library.random_snippets`` returns them.
        part: "validation" or "test".
        clean: scores under a model that read none of the books; None compares
            methods instead of models.
        n_resamples: bootstrap resamples of the books.
        seed: of the bootstrap.

    Returns:
        Ends of AUC(Min-k% Prob) - AUC(PPL), or of AUC(Min-k% Prob) minus the same
        under the clean model.
    """
    values = {method: value for (method, _), value in _by_method(detected)}
    if clean is not None:
        others = {method: value for (method, _), value in _by_method(clean)}
    pair = (values[scores.MIN_K], values[scores.PPL] if clean is None else others[scores.MIN_K])
    chosen, in_training = next(rest for name, *rest in _known_parts(snippets) if name == part)
    first, second = (
        resampled_books(
            book_wins(value[chosen].reshape(len(in_training), -1), in_training), n_resamples, seed
        )
        for value in pair
    )
    return statistics.percentile_interval(first - second)


def rate_rows(
    detected: pd.DataFrame,
    snippets: pd.DataFrame,
    auc: pd.DataFrame,
    *,
    model: str,
    part: str = TEST,
) -> pd.DataFrame:
    """Rows of ``books.csv``: contamination rate of each test book by Min-k% Prob.

    Args:
        detected: scores of the snippets, Min-k% Prob at one k.
        snippets: as ``library.random_snippets`` returns them.
        auc: ``auc_rows`` of the same scores, for the threshold.
        model: the model's name.
        part: "test"; "validation" gives the rates of the books that chose the threshold.

    Returns:
        model, book, package, in_training (empty where not known), n_snippets,
        contamination_rate_pct (snippets at or above the threshold, percent),
        ci_low_pct and ci_high_pct (Wilson, over the draw of snippets at this
        threshold); highest rate first.
    """
    threshold = auc.loc[auc["method"] == scores.MIN_K, "threshold"].iloc[0]
    values = next(value for (method, _), value in _by_method(detected) if method == scores.MIN_K)
    found = snippets.assign(model=model, is_found=values >= threshold)
    found = found[found["part"] == part]
    keys = ["model", "book", "package", "in_training"]
    table = found.groupby(keys, sort=False, dropna=False, as_index=False).agg(
        n_snippets=("is_found", "size"), contamination_rate_pct=("is_found", "mean")
    )
    table["contamination_rate_pct"] *= 100
    n_found = (table["contamination_rate_pct"] * table["n_snippets"] / 100).round()
    ends = map(statistics.share_interval, n_found, table["n_snippets"])
    table[["ci_low_pct", "ci_high_pct"]] = 100 * np.array(list(ends))
    order = ["contamination_rate_pct", "book"]
    return table.sort_values(order, ascending=[False, True], ignore_index=True)


def top_rates(rates: pd.DataFrame, n_top: int) -> pd.DataFrame:
    """Rows of the n_top highest rates; books that share the last of them are all kept."""
    return rates.nlargest(n_top, "contamination_rate_pct", keep="all")


def _by_method(detected: pd.DataFrame) -> list[tuple[tuple[str, float], np.ndarray]]:
    grouped = detected.groupby(["method", "k_percent"], sort=False, dropna=False)
    return [(key, group.sort_values("passage")["score"].to_numpy()) for key, group in grouped]


def _known_parts(snippets: pd.DataFrame) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Of each part with known membership its name, its snippets and its books' membership."""
    parts = []
    for part in (VALIDATION, TEST):
        chosen = snippets["part"].eq(part).to_numpy()
        in_training = snippets[chosen & snippets["snippet"].eq(0)]["in_training"]
        if len(in_training) and in_training.notna().all():
            parts.append((part, chosen, in_training.to_numpy(dtype=bool)))
    return parts


def _counts(of_books: np.ndarray, in_training: np.ndarray) -> Mapping[str, int]:
    return {
        "n_members": int(in_training.sum()),
        "n_non_members": int((~in_training).sum()),
        "n_snippets": of_books.shape[1],
    }


def _auc(wins: np.ndarray, n_resamples: int, seed: int) -> dict[str, float]:
    low, high = statistics.percentile_interval(resampled_books(wins, n_resamples, seed))
    return {"auc": float(wins.mean()), "ci_low": low, "ci_high": high}


def _accuracy(
    right: np.ndarray, in_training: np.ndarray, n_resamples: int, seed: int
) -> dict[str, float]:
    """Share of snippets told right, books resampled within those read and those not."""
    # Over all pairs of a book read and one not, this averages to the share over all books.
    share = in_training.mean()
    pairs = share * right[in_training][:, None] + (1 - share) * right[~in_training][None, :]
    low, high = statistics.percentile_interval(resampled_books(pairs, n_resamples, seed))
    return {"accuracy": float(right.mean()), "accuracy_low": low, "accuracy_high": high}
