"""Does what the lab's quizzes show hang on the respondent that stands in for a chat model?

Its temperature and threshold are stated, not measured. They come after the
likelihoods, which stay: so every answer is decided anew at every setting of a
small grid, without a model, and each reading of the table is taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from contamination.dcq.assessment import POSITIONS, assess, positions_to_quiz
from contamination.dcq.known_truth import (
    CLEAN,
    HALF,
    RANKING,
    RESPONDENT,
    UNSEEN,
    WITH_LABEL,
    WITHOUT_LABEL,
    WRONG_LABEL,
)
from contamination.dcq.quizzes import MODIFIED, SECOND, STANDARD
from contamination.dcq.respondents import LOG_PROBS, AnswerRule

# Half and double the stated temperature; from "never E" to "nearly always E".
TEMPERATURES = (0.375, 0.75, 1.5)
THRESHOLDS = (0.0, 0.5, 0.7, 0.9)
KEYS = ["dataset", "model", "copies", "seed", "condition"]
DOSES = ["dataset", "copies"]
RISE_PCT = 10.0  # a smaller rise is within what chance does to one draw of quizzes
LEAST_LEVEL_PCT = 10.0  # a lower level leaves nothing to compare
RANGE_READING = "where the range lies, against the truth, in most sets read"
Reading = Callable[[pd.DataFrame], str]


def settings(stated: AnswerRule) -> Iterator[AnswerRule]:
    """The grid, which the stated setting joins."""
    temperatures = sorted({*TEMPERATURES, stated.temperature})
    thresholds = sorted({*THRESHOLDS, stated.none_below})
    for temperature, none_below in product(temperatures, thresholds):
        yield replace(stated, temperature=temperature, none_below=none_below)


def sweep(lab: pd.DataFrame, answers: pd.DataFrame, stated: AnswerRule) -> pd.DataFrame:
    """``dcq_respondent.csv``: the respondent's levels at every setting of the grid.

    ``lab`` and ``answers`` are ``dcq_lab`` and ``dcq_answers``.
    """
    about = lab[lab["respondent"] == RESPONDENT].set_index(KEYS)
    about = about[["true_contamination_pct", "replication_pct", "n"]]
    log_probs = {key: _log_probs(rows) for key, rows in answers.groupby(KEYS, sort=False)}
    rows = [
        {"temperature": setting.temperature, "none_below": setting.none_below}
        | {"is_stated": setting == stated}
        | dict(zip(KEYS, key, strict=True))
        | about.loc[key].to_dict()
        | levels_at(*of_set, setting)
        for setting, (key, of_set) in product(settings(stated), log_probs.items())
    ]
    return pd.DataFrame(rows).astype({"n": int})


def _log_probs(answers: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of four perturbations, shape (n, 4), of originals and of fifth ones, shape (n,); nats."""

    def placed(quiz: str) -> np.ndarray:
        rows = answers[answers["quiz"] == quiz]
        position = rows["position"].iloc[0]
        return rows.loc[rows["position"] == position, f"log_prob_{position.lower()}"].to_numpy()

    modified = answers.loc[answers["quiz"] == MODIFIED, list(LOG_PROBS)].to_numpy()
    return modified, placed(STANDARD), placed(SECOND)


def levels_at(
    modified: np.ndarray, original: np.ndarray, fifth: np.ndarray, stated: AnswerRule
) -> dict[str, float]:
    """The quiz taken from log-probabilities: minimum, maximum and choices, in percent.

    ``modified`` are those of the four perturbations, shape (n, 4), nats; ``original`` and
    ``fifth`` of the originals and the fifth perturbations, shape (n,). none_pct is E in the
    modified quiz; modified_pct, original_pct and fifth_pct are answers at the position
    that the modified quiz chose least, with these texts there.
    """
    spread, n = float(modified.std(axis=1, ddof=1).mean()), len(modified)

    def letters(placed: np.ndarray | None = None, position: str = "") -> list[str]:
        shown = modified.copy()
        if placed is not None:
            shown[:, POSITIONS.index(position)] = placed
        return stated.answers(shown, spread)[0].tolist()

    chosen = letters()
    counts = {letter: chosen.count(letter) for letter in POSITIONS}
    standard = {p: letters(original, p) for p in positions_to_quiz(counts, n)}
    level = assess(chosen, standard)
    least = min(POSITIONS, key=counts.__getitem__)
    return {
        "min_pct": 100 * level.minimum,
        "max_pct": 100 * level.maximum,
        "none_pct": 100 * chosen.count("E") / n,
        "modified_pct": 100 * counts[least] / n,
        "original_pct": 100 * standard[least].count(least) / n,
        "fifth_pct": 100 * letters(fifth, least).count(least) / n,
    }


# Readings of the rows of one setting, beside those of option ranking, which has no setting.


def _of(lab: pd.DataFrame, *conditions: str) -> pd.DataFrame:
    return lab[lab["condition"].isin(conditions) & lab["respondent"].eq(RESPONDENT)]


def _cases(is_so: pd.Series) -> str:
    return f"{int(is_so.sum())} of {len(is_so)}"


def _at_largest_dose(lab: pd.DataFrame, *conditions: str) -> pd.DataFrame:
    rows = _of(lab, *conditions)
    return rows[rows["copies"] == rows["copies"].max()]


