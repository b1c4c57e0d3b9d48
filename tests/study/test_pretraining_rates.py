"""True-positive rates, false alarms and lists of rows, on made parts of the pretraining study."""

from dataclasses import replace

import numpy as np
import pytest
from made_pretraining import SEEDS, made_scores, made_shares

from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.study import pretraining_lists as lists
from contamination.study import pretraining_rates as rates
from contamination.study import row_lists
from contamination.study.pretraining_scores import TWINS, arranged

NOTHING = dict.fromkeys((1, 4, 16), 0.0)


@pytest.fixture(scope="module")
def seen():
    return arranged(made_scores(("PPL", "n-gram coverage", "noise")))


@pytest.fixture(scope="module")
def unseen():
    return arranged(made_scores(("PPL", "n-gram coverage", "noise"), gains=NOTHING))


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


def test_an_exact_test_flags_one_unseen_set_in_twenty(seen):
    table = rates.false_alarms(seen)
    assert table["rate"].between(0.03, 0.07).all() and table["holds"].all()
    assert (table["n_sets"] > 100).all()


def test_a_score_that_knows_the_sets_fails_the_check(seen):
    """As a fault in the code would: 15 of 20 models rank their first unseen set highest."""
    flags = np.tile([1, 0, 0, 0, 0], 60)
    bad = rates._alarm_columns(flags.tolist(), np.repeat(SEEDS, 15).tolist())
    good = rates._alarm_columns([0] * 19 + [1], list(SEEDS))
    assert bad["p_value"] < 0.001 < good["p_value"]
    assert bad["rate"] == 0.2 and bad["design_effect"] <= 1.2


@pytest.mark.parametrize(("lift", "verdict"), [(0.0, CONTROL_FAILS), (3.0, CONTROL_FAILS)])
def test_twins_without_held_out_rows_must_show_few_false_alarms(lift, verdict):
    scores = made_scores(TWINS[:1], gains=NOTHING, difficulty=0.1)
    table = rates.twins_alone(arranged(scores.assign(score=scores["score"] + lift)))
    # Twenty models cannot show a rate of at most 5 %, even without any alarm.
    assert table["lowest_possible"].item() > 0.05
    assert table["verdict"].item() == verdict
    assert (table["rate"].item() > 0.9) == (lift > 0)


def test_lists_keep_their_guarantee_where_rows_are_exchangeable(seen):
    table = lists.row_lists(seen, made_shares())
    at_16 = table[table["copies"].eq(16)]
    assert set(at_16["verdict"]) == {SUPPORTED}
    assert (at_16["false_share"] <= at_16["q"]).all()
    assert (at_16["found_share"] > table.query("copies == 1")["found_share"].to_numpy()).all()
    assert (table["expected"] == table["q"] / 2).all()


def test_lists_break_their_guarantee_where_tested_rows_are_easier(seen):
    """Held-out rows of another kind calibrate too low, so unseen rows are named."""
    found = []
    for pool in seen.pools_of("PPL"):
        scores = pool.scores.copy()
        for number, seed in enumerate(seen.base_seeds):
            scores[number, lists.tested_unseen(seed, pool, pool.copies[number], 4)] += 6
        found += lists.lists_of(replace(pool, scores=scores), 4, seen.base_seeds, (0.1,))
    share = np.mean([one.false_share.by_model for one in found])
    assert share > 0.5  # five times the 10 % that the list promises


def test_each_list_is_that_of_the_plain_procedure(seen):
    pool = seen.pools_of("PPL")[0]
    (fast,) = lists.lists_of(pool, 16, seen.base_seeds, (0.2,))
    for number, seed in enumerate(seen.base_seeds[:4]):
        scores, copies = pool.scores[number], pool.copies[number]
        tested = lists.tested_unseen(seed, pool, copies, 16)
        calibration = np.setdiff1d(np.flatnonzero(copies == 0), tested)
        rows = np.concatenate([np.flatnonzero(copies == 16), tested])
        p_values = row_lists.conformal_p(scores[rows], scores[calibration])
        named = row_lists.named_rows(p_values, 0.2)
        judged = row_lists.judge_list(named, copies[rows] == 16)
        assert judged.n_named == fast.n_named[number]
        assert judged.false_share == pytest.approx(fast.false_share.by_model[number])
        assert judged.found_share == pytest.approx(fast.found_share.by_model[number])


def test_verdicts_of_lists():
    assert lists.list_verdict(0.01, 0.09, 0.1, 20) == SUPPORTED
    assert lists.list_verdict(0.11, 0.2, 0.1, 20) == NOT_SUPPORTED
    assert lists.list_verdict(0.05, 0.2, 0.1, 20) == INCONCLUSIVE
    assert lists.list_verdict(0.01, 0.02, 0.1, 4) == INCONCLUSIVE


def test_a_list_needs_rows_to_calibrate(seen):
    pool = seen.pools_of("PPL")[0]
    few = pool.kept(np.ones(len(pool.scores), bool), np.arange(pool.scores.shape[1]) < 60)
    with pytest.raises(ValueError, match="more than 60 held-out rows"):
        lists.lists_of(few, 16, seen.base_seeds)
