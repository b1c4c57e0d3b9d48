"""AUC of every method with its intervals and checks, on the lab's passages and on WikiMIA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from contamination.core import scores, statistics, storage
from contamination.core.blind import (
    BAG_OF_WORDS,
    USED_TWICE,
    Deals,
    blind_rows,
    blind_table,
    feasible_folds,
    fold_scores,
    table_of_scores,
)
from contamination.core.verdicts import ALPHA, CLAIMS, FEWEST_MODELS, verdict_column
from contamination.data import partitions, published
from contamination.data.sources import source_file

Detected = Mapping[int, pd.DataFrame]  # deal to what ``min_k.detect.detect`` gave for it
AUC_COLUMNS = [
    *("benchmark", "setting", "length", "model", "n_parameters", "copies", "seed", "n_models"),
    *("method", "k_percent", "reference_model", "first_token_scored"),
    *("n_members", "n_non_members", "windowed_share"),
    *("auc", "ci_low", "ci_high", "tpr_at_5_fpr", "blind_auc", "paper_auc", "paper_tpr"),
    *("before_auc", "difference", "difference_low", "difference_high", "p"),
]


def auc_rows(
    detected: Detected,
    is_member: Deals,
    *,
    n_resamples: int,
    before: Detected | None = None,
    **labels: Any,
) -> pd.DataFrame:
    """Rows of ``min_k_auc.csv`` for one set of passages under one or more models.

    Args:
        detected: deal (training seed) to the scores of its passages under its model;
            all deals hold the same methods.
        is_member: deal to the membership of these passages.
        n_resamples: bootstrap resamples; methods, and a model before and after, see the same.
        before: as ``detected``, of the same model before training, if it is at hand.
        **labels: further columns of ``AUC_COLUMNS``, such as benchmark or length.

    Returns:
        One row for each model, method and k; with several models also one with an empty seed:
        the mean AUC over the models, numbers of passages the rounded mean of the deals.
        difference is what training adds to before_auc, its interval paired, its two-sided p
        empty with fewer than five models, which say little about others.
    """
    groups: list[tuple[list[int], int | None]] = [([n], deal) for n, deal in enumerate(detected)]
    if len(detected) > 1:
        groups.append((list(range(len(detected))), None))
    rows = []
    first = next(iter(detected.values()))
    for (method, k_percent), _ in first.groupby(["method", "k_percent"], sort=False, dropna=False):
        after = _aucs(detected, is_member, method, k_percent, n_resamples)
        untrained = None
        if before is not None:
            untrained = _aucs(before, is_member, method, k_percent, n_resamples)
        rates = [
            statistics.tpr_at_fpr(
                scores_of(table, method, k_percent), np.asarray(is_member[deal], bool)
            )
            for deal, table in detected.items()
        ]
        for numbers, deal in groups:
            mean, resampled = _over_deals(after, numbers)
            row = {"seed": deal, "n_models": len(numbers), "method": method, "k_percent": k_percent}
            low, high = statistics.percentile_interval(resampled)
            row |= {"auc": mean, "ci_low": low, "ci_high": high}
            row["tpr_at_5_fpr"] = float(np.mean([rates[number] for number in numbers]))
            if untrained:
                base, base_resampled = _over_deals(untrained, numbers)
                row["before_auc"] = base
                row |= _change(mean - base, resampled - base_resampled, len(numbers))
            rows.append(row | _facts(detected, is_member, numbers) | labels)
    table = pd.DataFrame(rows).reindex(columns=AUC_COLUMNS)
    return table.astype({"seed": "Int64", "copies": "Int64", "k_percent": float})


def difference_row(
    first: Detected,
    last: Detected,
    is_member: Deals,
    /,
    *,
    methods: tuple[tuple[str, float | None], tuple[str, float | None]],
    n_resamples: int,
    seed: int = 0,
    **labels: Any,
) -> dict:
    """How an AUC differs between two scores of the same passages: a row of ``min_k_trends.csv``.

    ``methods`` are method and k of ``first`` and of ``last``, which hold the same
    passages in the same order; difference is last - first, its interval paired.
    """
    numbers = list(range(len(first)))
    (first_auc, first_drawn), (last_auc, last_drawn) = (
        _over_deals(_aucs(scored, is_member, *method, n_resamples, seed), numbers, seed)
        for scored, method in zip((first, last), methods, strict=True)
    )
    facts = _facts(first, is_member, numbers)
    row = labels | {name: facts[name] for name in ("n_members", "n_non_members")}
    row |= {"n_models": len(first), "first_auc": first_auc, "last_auc": last_auc}
    return row | _change(last_auc - first_auc, last_drawn - first_drawn, len(first))


def _aucs(
    detected: Detected,
    is_member: Deals,
    method: str,
    k_percent: float | None,
    n_resamples: int,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """AUC of each deal, shape (n_deals,), and resampled, (n_deals, n_resamples)."""
    aucs, resampled = [], []
    for number, (deal, table) in enumerate(detected.items()):
        values, kind = scores_of(table, method, k_percent), np.asarray(is_member[deal], bool)
        aucs.append(statistics.auc(values, kind))
        resampled.append(statistics.bootstrap_aucs([values], kind, n_resamples, seed + number)[0])
    return np.array(aucs), np.array(resampled)


def _over_deals(
    aucs: tuple[np.ndarray, np.ndarray], numbers: list[int], seed: int = 0
) -> tuple[float, np.ndarray]:
    """Mean AUC of some deals, and its resamples: deals are drawn, passages within each."""
    values, resampled = aucs
    return float(values[numbers].mean()), statistics.over_drawn_models(resampled[numbers], seed)


def _change(value: float, resampled: np.ndarray, n_models: int) -> dict[str, float]:
    low, high = statistics.percentile_interval(resampled)
    p = statistics.bootstrap_p(value, resampled) if n_models >= FEWEST_MODELS else np.nan
    return {"difference": value, "difference_low": low, "difference_high": high, "p": p}


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


def auc_and_blind_rows(
    detected: Detected,
    texts: Mapping[int, Sequence[str]],
    is_member: Deals,
    *,
    n_permutations: int,
    n_resamples: int,
    before: Detected | None = None,
    **labels: Any,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``auc_rows`` with the best blind AUC on the same passages, and these ``blind_rows``."""
    words = blind_rows(
        texts, is_member, n_permutations=n_permutations, n_resamples=n_resamples, **labels
    )
    rows = auc_rows(detected, is_member, n_resamples=n_resamples, before=before, **labels)
    return add_blind_auc(rows, words), words


