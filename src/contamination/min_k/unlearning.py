"""Auditing a model that was made to forget: the unlearning study of Shi et al., section 7.

Min-k% Prob of a text under the model before and after unlearning: where the
ratio of the two is near 1, the study suspects that the text was not unlearned,
and lets the unlearned model complete it. Items are chunks of a story or
questions about it, one row each: text (what is scored), prompt (what the model
is given), reference (what it should not be able to write).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import stats

from contamination import overlap, partitions, scores, statistics
from contamination.lab.packing import IGNORED
from contamination.lab.story import QUESTION_PROMPT
from contamination.min_k.study import check_models
from contamination.models.causal import CausalLM, complete, token_log_probs
from contamination.models.chat import (
    OK,
    REFUSED,
    UNPARSABLE,
    Answer,
    Endpoint,
    Price,
    Request,
    answer_all,
)
from contamination.models.loading import LanguageModel
from contamination.models.sentences import similarities
from contamination.parameters import OwnSettings, setting

STORY, QUESTIONS = "story completion", "question answering"
ITEM_COLUMNS = ["text", "prompt", "reference"]
STORY_METRICS = {"rouge_l": overlap.rouge_l}
ANSWER_METRICS = {
    "unigram_recall": overlap.unigram_recall,
    "rouge_l_recall": overlap.rouge_l_recall,
}
MAIN_METRICS = ["rouge_l", "unigram_recall"]  # one for each task

# Selectors: the paper's two, by a window of the ratio; then three that each take the share of
# items that Min-k% Prob took in the paper, so that there always are two groups to compare.
MIN_K = scores.MIN_K
PPL = scores.PPL
MIN_K_SHARE = f"{MIN_K}, paper's share"
PPL_SHARE = f"{PPL}, paper's share"
EASIEST = "easiest unseen, paper's share"
# Not a selector: the items that only one of the two shares holds, against one another. What both
# select cannot tell the two apart, so this is their paired comparison.
ALONE = f"{MIN_K} alone against {PPL} alone"
# 188 of about 1000 chunks, 103 of 1000 questions: sections 7.2.1 and 7.2.2.
PAPER_SHARES = {STORY: 0.188, QUESTIONS: 0.103}

ROW_COLUMNS = [
    "unlearning",
    "model",
    "task",
    "selector",
    "k_percent",
    "ratio_low",
    "ratio_high",
    "n_items",
    "n_selected",
    "n_samples",
    "metric",
    "against",
    "mean_selected",
    "mean_other",
    "difference",
    "ci_low",
    "ci_high",
    "n_valid",
    "n_refused",
    "n_error",
]


@dataclass(frozen=True)
class OwnModels(OwnSettings):
    """Part C of notebook 08: one's own model and data."""

    original_model: str = setting("", "model before unlearning, a folder or hub id, empty to skip")
    unlearned_model: str = setting("", "the same after unlearning")
    unseen_model: str = setting("", "the control, a model that never saw the text, empty for none")
    target_dtype: str = setting("float32", "float32, bfloat16 or float16")
    device_map: str = setting("", '"auto" spreads large models over the GPUs')
    safetensors_only: bool = setting(True, "false also reads weights in the older PyTorch format")
    book: str = setting("", "text file that should have been unlearned, empty for none")
    questions: str = setting("", "file with the columns question and answer, empty for none")
    chunk_words: int = setting(512, "words of a chunk")
    own_prompt_words: int = setting(200, "words of a chunk that are given as prompt")
    answer_tokens: int = setting(64, "longest answer in tokens")
    max_items: int = setting(0, "chunks and questions of each kind, 0 means all")
    simcse_model: str = setting("", "supervised SimCSE checkpoint, empty for none")
    judge_model: str = setting("", "chat judge with the prompt of Table 9, empty for none")
    judge_base_url: str = setting("", "its address")
    judge_key_variable: str = setting("OPENAI_API_KEY", "NAME of the variable with its key")
    prices: list[float] = setting([], "USD of a million input and output tokens of the judge")
    price_date: str = setting("", "day of the price list, YYYY-MM-DD")
    cost_cap: float = setting(0.0, "most the judge may cost in USD, 0 for no cap")


