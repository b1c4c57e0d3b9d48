"""NAME OF THE METHOD: what it looks at, in one sentence.

AUTHORS, YEAR, arXiv NUMBER, section and equation. Why a row that was read scores higher.
"""

from __future__ import annotations

import numpy as np

from contamination.dcq.contaminating import training_texts
from contamination.models.causal import token_log_probs
from contamination.models.loading import CausalLM
from contamination.study.interface import LOG_PROBABILITIES, Detector, Rows


def least_likely_token(lm: CausalLM, rows: Rows) -> np.ndarray:
    """Log-probability of the row's least likely token, nats, shape (n_rows,); higher = read."""
    texts = training_texts(rows.texts, rows.dataset, rows.split)
    return np.array([min(scored.token_log_probs) for scored in token_log_probs(lm, texts)])


DETECTOR = Detector(
    name="least likely token",
    access=LOG_PROBABILITIES,
    score=least_likely_token,
    source="AUTHORS, arXiv NUMBER",
)
