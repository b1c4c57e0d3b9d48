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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination import scores, statistics
from contamination.lab.passages import first_words
from contamination.min_k import blind, study
from contamination.min_k.detect import detect
from contamination.models.causal import load_causal_lm
from contamination.models.chat import Endpoint, Price, prompt_log_probs
from contamination.parameters import OwnSettings, setting
from contamination.published import printed_cells

VALIDATION, TEST = "validation", "test"
PAGE_WORDS = 200  # a page of the lab fits into its context
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


@dataclass(frozen=True)
class OwnBooks(OwnSettings):
    """Part C of notebook 06: one's own model and data."""

    validation_members_folder: str = setting("", "folder of .txt books the model has read")
    validation_non_members_folder: str = setting("", "folder of .txt books it cannot have read")
    test_folder: str = setting("", "folder of .txt books in question, empty to skip part C")
    own_snippets: int = setting(100, "snippets of each book")
    own_snippet_words: int = setting(512, "words of a snippet")
    target_model: str = setting("", "model to test, a folder or hub id")
    target_revision: str = setting("", "its commit")
    target_dtype: str = setting("float32", "float32, bfloat16 or float16")
    device_map: str = setting("", '"auto" spreads a large model over the GPUs')
    safetensors_only: bool = setting(True, "false also reads weights in the older PyTorch format")
    base_url: str = setting("", "endpoint with prompt log-probabilities instead, up to /v1")
    served_model: str = setting("", "the model's name at the endpoint")
    key_variable: str = setting("", "name of the environment variable with the key, empty for none")
    input_price: float = setting(
        0.0, "price of a million input tokens, 0 for a server of one's own"
    )
    price_date: str = setting("", "day the price was read")
    cap: float = setting(0.0, "most that the run may cost, 0 for no cap")
    neighbor_model: str = setting("", "fill-mask model that writes neighbours, empty for none")


def documentation_books(
    passages: pd.DataFrame, n_books: int, n_words: int, seed: int
) -> pd.DataFrame:
    """Modules of documentation as books, half of them for training, membership at random.

    A book is what the clean split of the lab holds of one module outside the
    background, so no run of 13 words occurs in two books, nor in the background.

    Args:
        passages: as ``lab.passages.split_by_family`` returns them.
        n_books: books, a multiple of four.
        n_words: words of every book; a longer module is cut, a shorter one is no book.
        seed: seed of the draw and of the deal.

    Returns:
        book (module), package, part ("validation" or "test"; half of the books
        in training and half of the others in each), in_training, text; sorted
        by book.

    Raises:
        ValueError: if n_books is no multiple of four, or too few modules are long enough.
    """
    if n_books < 4 or n_books % 4:
        raise ValueError(f"n_books must be a multiple of 4, got {n_books}")
    pages = passages[passages["role"] != "background"].groupby("family")
    long_enough = [name for name, page in pages if page["n_words"].sum() >= n_words]
    if len(long_enough) < n_books:
        raise ValueError(
            f"only {len(long_enough)} modules have {n_words} words, {n_books} books asked for: "
            "ask for fewer or shorter ones"
        )
    dealt = np.random.default_rng([seed, 6]).permutation(long_enough)[:n_books]
    rows = [
        {
            "book": name,
            "package": pages.get_group(name)["package"].iloc[0],
            "part": (VALIDATION, TEST)[number % 2],
            "in_training": number % 4 < 2,
            "text": first_words(" ".join(pages.get_group(name)["text"]), n_words),
        }
        for number, name in enumerate(dealt)
    ]
    return pd.DataFrame(rows).sort_values("book", ignore_index=True)


def pages(text: str, n_words: int = PAGE_WORDS) -> list[str]:
    """A book cut into pages, each of which fits into a training block; the last may be shorter."""
    found = text.split()
    return [" ".join(found[start : start + n_words]) for start in range(0, len(found), n_words)]


