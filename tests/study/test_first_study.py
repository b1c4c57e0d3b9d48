"""The first study analysed again: joint re-deals, intervals over base models, shares of tokens."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.core.statistics import auc
from contamination.lab.tokenizer import train_tokenizer
from contamination.study import arms, first_study, protocol, row_pools
from contamination.study.conditions import BASE, CLEAN, DOSED, FRESH, VERBATIM

N_ROWS = 20


def made(gain, detector="PPL", benchmarks=("topics", "entailment"), n_units=8, is_shared=True):
    """Row scores of made base models; benchmarks of a model share one deal, or have their own."""
    tables = []
    for unit in range(n_units):
        for place, benchmark in enumerate(benchmarks):
            seed = [unit, 0 if is_shared else place]
            is_read = np.random.default_rng(seed).permutation(N_ROWS) < N_ROWS // 2
            noise = np.random.default_rng([unit, place, 7]).normal(size=N_ROWS)
            table = pd.DataFrame({"row": range(N_ROWS), "is_read": is_read})
            table["score"] = noise + gain * is_read
            tables.append(
                table.assign(
                    detector=detector, unit=unit, benchmark=benchmark, model=DOSED,
                    condition=VERBATIM, copies=3,
                )
            )  # fmt: skip
    return pd.concat(tables, ignore_index=True)


def detection(scores):
    return first_study.detection(scores, protocol.sets_of(scores))


def test_auc_and_interval_are_over_base_models():
    scores = made(1.0)
    (row,) = detection(scores).itertuples()
    by_model = [
        np.mean([auc(own["score"], own["is_read"]) for _, own in of.groupby("benchmark")])
        for _, of in scores.groupby("unit")
    ]
    half = stats.t.ppf(0.975, 7) * stats.sem(by_model)
    assert (row.n_models, row.n_tests, row.n_rows) == (8, 8, 10)
    assert row.auc == pytest.approx(np.mean(by_model))
    assert (row.ci_low, row.ci_high) == pytest.approx((row.auc - half, row.auc + half))
    assert row.p_value < 0.001 and not hasattr(row, "verdict")


def test_benchmarks_that_share_a_deal_give_one_p_and_others_two():
    assert detection(made(0.0))["n_tests"].item() == 8
    assert detection(made(0.0, is_shared=False))["n_tests"].item() == 16
    one = made(0.0, benchmarks=("topics",))
    assert detection(one)["n_tests"].item() == 8
    # The same scores twice tell nothing more than once.
    twice = pd.concat([one, one.assign(benchmark="entailment")])
    assert detection(twice)["p_value"].item() == pytest.approx(
        detection(one)["p_value"].item(), abs=0.02
    )


def test_without_a_gain_the_joint_p_is_uniform():
    p_values = first_study._p_values(
        (scores := made(0.0, n_units=200)), scores, ("PPL", DOSED, VERBATIM, 3)
    )
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_holm_goes_over_the_table_and_what_nobody_saw_is_left_out():
    fresh = made(0.0).assign(condition=FRESH)
    of_base = made(0.0).assign(model=BASE)
    table = detection(pd.concat([made(1.0), made(0.3, "Zlib"), fresh, of_base]))
    assert table["detector"].tolist() == ["PPL", "Zlib"]
    smallest = table["p_value"].min()
    assert table["p_adjusted"].min() == pytest.approx(2 * smallest)


def test_false_alarms_count_clean_models_and_unseen_rows():
    clean = made(0.0).assign(model=CLEAN, copies=0)
    fresh = made(0.0).assign(condition=FRESH)
    sets = protocol.sets_of(pd.concat([clean, fresh, made(5.0)]))
    table = first_study.false_alarms(sets)
    assert table["n_sets"].item() == 32 and table["holds"].item()
    loud = first_study.false_alarms(sets.assign(p=0.01))
    assert loud["n_flagged"].item() == 32 and not loud["holds"].item()


def test_shares_of_tokens_are_those_of_what_a_model_saw():
    texts = [" ".join(arms.deal(name, 1, 4)[0].rows.texts) for name in row_pools.BENCHMARKS]
    lab = SimpleNamespace(tokenizer=train_tokenizer(texts, 300))
    table = first_study.shares(lab)
    assert table["benchmark"].unique().tolist() == list(row_pools.BENCHMARKS)
    for _, own in table.groupby("benchmark"):
        shares = own.set_index("copies")["rows_share_pct"]
        odds = shares / (100 - shares)  # tokens of rows over tokens of background
        # One copy of several paraphrases is of the first of three.
        assert odds[12] == pytest.approx(4 * odds[3])
        assert odds[3] == pytest.approx(3 * odds[1], rel=0.05)
        assert (own["row_share_pct"] < own["rows_share_pct"]).all()