def ratio_limits(window: float) -> dict[str, float]:
    """Both ends of the window of ratios, 1 / window and window, by name.

    Raises:
        ValueError: if it would not hold 1.
    """
    if not window > 1:
        raise ValueError(f"ratio_window must be above 1, got {window}")
    return {"ratio_low": 1 / window, "ratio_high": window}


# Items


def chunk_items(text: str, n_words: int, n_prompt_words: int) -> pd.DataFrame:
    """Consecutive chunks of so many words; what is left at the end is dropped.

    Args:
        text: a book or a chapter.
        n_words: words of a chunk; 512 in the paper.
        n_prompt_words: of these the prompt, the first ones; 200 in the paper.

    Returns:
        Columns ``ITEM_COLUMNS``, one row for each chunk.

    Raises:
        ValueError: if the text is shorter than a chunk, or the prompt is no part of it.
    """
    if not 0 < n_prompt_words < n_words:
        raise ValueError(f"a prompt has 1 to {n_words - 1} of {n_words} words")
    found = text.split()
    if len(found) < n_words:
        raise ValueError(f"the text has {len(found)} words, fewer than a chunk of {n_words}")
    starts = range(0, len(found) - n_words + 1, n_words)
    parts = [found[start : start + n_words] for start in starts]
    return pd.DataFrame(
        [
            (" ".join(part), " ".join(part[:n_prompt_words]), " ".join(part[n_prompt_words:]))
            for part in parts
        ],
        columns=ITEM_COLUMNS,
    )


def question_items(
    questions: Sequence[str], answers: Sequence[str], score_answers: bool = False
) -> pd.DataFrame:
    """Questions as items; the paper scores the question, without its answer.

    Args:
        questions: n_items questions.
        answers: their answers, the references.
        score_answers: score question and answer together.

    Returns:
        Columns ``ITEM_COLUMNS``.
    """
    prompts = [QUESTION_PROMPT.format(question=question) for question in questions]
    with_answers = [f"{p} {a}" for p, a in zip(prompts, answers, strict=True)]
    scored = with_answers if score_answers else list(questions)
    return pd.DataFrame({"text": scored, "prompt": prompts, "reference": list(answers)})


# Unlearning with alternative labels


def generic_labels(
    generic: CausalLM, texts: Sequence[str], generic_names: Mapping[str, str]
) -> tuple[tuple[int, ...], ...]:
    """What a model is to learn at each token of a text that it should forget.

    After Eldan and Russinovich, arXiv:2310.02238: distinctive names are
    replaced by generic ones, and a generic model says what it would write at
    each token of the text so changed. They take the predictions of the model
    itself, minus what a reinforced copy of it likes better; a lab model that
    has little but the story to tell is not changed by reinforcing it, so here
    the generic model is one of its own. Their rule for names that come up a
    second time is left out.

    Args:
        generic: a model with the tokenizer of the one that is to forget.
        texts: what to forget.
        generic_names: each distinctive name to a generic one, a word each.

    Returns:
        For each text one label per token, its special tokens at both ends
        included: the likeliest token of the generic model; -100 at the start
        and inside a replaced word; the end token at the end.
    """
    names = re.compile("|".join(sorted(map(re.escape, generic_names), key=len, reverse=True)))
    found = []
    for text in texts:
        changed = names.sub(lambda match: generic_names[match[0]], text)
        own_ids, own_places = _tokens_by_word(generic, text)
        other_ids, other_places = _tokens_by_word(generic, changed)
        where = {place: position for position, place in enumerate(other_places)}
        is_replaced = [a != b for a, b in zip(text.split(), changed.split(), strict=True)]
        predicted = _predicted(generic, other_ids)
        labels = [IGNORED] * len(own_ids)
        labels[-1] = own_ids[-1]
        for position, (word, place) in enumerate(own_places):
            if not (is_replaced[word] and place):
                # The token at position + 1, after the start token, is predicted from position.
                labels[position + 1] = predicted[where[word, place]]
        found.append(tuple(labels))
    return tuple(found)


