"""True-positive rates, on made parts of the pretraining study."""

from dataclasses import replace

import numpy as np
import pytest
from made_pretraining import SEEDS, made_scores

from contamination.core.statistics import tpr_at_fpr
from contamination.core.verdicts import CONTROL_FAILS, SUPPORTED
from contamination.study import pretraining_rates as rates
from contamination.study.pretraining_scores import TWINS, arrange_scores

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


def twins(seeds, share_above):
    """Twins whose score is above 0 on this share of the rows of every model."""
    scores = made_scores(TWINS[:1], seeds=seeds)
    return arrange_scores(
        scores.assign(score=np.where(scores["row"] % 100 < 100 * share_above, 1, -1))
    )


def test_number_twins_alone_need_few_false_alarms_in_many_models():
    many = tuple(range(300, 380))
    calm, alarmed = (rates.twins_alone(twins(many, share)).iloc[0] for share in (0.4, 0.8))
    assert calm["verdict"] == SUPPORTED and calm["n_alarms"] == 0 and calm["rate_high"] <= 0.05
    assert alarmed["verdict"] == CONTROL_FAILS and alarmed["n_alarms"] == 80
    # 400 of 480 rows lie above 0.
    assert alarmed["preference"] == pytest.approx(2 / 3, abs=0.02)
    # The protocol's twenty models cannot show so low a rate, and the table says it.
    few = rates.twins_alone(twins(SEEDS, 0.4)).iloc[0]
    assert few["n_alarms"] == 0 and few["verdict"] == CONTROL_FAILS
    assert few["rate_high"] == few["lowest_possible"] == pytest.approx(1 - 0.05 ** (1 / 20))


@pytest.mark.parametrize(("lift", "verdict"), [(0.0, CONTROL_FAILS), (3.0, CONTROL_FAILS)])
def test_twins_without_held_out_rows_must_show_few_false_alarms(lift, verdict):
    scores = made_scores(TWINS[:1], gains=NOTHING, difficulty=0.1)
    table = rates.twins_alone(arrange_scores(scores.assign(score=scores["score"] + lift)))
    # Twenty models cannot show a rate of at most 5 %, even without any alarm.
    assert table["lowest_possible"].item() > 0.05
    assert table["verdict"].item() == verdict
    assert (table["rate"].item() > 0.9) == (lift > 0)
