"""A model takes the quizzes (DCQ, section 3.2): modified first, then the standard ones.

A respondent is a function from the four texts of each quiz to one row each of
``answer`` (a letter A to E, or "" where none is usable) and ``status``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from contamination.core.families import correct_family
from contamination.core.statistics import end_p, share_difference_interval
from contamination.core.verdicts import CLAIMS, NOT_RUN
from contamination.dcq.assessment import (
    CHOICES,
    POSITIONS,
    assess,
    assessment_row,
    positions_to_quiz,
    standard_answers_of,
)
from contamination.dcq.quizzes import MODIFIED, SECOND, STANDARD, Texts, quiz_options
from contamination.models.chat import ERROR, OK, REFUSED

NO_LETTER = "?"
Respondent = Callable[[Sequence[Texts]], pd.DataFrame]


def answer_quizzes(
    respondent: Respondent, quizzes: pd.DataFrame, with_second: bool = False
) -> pd.DataFrame:
    """Every answer of one model on one partition: a row for each question.

    A standard quiz is taken at each least preferred position. With ``with_second``
    a fifth perturbation goes to the position that the modified quiz chose least, the
    first of them, as in Figure 2. ``position`` is "" in the modified quiz; behind
    answer and status stands what else the respondent records.
    """

    def answers_to(quiz: str, position: str = "") -> pd.DataFrame:
        key = {"index": quizzes["index"].to_numpy(), "quiz": quiz, "position": position}
        answers = respondent(quiz_options(quizzes, quiz, position)).reset_index(drop=True)
        return pd.concat([pd.DataFrame(key, index=answers.index), answers], axis=1)

    parts = [answers_to(MODIFIED)]
    counts = parts[0]["answer"].value_counts().to_dict()
    parts += [answers_to(STANDARD, at) for at in positions_to_quiz(counts, len(quizzes))]
    if with_second:
        parts.append(answers_to(SECOND, min(POSITIONS, key=lambda at: counts.get(at, 0))))
    return pd.concat(parts, ignore_index=True)


def instances_of(answers: pd.DataFrame) -> pd.DataFrame:
    """One row per instance, as the released answers have it: what ``assessment`` reads.

    Answers are "" where not asked, "?" where no usable letter came.
    """
    columns = {(MODIFIED, ""): "modified_answer"}
    columns |= {(STANDARD, position): f"answer_at_{position.lower()}" for position in POSITIONS}
    wide = pd.DataFrame({"index": answers.loc[answers["quiz"] == MODIFIED, "index"]})
    wide = wide.reset_index(drop=True)
    for (quiz, position), name in columns.items():
        chosen = answers[(answers["quiz"] == quiz) & (answers["position"] == position)]
        # What was asked and not usably answered must not look like what was not asked.
        wide[name] = chosen["answer"].replace("", NO_LETTER).to_numpy() if len(chosen) else ""
    return wide


def level_row(answers: pd.DataFrame, n_resamples: int, seed: int = 0) -> dict:
    """``assessment_row`` with n_asked, n_valid, n_refused and n_error over all quizzes.

    Unusable answers stay in the denominators of the shares.
    """
    status = answers["status"]
    return assessment_row(instances_of(answers), n_resamples, seed) | {
        "n_asked": len(answers),
        "n_valid": int(status.eq(OK).sum()),
        "n_refused": int(status.eq(REFUSED).sum()),
        "n_error": int(status.eq(ERROR).sum()),
    }


def recall_precision_row(
    answers: pd.DataFrame, is_seen: Sequence[bool], n_resamples: int, seed: int = 0
) -> dict:
    """``level_row`` where it is known which instances the model has read (Table 1).

    Recall: right answers among the instances seen. Precision: instances seen
    among the right answers. Both at the quiz of the maximum, and at that of the
    minimum: the second-best quiz where it gives the minimum, else, where kappa
    does, the best quiz again. Undefined with an empty denominator.
    ``is_seen`` has one entry for each instance, in the order of the quizzes.
    """
    instances = instances_of(answers)
    standard = standard_answers_of(instances)
    level = assess(instances["modified_answer"].tolist(), standard)
    is_of_second = level.minimum == level.second
    at = {
        "max": level.best_position,
        "min": level.second_position if is_of_second else level.best_position,
    }
    is_seen = pd.Series(list(is_seen), dtype=bool)
    row = level_row(answers, n_resamples, seed)
    row["true_contamination_pct"] = 100 * float(is_seen.mean())
    for end, position in at.items():
        right = pd.Series(standard[position]).eq(position)
        n_both = int((right & is_seen).sum())
        for name, n in (("recall", is_seen.sum()), ("precision", right.sum())):
            row[f"{name}_{end}_pct"] = 100 * n_both / int(n) if n else float("nan")
    return row


def position_rows(answers: pd.DataFrame, **labels: str) -> pd.DataFrame:
    """Rows of ``dcq_positions.csv``: how often each choice was taken in each quiz.

    The quizzes are those of ``answer_quizzes``; ``labels`` are source, dataset, split and model.
    """
    rows = []
    for (quiz, position), of_quiz in answers.groupby(["quiz", "position"], sort=False):
        counts = of_quiz["answer"].value_counts()
        key = {**labels, "quiz": quiz, "position": position}
        rows += [key | {"option": c, "count": int(counts.get(c, 0))} for c in CHOICES]
    table = pd.DataFrame(rows).assign(paper_count=pd.NA)
    return table.astype({"count": "Int64", "paper_count": "Int64"})


def moves_table(counts: pd.DataFrame) -> pd.DataFrame:
    """Do answers move to the position where the original is put? One row per panel of Figure 2.

    Args:
        counts: panel, quiz (those of ``answer_quizzes``), answers (how often the choice was made),
            is_there (the choice is the position of the original); every choice of every quiz.

    Returns:
        Answers at that position in percent: modified_pct, standard_pct (with the original there)
        and second_pct (with a fifth perturbation there, the control; empty if it was not
        released); rise_pct (standard minus modified, points) with a 95 % interval that takes
        the quizzes as two samples, which is wide for the same instances; control_low_pct and
        control_high_pct, the same of the control's rise; p of no rise, p_adjusted (Holm over panels
        that have a control), verdict, and note: why there is none.
    """
    rows, claim = [], CLAIMS["dcq_positions"]
    for panel, of_panel in counts.groupby("panel", sort=False):
        asked = of_panel.groupby("quiz")["answers"].sum()
        there = of_panel[of_panel["is_there"]].set_index("quiz")["answers"]
        row = {"panel": panel}
        for quiz in (MODIFIED, STANDARD, SECOND):
            share = 100 * there[quiz] / asked[quiz] if quiz in asked else float("nan")
            row[f"{quiz.split()[0]}_pct"] = share
        rises = {
            quiz: share_difference_interval(
                there[quiz], asked[quiz], there[MODIFIED], asked[MODIFIED]
            )
            for quiz in (STANDARD, SECOND)
            if quiz in asked
        }
        low, high = (100 * end for end in rises[STANDARD])
        row |= {"rise_pct": row["standard_pct"] - row["modified_pct"]}
        row |= {"ci_low_pct": low, "ci_high_pct": high}
        if SECOND in rises:
            low_of, high_of = (100 * end for end in rises[SECOND])
            control = low_of, high_of
            row |= dict(zip(("control_low_pct", "control_high_pct"), control, strict=True))
            row |= {
                "verdict": claim.verdict(low, high, control=control),
                "note": "",
                "p": end_p(row["rise_pct"], low, high),
            }
        else:
            note = "the control's answers were not released"
            row |= {"verdict": NOT_RUN, "note": note, "p": float("nan")}
        rows.append(row)
    columns = ["panel", "modified_pct", "standard_pct", "second_pct", "rise_pct", "ci_low_pct"]
    columns += ["ci_high_pct", "control_low_pct", "control_high_pct", "p", "p_adjusted"]
    columns += ["verdict", "note"]
    return correct_family(pd.DataFrame(rows)).reindex(columns=columns)
