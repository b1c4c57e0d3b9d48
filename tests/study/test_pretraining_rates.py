"""True-positive rates, false alarms and lists of rows, on made parts of the pretraining study."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from judged_lists import judge_list
from made_pretraining import SEEDS, made_scores, made_shares

from contamination.core.statistics import tpr_at_fpr
from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.study import pretraining_findings as findings
from contamination.study import pretraining_lists as lists
from contamination.study import pretraining_rates as rates
from contamination.study import row_lists
from contamination.study.pretraining_scores import TWINS, arrange_scores
from contamination.study.row_pools import ROWS

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


def test_an_exact_test_flags_one_unseen_set_in_twenty(seen):
    table = rates.false_alarms(seen)
    assert table["rate"].between(0.03, 0.07).all() and table["holds"].all()
    assert (table["n_sets"] > 100).all()


def test_a_score_that_knows_the_sets_fails_the_check(seen):
    """As a fault in the code would: 15 of 20 models rank their first unseen set highest."""
    flags = np.tile([1, 0, 0, 0, 0], 60)
    bad = rates.alarm_columns(flags.tolist(), np.repeat(SEEDS, 15).tolist())
    good = rates.alarm_columns([0] * 19 + [1], list(SEEDS))
    assert bad["p_value"] < 0.001 < good["p_value"]
    assert bad["rate"] == 0.2 and bad["design_effect"] <= 1.2


def test_a_score_that_knows_which_rows_are_tested_fails_the_check():
    study = changeable(arrange_scores(made_scores(("noise", "length"))))
    (pool,) = [pool for pool in study.pools_of("noise") if pool.name == "topics rows"]
    sets = rates.unseen_sets(SEEDS, "topics", ROWS, pool.copies)
    for of_model, values in zip(sets, pool.scores, strict=True):
        assert len(of_model) == 5 and len(np.unique(np.concatenate(of_model))) == 300
        for number in (0, 1):
            values[of_model[number]] += 3
    found = rates.false_alarms(study).set_index("detector")
    assert not found.loc["noise", "holds"] and found.loc["length", "holds"]


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


def test_lists_of_all_models_are_those_of_one_list_at_a_time():
    (pool,) = arrange_scores(made_scores(("n-gram coverage",), difficulty=0.5)).pools_of(
        "n-gram coverage"
    )
    found = lists.lists_of(pool, 16, SEEDS)
    for q, of_q in zip(lists.QS, found, strict=True):
        for number in range(6):
            scores, copies = pool.scores[number], pool.copies[number]
            unseen = lists.tested_unseen(SEEDS[number], pool, copies, 16)
            rest = np.setdiff1d(np.flatnonzero(copies == 0), unseen)
            for group in (None, 0, 4, 29):
                seen = np.flatnonzero(copies == 16)
                parts = [seen, unseen, rest]
                if group is not None:
                    parts = [of[of % 30 != group] for of in parts]
                tested = np.concatenate(parts[:2])
                p_values = row_lists.conformal_p(scores[tested], scores[parts[2]])
                is_named = row_lists.named_rows(p_values, q)
                judged = judge_list(is_named, np.arange(len(tested)) < len(parts[0]))
                index = (number,) if group is None else (group, number)
                for share, expected in (
                    (of_q.false_share, judged.false_share),
                    (of_q.found_share, judged.found_share),
                ):
                    values = share.by_model if group is None else share.without_rows
                    assert values[index] == pytest.approx(expected)
            assert len(rest) == 240


def test_the_guarantee_fails_where_tested_rows_are_of_another_kind():
    """Tested held-out rows score higher by themselves, so most names on a list are false."""
    study = changeable(arrange_scores(made_scores(("Replication",), difficulty=0.5)))
    for pool in study.pools_of("Replication"):
        for number, copies in enumerate(pool.copies):
            for dose in (1, 4, 16):
                unseen = lists.tested_unseen(SEEDS[number], pool, copies, dose)
                pool.scores[number, unseen] += 4
    found = lists.row_lists(study, made_shares()).set_index(["copies", "q"])
    print(found[["false_share", "false_low", "expected"]])
    assert set(found["verdict"]) == {NOT_SUPPORTED}
    assert (found["false_share"] > 2 * found.index.get_level_values("q")).all()


def test_lists_are_seeded_by_what_they_are_of(seen):
    pools = seen.pools_of("PPL")
    first = lists.tested_unseen(300, pools[0], pools[0].copies[0], 16)
    again = lists.tested_unseen(300, seen.pools_of("noise")[0], pools[0].copies[0], 16)
    assert first.tolist() == again.tolist()  # all detectors get the same
    for other in ((301, pools[0], 16), (300, pools[1], 16), (300, pools[0], 4)):
        drawn = lists.tested_unseen(other[0], other[1], pools[0].copies[0], other[2])
        assert drawn.tolist() != first.tolist()
    with pytest.raises(ValueError, match="a list needs rows at 2 copies"):
        lists.lists_of(pools[0], 2, SEEDS)


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


def test_what_is_said_of_number_twins_follows_the_table():
    table = pd.DataFrame({"detector": ["a", "b"], "n_models": 20, "n_alarms": [20, 3]})
    failed = findings.summarize_number_twins(table.assign(verdict=CONTROL_FAILS))
    assert (
        "20 of 20 models with a and 3 of 20 models with b" in failed
        and "control of this claim" in failed
    )
    passed = findings.summarize_number_twins(table.assign(verdict=SUPPORTED))
    assert passed.endswith("So the claim is supported.")
