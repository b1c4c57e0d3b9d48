"""Detectors of whole datasets, each with a p value of its own; the arithmetic takes arrays.

* **Exchangeability** (Oren et al., arXiv:2310.17623): a model that read a dataset in its
  published order finds that order likelier than others;
* **dataset inference** (Maini et al., arXiv:2406.06443): many membership scores of each row,
  weighted on one half of the rows and compared with those of unread rows on the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer

from contamination.core import scores
from contamination.dcq.prompts import header
from contamination.models.causal import token_log_probs
from contamination.models.loading import CausalLM
from contamination.study.conditions import TEXT_ALONE_SETS
from contamination.study.interface import LOG_PROBABILITIES, SET, Detector, Rows, SetScore

ROWS_PER_DOCUMENT = 8  # 500 to 850 tokens of a lab model's 1,024
N_SHUFFLES = 9  # of each document; more of them would narrow its mean by 5 % at most
N_DRAWS = 9_999
MIN_ROWS = 200  # on each side of dataset inference
CLIPPED = 0.025  # share of a feature's values that are outliers, at each end
K_PERCENTS = (5, 10, 20, 30, 40, 50, 60)  # as in the authors' code


def ordered_documents(
    texts: Sequence[str], dataset: str, split: str, rows_per_document: int = ROWS_PER_DOCUMENT
) -> tuple[str, ...]:
    """Consecutive rows under one header, blank lines between: a dataset in published order.

    What a model of the ordered arm reads, and what exchangeability asks about. The last
    document may be shorter. ValueError for fewer than two rows a document.
    """
    parts = _shards(texts, rows_per_document)
    return tuple(header(dataset, split) + "\n\n".join(part) for part in parts)


def _shards(texts: Sequence[str], size: int) -> list[list[str]]:
    if size < 2:
        raise ValueError(f"a document needs two rows to have an order, got {size}")
    return [list(texts[start : start + size]) for start in range(0, len(texts), size)]


def order_test(log_probs: np.ndarray, seed: int = 0, n_draws: int = N_DRAWS) -> SetScore:
    """Whether the published order is likelier than shuffled ones: a rank test over shards.

    If the order was not read, any arrangement of a shard (here a document) is as good as its
    published one. The sum over shards of the published orders then ranks at random among sums
    of arrangements that are drawn for each shard, which gives an exact p for any number of
    shards. The p of Oren et al., of a t test, is :func:`order_t_test`.

    Args:
        log_probs: natural-log probability of whole documents, shape (n_shards,
            1 + n_shuffles), the published order first.

    Returns:
        Nats by which the published order is likelier than the mean shuffle, mean over
        shards, and p = (1 + number of draws at least as high) / (1 + n_draws).

    >>> order_test([[-1.0, -3.0]], n_draws=999).score
    2.0
    """
    values, advantages = _advantages(log_probs)
    n_shards, n_orders = values.shape
    drawn = np.random.default_rng([seed, 17]).integers(n_orders, size=(1 + n_draws, n_shards))
    drawn[0] = 0  # the published order is one of the draws
    sums = values[np.arange(n_shards), drawn].sum(axis=1)
    return SetScore(float(advantages.mean()), float((sums >= sums[0]).mean()))


def order_t_test(log_probs: np.ndarray) -> SetScore:
    """The sharded test of Oren et al., section 3: t of the shards' advantages, one-sided p.

    ``log_probs`` as in :func:`order_test`, at least two shards. The variance has n - 1 below
    it; the authors' code has n, so that its t is larger by the root of n / (n - 1).

    >>> [round(value, 3) for value in order_t_test([[0, -1], [0, -3]])]
    [2.0, 0.148]
    """
    _, advantages = _advantages(log_probs)
    if len(advantages) < 2:
        raise ValueError("a t test needs at least two shards")
    return SetScore(*map(float, stats.ttest_1samp(advantages, 0.0, alternative="greater")))


def _advantages(log_probs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The checked values, and each published order's lead over its mean shuffle."""
    values = np.asarray(log_probs, dtype=float)
    if values.ndim != 2 or len(values) < 1 or values.shape[1] < 2:
        raise ValueError(f"shape must be (n_shards, 1 + n_shuffles), got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("log-probabilities of documents must be finite")
    return values, values[:, 0] - values[:, 1:].mean(axis=1)


def order_log_probs(
    model: CausalLM,
    rows: Rows,
    rows_per_document: int = ROWS_PER_DOCUMENT,
    n_shuffles: int = N_SHUFFLES,
) -> np.ndarray:
    """Log-probability of each document in published and in shuffled order, for ``order_test``.

    Nats, shape (n_documents, 1 + n_shuffles). A last row that stands alone has no order and
    is left out. ValueError where a document exceeds the context.
    """
    generator = np.random.default_rng([rows.seed, 18])
    shards = [part for part in _shards(rows.texts, rows_per_document) if len(part) > 1]
    documents = []
    for part in shards:
        orders = [part, *(generator.permutation(part).tolist() for _ in range(n_shuffles))]
        for order in orders:
            documents += ordered_documents(order, rows.dataset, rows.split, len(part))
    scored = token_log_probs(model, documents, too_long="refuse")
    sums = [text.token_log_probs.sum(dtype=float) for text in scored]
    return np.reshape(sums, (len(shards), 1 + n_shuffles))


EXCHANGEABILITY = Detector(
    "exchangeability",
    LOG_PROBABILITIES,
    lambda model, rows: order_test(order_log_probs(model, rows), rows.seed),
    unit=SET,
    source="Oren et al., arXiv:2310.17623",
)


def features(model: CausalLM, texts: Sequence[str]) -> np.ndarray:
    """Membership scores of each text, shape (n_texts, 18), higher = more likely read.

    Those of Maini et al. that need this model alone: perplexity, zlib, Min-k% at seven k and
    its mirror, the mean of the k % likeliest tokens; lowercase, one of their perturbations;
    and Min-K%++. Ratios to other models and to further perturbations are left out.
    """
    scored = token_log_probs(model, [*texts, *(text.lower() for text in texts)], with_moments=True)
    rows = []
    for text, own, lower in zip(texts, scored, scored[len(texts) :], strict=False):
        values = own.token_log_probs
        assert own.vocabulary_mean is not None and own.vocabulary_std is not None
        likeliest = np.sort(values)[::-1]
        n_kept = [scores.n_lowest(values.size, k) for k in K_PERCENTS]
        rows.append(
            [
                scores.perplexity_score(values),
                scores.zlib_score(values, text),
                scores.lowercase_score(values, lower.token_log_probs),
                scores.min_k_plus_plus_score(values, own.vocabulary_mean, own.vocabulary_std),
                *(scores.min_k_score(values, k) for k in K_PERCENTS),
                *(float(likeliest[:n].mean(dtype=float)) for n in n_kept),
            ]
        )
    return np.array(rows)


def dataset_inference(
    suspect_features: np.ndarray, validation_features: np.ndarray, seed: int = 0
) -> SetScore:
    """Whether suspect rows score above rows of the same draw that nobody read: t, one-sided p.

    Both sets are dealt into halves A and B. On A a linear map is fitted by least squares, 1
    for suspect and 0 for validation; on B the t test compares what it says of the two. Features
    are clipped to their central 95 % and standardised, both as A has them, so that B stays
    untouched. The authors' code clips each whole set by its own quantiles, which lets heavy
    tails raise false alarms above the level.

    Args:
        suspect_features: shape (n_suspect, n_features), at least 200 rows.
        validation_features: of unread rows, shape (n_validation, n_features), as many.

    Raises:
        ValueError: if a side has fewer rows, or a feature is undefined.
    """
    sides = [np.asarray(part, dtype=float) for part in (suspect_features, validation_features)]
    if min(map(len, sides)) < MIN_ROWS:
        raise ValueError(
            f"dataset inference needs {MIN_ROWS} rows on each side, got {len(sides[0])} suspect "
            f"and {len(sides[1])} validation rows"
        )
    if any(part.ndim != 2 or part.shape[1:] != sides[0].shape[1:] for part in sides):
        raise ValueError("both sides need the same features, one row for each text")
    if not all(np.isfinite(part).all() for part in sides):
        raise ValueError("a feature is undefined: leave it out on both sides")
    generator = np.random.default_rng([seed, 19])
    halves = [np.array_split(generator.permutation(part), 2) for part in sides]
    fitted = np.concatenate([a for a, _ in halves])
    low, high = np.quantile(fitted, [CLIPPED, 1 - CLIPPED], axis=0)
    clipped = fitted.clip(low, high)
    centre, spread = clipped.mean(axis=0), clipped.std(axis=0)
    spread[spread == 0] = 1.0  # a constant feature says nothing

    def prepared(part: np.ndarray) -> np.ndarray:
        return np.column_stack([(part.clip(low, high) - centre) / spread, np.ones(len(part))])

    is_suspect = np.arange(len(fitted)) < len(halves[0][0])
    weights = np.linalg.lstsq(prepared(fitted), is_suspect.astype(float))[0]
    suspect, validation = (prepared(b) @ weights for _, b in halves)
    return SetScore(*map(float, stats.ttest_ind(suspect, validation, alternative="greater")))


def _dataset_inference(model: CausalLM, rows: Rows) -> SetScore:
    above = header(rows.dataset, rows.split)
    found = features(model, [above + text for text in (*rows.texts, *rows.context)])
    return dataset_inference(found[: len(rows)], found[len(rows) :], rows.seed)


# Its validation set is ``Rows.context``: at least 200 unread rows.
DATASET_INFERENCE = Detector(
    "dataset inference",
    LOG_PROBABILITIES,
    _dataset_inference,
    unit=SET,
    source="Maini et al., arXiv:2406.06443",
)


def _words_alone(model: CausalLM, rows: Rows) -> SetScore:
    words = CountVectorizer(binary=True).fit_transform([*rows.texts, *rows.context]).toarray()
    return dataset_inference(words[: len(rows)], words[len(rows) :], rows.seed)


# The same arithmetic on the words of the rows: sees no model. Clipping drops rare words.
WORDS_ALONE = Detector(TEXT_ALONE_SETS, LOG_PROBABILITIES, _words_alone, unit=SET)
