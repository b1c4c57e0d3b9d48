"""The quizzes made of perturbations and originals (DCQ, sections 3.1, 3.2 and 5.1)."""

from __future__ import annotations

import pandas as pd

from contamination.dcq.assessment import POSITIONS
from contamination.dcq.released import OPTION_COLUMNS

MODIFIED, STANDARD, SECOND = "modified", "standard", "second perturbation"
_WHAT_IS_PLACED = {STANDARD: "instance", SECOND: "fifth"}

Texts = tuple[str, str, str, str]


def quiz_options(quizzes: pd.DataFrame, quiz: str, position: str = "") -> list[Texts]:
    """Texts of A to D for every instance.

    Args:
        quizzes: instance, option_a to option_d and, for the second perturbation, fifth.
        quiz: "modified" (four perturbations), "standard" (the original takes the
            place of the perturbation at ``position``) or "second perturbation" (a
            fifth perturbation does).
        position: A to D; "" in the modified quiz.

    Raises:
        ValueError: for an unknown quiz or position, or where no fifth perturbation is.
    """
    options = quizzes[list(OPTION_COLUMNS)].copy()
    if quiz != MODIFIED:
        if quiz not in _WHAT_IS_PLACED or position not in POSITIONS:
            raise ValueError(f'no {quiz} quiz with something placed at "{position}"')
        placed = quizzes[_WHAT_IS_PLACED[quiz]]
        if placed.eq("").any():
            raise ValueError("there is no fifth perturbation: perturb with with_fifth")
        options[OPTION_COLUMNS[POSITIONS.index(position)]] = placed
    return [tuple(texts) for texts in options.itertuples(index=False)]
