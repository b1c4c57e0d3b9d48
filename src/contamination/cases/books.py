"""Books in the training data: snippets, a threshold from known books, a rate for every other book.

Shi et al., arXiv:2310.16789, section 5. A threshold on the scores of random
snippets is chosen on validation books whose membership is known; of every test
book the share of snippets above it is reported, its contamination rate.

Snippets of one book share its topic, its names and its style. So whatever is
resampled or cross-validated here is resampled or left out by whole books.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from contamination.cases.library import TEST, VALIDATION
from contamination.core import blind, statistics
from contamination.core.scores import MIN_K, PPL
from contamination.data.published import printed_cells

N_FOLDS = 8
SEED = 0  # of folds and of the bootstrap: every method sees the same books
SEEN_MINUS_NONE = "model that saw half of the books − model that saw none"
AUC_COLUMNS = ["model", "part", "method", "k_percent", "n_members", "n_non_members", "n_snippets"]
AUC_COLUMNS += ["auc", "ci_low", "ci_high", "blind_auc", "threshold", "accuracy"]
AUC_COLUMNS += ["accuracy_low", "accuracy_high", "paper_auc", "p", "holds"]


def best_threshold(values: np.ndarray, is_member: np.ndarray) -> float:
    """The threshold that tells most snippets right; a score at or above it counts as member.

    It lies halfway between two neighbouring scores, or at plus infinity; the lowest of
    several that do equally well.

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

    ``values`` has shape (n_books, n_snippets), the result (n_read, n_not_read); ties count
    one half. The mean is the AUC over all snippets.
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
    is_control: bool = False,
) -> pd.DataFrame:
    """Rows of ``books_auc.csv`` of one model: AUC and threshold of each method.

    The threshold is chosen on the validation books, so the accuracy on them
    flatters; that on the test books does not. A part whose membership is not
    known gives no row, and methods see the same resampled books.

    Args:
        detected: scores of the snippets, as ``min_k.detect.detect`` gives them.
        snippets: as ``library.random_snippets`` returns them.
        words: ``blind_rows`` of the same snippets.
        is_control: whether the model read none of the books. Then its AUC must be at chance:
            ``holds`` says whether the interval contains one half, and there is no p.

    Returns:
        Columns ``AUC_COLUMNS``; n_members and n_non_members count books,
        n_snippets the snippets of each, accuracy is a share of snippets; p is the
        two-sided one of an AUC of one half.
    """
    words_of = words[words["method"] == blind.BAG_OF_WORDS].set_index("part")["auc"]
    printed = printed_cells().query("table == 'Figure 4 (books)'").set_index("row")["value"]
    validation = snippets["part"].eq(VALIDATION).to_numpy()
    is_member = snippets["in_training"][validation].to_numpy(dtype=bool)
    rows = []
    for part, chosen, in_training in _known_parts(snippets):
        for (method, k_percent), values in _by_method(detected):
            threshold = best_threshold(values[validation], is_member)
            of_books = values[chosen].reshape(len(in_training), -1)
            right = ((of_books >= threshold) == in_training[:, None]).mean(axis=1)
            # Over all pairs of a book read and one not, this averages to the share over all books.
            share = in_training.mean()
            pairs = share * right[in_training][:, None] + (1 - share) * right[~in_training]
            wins = book_wins(of_books, in_training)
            resampled, resampled_right = (
                resampled_books(each, n_resamples, SEED) for each in (wins, pairs)
            )
            limits = statistics.percentile_interval(resampled)
            limits_right = statistics.percentile_interval(resampled_right)
            auc = float(wins.mean())
            smallest = statistics.smallest_split_p(*wins.shape)
            tested = (
                {"holds": limits[0] <= 0.5 <= limits[1]}
                if is_control
                else {"p": statistics.bootstrap_p(auc, resampled, 0.5, smallest)}
            )
            rows.append(
                {"model": model, "part": part, "method": method, "k_percent": k_percent}
                | _counts(of_books, in_training)
                | {"auc": auc, "ci_low": limits[0], "ci_high": limits[1], **tested}
                | {"blind_auc": words_of[part], "threshold": threshold}
                | {"accuracy": float(right.mean())}
                | {"accuracy_low": limits_right[0], "accuracy_high": limits_right[1]}
                | {"paper_auc": printed.get(method) if part == VALIDATION else None}
            )
    return pd.DataFrame(rows).reindex(columns=AUC_COLUMNS).astype({"holds": "boolean"})


