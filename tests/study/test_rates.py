"""True-positive rates at each model's own threshold, on made parts of the pretraining study."""

import numpy as np
import pytest
from made_pretraining import made_scores

from contamination.core.statistics import tpr_at_fpr
from contamination.study import power
from contamination.study.crossed import CrossedScores
from contamination.study.scores import arrange_scores, crossed_scores

NOTHING = dict.fromkeys((1, 4, 16), 0.0)


@pytest.fixture(scope="module")
def seen():
    return arrange_scores(made_scores(("PPL", "n-gram coverage", "noise")))


def test_a_rate_is_that_of_each_model_alone(seen):
    pool = crossed_scores(seen, "n-gram coverage")["topics"]
    for fpr in power.FPRS:
        expected = []
        for scores, copies in zip(pool.scores, pool.copies, strict=True):
            kept = np.isin(copies, [0, 16])
            expected.append(tpr_at_fpr(scores[kept], copies[kept] == 16, fpr))
        assert power.rates_by_model(pool, 16, fpr)[0] == pytest.approx(expected)
    table = power.true_positive_rates(seen).set_index(["detector", "copies", "fpr"])
    row = table.loc[("n-gram coverage", 16, 0.01)]
    assert row["tpr"] == pytest.approx(np.mean(expected))
    assert row["ci_low"] <= row["tpr"] <= row["ci_high"] and row["fpr_found"] == pytest.approx(0.01)
    assert "noise" not in table.index


def test_rates_of_unseen_rows_are_the_false_positive_rate():
    unseen = arrange_scores(made_scores(("PPL", "n-gram coverage"), gains=NOTHING))
    table = power.true_positive_rates(unseen)
    for fpr, of_rate in table.groupby("fpr"):
        assert of_rate["tpr"].between(0.4 * fpr, 2.2 * fpr).all()


def test_ties_at_the_top_leave_fewer_false_positives_and_never_more():
    copies = np.array([[0] * 100 + [4] * 10])
    scores = np.array([[1.0] * 3 + [0.0] * 97 + [1.0] * 10])
    seen, held_out = power.rates_by_model(CrossedScores("x", scores, copies), 4, 0.01)
    assert (seen.item(), held_out.item()) == (0, 0)
    seen, held_out = power.rates_by_model(CrossedScores("x", scores, copies), 4, 0.05)
    assert (seen.item(), held_out.item()) == (1, 0.03)
