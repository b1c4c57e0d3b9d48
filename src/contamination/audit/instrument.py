"""Is the instrument sound? Log-probabilities are checked on known texts before rows are scored.

A server may return log-probabilities that belong to no text: null, all equal, those of a part of
the prompt, or chance. So two texts that every model has met are scored, each next to its own
words in nine other orders. A model that does not prefer the true order by two standard deviations
is refused for the methods that read them. Chance passes about once in eighty times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

TEXTS = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this "
    "software and associated documentation files, to deal in the software without restriction.",
    "When in the course of human events, it becomes necessary for one people to dissolve the "
    "political bands which have connected them with another, a decent respect to the opinions of "
    "mankind requires that they should declare the causes.",
)
N_ORDERS = 9  # other orders of each text
FEWEST_DEVIATIONS = 2.0  # by which the true order must lead, mean of the texts


def check_texts() -> list[str]:
    """Each text, followed by its words in other orders; the same ones every time."""
    generator, found = np.random.default_rng(0), []
    for text in TEXTS:
        orders = [" ".join(generator.permutation(text.split())) for _ in range(N_ORDERS)]
        found += [text, *orders]
    return found


def why_unsound(log_probs: Sequence[np.ndarray | None]) -> str:
    """Why a model's log-probabilities of :func:`check_texts` cannot be read; "" if they can.

    Log-probabilities are in nats, one array for each text, None for a text without any.
    """
    if any(values is None or not len(values) for values in log_probs):
        return "it gives no log-probabilities of known texts"
    values = [np.asarray(one, dtype=float) for one in log_probs]
    if not all(np.isfinite(one).all() for one in values):
        return "its log-probabilities of known texts are not finite numbers"
    if all(np.ptp(one) == 0 for one in values):
        return "its log-probabilities are the same for every token"
    sums = np.array([one.sum() for one in values]).reshape(len(TEXTS), 1 + N_ORDERS)
    true, others = sums[:, 0], sums[:, 1:]
    ahead, spread = true - others.mean(axis=1), others.std(axis=1, ddof=1)
    # Where the other orders all score the same, being ahead at all is enough for that text.
    enough = FEWEST_DEVIATIONS * np.sign(ahead)
    above = float(np.mean(np.divide(ahead, spread, out=enough, where=spread > 0)))
    if above < FEWEST_DEVIATIONS:
        return (
            "its log-probabilities do not prefer known texts to the same words in other orders "
            f"({above:.1f} standard deviations, at least {FEWEST_DEVIATIONS:.0f} are needed)"
        )
    return ""
