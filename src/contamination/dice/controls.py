"""Experiments that say what the detector detects, each with its expectation written first.

"Expected" is what should be found if DICE sees contamination and not merely a
difference between two models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from contamination.core.verdicts import FEWEST_MODELS
from contamination.dice import experiments
from contamination.dice.detector import MEAN_DIFFERENCE, Auroc
from contamination.dice.experiments import TEST_HALF, TRAIN_HALF
from contamination.dice.family import SMALLEST
from contamination.dice.mixtures import SEEN, UNSEEN
from contamination.dice.pool import (
    BASE,
    CLEAN,
    CONTAMINATED,
    HIGH,
    OTHER_CLEAN,
    Pool,
    condition_name,
)

AT_CHANCE, ABOVE_CHANCE, BELOW_MLP = "at chance", "above chance", "below the MLP"

TWO_CLEAN = "two clean models, other texts"
TWO_CLEAN_LEARNED = "the same, on the detector's training questions"
BASE_VANILLA = "base model against clean"
HELD_OUT = "models never met"
WITHIN = "seen against unseen questions, contaminated model"
WITHIN_CLEAN = "the same questions, clean model"
PAIRED = "the same questions, contaminated minus clean model"
PAIRED_CLEAN = "the same questions, clean minus clean model"
SWAPPED = "roles exchanged (GSM-ii seen, GSM-i fresh), contaminated model"
SWAPPED_CLEAN = "roles exchanged, clean model"
SWAPPED_PAIRED = "roles exchanged, contaminated minus clean model"
SWAPPED_PAIRED_CLEAN = "roles exchanged, clean minus clean model"
WITHIN_TAUGHT = "seen against unseen, detector taught membership"
WITHIN_TAUGHT_CLEAN = "the same, clean models"
LAYER_0 = "layer 0"
DIRECTION = "mean difference, models never met"
SHUFFLED = "shuffled labels"
BASELINE = "baselines taught alike, centred per model"
BASELINE_CLEAN = "the same baselines, two clean models"
TOPIC = "GSM against {} questions, contaminated model (Figure 6a)"
TOPIC_CLEAN = "GSM against {} questions, clean model"

# What would be found if the detector detected contamination, written before any number.
_ABOVE = (HELD_OUT, WITHIN, PAIRED, SWAPPED, SWAPPED_PAIRED, WITHIN_TAUGHT, TOPIC)
_AT = (TWO_CLEAN, TWO_CLEAN_LEARNED, BASE_VANILLA)
_AT += (WITHIN_CLEAN, PAIRED_CLEAN, SWAPPED_CLEAN, SWAPPED_PAIRED_CLEAN, WITHIN_TAUGHT_CLEAN)
_AT += (LAYER_0, SHUFFLED, TOPIC_CLEAN)
_AT += (BASELINE, BASELINE_CLEAN)
EXPECTED = {**dict.fromkeys(_ABOVE, ABOVE_CHANCE), **dict.fromkeys(_AT, AT_CHANCE)}
EXPECTED[DIRECTION] = BELOW_MLP
OUTCOMES = {True: "yes", False: "no"}  # of ``holds``, which is empty where it is open
OPEN = "open"


def control_row(
    control: str, auroc: Auroc, layer: int | None, mlp: Auroc | None = None, expected: str = ""
) -> dict:
    """One row of ``dice_controls.csv``.

    ``layer`` is None where no state is read. ``mlp`` is the MLP's AUROC on the same, for what is
    expected below it; ``expected`` a key of ``EXPECTED`` if ``control`` is none itself. holds is
    whether the control came out as expected (:func:`came_out`). It is empty, that is open, where
    the interval decides neither way or draws fewer than five models of a kind, and without one.
    """
    expectation = EXPECTED[expected or control]
    holds = None
    if not np.isnan(auroc.ci_low) and auroc.n_drawn >= FEWEST_MODELS:
        holds = came_out(expectation, auroc.ci_low, auroc.ci_high, (mlp or auroc).auroc_pct)
    row: dict[str, Any] = {
        "control": control,
        "layer": layer,
        "n_models": auroc.n_models,
        "n": auroc.n,
    }
    row |= auroc.columns() | {"expected_if_detector_works": expectation}
    return row | {"holds": holds}


def came_out(expectation: str, low: float, high: float, mlp_pct: float = 50.0) -> bool | None:
    """Whether a control came out as expected, by its interval; None where it is open.

    An interval that excludes 50 is not at chance, and one within ten points of 50 is. An interval
    above 50 is above chance, and one that ends within ten points of 50 is not.

    >>> [came_out(AT_CHANCE, *ends) for ends in ((45, 54), (53, 57), (15, 68))]
    [True, False, None]
    >>> [came_out(ABOVE_CHANCE, *ends) for ends in ((52, 56), (41, 57), (28, 67))]
    [True, False, None]
    """
    meets, misses = {
        AT_CHANCE: (low >= 50 - SMALLEST and high <= 50 + SMALLEST, not low <= 50 <= high),
        ABOVE_CHANCE: (low > 50, high < 50 + SMALLEST),
        BELOW_MLP: (high < mlp_pct, low >= mlp_pct),
    }[expectation]
    if expectation == AT_CHANCE:
        meets = meets and not misses
    return True if meets else False if misses else None


def with_outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """``dice_controls`` for display: holds in words, "yes", "no" or "open"."""
    words = table["holds"].astype(object).map(OUTCOMES).fillna(OPEN)
    return table.assign(holds=words)


def control_table(pool: Pool, layer: int, topic: str, centred_on: str) -> pd.DataFrame:
    """``dice_controls.csv``: all experiments on one pool.

    ``topic`` is a set of another topic, Figure 6(a)'s MATH; ``centred_on`` that of the baselines.
    """
    detectors = experiments.held_out_detectors(pool, CONTAMINATED, layer)
    directions = experiments.held_out_detectors(pool, CONTAMINATED, layer, MEAN_DIFFERENCE)
    strangers = experiments.auroc_of_unmet_models(pool, detectors, CONTAMINATED, layer, UNSEEN)
    rows = [
        control_row(name, experiments.auroc_of_seed_pairs(pool, *pair, layer, asked), layer)
        for name, pair, asked in (
            (TWO_CLEAN, (OTHER_CLEAN, CLEAN), UNSEEN),
            (TWO_CLEAN_LEARNED, (OTHER_CLEAN, CLEAN), SEEN),
            (BASE_VANILLA, (CLEAN, BASE), UNSEEN),
        )
    ]
    rows.append(control_row(HELD_OUT, strangers, layer))
    rows += [control_row(name, auroc, layer) for name, auroc in _membership(pool, layer)]
    rows.append(
        control_row(
            LAYER_0, experiments.auroc_of_seed_pairs(pool, CONTAMINATED, CLEAN, 0, UNSEEN), 0
        )
    )
    auroc = experiments.auroc_of_unmet_models(pool, directions, CONTAMINATED, layer, UNSEEN)
    rows.append(control_row(DIRECTION, auroc, layer, strangers))
    auroc = experiments.shuffled_labels(pool, CONTAMINATED, layer, UNSEEN)
    rows.append(control_row(SHUFFLED, auroc, layer))
    auroc = experiments.taught_baselines(pool, CONTAMINATED, UNSEEN, centred_on)
    rows.append(control_row(BASELINE, auroc, None))
    auroc = experiments.taught_baselines(pool, OTHER_CLEAN, UNSEEN, centred_on)
    rows.append(control_row(BASELINE_CLEAN, auroc, None))
    rows += topic_rows(pool, detectors, layer, topic)
    return pd.DataFrame(rows).astype({"layer": "Int64", "holds": "boolean"})


def topic_rows(
    pool: Pool, detectors: Mapping[int, experiments.Score], layer: int, topic: str
) -> list[dict]:
    """Figure 6(a): GSM questions against those of a topic, in contaminated and in clean models.

    ``detectors`` are of ``experiments.held_out_detectors``, so none has met its model.
    """
    rows = []
    for expected, condition in ((TOPIC, CONTAMINATED), (TOPIC_CLEAN, CLEAN)):
        auroc = experiments.auroc_within_models(pool, detectors, condition, layer, UNSEEN, topic)
        rows.append(control_row(expected.format(topic), auroc, layer, expected=expected))
    return rows


def _membership(pool: Pool, layer: int) -> Iterator[tuple[str, Auroc]]:
    """Seen against unseen questions, with either half of the problems in the role of the seen.

    One detector for both roles: trained on GSM-i, it may favour GSM-i, but then
    whatever the models read.
    """
    half = experiments.held_out_detectors(pool, CONTAMINATED, layer, questions=TRAIN_HALF)
    roles = {
        (SEEN, UNSEEN): (WITHIN, WITHIN_CLEAN, PAIRED, PAIRED_CLEAN),
        (UNSEEN, SEEN): (SWAPPED, SWAPPED_CLEAN, SWAPPED_PAIRED, SWAPPED_PAIRED_CLEAN),
    }
    for (read, fresh), names in roles.items():
        of_role = condition_name(read, HIGH)
        pairs = (of_role, ""), (CLEAN, ""), (of_role, CLEAN), (OTHER_CLEAN, CLEAN)
        for name, (models, partner) in zip(names, pairs, strict=True):
            asked = read, fresh, TEST_HALF, partner
            yield name, experiments.auroc_within_models(pool, half, models, layer, *asked)
    for name, condition in ((WITHIN_TAUGHT, CONTAMINATED), (WITHIN_TAUGHT_CLEAN, CLEAN)):
        yield name, experiments.taught_membership(pool, condition, layer)
