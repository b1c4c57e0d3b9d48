"""Experiments that say what the detector detects, each with its expectation written first.

"Expected" is what should be found if DICE sees contamination and not merely a
difference between two models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from contamination.dice.detector import MEAN_DIFFERENCE, Auroc
from contamination.dice.experiments import (
    TEST_HALF,
    TRAIN_HALF,
    held_out_detectors,
    of_pairs,
    of_strangers,
    shuffled_labels,
    taught_baselines,
    taught_membership,
    within_models,
)
from contamination.dice.mixtures import FORMAT, MATH, OTHER_TASK, SEEN, TRAIN_SPLIT, UNSEEN
from contamination.dice.pool import (
    BASE,
    BETWEEN,
    CLEAN,
    CONTAMINATED,
    HIGH,
    LOW,
    OTHER_CLEAN,
    REORDERED,
    Pool,
    named,
)

AT_CHANCE, ABOVE_CHANCE, BELOW_MLP = "at chance", "above chance", "below the MLP"

TWO_CLEAN = "two clean models, other texts"
TWO_CLEAN_LEARNT = "the same, on the detector's training questions"
REORDERED_CLEAN = "two clean models, same texts in another order"
REORDERED_LEARNT = "the same in another order, on the detector's training questions"
BASE_VANILLA = "base model against clean"
HELD_OUT = "models never met"
WITHIN = "seen against unseen questions, contaminated model"
WITHIN_CLEAN = "the same questions, clean model"
PAIRED = "the same questions, contaminated minus clean model"
PAIRED_CLEAN = "the same questions, clean minus clean model"
SWAPPED = "roles exchanged (GSM-ii read, GSM-i fresh), contaminated model"
SWAPPED_CLEAN = "roles exchanged, clean model"
SWAPPED_PAIRED = "roles exchanged, contaminated minus clean model"
SWAPPED_PAIRED_CLEAN = "roles exchanged, clean minus clean model"
WITHIN_TAUGHT = "seen against unseen, detector taught membership"
WITHIN_TAUGHT_CLEAN = "the same, clean models"
LEGITIMATE = "trained on the train split"
FORMAT_ONLY = "trained on the answer format alone"
ANOTHER = "contaminated with another task"
LAYER_0 = "layer 0"
DIRECTION = "mean difference, models never met"
SHUFFLED = "shuffled labels"
DOSE = "dose never trained on, copies: {}"
BASELINE = "baselines taught alike, centred per model"
TOPIC = "GSM against {} questions, contaminated model (Figure 6a)"
TOPIC_CLEAN = "GSM against {} questions, clean model"

# What would be found if the detector detected contamination, written before any number.
EXPECTED = {
    TWO_CLEAN: AT_CHANCE,
    TWO_CLEAN_LEARNT: AT_CHANCE,
    REORDERED_CLEAN: AT_CHANCE,
    REORDERED_LEARNT: AT_CHANCE,
    BASE_VANILLA: AT_CHANCE,
    HELD_OUT: ABOVE_CHANCE,
    WITHIN: ABOVE_CHANCE,
    WITHIN_CLEAN: AT_CHANCE,
    PAIRED: ABOVE_CHANCE,
    PAIRED_CLEAN: AT_CHANCE,
    SWAPPED: ABOVE_CHANCE,
    SWAPPED_CLEAN: AT_CHANCE,
    SWAPPED_PAIRED: ABOVE_CHANCE,
    SWAPPED_PAIRED_CLEAN: AT_CHANCE,
    WITHIN_TAUGHT: ABOVE_CHANCE,
    WITHIN_TAUGHT_CLEAN: AT_CHANCE,
    LEGITIMATE: AT_CHANCE,
    FORMAT_ONLY: AT_CHANCE,
    ANOTHER: AT_CHANCE,
    LAYER_0: AT_CHANCE,
    DIRECTION: BELOW_MLP,
    SHUFFLED: AT_CHANCE,
    DOSE: ABOVE_CHANCE,
    BASELINE: AT_CHANCE,
    TOPIC: ABOVE_CHANCE,
    TOPIC_CLEAN: AT_CHANCE,
}

# Controls on fresh questions and on those that detectors learn from, and who stands against clean.
_CLEAN_PAIRS = {
    (TWO_CLEAN, TWO_CLEAN_LEARNT): OTHER_CLEAN,
    (REORDERED_CLEAN, REORDERED_LEARNT): REORDERED,
}


def control_row(
    control: str, found: Auroc, layer: int | None, mlp: Auroc | None = None, expected: str = ""
) -> dict:
    """One row of ``dice_controls.csv``.

    Args:
        control: its name.
        found: what was measured.
        layer: place of the layer, None where no state is read.
        mlp: the MLP's AUROC on the same, for what is expected below it.
        expected: a key of ``EXPECTED`` if ``control`` is none itself.

    Returns:
        control, layer, n_models, n, auroc_pct, folded_auroc_pct, ci_low,
        ci_high, resampled (what the interval draws anew),
        expected_if_detector_works, holds (empty without an interval):
        "at chance" where the interval holds 50, "above chance" where it lies
        above, "below the MLP" where it lies below the MLP's AUROC.
    """
    expectation = EXPECTED[expected or control]
    low, high = found.ci_low, found.ci_high
    verdicts: dict[str, Callable[[], bool]] = {
        AT_CHANCE: lambda: low <= 50 <= high,
        ABOVE_CHANCE: lambda: low > 50,
        BELOW_MLP: lambda: high < mlp.auroc_pct,
    }
    return {
        "control": control,
        "layer": layer,
        "n_models": found.n_models,
        "n": found.n,
        "auroc_pct": found.auroc_pct,
        "folded_auroc_pct": found.folded_auroc_pct,
        "ci_low": low,
        "ci_high": high,
        "resampled": found.resampled,
        "expected_if_detector_works": expectation,
        "holds": None if np.isnan(low) else bool(verdicts[expectation]()),
    }


def control_table(pool: Pool, layer: int, topic: str, centred_on: str) -> pd.DataFrame:
    """``dice_controls.csv``: all experiments on one pool of models.

    Args:
        pool: measured models. Conditions that only some controls need may be missing.
        layer: place of the located layer.
        topic: set of problems of another topic, Figure 6(a)'s MATH.
        centred_on: set on which the baselines are centred.
    """
    detectors = held_out_detectors(pool, CONTAMINATED, layer)
    directions = held_out_detectors(pool, CONTAMINATED, layer, MEAN_DIFFERENCE)
    strangers = of_strangers(pool, detectors, CONTAMINATED, layer, UNSEEN)
    rows = [
        control_row(name, of_pairs(pool, condition, CLEAN, layer, asked), layer)
        for names, condition in _CLEAN_PAIRS.items()
        for name, asked in zip(names, (UNSEEN, SEEN), strict=True)
    ]
    rows += [
        control_row(BASE_VANILLA, of_pairs(pool, CLEAN, BASE, layer, UNSEEN), layer),
        control_row(HELD_OUT, strangers, layer),
    ]
    rows += [control_row(name, found, layer) for name, found in _membership(pool, layer)]
    conditions = [(LEGITIMATE, LEGITIMATE, named(TRAIN_SPLIT, HIGH))]
    conditions += [(FORMAT_ONLY, FORMAT_ONLY, named(FORMAT, HIGH))]
    others = [named(task, HIGH) for task in (OTHER_TASK, MATH)]
    conditions += [(ANOTHER, f"{ANOTHER}: {name}", name) for name in others]
    conditions += [(DOSE, DOSE.format(copies), named(SEEN, copies)) for copies in (LOW, BETWEEN)]
    for key, name, condition in conditions:
        if condition in pool:
            found = of_strangers(pool, detectors, condition, layer, UNSEEN)
            rows.append(control_row(name, found, layer, expected=key))
    rows.append(control_row(LAYER_0, of_pairs(pool, CONTAMINATED, CLEAN, 0, UNSEEN), 0))
    found = of_strangers(pool, directions, CONTAMINATED, layer, UNSEEN)
    rows.append(control_row(DIRECTION, found, layer, strangers))
    rows.append(control_row(SHUFFLED, shuffled_labels(pool, CONTAMINATED, layer, UNSEEN), layer))
    found = taught_baselines(pool, CONTAMINATED, UNSEEN, centred_on)
    rows.append(control_row(BASELINE, found, None))
    for key, condition in ((TOPIC, CONTAMINATED), (TOPIC_CLEAN, CLEAN)):
        found = within_models(pool, detectors, condition, layer, UNSEEN, topic)
        rows.append(control_row(key.format(topic), found, layer, expected=key))
    return pd.DataFrame(rows).astype({"layer": "Int64", "holds": "boolean"})


def _membership(pool: Pool, layer: int) -> Iterator[tuple[str, Auroc]]:
    """Seen against unseen questions, with either half of the problems in the role of the seen.

    One detector for both roles: trained on GSM-i, it may favour GSM-i, but then
    whatever the models read.
    """
    half = held_out_detectors(pool, CONTAMINATED, layer, questions=TRAIN_HALF)
    roles = {
        (SEEN, UNSEEN): (WITHIN, WITHIN_CLEAN, PAIRED, PAIRED_CLEAN),
        (UNSEEN, SEEN): (SWAPPED, SWAPPED_CLEAN, SWAPPED_PAIRED, SWAPPED_PAIRED_CLEAN),
    }
    for (read, fresh), names in roles.items():
        of_role = named(read, HIGH)
        pairs = (of_role, ""), (CLEAN, ""), (of_role, CLEAN), (OTHER_CLEAN, CLEAN)
        for name, (models, partner) in zip(names, pairs, strict=True):
            asked = read, fresh, TEST_HALF, partner
            yield name, within_models(pool, half, models, layer, *asked)
    for name, condition in ((WITHIN_TAUGHT, CONTAMINATED), (WITHIN_TAUGHT_CLEAN, CLEAN)):
        yield name, taught_membership(pool, condition, layer)
