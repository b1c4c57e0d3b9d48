"""What an audit would have noticed: the largest tabulated sizes that are not above its own."""

import pandas as pd
import pytest

from contamination.audit import noticed
from contamination.audit.prepared import MIN_K


def a_table():
    rows = [
        (MIN_K, model, n, m, share, copies, 100, noticed_ + (model == "large") / 10)
        for model in ("small", "large")
        for n, m in ((30, 20), (60, 60))
        for share in (0.1, 0.3333)
        for copies, noticed_ in ((16, 0.8), (4, 0.3), (1, 0.1))
    ]
    columns = ["method", "model", "n", "n_comparison", "share", "copies", "n_draws", "noticed"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(
    ("n", "m", "sizes"), [(60, 60, (60, 60)), (400, 90, (60, 60)), (59, 30, (30, 20)), (29, 60, ())]
)
def test_the_largest_sizes_that_are_not_above_ones_own_are_taken(n, m, sizes):
    found = noticed.of_sizes(a_table(), MIN_K, n, m)
    assert {*zip(found["n"], found["n_comparison"], strict=True)} == ({sizes} if sizes else set())


def test_the_sentence_gives_the_range_over_models_for_a_third_of_the_rows():
    said = noticed.describe(a_table(), MIN_K, 60, 60)
    assert (
        "seen sixteen times in 80 to 90 %, four times in 30 to 40 % and once in 10 to 20 %" in said
    )
    assert "small models" in said
    assert "we have not measured" in noticed.describe(a_table(), MIN_K, 10, 60)
    assert "we have not measured" in noticed.describe(a_table(), "DICE", 60, 60)


def test_the_table_of_the_package_has_every_setting_once():
    table = noticed.load()
    keys = ["method", "model", "n", "n_comparison", "share", "copies"]
    assert not table.duplicated(keys).any() and table["noticed"].between(0, 1).all()
    assert {*table["method"]} == {*noticed.OF_METHOD} and {*table["model"]} == {*noticed.MODELS}
