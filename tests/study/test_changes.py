"""Larger models that saw the same rows, on made parts of the study."""

import numpy as np
import pandas as pd
import pytest
from made_pretraining import SEEDS, made_scores
from notebook_files import ROOT

from contamination.core.verdicts import (
    CLAIMS,
    CONTROL_FAILS,
    OPEN,
    RULED_OUT,
    SHOWN,
)
from contamination.study import changes, row_pools
from contamination.study import pretraining as arm
from contamination.study.context import CODEC, RECALL
from contamination.study.interface import WORD_PROBLEMS
from contamination.study.scores import arrange_scores

DETECTORS = ("PPL", "DC-PDD", "noise")
WEAKER = {1: 0.0, 4: 0.3, 16: 1.0}
STRONGER = {1: 3.0, 4: 3.0, 16: 3.0}
LEARNED = pd.DataFrame({"holds": [True] * 5})
PAGE = (ROOT / "docs/protocol_larger.md").read_text()


@pytest.fixture(scope="module")
def seen():
    return arrange_scores(made_scores(DETECTORS))


def of_five(gains=None):
    """Other models with the first five seeds."""
    made = made_scores(DETECTORS, SEEDS[:5], **({} if gains is None else {"gains": gains}))
    return arrange_scores(made)


def test_larger_models_that_find_more_rows_support_the_claim(seen):
    table = changes.larger(seen, of_five(STRONGER), LEARNED)
    found = table.query("detector == 'PPL' and copies == 1").iloc[0]
    assert found["verdict"] == SHOWN and found["p_adjusted"] <= 0.05
    assert found["auc_larger"] - found["auc"] == pytest.approx(found["difference"])
    assert found["difference_min"] <= found["difference"] <= found["difference_max"]
    assert {*table["detector"]} == {"PPL", "DC-PDD"} and len(table) == 2 * 3
    assert (table["p_adjusted"] >= table["p_value"]).all()
    assert (table["larger_low"] <= table["auc_larger"]).all()


def test_larger_models_that_find_as_much_or_less_do_not(seen):
    same = changes.larger(seen, seen[seen["base_seed"].isin(SEEDS[:5])], LEARNED)
    assert same["verdict"].eq(RULED_OUT).all() and same["p_value"].eq(1).all()
    less = changes.larger(seen, of_five(WEAKER), LEARNED)
    row = less.query("detector == 'PPL' and copies == 16").iloc[0]
    assert row["verdict"] == RULED_OUT and row["ci_high"] < 0
    few = arrange_scores(made_scores(DETECTORS, SEEDS[:4], gains=STRONGER))
    assert changes.larger(seen, few, LEARNED)["verdict"].eq(OPEN).all()


def test_a_larger_model_that_has_learned_less_makes_the_control_fail(seen):
    small = {300: np.linspace(4, 2, 40), 301: np.linspace(4, 2, 40)}
    better = {seed: losses - 0.5 for seed, losses in small.items()}
    table = changes.larger_losses(small, better)
    assert table["holds"].all() and table["loss"].iloc[0] == pytest.approx(small[300][-4:].mean())
    one_worse = changes.larger_losses(small, better | {301: small[301] + 0.1})
    assert one_worse["holds"].tolist() == [True, False]
    judged = changes.larger(seen, of_five(STRONGER), one_worse)
    assert judged["verdict"].eq(CONTROL_FAILS).all()
    for wrong in ({302: small[300]}, {300: small[300][:-1]}):
        with pytest.raises(ValueError, match="no small model with as many steps"):
            changes.larger_losses(small, wrong)


def test_larger_models_are_those_of_the_protocol():
    n_layers, width, n_heads = arm.world.SIZES["XL"]
    assert f"{n_layers} layers, width {width}, {n_heads} heads" in PAGE
    # Attention, three feed-forward matrices, norms; tied embeddings of 4,096 tokens.
    of_layer = 4 * width**2 + 3 * width * 3 * width + 2 * width
    millions = (n_layers * of_layer + 4096 * width + width) / 1e6
    assert f"{millions:.1f} million parameters" in PAGE
    notebook = (ROOT / "notebooks/09b_detector_study.ipynb").read_text()
    assert f"{millions:.0f} million parameters" in notebook
    assert f"| {row_pools.LARGER_LEARNING_RATE}, which is that of Pythia-31M" in PAGE
    assert f"AUC difference of {CLAIMS[changes.LARGER].smallest_effect}" in PAGE
    for benchmark in row_pools.BENCHMARKS:
        asked = arm.larger_detectors_of(benchmark, ())
        assert CODEC in asked and (RECALL in asked) == (benchmark == row_pools.INDIRECT_ON)
        names = {detector.name for detector in asked}
        assert not names & {"CDD", "n-gram coverage", "Replication"}
    assert WORD_PROBLEMS in row_pools.BENCHMARKS
