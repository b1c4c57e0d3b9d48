"""How much two texts share: ROUGE-L, BLEURT, normalised equality, containment, shared words."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from contamination.core.words import STRAIGHT_QUOTES, WORD, is_latin, words

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer

NGRAM_WORDS = 13  # the n-gram length by which GPT-3 and most later work define overlap


@cache
def _rouge_scorer(is_latin: bool = True) -> RougeScorer:
    from rouge_score.rouge_scorer import RougeScorer

    # The tokenizer of ``rouge_score`` drops all letters but a to z.
    tokenizer = None if is_latin else SimpleNamespace(tokenize=words)
    return RougeScorer(["rougeL"], use_stemmer=False, tokenizer=tokenizer)


def rouge_l(reference: str, candidate: str) -> float:
    """ROUGE-L F-measure without stemming, 0 to 1, as Time Travel computes it.

    Where most letters of the reference are not Latin ones, which the usual
    tokenizer drops, the words are those of ``core.words``. An empty candidate scores 0;
    a reference without a word raises ValueError, since no completion could match it.
    """
    return float(_rouge(reference, candidate).fmeasure)


def rouge_l_recall(reference: str, candidate: str) -> float:
    """ROUGE-L recall, 0 to 1: words in common order over the reference's; else as rouge_l."""
    return float(_rouge(reference, candidate).recall)


def _rouge(reference: str, candidate: str) -> Any:
    if not words(reference):
        raise ValueError(f"the reference holds no word to match: {reference!r}")
    return _rouge_scorer(is_latin(reference)).score(reference, candidate)["rougeL"]


JOINED_AS_PAPER, JOINED_AS_CODE = "paper", "code"


def bleurt_texts(
    first_piece: str,
    second_piece: str,
    completion: str,
    *,
    is_pair: bool,
    is_mid_sentence: bool,
    joining: str = JOINED_AS_PAPER,
) -> tuple[str, str]:
    """Reference and candidate for BLEURT, which rates fluency and so wants whole sentences.

    Time Travel, section 4, joins both with the first piece where the cut falls
    inside a sentence; the authors' code (``joining`` "code") does it for every task but
    sentence pairs. ValueError for another ``joining``.
    """
    if joining not in (JOINED_AS_PAPER, JOINED_AS_CODE):
        raise ValueError(f'joining must be "paper" or "code", got "{joining}"')
    if is_pair or (joining == JOINED_AS_PAPER and not is_mid_sentence):
        return second_piece, completion
    return f"{first_piece} {second_piece}", f"{first_piece} {completion}"


def normalised(text: str) -> str:
    """A text without what typing alone changes; two that agree in this form count as equal.

    Unicode NFKC, straight quotes, lowercase, single spaces, no full stop at the end.
    """
    text = unicodedata.normalize("NFKC", text).translate(STRAIGHT_QUOTES).lower()
    return " ".join(text.split()).rstrip(" .。।۔")


def is_equal(reference: str, candidate: str) -> bool:
    """Whether two texts are equal once normalised."""
    return normalised(reference) == normalised(candidate)


def is_contained(reference: str, candidate: str) -> bool:
    """Whether the completion holds the whole reference, whatever it goes on to say."""
    return normalised(reference) in normalised(candidate)


def word_overlap(first: str, second: str) -> float:
    """Share of words two texts have in common, F-measure over word counts, 0 to 1.

    >>> word_overlap("a b c", "a b d d")
    0.5714285714285714
    """
    first_counts, second_counts = Counter(words(first)), Counter(words(second))
    total = first_counts.total() + second_counts.total()
    return 2 * (first_counts & second_counts).total() / total if total else 0.0


def unigram_recall(reference: str, candidate: str) -> float:
    """Share of the reference's words that the candidate holds too, 0 to 1.

    The unlearning study of Shi et al., arXiv:2310.16789, defines its answer
    metric this way and calls it ROUGE-L recall. ValueError if the reference holds no word.
    """
    reference_counts = Counter(words(reference))
    if not reference_counts:
        raise ValueError(f"the reference holds no word to recall: {reference!r}")
    return (reference_counts & Counter(words(candidate))).total() / reference_counts.total()


def ngrams(text: str, n: int = NGRAM_WORDS) -> set[tuple[str, ...]]:
    """All runs of n words of a text, lower case, without punctuation."""
    found = WORD.findall(text.lower())
    return {tuple(found[start : start + n]) for start in range(len(found) - n + 1)}


def ngram_overlap_share(
    texts: Iterable[str], reference: Iterable[str], n: int = NGRAM_WORDS
) -> float:
    """Share of texts, 0 to 1, that hold a run of n words which the reference holds too.

    Texts of fewer than n words do not count; NaN without any longer one.

    >>> ngram_overlap_share(["the cat sat", "a dog ran"], ["So the cat sat down."], n=3)
    0.5
    """
    known = set().union(*(ngrams(text, n) for text in reference))
    asked = [grams for grams in (ngrams(text, n) for text in texts) if grams]
    if not asked:
        return float("nan")
    return sum(not grams.isdisjoint(known) for grams in asked) / len(asked)