def add_blind_auc(rows: pd.DataFrame, words: pd.DataFrame) -> pd.DataFrame:
    """``auc_rows`` with the best blind AUC, over several deals the best mean of one baseline."""
    of_deal = words.groupby("seed")["auc"].max()
    of_all = words.groupby("baseline")["auc"].mean().max()
    return rows.assign(blind_auc=rows["seed"].map(of_deal).astype(float).fillna(of_all))


def pooled_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Of ``auc_rows`` the rows over all models together; every row where there is one model."""
    return rows[rows["n_models"] == rows["n_models"].max()]


def blind_line(rows: pd.DataFrame, x: str) -> pd.DataFrame:
    """AUC of the best blind baseline along a column of ``auc_rows``: columns ``x`` and auc."""
    return rows.groupby(x, as_index=False)["blind_auc"].first().rename(columns={"blind_auc": "auc"})


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


def texts_and_labels(passages: Mapping[int, pd.DataFrame]) -> tuple[dict[int, list[str]], dict]:
    """Of the passages of each deal (columns text and role) the texts and who is a member."""
    texts = {deal: rows["text"].tolist() for deal, rows in passages.items()}
    return texts, {deal: rows["role"].eq("member").to_numpy() for deal, rows in passages.items()}


def at_k(detected: pd.DataFrame, k_percent: float) -> pd.DataFrame:
    """Scores at one k; methods without k stay."""
    return detected[detected["k_percent"].isna() | (detected["k_percent"] == k_percent)]


def scores_of(detected: pd.DataFrame, method: str, k_percent: float | None) -> np.ndarray:
    """Scores of one method at one k (None or NaN: the method has none), passages in order."""
    chosen = detected[detected["method"] == method]
    if pd.notna(k_percent):
        chosen = chosen[chosen["k_percent"] == k_percent]
    return chosen.sort_values("passage")["score"].to_numpy()


def select(detected: pd.DataFrame, keep: Sequence[bool] | np.ndarray) -> pd.DataFrame:
    """Scores of some of the passages, numbered anew."""
    numbers = np.flatnonzero(np.asarray(keep, dtype=bool))
    renumbered = pd.Series(np.arange(len(numbers)), index=numbers)
    chosen = detected[detected["passage"].isin(numbers)]
    return chosen.assign(passage=chosen["passage"].map(renumbered).to_numpy())


# Fixed beforehand and the same at every size of a run.
K_SWEEP = (5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 100.0)
NULL_SEEDS = range(20)
USED_ONCE = f"{BAG_OF_WORDS}, as if its scores were fixed"


def swept_k(
    detected: Detected, is_member: Deals, k_percent: float, *, n_resamples: int, seed: int = 0
) -> pd.DataFrame:
    """AUC of Min-k% Prob at every k, on one half of the passages and on the other.

    The k that is best on the first half (the same passages in every deal) is judged
    on the second, against ``k_percent``, the k used everywhere else.

    Returns:
        auc_chosen_on, auc_held_out (means over deals), is_best (on the first half),
        difference (held out, against ``k_percent``) with its paired interval and p, n_models.
    """
    n_passages = len(next(iter(is_member.values())))
    in_first = np.random.default_rng(seed).permutation(n_passages) < n_passages // 2
    kinds, parts = [], []
    for half in (in_first, ~in_first):
        kinds.append({deal: np.asarray(kind, bool)[half] for deal, kind in is_member.items()})
        parts.append({deal: select(table, half) for deal, table in detected.items()})
    first = next(iter(detected.values()))
    rows = []
    for k in sorted(first.loc[first["method"] == scores.MIN_K, "k_percent"].unique()):
        aucs = [
            statistics.auc(scores_of(table, scores.MIN_K, k), kinds[0][deal])
            for deal, table in parts[0].items()
        ]
        methods = ((scores.MIN_K, k_percent), (scores.MIN_K, k))
        row = difference_row(
            parts[1], parts[1], kinds[1], methods=methods, n_resamples=n_resamples, seed=seed
        )
        chosen = {"k_percent": k, "auc_chosen_on": np.mean(aucs)}
        rows.append(row | chosen | {"auc_held_out": row["last_auc"]})
    columns = ["k_percent", "auc_chosen_on", "auc_held_out", "is_best"]
    columns += ["difference", "difference_low", "difference_high", "n_models", "p"]
    table = pd.DataFrame(rows)
    return table.assign(is_best=table.index == table["auc_chosen_on"].idxmax())[columns]


def null_rows(
    min_k_scores: np.ndarray, texts: Sequence[str], seed: int, *, n_resamples: int
) -> pd.DataFrame:
    """Whether an interval misses 0.5 when neither group was ever trained on.

    Half of the ``texts``, which the model never read, are called members; the deal's
    ``seed`` is fixed beforehand. ``min_k_scores`` are theirs, shape (n,). Rows: "Min-k% Prob",
    "bag of words", and the bag of words with the narrower interval of scores that were fixed
    beforehand, which overlooks that each pair of passages is used twice (``core.blind``);
    misses: 0.5 lies outside the interval.
    """
    is_member = np.zeros(len(texts), dtype=bool)
    dealt = np.random.default_rng([seed, 20]).permutation(len(texts))
    is_member[dealt[: len(texts) // 2]] = True
    interval = statistics.auc_interval(min_k_scores, is_member, n_resamples, seed)
    plan: dict[str, Any] = {"baselines": [BAG_OF_WORDS], "n_folds": feasible_folds(is_member)}
    plan |= {"n_permutations": 0, "n_resamples": n_resamples, "seed": seed}
    words = blind_table(texts, is_member, **plan).iloc[0]
    rows = [
        (seed, scores.MIN_K, statistics.auc(min_k_scores, is_member), *interval),
        (seed, BAG_OF_WORDS, words["auc"], words["ci_low"], words["ci_high"]),
        (seed, USED_ONCE, words["auc"], *_narrowed(words)),
    ]
    table = pd.DataFrame(rows, columns=["seed", "method", "auc", "ci_low", "ci_high"])
    return table.assign(misses=(table["ci_low"] > 0.5) | (table["ci_high"] < 0.5))


def _narrowed(words: pd.Series) -> tuple[float, float]:
    ends = (words[["ci_low", "ci_high"]] - words["auc"]) / USED_TWICE
    return tuple(words["auc"] + ends)


def null_summary(null: pd.DataFrame) -> pd.DataFrame:
    """How many intervals of ``null_rows`` miss 0.5, and whether that is no more than chance.

    Columns method, deals, missed, expected (one in twenty) and holds: the binomial chance of
    at least so many is above 0.05. Given its passages, each deal is an independent draw.
    """
    counted = null.groupby("method", sort=False)["misses"].agg(deals="size", missed="sum")
    table = counted.reset_index()
    chance = stats.binom.sf(table["missed"] - 1, table["deals"], 1 - statistics.CONFIDENCE)
    return table.assign(expected=(1 - statistics.CONFIDENCE) * table["deals"], holds=chance > ALPHA)


LENGTHS = (32, 64, 128, 256)
DECIMALS = 5
TELLING_LENGTH, N_TELLING = 128, 10  # words of the passages, words of each label
AGE = {True: "older pages", False: "newer pages"}  # members and non-members, by their date


def wikimia_passages(length: int) -> tuple[list[str], np.ndarray]:
    """Passages of the real WikiMIA of one length, and their membership.

    FileNotFoundError if the authors' files are not here.
    """
    path = source_file("nlp-titech/samia", f"wikimia/{length}.jsonl")
    return partitions.labelled_passages(partitions.load_rows(str(path)), "input", "label")


def sample_passages(is_member: np.ndarray, n_of_kind: int, seed: int) -> np.ndarray:
    """Numbers, rising, of so many members and non-members drawn by chance; 0 means all."""
    rng = np.random.default_rng(seed)
    kinds = (np.flatnonzero(is_member), np.flatnonzero(~is_member))
    return np.sort(np.concatenate([rng.permutation(kind)[: n_of_kind or None] for kind in kinds]))


def read_half(is_member: np.ndarray, seed: int) -> np.ndarray:
    """Which passages get copies, shape (n_passages,): a random half of each kind."""
    rng, is_read = np.random.default_rng(seed), np.zeros(len(is_member), bool)
    for kind in (np.flatnonzero(is_member), np.flatnonzero(~is_member)):
        is_read[rng.permutation(kind)[: len(kind) // 2]] = True
    return is_read


def pairings(
    after: pd.DataFrame,
    before: pd.DataFrame,
    is_member: np.ndarray,
    is_read: np.ndarray,
    *,
    n_resamples: int,
    **labels: Any,
) -> pd.DataFrame:
    """``auc_rows`` of read against unread passages, for older and newer ones: four pairings.

    The positive control of a time capsule. ``after`` and ``before`` are what ``detect`` gave for
    the same passages with and without the copies. Within a kind only the copies can tell read
    from unread, and ``holds`` says whether they do: the interval of the difference lies above 0.
    Across kinds the date can, too, and ``holds`` is empty. ValueError if a pairing lacks a side.
    """
    parts = []
    for read, unread in ((True, True), (False, False), (True, False), (False, True)):
        keep = np.where(is_read, is_member == read, is_member == unread)
        first, last = ({0: select(table, keep)} for table in (before, after))
        setting = f"copies of {AGE[read]}, none of {AGE[unread]}"
        about: dict[str, Any] = {"before": first, "n_resamples": n_resamples, **labels}
        rows = auc_rows(last, {0: is_read[keep]}, setting=setting, **about)
        holds = (rows["difference_low"] > 0).astype("boolean")
        parts.append(rows.assign(holds=holds if read == unread else pd.NA))
    return pd.concat(parts, ignore_index=True).drop(columns="p").astype({"holds": "boolean"})


def with_capsule_verdict(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``auc_rows`` and whether the score does more than words alone (``blind_auc``).

    The kinds differ in date, so a score that tells them apart no better than their words do has
    failed its control. p is that of chance, p_adjusted Holm's over these rows.
    """
    claim = CLAIMS["pretrained_min_k"]
    aucs = zip(rows["auc"], rows["ci_low"], rows["ci_high"], strict=True)
    p_values = [statistics.interval_p(*each, claim.null) for each in aucs]
    (rows,) = statistics.with_p_adjusted(rows.assign(p=p_values))
    words = verdict_column(rows, claim, control=("blind_auc", "blind_auc"))
    return rows.assign(verdict=words)