def blind_rows(snippets: pd.DataFrame, *, n_resamples: int) -> pd.DataFrame:
    """Rows of ``books_auc.csv`` of classifiers that see the words of snippets and no model.

    A classifier is judged on books that it was not trained on. AUCs are taken
    within each fold and averaged, and the interval allows for books that judge each other, as
    in ``core.blind``. Threshold and accuracy are empty; ``holds`` says whether the interval
    contains one half.
    """
    rows = []
    for part, chosen, in_training in _known_parts(snippets):
        texts = snippets["text"][chosen]
        n_snippets = len(texts) // len(in_training)
        groups = np.repeat(np.arange(len(in_training)), n_snippets)
        is_member = np.repeat(in_training, n_snippets)
        # Two books of each kind in a fold: resampling one alone gives an interval of width 0.
        n_folds = blind.feasible_folds(in_training, N_FOLDS, per_fold=2)
        for baseline in blind.TRAINED:
            scored = blind.cross_validated_scores(
                texts, is_member, baseline, n_folds, seed=SEED, groups=groups
            )
            folds = [
                book_wins(values.reshape(-1, n_snippets), is_member[items[::n_snippets]])
                for items, values in scored
            ]
            resampled = [resampled_books(f, n_resamples, SEED + n) for n, f in enumerate(folds)]
            auc = float(np.mean([fold.mean() for fold in folds]))
            low, high = statistics.percentile_interval(
                blind.widened(auc, np.mean(resampled, axis=0))
            )
            rows.append(
                {"model": "none", "part": part, "method": baseline}
                | _counts(is_member.reshape(-1, n_snippets), in_training)
                | {"auc": auc, "ci_low": low, "ci_high": high, "holds": low <= 0.5 <= high}
            )
    return pd.DataFrame(rows).reindex(columns=AUC_COLUMNS).astype({"holds": "boolean"})


def comparisons(
    detected: pd.DataFrame,
    snippets: pd.DataFrame,
    *,
    clean: pd.DataFrame,
    n_resamples: int,
) -> pd.DataFrame:
    """What could explain the AUC of Min-k% Prob otherwise; both sides see the same books.

    ``clean`` are scores under a model that read none of the books. For each known part the
    difference of AUCs with its interval and p: Min-k% Prob against PPL, and the model against
    the clean one.
    """
    of_method = {method: values for (method, _), values in _by_method(detected)}
    of_clean = {method: values for (method, _), values in _by_method(clean)}
    others = {"Min-k% Prob − PPL": of_method[PPL], SEEN_MINUS_NONE: of_clean[MIN_K]}
    rows = []
    for name, other in others.items():
        for part, chosen, in_training in _known_parts(snippets):
            wins = [
                book_wins(values[chosen].reshape(len(in_training), -1), in_training)
                for values in (of_method[MIN_K], other)
            ]
            first, second = (resampled_books(each, n_resamples, SEED) for each in wins)
            low, high = statistics.percentile_interval(first - second)
            difference = float(wins[0].mean() - wins[1].mean())
            smallest = statistics.smallest_split_p(*wins[0].shape)
            p = statistics.bootstrap_p(difference, first - second, smallest=smallest)
            rows.append((name, part, difference, low, high, p))
    return pd.DataFrame(rows, columns=["compared", "part", "difference", "ci_low", "ci_high", "p"])


def rate_rows(
    detected: pd.DataFrame,
    snippets: pd.DataFrame,
    auc: pd.DataFrame,
    *,
    model: str,
    part: str = TEST,
) -> pd.DataFrame:
    """Rows of ``books.csv``: contamination rate of each test book by Min-k% Prob.

    The part "validation" gives the rates of the books that chose the threshold. A rate counts
    snippets at or above it, percent; in_training is empty where not known, intervals are
    Wilson's, over the draw of snippets at this threshold. Highest rate first.
    """
    threshold = auc.loc[auc["method"] == MIN_K, "threshold"].iloc[0]
    values = next(value for (method, _), value in _by_method(detected) if method == MIN_K)
    flagged = snippets.assign(model=model, is_flagged=values >= threshold)
    keys = ["model", "book", "package", "in_training"]
    table = (
        flagged[flagged["part"] == part]
        .groupby(keys, sort=False, dropna=False, as_index=False)
        .agg(n_snippets=("is_flagged", "size"), contamination_rate_pct=("is_flagged", "mean"))
    )
    table["contamination_rate_pct"] *= 100
    n_flagged = (table["contamination_rate_pct"] * table["n_snippets"] / 100).round()
    ends = map(statistics.share_interval, n_flagged, table["n_snippets"])
    table[["ci_low_pct", "ci_high_pct"]] = 100 * np.array(list(ends))
    order = ["contamination_rate_pct", "book"]
    return table.sort_values(order, ascending=[False, True], ignore_index=True)


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


def _counts(of_books: np.ndarray, in_training: np.ndarray) -> dict[str, int]:
    n_read, n_not_read = int(in_training.sum()), int((~in_training).sum())
    return {"n_members": n_read, "n_non_members": n_not_read, "n_snippets": of_books.shape[1]}