def gains(lab: pd.DataFrame, respondent: str) -> pd.Series:
    """Maximum on sets read with label minus that on sets the same model never read, points."""
    rows = lab[lab["respondent"] == respondent]
    levels = rows.set_index([*DOSES, "seed"])["max_pct"]
    unread = levels[(rows["condition"] == UNSEEN).to_numpy()].droplevel("copies")
    read = levels[(rows["condition"] == WITH_LABEL).to_numpy()]
    return read - unread.reindex(read.index.droplevel("copies")).to_numpy()


def range_and_truth(lab: pd.DataFrame) -> str:
    """Where the range lies in most sets of which all or half was read with its label (Table 1)."""
    rows = _of(lab, WITH_LABEL, HALF)
    truth = rows["true_contamination_pct"]
    sides = {"below": rows["max_pct"] < truth, "above": rows["min_pct"] > truth}
    return next((side for side, is_so in sides.items() if is_so.mean() > 0.5), "neither")


def read_and_unread(lab: pd.DataFrame) -> str:
    """Datasets and doses where every model is credited with more of what it read."""
    return _cases(gains(lab, RESPONDENT).groupby(DOSES).min() > 0)


def respondent_and_ranking(lab: pd.DataFrame) -> str:
    """Datasets and doses where the respondent gains less; each has another level of chance."""
    respondent, ranking = (gains(lab, name).groupby(DOSES).mean() for name in (RESPONDENT, RANKING))
    return _cases(respondent < ranking)


def quiz_and_replication(lab: pd.DataFrame) -> str:
    """Datasets and doses where the quiz gains more than replication does (Tables 2 and 3)."""
    shares = ["max_pct", "replication_pct"]
    unread = _of(lab, UNSEEN).groupby("dataset")[shares].mean()
    read = _of(lab, WITH_LABEL).groupby(DOSES)[shares].mean()
    gain = read - unread.reindex(read.index, level="dataset")
    return _cases(gain["max_pct"] > gain["replication_pct"])


def label_matters(lab: pd.DataFrame) -> str:
    """What was read otherwise than with its label and is credited with half as much (section 2)."""
    conditions = [WITH_LABEL, WITHOUT_LABEL, WRONG_LABEL]
    rows = _at_largest_dose(lab, *conditions)
    rows = rows[rows["dataset"].isin(_of(lab, WITHOUT_LABEL)["dataset"])]
    means = rows.groupby("condition")["max_pct"].mean()
    if not set(conditions) <= set(means.index):
        return "not read otherwise"
    if means[WITH_LABEL] < LEAST_LEVEL_PCT:
        return "too little is recognised"
    others = means.drop(WITH_LABEL)
    return " and ".join(sorted(others.index[others >= means[WITH_LABEL] / 2])) or "neither"


def level_of_unread(lab: pd.DataFrame) -> str:
    """Whether sets that nobody read are credited with little (mean maximum); the truth is 0."""
    level = _of(lab, UNSEEN, CLEAN)["max_pct"].mean()
    return f"{'at most' if level <= LEAST_LEVEL_PCT else 'above'} {LEAST_LEVEL_PCT:.0f} %"


def answers_move(lab: pd.DataFrame) -> str:
    """Models that move to an original that they read, and not to a fifth text (Figure 2)."""
    rows = _at_largest_dose(lab, WITH_LABEL)
    moves = rows["original_pct"] - rows["modified_pct"] > RISE_PCT
    stays = (rows["fifth_pct"] - rows["modified_pct"]).abs() <= RISE_PCT
    return _cases(moves & stays)


def answers_of_clean_models_move(lab: pd.DataFrame) -> str:
    """The control of :func:`answers_move`."""
    rows = _of(lab, CLEAN)
    return _cases(rows["original_pct"] - rows["modified_pct"] > RISE_PCT)


READINGS: dict[str, Reading] = {
    RANGE_READING: range_and_truth,
    "credited with more of what was read than of what was not, every model": read_and_unread,
    "gains less than option ranking": respondent_and_ranking,
    "the quiz gains more than replication": quiz_and_replication,
    "read otherwise and credited with at least half as much": label_matters,
    "sets that nobody read, mean maximum": level_of_unread,
    "answers move to the original, not to a fifth text; dosed models": answers_move,
    "answers move to the original; clean models": answers_of_clean_models_move,
}


def readings_table(
    swept: pd.DataFrame, lab: pd.DataFrame, readings: Mapping[str, Reading] = READINGS
) -> pd.DataFrame:
    """``dcq_readings.csv``: what the table says at the stated setting, and at how many others.

    elsewhere has the other answers of a reading, with the number of their settings; holds:
    whether no setting says anything else.
    """
    ranking = lab[lab["respondent"] != RESPONDENT]
    tables = [
        (rows["is_stated"].any(), pd.concat([rows.assign(respondent=RESPONDENT), ranking]))
        for _, rows in swept.groupby(["temperature", "none_below"], sort=False)
    ]
    table = []
    for name, reading in readings.items():
        said = [reading(rows) for _, rows in tables]
        stated = said[[is_stated for is_stated, _ in tables].index(True)]
        others = pd.Series([text for text in said if text != stated], dtype=str).value_counts()
        table.append(
            {"reading": name, "stated": stated}
            | {"elsewhere": "; ".join(f"{answer} ({n})" for answer, n in others.items())}
            | {"n_settings": len(said), "n_same": said.count(stated)}
            | {"holds": others.empty}
        )
    return pd.DataFrame(table)