def read_books(folder: str, part: str, in_training: bool | None) -> pd.DataFrame:
    """The plain-text files of a folder, one book each, in alphabetical order.

    Args:
        folder: folder of .txt files in UTF-8; a file's name without ending is the book's.
        part: "validation" or "test".
        in_training: whether these books were read, None where that is the question.

    Returns:
        Columns as ``documentation_books``, package empty.

    Raises:
        FileNotFoundError: if there is no such folder, or no .txt file in it.
        ValueError: if a file is not UTF-8.
    """
    path = Path(folder).expanduser()
    files = sorted(path.glob("*.txt"))
    if not files:
        raise FileNotFoundError(
            f'"{folder}" holds no .txt file: name a folder with one plain-text file for each book'
        )
    rows = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{file.name}: not UTF-8 text: save the file as UTF-8") from error
        rows.append(("", part, in_training, text, file.stem))
    table = pd.DataFrame(rows, columns=["package", "part", "in_training", "text", "book"])
    return table[["book", "package", "part", "in_training", "text"]]


def own_books(
    validation_members: str, validation_non_members: str, test: str
) -> pd.DataFrame | None:
    """One's own books from three folders, or None where none is named.

    Raises:
        ValueError: if only some of the folders are named, a validation folder holds
            fewer than four books, or two books have the same text.
        FileNotFoundError: as ``read_books``.
    """
    folders = (validation_members, validation_non_members, test)
    if not any(folders):
        return None
    if not all(folders):
        raise ValueError(
            "name three folders of books: members and non-members to choose the threshold on, and "
            "the books in question"
        )
    known = ((VALIDATION, True), (VALIDATION, False), (TEST, None))
    found = [read_books(folder, *kind) for folder, kind in zip(folders, known, strict=True)]
    for folder, table in zip(folders[:2], found, strict=False):
        if len(table) < 4:
            raise ValueError(f'"{folder}" holds {len(table)} books: validation needs four or more')
    table = pd.concat(found, ignore_index=True)
    for _, same in table.groupby("text")["book"]:
        if len(same) > 1:
            raise ValueError(f'"{same.iloc[0]}" and "{same.iloc[1]}" have the same text: drop one')
    return table


def own_scorer(
    own: pd.DataFrame | None,
    *,
    model: str,
    revision: str,
    dtype: str,
    device_map: str,
    safetensors_only: bool,
    base_url: str,
    served_model: str,
    key_variable: str,
    price: tuple[float, str, float],
    neighbor_model: str = "",
) -> Callable[..., pd.DataFrame] | None:
    """What scores one's own snippets, checked before it costs anything; None without books.

    Args:
        own: as ``own_books`` returns it.
        model, revision, dtype, device_map, safetensors_only: of a local model, as
            in ``models.causal.load_causal_lm``; empty for none.
        base_url, served_model, key_variable: of an endpoint, as in
            ``models.chat.Endpoint``; empty for none.
        price: of a million input tokens, the day it was read, and the most the
            run may cost; an empty day means no price, 0 no cap.
        neighbor_model: the model that will write neighbours; empty for none.

    Returns:
        A function of texts, neighbors and k_percents that gives the table of
        ``min_k.detect.detect``; the model is loaded or asked when it is called.

    Raises:
        ValueError: if books come without a scorer, or a scorer without books, or
            both kinds of scorer are named.
        FileNotFoundError: if the local model or the one for neighbours is not there.
    """
    if own is None and not model and not base_url:
        return None
    if own is None:
        raise ValueError("a model is named but no folder of books: part C needs both, or neither")
    if bool(model) == bool(base_url):
        raise ValueError("part C needs one scorer: a target_model, or a base_url with served_model")
    study.check_models([model, neighbor_model], dtype, revision)
    if model:

        def local(texts: Sequence[str], **how: Any) -> pd.DataFrame:
            options = {"device_map": device_map or None, "safetensors_only": safetensors_only}
            return detect(texts, load_causal_lm(model, revision or None, dtype, **options), **how)

        return local
    endpoint = Endpoint(base_url, served_model, key_variable or None)
    per_million, date, cap = price
    paid = {"price": Price(per_million, 0.0, date)} if date else {}
    return partial(detect_served, endpoint=endpoint, cap=cap or None, **paid)


