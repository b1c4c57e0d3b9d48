"""Answers to word problems: exact match, the released scorer's rules, their likelihood."""

from __future__ import annotations

import re
from itertools import takewhile
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import scores
from contamination.dice.mixtures import Problems, prompts_of
from contamination.models.local import CausalLM, complete, token_log_probs

LOWERCASE = "Lowercase PPL"  # as Table 2 names it
MIN_K = "Min-k Prob"
BASELINES = (scores.ZLIB, scores.PPL, LOWERCASE, MIN_K)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?|-?\.\d+")
_DIGITS = re.compile(r"\d[\d.]*")
# Of LaTeX, in which the answers of MATH are written.
_SPACING = re.compile(r"\\(?:left|right|displaystyle)\b|\\[,;! ]")
_WORDS = re.compile(r"\\(?:text|mathrm|mbox)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]+)\}\s*\{([^{}]+)\}")
_BATCH_TOKENS = 16_384  # completions are short: few large batches


def parse_answer(text: str) -> float | None:
    """The answer a solution ends with: last number behind ``####``, else of the last line.

    >>> parse_answer("2 - 5 = -3\\n#### -3"), parse_answer("so $1,200.50 in all"), parse_answer("?")
    (-3.0, 1200.5, None)
    """
    tail = _tail(text)
    # A minus between two numbers is a difference, not a sign.
    numbers = _NUMBER.findall(re.sub(r"(?<=[\d)])\s*-\s*", " ", tail.replace("$", "")))
    return float(numbers[-1].replace(",", "")) if numbers else None


def _tail(text: str) -> str:
    return text.split("####")[1] if "####" in text else text.strip().split("\n")[-1]


def is_right(completion: str, answer: str) -> bool:
    """Whether both solutions end with the same number, or with the same words behind ``####``.

    A fraction and a power of ten are right as a number or as written. ValueError if the answer
    ends with nothing.
    """
    expected = parse_answer(answer)
    if "####" in answer and not is_plain_number(answer):
        wanted = cleaned(final_answer(answer))
        if not wanted:
            raise ValueError(f"the answer ends with nothing: {answer[:60]!r}")
        said = cleaned(final_answer(completion))
        value = _value(wanted)
        if value is not None and value in (_value(said), parse_answer(completion)):
            return True
        return re.search(rf"(?<![\w.]){re.escape(wanted)}$", said) is not None
    if expected is None:
        raise ValueError(f"the answer ends with no number: {answer[:60]!r}")
    return parse_answer(completion) == expected


def is_plain_number(answer: str) -> bool:
    """Whether nothing but one number stands behind ``####``, which all of the paper's rules read.

    >>> is_plain_number("#### $1,200"), is_plain_number("#### 1/2"), is_plain_number("#### yes")
    (True, False, False)
    """
    tail = answer.split("####")[1] if "####" in answer else answer
    tail = tail.strip().replace("$", "").replace(",", "")
    try:
        return float(tail) == parse_answer(answer)
    except ValueError:
        return False


def final_answer(text: str) -> str:
    """The line behind ``####``, else the last line."""
    if "####" in text:
        return text.split("####")[1].strip().split("\n")[0]
    return text.strip().split("\n")[-1]


def cleaned(text: str) -> str:
    r"""A short answer as answers are compared: small letters, no marks of LaTeX, no full stop.

    >>> cleaned(r"$\dfrac{1}{2}$."), cleaned(r"\text{(B)}  "), cleaned("2:30 P.M.")
    ('1/2', '(b)', '2:30 p.m')
    """
    text = _SPACING.sub("", text.replace("$", "").replace(r"\%", ""))
    text = _FRACTION.sub(r"\1/\2", _WORDS.sub(r"\1", text))
    return " ".join(text.lower().split()).removesuffix(".")


def _value(text: str) -> float | None:
    """The number that a cleaned answer is, also as a fraction or a power of ten."""
    over, _, under = text.replace(",", "").partition("/")
    try:
        return float(over) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        return None


