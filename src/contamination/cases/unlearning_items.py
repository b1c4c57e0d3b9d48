"""The items of an unlearning audit: which are suspected, and what the models write for them.

Items are chunks of a story or questions about it, one row each: text (what is scored), prompt
(what the model is given), reference (what it should not be able to write).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import overlap, scores
from contamination.core.words import units
from contamination.lab.grammar import QUESTION_PROMPT
from contamination.min_k.detect import ppl_and_min_k
from contamination.models.local import CausalLM, complete

STORY, QUESTIONS = "story completion", "question answering"
ITEM_COLUMNS = ["text", "prompt", "reference"]
STORY_METRICS = {"rouge_l": overlap.rouge_l}
ANSWER_METRICS = {"unigram_recall": overlap.unigram_recall}
ANSWER_METRICS |= {"rouge_l_recall": overlap.rouge_l_recall}

# Selectors: the paper's two, by a window of the ratio; then three that each take the share of
# items that Min-k% Prob took in the paper, so that there always are two groups to compare.
MIN_K, PPL = scores.MIN_K, scores.PPL
MIN_K_SHARE = f"{MIN_K}, paper's share"
PPL_SHARE = f"{PPL}, paper's share"
EASIEST = "easiest unseen, paper's share"
# 188 of about 1000 chunks, 103 of 1000 questions: sections 7.2.1 and 7.2.2.
PAPER_SHARES = {STORY: 0.188, QUESTIONS: 0.103}


# Items


def chunk_items(text: str, n_words: int, n_prompt_words: int) -> pd.DataFrame:
    """Consecutive chunks of so many words (512 in the paper); what is left at the end is dropped.

    The prompt is a chunk's first ``n_prompt_words``; 200 in the paper. One row a chunk.

    Raises:
        ValueError: if the text is shorter than a chunk, or the prompt is not part of it.
    """
    if not 0 < n_prompt_words < n_words:
        raise ValueError(f"a prompt needs 1 to {n_words - 1} words of a chunk of {n_words}")
    words = units(text)
    if len(words) < n_words:
        raise ValueError(f"the text has {len(words)} words: ask for chunks of fewer than {n_words}")
    starts = range(0, len(words) - n_words + 1, n_words)
    chunks = [words[start : start + n_words] for start in starts]
    pieces = [(chunk, chunk[:n_prompt_words], chunk[n_prompt_words:]) for chunk in chunks]
    rows = [["".join(part).rstrip() for part in each] for each in pieces]
    return pd.DataFrame(rows, columns=ITEM_COLUMNS)


def question_items(
    questions: Sequence[str], answers: Sequence[str], score_answers: bool = False
) -> pd.DataFrame:
    """Questions as items, columns ``ITEM_COLUMNS``; the answers are the references.

    The paper scores the question without its answer; ``score_answers`` scores both.
    """
    prompts = [QUESTION_PROMPT.format(question=question) for question in questions]
    with_answers = [f"{p} {a}" for p, a in zip(prompts, answers, strict=True)]
    scored = with_answers if score_answers else list(questions)
    return pd.DataFrame({"text": scored, "prompt": prompts, "reference": list(answers)})


# Which items are suspected


def score_ratios(
    texts: Sequence[str],
    original: CausalLM,
    unlearned: CausalLM,
    k_percent: float,
    unseen: CausalLM | None = None,
) -> pd.DataFrame:
    """Scores of items under the model before and after unlearning, and their ratio.

    ``MIN_K`` and ``PPL`` are ratios of unlearned to original (above 1: the text surprises the
    unlearned model more), ``EASIEST`` the Min-k% score under a model that never read the story
    (empty without one).
    """
    before, after = (ppl_and_min_k(lm, texts, k_percent) for lm in (original, unlearned))
    easy = ppl_and_min_k(unseen, texts, k_percent)[MIN_K] if unseen else np.nan
    return (after / before).assign(**{EASIEST: easy})


def selections(
    table: pd.DataFrame, ratio_low: float, ratio_high: float, share: float
) -> dict[str, np.ndarray]:
    """Which items each selector suspects, as booleans.

    ``MIN_K`` and ``PPL`` take the items whose ratio lies in the window, both
    ends included, as the paper does. A ratio of perplexities and one of mean
    log-probabilities do not spread alike, and a window may hold all items or
    none. ``MIN_K_SHARE`` and ``PPL_SHARE`` therefore take a share of the items (at least
    one), those whose ratio is nearest to 1; ``EASIEST`` takes as many again,
    those that a model which never read the story finds least surprising, if there is one.
    """
    n = max(1, round(share * len(table)))
    chosen = {name: table[name].between(ratio_low, ratio_high).to_numpy() for name in (MIN_K, PPL)}
    for name, ratio in ((MIN_K_SHARE, MIN_K), (PPL_SHARE, PPL)):
        chosen[name] = _first(np.abs(np.log(table[ratio].to_numpy())), n)
    if table[EASIEST].notna().all():
        chosen[EASIEST] = _first(-table[EASIEST].to_numpy(), n)
    return chosen


def _first(values: np.ndarray, n: int) -> np.ndarray:
    """Whether an item is among the n with the lowest values."""
    is_chosen = np.zeros(values.size, dtype=bool)
    is_chosen[np.argsort(values, kind="stable")[:n]] = True
    return is_chosen


# What the models write


def sampled(
    lm: CausalLM,
    items: pd.DataFrame,
    n_samples: int,
    max_new_tokens: int,
    seed: int,
    max_batch_tokens: int | None = None,
) -> pd.DataFrame:
    """Completions of the prompts by multinomial sampling, as in the paper (20 of each).

    item (number), sample, reference, completion; items in order.
    """
    table = items.loc[items.index.repeat(n_samples), ["prompt", "reference"]]
    sampling: dict[str, Any] = {
        "temperature": 1.0,
        "seed": seed,
        "max_batch_tokens": max_batch_tokens,
    }
    completions = complete(lm, table["prompt"].tolist(), max_new_tokens, **sampling)
    numbers = {"item": np.repeat(np.arange(len(items)), n_samples)}
    numbers["sample"] = np.tile(np.arange(n_samples), len(items))
    texts = {"reference": table["reference"].to_numpy()}
    texts["completion"] = [text.strip() for text in completions]
    return pd.DataFrame(numbers | texts)


def longest_reference(lm: CausalLM, items: pd.DataFrame) -> int:
    """Tokens of the longest reference with its end token: how long a completion has to be."""
    encoded = lm.tokenizer(items["reference"].tolist(), add_special_tokens=False).input_ids
    return max(map(len, encoded)) + 1


def scored_samples(
    samples: pd.DataFrame, metrics: Mapping[str, Callable[[str, str], float]]
) -> pd.DataFrame:
    """Each completion against its reference: ``samples`` with one more column for each metric."""
    pairs = list(zip(samples["reference"], samples["completion"], strict=True))
    return samples.assign(
        **{name: [metric(*pair) for pair in pairs] for name, metric in metrics.items()}
    )
