"""The real WikiMIA: its passages, what their words alone say, and what Shi et al. print.

``python -m contamination.min_k.wikimia_tables`` writes the blind scores of every passage, and
the words that tell the two kinds apart, into the package, so that neither needs the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from contamination.core import statistics, storage
from contamination.core.blind import table_of_scores
from contamination.core.blind_scores import fold_scores
from contamination.core.verdicts import CLAIMS, verdict_column
from contamination.data import partitions, published
from contamination.data.sources import source_file
from contamination.min_k.auc_tables import auc_rows, select

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
        of_read = {0: is_read[keep]}
        tables = [{0: select(table, keep)} for table in (after, before)]
        setting = f"copies of {AGE[read]}, none of {AGE[unread]}"
        about: dict[str, Any] = labels | {
            "setting": setting,
            "before": tables[1],
            "n_resamples": n_resamples,
        }
        rows = auc_rows(tables[0], of_read, **about)
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

    Args:
        texts: n_passages passages.
        is_member: their membership, shape (n_passages,).
        n_of_label: words to keep for each label, the largest weight first.

    Returns:
        is_member (the label that the word points to), word, weight (above 0 for members),
        member_pct and non_member_pct: of the passages with that label that contain the word.
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


def side_by_side(words: pd.DataFrame) -> pd.DataFrame:
    """``telling_words`` with one row for each rank: columns of members, then of non-members.

    The columns of non-members end in ``_0``.
    """
    is_member = words["is_member"].astype(bool)
    parts = [words[kind].drop(columns="is_member") for kind in (is_member, ~is_member)]
    of_members, of_others = (part.reset_index(drop=True) for part in parts)
    return pd.concat([of_members, of_others.add_suffix("_0")], axis=1)


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
    """Rows of ``auc_tables.auc_rows`` with the paper's average beside each method that it has."""
    return rows.assign(**printed_average().reindex(rows["method"]).set_axis(rows.index))


if __name__ == "__main__":
    scores = wikimia_blind_scores().astype({"is_member": int})
    package = Path(published.__file__).parent
    storage.write_csv(package / published.WIKIMIA_SCORES, scores)
    storage.write_csv(package / published.WIKIMIA_WORDS, wikimia_telling_words())
