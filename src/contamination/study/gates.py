"""The gates of the protocol: what must be ruled out before a flag says that rows were read.

Each gate but the last asks whether a score is above that of a control, unit by unit: the lower
one-sided 95 % limit of score minus control must lie above 0. Not being shown superior is failing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.tables import listed
from contamination.core.verdicts import (
    CONTROL_FAILS,
    FEWEST_MODELS,
    INCONCLUSIVE,
    NOT_RUN,
    SUPPORTED,
)
from contamination.study import interface, protocol
from contamination.study.conditions import (
    BASE,
    CLEAN,
    DOSED,
    FRESH,
    ORDERED,
    PLACEBO,
    SHUFFLED,
    SWAP,
    TEXT_ALONE,
    TEXT_ALONE_SETS,
    VERBATIM,
)
from contamination.study.protocol import CALIBRATED, LEFT_OUT, UNDETERMINED
from contamination.study.scoring import CONTROL_NAMES

BLIND = "blind"  # G1: a classifier of the text alone
BEFORE_READING = "before_reading"  # G2: the base model, on the same rows
UNREAD_ROWS = "unread_rows"  # G3: unread rows of the same draw
CLEAN_MODELS = "clean_models"  # G4: the clean model of the same draw
# The same model, asked under another name: reported, but no verdict hangs on it. Superiority would
# fail a detector whose evidence does not need the name, which is no fault of it.
PLACEBO_NAME = "placebo_name"
FALSE_ALARMS = "false_alarms"  # G5: calibrated
GATES = (BLIND, BEFORE_READING, UNREAD_ROWS, CLEAN_MODELS, PLACEBO_NAME, FALSE_ALARMS)

# Which gates a detector must pass, by what it sees of a model; fixed before the study's first
# result and after the pilot's.
APPLICABLE = {
    interface.ANSWERS: {BLIND, UNREAD_ROWS, CLEAN_MODELS, PLACEBO_NAME, FALSE_ALARMS},
    interface.LOG_PROBABILITIES: {BLIND, UNREAD_ROWS, CLEAN_MODELS, FALSE_ALARMS},
    interface.WEIGHTS: {BLIND, BEFORE_READING, UNREAD_ROWS, CLEAN_MODELS, FALSE_ALARMS},
}
# Exceptions, by name. Exchangeability sees nothing but the order, in which a bag has no part.
NOT_APPLICABLE = {"exchangeability": {BLIND}, "ConStat": {BLIND}}
# Of all others: verbatim.
GATE_CONDITION = {"exchangeability": ORDERED, "dataset inference": ORDERED}
GATE_CONDITION |= {"option margin": SWAP}
# Detectors of sets whose p is exact, as by re-dealing it is for rows. Their level holds by
# construction, so false alarms beyond it are luck or a fault of the code. They are counted, and
# no verdict hangs on them (docs/protocol_2.md; the first protocol had a gate here).
EXACT = {"exchangeability"}
GATE_COPIES = 12  # the largest dose of the lab
# G3 of a score of a set: conditions of the same model that it must exceed, each of them.
UNREAD_SETS = {"exchangeability": (SHUFFLED, FRESH)}

PASSED, FAILED, NOT_APPLIED = "passed", "failed", "not applicable"

COLUMNS = ["detector", "access", "room", "question", *protocol.CELL, "n_units", "n_models"]
COLUMNS += [*protocol.POWERS, *GATES, *protocol.RATES, "calibration", "word", "verdict", "holds"]


def superiority(differences: np.ndarray) -> tuple[float, float]:
    """Mean over units of score minus control, shape (n_units,), and its lower 95 % limit.

    One-sided t interval: a bootstrap of few units is too narrow. NaN is left out; both are NaN
    below three units.
    """
    values = np.asarray(differences, dtype=float)
    values = values[~np.isnan(values)]
    if values.size < protocol.N_UNITS:
        return np.nan, np.nan
    t = stats.t.ppf(1 - protocol.ALPHA, values.size - 1)
    return float(values.mean()), float(values.mean() - t * stats.sem(values))


def is_exact(detector: interface.Detector) -> bool:
    """Whether a flag has a level of at most 0.05 by construction, whatever the model and texts."""
    return detector.unit == interface.ROW or detector.name in EXACT


def gate_verdict(words: Mapping[str, str], n_units: int, is_exact: bool) -> str:
    """What the gates of one detector, gate to word, allow a flag to say: that the rows were read.

    Control fails if one failed; supported if all that apply were passed, and G2 or G3 are among
    them; else inconclusive, as with fewer than five units. The rate of false alarms of an exact
    test decides nothing.
    """
    of_rows = {words[BEFORE_READING], words[UNREAD_ROWS]} - {NOT_APPLIED}
    apart = (BEFORE_READING, UNREAD_ROWS, PLACEBO_NAME)
    apart += (FALSE_ALARMS,) if is_exact else ()
    others = {words[gate] for gate in GATES if gate not in apart} - {NOT_APPLIED}
    if n_units < FEWEST_MODELS:
        return INCONCLUSIVE
    if FAILED in of_rows | others:
        return CONTROL_FAILS
    return SUPPORTED if others <= {PASSED} and of_rows == {PASSED} else INCONCLUSIVE


def control_holds(words: Mapping[str, str]) -> bool | None:
    """Whether a gate refuses a control, gate to word, as one must; None if a gate is missing."""
    deciding = {words[gate] for gate in GATES if gate != PLACEBO_NAME}
    return True if FAILED in deciding else None if NOT_RUN in deciding else False


def gate_table(
    sets: pd.DataFrame, detectors: Sequence[interface.Detector], copies: int = GATE_COPIES
) -> pd.DataFrame:
    """Every gate of every detector and benchmark, on verbatim rows at the largest dose.

    ``sets`` as in ``protocol``, with "text alone" as one more detector; ``copies`` is the largest
    dose of the room. ValueError for a detector without sets.

    Returns:
        detector, access, question, is_exact, benchmark; for each gate its word (passed, failed,
        not run, not applicable; of false_alarms also undetermined) and, but for false_alarms,
        ``<gate>_margin`` and ``<gate>_low``: the mean of score minus control over units and its
        lower limit; the columns of ``protocol.false_alarms``; verdict (``gate_verdict``; blank
        for detectors that are left out of the count and for the protocol's own controls); holds
        (of such a control whether a gate refuses it, as one must; of detectors empty).
    """
    sets = protocol.flag(sets)
    alarms = protocol.false_alarms(sets)
    rows = []
    for detector in detectors:
        name, own = detector.name, sets[sets["detector"].eq(detector.name)]
        if own.empty:
            raise ValueError(f"no set was scored by {name}")
        applicable = APPLICABLE[detector.access] - NOT_APPLICABLE.get(name, set())
        calibration = alarms.loc[name, "calibration"]
        for benchmark in sorted(own["benchmark"].unique()):
            row: dict[str, Any] = {"detector": name, "benchmark": benchmark}
            row |= {"access": detector.access, "question": detector.question}
            row["is_exact"] = is_exact(detector)
            by_calibration = {CALIBRATED: PASSED, protocol.MISCALIBRATED: FAILED}
            words = {FALSE_ALARMS: by_calibration.get(calibration, calibration)}
            of_benchmark = own[own["benchmark"].eq(benchmark) & own["model"].eq(DOSED)]
            n_units = of_benchmark["unit"].nunique()
            margins = _margins(sets[sets["benchmark"].eq(benchmark)], detector, copies)
            for gate, (margin, low) in margins.items():
                row |= {f"{gate}_margin": margin, f"{gate}_low": low}
                words[gate] = NOT_RUN if np.isnan(low) else PASSED if low > 0 else FAILED
            words = {gate: words[gate] if gate in applicable else NOT_APPLIED for gate in GATES}
            is_control = name in CONTROL_NAMES
            verdict = gate_verdict(words, n_units, row["is_exact"])
            row |= {"verdict": "" if is_control or name in LEFT_OUT else verdict}
            rows.append(row | words | {"holds": control_holds(words) if is_control else None})
    return pd.DataFrame(rows).merge(alarms, left_on="detector", right_index=True)


def _margins(
    sets: pd.DataFrame, detector: interface.Detector, copies: int
) -> dict[str, tuple[float, float]]:
    """Mean and lower limit of score minus control for each gate that has a control."""
    verbatim = GATE_CONDITION.get(detector.name, VERBATIM)
    columns = ["detector", "condition", "model", "copies"]

    def of_units(model: str, condition: str = verbatim, name: str = detector.name) -> pd.DataFrame:
        key = [name, condition, model, 0 if model in (BASE, CLEAN) else copies]
        return sets[(sets[columns] == key).all(axis=1)].set_index("unit")

    # An AUC is against unread siblings already. With a set's score it has no scale in common.
    is_auc = detector.unit == interface.ROW
    text = of_units(DOSED, name=TEXT_ALONE if is_auc else TEXT_ALONE_SETS)
    dosed = of_units(DOSED)
    score = dosed["value"]
    scale = "value" if is_auc else "flagged"
    others = UNREAD_SETS.get(detector.name, (FRESH,))
    unread = [0.5] if is_auc else [of_units(DOSED, other)["value"] for other in others]
    differences = {
        BLIND: [dosed[scale] - text[scale]],
        BEFORE_READING: [score - of_units(BASE)["value"]],
        UNREAD_ROWS: [score - control for control in unread],
        CLEAN_MODELS: [score - of_units(CLEAN)["value"]],
        PLACEBO_NAME: [score - of_units(PLACEBO)["value"]],
    }
    return {gate: tuple(np.min([*map(superiority, of)], 0)) for gate, of in differences.items()}


def detector_table(sets: pd.DataFrame, gates: pd.DataFrame, room: str = "lab") -> pd.DataFrame:
    """``detectors.csv``: power in every cell with what the gates make of it; columns ``COLUMNS``.

    ``gates`` of ``gate_table`` for the same ``sets`` decides which detectors stand in the table,
    and in which order. word is of power alone. verdict is the same, but where the power is
    supported the gates decide: a claim needs both. A control makes no claim, so both are blank.
    """
    table = gates.merge(protocol.power_table(sets), on=["detector", "benchmark"])
    table["word"] = table["word"].mask(table["detector"].isin(CONTROL_NAMES), "")
    table["verdict"] = table["word"].where(table["word"].ne(SUPPORTED), table["verdict"])
    return table.assign(room=room, n_models=table["n_units"])[COLUMNS]


def spoken(gate: str) -> str:
    """A gate as a sentence calls it.

    >>> spoken("unread_rows"), spoken("false_alarms")
    ('held-out rows', 'false alarms')
    """
    names = {"unread_rows": "held-out rows", "before_reading": "before training"}
    return names.get(gate, gate.replace("_", " "))


def summarize_gates(gate_table: pd.DataFrame) -> str:
    """Which detectors pass their gates on every mini-benchmark, which fail one, which neither.

    A gate that a detector fails or leaves open on some of its benchmarks only is named with them.
    The rate of false alarms of an exact test is no gate, and a sentence of its own says where it
    is not passed. Detectors that are ``LEFT_OUT`` are not counted.
    """
    counted = gate_table[~gate_table["detector"].isin(LEFT_OUT)]
    groups: dict[str, list[str]] = {PASSED: [], UNDETERMINED: [], FAILED: []}
    for name, rows in counted.groupby("detector", sort=False):
        no_gate = {PLACEBO_NAME, FALSE_ALARMS} if rows["is_exact"].all() else {PLACEBO_NAME}
        words = {
            word: [
                _where(gate, rows.loc[rows[gate].eq(word), "benchmark"].tolist(), len(rows))
                for gate in GATES
                if gate not in no_gate and rows[gate].eq(word).any()
            ]
            for word in (FAILED, UNDETERMINED, NOT_RUN)
        }
        why = words[FAILED] or words[UNDETERMINED] + words[NOT_RUN]
        kind = FAILED if words[FAILED] else UNDETERMINED if why else PASSED
        groups[kind].append(f"{name} ({', '.join(why)})" if why else name)
    n = sum(map(len, groups.values()))
    did = {
        PASSED: "passed every gate that applies",
        UNDETERMINED: "failed no gate, but a gate could not be decided",
        FAILED: "failed at least one gate",
    }
    sentences = [
        f"{len(names)} of {n} detectors {did[kind]}{': ' + ', '.join(names) if names else ''}."
        for kind, names in groups.items()
        if names or kind == PASSED
    ]
    return " ".join([*sentences, *_counts_of_exact(counted)])


def _where(gate: str, benchmarks: Sequence[str], n: int) -> str:
    """A gate as a sentence calls it, with its benchmarks if they are not all ``n`` of them."""
    return spoken(gate) if len(benchmarks) == n else f"{spoken(gate)} on {listed(benchmarks)}"


def _counts_of_exact(counted: pd.DataFrame) -> list[str]:
    """A sentence on exact tests whose false alarms are too many, or too few sets to say so."""
    exact = counted[counted["is_exact"]].drop_duplicates("detector")
    names = {
        word: exact.loc[exact[FALSE_ALARMS].eq(word), "detector"].tolist()
        for word in (FAILED, UNDETERMINED)
    }
    said = [f"{word} for {listed(of)}" for word, of in names.items() if of]
    text = "The count of false alarms, which is no gate for an exact test, came out as"
    return [f"{text} {listed(said)}."] if said else []
