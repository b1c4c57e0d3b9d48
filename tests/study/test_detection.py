"""Families F1, F2 and F3 and the reference attack, on made parts of the pretraining study."""

import numpy as np
import pandas as pd
import pytest
from made_pretraining import SEEDS, copies_of, made_scores, made_shares
from notebook_files import ROOT
from scipy import stats
from verdict_words import check_verdicts

from contamination.core.verdicts import (
    CLAIMS,
    OPEN,
    RULED_OUT,
    SHOWN,
)
from contamination.study import (
    changes,
    crossed,
    reference_attack,
    row_pools,
    scores,
)
from contamination.study import detection as results
from contamination.study.scores import arrange_scores

PAGE = (ROOT / "docs/protocol_2.md").read_text()
NOTHING = dict.fromkeys((1, 4, 16), 0.0)


@pytest.fixture(scope="module", autouse=True)
def fewer_redeals():
    """Enough for Holm's first test among twelve cells, and ten times as fast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "N_JOINT_REDEALS", 999)
        yield


@pytest.fixture(scope="module")
def shares():
    return made_shares()


@pytest.fixture(scope="module")
def seen():
    """Sixteen copies are plain, four are seen, one is not."""
    detectors = ("PPL", "DC-PDD", "Replication", "n-gram coverage", "DC-PDD without bound", "noise")
    return arrange_scores(made_scores(detectors))


@pytest.fixture(scope="module")
def detection(seen, shares):
    return results.detection(seen, shares)


def verdicts(table, detector, *keys):
    return table[table["detector"].eq(detector)].set_index(list(keys))["verdict"].to_dict()


# From parts to arrays


def test_detectors_are_those_of_the_protocol():
    for name in ("DC-PDD", "CoDeC", "ReCaLL", "CDD", "n-gram coverage", "Min-K%++"):
        assert name in scores.DETECTORS and name in PAGE
    assert len(scores.DETECTORS) == 15  # number twins have two forms
    assert not {*scores.DETECTORS} & {*scores.CONTROLS}
    assert "F3 | PPL, Zlib, Lowercase, Min-k% Prob, Min-K%++, DC-PDD × 3 doses" in PAGE
    assert scores.OF_LATER == (
        "PPL", "Zlib", "Lowercase", "Min-k% Prob", "Min-K%++", "DC-PDD",
    )  # fmt: skip


def test_forms_that_are_seen_in_as_many_copies_are_told_apart():
    groups = scores.exposures(row_pools.INDIRECT)
    numbers = scores.exposure_numbers("topics", row_pools.INDIRECT, SEEDS)
    assert [group.copies for group in groups.values()] == [4, 16, 4, 4]
    for of_model in numbers:
        assert np.bincount(of_model).tolist() == [120, 60, 60, 60, 60]
    pool = next(pool for pool in row_pools.pools() if pool.kind == row_pools.INDIRECT)
    assert (copies_of(pool, 300) == 16).tolist() == (numbers[0] == 2).tolist()
    rows = scores.exposure_numbers("topics", row_pools.ROWS, SEEDS)
    assert rows[3].tolist() == copies_of(row_pools.pools()[0], SEEDS[3]).tolist()


def test_parts_that_lack_a_row_are_refused():
    made = made_scores(("noise",), seeds=(300, 301))
    found = arrange_scores(made.sample(frac=1, random_state=0))  # whatever the order
    own = made[made["benchmark"].eq("topics") & made["pool"].eq(row_pools.ROWS)]
    pool = scores.crossed_scores(found, "noise")["topics"]
    assert pool.scores[1].tolist() == own.loc[own["base_seed"].eq(301), "score"].tolist()
    seen = found[found["copies"] > 0]
    assert seen["position"].between(0, 1).all()
    assert found.loc[found["copies"].eq(0), "position"].isna().all()
    with pytest.raises(ValueError, match="every one of 480 rows needs one score"):
        arrange_scores(made.drop(index=5))
    with pytest.raises(ValueError, match="every one of 480 rows needs one score"):
        arrange_scores(pd.concat([made, made.iloc[:1]]))
    with pytest.raises(ValueError, match='no detector of the study is called "x"'):
        arrange_scores(made.assign(detector="x"))


# F1


def test_claims_have_the_smallest_effects_of_the_protocol():
    assert "AUC 0.05 above one half" in PAGE and "a fall of 0.05" in PAGE
    for name, null in ((results.DETECTION, 0.5), (changes.INDIRECTLY, 0.5), (changes.LATER, 0.0)):
        assert (CLAIMS[name].null, CLAIMS[name].smallest_effect) == (null, 0.05)


def test_detectors_that_see_rows_are_supported_and_others_are_not(detection):
    check_verdicts(detection["verdict"])
    expected = {1: RULED_OUT, 4: SHOWN, 16: SHOWN}
    assert verdicts(detection, "PPL", "copies") == expected
    assert detection["detector"].nunique() == 4  # neither the control nor the exploratory form
    row = detection.iloc[2]
    found = (row["detector"], row["copies"], row["n_rows"], row["n_held_out"])
    assert found == ("PPL", 16, 180, 900)
    assert row["benchmarks"] == "entailment, grade_school, topics" and row["n_tests"] == 60
    assert row["row_share_pct"] == pytest.approx(0.064)
    assert row["ci_low"] < row["auc"] < row["ci_high"] and row["n_flagged"] > 50
    coverage = detection[detection["detector"].eq("n-gram coverage")]
    assert set(coverage["benchmarks"]) == {"topics"} and set(coverage["n_rows"]) == {60}


def test_where_nothing_is_seen_no_claim_is_supported(shares):
    found = results.detection(arrange_scores(made_scores(("PPL", "Zlib"), gains=NOTHING)), shares)
    assert set(found["verdict"]) == {RULED_OUT}
    assert found["p_adjusted"].min() > 0.05


def test_numbers_are_those_of_the_crossed_analysis(detection, seen):
    pools = [*scores.crossed_scores(seen, "n-gram coverage").values()]
    row = detection[detection["detector"].eq("n-gram coverage")].iloc[1]
    assert row["auc"] == pytest.approx(crossed.mean_auc(pools, 4))
    p_values = np.concatenate([crossed.permutation_p_by_model(pool, 4) for pool in pools])
    assert row["p_value"] == pytest.approx(crossed.stouffer(p_values))
    # Holm over all rows of the family: the largest p stays as it is.
    assert detection["p_adjusted"].max() >= detection["p_value"].max()
    smallest = detection.loc[detection["p_value"].idxmin()]
    assert smallest["p_adjusted"] == pytest.approx(len(detection) * smallest["p_value"])


def test_an_auc_that_never_varies_has_a_range_and_a_verdict(shares):
    """Every AUC is 1, and a detector that gives every row the same score."""
    made = made_scores(("PPL", "Replication"), gains={1: 0.0, 4: 0.0, 16: 1e6}, spread=0.0)
    made.loc[made["detector"].eq("Replication"), "score"] = 0.0
    found = results.detection(arrange_scores(made), shares).set_index(["detector", "copies"])
    perfect, constant = found.loc["PPL", 16], found.loc["Replication", 16]
    for row, value, verdict in ((perfect, 1.0, SHOWN), (constant, 0.5, RULED_OUT)):
        assert row["auc"] == row["auc_min"] == row["auc_max"] == value
        assert np.isnan(row["ci_low"]) and row["verdict"] == verdict
        assert row["verdict_registered"] == verdict


def test_a_test_that_cannot_reject_decides_nothing():
    """Holm's first test asks for a fiftieth of the level, which one p of 1/10,000 does not give."""
    row = {"p_value": 1e-4, "n_tests": 1, "n_models": 20, "ci_low": 0.6, "ci_high": 0.7}
    row |= {"auc_min": 0.6, "auc_max": 0.7}
    for n, expected in ((400, SHOWN), (600, OPEN)):
        table = results.of_auc([row] * n, CLAIMS[results.DETECTION])
        assert set(table["verdict"]) == {expected}