def wikimia_blind_scores() -> pd.DataFrame:
    """``fold_scores`` of every passage of WikiMIA, by length (words) and row of its file."""
    parts = {n: fold_scores(*wikimia_passages(n)).round(DECIMALS) for n in LENGTHS}
    return pd.concat(parts, names=["length", "index"]).reset_index()


def telling_words(
    texts: Sequence[str], is_member: Sequence[bool] | np.ndarray, n_of_label: int = N_TELLING
) -> pd.DataFrame:
    """The words with the largest weights of a bag of words that learned from all passages.

    Returns:
        ``n_of_label`` words of each label, the largest weight first: is_member (the label that
        the word points to), word, weight (above 0 for members), member_pct and non_member_pct
        (of the passages with that label that contain the word).
    """
    is_member = np.asarray(is_member, bool)
    vectorizer = CountVectorizer(binary=True)
    has_word = vectorizer.fit_transform(texts)
    classifier = LogisticRegression(solver="liblinear", class_weight="balanced")
    classifier.fit(has_word, is_member)
    table = pd.DataFrame({"word": vectorizer.get_feature_names_out()})
    table["weight"] = classifier.coef_[0]
    for name, kind in (("member_pct", is_member), ("non_member_pct", ~is_member)):
        table[name] = 100 * np.asarray(has_word[kind].mean(axis=0)).ravel()
    of_label = {1: table.nlargest(n_of_label, "weight"), 0: table.nsmallest(n_of_label, "weight")}
    return pd.concat(of_label, names=["is_member", None]).droplevel(1).reset_index()


