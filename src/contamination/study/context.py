"""Detectors that compare a row after other rows with the row alone: CoDeC and ReCaLL.

Both ask what rows of the same kind, put in front, do to the log-probabilities of a row. Rows
stand under the header of their dataset, as a model reads them, one empty line apart; the header
is context in either case and never scored. The rows in front are ``Rows.context``, of which none
is tested.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contamination.dcq.contaminating import training_texts
from contamination.models.loading import CausalLM
from contamination.models.local import encode, token_log_probs
from contamination.study.interface import LOG_PROBABILITIES, Detector, Rows

SEPARATOR = "\n\n"
N_EXAMPLES = 1  # rows in front of a row for CoDeC, as in a port of the authors' demonstration
N_SKIPPED = 10  # first tokens of a row that CoDeC does not score, likewise
# Rows of ReCaLL's prefix: the authors' example. Their default of 12 exceeds a context of 1,024.
N_SHOTS = 7


def codec_score(alone: np.ndarray, in_context: np.ndarray, n_skipped: int = N_SKIPPED) -> float:
    """Mean log-probability of a row alone minus that of the row after other rows, nats a token.

    CoDeC, Zawalski et al., arXiv:2510.27055. Higher means more likely read: rows of its kind
    teach a model little about a row that it remembers, and disturb the memory. Both arrays are
    natural-log probabilities of the same tokens, shape (n_tokens,); the first ``n_skipped`` are
    left out. The paper keeps the sign alone, and the share of rows above 0 is its score of a
    dataset; the difference itself ranks rows.

    ValueError if shapes differ or no token is left.

    >>> codec_score(np.array([-9.0, -1.0, -1.0]), np.array([-1.0, -2.0, -3.0]), n_skipped=1)
    1.5
    """
    _check(alone, in_context, n_skipped)
    return float(np.mean(alone[n_skipped:]) - np.mean(in_context[n_skipped:]))


def recall_score(alone: np.ndarray, in_context: np.ndarray) -> float:
    """Log-likelihood of a row after rows that were not read, over that of the row alone.

    ReCaLL, Xie et al., arXiv:2406.15968: LL(x | P) / LL(x), both negative, so that the ratio is
    at least 0. Higher means more likely read: a prefix of unread rows takes more from a row
    that was read. Arrays as in :func:`codec_score`.

    ValueError if shapes differ, no token is scored or the row alone has a log-likelihood of 0.

    >>> recall_score(np.array([-1.0, -1.0]), np.array([-1.0, -2.0]))
    1.5
    """
    _check(alone, in_context)
    if not np.any(alone):
        raise ValueError("the row alone has a log-likelihood of 0, no ratio to it is defined")
    return float(np.mean(in_context) / np.mean(alone))


def _check(alone: np.ndarray, in_context: np.ndarray, n_skipped: int = 0) -> None:
    if np.shape(alone) != np.shape(in_context):
        raise ValueError(
            f"{np.size(alone)} tokens alone but {np.size(in_context)} in context: "
            "they must be the same tokens"
        )
    if np.size(alone) <= n_skipped:
        raise ValueError(f"a row of {np.size(alone)} tokens has none after the first {n_skipped}")


def codec_scores(lm: CausalLM, rows: Rows) -> np.ndarray:
    """CoDeC of each row, shape (n_rows,), after a row drawn from the context for each.

    The authors draw from the tested dataset itself, where read rows may stand in front of
    others; here no tested row does. ValueError as in :func:`codec_score`, if there are too few
    rows of context, or a row does not fit into the model's context with them.
    """
    generator = np.random.default_rng([rows.seed, len(rows.context)])
    drawn = [
        generator.choice(len(rows.context), N_EXAMPLES, replace=False)
        for _ in _enough(rows, N_EXAMPLES)
    ]
    examples = [[rows.context[place] for place in places] for places in drawn]
    return np.array([codec_score(*pair) for pair in _log_probs(lm, rows, examples)])


def recall_scores(lm: CausalLM, rows: Rows) -> np.ndarray:
    """ReCaLL of each row, shape (n_rows,), all after the same first rows of the context.

    The authors choose the number of shots by its AUC and join them without a separator.
    ValueError as in :func:`codec_scores`.
    """
    examples = [rows.context[:N_SHOTS] for _ in _enough(rows, N_SHOTS)]
    return np.array([recall_score(*pair) for pair in _log_probs(lm, rows, examples)])


def _enough(rows: Rows, n: int) -> tuple[str, ...]:
    if len(rows.context) < n:
        raise ValueError(f"{n} rows of context are needed, got {len(rows.context)}")
    return rows.texts


def _log_probs(
    lm: CausalLM, rows: Rows, examples: Sequence[Sequence[str]]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Token log-probabilities of each row alone and after its examples, without the header."""
    texts = training_texts(rows.texts, rows.dataset, rows.split)
    prompts = [
        SEPARATOR.join([*training_texts(before, rows.dataset, rows.split), text])
        for before, text in zip(examples, texts, strict=True)
    ]
    # The first request is also that of the baselines, which need the moments: it is made once.
    alone = token_log_probs(lm, texts, too_long="refuse", with_moments=True)
    in_context = token_log_probs(lm, prompts, too_long="refuse")
    lengths = [len(token_ids) for token_ids in encode(lm, rows.texts)]
    return [
        (one.token_log_probs[-n:], other.token_log_probs[-n:])
        for one, other, n in zip(alone, in_context, lengths, strict=True)
    ]


CODEC = Detector("CoDeC", LOG_PROBABILITIES, codec_scores, source="Zawalski et al., 2510.27055")
RECALL = Detector(
    "ReCaLL",
    LOG_PROBABILITIES,
    recall_scores,
    source="Xie et al., 2406.15968",
)
