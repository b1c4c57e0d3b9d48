"""The real WikiMIA: its passages where the files are at hand, and what their words alone say.

``python -m contamination.min_k.released`` writes the blind scores of every passage
into the package, so that the blind table of WikiMIA needs no text.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from contamination import partitions, published, storage
from contamination.min_k.blind import fold_scores, table_of_scores
from contamination.sources import source_file

LENGTHS = (32, 64, 128, 256)
DECIMALS = 5


def wikimia_passages(length: int) -> tuple[list[str], np.ndarray]:
    """Passages of the real WikiMIA of one length, and their membership.

    Raises:
        FileNotFoundError: if the authors' files are not here.
    """
    path = source_file("nlp-titech/samia", f"wikimia/{length}.jsonl")
    return partitions.labelled_passages(partitions.load_rows(str(path)), "input", "label")


def wikimia_blind_scores() -> pd.DataFrame:
    """Blind scores of every passage of WikiMIA, from its texts; numbers and labels alone.

    Returns:
        length (words), index (row of the file), and the columns of ``blind.fold_scores``.
    """
    parts = []
    for length in LENGTHS:
        scored = fold_scores(*wikimia_passages(length)).round(DECIMALS)
        scored.insert(0, "length", length)
        scored.insert(1, "index", range(len(scored)))
        parts.append(scored)
    return pd.concat(parts, ignore_index=True)


def wikimia_blind_table(n_resamples: int = 10_000) -> pd.DataFrame:
    """AUC of the blind baselines on the real WikiMIA, from the scores in the package.

    Args:
        n_resamples: bootstrap resamples of the passages.

    Returns:
        length and the columns of ``blind.table_of_scores``, four lengths by three baselines.
    """
    parts = []
    for length, scored in published.wikimia_blind_scores().groupby("length"):
        table = table_of_scores(scored, n_resamples=n_resamples)
        table.insert(0, "length", length)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


if __name__ == "__main__":
    scores = wikimia_blind_scores().astype({"is_member": int})
    storage.write_csv(Path(published.__file__).parent / published.WIKIMIA_SCORES, scores)