def test_four_models_decide_nothing(shares):
    of_all = dict.fromkeys(range(5), 9)
    few = arrange_scores(made_scores(("PPL", "Zlib"), seeds=SEEDS[:4], indirect=of_all))
    assert set(changes.indirect(few, shares)["verdict"]) == {OPEN}
    found = results.detection(few, shares)
    assert set(found["verdict"]) == {OPEN}


def test_controls_hold_unless_they_see_something(seen, shares):
    found = results.controls(seen, shares)
    assert found["holds"].all() and len(found) == 3 and "verdict" not in found
    broken = arrange_scores(made_scores(("noise", "length"), strength={"noise": 1.0}))
    holds = results.controls(broken, shares).set_index(["detector", "copies"])["holds"]
    assert not holds["noise", 16] and holds["noise", 1] and holds["length"].all()


# F2


def test_other_forms_are_judged_one_by_one(seen, shares):
    found = changes.indirect(seen, shares)
    of_ppl = verdicts(found, "PPL", "exposure", "copies")
    assert of_ppl == {
        ("paraphrase", 4): RULED_OUT,
        ("paraphrase", 16): SHOWN,
        ("without label", 4): SHOWN,
        ("chat template", 4): SHOWN,
    }
    assert set(found["benchmarks"]) == {"topics"} and set(found["n_held_out"]) == {120}
    # Verbatim rows of the same benchmark at as many copies stand next to them.
    pool = [scores.crossed_scores(seen, "PPL")["topics"]]
    row = found[found["detector"].eq("PPL") & found["copies"].eq(16)].iloc[0]
    assert row["verbatim_auc"] == pytest.approx(crossed.mean_auc(pool, 16))
    nothing = arrange_scores(made_scores(("PPL",), indirect=dict.fromkeys(range(1, 5), 0.0)))
    assert SHOWN not in set(changes.indirect(nothing, shares)["verdict"])


