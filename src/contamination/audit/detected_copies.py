"""What a negative result can have missed: copies that the pretraining study's tests found.

In that study we know for every row how often a model saw it. Each test asks one method about one
model and one benchmark: sixty rows that the model saw, against rows that were held out at random.
An audit is one such test, so what counts is how many single tests find the rows, and not what all
models together show.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from contamination.audit.prepared import DCQ, MIN_K, RANKING, REPLICATION
from contamination.core import storage
from contamination.core.tables import copies_text, percent
from contamination.core.verdicts import OPEN, RULED_OUT
from contamination.study import baselines, four_methods
from contamination.study.conditions import VERBATIM
from contamination.study.detection import by_benchmark, share_pct
from contamination.study.row_pools import ROWS
from contamination.study.scores import display_name

PATH = Path(__file__).with_suffix(".csv")
POWER = 0.5  # share of the tests that must find the rows
# The study's detector of each method that it has; DICE is asked in another arm, by other rules.
OF_METHOD = {
    DCQ: four_methods.DCQ.name,
    REPLICATION: four_methods.REPLICATION.name,
    RANKING: four_methods.RANKING.name,
    MIN_K: baselines.MIN_K.name,
}
NOT_COVERED = (
    "The study's models are small and trained on a small language, a simulated respondent takes "
    "its quizzes, its rows were seen verbatim, and its tests have no controls to exceed, as an "
    "audit has. It does not cover paraphrases, training that came after the rows, larger models or "
    "your own rows, so another number of copies can go unnoticed there."
)


def detected_copies(frame: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """How many single tests of the pretraining study find rows that were seen so many times.

    Args:
        frame, shares: as for ``detection.detection``.

    Returns:
        A row for each method of an audit that the study has and each number of copies: method,
        copies, row_share_pct (one row with its copies, of all training tokens), n_models, n_tests
        (models times benchmarks) and n_flagged (tests with p <= 0.05).
    """
    names = {display_name(detector): method for method, detector in OF_METHOD.items()}
    tests = by_benchmark(frame[frame["detector"].isin([*OF_METHOD.values()])])
    rows = []
    for (detector, copies), part in tests.groupby(["detector", "copies"], sort=False):
        rows.append(
            {
                "method": names[detector],
                "copies": copies,
                "row_share_pct": share_pct(shares, [*part["benchmark"]], ROWS, VERBATIM, copies),
                "n_models": part["n_models"].max(),
                "n_tests": part["n_models"].sum(),
                "n_flagged": part["n_flagged"].sum(),
            }
        )
    order = [*OF_METHOD]
    table = pd.DataFrame(rows).sort_values(
        ["method", "copies"], key=lambda of: of.map(order.index) if of.name == "method" else of
    )
    return table.reset_index(drop=True)


def load_detection_table() -> pd.DataFrame:
    """The table of the study as the package carries it, ``scripts/package_tables.py``."""
    return storage.read_csv(PATH)


def describe_detection_limits(evidence: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """One sentence for each method with a negative result, and one on what the study lacks.

    Args:
        evidence: rows of ``audit.csv``. A result is negative if the method has a value and its
            verdict is *ruled out* or *open*.
        table: of :func:`detected_copies`.
    """
    is_negative = evidence["verdict"].isin([RULED_OUT, OPEN])
    negative = evidence.loc[is_negative & evidence["value"].notna(), "method"]
    found = [_sentence(name, table[table["method"].eq(name)]) for name in dict.fromkeys(negative)]
    return [*found, NOT_COVERED] if any(table["method"].isin(negative)) else found


def _sentence(method: str, tests: pd.DataFrame) -> str:
    if tests.empty:
        return f"{method}: the pretraining study did not ask this method about single rows."
    found = tests[tests["n_flagged"].ge(POWER * tests["n_tests"])].sort_values("copies")
    if len(found):
        row = found.iloc[0]
        return (
            f"{method}: the smallest exposure that at least half of the pretraining study's tests "
            f"found is {_exposure(row)}."
        )
    row = tests.loc[tests["copies"].idxmax()]
    return (
        f"{method}: no exposure was found by half of the pretraining study's tests, not even "
        f"{_exposure(row)}."
    )


def _exposure(row: pd.Series) -> str:
    """Copies with their share of the training, and how many tests found them."""
    return (
        f"{copies_text(int(row['copies']))} of each row ({percent(row['row_share_pct'])} of all "
        f"training tokens a row; found in {row['n_flagged']} of {row['n_tests']} tests on "
        f"{row['n_models']} models)"
    )
