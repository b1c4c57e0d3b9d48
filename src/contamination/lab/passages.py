"""Docstring passages split into members, non-members, held-out ones and background.

Three splits share one background, so that one base model serves them all:

* :func:`split_by_family`, membership assigned at random, whole modules at a
  time, after every passage that repeats 13 words of another has been dropped:
  membership is exactly the exposure in training;
* :func:`split_by_version`, older passages are members, as WikiMIA's are
  (Shi et al., arXiv:2310.16789, Section 2): the label follows the date;
* :func:`split_raw`, membership assigned at random page by page and nothing
  dropped: what leaks from members into non-members shows.

As in WikiMIA, one passage serves every length: passages of L words are the
first L words of those that hold as many (:func:`passages_of_length`), and a
model is trained on the whole passage.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from contamination.core import caches
from contamination.core.overlap import NGRAM_WORDS, ngrams
from contamination.core.words import WORD, first_words
from contamination.lab.docstrings import hash_of_table, version_order

LENGTHS = (32, 64, 128, 256)
SHARES = {"background": 0.4, "member": 0.2, "non-member": 0.2, "held-out": 0.2}
COLUMNS = ["role", "package", "page", "family", "version", "n_words", "text"]

# Raise it when the code below or ``overlap.ngrams`` changes which passages are taken.
PASSAGES_VERSION = 1


def split_by_family(docstrings: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Random membership without leakage: whole families, no 13-gram twice.

    Families are dealt to the background first. Every other docstring then gives its longest
    passage (256, 128, 64 or 32 words, the earliest such window) that shares no 13-gram with
    the background or with a passage already taken; the order is random and knows nothing of
    membership, so that the loss is the same for all roles. Families are dealt to the roles
    last. Seeds and docstrings (``collect_docstrings``) decide all; the background depends on
    the seed alone.

    Returns:
        ``COLUMNS``; background rows hold whole docstrings.
    """
    background, pool = _background_and_pool(docstrings, seed)
    passages = clean_passages(pool, background["text"], seed)
    families = np.sort(pool["family"].unique())
    roles = dict(zip(families, _drawn_roles(len(families), seed), strict=True))
    passages["role"] = passages["family"].map(roles)
    return _stack(background, passages)


def split_by_version(docstrings: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Membership by date: of each package, the older dated pages are members.

    Passages are cleaned as in :func:`split_by_family`, so that the groups differ in date and
    not by leakage. The cut of a package is the version that comes closest to halving its
    passages; a version never falls on both sides.
    """
    background, pool = _background_and_pool(docstrings, seed)
    dated = pool[pool["version"].notna()]
    passages = clean_passages(dated, background["text"], seed)
    for _, group in passages.groupby("package"):
        order = group["version"].map(version_order)
        cuts = sorted(set(order))
        n_older = [sum(version <= cut for version in order) for cut in cuts]
        cut = cuts[int(np.argmin(np.abs(np.array(n_older) - len(group) / 2)))]
        is_older = np.array([version <= cut for version in order])
        passages.loc[group.index, "role"] = np.where(is_older, "member", "non-member")
    return _stack(background, passages)


def split_raw(docstrings: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Random membership as it is often made: page by page, repeated text left in.

    A passage is the beginning of its docstring, 256 words at most.
    """
    background, pool = _background_and_pool(docstrings, seed)
    passages = pool[pool["n_words"] >= min(LENGTHS)].copy()
    passages["n_words"] = [
        max(length for length in LENGTHS if length <= n_words) for n_words in passages["n_words"]
    ]
    passages["text"] = [
        first_words(text, n_words)
        for text, n_words in zip(passages["text"], passages["n_words"], strict=True)
    ]
    passages["role"] = _drawn_roles(len(passages), seed)
    return _stack(background, passages)


def passages_of_length(passages: pd.DataFrame, n_words: int) -> pd.DataFrame:
    """The first ``n_words`` words of every passage that holds as many; background left out."""
    long_enough = (passages["n_words"] >= n_words) & (passages["role"] != "background")
    if not long_enough.any():
        raise ValueError(f"no passage has {n_words} words: lengths are {LENGTHS}")
    chosen = passages[long_enough].reset_index(drop=True)
    chosen["text"] = [first_words(text, n_words) for text in chosen["text"]]
    return chosen.assign(n_words=n_words)


def clean_passages(docstrings: pd.DataFrame, background: Iterable[str], seed: int) -> pd.DataFrame:
    """At most one passage per docstring, such that no 13-gram occurs in two places.

    No passage holds a 13-gram of a background text; the seed is of the order in which
    docstrings are served. The docstrings that gave a passage, with its text and n_words; some
    seconds, then cached.
    """
    background = list(background)
    inputs = [hash_of_table(docstrings), background, seed, LENGTHS, NGRAM_WORDS, np.__version__]

    def passages() -> pd.DataFrame:
        return _clean_passages(docstrings, background, seed)

    return caches.cached_table("lab", "passages", PASSAGES_VERSION, inputs, passages)


def _clean_passages(docstrings: pd.DataFrame, background: list[str], seed: int) -> pd.DataFrame:
    taken = set().union(*(ngrams(text) for text in background))
    chosen: dict[int, tuple[int, str]] = {}
    order = np.random.default_rng([seed, 1]).permutation(len(docstrings))
    texts = docstrings["text"].to_numpy()
    for row in order:
        passage = _longest_clean_window(texts[row].split(), taken)
        if passage:
            chosen[row] = (len(passage), " ".join(passage))
            taken |= ngrams(chosen[row][1])
    kept = sorted(chosen)
    result = docstrings.iloc[kept].reset_index(drop=True)
    result["n_words"] = [chosen[row][0] for row in kept]
    result["text"] = [chosen[row][1] for row in kept]
    return result


def _longest_clean_window(words: list[str], taken: set[tuple[str, ...]]) -> list[str]:
    """Earliest window of the greatest length without a taken 13-gram; empty if there is none."""
    pieces = [WORD.findall(word.lower()) for word in words]
    tokens = [token for piece in pieces for token in piece]
    # first_token[i] is where word i begins, in tokens.
    first_token = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    is_taken = [
        tuple(tokens[start : start + NGRAM_WORDS]) in taken
        for start in range(len(tokens) - NGRAM_WORDS + 1)
    ]
    n_taken = np.concatenate([[0], np.cumsum(is_taken)]).astype(int)
    for length in sorted(LENGTHS, reverse=True):
        starts = np.arange(len(words) - length + 1)
        if not len(starts):
            continue
        begin = np.minimum(first_token[starts], len(is_taken))
        end = np.clip(first_token[starts + length] - NGRAM_WORDS + 1, begin, len(is_taken))
        clean = np.flatnonzero(n_taken[end] == n_taken[begin])
        if len(clean):
            return words[clean[0] : clean[0] + length]
    return []


def _background_and_pool(docstrings: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    families = np.sort(docstrings["family"].unique())
    n_background = round(SHARES["background"] * len(families))
    dealt = np.random.default_rng([seed, 0]).permutation(families)[:n_background]
    in_background = docstrings["family"].isin(dealt)
    return docstrings[in_background].assign(role="background"), docstrings[~in_background]


def _drawn_roles(n: int, seed: int) -> np.ndarray:
    roles = [role for role in SHARES if role != "background"]
    weights = np.array([SHARES[role] for role in roles])
    return np.random.default_rng([seed, 2]).choice(roles, size=n, p=weights / weights.sum())


def _stack(background: pd.DataFrame, passages: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([background[COLUMNS], passages[COLUMNS]], ignore_index=True)
