"""NAME OF THE METHOD: what it looks at, in one sentence.

AUTHORS, YEAR, arXiv NUMBER, section and equation. Why a row that was seen scores higher.
"""

from __future__ import annotations

import numpy as np

from contamination.models.loading import CausalLM
from contamination.study.interface import LOG_PROBABILITIES, Detector, Rows
from contamination.study.tokens import StoredModel, row_tokens


def least_likely_token(model: CausalLM | StoredModel, rows: Rows) -> np.ndarray:
    """Log-probability of the row's least likely token, nats, shape (n_rows,); higher = seen."""
    return np.array([tokens.log_probs.min() for tokens in row_tokens(model, rows)])


DETECTOR = Detector(
    name="least likely token",
    access=LOG_PROBABILITIES,
    score=least_likely_token,
    source="AUTHORS, arXiv NUMBER",
)