def wikimia_telling_words() -> pd.DataFrame:
    """``telling_words`` of the real WikiMIA, rounded as in the package."""
    table = telling_words(*wikimia_passages(TELLING_LENGTH))
    return table.round({"weight": DECIMALS, "member_pct": 2, "non_member_pct": 2})


def wikimia_blind_table(n_resamples: int = 10_000) -> pd.DataFrame:
    """AUC of the blind baselines on the real WikiMIA, from the scores in the package."""
    of_length = published.wikimia_blind_scores().groupby("length")
    parts = {n: table_of_scores(scored, n_resamples=n_resamples) for n, scored in of_length}
    return pd.concat(parts, names=["length", None]).droplevel(1).reset_index()


def printed_wikimia() -> pd.DataFrame:
    """Tables 1 and 6 as printed: AUC and TPR at 5 % FPR (in percent) on WikiMIA, as text."""
    cells = published.printed_cells()
    cells = cells.query("paper == 'Min-k% Prob' and table in ['Table 1', 'Table 6']")
    setting_method = cells["row"].str.rsplit(", ", n=1, expand=True)
    cells = cells.assign(setting=setting_method[0], method=setting_method[1])
    table = cells.pivot(index=["model", "setting", "method"], columns="metric", values="value")
    renamed = {"auc": "paper_auc", "tpr_at_5_fpr_pct": "paper_tpr"}
    return table.rename(columns=renamed)[[*renamed.values()]].reset_index()


def printed_average() -> pd.DataFrame:
    """Of ``printed_wikimia`` the averages over models, both kinds of passages: index method."""
    printed = printed_wikimia().query("model == 'average'").set_index("method")
    return printed[["paper_auc", "paper_tpr"]]


def with_printed_wikimia(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``auc_tables.auc_rows`` with the paper's average next to each method that it has."""
    return rows.assign(**printed_average().reindex(rows["method"]).set_axis(rows.index))


if __name__ == "__main__":
    scores = wikimia_blind_scores().astype({"is_member": int})
    package = Path(published.__file__).parent
    storage.write_csv(package / published.WIKIMIA_SCORES, scores)
    storage.write_csv(package / published.WIKIMIA_WORDS, wikimia_telling_words())
