"""A contaminated score: how far it is inflated, and whether a correction can be trusted."""

import numpy as np
import pandas as pd
import pytest

from contamination.cases.score_correction import correction_table, summarize_correction

N = 100  # of each kind and dataset


def examples():
    kinds = pd.DataFrame({"is_member": [True] * N + [False] * N})
    return pd.concat([kinds.assign(dataset=name) for name in ("one", "two")], ignore_index=True)


def answers(inserted, held_out):
    """Right answers: the first rows of each kind, as many as these shares of N."""
    of_kind = [np.arange(N) < round(N * share) for share in (inserted, held_out)]
    return np.tile(np.concatenate(of_kind), 2)


def table(inserted=0.8, held_out=0.6, familiar_is_easy=False):
    rows = examples()
    right = {0: answers(0.5, 0.5), 8: answers(inserted, held_out)}
    order = np.tile(np.arange(N), 4)  # half of any share of the right answers is familiar ...
    familiarity = -order if familiar_is_easy else (order * 7) % N  # ... or all of it
    return correction_table(right, dict.fromkeys(right, familiarity), rows, n_resamples=200)


def test_the_inflation_is_the_gap_to_held_out_rows():
    clean, most = table().to_dict("records")
    assert clean["inflation"] == 0 and clean["ci_low"] < 0 < clean["ci_high"]
    assert most["inflation"] == pytest.approx(0.2) and most["ci_low"] > 0
    assert (most["n_inserted"], most["n_held_out"]) == (2 * N, 2 * N)


def test_dropping_familiar_rows_is_checked_on_rows_that_no_model_saw():
    fair, misled = table().iloc[1], table(familiar_is_easy=True).iloc[1]
    assert abs(fair["control"]) < 0.05 and fair["control_low"] < 0 < fair["control_high"]
    # The familiar half holds right answers alone, so 60 - 50 of 50 are left.
    assert misled["control"] == pytest.approx(0.2 - 0.6) and misled["control_high"] < 0
    assert misled["correction"] == pytest.approx(0.6 - 0.8)


def test_the_summary_follows_the_table():
    inflated = summarize_correction(table(), 0.3)
    assert "0.80 on the inserted rows, and from 0.50 to 0.60 on the held-out" in inflated
    assert "the score is inflated by +0.20 [" in inflated and "we see no harm" in inflated
    assert "nothing to correct" not in inflated and "guessing" not in inflated
    learned = summarize_correction(table(inserted=0.8, held_out=0.8), 0.3)
    assert "no inflation is shown" in learned and "skill at these templates" in learned
    assert "the correction has nothing to correct here" in learned
    misled = summarize_correction(table(familiar_is_easy=True), 0.7)
    assert "cannot be trusted, and held-out rows are needed" in misled
    assert "With 8 copies of each row, the share on held-out rows is 0.60, less than" in misled
