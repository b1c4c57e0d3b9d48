"""The gates of the protocol: what must be ruled out before a flag says that rows were read.

Each gate but the last asks whether a score is above that of a control, unit by unit: the lower
one-sided 95 % limit of score minus control must lie above 0. Not being shown superior is failing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from contamination.study import interface, protocol
from contamination.study.conditions import SWAP, TEXT_ALONE, TEXT_ALONE_SETS
from contamination.study.protocol import BASE, CALIBRATED, CLEAN, DOSED, NOT_RUN, PLACEBO

BLIND = "blind"  # G1: a classifier of the text alone
BEFORE_READING = "before_reading"  # G2: the base model, on the same rows
UNREAD_ROWS = "unread_rows"  # G3: unread rows of the same draw
CLEAN_MODELS = "clean_models"  # G4: the clean model of the same draw
# The same model, asked under another name: reported, but no verdict hangs on it. Superiority would
# fail a detector whose evidence does not need the name, which is no fault of it.
PLACEBO_NAME = "placebo_name"
FALSE_ALARMS = "false_alarms"  # G5: calibrated
GATES = (BLIND, BEFORE_READING, UNREAD_ROWS, CLEAN_MODELS, PLACEBO_NAME, FALSE_ALARMS)

# Which gates a detector must pass, by what it sees of a model; fixed before any result.
APPLICABLE = {
    interface.ANSWERS: {BLIND, UNREAD_ROWS, CLEAN_MODELS, PLACEBO_NAME, FALSE_ALARMS},
    interface.LOG_PROBABILITIES: {BLIND, UNREAD_ROWS, CLEAN_MODELS, FALSE_ALARMS},
    interface.WEIGHTS: {BLIND, BEFORE_READING, UNREAD_ROWS, CLEAN_MODELS, FALSE_ALARMS},
}
# Exceptions, by name. Exchangeability sees nothing but the order, in which a bag has no part.
NOT_APPLICABLE = {"exchangeability": {BLIND}, "ConStat": {BLIND}}
# Of all others: verbatim.
GATE_CONDITION = {"exchangeability": protocol.ORDERED, "dataset inference": protocol.ORDERED}
GATE_CONDITION |= {"option margin": SWAP}
# Detectors of sets whose p is exact, as by re-dealing it is for rows. Their false alarms need no
# proof, and fail the gate only where they are shown to be too many.
EXACT = {"exchangeability"}
GATE_COPIES = 12  # the largest dose of the lab
# G3 of a score of a set: conditions of the same model that it must exceed, each of them.
UNREAD_SETS = {"exchangeability": (protocol.SHUFFLED, protocol.FRESH)}

PASSED, FAILED, NOT_APPLIED = "passed", "failed", "not applicable"
ROWS_WERE_READ, STANDS_OUT, INFLATED = "rows were read", "stands out from clean models", "inflated"

COLUMNS = ["detector", "access", "room", "question", *protocol.CELL, "n_units", "n_models"]
COLUMNS += [*protocol.POWERS, *GATES, *protocol.RATES, "calibration", "word", "verdict"]


def superiority(differences: np.ndarray) -> tuple[float, float]:
    """Mean over units of score minus control, shape (n_units,), and its lower 95 % limit.

    One-sided t interval: a bootstrap of few units is too narrow. NaN is left out; both are NaN
    below three units.
    """
    values = np.asarray(differences, dtype=float)
    values = values[~np.isnan(values)]
    if values.size < protocol.N_UNITS:
        return np.nan, np.nan
    t = stats.t.ppf(1 - protocol.LEVEL, values.size - 1)
    return float(values.mean()), float(values.mean() - t * stats.sem(values))


def gate_verdict(words: Mapping[str, str]) -> str:
    """What the gates of one detector, gate to word, allow it to say of rows that it flags.

    "failed" if one failed; "rows were read" if all that apply were passed, and G2 or G3 are among
    them; "stands out from clean models" if all but these two were; else "not run".
    """
    of_rows = {words[BEFORE_READING], words[UNREAD_ROWS]} - {NOT_APPLIED}
    apart = (BEFORE_READING, UNREAD_ROWS, PLACEBO_NAME)
    others = {words[gate] for gate in GATES if gate not in apart}
    if FAILED in of_rows | others:
        return FAILED
    if others & {NOT_RUN, protocol.UNDETERMINED}:
        return NOT_RUN
    return ROWS_WERE_READ if of_rows == {PASSED} else STANDS_OUT


def gate_table(
    sets: pd.DataFrame, detectors: Sequence[interface.Detector], copies: int = GATE_COPIES
) -> pd.DataFrame:
    """Every gate of every detector and benchmark, on verbatim rows at the largest dose.

    ``sets`` as in ``protocol``, with "text alone" as one more detector; ``copies`` is the largest
    dose of the room. ValueError for a detector without sets.

    Returns:
        detector, access, question, benchmark; for each gate its word (passed, failed, not run,
        not applicable; of false_alarms also undetermined) and, but for false_alarms,
        ``<gate>_margin`` and ``<gate>_low``: the mean of score minus control over units and its
        lower limit; the columns of ``protocol.false_alarms``; verdict (``gate_verdict``).
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
            row = {"detector": name, "benchmark": benchmark}
            row |= {"access": detector.access, "question": detector.question}
            by_calibration = {CALIBRATED: PASSED, protocol.MISCALIBRATED: FAILED}
            if detector.unit == interface.ROW or name in EXACT:
                by_calibration[protocol.UNDETERMINED] = PASSED
            words = {FALSE_ALARMS: by_calibration.get(calibration, calibration)}
            margins = _margins(sets[sets["benchmark"].eq(benchmark)], detector, copies)
            for gate, (margin, low) in margins.items():
                row |= {f"{gate}_margin": margin, f"{gate}_low": low}
                words[gate] = NOT_RUN if np.isnan(low) else PASSED if low > 0 else FAILED
            words = {gate: words[gate] if gate in applicable else NOT_APPLIED for gate in GATES}
            rows.append(row | words | {"verdict": gate_verdict(words)})
    return pd.DataFrame(rows).merge(alarms, left_on="detector", right_index=True)


