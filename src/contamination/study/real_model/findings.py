"""What the tables of notebook 12 say: rows to show, titles of figures, sentences, a conclusion.

``results`` are tables by name, as in ``real_model``; a part that was not asked has none. ``model``
is the model's name in the tables, and ``short_name`` gives the name in a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from contamination.core.tables import MISSING, copies_text, listed
from contamination.core.verdicts import SUPPORTED
from contamination.replication.decisions import ALGORITHM_2
from contamination.replication.instructions import GUIDED
from contamination.study.real_model import (
    IN_WORDS,
    PARTS,
    answer_findings,
    quiz_findings,
    short_name,
    tuned_findings,
)

# Of each part: its question, what is measured, and the control.
QUESTIONS = {
    "quiz": ("Does it find the original?", "lead over a clean model", "lead on our own quizzes"),
    "completions": (
        "Does it complete instances?",
        "partitions called contaminated under the right names",
        "other instructions",
    ),
    "judge": (
        "Can it replace the judge?",
        "share of near-exact matches that both judge and person find",
        "a rule, and a constant answer",
    ),
    "dates": (
        "Can it tell older from newer pages?",
        "AUC of older against newer pages",
        "AUC of the words alone",
    ),
    "copies": (
        "Could the score see copies at all?",
        "AUC of pages with copies against pages without",
        "AUC before the copies",
    ),
    "doses": (
        "How does the AUC follow the number of copies?",
        "AUC of seen against held-out rows",
        "fresh rows",
    ),
}


def overview(results: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What is measured for each question, its control, and whether *supported* can be reached.

    Returns:
        question, measured, control and reachable, all texts, a row for each of ``QUESTIONS``.
    """
    reachable = dict.fromkeys(QUESTIONS, "yes")
    reachable |= {"quiz": "where the clean model leaves room", "dates": "above the words alone"}
    reachable |= {"copies": "no verdict: a control itself", "doses": "no verdict: p-values"}
    if "pretrained_readings" in results:
        n_without, n, _ = quiz_findings.room(results["pretrained_readings"])
        reachable["quiz"] = f"on {n - n_without} of {n} benchmarks"
    if "pretrained_min_k" in results:
        of_words = results["pretrained_min_k"]["blind_auc"].min()
        reachable["dates"] = f"only with an AUC above {of_words:.2f}"
    rows = [(*QUESTIONS[part], text) for part, text in reachable.items()]
    return pd.DataFrame(rows, columns=["question", "measured", "control", "reachable"])


def summary(
    results: Mapping[str, pd.DataFrame],
    model: str,
    by_condition: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The result and the verdicts of each question that has some; arguments of ``conclusion``.

    Returns:
        question, measured, control, result, and verdicts: "9 inconclusive, 1 not supported".
    """
    found = {}
    if "pretrained_readings" in results:
        readings = results["pretrained_readings"]
        n_ahead, n, n_unseen, n_own = quiz_findings.leads(readings)
        text = f"ahead of the clean model on {n_ahead} of {n} benchmarks, and on {n_unseen} of "
        text += f"{n_own} sets of our own quizzes"
        found["quiz"] = (text, _counted(readings["verdict"]))
    if "pretrained_replication" in results:
        decided = results["pretrained_replication"]
        of_2 = decided[decided["method"].eq(ALGORITHM_2)]
        is_right, called = of_2["instruction"].eq(GUIDED), of_2["contaminated"].astype(bool)
        text = f"{called[is_right].sum()} of {is_right.sum()}; under other instructions "
        text += f"{called[~is_right].sum()} of {(~is_right).sum()}"
        found["completions"] = (text, _counted(of_2.loc[is_right, "verdict"]))
    if "pretrained_judge" in results:
        judges = answer_findings.judge_rows(results["pretrained_judge"], model)
        own = judges[judges["judge"].eq(short_name(model))]
        others = judges.loc[judges["judge"].ne(short_name(model)), "near"]
        text = f"{own['near'].iloc[0]}; the controls {listed(others.tolist())}"
        found["judge"] = (text, _counted(own["verdict"]))
    if "pretrained_min_k" in results:
        capsule = results["pretrained_min_k"]
        text = f"{capsule['auc'].min():.2f} to {capsule['auc'].max():.2f}; the words alone "
        text += f"{capsule['blind_auc'].min():.2f} or more"
        found["dates"] = (text, _counted(capsule["verdict"]))
    if "pretrained_control" in results:
        within = answer_findings.rows_within(results["pretrained_control"])
        before, after = (
            answer_findings.aucs_text(within[column]) for column in ("before_auc", "auc")
        )
        text = f"{after} after {copies_text(within['copies'].iloc[0])}, {before} before"
        found["copies"] = (text, MISSING)
    if by_condition is not None:
        found["doses"] = (tuned_findings.doses_in_brief(by_condition), MISSING)
    rows = [(*QUESTIONS[part], *found[part]) for part in QUESTIONS if part in found]
    return pd.DataFrame(rows, columns=["question", "measured", "control", "result", "verdicts"])


def _counted(verdicts: pd.Series) -> str:
    """Verdicts with their numbers, the most frequent first; rows without a claim have none."""
    counts = verdicts[verdicts.ne("")].value_counts()
    return ", ".join(f"{n} {word}" for word, n in counts.items())


def conclusion(
    results: Mapping[str, pd.DataFrame],
    model: str,
    by_condition: pd.DataFrame | None = None,
) -> str:
    """What the answers of a real model show together, next to the table of ``summary``.

    Args:
        results: some or all tables of ``real_model.PARTS``.
        model: name of the model that was asked.
        by_condition: as in :func:`of_doses`.
    """
    known = [part for part, tables in PARTS.items() if set(tables) <= set(results)]
    claims = {"quiz": "readings", "completions": "replication", "dates": "min_k"}
    pointing = [
        int(results[f"pretrained_{name}"]["verdict"].eq(SUPPORTED).sum())
        for part, name in claims.items()
        if part in known
    ]
    name = short_name(model)
    paragraphs = [[_opening(pointing, name)]]
    if "quiz" in known:
        paragraphs[0].append(quiz_findings.of_quiz(results["pretrained_readings"], name))
    able = []
    if "copies" in known:
        able.append(answer_findings.of_copies(results["pretrained_control"]))
    if by_condition is not None:
        able.append(tuned_findings.of_fewest(by_condition))
    paragraphs.append(able)
    if missing := [IN_WORDS[part] for part in PARTS if part not in known]:
        text = f"This conclusion leaves out what was not asked: {listed(missing)}."
        paragraphs.append([text])
    return "\n\n".join(" ".join(sentences) for sentences in paragraphs if sentences)


def _opening(pointing: list[int], name: str) -> str:
    """The answer to the question of the notebook: rows that support memory, of each part."""
    if sum(pointing):
        return (
            "Some results point to training on the texts that we asked about, which is a reason "
            "to look closer and not a proof."
        )
    if pointing:
        return (
            f"Nothing here shows that {name} was trained on the texts that we asked about, and "
            "nothing shows that it was not."
        )
    return f"We asked {name} nothing whose answer could point to training."
