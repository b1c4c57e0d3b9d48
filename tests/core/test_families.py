"""A family of tests: what its correction takes back, and what it leaves."""

import pandas as pd

from contamination.core.statistics import correct_family
from contamination.core.verdicts import (
    CONTROL_FAILS,
    NOT_RUN,
    OPEN,
    RULED_OUT,
    SHOWN,
)

WORDS = [SHOWN, CONTROL_FAILS, RULED_OUT, OPEN, NOT_RUN, ""]


def family(p, n_others):
    """A row of each verdict with this p, the last two without a test, and idle tests."""
    rows = pd.DataFrame({"verdict": WORDS, "p": [p] * 4 + [float("nan")] * 2})
    others = pd.DataFrame({"verdict": RULED_OUT, "p": [0.9] * n_others})
    return correct_family(pd.concat([rows, others], ignore_index=True)).head(len(WORDS))


def test_a_correction_takes_back_what_needs_an_effect_and_nothing_else():
    assert family(0.001, 0)["verdict"].tolist() == WORDS
    small = family(0.02, 20)
    assert small["verdict"].tolist() == [OPEN] * 2 + WORDS[2:]
    assert small["p_adjusted"].isna().tolist() == [False] * 4 + [True] * 2
    assert family(1e-6, 20)["verdict"].tolist() == WORDS


def test_a_control_that_fails_by_itself_stays_failed():
    rows = pd.DataFrame({"verdict": [SHOWN, CONTROL_FAILS], "p": [0.04, 0.04]})
    assert correct_family(rows)["verdict"].tolist() == [OPEN, OPEN]
    assert correct_family(rows, [SHOWN])["verdict"].tolist() == [OPEN, CONTROL_FAILS]
