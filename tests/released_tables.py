"""What is recomputed from the released figures, once for all tests of a process."""

from functools import cache
from types import SimpleNamespace

import pandas as pd

from contamination.data import published
from contamination.dcq import published_tables as dcq_tables
from contamination.replication import released_texts as replication_tables


@cache
def time_travel() -> SimpleNamespace:
    """Tables of the replication: ``instances``, ``tests``, ``judged``, ``marks``, ``success``."""
    instances = published.released_instances("Time Travel")
    tests = replication_tables.replication_published(instances)
    judged = replication_tables.judged_instances(instances)
    marks = replication_tables.replication_marks(judged)
    success = replication_tables.replication_success(tests, judged)
    return SimpleNamespace(
        instances=instances, tests=tests, judged=judged, marks=marks, success=success
    )


@cache
def dcq_levels() -> pd.DataFrame:
    """Levels of the DCQ's 17 pairs; their intervals are rough."""
    return dcq_tables.dcq_published(n_resamples=20)


@cache
def recomputed_cells() -> pd.DataFrame:
    """Cells of the two black-box papers, as notebook 09 puts them together."""
    found = time_travel()
    cells = replication_tables.recomputed_cells(found.tests, found.marks, found.success)
    return pd.concat([dcq_tables.recomputed_cells(dcq_levels()), cells])
