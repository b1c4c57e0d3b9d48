"""Rows seen once in a tenth of the training: by hand, and against numpy alone."""

import itertools

import numpy as np
import pytest

from contamination.lab import training
from contamination.models.local import token_ids
from contamination.study import placement, row_pools, store
from contamination.study.crossed import CrossedScores

ROOM = sum(placement.SIZES.values())


def test_every_model_has_its_deal_of_the_tenths_and_every_row_its_shadows():
    for benchmark in placement.BENCHMARKS:
        dealt = np.array([placement.numbers(seed, benchmark) for seed in placement.BASE_SEEDS])
        sizes = [(dealt == n).sum(axis=1) for n in range(placement.FOUR_COPIES + 1)]
        expected = [placement.N_HELD_OUT, *[36] * 10, placement.N_REPEATED]
        assert all((of == n).all() for of, n in zip(sizes, expected, strict=True))
        assert ((dealt == 0).sum(axis=0) >= 3).all()  # as the protocol says


@pytest.mark.parametrize("schedule", placement.SCHEDULES)
def test_a_copy_lies_in_its_tenth_of_the_batches(schedule):
    lab = row_pools.the_lab()
    recipe, texts = placement.base_recipe(lab, 400, schedule)
    assert recipe.schedule == schedule
    batches = training.training_stream(recipe, texts).batches
    pool = placement.pools()[0]
    ids = token_ids(lab.tokenizer, pool.forms["verbatim"])
    row_of = {tuple(of): row for row, of in enumerate(ids)}
    found = {}
    for step, batch in enumerate(batches):
        for block in batch.input_ids:
            starts = np.flatnonzero(block == lab.tokenizer.bos_token_id)
            for piece in np.split(block, starts)[1:]:
                end = int(np.argmax(piece == lab.tokenizer.eos_token_id))
                if (row := row_of.get(tuple(piece[1:end].tolist()))) is not None:
                    found.setdefault(row, []).append((step + 0.5) / len(batches))
    dealt = placement.numbers(400, pool.benchmark)
    assert {row: len(places) for row, places in found.items()} == {
        row: 4 if number == placement.FOUR_COPIES else 1
        for row, number in enumerate(dealt)
        if number
    }
    off = [
        found[row][0] - (dealt[row] - 0.5) / 10
        for row in np.flatnonzero((dealt > 0) & (dealt < 11))
    ]
    assert np.abs(off).max() < 0.1 and abs(np.mean(off)) < 0.01


def test_a_recipe_without_a_part_of_the_training_has_the_name_it_had():
    dose = training.Dose(("a text",), 2)
    assert dose.named == (dose.hash, 1, 2)
    assert training.Dose(("a text",), span=(0.0, 0.1)).named == (dose.hash, 1, 1, (0.0, 0.1))


def a_pool(scores, dealt):
    return CrossedScores("topics placement", np.array([scores], float), np.array([dealt]))


def test_the_difference_and_its_p_against_numpy_alone():
    generator = np.random.default_rng(0)
    dealt = generator.permutation(np.repeat(range(12), [480, *[36] * 10, 120]))
    scores = generator.normal(size=ROOM) + 0.3 * (dealt >= 8) * (dealt < 11)
    pool = a_pool(scores, dealt)
    out = scores[dealt == 0]
    wins = np.array([(out < one).mean() for one in scores])
    late, early = (dealt >= 8) & (dealt < 11), (dealt >= 1) & (dealt <= 3)
    difference = wins[late].mean() - wins[early].mean()
    assert placement.late_minus_early([pool]).by_model[0] == pytest.approx(difference)
    once = np.flatnonzero((dealt >= 1) & (dealt <= 10))
    redealt = [generator.permutation(wins[once])[:216].reshape(2, 108) for _ in range(4_000)]
    p = np.mean([of[0].mean() - of[1].mean() >= difference - 1e-12 for of in redealt])
    assert placement.redeal_p([pool]) == pytest.approx(p, abs=0.01)


def test_sign_flips_by_hand():
    differences = np.array([0.3, -0.1, 0.4, 0.2])
    signs = itertools.product([1, -1], repeat=4)
    as_far = [abs(np.dot(of, differences)) >= 0.8 - 1e-12 for of in signs]
    assert placement.sign_flip_p(differences) == np.mean(as_far)


def test_stored_parts_are_complete_and_their_endpoint_follows_from_them():
    if not store.has(f"{placement.NAME}_4"):
        pytest.skip("no part of the placement study is stored")
    stored = placement.read()
    seeds = stored["base_seed"].nunique()
    assert (stored.groupby(["detector", "model", "benchmark"]).size() == seeds * ROOM).all()
    table = placement.endpoint(stored).set_index(["schedule", "detector"])
    own = stored[stored["detector"].eq("Min-k% Prob") & stored["model"].eq("cosine")]
    found = []
    for (seed, benchmark), part in own.groupby(["base_seed", "benchmark"]):
        values = part.sort_values("row")["score"].to_numpy()
        dealt = placement.numbers(seed, benchmark)
        wins = np.sign(np.subtract.outer(values, values[dealt == 0])).mean(axis=1) / 2 + 0.5
        late, early = np.isin(dealt, (8, 9, 10)), np.isin(dealt, (1, 2, 3))
        found.append(wins[late].mean() - wins[early].mean())
    assert table.loc[("cosine", "Min-k% Prob"), "difference"] == pytest.approx(np.mean(found))
