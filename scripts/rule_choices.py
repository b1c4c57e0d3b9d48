"""Write the table of rules' choices that the package carries, so that nobody need compute it.

    python scripts/rule_choices.py       # needs the authors' files (make data)

It is what rules without memory take in DCQ's released quizzes: letters and margins, no text.
"""

from __future__ import annotations

from pathlib import Path

from contamination.core import storage
from contamination.data import published
from contamination.dcq import controls, quizzes

if __name__ == "__main__":
    table = controls.rule_choices(quizzes.released_quizzes()).round({"margin": 6})
    storage.write_csv(Path(published.__file__).parent / published.RULE_CHOICES, table)
    print(f"{published.RULE_CHOICES} is written")
