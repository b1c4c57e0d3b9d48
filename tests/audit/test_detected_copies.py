"""What a negative result can have missed: the stored table is the ledger's, sentences follow it."""

import pandas as pd
import pytest

from contamination.audit import detected_copies as missed
from contamination.audit.prepared import DCQ, DICE, METHODS, MIN_K, REPLICATION
from contamination.core.verdicts import CONTROL_FAILS, OPEN, RULED_OUT, SHOWN
from contamination.study import pretraining, row_pools
from contamination.study.conditions import VERBATIM
from contamination.study.row_pools import DOSES, ROWS
from contamination.study.scores import arrange_scores

KEY = ["method", "copies"]


def evidence(**verdicts):
    rows = [(name.replace("_", " "), word, 0.5) for name, word in verdicts.items()]
    return pd.DataFrame(rows, columns=["method", "verdict", "value"])


def table_of(*n_flagged, method=DCQ):
    rows = {"method": method, "copies": DOSES, "row_share_pct": [0.005, 0.02, 0.09]}
    return pd.DataFrame(rows | {"n_models": 20, "n_tests": 60, "n_flagged": n_flagged})


def test_the_stored_table_is_that_of_the_ledger():
    shares = [
        {"benchmark": name, "pool": ROWS, "form": VERBATIM, "copies": n, "row_share_pct": 0.1 * n}
        for name in row_pools.BENCHMARKS
        for n in DOSES
    ]
    found = missed.detected_copies(
        arrange_scores(pretraining.read_parts()[0]), pd.DataFrame(shares)
    )
    stored = missed.load_detection_table()
    assert found["row_share_pct"].tolist() == pytest.approx((0.1 * found["copies"]).tolist())
    same = {"row_share_pct": stored["row_share_pct"]}
    pd.testing.assert_frame_equal(found.assign(**same), stored, check_dtype=False)
    assert list(stored["method"].unique()) == [name for name in METHODS if name != DICE]
    # Copies of one row are that many times as many tokens, of a total that hardly moves.
    per_copy = stored["row_share_pct"] / stored["copies"]
    assert per_copy.max() < 1.01 * per_copy.min()


@pytest.mark.parametrize(
    ("n_flagged", "said"),
    [
        ((3, 15, 60), "found is 16 copies of each row (0.09 % of all training tokens a row; found"),
        ((3, 30, 60), "found is 4 copies of each row (0.02 % of"),  # half of 60
        ((60, 60, 60), "found is 1 copy of each row (0.005 % of"),
        ((3, 15, 29), "not even 16 copies of each row (0.09 % of all training tokens a row; found"),
    ],
)
def test_the_smallest_exposure_is_the_first_that_half_of_the_tests_find(n_flagged, said):
    first, last = missed.describe_detection_limits(evidence(DCQ=RULED_OUT), table_of(*n_flagged))
    assert first.startswith("DCQ: ") and said in first
    assert last == missed.NOT_COVERED
    assert ("no exposure" in first) == (n_flagged[-1] < 30)
    assert f"in {next((n for n in n_flagged if n >= 30), n_flagged[-1])} of 60 tests" in first


def test_there_is_one_sentence_for_each_negative_method_and_none_without():
    table = pd.concat([table_of(3, 15, 60, method=name) for name in (DCQ, REPLICATION, MIN_K)])
    verdicts = {"DCQ": SHOWN, "replication": OPEN, "Min-k% Prob": CONTROL_FAILS}
    said = missed.describe_detection_limits(evidence(**verdicts), table)
    assert [line.partition(":")[0] for line in said[:-1]] == [REPLICATION]
    twice = pd.concat([evidence(**verdicts)] * 2)  # two models
    assert missed.describe_detection_limits(twice, table) == said
    assert missed.describe_detection_limits(evidence(DCQ=SHOWN), table) == []
    unasked = evidence(DCQ=OPEN).assign(value=None)
    assert missed.describe_detection_limits(unasked, table) == []


def test_a_method_that_the_study_did_not_ask_is_said_to_be_missing():
    said = missed.describe_detection_limits(evidence(DICE=OPEN), table_of(3, 15, 60))
    assert said == ["DICE: the pretraining study did not ask this method about single rows."]
