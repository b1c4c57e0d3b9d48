"""The tests of ``docs/protocol_forms.md`` on made scores: how often they are wrong, what they find.

    python scripts/forms_simulation.py     # minutes on one core; prints the page's table

A made score is normal, before and after the tuning. Before and after correlate as in the earlier
studies of the same model (.75); half of what is new after it belongs to the row. Rows that were
seen gain, in standard deviations.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.statistics import holm
from contamination.core.tables import markdown
from contamination.core.verdicts import ALPHA
from contamination.study import forms

KEPT, OF_ROW = 0.75, 0.5
# Gains of rows seen verbatim, as a paraphrase and without a label.
GAINS = {
    "none": (0, 0, 0),
    "half": (0.39, 0.19, 0.32),
    "expected": (0.78, 0.38, 0.65),
    "two alike": (0.7, 0, 0.7),
}
COLUMNS = ("change", "ci_low", "ci_high", "p")
DRAWS = {"none": 1_000, "two alike": 1_000}  # where a test can be wrong; else 200


def made(gains: tuple[float, ...], n_models: int, seed: list[int]) -> np.ndarray:
    """Scores as ``forms.scored`` gives them, (2, 4, n_models, 48)."""
    generator, found = np.random.default_rng(seed), []
    for dealt in forms.dealt()[:, :n_models]:
        before, own = generator.normal(size=(2, forms.N_ROWS))
        new = np.sqrt(OF_ROW) * own
        new = new + np.sqrt(1 - OF_ROW) * generator.normal(size=(n_models, forms.N_ROWS))
        after = KEPT * before + np.sqrt(1 - KEPT**2) * new + np.array([0.0, *gains])[dealt]
        found.append([np.tile(before, (n_models, 1)), after])
    return np.swapaxes(found, 0, 1)


def compact(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each test, with eight and with five models side by side."""
    key = ["gains", "form", "against", "true change"]
    values = ["p <= .05", "adjusted", "covered", "error"]
    wide = table.pivot_table(values, key, "models", sort=False).round(3)[values]
    wide = wide.sort_index(axis=1, level="models", ascending=False, sort_remaining=False)
    return wide.set_axis([f"{name} ({n})" for name, n in wide.columns], axis=1).reset_index()


def main() -> None:
    rows = []
    for case, (name, gains) in enumerate(GAINS.items()):
        true = dict(enumerate((0.0, *(stats.norm.cdf(np.array(gains) / np.sqrt(2)) - 0.5))))
        for n_models in (8, 5):
            found = []
            for draw in range(DRAWS.get(name, 200)):
                scores = made(gains, n_models, [case, n_models, draw])
                results = [forms.result(scores, *test) for test in forms.TESTS]
                # The family has the same tests of a second detector, whose scores are nearly alike.
                adjusted = holm(np.array([one["p"] for one in results] * 2))[: len(results)]
                kept = [[one[name] for name in COLUMNS] for one in results]
                found.append(np.column_stack([kept, adjusted]))
            of = np.array(found)
            for n, (form, other) in enumerate(forms.TESTS):
                change = true[form] - true[other]
                covered = (of[:, n, 1] <= change) & (change <= of[:, n, 2])
                rows.append({
                    "gains": name, "models": n_models,
                    "form": forms.FORMS[form], "against": forms.FORMS[other],
                    "true change": round(change, 3), "p <= .05": (of[:, n, 3] <= ALPHA).mean(),
                    "adjusted": (of[:, n, 4] <= ALPHA).mean(),
                    "covered": covered.mean(), "error": of[:, n, 0].std(),
                })  # fmt: skip
    print(markdown(compact(pd.DataFrame(rows))))


if __name__ == "__main__":
    main()
