"""Number twins in an audit without comparison rows: a value, its bias, and no verdict."""

import numpy as np
import pandas as pd
import pytest

from contamination.audit import without_comparison
from contamination.core import storage

ROWS = [f"The team won {k} games and lost {k + 31} in the year 19{k}." for k in range(20, 50)]


def liking(known):
    """Log-probabilities of a model that finds the texts it knows likely, and others alike."""
    return lambda texts: [np.array([-1.0 if text in known else -2.0]) for text in texts]


def test_a_model_that_prefers_its_rows_gets_a_value_and_no_verdict():
    row, note = without_comparison.number_twins(ROWS, liking(set(ROWS)), liking(set()), 200)
    # Every twin is less likely for the model, and as likely for the reference: 1 - 1/2.
    assert row["value"] == row["ci_low"] == row["ci_high"] == 0.5
    assert row["n"] == 30 and row["decides"] is False
    assert "0.50, above what models of the pretraining study reach" in note
    assert "false alarm for 20 of those 20 models, so no verdict rests on them" in note


def test_a_model_without_a_preference_is_not_above_the_bias():
    row, note = without_comparison.number_twins(ROWS, liking(set()), liking(set()), 200)
    assert row["value"] == 0 and "0.00, not above" in note


@pytest.mark.parametrize(
    ("rows", "reference", "said"),
    [
        (ROWS[:19], liking(set()), "19 rows have a number, 20 are needed"),
        (["No numbers here."] * 40, liking(set()), "0 rows have a number"),
        (ROWS, None, "reference_model of min_k"),
    ],
)
def test_what_is_missing_is_said(rows, reference, said):
    row, note = without_comparison.number_twins(rows, liking(set(rows)), reference, 200)
    assert row is None and said in note and "no comparison rows" in note


def test_the_bias_is_that_of_the_ledger():
    from contamination.study import pretraining, pretraining_rates
    from contamination.study.pretraining_scores import arrange_scores

    found = pretraining_rates.twins_alone(arrange_scores(pretraining.read_parts()[0])).round(6)
    stored = storage.read_csv(without_comparison.BIAS)
    pd.testing.assert_frame_equal(stored, found, check_dtype=False)
