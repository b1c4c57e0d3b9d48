"""The quizzes that the DCQ authors released: originals and their perturbations."""

from __future__ import annotations

import pandas as pd

from contamination.published import DCQ_DATASETS, WILD_DATASETS
from contamination.sources import source_file

REPOSITORY = "shahriargolchin/DCQ"
_FILES = {
    "HumanEval": "humaneval_test",
    "DROP": "drop_valid",
    "GSM8k": "gsm8k_train",
    "IMDB": "imdb_test",
    "AG News": "ag_news_test",
    "Yelp": "yelp_test",
    "RTE": "rte_valid",
    "WNLI": "wnli_valid",
    "SAMSum": "samsum_test",
    "XSum": "xsum_test",
}
OPTION_COLUMNS = ("option_a", "option_b", "option_c", "option_d")


def released_quizzes() -> pd.DataFrame:
    """Released quiz texts of the ten datasets, 1,035 rows.

    Returns:
        dataset, index, instance (the original), option_a to option_d. In the
        seven "wild" datasets option_d is the original itself; in the other
        three all four options are perturbations.
    """
    parts = []
    for dataset in DCQ_DATASETS:
        group = "wild_evaluation" if dataset in WILD_DATASETS else "reported_contamination"
        path = source_file(REPOSITORY, f"data/our_dcq/processed/{group}/{_FILES[dataset]}.csv")
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        rows = rows[["instance", *OPTION_COLUMNS]]
        parts.append(rows.assign(dataset=dataset, index=range(len(rows))))
    quizzes = pd.concat(parts, ignore_index=True)
    return quizzes[["dataset", "index", "instance", *OPTION_COLUMNS]]
