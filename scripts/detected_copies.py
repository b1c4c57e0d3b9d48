"""Write what pages of audits quote from the pretraining study.

That is how many copies of a row its tests find.

    python scripts/detected_copies.py

Reads the ledger; the shares of the training need the lab's tokenizer and take a minute. The package
carries the result, so that an audit needs neither.
"""

from __future__ import annotations

import pandas as pd

from contamination.audit import detected_copies
from contamination.core import storage
from contamination.study import row_pools
from contamination.study.scores import read_scores, seeds_of


def made() -> pd.DataFrame:
    """Rows of ``detected_copies.load_detection_table``, shares to six decimals."""
    frame = read_scores()
    shares = pd.DataFrame(row_pools.exposure(row_pools.the_lab(), seeds_of(frame)))
    return detected_copies.detected_copies(frame, shares).round({"row_share_pct": 6})


if __name__ == "__main__":
    storage.write_csv(detected_copies.PATH, made())
    print(f"{detected_copies.PATH} is written")
