"""Does what the lab's quizzes show hang on the respondent that stands in for a chat model?

Temperature and threshold of the respondent are stated, not measured. They come
after the likelihoods, which stay: so every answer is decided anew at every
setting of a small grid, without a model, and each reading of the table is
taken again. A reading that changes on the grid is one of the respondent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from contamination.dcq.assessment import POSITIONS, assess, positions_to_quiz
from contamination.dcq.quizzes import MODIFIED, SECOND, STANDARD
from contamination.dcq.respondents import LOG_PROBS, Stated

# Half and double the stated temperature; from "never E" to "nearly always E".
TEMPERATURES = (0.375, 0.75, 1.5)
THRESHOLDS = (0.0, 0.5, 0.7, 0.9)
KEYS = ["dataset", "model", "copies", "seed", "condition"]
HOLDS, HANGS = "holds at every setting", "hangs on the respondent"
Reading = Callable[[pd.DataFrame], str]


def sweep(lab: pd.DataFrame, answers: pd.DataFrame, stated: Stated) -> pd.DataFrame:
    """``dcq_respondent.csv``: the respondent's levels at every setting of the grid.

    Args:
        lab, answers: of ``study.lab_tables``.
        stated: prior and the setting that the notebook uses, which joins the grid.

    Returns:
        temperature, none_below, is_stated, the respondent's rows of ``lab`` with
        min_pct and max_pct of the setting (recall, precision and intervals are
        left out), and none_pct (E in the modified quiz), original_pct,
        fifth_pct and modified_pct (answers at the position that the modified
        quiz chose least: with the original there, with a fifth perturbation there
        and in the modified quiz).
    """
    about = lab[lab["respondent"] == "respondent"].set_index(KEYS)
    about = about[["true_contamination_pct", "replication_pct", "n"]]
    temperatures = sorted({*TEMPERATURES, stated.temperature})
    thresholds = sorted({*THRESHOLDS, stated.none_below})
    texts = {key: _log_probs(rows) for key, rows in answers.groupby(KEYS, sort=False)}
    found = []
    for temperature in temperatures:
        for none_below in thresholds:
            setting = replace(stated, temperature=temperature, none_below=none_below)
            same = {"temperature": temperature, "none_below": none_below}
            same["is_stated"] = setting == stated
            for key, scored in texts.items():
                row = same | dict(zip(KEYS, key, strict=True)) | about.loc[key].to_dict()
                found.append(row | levels_at(*scored, setting))
    return pd.DataFrame(found).astype({"n": int})


def _log_probs(answers: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of four perturbations, shape (n, 4), of originals and of fifth ones, shape (n,); nats."""

    def at(quiz: str) -> np.ndarray:
        asked = answers[answers["quiz"] == quiz]
        position = asked["position"].iloc[0]
        return asked.loc[asked["position"] == position, f"log_prob_{position.lower()}"].to_numpy()

    modified = answers.loc[answers["quiz"] == MODIFIED, list(LOG_PROBS)].to_numpy()
    return modified, at(STANDARD), at(SECOND)


def levels_at(
    modified: np.ndarray, original: np.ndarray, fifth: np.ndarray, stated: Stated
) -> dict[str, float]:
    """The quiz taken from log-probabilities: minimum, maximum and choices, in percent.

    Args:
        modified: of the four perturbations, shape (n, 4), nats.
        original, fifth: of the originals and of the fifth perturbations, shape (n,).
        stated: the respondent.
    """
    spread = float(modified.std(axis=1, ddof=1).mean())

    def letters(placed: np.ndarray | None = None, position: str = "") -> list[str]:
        shown = modified.copy()
        if placed is not None:
            shown[:, POSITIONS.index(position)] = placed
        return stated.answers(shown, spread)[0].tolist()

    chosen, n = letters(), len(modified)
    counts = {letter: chosen.count(letter) for letter in POSITIONS}
    standard = {p: letters(original, p) for p in positions_to_quiz(counts, n)}
    found = assess(chosen, standard)
    least = min(POSITIONS, key=lambda position: counts[position])
    return {
        "min_pct": 100 * found.minimum,
        "max_pct": 100 * found.maximum,
        "none_pct": 100 * chosen.count("E") / n,
        "modified_pct": 100 * counts[least] / n,
        "original_pct": 100 * standard[least].count(least) / n,
        "fifth_pct": 100 * letters(fifth, least).count(least) / n,
    }


def readings_table(
    swept: pd.DataFrame, lab: pd.DataFrame, readings: Mapping[str, Reading]
) -> pd.DataFrame:
    """``dcq_readings.csv``: what the table says at the stated setting, and at how many others.

    Args:
        swept: of :func:`sweep`.
        lab: ``dcq_lab``, whose rows of option ranking have no setting.
        readings: question to answer, from the rows of one setting and those of ranking.

    Returns:
        reading, stated (the answer), elsewhere (other answers, with the number of
        their settings), n_settings, n_same, verdict: "holds at every setting" or
        "hangs on the respondent".
    """
    ranking = lab[lab["respondent"] != "respondent"]
    settings = swept.groupby(["temperature", "none_below"], sort=False)
    tables = [
        (rows["is_stated"].any(), pd.concat([rows.assign(respondent="respondent"), ranking]))
        for _, rows in settings
    ]
    found = []
    for name, reading in readings.items():
        said = [reading(table) for _, table in tables]
        stated = said[[is_stated for is_stated, _ in tables].index(True)]
        others = pd.Series([text for text in said if text != stated], dtype=str).value_counts()
        found.append(
            {"reading": name, "stated": stated}
            | {"elsewhere": "; ".join(f"{answer} ({n})" for answer, n in others.items())}
            | {"n_settings": len(said), "n_same": said.count(stated)}
            | {"verdict": HANGS if len(others) else HOLDS}
        )
    return pd.DataFrame(found)
