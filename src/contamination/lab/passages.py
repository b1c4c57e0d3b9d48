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

import re
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from contamination.lab.docstrings import version_order
from contamination.overlap import NGRAM_WORDS, ngrams

LENGTHS = (32, 64, 128, 256)
SHARES = {"background": 0.4, "member": 0.2, "non-member": 0.2, "held-out": 0.2}
COLUMNS = ["role", "package", "page", "family", "version", "n_words", "text"]

_WORD = re.compile(r"\w+")


def split_by_family(
    docstrings: pd.DataFrame, seed: int, shares: Mapping[str, float] = SHARES
) -> pd.DataFrame:
    """Random membership without leakage: whole families, no 13-gram twice.

    Families are dealt to the background first. Every other docstring then gives
    its longest passage (256, 128, 64 or 32 words, the earliest such window)
    that shares no 13-gram with the background or with a passage already taken;
    the order is random and knows nothing of membership, so that the loss is the
    same for all roles. Families are dealt to the roles last.

    Args:
        docstrings: as :func:`contamination.lab.docstrings.collect_docstrings` returns.
        seed: of the deal; the background depends on it alone.
        shares: of the families per role, ``background`` among them, sum 1.

    Returns:
        Columns ``role``, ``package``, ``page``, ``family``, ``version``,
        ``n_words``, ``text``. Background rows hold whole docstrings.

    Raises:
        ValueError: if the shares do not sum to 1 or name no background.
    """
    background, pool = _background_and_pool(docstrings, seed, shares)
    passages = clean_passages(pool, background["text"], seed)
    roles = [role for role in shares if role != "background"]
    weights = np.array([shares[role] for role in roles])
    families = np.sort(pool["family"].unique())
    dealt = np.random.default_rng([seed, 2]).choice(
        roles, size=len(families), p=weights / weights.sum()
    )
    passages["role"] = passages["family"].map(dict(zip(families, dealt, strict=True)))
    return _stack(background, passages)


def split_by_version(
    docstrings: pd.DataFrame, seed: int, shares: Mapping[str, float] = SHARES
) -> pd.DataFrame:
    """Membership by date: of each package, the older dated pages are members.

    Passages are cleaned as in :func:`split_by_family`, so that the groups differ
    in date and not by leakage. The cut of a package is the version that comes
    closest to halving its passages; a version never falls on both sides.

    Returns:
        Columns as in :func:`split_by_family`; roles ``background``, ``member``,
        ``non-member``.
    """
    background, pool = _background_and_pool(docstrings, seed, shares)
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


def split_raw(
    docstrings: pd.DataFrame, seed: int, shares: Mapping[str, float] = SHARES
) -> pd.DataFrame:
    """Random membership as it is often made: page by page, repeated text left in.

    Returns:
        Columns as in :func:`split_by_family`; a passage is the beginning of its
        docstring, 256 words at most.
    """
    background, pool = _background_and_pool(docstrings, seed, shares)
    passages = pool[pool["n_words"] >= min(LENGTHS)].copy()
    passages["n_words"] = [
        max(length for length in LENGTHS if length <= n_words) for n_words in passages["n_words"]
    ]
    passages["text"] = [
        first_words(text, n_words)
        for text, n_words in zip(passages["text"], passages["n_words"], strict=True)
    ]
    roles = [role for role in shares if role != "background"]
    weights = np.array([shares[role] for role in roles])
    generator = np.random.default_rng([seed, 2])
    passages["role"] = generator.choice(roles, size=len(passages), p=weights / weights.sum())
    return _stack(background, passages)


def passages_of_length(
    passages: pd.DataFrame, n_words: int, max_per_family: int | None = None
) -> pd.DataFrame:
    """The first ``n_words`` words of every passage that holds as many; background left out.

    With ``max_per_family`` the first so many of each family are kept. Passages of one
    family resemble one another, so an interval that treats them as independent is too
    narrow where families were dealt whole; with 1 it is not.

    Raises:
        ValueError: if no passage is that long.
    """
    long_enough = (passages["n_words"] >= n_words) & (passages["role"] != "background")
    if not long_enough.any():
        raise ValueError(f"no passage has {n_words} words: lengths are {LENGTHS}")
    chosen = passages[long_enough]
    if max_per_family is not None:
        chosen = chosen.groupby(["role", "family"], sort=False).head(max_per_family)
    chosen = chosen.reset_index(drop=True)
    chosen["text"] = [first_words(text, n_words) for text in chosen["text"]]
    return chosen.assign(n_words=n_words)


def first_words(text: str, n_words: int) -> str:
    """The first words of a text, joined by single spaces."""
    return " ".join(text.split()[:n_words])


def clean_passages(docstrings: pd.DataFrame, background: Iterable[str], seed: int) -> pd.DataFrame:
    """At most one passage per docstring, such that no 13-gram occurs in two places.

    Args:
        docstrings: at least ``text`` and ``n_words``.
        background: texts whose 13-grams no passage may hold.
        seed: of the order in which docstrings are served.

    Returns:
        The docstrings that gave a passage, with the passage's ``text`` and ``n_words``.
    """
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
    pieces = [_WORD.findall(word.lower()) for word in words]
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


def _background_and_pool(
    docstrings: pd.DataFrame, seed: int, shares: Mapping[str, float]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    if "background" not in shares or not np.isclose(sum(shares.values()), 1):
        raise ValueError(f"shares must name background and sum to 1, got {dict(shares)}")
    families = np.sort(docstrings["family"].unique())
    n_background = round(shares["background"] * len(families))
    dealt = np.random.default_rng([seed, 0]).permutation(families)[:n_background]
    in_background = docstrings["family"].isin(dealt)
    return docstrings[in_background].assign(role="background"), docstrings[~in_background]


def _stack(background: pd.DataFrame, passages: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([background[COLUMNS], passages[COLUMNS]], ignore_index=True)