def _margins(
    sets: pd.DataFrame, detector: interface.Detector, copies: int
) -> dict[str, tuple[float, float]]:
    """Mean and lower limit of score minus control for each gate that has a control."""
    verbatim = GATE_CONDITION.get(detector.name, protocol.VERBATIM)
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
    others = UNREAD_SETS.get(detector.name, (protocol.FRESH,))
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
    """``study.csv``: power in every cell with what the gates make of it; columns ``COLUMNS``.

    ``gates`` of ``gate_table`` for the same ``sets`` decides which detectors stand in the table,
    and in which order. word is of power alone. verdict is the same, but "seen" needs all gates:
    without G2 and G3 it is "stands out from clean models", with a gate failed or not run "cannot
    tell", and "inflated" of a detector that does not ask whether rows were read.
    """
    table = gates.merge(protocol.power_table(sets), on=["detector", "benchmark"])
    names = {ROWS_WERE_READ: protocol.SEEN, STANDS_OUT: STANDS_OUT}
    seen = table["verdict"].map(names).fillna(protocol.CANNOT_TELL)
    seen = seen.mask(seen.eq(protocol.SEEN) & table["question"].ne(interface.READ), INFLATED)
    table["verdict"] = table["word"].where(table["word"].ne(protocol.SEEN), seen)
    return table.assign(room=room, n_models=table["n_units"])[COLUMNS]


def headline(gate_table: pd.DataFrame) -> str:
    """Which detectors pass all their gates on every mini-benchmark, in one sentence."""
    verdicts = gate_table.groupby("detector", sort=False)["verdict"].agg(set)
    passed = verdicts.index[[words <= {ROWS_WERE_READ, STANDS_OUT} for words in verdicts]]
    n_failed = sum(FAILED in words for words in verdicts)
    return (
        f"Of {len(verdicts)} detectors these pass every gate that applies: "
        f"{', '.join(passed) or 'none'}. "
        f"Fail one: {n_failed}; undecided: {len(verdicts) - len(passed) - n_failed}."
    )
