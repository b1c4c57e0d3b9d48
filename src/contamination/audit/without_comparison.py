"""What can be asked without comparison rows: number twins, and why they give no verdict.

A twin is a row with other numbers in it (``study.number_twins``). A model that was trained on the
row should prefer it to its twins, and by more than a reference model that is older than the row.
In the pretraining study models prefer rows that they have never seen as well, since numbers that a
person or a grammar chose fit together. So an audit shows the value next to this bias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from contamination.audit.finding import control_row
from contamination.audit.prepared import NO_COMPARISON
from contamination.core import statistics, storage
from contamination.study.number_twins import NAMES, NUMBER, SWAPPED, preferred_shares

BIAS = Path(__file__).with_name("number_twins_bias.csv")  # scripts/detected_copies.py writes it
FEWEST_WITH_NUMBERS = 20
CONTROL = "number twins, model minus reference model"
LogProbs = Callable[[Sequence[str]], Sequence[np.ndarray]]  # of the tokens of every text


def number_twins(
    texts: Sequence[str], model: LogProbs, reference: LogProbs | None, n_resamples: int
) -> tuple[dict | None, str]:
    """How much more a model prefers rows to their number twins than a reference model does.

    Args:
        texts: rows of the dataset; those without a number are left out.
        model, reference: log-probabilities of the tokens of every text, nats.

    Returns:
        A row of ``audit_controls.csv`` that decides nothing (value from -1 to 1, 0 expected if
        the rows were not seen and there were no bias, bootstrap interval over rows), None where
        nothing could be asked; and one or two sentences on what the value means, or on what is
        missing.
    """
    usable = [text for text in texts if NUMBER.search(text)]
    if len(usable) < FEWEST_WITH_NUMBERS:
        return None, (
            f"{NO_COMPARISON}. Number twins, which need none, cannot be asked either: "
            f"{len(usable)} rows have a number, {FEWEST_WITH_NUMBERS} are needed"
        )
    if reference is None:
        return None, (
            f"{NO_COMPARISON}. {len(usable)} rows have numbers, so number twins can be compared: "
            "name a model of about this size that is older than the dataset as reference_model of "
            "min_k"
        )

    def shares(log_probs: LogProbs) -> np.ndarray:
        return preferred_shares(usable, SWAPPED, lambda t: [float(x.mean()) for x in log_probs(t)])

    more = shares(model) - shares(reference)
    generator = np.random.default_rng(0)
    means = more[generator.integers(len(more), size=(n_resamples, len(more)))].mean(axis=1)
    value, ends = float(more.mean()), statistics.percentile_interval(means)
    return control_row(CONTROL, len(more), value, *ends), f"{NO_COMPARISON}. {_reading(value)}"


def _reading(value: float) -> str:
    """What a preference means next to the bias that the pretraining study measured."""
    bias = storage.read_csv(BIAS).set_index("detector").loc[NAMES[SWAPPED]]
    beside = "above" if value > bias["ci_high"] else "not above"
    return (
        f"Number twins: {value:.2f}, {beside} what models of the pretraining study reach on rows "
        f"that they have not seen ({bias['preference']:.2f} [{bias['ci_low']:.2f}, "
        f"{bias['ci_high']:.2f}]); their own test raised a false alarm for {bias['n_alarms']} of "
        f"those {bias['n_models']} models, so no verdict rests on them"
    )
