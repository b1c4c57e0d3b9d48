"""Rows crossed with models: assignments, intervals that cover, p-values that keep their level."""

from functools import partial

import numpy as np
import pytest
from judged_lists import judge_list
from scipy import stats

from contamination.audit.decision import conformal_p
from contamination.core.statistics import auc
from contamination.study import assignment, crossed, reference_attack
from contamination.study.crossed import CrossedScores

SIZES = {"16 copies": 10, "held out": 20}


def made(seed, n_models=20, n_rows=90, n_seen=30, shift=0.0, spread=0.0, difficulty=1.0):
    """Scores of rows of unequal difficulty under models; seen rows score higher by ``shift``.

    ``spread`` is how much the shift differs between rows, and between models half as much.
    """
    generator = np.random.default_rng(seed)
    copies = np.zeros((n_models, n_rows), int)
    for row in copies:
        row[generator.permutation(n_rows)[:n_seen]] = 4
    gains = shift + spread * generator.normal(size=n_rows)
    gains = gains + spread / 2 * generator.normal(size=(n_models, 1))
    scores = difficulty * generator.normal(size=n_rows) + 0.5 * generator.normal(size=copies.shape)
    return CrossedScores("made", scores + gains * (copies > 0), copies)


# Assignments


def test_an_assignment_is_the_same_anywhere_and_another_for_each_name():
    first = assignment.assign(300, "topics", "rows", SIZES)
    assert first.tolist() == assignment.assign(300, "topics", "rows", SIZES).tolist()
    assert sum(first == "16 copies") == 10 and len(first) == 30
    for other in ((301, "topics", "rows"), (300, "entailment", "rows"), (300, "topics", "x")):
        assert (assignment.assign(*other, SIZES) != first).any()
    assert assignment.seed_of(300, "topics", "rows") == 13429805794793785001


def test_models_and_benchmarks_are_independent_and_rows_are_not_balanced():
    """Seen by chance alone: counts over models vary as a binomial, and masks do not agree."""
    seen = np.array(
        [assignment.assign(seed, "topics", "rows", SIZES) == "16 copies" for seed in range(2000)]
    )
    assert seen.sum(axis=0).var() == pytest.approx(2000 * (1 / 3) * (2 / 3), rel=0.6)
    other = np.array(
        [assignment.assign(seed, "other", "rows", SIZES) == "16 copies" for seed in range(2000)]
    )
    assert (seen & other).mean() == pytest.approx(1 / 9, abs=0.01)


# Intervals


def test_the_interval_covers_other_rows_and_other_models():
    """Rows crossed with models: at least 93 % of 200 replicates, where models alone cover less."""
    settings = {"shift": 0.8, "spread": 0.6}  # rows and models differ about equally
    truth = np.mean([crossed.mean_auc([made(1000 + s, **settings)], 4) for s in range(300)])
    covered, models_alone = [], []
    for seed in range(200):
        pool = made(seed, **settings)
        found = crossed.crossed_interval([pool], partial(crossed.mean_auc, dose=4))
        covered.append(found.low <= truth <= found.high)
        half = stats.t.ppf(0.975, 19) * found.se_models
        models_alone.append(abs(found.value - truth) <= half)
    assert np.mean(covered) >= 0.93
    assert np.mean(models_alone) < np.mean(covered)


def test_the_short_way_to_the_interval_gives_the_same():
    """Wins between groups of rows are counted once, with ties and with rows at other doses."""
    pools = [made(3, shift=0.8, spread=0.6), made(4, n_rows=97, shift=0.2)]
    pools = [CrossedScores("x", np.round(pool.scores, 1), pool.copies) for pool in pools]
    for pool in pools:
        pool.copies[:, ::7] = np.where(pool.copies[:, ::7] == 4, 1, pool.copies[:, ::7])
    long = crossed.crossed_interval(pools, partial(crossed.mean_auc, dose=4))
    parts = crossed.mean_left_out([crossed.auc_left_out(pool, 4) for pool in pools])
    assert crossed.interval_left_out(parts) == pytest.approx(long)
    nothing = crossed.interval_left_out(parts.minus(parts), (-1.0, 1.0))
    assert nothing.value == 0 and np.isnan(nothing.low)
    with pytest.raises(ValueError, match="too few rows at 16 copies"):
        crossed.auc_left_out(pools[0], 16)


