"""Scores of passages by a model behind an address that gives log-probabilities of its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from contamination.min_k.detect import score_table
from contamination.models.chat import Endpoint
from contamination.models.prompt_log_probs import prompt_log_probs


def detect_served(
    texts: Sequence[str],
    endpoint: Endpoint,
    *,
    neighbors: Sequence[Sequence[str]] | None = None,
    k_percents: Sequence[float] = (20.0,),
    **settings: Any,
) -> pd.DataFrame:
    """Scores of passages by a served model that gives log-probabilities of its prompt.

    Args:
        neighbors: of each passage; adds Neighbor.
        k_percents: shares of tokens that Min-k% Prob keeps.
        settings: keyword arguments of ``prompt_log_probs``, such as form, price and cap.

    Returns:
        Columns as ``min_k.detect.detect``. Min-K%++ is missing: it needs the
        whole distribution, which no endpoint gives.
    """
    around = [[]] * len(texts) if neighbors is None else neighbors
    every = [*texts, *(text.lower() for text in texts), *(text for each in around for text in each)]
    log_probs = prompt_log_probs(endpoint, every, **settings)
    n, ends = len(texts), np.cumsum([2 * len(texts), *map(len, around)])
    near = None if neighbors is None else [log_probs[a:b] for a, b in pairwise(ends)]
    counts = [(values.size + 1, 1) for values in log_probs[:n]]
    own, lowered = log_probs[:n], log_probs[n : 2 * n]
    table = score_table(texts, own, counts, k_percents, lowered=lowered, near=near)
    return table.assign(first_token_scored=False)
