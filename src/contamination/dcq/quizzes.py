"""Quizzes made of perturbations and originals (DCQ, sections 3.1, 3.2 and 5.1)."""

from __future__ import annotations

import pandas as pd

from contamination.data.published import DCQ_DATASETS, WILD_DATASETS
from contamination.data.sources import source_file
from contamination.dcq.assessment import POSITIONS

MODIFIED, STANDARD, SECOND = "modified", "standard", "second perturbation"
OPTION_COLUMNS = ("option_a", "option_b", "option_c", "option_d")
REPOSITORY = "shahriargolchin/DCQ"
_WHAT_IS_PLACED = {STANDARD: "instance", SECOND: "fifth"}
# The split in a file's name, "test" for all others.
_SPLITS = {"DROP": "valid", "GSM8k": "train", "RTE": "valid", "WNLI": "valid"}

Texts = tuple[str, str, str, str]


def quiz_options(quizzes: pd.DataFrame, quiz: str, position: str = "") -> list[Texts]:
    """Texts of A to D for every instance; ValueError for what cannot be placed.

    In the "standard" quiz the original takes the place of the perturbation at
    ``position`` (A to D), in the "second perturbation" quiz the fifth one does; the
    "modified" quiz, of four perturbations, has none.
    """
    options = quizzes[list(OPTION_COLUMNS)].copy()
    if quiz != MODIFIED:
        if quiz not in _WHAT_IS_PLACED or position not in POSITIONS:
            raise ValueError(f'no {quiz} quiz with something placed at "{position}"')
        placed = quizzes[_WHAT_IS_PLACED[quiz]]
        if placed.eq("").any():
            raise ValueError(
                "a quiz has no fifth perturbation: make the perturbations by with_fifth"
            )
        options[OPTION_COLUMNS[POSITIONS.index(position)]] = placed
    return [tuple(texts) for texts in options.itertuples(index=False)]


def released_quizzes() -> pd.DataFrame:
    """The authors' quizzes of the ten datasets, 1,035 rows: dataset, index, instance, options.

    In the seven "wild" datasets option_d is the original itself; in the other
    three all four options are perturbations.
    """
    parts = []
    for dataset in DCQ_DATASETS:
        group = "wild_evaluation" if dataset in WILD_DATASETS else "reported_contamination"
        name = f"{dataset.lower().replace(' ', '_')}_{_SPLITS.get(dataset, 'test')}"
        path = source_file(REPOSITORY, f"data/our_dcq/processed/{group}/{name}.csv")
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        parts.append(rows.assign(dataset=dataset, index=range(len(rows))))
    columns = ["dataset", "index", "instance", *OPTION_COLUMNS]
    return pd.concat(parts, ignore_index=True)[columns]
