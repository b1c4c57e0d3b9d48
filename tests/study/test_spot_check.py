"""The spot check: its rule on frames made by hand, the draw, and what fails a run."""

import json

import numpy as np
import pandas as pd
import pytest

from contamination.core import storage
from contamination.study import agreement, spot_check, store
from contamination.study.protocol import SET_COLUMNS

SPREAD = {"A": {"relative_rms": 0.02, "auc_change": 0.004}}


def stored(seeds=4, n_rows=40):
    """Seeds differ by 2 (RMS sqrt 2 times 2) on the common rows; rows of their own are apart."""
    tables = []
    for unit in range(seeds):
        for place, condition in enumerate(("verbatim", "fresh rows")):
            score = 2 * np.random.default_rng([unit, place]).normal(size=n_rows)
            table = pd.DataFrame({"row": np.arange(n_rows), "score": np.float32(score)})
            table["is_read"] = table["row"] < n_rows // 2
            key = {"detector": "A", "unit": unit, "benchmark": "topics", "model": "dosed"}
            tables.append(table.assign(**key, condition=condition, copies=3))
    return pd.concat(tables, ignore_index=True).astype({"score": float})


def again(scores, unit=1, add=0.0):
    """One seed's rows, scored again with something added to every second one."""
    own = scores[scores["unit"].eq(unit)].reset_index(drop=True)
    return own.assign(score=own["score"] + np.where(own["row"] % 2, add, -add))


def verdict(scores, is_same=False, **changes):
    row = agreement.judge_agreement(again(scores, **changes), scores, SPREAD, is_same).iloc[0]
    assert row["outcome"] == agreement.OUTCOMES[row["reason"]]
    return row["reason"], row["holds"]


def test_distance_between_seeds_by_hand():
    scores = stored(seeds=3, n_rows=4)
    is_common = scores["condition"].eq("fresh rows")
    for unit, value in enumerate((0.0, 1.0, 4.0)):
        scores.loc[is_common & scores["unit"].eq(unit), "score"] = value
    apart = agreement.between_seeds(scores).loc["A"]
    assert (apart["median"], apart["min"]) == (3, 1)  # of 1, 4 and 3


def test_distances_by_hand():
    scores = stored(seeds=3, n_rows=4)
    values = [3.0, 1.0, 2.0, 0.0] * 2
    scores.loc[scores["unit"].eq(1), "score"] = values
    new = again(scores).assign(score=[3.0, 1.0, 2.0, 1.5, *values[4:]])
    row = agreement.distances(new, scores).loc[1, "A"]
    assert row["n_scores"] == 8
    assert row["largest_difference"] == 1.5
    typical = agreement.between_seeds(scores).loc["A", "median"]
    assert row["relative_rms"] == pytest.approx(np.sqrt(1.5**2 / 8) / typical)
    # Read rows have 3 and 1, unread ones 2 and 0, later 1.5: of four pairs 3, then 2 are higher.
    assert row["auc_change"] == 0.25
    assert row["is_nearest"]
    large = scores.assign(score=scores["score"] + 100)
    moved = again(large, add=0.5)
    largest = agreement.distances(moved, large)["largest_difference"].item()
    assert largest == pytest.approx(0.5 / again(large)["score"].min(), rel=1e-4)


def test_in_the_ledgers_environment_every_score_must_agree():
    scores = stored()
    assert verdict(scores, is_same=True) == (agreement.SAME, True)
    in_double = scores.assign(score=scores["score"] + 1e-9)
    table = agreement.judge_agreement(again(in_double), scores, SPREAD, True)
    assert table["holds"].all()  # a difference that single precision does not hold
    one = again(scores)
    one.loc[5, "score"] += 1e-4
    table = agreement.judge_agreement(one, scores, SPREAD, True)
    assert table["reason"].tolist() == [agreement.ALTERED]
    assert table["outcome"].tolist() == ["differs"]
    assert table["holds"].tolist() == [False]


@pytest.mark.parametrize(("moved", "verdict"), [(7e-7, agreement.SAME), (2e-6, agreement.ALTERED)])
def test_a_score_may_be_off_by_a_millionth_and_not_by_two(moved, verdict):
    scores = stored()
    scores.loc[scores["unit"].eq(1) & scores["row"].eq(5), "score"] = 0.5
    one = again(scores)
    one.loc[5, "score"] += moved
    row = agreement.judge_agreement(one, scores, SPREAD, True).iloc[0]
    assert row["largest_difference"] == pytest.approx(moved, rel=0.05)
    assert row["reason"] == verdict


