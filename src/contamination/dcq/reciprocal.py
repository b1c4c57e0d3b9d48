"""Reciprocal evaluation (DCQ, appendix C): are replicated instances also recognised?

The paper: every instance replicated exactly or near-exactly was also answered
right in the quiz. The control is independence: if replication and recognition
had nothing to do with one another, replicas would be answered right as often
as any instance of the partition.
"""

from __future__ import annotations

import pandas as pd
from scipy import stats

from contamination.dcq.assessment import assess, standard_answers_of


def reciprocal_row(instances: pd.DataFrame) -> dict[str, float | int]:
    """One row of ``dcq_reciprocal.csv``: replicas of one model on one partition.

    Args:
        instances: modified_answer, answer_at_a to answer_at_d, judge.

    Returns:
        n_replicas; how many of them were right in the best quiz, in any and in
        all of the quizzes; how many would be right in the best quiz if
        replicas were answered like any instance; and p_at_least_as_many, the
        hypergeometric chance of as many or more under that independence
        (undefined without replicas).
    """
    standard = standard_answers_of(instances)
    best = assess(instances["modified_answer"].tolist(), standard).best_position
    right = pd.DataFrame(
        {position: [a == position for a in answers] for position, answers in standard.items()},
        index=instances.index,
    )
    is_replica = instances["judge"].ne("inexact")
    n, n_replicas = len(instances), int(is_replica.sum())
    n_right = int(right[best].sum())
    n_right_best = int(right.loc[is_replica, best].sum())
    p = float(stats.hypergeom.sf(n_right_best - 1, n, n_right, n_replicas))
    return {
        "n": n,
        "n_replicas": n_replicas,
        "n_right_best_quiz": n_right_best,
        "n_right_any_quiz": int(right[is_replica].any(axis=1).sum()),
        "n_right_all_quizzes": int(right[is_replica].all(axis=1).sum()),
        "expected_if_independent": n_replicas * n_right / n,
        "p_at_least_as_many": p if n_replicas else float("nan"),
    }
