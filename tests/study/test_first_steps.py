"""The spot check: first training steps again, what it says, and what the ledger refuses."""

import numpy as np
import pandas as pd
import pytest

from contamination.core import storage
from contamination.lab import training
from contamination.study import first_steps, pretraining, store
from contamination.study.first_steps import ALTERED, ANOTHER, NUMERICS, RECIPE, SAME, WITHIN, WORLD

STORED = {"a": np.array([8.0, 7.5, 7.0, 6.9]), "b": np.array([8.1, 7.3, 7.1, 6.8])}


@pytest.mark.parametrize(
    ("off", "is_same", "reason"),
    [
        (0, True, SAME),
        (2e-6, True, ALTERED),
        (2e-6, False, WITHIN),
        (2e-5, False, NUMERICS),
        (0.15, False, ANOTHER),
    ],
)
def test_reasons_follow_from_the_largest_difference(off, is_same, reason):
    losses = STORED["a"][:3] + np.array([0, off, 0]) * [1, -1, 1]
    assert first_steps.reason_of(losses, STORED, "a", is_same) == reason


def test_which_model_is_drawn_depends_on_the_scores_and_not_on_the_order_of_files():
    names = {f"part_{n}": {"scores": str(n)} for n in range(20)}
    chosen = first_steps.draw_part(names)
    assert chosen in names
    assert first_steps.draw_part(dict(reversed(names.items()))) == chosen
    others = {
        first_steps.draw_part(names | {"part_3": {"scores": f"altered {n}"}}) for n in range(20)
    }
    assert len(others) > 3


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """Two stored parts, and a training that gives what a test says."""
    monkeypatch.setattr(first_steps.row_pools, "the_lab", lambda: None)
    monkeypatch.setattr(store, "world_of", lambda lab: {"hashes": "h", "packages": "p"})
    monkeypatch.setattr(first_steps.row_pools, "base_recipe", lambda lab, seed: (seed, "texts"))
    monkeypatch.setattr(training, "recipe_hash", lambda recipe: f"hash of {recipe}")
    for seed, losses in zip((300, 301), STORED.values(), strict=True):
        about = {
            "base_seed": seed,
            "world": store.world_of(None),
            "environment": store.environment(),
            "models": {pretraining.PRETRAINED: {"recipe_hash": f"hash of {seed}"}},
        }
        tables = {"losses": pd.DataFrame({"loss": losses.astype("float32")})}
        store.write_tables(tmp_path, f"pretraining_{seed}", tables, about)

    def trained(recipe, texts, n_steps):
        return STORED["ab"[recipe - 300]].astype("float32").astype(float)[:n_steps]

    monkeypatch.setattr(training, "first_losses", trained)
    return tmp_path


def test_a_model_with_the_same_losses_holds(ledger):
    (row,) = first_steps.check(3, ledger).to_dict("records")
    assert (row["reason"], row["outcome"], row["holds"]) == (SAME, "reproduced", True)
    assert (row["n_scores"], row["largest_difference"]) == (3, 0)
    assert row["environment"] == "the ledger's"
    assert list(first_steps.check(0).columns) == first_steps.COLUMNS


def test_another_loss_stops_the_run(ledger, monkeypatch):
    other = lambda recipe, texts, n_steps: np.full(n_steps, 5.0)  # noqa: E731
    monkeypatch.setattr(training, "first_losses", other)
    table = first_steps.check(3, ledger)
    assert table["reason"].tolist() == [ALTERED] and not table["holds"].any()
    with pytest.raises(ValueError, match="the ledger does not match the code"):
        first_steps.require(table)


def test_other_packages_make_another_world_and_other_code_another_recipe(ledger, monkeypatch):
    monkeypatch.setattr(training, "recipe_hash", lambda recipe: "another")
    assert first_steps.check(3, ledger)["reason"].tolist() == [RECIPE]
    monkeypatch.setattr(store, "world_of", lambda lab: {"hashes": "H", "packages": "P"})
    assert first_steps.check(3, ledger)["reason"].tolist() == [WORLD]


def test_other_texts_are_another_world_only_with_other_packages():
    there = {"hashes": {"background": "a"}, "packages": {"numpy": "1"}}
    assert not first_steps.is_another_world(there, there)
    assert not first_steps.is_another_world(there | {"packages": {"numpy": "2"}}, there)
    assert not first_steps.is_another_world(there | {"hashes": {"background": "b"}}, there)
    elsewhere = {"hashes": {"background": "b"}, "packages": {"numpy": "2"}}
    assert first_steps.is_another_world(elsewhere, there)


def test_one_altered_score_is_caught_by_the_checksum(tmp_path):
    scores = pd.DataFrame({"row": range(9), "score": (np.arange(9) / 7).astype("float32")})
    for number in (0, 1):
        store.write_tables(tmp_path, f"tried_{number}", {"scores": scores}, {"base_seed": number})
    back, made_by = store.read_all("tried", "scores", tmp_path)
    assert back["base_seed"].tolist() == [0] * 9 + [1] * 9
    assert [about["base_seed"] for about in made_by] == [0, 1]
    path = tmp_path / "tried_1_scores.parquet"
    table = pd.read_parquet(path)
    table.loc[7, "score"] = np.nextafter(table.loc[7, "score"], np.float32(9))
    storage.write_parquet(path, table)
    with pytest.raises(ValueError, match=r"tried_1_scores.* was changed"):
        store.read_all("tried", "scores", tmp_path)
    with pytest.raises(FileNotFoundError, match='there is no ledger "unknown"'):
        store.names("unknown")
