"""A contaminated score: how far it is inflated, and whether a correction can be trusted."""

import numpy as np
import pandas as pd
import pytest

from contamination.cases.score_correction import correction_table

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