def test_elsewhere_the_measured_spread_decides():
    scores = stored()
    assert verdict(scores, add=0.01) == (agreement.WITHIN, True)
    middle, holds = verdict(scores, add=0.8)
    assert middle == agreement.NUMERICS and pd.isna(holds)
    assert agreement.OUTCOMES[middle] == "not recomputable"
    assert verdict(scores, add=20.0) == (agreement.ANOTHER, False)


def test_elsewhere_the_scores_of_another_seed_are_another_model():
    scores = stored()
    made_up = again(scores, unit=2).assign(unit=1)
    row = agreement.judge_agreement(made_up, scores, SPREAD, False).iloc[0]
    assert (row["reason"], row["is_nearest"]) == (agreement.ANOTHER, False)


def test_elsewhere_the_auc_of_a_set_may_not_move():
    scores = stored(n_rows=400)
    new = again(scores)
    is_raised = new["condition"].eq("verbatim") & new["is_read"]
    new.loc[is_raised, "score"] += 0.3
    row = agreement.judge_agreement(new, scores, SPREAD, False).iloc[0]
    assert row["relative_rms"] < row["relative_rms_tolerance"] == pytest.approx(0.2)
    assert row["auc_change"] > row["auc_change_tolerance"] == pytest.approx(0.04)
    assert row["reason"] == agreement.NUMERICS


def test_rows_that_are_missing_are_refused():
    scores = stored()
    with pytest.raises(ValueError, match="one score for each row"):
        agreement.judge_agreement(again(scores).iloc[1:], scores, SPREAD, True)


def test_other_texts_are_another_world_only_with_other_packages():
    there = {"hashes": {"background": "a"}, "packages": {"numpy": "1"}}
    assert not spot_check.is_another_world(there, there)
    assert not spot_check.is_another_world(there | {"packages": {"numpy": "2"}}, there)
    assert not spot_check.is_another_world(there | {"hashes": {"background": "b"}}, there)
    elsewhere = {"hashes": {"background": "b"}, "packages": {"numpy": "2"}}
    assert spot_check.is_another_world(elsewhere, there)


def test_which_models_are_drawn_depends_on_the_ledger():
    draws = {
        tuple(spot_check.draw_seeds({"sha256": {"table": str(k)}, "units": range(8)}))
        for k in range(30)
    }
    assert len(draws) > 10
    assert all(len(set(draw)) == 3 and set(draw) <= set(range(8)) for draw in draws)


def test_one_altered_score_is_caught_by_the_checksum(tmp_path):
    scores = stored()
    store.write(tmp_path, "tried", store.Ledger(scores, pd.DataFrame(columns=SET_COLUMNS), {}))
    store.read("tried", tmp_path)
    path = tmp_path / "tried_scores.parquet"
    table = pd.read_parquet(path)
    table.loc[7, "score"] = np.nextafter(table.loc[7, "score"], np.float32(9))
    storage.write_parquet(path, table)
    with pytest.raises(ValueError, match=r"tried_scores.* was changed"):
        store.read("tried", tmp_path)


@pytest.fixture
def retrained(monkeypatch, tmp_path):
    """``check`` on a ledger made by hand, without training; what it meets may be changed."""
    scores = stored(seeds=8)
    facts = {str(unit): {"recipe_hash": f"hash {unit}", "n_tokens": 10} for unit in range(8)}
    world = {"hashes": {"background": "a"}, "packages": {"numpy": "1"}}
    about = {"world_seed": 0, "n_background_tokens": 1, "units": [*range(8)], "models": facts}
    about |= {"world": world, "environment": {"processor": "AVX2"}, "spread": SPREAD}
    no_sets = pd.DataFrame(columns=SET_COLUMNS)
    store.write(tmp_path, "base0", store.Ledger(scores, no_sets, about))
    kept = json.loads((tmp_path / "base0.json").read_text())
    here = {"world": world, "environment": about["environment"], "facts": facts}

    def train_and_score(about, lab, base, seeds):
        return scores[scores["unit"].isin(seeds)], here["facts"]

    monkeypatch.setattr(store, "parts", lambda name: [store.Ledger(scores, no_sets, kept)])
    monkeypatch.setattr(spot_check.world, "build_world", lambda seed: None)
    monkeypatch.setattr(spot_check.world, "base_model", lambda *asked: None)
    monkeypatch.setattr(spot_check, "train_and_score", train_and_score)
    monkeypatch.setattr(spot_check, "world_of", lambda lab: here["world"])
    monkeypatch.setattr(spot_check, "environment", lambda: here["environment"])
    return here


