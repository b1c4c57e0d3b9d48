"""Auditing a model that was made to forget: the unlearning study of Shi et al., section 7.

Min-k% Prob of a text under the model before and after unlearning: where the
ratio of the two is near 1, the study suspects that the text was not unlearned,
and lets the unlearned model complete it. Items are chunks of a story or
questions about it, one row each: text (what is scored), prompt (what the model
is given), reference (what it should not be able to write).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination import overlap, scores, statistics
from contamination.lab.story import QUESTION_PROMPT
from contamination.models.causal import CausalLM, complete, token_log_probs
from contamination.models.chat import OK, REFUSED

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