def parse_released(text: str) -> float | None:
    """The answer by the rules of the released code, for comparison with printed numbers.

    They drop minus signs, and when the last number ends the text they take an
    earlier number's end for its own and find nothing.
    """
    tail = _tail(text).split("\n\n")[0].replace(",", "")
    matches = list(_DIGITS.finditer(tail))
    if not matches:
        return None
    ended = [match.end() for match in matches if match.end() < len(tail)]
    number = tail[matches[-1].start() : ended[-1] if ended else len(tail)].removesuffix(".")
    try:
        return float(number)
    except ValueError:
        return None


def is_right_released(completion: str, answer: str) -> bool:
    """Exact match by the released rules, under which two failed parses agree."""
    return parse_released(completion) == parse_released(answer)


def accuracy_row(lm: CausalLM, problems: Problems, max_new_tokens: int) -> dict:
    """Accuracy on one set of problems, greedily decoded, and the likelihood of the right answers.

    0 new tokens leave the accuracy empty, for models that cannot calculate. n_valid counts
    completions that end with a number, or with anything if the right answer is none;
    answer_log_prob is the mean over problems of the mean log-probability of a token, nats.
    """
    row: dict[str, Any] = {"n": len(problems), "n_valid": None}
    row |= {"accuracy_pct": None, "accuracy_released_rules_pct": None}
    if max_new_tokens:
        completions = answer(lm, problems, max_new_tokens)
        pairs = list(zip(completions, problems["answer"], strict=True))
        row["n_valid"] = sum(_has_answer(*pair) for pair in pairs)
        row["accuracy_pct"] = 100 * fmean(is_right(*pair) for pair in pairs)
        row["accuracy_released_rules_pct"] = 100 * fmean(is_right_released(*pair) for pair in pairs)
    means = [float(values.mean()) for values in answer_log_probs(lm, problems)]
    return row | {"answer_log_prob": fmean(means)}


def _has_answer(completion: str, answer: str) -> bool:
    if "####" in answer and not is_plain_number(answer):
        return bool(cleaned(final_answer(completion)))
    return parse_answer(completion) is not None


def answer(lm: CausalLM, problems: Problems, max_new_tokens: int, **sampling: Any) -> list[str]:
    """Completions of the problems' prompts, greedy or sampled, as ``causal.complete``."""
    limits: dict[str, Any] = {"max_new_tokens": max_new_tokens, "max_batch_tokens": _BATCH_TOKENS}
    return complete(lm, prompts_of(problems), **limits, **sampling)


def answer_log_probs(lm: CausalLM, problems: Problems) -> list[np.ndarray]:
    """Log-probabilities of the tokens of each right answer, given its prompt, nats."""
    prompts = prompts_of(problems)
    texts = [prompt + text for prompt, text in zip(prompts, problems["answer"], strict=True)]
    scores_of = token_log_probs(lm, texts, max_batch_tokens=_BATCH_TOKENS)
    results = []
    for prompt, scored in zip(prompts, scores_of, strict=True):
        context = lm.tokenizer(prompt, add_special_tokens=False).input_ids
        whole = scored.token_ids.tolist()
        # The first token of a text may be unscored; both lists end together.
        offset = scored.n_tokens - len(whole)
        # A merge across the border would make its token part of the answer.
        same = zip(context[offset:], whole[:-1], strict=False)
        n_shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], same))
        results.append(scored.token_log_probs[n_shared:])
    return results


def baseline_scores(lm: CausalLM, problems: Problems) -> pd.DataFrame:
    """Table 2's baselines on each right answer, given the question; higher = more likely seen."""
    as_written = answer_log_probs(lm, problems)
    lower = answer_log_probs(lm, problems.assign(answer=problems["answer"].str.lower()))
    rows = [
        {
            scores.ZLIB: scores.zlib_score(values, text),
            scores.PPL: scores.perplexity_score(values),
            LOWERCASE: scores.lowercase_score(values, lowered),
            MIN_K: scores.min_k_score(values),
        }
        for values, lowered, text in zip(as_written, lower, problems["answer"], strict=True)
    ]
    return pd.DataFrame(rows, columns=list(BASELINES))