# F3


def test_a_fall_after_clean_training_is_supported_and_none_is_not(seen, shares):
    found = changes.later(seen, shares)
    assert set(found["detector"]) == {"PPL", "DC-PDD"} and len(found) == 2 * 3 * 2
    of_ppl = verdicts(found, "PPL", "later_tokens", "copies")
    assert of_ppl[400_000, 16] == SHOWN and of_ppl[400_000, 1] == RULED_OUT
    assert found["fall"].to_numpy() == pytest.approx(found["auc_before"] - found["auc_after"])
    kept = changes.later(arrange_scores(made_scores(("PPL",), kept=1.0)), shares)
    assert set(kept["verdict"]) == {RULED_OUT}
    gained = changes.later(arrange_scores(made_scores(("PPL",), kept=2.0)), shares)
    rise = gained[gained["copies"].eq(16)]
    assert (rise["fall"] < 0).all() and set(rise["verdict"]) == {RULED_OUT}


def test_p_of_a_fall_is_that_of_a_t_test_with_the_larger_error(seen, shares):
    row = changes.later(seen, shares).iloc[0]
    error = max(row["se_models"], row["se_rows"])
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(row["fall"]) / error, 19))
    half = stats.t.ppf(0.975, 19) * np.hypot(row["se_models"], row["se_rows"])
    assert row["ci_high"] - row["fall"] == pytest.approx(half)


# Reference, benchmarks, exposure


def test_the_reference_attack_beats_ppl_where_rows_differ_in_difficulty(
    seen, shares, detection, monkeypatch
):
    monkeypatch.setattr(reference_attack, "N_JOINT_REDEALS", 19)
    found = results.reference(seen, shares).set_index(["form", "copies"])
    ppl = detection[detection["detector"].eq("PPL")].set_index("copies")["auc"]
    for form in reference_attack.FORMS:
        assert found.loc[(form, 16), "auc"] > ppl[16] + 0.05
        assert found.loc[(form, 16), "p_value"] == 1 / 20
    assert found.loc["LiRA"].loc[1, "p_value"] > 1 / 20
    assert not found.loc["LiRA"]["is_exploratory"].any()
    assert found.loc["likelihood ratio"]["is_exploratory"].all()
    assert "verdict" not in found
    few = arrange_scores(made_scores(("PPL",), seeds=SEEDS[:3]))
    with pytest.raises(ValueError, match="held out by no other model"):
        results.reference(few, shares)


def test_the_share_of_a_row_is_a_mean_over_benchmarks(shares):
    doubled = shares.assign(
        row_share_pct=shares["row_share_pct"] * (1 + shares["benchmark"].eq("topics"))
    )
    share = results.share_pct(doubled, ["topics", "entailment"], row_pools.ROWS, "verbatim", 4)
    assert share == pytest.approx(0.016 * 1.5)
    with pytest.raises(ValueError, match="not known for x"):
        results.share_pct(shares, ["topics", "x"], row_pools.ROWS, "verbatim", 4)


def test_the_reference_attack_takes_log_probabilities_and_not_perplexities(seen):
    pool = scores.log_probabilities(seen)["topics"]
    perplexities = scores.crossed_scores(seen, "PPL")["topics"]
    assert (perplexities.scores < 0).all()
    np.testing.assert_allclose(np.exp(-pool.scores), -perplexities.scores)
    attacked = {one.name: one for one in results.attack_pools(seen)}["topics rows"].scores
    moved = pool.scores - np.median(pool.scores, axis=1, keepdims=True)
    np.testing.assert_allclose(attacked, moved)
