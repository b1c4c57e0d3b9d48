"""True-positive rates, on made parts of the pretraining study."""

from dataclasses import replace

import numpy as np
import pytest
from made_pretraining import made_scores

from contamination.core.statistics import tpr_at_fpr
from contamination.study import rates
from contamination.study.scores import arrange_scores

NOTHING = dict.fromkeys((1, 4, 16), 0.0)


def changeable(study):
    return replace(study, arrays={key: scores.copy() for key, scores in study.arrays.items()})


@pytest.fixture(scope="module")
def seen():
    return arrange_scores(made_scores(("PPL", "n-gram coverage", "noise")))


@pytest.fixture(scope="module")
def unseen():
    return arrange_scores(made_scores(("PPL", "n-gram coverage", "noise"), gains=NOTHING))


def test_true_positive_rates_are_those_of_a_plain_count(seen):
    """By hand: centre by the held-out median, pool, and cut at the highest held-out scores."""
    (pool,) = seen.pools_of("n-gram coverage")
    centred, held_out = [], []
    for scores, copies in zip(pool.scores, pool.copies, strict=True):
        moved = scores - np.median(scores[copies == 0])
        centred += moved[copies == 16].tolist()
        held_out += moved[copies == 0].tolist()
    highest_first = sorted(held_out, reverse=True)
    cut = highest_first[int(0.05 * len(held_out))]
    table = rates.true_positive_rates(seen).set_index(["detector", "copies", "fpr"])
    row = table.loc[("n-gram coverage", 16, 0.05)]
    assert row["tpr"] == pytest.approx(np.mean(np.array(centred) > cut))
    assert row["n_false_positives"] == np.sum(np.array(held_out) > cut)
    assert row["n_distinct_rows"] <= row["n_false_positives"]
    assert row["ci_low"] <= row["tpr"] <= row["ci_high"]
    assert "verdict" not in table


def test_true_positive_rates_of_unseen_rows_are_the_false_positive_rate(unseen):
    table = rates.true_positive_rates(unseen)
    for fpr, of_rate in table.groupby("fpr"):
        assert of_rate["tpr"].between(0.4 * fpr, 1.8 * fpr).all()


def test_a_resample_counts_drawn_scores_as_often_as_they_are_drawn():
    generator = np.random.default_rng(0)
    scores = generator.integers(0, 30, (4, 50)).astype(float)  # with ties
    held_out = rates._pooled(scores, np.tile(np.arange(50) < 40, (4, 1)))
    seen = rates._pooled(scores + 5, np.tile(np.arange(50) >= 40, (4, 1)))
    draws = generator.integers(0, 3, (20, 50))
    limits = rates._thresholds(held_out, draws[:, held_out.rows])
    found = rates._rates(seen, draws[:, seen.rows], limits)
    for fpr in rates.FPRS:
        for row, rate in zip(draws, found[fpr], strict=True):
            unseen, own = (np.repeat(of.scores, row[of.rows]) for of in (held_out, seen))
            is_seen = np.arange(len(unseen) + len(own)) >= len(unseen)
            expected = tpr_at_fpr(np.concatenate([unseen, own]), is_seen, fpr)
            assert rate == pytest.approx(expected)
