"""Write tables that the package carries, so that those who use it need not compute them.

    python scripts/package_tables.py rule_choices       # needs the authors' files (make data)
    python scripts/package_tables.py detected_copies    # reads the ledger; a minute

``rule_choices`` is what rules without memory take in DCQ's released quizzes: letters and margins,
no text. ``detected_copies`` is how many copies of a row the tests of the pretraining study find,
which pages of audits quote.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from contamination.audit import detected_copies
from contamination.core import storage
from contamination.data import published
from contamination.dcq import controls, quizzes
from contamination.study import row_pools
from contamination.study.scores import read_scores, seeds_of


def released_choices() -> pd.DataFrame:
    """Rows of ``published.rule_choices``, margins to six decimals."""
    return controls.rule_choices(quizzes.released_quizzes()).round({"margin": 6})


def copies_found() -> pd.DataFrame:
    """Rows of ``detected_copies.load_detection_table``, shares to six decimals."""
    frame = read_scores()
    shares = pd.DataFrame(row_pools.exposure(row_pools.the_lab(), seeds_of(frame)))
    return detected_copies.detected_copies(frame, shares).round({"row_share_pct": 6})


TABLES = {
    "rule_choices": (Path(published.__file__).parent / published.RULE_CHOICES, released_choices),
    "detected_copies": (detected_copies.PATH, copies_found),
}

if __name__ == "__main__":
    path, made = TABLES[sys.argv[1]]
    storage.write_csv(path, made())
    print(f"{path} is written")
