"""Write what rules without memory take in DCQ's released quizzes: letters and margins, no text.

    python scripts/rule_choices.py

Needs the authors' files (make data). The package carries the result, so that the
comparison of rules with models needs none.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from contamination.core import storage
from contamination.data import published
from contamination.dcq import controls, quizzes

PATH = Path(published.__file__).parent / published.RULE_CHOICES


def rule_choices() -> pd.DataFrame:
    """Rows of ``published.rule_choices``, margins to six decimals."""
    return controls.rule_choices(quizzes.released_quizzes()).round({"margin": 6})


if __name__ == "__main__":
    storage.write_csv(PATH, rule_choices())
    print(f"{PATH} is written")