def test_the_packages_models_read_what_its_settings_say(monkeypatch):
    """Everything of ``check`` on the part of the package but training and scores."""
    read, made = [], {"recipe_hash": "made", "n_tokens": 1, "n_dose_tokens": 1}
    here = store.parts(spot_check.BASE0)[0].about

    def continued_model(lab, base, doses, n_tokens, seed, **training):
        read.append((sum(dose.copies for dose in doses), n_tokens, seed, training))

    monkeypatch.setattr(spot_check.world, "build_world", lambda seed: None)
    monkeypatch.setattr(spot_check.world, "base_model", lambda *asked: None)
    monkeypatch.setattr(spot_check.world, "continued_model", continued_model)
    monkeypatch.setattr(spot_check.world, "describe", lambda folder: made)
    monkeypatch.setattr(spot_check, "world_of", lambda lab: here["world"])
    stored_scores = store.parts(spot_check.BASE0)[0].scores
    monkeypatch.setattr(
        spot_check.scoring, "score_models", lambda *asked: (stored_scores.head(0), None)
    )
    seeds = spot_check.draw_seeds(here, 2)
    monkeypatch.setattr(
        spot_check.agreement, "judge_agreement", lambda *asked: pd.DataFrame({"unit": seeds})
    )
    table = spot_check.check(2)
    n_read = len(spot_check.arms.DEALT) - 1  # of fresh rows nothing is read
    expected = (here["copies"] * n_read, here["n_tokens"], here["training"])
    assert [(copies, n, training) for copies, n, _, training in read] == [expected] * 2
    assert set(table["reason"]) == {agreement.RECIPE}  # the made-up training has another hash


def test_three_models_that_agree_pass(retrained):
    table = spot_check.check()
    assert list(table) == spot_check.COLUMNS
    assert len(table) == 3 and table["holds"].all()
    assert set(table["environment"]) == {"the ledger's"}
    seeds = table["model"].str.removeprefix("deal ")
    assert table["recipe_hash"].tolist() == [f"hash {seed}" for seed in seeds]
    spot_check.require(table)


def test_other_instructions_of_the_processor_are_named(retrained):
    retrained["environment"] = {"processor": "DEFAULT"}
    table = spot_check.check()
    assert set(table["environment"]) == {"processor DEFAULT"}  # the ledger's is AVX2
    assert set(table["reason"]) == {agreement.WITHIN}
    assert set(table["outcome"]) == {"reproduced"}
    spot_check.require(table)


def test_another_recipe_fails_the_run(retrained):
    changed = {k: facts | {"n_tokens": 11} for k, facts in retrained["facts"].items()}
    retrained["facts"] = changed
    table = spot_check.check()
    assert set(table["reason"]) == {agreement.RECIPE}
    with pytest.raises(ValueError, match=r"3 of 3 rows .* another recipe"):
        spot_check.require(table)


def test_another_world_is_said_and_fails_nothing(retrained):
    retrained["world"] = {"hashes": {"background": "b"}, "packages": {"numpy": "2"}}
    table = spot_check.check()
    assert list(table) == spot_check.COLUMNS
    assert set(table["reason"]) == {agreement.WORLD}
    assert set(table["outcome"]) == {"not recomputable"}
    assert set(table["environment"]) == {"numpy 2"}
    assert len(table) == 3 and table["holds"].isna().all()
    spot_check.require(table)
    assert spot_check.check(0).empty


def test_a_cache_for_a_moment(monkeypatch, tmp_path):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path))
    with storage.empty_cache():
        inside = storage.cache_folder("lab")
        assert inside.is_dir() and tmp_path not in inside.parents
    assert storage.cache_folder("lab").parent == tmp_path
    assert not inside.exists()