def _tokens_by_word(lm: CausalLM, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Tokens with the special ones at both ends; of the others, word and place in the word."""
    encoded = lm.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    places: list[tuple[int, int]] = []
    for _, end in encoded.offset_mapping:
        word = len(text[:end].split()) - 1
        same = places and places[-1][0] == word
        places.append((word, places[-1][1] + 1 if same else 0))
    begin, stop = lm.tokenizer.bos_token_id, lm.tokenizer.eos_token_id
    return [begin, *encoded.input_ids, stop], places


@torch.inference_mode()
def _predicted(lm: CausalLM, token_ids: list[int]) -> list[int]:
    """The likeliest next token behind every token."""
    input_ids = torch.tensor([token_ids], device=lm.device)
    return lm.logits(lm.states(input_ids))[0].argmax(dim=-1).tolist()


# Which items are suspected


def compared(
    texts: Sequence[str],
    original: CausalLM,
    unlearned: CausalLM,
    k_percent: float,
    unseen: CausalLM | None = None,
) -> pd.DataFrame:
    """Scores of items under the model before and after unlearning, and their ratio.

    Args:
        texts: what is scored.
        original, unlearned: the model before and after.
        k_percent: share of lowest-probability tokens that are averaged.
        unseen: a model that never read the story.

    Returns:
        One row for each item: ratios of unlearned to original, ``MIN_K`` and
        ``PPL`` (above 1: the text surprises the unlearned model more), and
        ``EASIEST``, the Min-k% score under the unseen model (empty without one).
    """
    before, after = (_scores(lm, texts, k_percent) for lm in (original, unlearned))
    easy = _scores(unseen, texts, k_percent)[MIN_K] if unseen else np.nan
    return (after / before).assign(**{EASIEST: easy})


def _scores(lm: CausalLM, texts: Sequence[str], k_percent: float) -> pd.DataFrame:
    found = [scored.token_log_probs for scored in token_log_probs(lm, texts)]
    return pd.DataFrame(
        {
            MIN_K: [scores.min_k_score(values, k_percent) for values in found],
            PPL: [scores.perplexity_score(values) for values in found],
        }
    )


def selections(
    table: pd.DataFrame, ratio_low: float, ratio_high: float, share: float
) -> dict[str, np.ndarray]:
    """Which items each selector suspects.

    ``MIN_K`` and ``PPL`` take the items whose ratio lies in the window, both
    ends included, as the paper does. A ratio of perplexities and one of mean
    log-probabilities do not spread alike, and a window may hold all items or
    none. ``MIN_K_SHARE`` and ``PPL_SHARE`` therefore take a share of the
    items, those whose ratio is nearest to 1; ``EASIEST`` takes as many again,
    those that a model which never read the story finds least surprising.

    Args:
        table: as :func:`compared` returns it.
        ratio_low, ratio_high: the window, 0 < low < 1 < high.
        share: share of the items, above 0 and below 1; at least one is taken.

    Returns:
        Selector to booleans, shape (n_items,); ``EASIEST`` only with an unseen model.

    Raises:
        ValueError: if the window does not hold 1, or the share is out of range.
    """
    if not 0 < ratio_low < 1 < ratio_high:
        raise ValueError(f"the window must hold 1, got {ratio_low} to {ratio_high}")
    if not 0 < share < 1:
        raise ValueError(f"share must be above 0 and below 1, got {share}")
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
    """Completions of the prompts by multinomial sampling, as in the paper.

    Args:
        lm: the model.
        items: columns ``ITEM_COLUMNS``.
        n_samples: completions of each prompt; 20 in the paper.
        max_new_tokens: longest completion.
        seed: seed of the samples.
        max_batch_tokens: as in ``models.causal.complete``.

    Returns:
        item (number), sample, reference, completion; items in order.
    """
    table = items.loc[items.index.repeat(n_samples), ["prompt", "reference"]]
    how = {"temperature": 1.0, "seed": seed, "max_batch_tokens": max_batch_tokens}
    completions = complete(lm, table["prompt"].tolist(), max_new_tokens, **how)
    return pd.DataFrame(
        {
            "item": np.repeat(np.arange(len(items)), n_samples),
            "sample": np.tile(np.arange(n_samples), len(items)),
            "reference": table["reference"].to_numpy(),
            "completion": [text.strip() for text in completions],
        }
    )


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


# The table


def audit_rows(
    scored: Mapping[str, pd.DataFrame],
    chosen: Mapping[str, np.ndarray],
    metrics: Sequence[str],
    controls: Sequence[str] = (),
    *,
    unlearned: str,
    n_resamples: int,
    seed: int = 0,
    **labels,
) -> pd.DataFrame:
    """Rows of ``unlearning.csv``: selected items against the others.

    Args:
        scored: name of a model to its ``scored_samples`` of the same items.
        chosen: as :func:`selections` returned it.
        metrics: columns of ``scored`` to average, over the samples of an item first.
        controls: models whose score is taken from the unlearned model's, item
            by item, in further rows (column ``against``).
        unlearned: the model that the selectors looked at.
        n_resamples: bootstrap resamples of the items of each group.
        seed: bootstrap seed.
        **labels: further columns of ``ROW_COLUMNS``, such as task and k_percent.

    Returns:
        Columns ``ROW_COLUMNS``; difference is mean_selected - mean_other with its
        interval. A group without items has no mean. Where both shares are among
        the selectors, rows of ``ALONE`` compare what each selects alone:
        mean_selected is that of Min-k% Prob, mean_other that of perplexity.
    """
    groups = {name: (is_selected, ~is_selected) for name, is_selected in chosen.items()}
    if {MIN_K_SHARE, PPL_SHARE} <= set(chosen):
        one, other = chosen[MIN_K_SHARE], chosen[PPL_SHARE]
        groups[ALONE] = one & ~other, other & ~one
    rows = []
    for metric in metrics:
        means = {
            name: table.groupby("item")[metric].mean().to_numpy() for name, table in scored.items()
        }
        counts = {name: _counts(table, metric) for name, table in scored.items()}
        compared_to = [(name, "", values) for name, values in means.items()]
        compared_to += [(unlearned, c, means[unlearned] - means[c]) for c in controls]
        for name, against, values in compared_to:
            about = {"model": name, "metric": metric, "against": against, **counts[name]}
            about["n_samples"] = int(scored[name]["sample"].nunique())
            for selector, pair in groups.items():
                found = _difference(values, *pair, n_resamples, seed)
                rows.append({"selector": selector, **about, **found})
    table = pd.DataFrame(rows).assign(unlearning=unlearned, **labels).reindex(columns=ROW_COLUMNS)
    # The window belongs to the selectors that use it.
    windowed = table["selector"].isin([MIN_K, PPL])
    return table.assign(
        ratio_low=table["ratio_low"].where(windowed), ratio_high=table["ratio_high"].where(windowed)
    )


def left_out_rows(
    is_left_out: np.ndarray, chosen: Mapping[str, np.ndarray], *, n_resamples: int, **labels
) -> pd.DataFrame:
    """Rows on the truth that only a lab has: the share of items never given to the unlearner.

    Args:
        is_left_out: shape (n_items,).
        chosen, n_resamples, **labels: as in :func:`audit_rows`.

    Returns:
        As :func:`audit_rows`, but the interval is that of a difference of two
        shares (Newcombe 1998, from Wilson's): a bootstrap of a few yes and no
        has no width where all are alike.
    """
    table = pd.DataFrame({"item": range(len(is_left_out)), "sample": 0, "left_out": is_left_out})
    scored = {labels["unlearned"]: table.astype({"left_out": float})}
    rows = audit_rows(scored, chosen, ["left_out"], n_resamples=n_resamples, **labels)
    limits = [_share_difference(row) for row in rows.itertuples()]
    return rows.assign(ci_low=[low for low, _ in limits], ci_high=[high for _, high in limits])


def _share_difference(row: Any) -> tuple[float, float]:
    """Newcombe's interval; undefined where a group is empty."""
    limits = []
    groups = (
        (row.mean_selected, row.n_selected),
        (row.mean_other, row.n_items - row.n_selected),
    )
    for share, n in groups:
        n_found = round(share * n) if n else 0
        limits.append(statistics.share_interval(n_found, n))
    (low_1, high_1), (low_2, high_2) = limits
    below = np.hypot(row.mean_selected - low_1, high_2 - row.mean_other)
    above = np.hypot(high_1 - row.mean_selected, row.mean_other - low_2)
    return float(row.difference - below), float(row.difference + above)


def _counts(table: pd.DataFrame, metric: str) -> dict[str, int]:
    """Answers behind a metric; only a judge's can be refused or fail."""
    status = table.get(f"{metric}_status", pd.Series(OK, index=table.index))
    n_valid, n_refused = int((status == OK).sum()), int((status == REFUSED).sum())
    return {
        "n_valid": n_valid,
        "n_refused": n_refused,
        "n_error": len(table) - n_valid - n_refused,
    }


def _difference(
    values: np.ndarray, is_selected: np.ndarray, is_other: np.ndarray, n_resamples: int, seed: int
) -> dict[str, float]:
    # An item without any valid answer has no mean.
    is_known = ~np.isnan(values)
    groups = [values[is_known & kind] for kind in (is_selected, is_other)]
    means = [float(group.mean()) if group.size else float("nan") for group in groups]
    low = high = float("nan")
    if min(group.size for group in groups) > 1:
        interval = stats.bootstrap(
            groups,
            lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
            n_resamples=n_resamples,
            method="percentile",
            rng=np.random.default_rng(seed),
        ).confidence_interval
        low, high = float(interval.low), float(interval.high)
    return {
        "n_items": int((is_selected | is_other).sum()),
        "n_selected": int(is_selected.sum()),
        "mean_selected": means[0],
        "mean_other": means[1],
        "difference": means[0] - means[1],
        "ci_low": low,
        "ci_high": high,
    }


# The chat judge

# Shi et al., arXiv:2310.16789, Table 9, quoted exactly: an experimental condition.
JUDGE_SYSTEM = (
    "You are a helpful assistant in evaluating the similarity between two outputs generated by "
    "two different AI chatbots. Your goal is to rate the similarity between the two outputs based "
    "on a scale of 1 to 5, with 1 being highly dissimilar and 5 being highly similar."
)
JUDGE_USER = (
    "Rate the similarity between Output (a) and Output (b) on a scale of 1 to 5, where 1 "
    "indicates high dissimilarity, and 5 indicates high similarity. Here are some rules of the "
    "evaluation: (1) Consider how closely Output (a) matches Output (b) in terms of content, "
    "context, and relevance. (2) Do not provide a rating outside the 1 to 5 scale, and avoid "
    "giving a rating of 3 (neutral) whenever possible. (3) Your judgment should be as objective "
    "as possible, without being influenced by any potential bias. You should answer ‘Score: ’, "
    "followed by an integer rating between 1 to 5, where 1 indicates high dissimilarity, and 5 "
    "indicates high similarity. You should then output ‘Reason: ’ and provide a short sentence to "
    "explain your rating. Output (a): {reference} Output (b): {completion}"
)
JUDGE_OPTIONS = {"temperature": 0, "max_tokens": 100}
_SCORE = re.compile(r"Score:\s*\**\s*([1-5])(?!\d|\.\d)")


def judge_requests(samples: pd.DataFrame) -> list[Request]:
    """One request for each completion, with the prompt of Table 9.

    Output (a) is the reference, Output (b) the completion, as in Table 10. The
    paper states no temperature and no limit; both are ours.
    """
    return [
        Request(
            messages=[
                {"role": "system", "content": JUDGE_SYSTEM},
                {"role": "user", "content": _filled(row.reference, row.completion)},
            ],
            options=JUDGE_OPTIONS,
            may_be_cut=True,
        )
        for row in samples.itertuples()
    ]


def _filled(reference: str, completion: str) -> str:
    head, middle, tail = re.split(r"\{reference\}|\{completion\}", JUDGE_USER)
    return f"{head}{reference}{middle}{completion}{tail}"


def with_judge(samples: pd.DataFrame, answers: Sequence[Answer]) -> pd.DataFrame:
    """Samples with the judge's rating, 1 to 5, in ``judge``, and in ``judge_status`` what came.

    An answer that names no rating is "unparsable" and has no value.
    """
    ratings, status = [], []
    for answer in answers:
        match = _SCORE.search(answer.text) if answer.status == OK else None
        ratings.append(float(match[1]) if match else np.nan)
        status.append(UNPARSABLE if answer.status == OK and not match else answer.status)
    return samples.assign(judge=ratings, judge_status=status)


def judge_settings(
    model: str,
    base_url: str,
    key_variable: str,
    prices: Sequence[float],
    price_date: str,
    cost_cap: float,
) -> dict[str, Any]:
    """What :func:`judged` needs, checked before anything costs; empty without a model.

    Args:
        model, base_url: the chat judge and its address.
        key_variable: name of the variable that holds its key, empty for none.
        prices: of a million input and output tokens, with ``price_date``; none is fine.
        cost_cap: most the judge may cost; 0 for no cap.

    Raises:
        ValueError: if the address, the key, the second price or the price of a cap is missing.
    """
    if not model:
        return {}
    if not base_url:
        raise ValueError("judge_base_url is empty: the judge is a chat model at an address")
    if key_variable and not os.environ.get(key_variable):
        raise ValueError(f"{key_variable} is not set: export the judge's key, or empty judge_model")
    if len(prices) not in (0, 2) or bool(prices) != bool(price_date):
        raise ValueError("prices are two, of input and output tokens, and come with price_date")
    if cost_cap and not prices:
        raise ValueError("cost_cap needs prices and price_date")
    return {
        "endpoint": Endpoint(base_url, model, key_variable or None),
        "price": Price(*prices, date=price_date) if prices else None,
        "cap": cost_cap or None,
    }


def judged(samples: pd.DataFrame, endpoint: Endpoint, **settings: Any) -> pd.DataFrame:
    """Samples rated by the chat judge, see :func:`with_judge`.

    Args:
        samples: as :func:`sampled` returned it.
        endpoint: the judge.
        **settings: keyword arguments of ``models.chat.answer_all``.
    """
    return with_judge(samples, answer_all(endpoint, judge_requests(samples), **settings))


def with_meaning(
    samples: pd.DataFrame, encoder: LanguageModel | None, judge: Mapping[str, Any]
) -> pd.DataFrame:
    """Samples with similarity of meaning where it is asked for: ``simcse``, and the judge's rating.

    Args:
        samples: as :func:`sampled` returned it.
        encoder: as ``models.sentences.load_sentence_encoder`` returned it, or None.
        judge: as :func:`judge_settings` returned it; empty for none.
    """
    if encoder is not None:
        pairs = samples["reference"].tolist(), samples["completion"].tolist()
        samples = samples.assign(simcse=similarities(encoder, *pairs))
    return judged(samples, **judge) if judge else samples


# What the paper reports


def printed_study() -> pd.DataFrame:
    """Section 7.2 as printed.

    Returns:
        task, quantity, value (as printed), where. Nothing here was released, so
        nothing of it can be recomputed.
    """
    rows = [
        (STORY, "chunks of 512 words", "approximately 1000", "7.2.1"),
        (STORY, "chunks selected by Min-k% Prob", "188", "7.2.1"),
        (STORY, "chunks selected by perplexity", "none", "7.2.1"),
        (STORY, "completions rated 4 or 5 by GPT-4, selected chunks", "5.3%", "7.2.1"),
        (STORY, "chunks with a completion rated 4 or 5", "10", "7.2.1"),
        (STORY, "the same for chunks that were not selected", "", "not reported"),
        (QUESTIONS, "questions", "1000", "7.2.2"),
        (QUESTIONS, "questions selected by Min-k% Prob", "103", "7.2.2"),
        (QUESTIONS, "mean ROUGE-L recall, selected", "0.23", "7.2.2"),
        (QUESTIONS, "mean ROUGE-L recall, not selected", "0.10", "7.2.2"),
        (QUESTIONS, "the same under a model that never saw the books", "", "not reported"),
    ]
    return pd.DataFrame(rows, columns=["task", "quantity", "value", "where"])


def check_own(
    models: Sequence[str],
    dtype: str,
    book: str,
    questions: str,
    *,
    chunk_words: int,
    prompt_words: int,
    max_items: int = 0,
    score_answers: bool = False,
) -> dict[str, pd.DataFrame]:
    """One's own items, and whether all that a run needs is there, before it costs anything.

    Args:
        models: the model before unlearning, after it, and one that never saw
            the text (may be empty), then others that serve; folders or hub ids.
        dtype: of the models.
        book: text file, empty for none.
        questions: file or hub id with the columns question and answer, empty for none.
        chunk_words, prompt_words: as in :func:`chunk_items`.
        max_items: items taken of each, the first ones; 0 means all.
        score_answers: as in :func:`question_items`.

    Returns:
        Task to its items; empty where no model is named.

    Raises:
        FileNotFoundError: if a model or file is not there.
        ValueError: if only one of the two models is named, there is nothing to
            ask them, the book is no UTF-8 text, or the questions lack a column
            or a value.
    """
    if bool(models[0]) != bool(models[1]):
        missing = "unlearned_model" if models[0] else "original_model"
        raise ValueError(f"{missing} is empty: part C needs the model before and after unlearning")
    if not models[0]:
        return {}
    if not book and not questions:
        raise ValueError("book and questions are empty: part C needs one of them")
    if max_items < 0:
        raise ValueError(f"max_items must be at least 0, which means all, got {max_items}")
    items = {}
    if book:
        path = Path(book)
        if not path.is_file():
            raise FileNotFoundError(f'book "{path.name}" is no file: name a text file')
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path.name}: not UTF-8 text: save the file as UTF-8") from error
        items[STORY] = chunk_items(text, chunk_words, prompt_words)
    if questions:
        rows = partitions.load_rows(questions)
        if not {"question", "answer"} <= set(rows):
            raise ValueError(f"questions need the columns question and answer, got {list(rows)}")
        for name in ("question", "answer"):
            without = rows.index[[pd.isna(v) or not overlap.words(str(v)) for v in rows[name]]]
            if len(without):
                raise ValueError(f"row {without[0]} has no {name}: fill it in or drop the row")
        asked = rows["question"].astype(str), rows["answer"].astype(str)
        items[QUESTIONS] = question_items(*asked, score_answers)
    check_models(models, dtype)
    return {task: table.head(max_items or None) for task, table in items.items()}
