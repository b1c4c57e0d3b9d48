"""Min-k% Prob, its baselines and Min-K%++ as detectors of rows, by ``min_k.detect``.

All share the token log-probabilities of the rows as the model reads them, header included, which
is the same above every row; Lowercase turns the header's letters small too. Neighbor is left
out: its 25 neighbours of a row cost 25 forward passes, where all others together take three.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from contamination.core import scores
from contamination.dcq.contaminating import training_texts
from contamination.min_k.detect import detect
from contamination.models.loading import CausalLM
from contamination.study.interface import LOG_PROBABILITIES, Detector, Rows


def method_scores(lm: CausalLM, rows: Rows, method: str) -> np.ndarray:
    """Scores of one method of ``min_k.detect`` for each row, shape (n_rows,), higher = read.

    k is 20 % and windows score what is longer than the context. ValueError for a method that the
    model alone does not give.
    """
    texts = training_texts(rows.texts, rows.dataset, rows.split)
    is_lowercase = method == scores.LOWERCASE
    table = detect(texts, lm, lowercase=is_lowercase)
    of_method = table.loc[table["method"] == method, "score"].to_numpy()
    if of_method.size == 0:
        raise ValueError(f'no scores of method "{method}" without further models')
    return of_method


def _detector(method: str, source: str) -> Detector:
    score = partial(method_scores, method=method)
    return Detector(method, LOG_PROBABILITIES, score, source=source)


PPL = _detector(scores.PPL, "Yeom et al., 1709.01604")
ZLIB = _detector(scores.ZLIB, "Carlini et al., 2012.07805")
LOWERCASE = _detector(scores.LOWERCASE, "Carlini et al., 2012.07805")
MIN_K = _detector(scores.MIN_K, "Shi et al., 2310.16789")
MIN_K_PLUS_PLUS = _detector(scores.MIN_K_PLUS_PLUS, "Zhang et al., 2404.02936")
OF_TOKENS = (PPL, ZLIB, LOWERCASE, MIN_K, MIN_K_PLUS_PLUS)  # of the pretraining study
