"""The lab's world: one passage of each family, how copies are dealt, what a model row says."""

from dataclasses import replace

import pandas as pd
import pytest

from contamination.lab import world
from contamination.lab.tokenizer import tokenizer_hash, train_tokenizer
from contamination.lab.training import Dose, Recipe, background_read, describe

PROSE = "the sparse matrix holds one value for each row of the table and no other "


def passage(family, n_words, role="member", text=None):
    words = text or " ".join((PROSE * 20).split()[:n_words])
    return {"role": role, "family": family, "page": family, "n_words": n_words, "text": words}


@pytest.fixture(scope="module")
def small_world():
    """Three families of members, one of non-members; a page of numbers is no prose."""
    numbers = " ".join(["1234567"] * 100)
    passages = pd.DataFrame(
        [
            passage("b", 32),
            passage("b", 64),
            passage("a", 100, text=numbers),
            passage("a", 32),
            passage("c", 128),
            passage("d", 64, role="non-member"),
        ]
    )
    tokenizer = train_tokenizer([PROSE], vocabulary=300)
    return world.World(pd.DataFrame(), passages, (PROSE,) * 4, tokenizer)


def test_a_family_gives_its_longest_passage_that_is_no_table_of_numbers(small_world):
    """One token for each digit: 100 words of 7 digits are more than 700 tokens."""
    chosen = world.one_per_family(small_world, small_world.passages, "member")
    n_words = dict(zip(chosen["family"], chosen["n_words"], strict=True))
    assert n_words == {"b": 64, "a": 32, "c": 128}
    n_tokens = len(small_world.tokenizer(small_world.passages["text"][2]).input_ids)
    assert n_tokens > world.MAX_PASSAGE_TOKENS
    chosen = world.one_per_family(small_world, small_world.passages, "member", max_families=2)
    assert set(chosen["family"]) == {"a", "b"}


def test_a_world_with_another_benchmark_is_not_served_by_the_cache_of_the_first(monkeypatch):
    prose = pd.DataFrame({"role": ["background"], "text": [PROSE]})
    monkeypatch.setattr(world, "collect_docstrings", pd.DataFrame)
    monkeypatch.setattr(world, "split_by_family", lambda docstrings, seed: prose)
    two, one = (dict([*world.BENCHMARKS.items()][:n]) for n in (2, 1))
    made = []
    for benchmarks in (two, one, two):
        monkeypatch.setattr(world, "BENCHMARKS", benchmarks)
        lab = world.build_world(0)
        made.append((lab.background, tokenizer_hash(lab.tokenizer)))
        assert len(lab.background) == 1 + world.N_BACKGROUND_INSTANCES * len(benchmarks)
    first, second, third = made
    assert first == third and first[1] != second[1]


def many_passages():
    """Sixteen families of each role and length."""
    return pd.DataFrame(
        [
            passage(f"{role} {length} {n}", length, role)
            for role in ("member", "non-member")
            for length in (32, 64)
            for n in range(16)
        ]
    )


def test_a_deal_halves_the_passages_of_every_length(small_world):
    lab = world.World(pd.DataFrame(), many_passages(), (PROSE,), small_world.tokenizer)
    dealt = world.dealt_passages(lab, [1, 2, 4, 4], seed=3)
    assert len(dealt) == 64
    counts = dealt.groupby(["n_words", "copies"]).size().unstack()
    assert counts.to_numpy().tolist() == [[16, 4, 4, 8]] * 2
    assert (dealt["role"] == "member").tolist() == (dealt["copies"] > 0).tolist()


def test_another_seed_deals_the_same_passages_anew(small_world):
    lab = world.World(pd.DataFrame(), many_passages(), (PROSE,), small_world.tokenizer)
    first, again, other = (world.dealt_passages(lab, [1, 8], seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert first["family"].tolist() == other["family"].tolist()
    changed = (first["role"] != other["role"]).mean()
    assert 0.25 < changed < 0.75
    # Neither deal keeps to the split that the passages come from.
    was_member = first["family"].str.startswith("member")
    assert 0.25 < (first["role"].eq("member") == was_member).mean() < 0.75


def test_doses_hold_each_member_once(small_world):
    dealt = world.dealt_passages(small_world, [1, 8], seed=0)
    doses = world.doses_of(dealt)
    assert [(dose.copies, len(dose.texts)) for dose in doses] == [(1, 1), (8, 1)]
    members = dealt[dealt["role"] == "member"]
    assert sorted(text for dose in doses for text in dose.texts) == sorted(members["text"])


def test_passages_are_cut_and_shorter_ones_left_out(small_world):
    cut = world.at_length(small_world.passages.query("family != 'a'"), 64)
    assert cut["family"].tolist() == ["b", "c", "d"]
    assert {len(text.split()) for text in cut["text"]} == {64}


def test_a_reordered_model_read_the_same_texts_in_another_order(small_world):
    """A further seed alone draws other texts."""
    many = replace(small_world, background=tuple(f"{PROSE} {number}" for number in range(40)))
    base = world.base_model(many, 50, 0, "XS")
    folder, other = (world.continued_model(many, base, [], 300, seed) for seed in (0, 1))
    reordered = world.reordered_model(many, base, folder, seed=1)
    read = {}
    for path in (folder, other, reordered):
        recipe = Recipe(**describe(path)["recipe"])
        background = many.background
        if path == reordered:
            background = read[folder]
        texts = replace(many.texts(), background=background)
        assert texts.hashes()["background"] == recipe.background
        read[path] = background_read(recipe, texts)
    assert sorted(read[reordered]) == sorted(read[folder]) != sorted(read[other])
    assert read[reordered] != read[folder]
    assert describe(reordered)["n_tokens"] == describe(folder)["n_tokens"]
    dosed = world.continued_model(many, base, [Dose(("one two",))], 300, 0)
    with pytest.raises(ValueError, match="read doses"):
        world.reordered_model(many, base, dosed, seed=1)
    twice = world.continued_model(small_world, base, [], 300, 0)
    with pytest.raises(ValueError, match="more than once"):
        world.reordered_model(small_world, base, twice, seed=1)


def test_row_of_a_continued_model(small_world):
    base = world.base_model(small_world, 50, 0, "XS")
    doses = [Dose(("one two three",), 1), Dose(("four five", "six seven"), 4)]
    continued = world.continued_model(small_world, base, doses, 50, seed=7)
    row = world.model_row("continued", continued)
    assert (row["n_contaminated"], row["copies"], row["seed"]) == (3, "1, 4", 7)
    assert row["parent"] == describe(base)["recipe_hash"]
    assert (row["n_layers"], row["width"]) == world.SIZES["XS"][:2]
    assert world.model_row("base", base)["copies"] == "0"
    again = world.continued_model(small_world, base, doses, 50, seed=7)
    assert again == continued