def test_where_every_auc_is_1_there_is_no_interval():
    pool = made(0, shift=50.0)
    found = crossed.crossed_interval([pool], partial(crossed.mean_auc, dose=4))
    assert found.value == 1 and np.isnan(found.low) and np.isnan(found.high)


def test_a_jackknife_by_hand():
    # Means of 1, 2, 3 that leave one out; the standard error of their mean is 1 / sqrt(3).
    left_out = np.array([2.5, 2.0, 1.5])
    assert crossed.jackknife_se(left_out) == pytest.approx(1 / np.sqrt(3))


def test_scores_of_another_shape_and_undefined_ones_are_refused():
    with pytest.raises(ValueError, match="one shape"):
        CrossedScores("x", np.zeros((2, 3)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="undefined"):
        CrossedScores("x", np.full((2, 3), np.nan), np.zeros((2, 3)))


# p-values


def test_combined_p_values_keep_their_level_and_find_an_effect():
    def p_of(pool):
        return crossed.stouffer(crossed.permutation_p_by_model(pool, 4))

    null = [p_of(made(seed, n_models=4)) for seed in range(40)]
    assert np.mean(np.array(null) <= 0.05) <= 0.15  # 2 of 40 expected
    assert p_of(made(0, shift=1.0)) < 0.001


# The reference attack


def test_the_reference_attack_beats_the_score_itself_where_rows_differ_in_difficulty():
    pool = reference_attack.centred(made(3, shift=0.4, difficulty=3.0))
    plain = crossed.mean_auc([pool], 4)
    assert reference_attack.lira_auc([pool], 4) > plain + 0.1


def test_lira_by_hand():
    """One row and three models; the first saw it, the others did not."""
    scores = np.array([[3.0, 0.0], [1.0, 1.0], [2.0, 3.0]])
    copies = np.array([[4, 0], [0, 0], [0, 0]])
    found = reference_attack.lira_scores(CrossedScores("hand", scores, copies)).scores
    # Shadows of row 0 under model 0: 1 and 2, mean 1.5, squares 0.5; of row 1: 1 and 3, squares 2.
    pooled = (0.5 + 2.0) / 2
    variance = (8 * pooled + 0.5) / 9
    assert found[0, 0] == pytest.approx((3.0 - 1.5) / np.sqrt(variance))
    # Of row 0 under model 1 one shadow is left, so its variance is the pooled one: 4.5 of row 1.
    assert found[1, 0] == pytest.approx((1.0 - 2.0) / np.sqrt((8 * 4.5 + 0.0) / 8))


def test_the_second_form_by_hand():
    """Models 0 and 1 saw rows 0 and 1; model 2 learns from them how much a row gains."""
    scores = np.array([[3.0, 0.0, 1.0], [1.0, 4.0, 2.0], [2.0, 1.0, 0.5], [0.0, 2.0, 1.5]])
    copies = np.array([[4, 0, 0], [0, 4, 0], [0, 0, 0], [0, 0, 0]])
    pool = CrossedScores("hand", scores, copies)
    others = reference_attack.shadows(pool)
    shift = reference_attack.mean_shift(pool, others, 4)
    # Without model 2 the shadows of row 0 are models 1 and 3, and those of row 1 models 0 and 3.
    expected = ((3.0 - (1.0 + 0.0) / 2) + (4.0 - (0.0 + 2.0) / 2)) / 2
    assert shift[2] == pytest.approx(expected)
    # Model 0 sees row 0 itself, so it learns from row 1 under model 1 alone.
    assert shift[0] == pytest.approx(4.0 - (1.0 + 2.0) / 2)
    found = reference_attack.ratio_scores(pool, 4).scores
    half, variance = expected / 2, others.variance[2, 0]
    densities = [stats.norm(others.mean[2, 0] + d, np.sqrt(variance)) for d in (half, 0)]
    assert found[2, 0] == pytest.approx(densities[0].logpdf(2.0) - densities[1].logpdf(2.0))
    with pytest.raises(ValueError, match="no other model has a row at 16 copies"):
        reference_attack.ratio_scores(pool, 16)
    with pytest.raises(ValueError, match='no form of the attack is called "x"'):
        reference_attack.attack(pool, 4, "x")


def test_the_second_form_finds_rows_where_they_gain_and_is_no_other_attack_in_disguise():
    pool = reference_attack.centred(made(3, shift=0.8, difficulty=3.0))
    ratio = reference_attack.lira_auc([pool], 4, reference_attack.RATIO)
    lira = reference_attack.lira_auc([pool], 4)
    assert ratio == pytest.approx(lira, abs=0.05) and ratio != lira
    assert ratio > crossed.mean_auc([pool], 4) + 0.1


def test_the_attack_needs_models_that_hold_a_row_out():
    few = CrossedScores("x", np.zeros((3, 2)), np.array([[0, 0], [4, 0], [0, 0]]))
    assert not reference_attack.is_defined([few]) and reference_attack.is_defined([made(0)])


def test_a_redeal_moves_rows_at_the_dose_alone_and_leaves_a_shadow_to_each():
    generator = np.random.default_rng(0)
    copies = np.array([[4, 0, 1], [0, 4, 1], [0, 4, 0], [4, 0, 0]])
    pool = CrossedScores("x", np.zeros(copies.shape), copies)
    for _ in range(50):
        found = reference_attack._redealt(pool, 4, generator).copies
        assert ((found == 1) == (copies == 1)).all()
        assert (np.sort(found, axis=1) == np.sort(copies, axis=1)).all()
        assert (reference_attack._n_shadows(found) > 0).all()


def test_a_row_that_every_other_model_saw_is_refused():
    copies = np.array([[0, 0], [4, 0], [4, 0]])
    with pytest.raises(ValueError, match="held out by no other model"):
        reference_attack.lira_scores(CrossedScores("x", np.zeros((3, 2)), copies))


def test_joint_redeals_find_an_effect_and_no_other(monkeypatch):
    monkeypatch.setattr(reference_attack, "N_JOINT_REDEALS", 49)
    strong = reference_attack.centred(made(5, shift=1.0))
    assert reference_attack.joint_permutation_p([strong], 4) == {"LiRA": 1 / 50}
    null = [
        reference_attack.joint_permutation_p([reference_attack.centred(made(s))], 4)["LiRA"]
        for s in range(20)
    ]
    assert np.mean(np.array(null) <= 0.1) <= 0.3


# Lists of rows


def test_the_share_of_false_names_stays_below_q_where_rows_are_exchangeable():
    generator, shares = np.random.default_rng(0), {0.1: [], 0.2: []}
    for _ in range(400):
        held_out = generator.normal(size=300)
        tested = np.concatenate([generator.normal(2.0, 1.0, 60), held_out[:60]])
        p_values = conformal_p(tested, held_out[60:])
        for q, found in shares.items():
            named = stats.false_discovery_control(p_values) <= q
            found.append(judge_list(named, np.arange(120) < 60))
    for q, found in shares.items():
        assert np.mean([one.false_share for one in found]) <= q  # q / 2 expected
        assert np.mean([one.found_share for one in found]) > 0.1


def test_the_guarantee_fails_under_a_shift():
    """Calibration rows of another kind, which score lower by themselves."""
    generator, shares = np.random.default_rng(0), []
    for _ in range(200):
        tested = generator.normal(size=120)
        p_values = conformal_p(tested, generator.normal(-1.5, 1.0, 240))
        named = stats.false_discovery_control(p_values) <= 0.1
        shares.append(judge_list(named, np.arange(120) < 60).false_share)
    assert np.mean(shares) > 0.3


def test_a_list_by_hand():
    is_named, is_seen = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert judge_list(is_named, is_seen) == (2, 0.5, 0.5)
    assert judge_list(np.zeros(4, bool), is_seen) == (0, 0.0, 0.0)
    # Ties count against the row; nothing scores above every calibration row for free.
    assert conformal_p(np.array([2.0]), np.array([2.0, 1.0, 0.0])).tolist() == [0.5]


def test_auc_by_model_is_the_auc_of_each_model_with_ties_and_other_doses():
    generator = np.random.default_rng(0)
    scores = generator.integers(0, 5, (4, 40)).astype(float)
    copies = generator.permuted(np.tile([1, 4, 0, 0], (4, 10)), axis=1)
    found = crossed.auc_by_model(CrossedScores("x", scores, copies), 4)
    for number in range(4):
        kept = copies[number] != 1
        expected = auc(scores[number][kept], copies[number][kept] == 4)
        assert found[number] == pytest.approx(expected)
    with pytest.raises(ValueError, match="no row at 16 copies"):
        crossed.auc_by_model(CrossedScores("x", scores, copies), 16)