def random_snippets(books: pd.DataFrame, n_snippets: int, n_words: int, seed: int) -> pd.DataFrame:
    """Snippets from random places of each book; they may overlap, as the paper's may.

    Args:
        books: columns as ``documentation_books``.
        n_snippets: snippets of each book; the paper draws 100.
        n_words: words of a snippet; the paper's have 512.
        seed: seed of the places. Those of a book do not depend on other books.

    Returns:
        part, book, package, in_training, snippet (0 to n_snippets - 1), text;
        the snippets of a book one after another.

    Raises:
        ValueError: if n_snippets or n_words is below 1, a book has fewer words than
            a snippet, or two books of a part have one name.
    """
    if min(n_snippets, n_words) < 1:
        raise ValueError(f"{n_snippets} snippets of {n_words} words: both must be at least 1")
    rows = []
    for row in books.to_dict("records"):
        found = row.pop("text").split()
        if len(found) < n_words:
            raise ValueError(
                f'book "{row["book"]}" has {len(found)} words, a snippet {n_words}: leave it out '
                "or ask for shorter snippets"
            )
        name = [seed, 7, *row["book"].encode()]
        starts = np.random.default_rng(name).integers(len(found) - n_words + 1, size=n_snippets)
        rows += [
            row | {"snippet": number, "text": " ".join(found[start : start + n_words])}
            for number, start in enumerate(starts)
        ]
    table = pd.DataFrame(rows)
    if table.duplicated(["part", "book", "snippet"]).any():
        raise ValueError("two books of one part have the same name: rename one of them")
    return table


def detect_served(
    texts: Sequence[str],
    endpoint: Endpoint,
    *,
    neighbors: Sequence[Sequence[str]] | None = None,
    k_percents: Sequence[float] = (20.0,),
    **settings: Any,
) -> pd.DataFrame:
    """Scores of passages by a served model that gives log-probabilities of its prompt.

    Args:
        texts: passages.
        endpoint: the model, see ``models.chat.prompt_log_probs``.
        neighbors: neighbours of each passage; adds Neighbor.
        k_percents: shares of tokens that Min-k% Prob keeps.
        settings: keyword arguments of ``models.chat.answer_all``, such as price and cap.

    Returns:
        Columns as ``min_k.detect.detect``. Min-K%++ is missing: it needs the
        whole distribution, which no endpoint gives.
    """
    around = [[]] * len(texts) if neighbors is None else neighbors
    lowercase = [text.lower() for text in texts]
    every = [*texts, *lowercase, *(text for group in around for text in group)]
    found = [value.token_log_probs for value in prompt_log_probs(endpoint, every, **settings)]
    ends = np.cumsum([2 * len(texts), *map(len, around)])
    rows = []
    for number, (start, end) in enumerate(pairwise(ends)):
        own, low = found[number], found[len(texts) + number]
        values = [
            (scores.PPL, None, scores.perplexity_score(own)),
            (scores.ZLIB, None, scores.zlib_score(own, texts[number])),
            (scores.LOWERCASE, None, scores.lowercase_score(own, low)),
        ]
        if neighbors is not None:
            values.append((scores.NEIGHBOR, None, scores.neighbor_score(own, found[start:end])))
        values += [(scores.MIN_K, k, scores.min_k_score(own, k)) for k in k_percents]
        counts = {"n_tokens": own.size + 1, "n_scored": own.size, "n_windows": 1}
        rows += [
            {"passage": number, "method": method, "k_percent": k_percent, "score": score}
            | counts
            | {"first_token_scored": False}
            for method, k_percent, score in values
        ]
    return pd.DataFrame(rows).astype({"k_percent": float})


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
        snippets: as ``random_snippets`` returns them; a part whose membership is
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
        snippets: as ``random_snippets`` returns them.
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
        snippets: as ``random_snippets`` returns them.
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
