"""Where the words and sentences of a text begin and end, in any script.

Classes of characters are Unicode's, as the ``regex`` package knows them: for Python's ``re`` the
vowel signs of Hindi are no part of a word. Some scripts put no space between words (Chinese,
Japanese, Thai, Lao, Khmer, Burmese). Only a dictionary could tell their words apart, so each
letter with its marks is a word.

In text in Latin script the words are those of the papers' code: between spaces where they are
counted, and scikit-learn's where a classifier reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import regex

STRAIGHT_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'"})
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}ーｰ[\p{LB=SA}&&\p{L}]]"
_ONE = rf"{_UNSPACED}\p{{M}}*"
# Marks and joiners follow a letter: those of emoji belong to no word.
_FIRST = rf"[[\p{{L}}\p{{N}}_]--{_UNSPACED}]"
_NEXT = rf"[[\p{{L}}\p{{N}}_\p{{M}}\p{{Join_Control}}]--{_UNSPACED}]"
_RUN = rf"{_FIRST}{_NEXT}*"
_CLOSING = r"[\p{Po}\p{Pe}\p{Pf}]"


def _compiled(pattern: str) -> Any:
    return regex.compile(pattern, regex.VERSION1)  # version 1 has differences of classes


_LETTER, _LATIN = _compiled(r"\p{L}"), _compiled(r"[\p{L}&&\p{Latin}]")
WORD = _compiled(rf"{_ONE}|{_RUN}")
_WORD = _compiled(rf"{_ONE}|{_RUN}(?:'{_RUN})?")
_LONGER_WORD = _compiled(rf"{_ONE}|{_FIRST}{_NEXT}+")
_LONGER_LATIN_WORD = _compiled(r"[\p{L}\p{N}_]{2,}")
_WORD_OR_MARK = _compiled(rf"{_ONE}|{_RUN}|\S")
_LATIN_UNIT = _compiled(r"(\S+)\s*")
_UNIT = _compiled(rf"([\p{{Ps}}\p{{Pi}}]*{_ONE}{_CLOSING}*|[\S--{_UNSPACED}]+)\s*")
# An English mark ends a sentence before a space alone: "3.5". Others need none.
_SENTENCE_END = _compiled(
    r"""[.!?]["'”’)]*(?=\s+\S)|[\p{Sentence_Break=STerm}--[!?]]+["'\p{Pe}\p{Pf}]*(?=\s*\S)"""
)


def is_latin(text: str) -> bool:
    """Whether at least half of a text's letters are Latin ones, with or without accents.

    >>> is_latin("una acción"), is_latin("猫坐在垫子上 cat")
    (True, False)
    """
    if text.isascii():
        return True
    return 2 * len(_LATIN.findall(text)) >= len(_LETTER.findall(text))


def words(text: str) -> list[str]:
    """Lowercased words of a text, in order; "don't" is one word.

    >>> words("Don’t stop: 3.5!"), words("कल काल कुल"), words("猫坐")
    (["don't", 'stop', '3', '5'], ['कल', 'काल', 'कुल'], ['猫', '坐'])
    """
    return _WORD.findall(text.lower().translate(STRAIGHT_QUOTES))


def longer_words(text: str) -> list[str]:
    """Lowercased words of two or more characters, as scikit-learn's vectorizers take them.

    Where no spaces part words, these are letters and, behind all words, pairs of neighbours.

    >>> longer_words("A cat, 3.50"), longer_words("猫坐着")
    (['cat', '50'], ['猫', '坐', '着', '猫坐', '坐着'])
    """
    if is_latin(text):
        return _LONGER_LATIN_WORD.findall(text.lower())
    found = list(_LONGER_WORD.finditer(text.lower()))
    pairs = [one[0] + two[0] for one, two in pairwise(found) if one.end() == two.start()]
    return [match[0] for match in found] + pairs


def words_and_marks(text: str) -> list[str]:
    """Words of a text, and every other character but spaces as one of its own, in order."""
    return _WORD_OR_MARK.findall(text)


def units(text: str) -> list[str]:
    """Words with the marks around them, and the space behind them where the text has one.

    Joined they are the text with single spaces. In Latin script they are what lies between spaces,
    as papers count it (WikiMIA's lengths, snippets of books).

    >>> units("It  rained, twice."), units("猫坐。他说:“好。”")
    (['It ', 'rained, ', 'twice.'], ['猫', '坐。', '他', '说:', '“好。”'])
    """
    text = " ".join(text.split())
    return [match[0] for match in _units_in(text)]


def first_words(text: str, n_words: int) -> str:
    """The first words of a text, at most ``n_words``, with single spaces."""
    return "".join(units(text)[:n_words]).rstrip()


def unit_ends(text: str) -> list[int]:
    """Where :func:`units` end without their spaces, in characters from the text's beginning."""
    return [match.end(1) for match in _units_in(text)]


def _units_in(text: str) -> Iterator[Any]:
    return (_LATIN_UNIT if is_latin(text) else _UNIT).finditer(text)


def sentence_ends(text: str) -> list[int]:
    """Where sentences of a text end before another one begins, as :func:`unit_ends`.

    Every full stop, exclamation or question mark before a space counts, that of an
    abbreviation too.

    >>> sentence_ends("It rained. Dr. No left."), sentence_ends("下雨了。他走了！好。")
    ([10, 14], [4, 8])
    """
    return [match.end() for match in _SENTENCE_END.finditer(text)]
